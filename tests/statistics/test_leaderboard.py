"""The table of results: its views over data sets, as arrays, and over the splits of one data set, agree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.statistics import Leaderboard, StatisticsError, compare_methods, summarise

DIRECTIONS = {"macro_f1": "max", "ranking_loss": "min"}


@pytest.fixture
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (f"set{i}", split, f"m{j}", metric, float(rng.random()))
        for i in range(4)
        for split in range(3)
        for j in range(3)
        for metric in DIRECTIONS
    ]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def test_all_views_have_the_same_means(scores: pd.DataFrame) -> None:
    board = Leaderboard(scores, DIRECTIONS)
    for metric, direction in DIRECTIONS.items():
        means = summarise(scores, metric).mean
        pd.testing.assert_frame_equal(board.means(metric), means, check_names=False)
        assert board.compare(metric) == compare_methods(means, direction, metric=metric)
        for name in board.datasets:
            values = board.on(name).splits(metric)
            assert values.mean().to_dict() == pytest.approx(means.loc[name].to_dict())
    of_means = Leaderboard.of_means(board.values, DIRECTIONS, board.datasets, board.methods)
    np.testing.assert_array_equal(of_means.values, board.values)


def test_unfinished_and_undefined_results_are_told_apart(scores: pd.DataFrame) -> None:
    late = (scores["dataset"] == "set1") & (scores["method"] == "m2") & (scores["split"] == 1)
    scores.loc[(scores["dataset"] == "set2") & (scores["metric"] == "macro_f1"), "value"] = np.nan
    stopped = pd.DataFrame([("set3", 3, "m0", "60 s")], columns=["dataset", "split", "method", "reason"])
    board = Leaderboard(scores[~late], DIRECTIONS, unfinished=stopped)
    assert board.splits_of["set3"] == (0, 1, 2, 3)
    assert board.incomplete.tolist() == [[False] * 3, [False, False, True], [False] * 3, [True] * 3]
    assert board.undefined.tolist() == [[False, False, True, True], [False, False, False, True]]
    assert board.failures == {"m0": "60 s", "m1": "missing", "m2": "missing"}  # of set3, split 3 too
    assert board.on("set1").failures == {"m2": "missing"}
    assert list(board.on("set1").splits("macro_f1")) == ["m0", "m1"]
    assert list(board.means("macro_f1").index) == ["set0", "set1"]
    assert board.means("macro_f1").loc["set1"].isna().tolist() == [False, False, True]
    again = Leaderboard.of_means(board.values, DIRECTIONS, board.datasets, board.methods)
    np.testing.assert_array_equal(again.undefined, board.undefined)
    only = board.only({"set1": [0, 2], "set3": [0, 1, 2]})
    assert not only.incomplete.any()
    assert only.n_splits == 3 + 2 + 3 + 3


def test_what_is_not_there_is_named(scores: pd.DataFrame) -> None:
    board = Leaderboard(scores, DIRECTIONS)
    for call, message in (
        (lambda: board.on("set9"), "set9"),
        (lambda: board.means("f1"), "f1 was not computed"),
        (lambda: board.splits("macro_f1"), "4 datasets"),
        (lambda: board.on("set0").splits("f1"), "f1"),
        (lambda: board.on("set0").tests(), "test_to_train"),
        (lambda: board.only({"set0": [0, 7]}), "set0 has no split 7"),
        (lambda: board.only({"set9": [0]}), "set9"),
    ):
        with pytest.raises(StatisticsError, match=message):
            call()
    assert repr(board) == "Leaderboard(4 datasets, 3 methods, 2 metrics)"
