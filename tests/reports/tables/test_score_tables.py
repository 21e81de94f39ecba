"""Tables of scores and costs: best values, ranks, many methods as rows."""

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
from multilab.reports.tables.costs import cost_table
from multilab.reports.tables.entry import number
from multilab.reports.tables.scores import rank_table, score_table
from multilab.reports.tables.variants import variant_table

NAMES = {title: name for name, title in TITLES.items()}


@pytest.mark.parametrize(("metric", "direction"), DIRECTIONS.items())
def test_bold_is_the_best_cell_of_each_row(fake, metric, direction):
    scores = pd.read_csv(fake / "scores.csv.gz")
    means = scores[scores["metric"] == metric].groupby(["dataset", "method"])["value"].mean().unstack()
    table = score_table(load_report(fake), metric)
    assert table.corner == f"{metric_title(metric)} {'↓' if direction == 'min' else '↑'}"
    assert table.heads == tuple(TITLES.values())
    assert [dataset for dataset, _ in table.rows] == SETS
    digits = 3 if metric == "coverage" else 4
    for dataset, entries in table.rows:
        values = means.loc[dataset, list(TITLES)].to_numpy()
        best = values.argmin() if direction == "min" else values.argmax()
        assert [entry.best for entry in entries] == [j == best for j in range(len(TITLES))]
        assert [entry.text for entry in entries] == [f"{value:.{digits}f}" for value in values]
        assert all(entry.std for entry in entries)


def test_average_ranks_are_those_of_the_statistics(fake):
    stored = read_json(fake / "statistics.json.gz")
    report = load_report(fake)
    ((title, foot),) = score_table(report, "hamming_loss").foot
    expected = stored["hamming_loss"]["ranks"]
    assert (title, [entry.text for entry in foot]) == ("Average rank", [f"{expected[m]:.2f}" for m in TITLES])
    ranks = rank_table(report)
    assert [title for title, _ in ranks.rows] == sorted(TITLES.values(), key=lambda t: expected[NAMES[t]])
    for title, entries in ranks.rows:
        assert [entry.text for entry in entries] == [f"{stored[m]['ranks'][NAMES[title]]:.2f}" for m in DIRECTIONS]
    tests = dict(ranks.foot)
    assert [entry.text for entry in tests["Friedman χ²"]] == [number(stored[m]["chi2"]) for m in DIRECTIONS]


def test_the_page_shows_the_table_of_the_headline_metric_alone(page, fake):
    scores = [table for table in page.tables if table[0][0]["text"].startswith(tuple(map(metric_title, DIRECTIONS)))]
    ((head, *rows, _),) = scores
    table = score_table(load_report(fake), "hamming_loss")
    assert [cell["text"] for cell in head] == [table.corner, *table.heads]
    shown = [[(cell["text"], cell["bold"]) for cell in row[1:]] for row in rows]
    assert shown == [[(entry.text, entry.best) for entry in entries] for _, entries in table.rows]


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
    assert not score_table(load_report(copy), "average_precision").spread
    assert "data-sd=" not in build_report(copy).read_text()


def test_costs_are_means_with_the_least_marked(fake):
    table = cost_table(load_report(fake))
    measured = pd.read_csv(fake / "measured.csv")
    seconds = measured.groupby("method")["fit_seconds"].mean()
    assert table.heads == ("Fit, s", "Predict, s", "Peak memory, MB", "Model, kB")
    for title, entries in table.rows:
        name = NAMES[title]
        fit, _, peak, size = entries
        assert (fit.text, fit.best) == (number(seconds[name]), name == seconds.idxmin())
        assert peak.text == number(80.0 + 10 * list(TITLES).index(name))
        assert size.best == (name == "br")


def test_costs_are_those_of_the_data_sets_that_all_methods_were_measured_on(copy):
    measured = pd.read_csv(copy / "measured.csv")
    measured.loc[measured["dataset"] == "yeast", "fit_seconds"] = 1e6
    gone = (measured["dataset"] == "yeast") & (measured["method"] == "br")
    measured[~gone].to_csv(copy / "measured.csv", index=False)
    assert all(float(entries[0].text) < 100 for _, entries in cost_table(load_report(copy)).rows)


def test_memory_is_shown_only_if_every_cell_has_a_peak(copy):
    measured = pd.read_csv(copy / "measured.csv")
    measured.loc[0, "peak_mb"] = 0.0
    measured.to_csv(copy / "measured.csv", index=False)
    assert "Peak memory, MB" not in cost_table(load_report(copy)).heads


def test_a_stack_is_as_expensive_as_its_base_scores(copy):
    measured = pd.read_csv(copy / "measured.csv")
    stacks = measured["method"].str.startswith("mlwse")
    measured.loc[stacks, ["fit_seconds", "input_seconds", "predict_seconds", "model_bytes"]] = 0.001, 1000.0, 1e-6, 1
    measured.loc[~stacks, "input_seconds"] = 0.0
    measured.to_csv(copy / "measured.csv", index=False)
    table = cost_table(load_report(copy))
    rows = {NAMES[title]: entries for title, entries in table.rows}
    assert rows["mlwse_l21"][0].text == number(1000.001)
    assert [name for name, entries in rows.items() if entries[0].best] in (["br"], ["mlknn"])
    assert not any(entry.best for entries in rows.values() for entry in entries[1:])


def test_the_recall_of_approximate_neighbours_is_shown_where_it_was_measured(copy):
    measured = pd.read_csv(copy / "measured.csv")
    approximate = measured["method"] == "mlwse_l21"
    measured.loc[approximate, "neighbour_recall"] = [0.9 + 0.01 * (i % 2) for i in range(approximate.sum())]
    measured.to_csv(copy / "measured.csv", index=False)
    table = cost_table(load_report(copy))
    assert table.heads[-1] == "Recall of approximate neighbours"
    shown = {NAMES[title]: entries[-1].text for title, entries in table.rows}
    assert shown == {"br": "–", "mlknn": "–", "mlwse_l21": number(measured["neighbour_recall"].mean())}


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


def test_many_methods_are_rows_sorted_by_average_rank(many):
    folder, means = many
    expected = means.rank(axis=1).mean().sort_values(kind="stable")
    table = score_table(load_report(folder), "hamming_loss")
    assert table.heads == ("Average rank", *THREE)
    assert [title for title, _ in table.rows] == list(expected.index)
    for title, (rank, *entries) in table.rows:
        assert rank.text == f"{expected[title]:.2f}"
        assert [entry.text for entry in entries] == [f"{means.loc[dataset, title]:.4f}" for dataset in THREE]
        assert [entry.best for entry in entries] == [means.loc[dataset].idxmin() == title for dataset in THREE]


@pytest.mark.parametrize(("k", "as_rows"), [(8, False), (9, True)])
def test_up_to_eight_methods_stay_columns(tmp_path, k, as_rows):
    folder = write_means(tmp_path / "few", random_means(k))
    assert ("Average rank" in score_table(load_report(folder), "hamming_loss").heads) is as_rows
    assert headline_markdown(folder).count("\n") == 2 + (k if as_rows else len(THREE) + 1)


def test_a_variant_is_compared_with_the_own_columns_on_its_data_sets(tmp_path):
    means = random_means(2)
    wide = means.assign(**{"m00-wide": means["m00"] + [0.01, -0.02, 0.5]})
    block = {"wide": {"methods": ["m00-wide"], "datasets": ["left", "middle"]}}
    folder = write_means(tmp_path / "varied", wide, methods=["m00", "m01"], variants=block)
    ((title, entries),) = variant_table(load_report(folder)).rows
    mean = wide.loc[["left", "middle"], "m00-wide"].mean()
    assert title == "m00 (wide)"
    assert [entry.text for entry in entries] == ["2", number(mean), "–", "−0.0050", "1", "1"]
    assert entries[3].gain == 1
