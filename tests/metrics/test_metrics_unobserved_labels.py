"""Labels that were not observed: every metric is computed as if these cells did not exist; bounds by enumeration."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multilab import metrics
from multilab.metrics import MetricError, bounds, preset, score_all
from multilab.metrics.registry import ALL_METRICS

# How a metric is put together from its values on single rows, single labels, or one list of all cells.
BY_ROW, BY_LABEL, BY_CELL = (
    [name for name, metric in ALL_METRICS.items() if metric.mean_over == over] for over in ("rows", "labels", "cells")
)
PRESETS_WITHOUT_NAN = ("default", "uniform", "lamda", "matlab")  # there nan means that a row or label is skipped


@st.composite
def partial(draw):
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 6)))
    truth = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    scores = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 5))) / 5
    seen = draw(hnp.arrays(bool, shape))
    assume(seen.any())
    return truth, scores, seen


anything = settings(max_examples=12, deadline=None, derandomize=True)


def given_to(name, scores):
    return scores >= 0.5 if ALL_METRICS[name].needs == "decisions" else scores


def mean_of(name, lists, conventions):
    values = [ALL_METRICS[name].function(t[None, :], g[None, :], conventions) for t, g in lists if t.size]
    kept = [value for value in values if not math.isnan(value)]
    return np.mean(kept) if kept else math.nan


@pytest.mark.parametrize("conventions", PRESETS_WITHOUT_NAN)
@given(data=partial())
@anything
def test_unobserved_cells_do_not_exist(conventions, data):
    truth, scores, seen = data
    Y = np.where(seen, truth, np.nan)

    def same(name, expected):
        got = ALL_METRICS[name].function(Y, given_to(name, scores), conventions)
        assert got == pytest.approx(expected, abs=1e-12, nan_ok=True), name

    for name in BY_ROW:
        chosen = given_to(name, scores)
        same(name, mean_of(name, [(t[m], g[m]) for t, g, m in zip(truth, chosen, seen, strict=True)], conventions))
    for name in BY_LABEL:
        values = []
        for t, g, m in zip(truth.T, given_to(name, scores).T, seen.T, strict=True):
            if m.any():
                values.append(ALL_METRICS[name].function(t[m][:, None], g[m][:, None], conventions))
        kept = [value for value in values if not math.isnan(value)]
        same(name, np.mean(kept) if kept else math.nan)
    for name in BY_CELL:
        same(name, ALL_METRICS[name].function(truth[seen][None, :], given_to(name, scores)[seen][None, :], conventions))
    micro = metrics.expected_calibration_error(Y, scores, average="micro")
    assert micro == pytest.approx(
        metrics.expected_calibration_error(truth[seen][None, :], scores[seen][None, :], average="micro"), abs=1e-12
    )


@pytest.mark.parametrize("conventions", ["default", "mulan"])
@given(data=partial())
@settings(anything, max_examples=4)
def test_all_ways_to_say_what_is_observed_are_equal(conventions, data):
    truth, scores, seen = data
    expected = {
        name: metric.function(np.where(seen, truth, np.nan), given_to(name, scores), conventions)
        for name, metric in ALL_METRICS.items()
    }
    filler = np.where(seen, truth, 1 - truth)
    stored = np.where(seen, truth, -1).astype(np.int8)
    forms = [(filler, seen), (sp.csr_array(filler), sp.csr_array(seen)), (sp.csr_array(np.where(seen, truth, 7)), seen)]
    if (stored == 0).any():
        forms += [(stored, None), (sp.csr_array(stored), None), (np.where(seen, truth, np.nan).tolist(), None)]
    for Y, y_mask in forms:
        for name, metric in ALL_METRICS.items():
            for scored in (scores, sp.csr_array(scores)):
                got = metric.function(Y, given_to(name, scored), conventions, y_mask=y_mask)
                assert got == pytest.approx(expected[name], abs=1e-13, nan_ok=True), name
    for name, value in score_all(filler, scores, conventions=conventions, y_mask=seen).items():
        if name in expected and preset(conventions).decision == ">=":
            assert value == pytest.approx(expected[name], abs=1e-13, nan_ok=True), name
    full = {name: m.function(truth, given_to(name, scores), conventions) for name, m in ALL_METRICS.items()}
    for name, metric in ALL_METRICS.items():
        everything = metric.function(truth.astype(float), given_to(name, scores), conventions, y_mask=seen | True)
        np.testing.assert_equal(everything, full[name])


def test_rows_and_labels_without_an_observed_cell_are_deleted():
    rng = np.random.default_rng(0)
    truth, scores = (rng.random((12, 6)) < 0.4).astype(float), rng.random((12, 6))
    hidden = truth.copy()
    hidden[[2, 7]], hidden[:, 4] = np.nan, np.nan
    rows, labels = [i for i in range(12) if i not in (2, 7)], [0, 1, 2, 3, 5]
    for conventions in metrics.PRESETS:
        np.testing.assert_equal(
            score_all(hidden, scores, conventions=conventions),
            score_all(truth[rows][:, labels], scores[rows][:, labels], conventions=conventions),
        )


@pytest.mark.parametrize(
    ("Y", "y_mask", "message"),
    [
        ([[math.nan, math.nan]], None, "no cell of Y is observed"),
        ([[1, 0]], [[0, 0]], "no cell of Y is observed"),
        ([[1, 0]], [[1]], r"Y has shape \(1, 2\) but y_mask has shape \(1, 1\)"),
        ([[1, 0]], [[2, 1]], "y_mask must hold 0 and 1 only: row 0, label 0 is 2"),
        ([[1, 3]], [[0, 1]], "Y must hold 0 and 1 only: row 0, label 1 is 3"),
        ([[1, -1]], None, "Y must hold 0 and 1 only: row 0, label 1 is -1"),
        (np.int8([[1, -1]]), None, r"for -1/\+1 labels pass \(Y > 0\)"),
        ([[math.inf, 1]], None, "Y must hold 0 and 1 only: row 0, label 0 is inf"),
    ],
)
def test_refusals(Y, y_mask, message):
    with pytest.raises(MetricError, match=message):
        score_all(Y, [[0.1, 0.2]], y_mask=y_mask)


WITH_BOUNDS = [name for name, metric in ALL_METRICS.items() if metric.filler]


@given(data=partial(), conventions=st.sampled_from(["default", "mulan", "sklearn"]))
@settings(anything, max_examples=8)
def test_bounds_are_the_extremes_of_all_completions(data, conventions):
    truth, scores, seen = data
    assume(1 <= (~seen).sum() <= 4)
    cells = np.argwhere(~seen)
    completions = []
    for values in itertools.product((0, 1), repeat=len(cells)):
        complete = truth.copy()
        complete[tuple(cells.T)] = values
        completions.append(complete)
    for name in WITH_BOUNDS:
        chosen = given_to(name, scores)
        values = [ALL_METRICS[name].function(complete, chosen, conventions) for complete in completions]
        low, high = bounds(name, np.where(seen, truth, np.nan), chosen, conventions)
        assert low == pytest.approx(min(values), abs=1e-12), name
        assert high == pytest.approx(max(values), abs=1e-12), name
        if name == "hamming_loss":  # every unobserved cell may be right or wrong
            assert low - 1e-12 <= ALL_METRICS[name].function(truth, chosen, conventions, y_mask=seen) <= high + 1e-12


def test_bounds_of_complete_labels_and_refusals():
    Y, scores = [[1, 0], [0, 1]], [[0.9, 0.2], [0.6, 0.3]]
    low, high = bounds("brier_score", Y, scores)
    assert low == high == metrics.brier_score(Y, scores)
    hidden = [[1, math.nan], [0, 1]]
    for name in ("ranking_loss", "macro_auc", "average_precision", "expected_calibration_error", "one_error"):
        with pytest.raises(MetricError, match=f"exact bounds of {name} are not known; metrics that have some: hamming"):
            bounds(name, hidden, scores)
    with pytest.raises(MetricError, match="where one_empty is 1"):
        bounds("macro_recall", hidden, [[1, 0], [0, 1]], preset("default", one_empty=1))
    with pytest.raises(MetricError, match="with propensities"):
        bounds("precision_at_k", hidden, scores, k=1, propensities=[1, 1])
    assert bounds("precision_at_k", hidden, [[0.1, 0.9], [0.2, 0.8]], k=1) == (0.5, 1)


def test_row_wise_weights_of_a_mask_in_a_table():
    Y = np.array([[1, 0, math.nan], [0, math.nan, math.nan], [1, 1, math.nan]])
    table = metrics.per_label(Y, np.full((3, 3), 0.5))
    assert table["observed"].tolist() == [3, 2, 0]
    assert table["count"].tolist() == [2, 1, 0]
    assert table["predicted"].tolist() == [3, 2, 0]
    assert table["brier_score"].tolist()[:2] == [0.25, 0.25]
    assert table.iloc[2][["prevalence", "precision", "auc", "log_loss"]].isna().all()
    counts = metrics.confusion_counts(Y, [[1, 1, 1]] * 3)
    assert counts.to_numpy().tolist() == [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
