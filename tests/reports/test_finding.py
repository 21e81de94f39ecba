"""Finding of a study."""

import html

import pandas as pd
import pytest

from helpers.html_page import Page
from helpers.report_files import write_means

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import build_report, finding_text, load_report
from multilab.reports.finding import finding
from multilab.reports.head import head


def test_the_finding_counts_who_is_not_told_apart_and_the_page_begins_with_it(many):
    folder, means = many
    ranks = means.rank(axis=1).mean().sort_values(kind="stable")
    (sentence,) = finding(load_report(folder))
    assert sentence == "No method wins by Hamming loss: the 25 methods are not told apart."
    page = build_report(folder).read_text(encoding="utf-8")
    assert page.index('id="finding"') < page.index('class="facts"')
    assert html.escape(finding_text(folder), quote=False) in page
    (table,) = (table for table in Page(page).tables if table[0][-1]["text"] == "Not told apart from the first")
    assert [row[0]["text"] for row in table[1:]] == list(ranks.index[:10])
    assert {row[-1]["text"] for row in table[1:]} == {"yes"}


def test_a_clear_leader_wins(tmp_path):
    sets = [f"d{i}" for i in range(40)]
    means = pd.DataFrame({"good": [0.1] * 40, "bad": [0.3] * 40, "worse": [0.4] * 40}, index=sets)
    assert finding(load_report(write_means(tmp_path / "clear", means))) == (
        "good wins by Hamming loss: all other 2 methods are significantly behind.",
    )


def test_equal_leaders_are_not_told_apart_and_the_last_is(tmp_path):
    sets = [f"d{i}" for i in range(40)]
    means = pd.DataFrame({"a": [0.2, 0.3] * 20, "b": [0.3, 0.2] * 20, "c": [0.4] * 40}, index=sets)
    assert finding(load_report(write_means(tmp_path / "equal", means))) == (
        "No single method wins by Hamming loss: the first 2 of 3 are not told apart.",
    )
    means.loc[:] = 0.2
    (sentence,) = finding(load_report(write_means(tmp_path / "same", means)))
    assert sentence == "No method wins by Hamming loss: the 3 methods are not told apart."


def test_methods_that_differ_though_all_are_not_told_apart_get_the_reason(tmp_path):
    order = list(range(12))
    rows = [order, [10, 11, *range(10)], order]
    means = pd.DataFrame(rows, index=list("xyz"), columns=[f"m{k}" for k in order], dtype=float) / 100
    folder = write_means(tmp_path / "few", means)
    (sentence,) = finding(load_report(folder))
    assert sentence == "No method wins by Hamming loss: the 12 methods are not told apart."
    page = " ".join(build_report(folder).read_text(encoding="utf-8").split())
    assert (
        "<b>some methods differ</b>. Nemenyi’s test of pairs does not show which: no two average ranks differ by more "
        "than 9.00, and its critical difference is 9.62." in page
    )


def test_a_study_with_a_stack_and_ways_to_decide_answers_three_questions_instead_of_ranking(tmp_path):
    means = pd.DataFrame(
        {
            "br": [0.2, 0.1],
            "cc": [0.3, 0.3],
            "lp": [0.4, 0.2],
            "mlwse_l21": [0.1, 0.2],
            "mlknn": 0.2,
            "decide_half": 0.25,
        },
        index=["left", "right"],
    )
    settings = {"mlwse_l21": {"base_scores": ["br", "cc", "lp"]}, "decide_half": {"base_scores": ["mlknn"]}}
    folder = write_means(tmp_path / "tour", means, settings=settings)
    scores = pd.read_csv(folder / "scores.csv.gz")
    f1 = scores.assign(metric="macro_f1", value=1 - scores["value"])
    pd.concat([scores, f1]).to_csv(folder / "scores.csv.gz", index=False)
    families, stacking, thresholds = head(load_report(folder))["answers"]
    assert (
        "differ in Hamming loss by at most 0.050, two methods of one family (problem transformation) by up to 0.15"
        in (families.sentence)
    )
    assert stacking.sentence == "mlwse_l21 beats the best of its members (br, cc, lp) on 1 of 2 data sets."
    assert "decide_half (−0.050) gains most in Macro F1" in thresholds.sentence
    page = build_report(folder).read_text(encoding="utf-8")
    assert page.index(families.sentence) < page.index('class="facts"')
