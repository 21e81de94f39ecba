"""Checks of label matrices: constant labels, rows without labels, one label, types and containers of Y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.testing.trials import Trial, assert_same


def check_never_set_label(trial: Trial) -> None:
    """Labels without a training positive are never assigned, and tie exactly."""
    X, Y, X_test = trial.data()
    Y[:, [0, 2]] = 0
    scores, decisions = trial.fitted_outputs(X, Y, X_test)
    assert not decisions[:, [0, 2]].any(), "a label that no training row has is assigned"
    if scores is not None:
        assert np.isfinite(scores).all(), "scores are not finite"
        assert (scores[:, 0] == scores[:, 2]).all(), "the scores of two labels that no training row has differ"


def check_always_set_label(trial: Trial) -> None:
    """A label of every training row is always assigned."""
    X, Y, X_test = trial.data()
    Y[:, 1] = 1
    scores, decisions = trial.fitted_outputs(X, Y, X_test)
    assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    assert decisions[:, 1].all(), "a label of every training row is not assigned"


def check_rows_without_label(trial: Trial) -> None:
    """Many rows without any label, and no row with one, are training data like any other."""
    X, Y, X_test = trial.data()
    Y[::3] = 0
    scores, _ = trial.fitted_outputs(X, Y, X_test)
    assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    scores, decisions = trial.fitted_outputs(X, np.zeros_like(Y), X_test)
    assert scores is None or np.isfinite(scores).all(), "scores are not finite where no row has a label"
    assert not decisions.any(), "labels are assigned that no training row has"


def check_single_label(trial: Trial) -> None:
    """Y may have one column; scores and decisions keep two dimensions."""
    X, Y, X_test = trial.data()
    scores, decisions = trial.fitted_outputs(X, Y[:, :1], X_test)
    expected = (len(X_test), 1)
    assert decisions.shape == expected, f"decisions of shape {decisions.shape} instead of {expected}"
    assert scores is None or scores.shape == expected, f"scores of shape {np.shape(scores)} instead of {expected}"


def check_two_classes(trial: Trial) -> None:
    """A one-dimensional y of two classes is an ordinary binary classification, in scikit-learn's shapes."""
    X, Y, X_test = trial.data()
    names = np.array(["no", "yes"])
    model = trial.fit(X, names[Y[:, 0]])
    assert list(model.classes_) == list(names), f"classes_ is {model.classes_}"
    predicted = np.asarray(model.predict(X_test))
    assert predicted.shape == (len(X_test),), f"predict returns shape {predicted.shape}"
    assert set(predicted) <= set(names), f"predict returns {sorted(set(predicted))}"
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X_test))
        assert probabilities.shape == (len(X_test), 2), f"predict_proba returns shape {probabilities.shape}"
        assert np.abs(probabilities.sum(axis=1) - 1).max() <= 1e-6, "two probabilities do not add up to 1"
    if hasattr(model, "decision_function"):
        above = np.asarray(model.decision_function(X_test)) >= 0
        assert above.shape == (len(X_test),), f"decision_function returns shape {above.shape}"
        assert (names[above.astype(int)] == predicted).all(), "decision_function and predict disagree"


def check_label_types(trial: Trial) -> None:
    """Y as list, floats in Fortran order, small integers or a data frame of booleans means the same."""
    X, Y, X_test = trial.data()
    kinds: dict[str, Any] = {
        "a list": Y.tolist(),
        "floats in Fortran order": np.asfortranarray(Y, dtype=float),
        "uint8": Y.astype(np.uint8),
        "a data frame of booleans": pd.DataFrame(Y.astype(bool)),
    }
    _assert_equal_kinds(trial, X, kinds, X_test)


def check_sparse_labels(trial: Trial) -> None:
    """A sparse Y gives what the dense one gives."""
    X, Y, X_test = trial.data()
    _assert_equal_kinds(trial, X, {"a CSR array": sp.csr_array(Y), "CSC": sp.csc_matrix(Y.astype(bool))}, X_test)


def _assert_equal_kinds(trial: Trial, X: Any, kinds: dict[str, Any], X_test: Any) -> None:
    for name, given in kinds.items():
        try:
            assert_same(trial.fitted_outputs(X, given, X_test), trial.expected, atol=0)
        except Exception as error:
            raise AssertionError(f"Y as {name}: {error}") from error


def check_label_names(trial: Trial) -> None:
    """The names of the labels come back with the predictions, and are forgotten by a fit without names."""
    X, Y, X_test = trial.data()
    labels = ["sun", "rain", "wind", "fog"]
    rows = [f"row {i}" for i in range(len(X_test))]
    test = pd.DataFrame(X_test, index=rows)
    model = trial.fit(pd.DataFrame(X), pd.DataFrame(Y, columns=labels))
    for options in ({}, {"scores": True}) if hasattr(model, "predict_frame") else ({},):
        made = model.predict_frame(test, **options) if hasattr(model, "predict_frame") else model.predict(test)
        assert isinstance(made, pd.DataFrame), "predictions have no label names"
        assert made.columns.tolist() == labels, f"predictions have the columns {made.columns.tolist()}"
        assert made.index.tolist() == rows, "predictions have lost the index of X"
        expected = trial.outputs(model, test)[0 if options else 1]
        assert np.array_equal(made, expected), "the named predictions are others"
    model.fit(X[:20], Y[:20])
    assert labels != list(getattr(model, "label_names_", [])), "a fit without names keeps the names of an earlier one"
