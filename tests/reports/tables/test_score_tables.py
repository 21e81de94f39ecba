"""Tables of scores and costs: best values, ranks, many methods as rows."""

import html
import re
from pathlib import Path

import pandas as pd
import pytest

from helpers.report_files import (
    DIRECTIONS,
    SETS,
    THREE,
    TITLES,
    random_means,
    write_means,
)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.core import read_json
from multilab.reports import build_report, headline_markdown, load_report
from multilab.reports.data import metric_title
from multilab.reports.tables.costs import cost_tables
from multilab.reports.tables.entry import number
from multilab.reports.tables.scores import method_rows, score_table


def test_bold_is_the_best_cell_of_each_row(page, fake):
    table = pd.read_csv(fake / "scores.csv.gz")
    printed = {t[0][0]["text"].strip(): t for t in page.tables}
    for metric, direction in DIRECTIONS.items():
        rows = printed[f"{metric_title(metric)} {'↓' if direction == 'min' else '↑'}"]
        means = table[table["metric"] == metric].groupby(["dataset", "method"])["value"].mean().unstack()
        assert [cell["text"] for cell in rows[0][1:]] == list(TITLES.values())
        assert len(rows) == len(SETS) + 2
        for row in rows[1:-1]:
            values = means.loc[row[0]["text"], list(TITLES)].to_numpy()
            best = values.argmin() if direction == "min" else values.argmax()
            assert [cell["bold"] for cell in row[1:]] == [j == best for j in range(len(TITLES))]
            digits = 3 if metric == "coverage" else 4
            text = row[1 + best]["text"]
            assert text.startswith(f"{values[best]:.{digits}f} ± ")


def test_average_ranks_are_those_of_the_statistics(page, fake):
    stored = read_json(fake / "statistics.json.gz")
    foot = next(t for t in page.tables if t[0][0]["text"].startswith("Hamming loss"))[-1]
    expected = stored["hamming_loss"]["ranks"]
    assert [cell["text"] for cell in foot[1:]] == [f"{expected[m]:.2f}" for m in TITLES]
    overview = next(t for t in page.tables if t[0][0]["text"] == "Metric")
    assert [cell["text"] for cell in overview[1][1 : 1 + len(TITLES)]] == [cell["text"] for cell in foot[1:]]


def test_unfinished_cells_are_dashes(copy):
    scores = pd.read_csv(copy / "scores.csv.gz")
    gone = (scores["dataset"] == "yeast") & (scores["method"] == "mlwse_l21") & (scores["split"] == 2)
    scores[~gone].to_csv(copy / "scores.csv.gz", index=False)
    (copy / "statistics.json.gz").unlink()
    table = score_table(load_report(copy), "hamming_loss")
    cell = dict(table.rows)["yeast"][-1]
    assert (cell.text, cell.best) == ("–", False)
    assert "Not finished, ranked last: mlwse_l21 on yeast." in build_report(copy).read_text(encoding="utf-8")


def test_one_split_has_no_spread(copy):
    scores = pd.read_csv(copy / "scores.csv.gz")
    scores[scores["split"] == 0].to_csv(copy / "scores.csv.gz", index=False)
    (copy / "statistics.json.gz").unlink()
    table = score_table(load_report(copy), "average_precision")
    assert not table.spread
    assert "±" not in re.search(r'<section id="result">.*?</section>', build_report(copy).read_text(), re.S).group()


def test_costs_are_means_with_the_least_marked(fake):
    tables = cost_tables(load_report(fake))
    assert [table.unit for table in tables] == ["s", "s", "MB", "kB"]
    memory = tables[2]
    assert [cell.text for cell in memory.rows[0][1]] == ["80.0", "90.0", "100", "110", "120"]
    assert [cell.best for cell in memory.rows[0][1]] == [True, False, False, False, False]
    assert memory.rows[0][1][0].std == "0"


def test_a_stack_is_as_expensive_as_its_base_scores(copy):
    measured = pd.read_csv(copy / "measured.csv")
    stacks = measured["method"].str.startswith("mlwse")
    measured.loc[stacks, ["fit_seconds", "input_seconds", "predict_seconds", "model_bytes"]] = 0.001, 1000.0, 1e-6, 1
    measured.loc[~stacks, "input_seconds"] = 0.0
    measured.to_csv(copy / "measured.csv", index=False)
    report = load_report(copy)
    total, *parts = cost_tables(report)
    marked = {name for name, entry in zip(report.methods, total.rows[0][1], strict=True) if entry.best}
    assert marked
    assert not any(name.startswith("mlwse") for name in marked)
    texts = dict(zip(report.methods, (entry.text for entry in total.rows[0][1]), strict=True))
    assert texts["mlwse_l21"] == number(1000.001)
    assert len(parts) == 5
    assert not any(entry.best for table in parts for _, entries in table.rows for entry in entries)


def test_the_recall_of_approximate_neighbours_is_shown_where_it_was_measured(copy):
    measured = pd.read_csv(copy / "measured.csv")
    approximate = measured["method"] == "mlwse_l21"
    measured.loc[approximate, "neighbour_recall"] = [0.9 + 0.01 * (i % 2) for i in range(approximate.sum())]
    measured.loc[measured["method"] == "mlknn", "neighbour_recall"] = 0.99
    measured.to_csv(copy / "measured.csv", index=False)
    *_, recall = cost_tables(load_report(copy))
    assert recall.corner == "Recall of approximate neighbours ↑"
    assert recall.heads == (TITLES["mlknn"], TITLES["mlwse_l21"])
    assert [(cell.text, cell.best) for cell in recall.rows[0][1]] == [("0.990", True), ("0.903", False)]
    assert "measured on up to 200 training rows" in build_report(copy).read_text(encoding="utf-8")


def test_a_study_of_exact_neighbours_has_no_recall(fake):
    assert "Recall of approximate" not in build_report(fake).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (1234.5, "1\u202f234"),
        (0, "0"),
        (-0.5, "−0.500"),
        (3e-7, "3.00e-07"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (None, "–"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


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
    assert head == ["Hamming loss ↓", "Average rank", *THREE]
    assert [row[0] for row in rows] == list(expected.index)
    assert [row[1] for row in rows] == [f"{rank:.2f}" for rank in expected]
    for row in rows:
        assert [cell[:6] for cell in row[2:]] == [f"{means.loc[dataset, row[0]]:.4f}" for dataset in THREE]


def test_the_best_cell_of_each_column_is_bold(many):
    folder, means = many
    rows = method_rows(score_table(load_report(folder), "hamming_loss"))
    for column, dataset in enumerate(THREE):
        assert [row.head for row in rows if row.entries[column].best] == [means.loc[dataset].idxmin()]
    assert [row.average_rank.best for row in rows] == [True] + [False] * 24


@pytest.mark.parametrize(("k", "as_rows"), [(8, False), (9, True)])
def test_up_to_eight_methods_stay_columns(tmp_path, k, as_rows):
    folder = write_means(tmp_path / "few", random_means(k))
    assert ("Average rank" in first_table(folder)[0]) is as_rows
    assert ("*average rank*" in headline_markdown(folder).splitlines()[0]) is as_rows
    assert headline_markdown(folder).count("\n") == 2 + (k if as_rows else len(THREE) + 1)
