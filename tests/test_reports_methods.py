"""Reports of many methods: methods as rows, the best average rank first, and the finding in words."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.reports import build_report, finding_text, headline_markdown, load_study
from multilab.reports.finding import finding
from multilab.reports.tables import method_rows, score_table

SETS = ("left", "middle", "right")


def write_study(folder: Path, means: pd.DataFrame, **info) -> Path:
    """Write ``scores.csv`` and ``study.json``: two splits around the means of datasets x methods."""
    folder.mkdir(exist_ok=True)
    rows = [
        (dataset, split, method, "hamming_loss", means.loc[dataset, method] + (split - 0.5) / 1000)
        for dataset in means.index
        for split in (0, 1)
        for method in means.columns
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    frame.to_csv(folder / "scores.csv", index=False)
    (folder / "study.json").write_text(json.dumps({"name": folder.name, "title": folder.name, **info}))
    return folder


def random_means(k: int, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).uniform(0.1, 0.4, (len(SETS), k)).round(3)
    return pd.DataFrame(values, index=list(SETS), columns=[f"m{i:02d}" for i in range(k)])


@pytest.fixture
def many(tmp_path) -> tuple[Path, pd.DataFrame]:
    """A study of 25 methods, and its means."""
    means = random_means(25)
    return write_study(tmp_path / "many", means), means


def first_table(folder: Path) -> list[list[str]]:
    """Return the texts of the first table on the page."""
    page = build_report(folder).read_text(encoding="utf-8")
    body = re.search(r'<section id="result">.*?<table.*?</table>', page, re.S).group()
    rows = re.findall(r"<tr>(.*?)</tr>", body[body.index("<table") :], re.S)
    return [
        [html.unescape(re.sub("<.*?>", "", c)) for c in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows
    ]


def test_many_methods_are_rows_sorted_by_average_rank(many):
    folder, means = many
    expected = means.rank(axis=1).mean().sort_values(kind="stable")
    head, *rows = first_table(folder)
    assert head == ["Hamming loss ↓", "Average rank", *SETS]
    assert [row[0] for row in rows] == list(expected.index)
    assert [row[1] for row in rows] == [f"{rank:.2f}" for rank in expected]
    for row in rows:
        assert [cell[:6] for cell in row[2:]] == [f"{means.loc[dataset, row[0]]:.4f}" for dataset in SETS]


def test_the_best_cell_of_each_column_is_bold(many):
    folder, means = many
    rows = method_rows(score_table(load_study(folder), "hamming_loss"))
    for column, dataset in enumerate(SETS):
        assert [row.head for row in rows if row.cells[column].best] == [means.loc[dataset].idxmin()]
    assert [row.average_rank.best for row in rows] == [True] + [False] * 24


@pytest.mark.parametrize(("k", "as_rows"), [(8, False), (9, True)])
def test_up_to_eight_methods_stay_columns(tmp_path, k, as_rows):
    folder = write_study(tmp_path / "few", random_means(k))
    assert ("Average rank" in first_table(folder)[0]) is as_rows
    assert ("*average rank*" in headline_markdown(folder).splitlines()[0]) is as_rows
    assert headline_markdown(folder).count("\n") == 2 + (k if as_rows else len(SETS) + 1)


def test_the_finding_states_leader_difference_and_significance(many):
    folder, means = many
    ranks = means.rank(axis=1).mean().sort_values(kind="stable")
    first, second = ranks.index[:2]
    leads, best, significance = finding(load_study(folder))
    assert f"Hamming loss: {first} leads 25 methods over 3 datasets" in leads
    assert f"followed by {second} (average rank {ranks[second]:.2f}, mean {means[second].mean():.3f})" in leads
    for dataset in SETS:
        assert f"{means.loc[dataset].idxmin()} on {dataset} ({means.loc[dataset].min():.3f})" in best
    assert f"{ranks[second] - ranks[first]:.3g} ranks to {second} is not significant" in significance
    page = build_report(folder).read_text(encoding="utf-8")
    assert page.index('id="finding"') < page.index('class="facts"')
    assert html.escape(finding_text(folder), quote=False) in page


def test_a_clear_leader_is_significant(tmp_path):
    sets = [f"d{i}" for i in range(40)]
    means = pd.DataFrame({"good": [0.1] * 40, "bad": [0.3] * 40, "worse": [0.4] * 40}, index=sets)
    *_, significance = finding(load_study(write_study(tmp_path / "clear", means)))
    assert "is significant: larger than Nemenyi" in significance


def test_equal_leaders_are_all_named(tmp_path):
    means = pd.DataFrame({"a": [0.2, 0.2], "b": [0.2, 0.2], "c": [0.3, 0.3]}, index=["left", "right"])
    leads, *_ = finding(load_study(write_study(tmp_path / "equal", means)))
    assert "a and b lead 3 methods over 2 datasets" in leads
    means["c"] = 0.2
    texts = finding(load_study(write_study(tmp_path / "same", means)))
    assert "all have the same rank" in texts[0]
    assert not any("significant" in text for text in texts)


def test_a_study_of_a_paper_begins_with_its_claims(tmp_path):
    folder = write_study(tmp_path / "paper", random_means(9), paper="none")
    assert 'id="finding"' not in build_report(folder).read_text(encoding="utf-8")


def test_pairs_without_a_difference_are_left_out_of_a_long_list(many):
    folder, _ = many
    page = build_report(folder).read_text(encoding="utf-8")
    assert "300 pairs, Holm-corrected, 0 differ" in page
    assert "Pairs that do not differ are in <code>statistics.json</code>" in page
    assert "m00 – m01" not in page
