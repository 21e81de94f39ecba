"""Every claim that does not hold is explained, and what explains it ran and came out as it says."""

import json

import pytest

from multilab.cells.conf import names, read_settings
from multilab.claims.paper import find, paper_names
from multilab.experiments.study import load_study

STUDIES = {read_settings("study", name).get("paper"): name for name in reversed(names("study"))}
PAPERS = [name for name in paper_names() if name in STUDIES]


def committed(checkout, name, file):
    return json.loads((checkout / "reports" / name / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAPERS)
def test_every_counterfactual_came_out_as_it_says(checkout, name):
    ran = {one["id"]: one for one in committed(checkout, name, "counterfactuals.json")["counterfactuals"]}
    assert list(ran) == [one.id for one in find(name).counterfactuals]
    assert {one["id"]: one["outcome"] for one in ran.values()} == {one["id"]: one["expect"] for one in ran.values()}


@pytest.mark.parametrize("name", PAPERS)
def test_every_erratum_is_right_by_its_check(checkout, name):
    outcomes = committed(checkout, name, "counterfactuals.json")["errata"]
    checked = {one.id for one in find(name).errata if one.check}
    assert set(outcomes) == checked
    assert {key: one["outcome"] for key, one in outcomes.items()} == dict.fromkeys(checked, "holds")
    assert all(bool(one.check) != bool(one.no_check) for one in find(name).errata)


@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_that_does_not_hold_says_why(checkout, name):
    claims = {claim.id: claim for claim in find(name).claims}
    for entry in committed(checkout, name, "claims.json"):
        claim = claims[entry["id"]]
        assert entry["sentence"] == claim.sentence
        if entry["outcome"] in ("open", "not testable"):
            assert entry["reason"], claim.id
        elif entry["outcome"] in ("fails", "holds in part") and claim.origin == "paper":
            assert claim.explanation, f"{name}: {claim.id} {entry['outcome']}"
            assert claim.explanation.evidence, f"{name}: {claim.id}: no evidence"


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_claim_requires_is_said_with_its_arguments(checkout, name):
    for entry in committed(checkout, name, "claims.json"):
        texts = [entry["description"], entry.get("description_in_paper")]
        texts += [reading["description"] for reading in entry.get("readings", ())]
        assert any(texts) or entry["outcome"] in ("open", "not testable"), entry["id"]
        for text in filter(None, texts):
            assert text.endswith("."), text
            assert not set("{%") & set(text.replace(" %", "")), text
            assert "None" not in text


@pytest.mark.parametrize("name", PAPERS)
def test_claims_do_not_mix_columns_of_two_kinds(name):
    study, paper = load_study(STUDIES[name]), find(name)
    compared = {name: set(paper.programs["fair"].columns.values())} if paper.programs else {}
    for claim in paper.claims if not paper.programs else ():  # with programs, claims name the paper's methods
        texts = json.dumps(claim.arguments)
        compared[claim.id] = {column for column in study.all_methods if f'"{column}"' in texts}
    for what, columns in compared.items():
        kinds = {study.kind_of(column) for column in columns & set(study.all_methods)}
        assert "fair" in kinds or not paper.programs
        assert not {"as_printed", "fair"} <= kinds, f"{what} compares {sorted(columns)}"


@pytest.mark.parametrize("name", ["imldf", "lskmddm", "lwmf", "mlekelm", "mlwse"])  # one that is begun has none yet
def test_the_first_screen_has_its_texts(name):
    paper = find(name)
    assert paper.citation
    assert paper.proposes.endswith(".")
    assert paper.result.endswith(".")
