"""Scores that are no probabilities are never thresholded at .5 unasked, and never called probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from helpers.multilabel_checks import make_data
from multilab.cells import running
from multilab.cells.cell import Cell, split_refs
from multilab.cells.conf import load_protocol
from multilab.cells.method import load_method
from multilab.cells.store import Store
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.out_of_fold import score_matrix
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.stacked_mlwse import StackedMLWSE
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.metrics import MetricError, score_all
from multilab.metrics import inputs as metric_inputs

TRUTH = np.array([[1, 0, 1], [0, 1, 0]])
MARGINS = np.array([[0.3, 0.2, 0.9], [0.1, 0.4, -1.5]])


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array, np.ndarray.tolist])
@pytest.mark.parametrize(("scores", "where"), [(MARGINS, "row 1, label 2 is -1.5"), (1 - MARGINS, "label 2 is 2.5")])
def test_scores_outside_0_1_need_decisions_or_a_threshold(
    as_given: Any, scores: np.ndarray, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block_cells in (1 << 21, 3):
        monkeypatch.setattr(metric_inputs, "BLOCK_CELLS", block_cells)
        with pytest.raises(MetricError, match=where) as error:
            score_all(TRUTH, as_given(scores))
        message = str(error.value)
        assert "decisions" in message
        assert "threshold=0" in message
        assert "\n" not in message
    at_zero = score_all(TRUTH, as_given(scores), threshold=0)
    assert at_zero == score_all(TRUTH, scores, (scores >= 0).astype(int))
    at_half = score_all(TRUTH, as_given(scores), threshold=0.5)
    assert at_half["hamming_loss"] == ((scores >= 0.5) != TRUTH).mean()


def test_probabilities_keep_the_threshold_of_one_half() -> None:
    probabilities = np.array([[1.0, 0.5, 0.0], [0.4, 1 + 2e-16, 0.1]])  # a mean may exceed 1 by rounding
    assert score_all(TRUTH, probabilities) == score_all(TRUTH, probabilities, threshold=0.5)
    assert score_all(TRUTH, TRUTH)["subset_accuracy"] == 1


def test_margins_of_a_support_vector_machine_are_refused_and_its_decisions_measured() -> None:
    X, Y, X_test = make_data()
    model = BinaryRelevance(SVC()).fit(X, Y)
    scores, decisions = model.predict_with_scores(X_test)
    with pytest.raises(MetricError, match="threshold=0"):
        score_all(Y[: len(X_test)], scores)
    assert score_all(Y[: len(X_test)], scores, threshold=0) == score_all(Y[: len(X_test)], scores, decisions)


def test_stacked_scores_are_no_probabilities_and_reach_the_laboratory_unchanged() -> None:
    X, Y, X_test = make_data()
    base = MLkNN(k=3)
    S = base.fit(X, Y).predict_proba(X)
    stacked = StackedMLWSE([("near", base)], cv=2, random_state=0)
    for model, fitted_on, rows in ((MLWSE(), S, 3 * S), (MLWSE(threshold=0.3), S, S), (stacked, X, X_test)):
        model.fit(fitted_on, Y)
        assert not hasattr(model, "predict_proba")
        scores, decisions = model.predict_with_scores(rows)
        np.testing.assert_array_equal(model.decision_function(rows), scores)
        np.testing.assert_array_equal(score_matrix(model, rows, Y.shape[1]), scores)
        threshold = getattr(model, "final_estimator_", model).threshold
        np.testing.assert_array_equal(decisions, scores >= threshold)
    assert MLWSE().fit(S, Y).decision_function(3 * S).max() > 1


def test_differences_of_predictions_do_not_wrap_around() -> None:
    X, Y, X_test = make_data()
    predicted = MLkNN(k=3).fit(X, Y.astype(np.uint8)).predict(X_test)
    assert predicted.dtype == np.int64
    assert (predicted - (1 - predicted)).min() == -1
    assert (0 - predicted).min() == -1


def test_stored_decisions_stay_one_byte_each(tmp_path: Path) -> None:
    part = split_refs("scenario3", load_protocol("kfold3"))[0]
    store = Store(tmp_path / "cells")
    for name, changes in (("mlknn", {}), ("mldf", {"measure": ["hamming_loss", "ranking_loss"]})):
        method = load_method(name)
        cell = Cell("train", part, method.with_params({**method.check_params, **changes}))
        assert running.run_cell(cell, store) is None
        stored = {key: array.dtype for key, array in store.arrays(cell.key).items() if key.startswith("decisions")}
        assert len(stored) == 1 + len(changes.get("measure", []))
        assert set(stored.values()) == {np.dtype(np.uint8)}
