"""JSON Schemas of the files that people write, for editors: ``conf/schema/<kind>.json``.

The first line of a file names its schema (``# yaml-language-server: $schema=../schema/study.json``) by a relative path.
Completion and checks then work in a checkout without a network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from multilab.core import conf_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.settings import schema
from multilab.datasets.card_file import Card
from multilab.experiments.errors import ExperimentError
from multilab.experiments.method_file import MethodFile
from multilab.experiments.study import Study

SCHEMAS = ("card", "method", "study")


def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file: one of :data:`SCHEMAS`.

    Raises
    ------
    ExperimentError
        If there is no such kind.
    """
    if kind == "card":
        return schema(Card, "Card of a data set", required=["title"])
    if kind == "method":
        properties = {
            "_target_": {"type": "string", "description": "dotted path of the estimator class"},
        }
        title = "Method: other keys are arguments of the estimator"
        return schema(MethodFile, title, properties=properties, required=["_target_"], additionalProperties=True)
    if kind == "study":
        made = schema(Study, "Study", required=[])  # a study `like` another has its data sets from there
        own = made["properties"]
        own["like"] = {"type": "string", "description": "study that has what this one omits"}
        own["methods"] = {"anyOf": [{"const": "all"}, own["methods"]]}
        own["protocol"] = {"anyOf": [{"type": "string"}, own["protocol"]]}
        share = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        for part in (made, made["$defs"]["Variant"]):
            part["properties"]["observed"] = {"anyOf": [share, part["properties"]["observed"]]}
        made["$defs"]["Variant"]["required"] = []  # the rest is the study's
        return made
    raise ExperimentError(unknown_name("kind of file", kind, SCHEMAS))


def schema_text(kind: str) -> str:
    """Return the JSON Schema of a kind of file as text."""
    return json.dumps(schema_of(kind), indent=1) + "\n"


def write_schemas(folder: Path | None = None) -> list[Path]:
    """Write all schemas to a folder, ``conf/schema`` by default, and return their paths."""
    target = folder or conf_dir() / "schema"
    paths = [target / f"{kind}.json" for kind in SCHEMAS]
    for path in paths:
        write_atomically(path, schema_text(path.stem))
    return paths
