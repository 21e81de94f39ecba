"""What the texts on a paper say is so by the committed results, and every number in them comes from there."""

from __future__ import annotations

import json
import re

import pytest

from multilab.cells.conf import names, read_settings
from multilab.claims import ClaimsError
from multilab.claims.paper import find, paper_names
from multilab.claims.text_numbers import Results
from multilab.core import write_content

PAPERS = [
    name for name in paper_names() if name in names("study") and read_settings("study", name).get("paper") == name
]


@pytest.mark.parametrize("name", PAPERS)
def test_the_texts_of_a_paper_say_what_its_results_say(checkout, name):
    paper, results = find(name), Results(checkout / "reports" / name)
    texts = {"against": paper.against, "proposes": paper.proposes, "result": paper.result}
    texts |= {f"claim {one.id}: cause": one.explanation.cause for one in paper.claims if one.explanation}
    texts |= {f"{one.id}: setting": one.setting for one in paper.counterfactuals}
    texts |= {f"{one.id}: shows": one.shows for one in paper.counterfactuals}
    texts["page"] = (checkout / "docs" / "papers" / "templates" / f"{name}.md").read_text(encoding="utf-8")
    for where, text in texts.items():
        assert "{{" not in results.fill(text, f"{name}: {where}")


@pytest.mark.parametrize("name", PAPERS)
def test_the_last_change_of_a_check_has_todays_outcome(checkout, name):
    outcomes = {
        one["id"]: one["outcome"] for one in json.loads((checkout / "reports" / name / "claims.json").read_text())
    }
    last = {claim.id: claim.history[-1].outcome_after for claim in find(name).claims if claim.history}
    assert last == {name: outcomes[name] for name in last}


@pytest.fixture
def results(tmp_path):
    claims = [
        {"id": "C1", "outcome": "holds in part", "share": [3, 5], "numbers": {"a against b": "26-34", "gap": 0.123456}},
        {"id": "C2", "outcome": "open", "needs": {"core_hours": 1.5}, "programs": {"fair": {"outcome": "holds"}}},
    ]
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    (tmp_path / "counterfactuals.json").write_text(json.dumps({"counterfactuals": [], "errata": {}}))
    rows = "dataset,split,method,metric,value\nx,0,a,jaccard,0.5\nx,1,a,jaccard,0.7\ny,0,a,jaccard,0.2\n"
    write_content(tmp_path / "scores.csv.gz", rows)
    return Results(tmp_path)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ won('C1', 'a against b') }} of {{ won('C1', 'a against b') + lost('C1', 'a against b') }}", "26 of 60"),
        ("gap {{ number('C1', 'gap') }}, {{ '%.1f' | format(100 * number('C1', 'gap')) }} %", "gap 0.1235, 12.3 %"),
        ("{{ share('C1') }}: {{ outcome('C1') }}", "3 of 5: holds in part"),
        ("{{ core_hours('C2') }} h; {{ program_outcome('C2', 'fair') }}", "1.5 h; holds"),
        ("{{ mean('a', 'jaccard', 'x') }}, {{ mean('a', 'jaccard') }}", "0.6, 0.4"),
        ("{{ require(lost('C1', 'a against b') > 30) }}It loses.", "It loses."),
        ("no placeholder", "no placeholder"),
    ],
)
def test_numbers_are_filled_in(results, text, filled):
    assert results.fill(text) == filled


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "number.__globals__",
        "number.__func__.__globals__['__builtins__']",
        "cycler.__init__.__globals__.os.system('touch x')",
        "(''|attr('__class__')).mro()",
    ],
)
def test_a_text_of_a_stranger_reaches_nothing_but_the_results(results, expression):
    with pytest.raises(ClaimsError):
        results.fill(f"{{{{ {expression} }}}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ require(won('C1', 'a against b') > 30) }}It wins.", "require.*is no longer true; change the sentence"),
        ("{{ number('C1', 'gaps') }}", "C1 has no number 'gaps'; did you mean 'gap'"),
        ("{{ outcome('C3') }}", "no claim, counterfactual or erratum is called 'C3'"),
        ("{{ won('C1', 'gap') }}", "0.123456 has no cells won and lost"),
        ("{{ mean('b', 'jaccard') }}", "no result of b by jaccard"),
        ("{{ holds_for('C1') }}", "'holds_for'"),
        ("{{ 1 + }}", "page: {{ 1"),
        ("{{ numbers('C1') }}", "'numbers' is undefined"),
    ],
)
def test_a_text_that_says_what_is_not_so_is_refused(results, text, message):
    with pytest.raises(ClaimsError, match=re.compile(message)):
        results.fill(text, "page")
    assert results.fill(text, strict=False).startswith("(?)")
