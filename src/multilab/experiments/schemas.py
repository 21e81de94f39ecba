"""JSON Schemas of the files that people write, for editors: ``conf/schema/<kind>.json``.

The first line of a file names its schema (``# yaml-language-server: $schema=../schema/study.json``) by a relative path.
Completion and checks then work in a checkout without a network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method
from multilab.core import conf_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.settings import schema
from multilab.datasets.card_file import Card
from multilab.experiments.study import Study
from multilab.printed import Aliases, Erratum
from multilab.printed.paper import PaperContent

SCHEMAS = ("card", "errata", "method", "names", "paper", "study")


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
        return schema(Method, title, properties=properties, required=["_target_"], additionalProperties=True)
    if kind == "errata":
        return _errata()
    if kind == "names":
        return schema(Aliases, "Names of a paper")
    if kind == "paper":
        return schema(PaperContent, "Paper")
    if kind == "study":
        made = schema(Study, "Study", required=[])  # a study `like` another has its data sets from there
        study_keys = made["properties"]
        study_keys["like"] = {"type": "string", "description": "study that has what this one omits"}
        study_keys["methods"] = {"anyOf": [{"const": "all"}, study_keys["methods"]]}
        study_keys["protocol"] = {"anyOf": [{"type": "string"}, study_keys["protocol"]]}
        share = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        for part in (made, made["$defs"]["Variant"]):
            part["properties"]["observed"] = {"anyOf": [share, part["properties"]["observed"]]}
        made["$defs"]["Variant"]["required"] = []  # the rest is the study's
        return made
    raise ExperimentError(unknown_name("kind of file", kind, SCHEMAS))


def _errata() -> dict[str, Any]:
    erratum = schema(Erratum, "Erratum")
    erratum["properties"]["values"] = {
        "type": "array",
        "items": {"type": "object"},
        "description": "one erratum per value: its keys replace these",
    }
    defined = {**erratum.pop("$defs", {}), "Erratum": {key: v for key, v in erratum.items() if key != "$schema"}}
    return {
        "title": "Errata of a paper",
        "type": "array",
        "items": {"$ref": "#/$defs/Erratum"},
        "$schema": erratum["$schema"],
        "$defs": defined,
    }


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
