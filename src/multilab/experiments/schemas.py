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
from multilab.claims.paper import PaperContent
from multilab.claims.published import Aliases, LayoutBlock
from multilab.claims.statements import Claim, Counterfactual, Erratum, Reading
from multilab.core import conf_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.settings import schema
from multilab.datasets.card_file import Card
from multilab.experiments.study import Study

SCHEMAS = ("card", "claims", "counterfactuals", "errata", "layout", "method", "names", "study")


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
    if kind in _OF_A_PAPER:
        return _OF_A_PAPER[kind]()
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


def _claims() -> dict[str, Any]:
    reading = _with_arguments(Reading, "Reading of a claim")
    claim = _with_arguments(Claim, "Claim", readings={"type": "array", "minItems": 2, "items": _ref("Reading")})
    made = schema(PaperContent, "Claims of a paper")
    made["properties"]["claims"] = {**made["properties"]["claims"], "items": _ref("Claim")}
    return _with_parts(made, Claim=claim, Reading=reading)


def _counterfactuals() -> dict[str, Any]:
    return _listed("Counterfactuals of a paper", Counterfactual=_with_arguments(Counterfactual, "Counterfactual"))


def _errata() -> dict[str, Any]:
    erratum = schema(Erratum, "Erratum")
    values = {
        "type": "array",
        "items": {"type": "object"},
        "description": "one erratum per value: its keys replace these",
    }
    erratum["properties"]["values"] = values
    return _listed("Errata of a paper", Erratum=erratum)


def _layout() -> dict[str, Any]:
    made = schema(LayoutBlock, "Layout of a table", required=[])
    return {
        **_with_parts(
            {"title": "Layouts of a paper's tables", "type": "object", "$schema": made["$schema"]}, Layout=made
        )
    } | {"additionalProperties": _ref("Layout")}


_OF_A_PAPER = {
    "claims": _claims,
    "counterfactuals": _counterfactuals,
    "errata": _errata,
    "layout": _layout,
    "names": lambda: schema(Aliases, "Names of a paper"),
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _with_arguments(kind: Any, title: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of a statement; its other keys are arguments of its check."""
    return schema(kind, title, properties=properties, additionalProperties=True)


def _listed(title: str, **part: dict[str, Any]) -> dict[str, Any]:
    ((name, item),) = part.items()
    return _with_parts({"title": title, "type": "array", "items": _ref(name), "$schema": item["$schema"]}, **part)


def _with_parts(made: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    defined = dict(made.get("$defs", {}))
    for name, part in parts.items():
        defined |= part.pop("$defs", {})
        defined[name] = {key: value for key, value in part.items() if key != "$schema"}
    return {**made, "$defs": defined}


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
