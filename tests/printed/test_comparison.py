"""Printed numbers next to ours: the difference and its spread, by numbers computed by hand."""

import numpy as np
import pandas as pd
import pytest

from multilab.printed import Aliases, Erratum, PaperError, PublishedTables, compare_printed, summarised


def printed(*rows, errata=(), **names):
    """Printed numbers of rows (table, dataset, method, metric, mean, std)."""
    cells = pd.DataFrame(rows, columns=["table", "dataset", "method", "metric", "mean", "std"])
    cells = cells.assign(printed_mean=cells["mean"].map(str))
    return PublishedTables(cells, errata, Aliases.from_mapping(names, "names.yaml"))


def ours(*rows):
    """Our numbers of rows (dataset, method, metric, mean, std, runs, sampling)."""
    return pd.DataFrame(rows, columns=["dataset", "method", "metric", "mean", "std", "runs", "sampling"])


def test_difference_spread_and_distance():
    tables = printed(("1", "d", "A", "loss", 0.30, 0.06), names={"method": {"A": "a"}, "metric": {"loss": "one_error"}})
    (row,) = compare_printed(tables, ours(("d", "a", "one_error", 0.34, 0.08, 4, 0.0))).to_dict("records")
    assert (row["table"], row["dataset"], row["method"], row["metric"]) == ("1", "d", "A", "loss")
    assert (row["our_method"], row["our_metric"], row["text"]) == ("a", "one_error", "0.3")
    assert row["difference"] == pytest.approx(0.04)
    assert row["spread"] == pytest.approx(0.05)  # sqrt(.06^2 / 4 + .08^2 / 4)
    assert row["distance"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("names", "ours_is", "spread"),
    [
        ({}, 0.34, np.sqrt(0.0009 + 0.0016 + 0.12**2)),  # the rows are not the paper's
        ({"same_rows": [{"table": "1"}]}, 0.34, 0.05),
        ({"same_rows": [{"table": "2"}]}, 0.34, np.sqrt(0.0009 + 0.0016 + 0.12**2)),
        ({"same_rows": [{}], "runs": 1}, 0.34, np.sqrt(0.0036 + 0.0016)),  # the printed mean is of one result
        ({"same_rows": [{}], "columns": [{"where": {}, "metric": "one_error", "scale": 10}]}, 3.4, np.sqrt(0.1609)),
        ({"columns": [{"where": {}, "metric": "one_error", "scale": 10}]}, 3.4, np.sqrt(0.1609 + 1.44)),
    ],
)
def test_what_is_in_the_spread(names, ours_is, spread):
    tables = printed(("1", "d", "a", "one_error", 0.30, 0.06), **names)
    (row,) = compare_printed(tables, ours(("d", "a", "one_error", 0.34, 0.08, 4, 0.12))).to_dict("records")
    assert (row["ours"], row["spread"]) == (pytest.approx(ours_is), pytest.approx(spread))


def test_without_deviations_there_is_no_distance():
    tables = printed(("1", "d", "a", "one_error", 0.30, np.nan), ("1", "d", "b", "one_error", np.nan, np.nan))
    known = ours(*[("d", m, "one_error", 0.3, np.nan, 1, np.nan) for m in "abc"])
    (row,) = compare_printed(tables, known).to_dict("records")  # b has no printed number, c is not printed
    assert (row["difference"], row["spread"]) == (0, 0)
    assert np.isnan(row["distance"])


def test_the_first_rule_that_selects_a_number_says_which_of_our_metrics_it_is():
    columns = [
        {"where": {"table": "1"}, "metric": "ranking_loss", "conventions": "mulan"},
        {"where": {"table": ["1", "2"]}, "metric": "ranking_loss", "conventions": "matlab"},
        {"where": {}, "metric": "coverage"},
    ]
    tables = printed(*[(t, "d", "a", "loss", 0.5, np.nan) for t in "123"], columns=columns)
    names = ["ranking_loss.mulan", "ranking_loss", "coverage"]  # the study is measured under matlab
    known = ours(*[("d", "a", name, i / 4, np.nan, 1, np.nan) for i, name in enumerate(names)])
    shown = compare_printed(tables, known, "matlab")
    assert shown["our_metric"].tolist() == names
    assert shown["difference"].tolist() == [-0.5, -0.25, 0.0]
    assert tables.quantities("a", "matlab") == (("ranking_loss", "mulan"),)


def test_numbers_that_are_not_comparable_are_left_out():
    errata = [
        Erratum("toy-a", {"dataset": "d", "method": ["a", "b"]}, effect="not_comparable"),
        Erratum("toy-b", {"method": "c"}, effect="note"),
        Erratum("toy-c", {"location": "text"}, effect="not_comparable"),
    ]
    tables = printed(*[("1", d, m, "one_error", 0.5, np.nan) for d in "de" for m in "abc"], errata=errata)
    known = ours(*[(d, m, "one_error", 0.5, np.nan, 1, np.nan) for d in "de" for m in "abc"])
    shown = compare_printed(tables, known)
    assert list(zip(shown["dataset"], shown["method"], strict=True)) == [("d", "c"), ("e", "a"), ("e", "b"), ("e", "c")]


def test_two_of_our_numbers_for_one_result_are_refused():
    row = ("d", "a", "one_error", 0.5, np.nan, 1, np.nan)
    with pytest.raises(PaperError, match="two of our values for d, a, one_error"):
        compare_printed(printed(("1", "d", "a", "one_error", 0.5, np.nan)), ours(row, row))


def test_results_on_the_same_rows_count_once():
    """Two repetitions of two splits: the deviation is that of the two sets of test rows."""
    values = [(0, 0.1), (1, 0.3), (0, 0.3), (1, 0.5)]
    rows = [("d", i, "a", "one_error", v, f"key {i}", t) for i, (t, v) in enumerate(values)]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value", "key", "test_set"])
    (row,) = summarised(scores).to_dict("records")
    assert (row["mean"], row["runs"]) == (pytest.approx(0.3), 2)
    assert row["std"] == pytest.approx(np.std([0.2, 0.4], ddof=1))
    (one,) = summarised(scores.assign(test_set=0)).to_dict("records")  # one set: the four results vary by their seeds
    assert (one["std"], one["runs"]) == (pytest.approx(np.std([0.1, 0.3, 0.3, 0.5], ddof=1)), 4)
    (same,) = summarised(scores.assign(test_set=0, key="one", value=0.3)).to_dict("records")
    assert same["runs"] == 1
    assert np.isnan(same["std"])
