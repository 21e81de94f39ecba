"""Ranks of methods before and after one more joins: rows that count, and groups that are undefined."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from multilab.arena import ArenaError, rank_changes

COLUMNS = ["dataset", "split", "method", "metric", "value"]
OLD = [("x", 0, "a", "macro_f1", 0.5), ("x", 0, "b", "macro_f1", 0.7)]
NEW = [("x", 0, "mine", "macro_f1", 0.6)]


def ranks(old: list[tuple], new: list[tuple]) -> pd.DataFrame:
    return rank_changes(pd.DataFrame(old, columns=COLUMNS), pd.DataFrame(new, columns=COLUMNS))


@pytest.mark.parametrize(
    "more",
    [
        [("x", 0, "mine", "macro_f1", 0.9)],
        [("x", 1, "a", "macro_f1", 0.9), ("x", 1, "b", "macro_f1", 0.1)],
        [("y", 0, "a", "macro_f1", 0.9), ("y", 0, "b", "macro_f1", 0.1)],
        [("x", 0, "a", "hamming_loss", 0.1), ("x", 0, "b", "hamming_loss", 0.9)],
    ],
    ids=["an earlier version", "another split", "another data set", "another metric"],
)
def test_only_rows_that_can_be_compared_count(more):
    table = ranks([*OLD, *more], NEW)
    assert table["after"].to_dict() == {"b": 1.0, "mine": 2.0, "a": 3.0}
    assert table["before"].dropna().to_dict() == {"b": 1.0, "a": 2.0}


def test_a_group_of_metrics_that_is_undefined_is_left_out():
    loss = [("x", 0, "a", "ranking_loss", 0.1), ("x", 0, "b", "ranking_loss", 0.2)]
    table = ranks([*OLD, *loss], [("x", 0, "mine", "macro_f1", math.nan), ("x", 0, "mine", "ranking_loss", 0.3)])
    assert list(table.index) == ["a", "b", "mine"]
    assert table["label"].isna().all()
    assert list(table["ranking"]) == list(table["after"]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("old", "value", "message"),
    [
        ([("y", 0, "a", "macro_f1", 0.5)], 0.6, "no committed method has results on these data sets and splits"),
        (OLD, math.nan, "no metric is defined on these data sets and splits"),
    ],
)
def test_without_ranks_the_reason_is_named(old, value, message):
    with pytest.raises(ArenaError, match=message):
        ranks(old, [("x", 0, "mine", "macro_f1", value)])
