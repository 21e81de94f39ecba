"""The JSON Schemas that editors read are those of the code, and the files that name one have only keys it knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from multilab.cells.errors import ExperimentError
from multilab.core.settings import TextLoader, parse_yaml
from multilab.experiments.schemas import SCHEMAS, schema_of, schema_text

CONF = Path(__file__).parents[2] / "conf"
MARK = "# yaml-language-server: $schema="


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_committed_schema_is_that_of_the_code(kind):
    """If it fails: python -c "from multilab.experiments.schemas import write_schemas; write_schemas()"."""
    assert (CONF / "schema" / f"{kind}.json").read_text(encoding="utf-8") == schema_text(kind)


def test_files_name_their_schema_and_have_no_other_keys():
    named = dict.fromkeys(SCHEMAS, 0)
    for path in sorted([*CONF.glob("*/*.yaml"), *CONF.parent.glob("src/multilab/papers/*/*.yaml")]):
        text = path.read_text(encoding="utf-8")
        if text.startswith(MARK):
            kind = (
                (path.parent / text.partition("\n")[0].removeprefix(MARK)).resolve().relative_to(CONF / "schema").stem
            )
            made, content = schema_of(kind), parse_yaml(text, TextLoader)
            if made["type"] == "array":
                made, entries = made["$defs"][made["items"]["$ref"].rpartition("/")[2]], content
            else:
                entries = [content]
            for entry in entries:
                assert made["additionalProperties"] or entry.keys() <= made["properties"].keys(), path
                assert set(made["required"]) <= entry.keys(), path
            named[kind] += 1
    assert min(named.values()) > 2, named
    assert min(named[kind] for kind in ("card", "method", "study")) > 10, named


def test_the_schema_of_a_study_has_the_short_forms_of_its_yaml():
    own = schema_of("study")["properties"]
    assert own["methods"]["anyOf"][0] == {"const": "all"}
    assert own["protocol"]["anyOf"][0] == {"type": "string"}
    assert own["observed"]["anyOf"][0]["type"] == "number"
    assert "name" not in own
    assert own["kind"]["enum"] == ["ablation", "as_printed", "counterfactual", "fair"]
    with pytest.raises(ExperimentError, match="no kind of file is called 'studdy'; did you mean 'study'"):
        schema_of("studdy")
