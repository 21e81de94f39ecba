"""Finding of a study."""

import html

import pandas as pd
import pytest

from helpers.report_files import (
    THREE,
    write_means,
)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import build_report, finding_text, load_report
from multilab.reports.finding import finding


def test_the_finding_states_leader_difference_and_significance(many):
    folder, means = many
    ranks = means.rank(axis=1).mean().sort_values(kind="stable")
    first, second = ranks.index[:2]
    leads, best, significance = finding(load_report(folder))
    assert f"Hamming loss: {first} leads 25 methods over 3 datasets" in leads
    assert f"followed by {second} (average rank {ranks[second]:.2f}, mean {means[second].mean():.3f})" in leads
    for dataset in THREE:
        assert f"{means.loc[dataset].idxmin()} on {dataset} ({means.loc[dataset].min():.3f})" in best
    assert f"{ranks[second] - ranks[first]:.3g} ranks to {second} is not significant" in significance
    page = build_report(folder).read_text(encoding="utf-8")
    assert page.index('id="finding"') < page.index('class="facts"')
    assert html.escape(finding_text(folder), quote=False) in page


def test_a_clear_leader_is_significant(tmp_path):
    sets = [f"d{i}" for i in range(40)]
    means = pd.DataFrame({"good": [0.1] * 40, "bad": [0.3] * 40, "worse": [0.4] * 40}, index=sets)
    *_, significance = finding(load_report(write_means(tmp_path / "clear", means)))
    assert "is significant: larger than Nemenyi" in significance


def test_equal_leaders_are_all_named(tmp_path):
    means = pd.DataFrame({"a": [0.2, 0.2], "b": [0.2, 0.2], "c": [0.3, 0.3]}, index=["left", "right"])
    leads, best, *_ = finding(load_report(write_means(tmp_path / "equal", means)))
    assert "a and b lead 3 methods over 2 datasets" in leads
    assert best == "The best is a and b on left (0.200) and a and b on right (0.200)."
    means["c"] = 0.2
    texts = finding(load_report(write_means(tmp_path / "same", means)))
    assert "all have the same rank" in texts[0]
    assert not any("significant" in text for text in texts)
