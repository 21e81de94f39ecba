"""The result files of a study: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from multilab.core import read_content, write_content
from multilab.statistics import StatisticsError
from multilab.statistics.result_files import (
    KEY_DIGITS,
    keep_measured,
    read_keys,
    read_measured,
    read_scores,
    read_table,
    read_unfinished,
    write_results,
    write_table,
)

CELL = ["dataset", "split", "method"]
SCORES = pd.DataFrame(
    [("007", 0, "a", "m", 0.1 + 0.2, "k1"), ("007", 0, "a", "n", math.nan, "k1"), ("007", 1, "a", "m", 1e-17, "k2")],
    columns=[*CELL, "metric", "value", "key"],
)
MEASURED = pd.DataFrame([("007", 0, "a", 1.5, "k1"), ("007", 1, "a", 0.5, "k2")], columns=[*CELL, "fit_seconds", "key"])


def test_the_keys_have_a_file_of_their_own_and_are_read_with_the_scores(tmp_path):
    write_results(tmp_path, SCORES, {})
    assert keep_measured(tmp_path, MEASURED)
    assert read_content(tmp_path / "scores.csv.gz").startswith(b"dataset,split,method,metric,value\n")
    assert (tmp_path / "measured.csv").read_text().startswith("dataset,split,method,fit_seconds\n")
    assert (tmp_path / "keys.csv").read_text() == "dataset,method,keys\n007,a,k1 k2\n"
    pd.testing.assert_frame_equal(read_scores(tmp_path), SCORES, check_exact=True)
    pd.testing.assert_frame_equal(read_measured(tmp_path), MEASURED, check_exact=True)


def test_keys_of_unfinished_cells_and_of_splits_that_are_not_there_stay_where_they_are(tmp_path):
    unfinished = pd.DataFrame([("007", 3, "a", "slow", 1.0, "f" * 64)], columns=[*CELL, "reason", "seconds", "key"])
    write_results(tmp_path, SCORES, {"unfinished.csv": unfinished})
    cells = [("007", 0, "a", "k1"), ("007", 1, "a", "k2"), ("007", 3, "a", "f" * KEY_DIGITS)]
    pd.testing.assert_frame_equal(read_keys(tmp_path), pd.DataFrame(cells, columns=[*CELL, "key"]))
    pd.testing.assert_frame_equal(read_unfinished(tmp_path), unfinished.drop(columns="key"))


def test_a_table_of_searches_exists_only_where_there_are_some(tmp_path):
    tuned = pd.DataFrame([("007", 0, "a", "k", '"1"')], columns=[*CELL, "parameter", "value"])
    write_results(tmp_path, SCORES, {"tuned.csv": tuned})
    assert read_table(tmp_path / "tuned.csv", text=True)["value"].tolist() == ['"1"']
    write_results(tmp_path, SCORES, {"tuned.csv": tuned[:0]})
    assert not (tmp_path / "tuned.csv").exists()
    write_results(tmp_path, SCORES, {"tuned.csv": tuned[:0]}, ["tuned.csv"])
    assert read_table(tmp_path / "tuned.csv").empty


def test_what_was_measured_stays_and_cells_that_are_new_are_added(tmp_path):
    assert keep_measured(tmp_path, MEASURED[:1])
    first = (tmp_path / "measured.csv").read_text()
    later = pd.concat([MEASURED.assign(fit_seconds=9.5), MEASURED.assign(method="b", fit_seconds=math.nan)])
    assert keep_measured(tmp_path, later)
    assert (tmp_path / "measured.csv").read_text() == f"{first}007,1,a,9.5\n"
    assert not keep_measured(tmp_path, later), "nothing is new: nothing is known of b"
    assert keep_measured(tmp_path, later, again=True)
    assert read_measured(tmp_path)["fit_seconds"].tolist() == [9.5, 9.5]


def test_what_nobody_knows_replaces_nothing_and_cells_that_are_gone_are_removed(tmp_path):
    assert keep_measured(tmp_path, MEASURED)
    packed = MEASURED.assign(fit_seconds=math.nan)
    assert not keep_measured(tmp_path, packed, again=True), "as in a clone that has packs only"
    assert read_measured(tmp_path)["fit_seconds"].tolist() == [1.5, 0.5]
    partly = MEASURED.assign(fit_seconds=[math.nan, 7.0])
    assert keep_measured(tmp_path, partly, again=True)
    assert read_measured(tmp_path)["fit_seconds"].tolist() == [1.5, 7.0]
    assert keep_measured(tmp_path, packed[1:])
    assert read_measured(tmp_path)["split"].tolist() == [1]


def test_scores_without_keys_and_costs_are_read_and_those_of_other_protocols_follow(tmp_path):
    scores = SCORES.drop(columns="key")
    write_table(tmp_path / "scores.csv.gz", scores)
    write_table(tmp_path / "scores-table4.csv.gz", scores.assign(split=7))
    assert read_measured(tmp_path) is None
    pd.testing.assert_frame_equal(read_scores(tmp_path), scores, check_exact=True)
    assert read_scores(tmp_path, extra=True)["split"].tolist() == [0, 0, 1, 7, 7, 7]


@pytest.mark.parametrize(
    ("text", "message"), [("dataset,split\n", "lacks the column 'method'"), ('"', "cannot be read")]
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    write_content(tmp_path / "scores.csv.gz", text)
    with pytest.raises(StatisticsError, match=message) as caught:
        read_scores(tmp_path)
    assert "scores.csv.gz" in str(caught.value)
