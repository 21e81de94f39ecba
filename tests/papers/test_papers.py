"""Every paper: it loads, its checks have descriptions, the sources of its errata exist, misspelt keys are refused."""

from __future__ import annotations

import re

import pytest

from multilab.cells.conf import names, read_settings
from multilab.claims import ClaimsError
from multilab.claims import paper as papers
from multilab.claims.checks import ALL_OF
from multilab.claims.published import read_cells
from multilab.core.settings import TextLoader, parse_yaml


def slugs(page):
    """The anchors of the headings of a page, as MyST makes them."""
    headings = re.findall(r"^#{2,4} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["imldf", "lskmddm", "lwmf", "mlekelm", "mlwse"])  # one that is begun has less
def test_every_paper_loads(name):
    paper = papers.find(name)
    paper.verify()
    assert paper is papers.find(name)
    assert paper.title != name
    assert any(read_settings("study", study).get("paper") == name for study in names("study"))
    assert len(paper.published)
    assert paper.errata
    assert paper.claims
    assert paper.analyses
    assert paper.figures
    tables = set(paper.published["table"])
    assert set(paper.tables.layouts) <= tables


@pytest.mark.parametrize("name", papers.paper_names())
def test_the_source_of_every_erratum_is_a_section_of_the_papers_page(name, checkout):
    sections = slugs(checkout / "docs" / "papers" / f"{name}.md")
    assert {erratum.source for erratum in papers.find(name).errata} <= sections


@pytest.mark.parametrize("name", papers.paper_names())
def test_every_check_of_a_paper_is_used(name):
    paper = papers.find(name)
    assert all(check.__doc__ for check in paper.checks.values())
    own = {key for key, check in paper.checks.items() if check.__module__.endswith(f"{name}.checks")}
    uses = [(claim.check, claim.arguments) for claim in paper.claims]
    uses += [(reading.check, reading.arguments) for claim in paper.claims for reading in claim.readings]
    uses += [(one.check, one.arguments) for one in paper.counterfactuals]
    uses += [(erratum.check["name"], erratum.arguments) for erratum in paper.errata if erratum.check]
    parts = {part["check"] for name, arguments in uses if name == ALL_OF for part in arguments["parts"]}
    assert own <= parts | {name for name, _ in uses}


def test_on_is_a_key_and_not_a_truth_value():
    """YAML 1.1 reads ``on``, ``no`` and the like as booleans; checks have a key ``on``."""
    content = parse_yaml("{on: ours, a: true, b: False, c: no, d: truely, e: 1, f: null}", TextLoader)
    assert content == {"on": "ours", "a": True, "b": False, "c": "no", "d": "truely", "e": 1, "f": None}


def test_a_paper_that_is_not_here_is_named():
    with pytest.raises(ClaimsError, match="no paper is called 'mlwsee'; did you mean 'mlwse'"):
        papers.find("mlwsee")


GOOD = {
    "claims.yaml": "title: Toy\n"
    "claims: [{id: A, sentence: s, check: best_mean, method: a, methods: [a, b], metrics: [jaccard]}]\n",
    "names.yaml": "names: {method: {a: b}}\n",
    "layout.yaml": '"1": {title: A table}\n',
    "errata.yaml": "- {id: toy-a, where: {table: 1}, printed: a, right: b, why: c, source: data, "
    "check: {name: value_printed, where: {table: 1}, value: '0.5'}}\n",
    "counterfactuals.yaml": "- {id: x, explains: [A], setting: s, shows: t, expect: holds, check: best_mean, "
    "method: a, methods: [a, b], metrics: [jaccard]}\n",
    "published.csv": "table,dataset,method,metric,mean,std,direction,printed_dataset,printed_method\n"
    "1,d,m,jaccard,0.5,,max,D,M\n",
    "checks.py": "",
}


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("claims.yaml", "title", "titel", r"papers/toy/claims\.yaml: unknown key 'titel'; did you mean 'title'"),
        ("claims.yaml", "best_mean", "best_men", r"papers/toy/claims\.yaml: claim A: there is no check 'best_men'"),
        (
            "claims.yaml",
            "metrics",
            "metric",
            r"papers/toy/claims\.yaml: claim A: check best_mean: unknown argument 'metric'; did you mean 'metrics'",
        ),
        ("claims.yaml", "sentence: s, ", "", r"papers/toy/claims\.yaml: claim A: sentence is missing"),
        ("names.yaml", "names", "nmaes", r"papers/toy/names\.yaml: unknown key 'nmaes'; did you mean 'names'"),
        (
            "names.yaml",
            "method",
            "methods",
            r"papers/toy/names\.yaml: names: the key 'methods' must be dataset",
        ),
        ("layout.yaml", "title", "titel", r"papers/toy/layout\.yaml: table 1: unknown key 'titel'"),
        ("layout.yaml", "title: A table", "axes: [dataset]", r"papers/toy/layout\.yaml: table 1: axes must be"),
        ("errata.yaml", "right", "rigth", r"papers/toy/errata\.yaml: toy-a: unknown key 'rigth'; did you mean"),
        (
            "errata.yaml",
            "where: {table: 1}, p",
            "where: {tabel: 1}, p",
            r"/errata\.yaml: toy-a: where: unknown key",
        ),
        (
            "errata.yaml",
            "value_printed",
            "value_print",
            r"/errata\.yaml: erratum toy-a: there is no check 'value_print'",
        ),
        ("errata.yaml", "value:", "valu:", r"/errata\.yaml: erratum toy-a: check value_printed: .*value"),
        (
            "counterfactuals.yaml",
            "best_mean",
            "best_men",
            r"/counterfactuals\.yaml: counterfactual x: there is no check",
        ),
        ("counterfactuals.yaml", "metrics", "metric", r"s\.yaml: counterfactual x: check best_mean: .*metric"),
        (
            "counterfactuals.yaml",
            "[A]",
            "[B]",
            r"/counterfactuals\.yaml: x: no claim or erratum is called 'B'",
        ),
    ],
)
def test_a_misspelt_key_is_refused_with_its_file(tmp_path, monkeypatch, file, old, new, message):
    for name, text in GOOD.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace(old, new) if name == file else text)
    checks = papers.find("lwmf").checks
    monkeypatch.setattr(papers, "_FOLDER", tmp_path)
    paper = papers.Paper("toy")
    vars(paper)["checks"] = checks
    with pytest.raises(ClaimsError, match=message):
        paper.verify()


def test_a_missing_column_of_published_values_is_named(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "published.csv").write_text("table,dataset,method,metric,mean,std\n1,flags,br,hamming_loss,0.1,\n")
    with pytest.raises(ClaimsError, match=r"papers/toy/published.csv: no column direction, printed_dataset, printed"):
        read_cells(folder / "published.csv")
