"""Checks of features and wrong input: names, sparse matrices, number types, few rows, mistakes."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from multilab.testing.trials import Trial, assert_message, assert_refused, assert_same


def check_feature_names(trial: Trial) -> None:
    """The names of the columns of X are kept, others are refused, and the next fit forgets them."""
    X, Y, X_test = trial.data()
    features = [f"f{j}" for j in range(X.shape[1])]
    test = pd.DataFrame(X_test, columns=features)
    model = trial.fit(pd.DataFrame(X, columns=features), Y)
    assert list(getattr(model, "feature_names_in_", [])) == features, "feature_names_in_ has not the columns of X"
    assert_refused(lambda: model.predict(test[features[::-1]]), "columns of X in another order", "feature names")
    assert_refused(lambda: model.predict(test.rename(columns={"f0": "other"})), "a column renamed", "feature names")
    model.fit(X[:20], Y[:20])
    assert not hasattr(model, "feature_names_in_"), "a fit without names keeps those of an earlier one"


def check_sparse_input(trial: Trial) -> None:
    """Sparse X of any format, unsorted too, gives what dense X gives; else it is refused clearly."""
    X, Y, X_test = trial.data()
    X, X_test = np.where(X > 0.5, X, 0), np.where(X_test > 0.5, X_test, 0)
    if not get_tags(trial.estimator).input_tags.sparse:
        assert_refused(lambda: trial.fit(sp.csr_matrix(X), Y), "sparse X", "sparse")
        return
    expected = trial.fitted_outputs(X, Y, X_test)
    unsorted = _unsorted(X)
    kinds = {
        "a COO matrix": sp.coo_matrix(X),
        "a CSC array": sp.csc_array(X),
        "unsorted CSR": unsorted,
    }
    for name, given in kinds.items():
        try:
            assert_same(trial.fitted_outputs(given, Y, sp.csr_array(X_test)), expected)
        except Exception as error:
            raise AssertionError(f"X as {name}: {error}") from error
    assert np.array_equal(unsorted.toarray(), X), "the caller's matrix was changed"
    assert not np.all(np.diff(unsorted.indices[: unsorted.indptr[1]]) > 0), "the caller's matrix was sorted"


def _unsorted(X: np.ndarray) -> sp.csr_array:
    """Return X as CSR with the columns of each row in descending order."""
    matrix = sp.csr_array(X)
    for row in range(len(X)):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        matrix.indices[part] = matrix.indices[part][::-1].copy()
        matrix.data[part] = matrix.data[part][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def check_single_precision(trial: Trial) -> None:
    """X of float32 gives what the same values as float64 give, up to single precision."""
    X, Y, X_test = trial.data()
    scores, decisions = trial.fitted_outputs(X.astype(np.float32), Y, X_test.astype(np.float32))
    expected = trial.expected[0]
    if expected is None:
        assert_same((None, decisions), trial.expected)
        return
    gap = float(np.abs(np.asarray(scores, dtype=float) - expected).max())
    assert gap <= 1e-2 * max(1.0, float(np.abs(expected).max())), f"scores differ by up to {gap:.3g}"


def check_integer_features(trial: Trial) -> None:
    """X of integers gives what the same values as floats give."""
    X, Y, X_test = trial.data()
    X, X_test = (np.round(3 * a).astype(np.int64) for a in (X, X_test))
    assert_same(trial.fitted_outputs(X, Y, X_test), trial.fitted_outputs(X.astype(float), Y, X_test.astype(float)))


def check_unseen_values(trial: Trial) -> None:
    """A feature that is constant in training may vary later; rows of zeros and of large values get finite scores."""
    X, Y, X_test = trial.data()
    X[:, 0] = 0.5
    rows = np.vstack([X_test, np.zeros(X.shape[1]), np.full(X.shape[1], 1e6)])
    scores, decisions = trial.fitted_outputs(X, Y, rows)
    assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    assert set(np.unique(decisions)) <= {0, 1}, f"decisions are {np.unique(decisions)[:5]}"


def check_two_rows(trial: Trial) -> None:
    """Two training rows are learned from, or refused with a ValueError of one sentence."""
    X, _, X_test = trial.data()
    Y = np.array([[1, 0, 1, 0], [0, 1, 0, 1]])
    try:
        scores, decisions = trial.fitted_outputs(X[:2], Y, X_test)
    except ValueError as error:
        assert_message(error)
        return
    assert decisions.shape == (len(X_test), 4), f"decisions of shape {decisions.shape}"
    assert scores is None or np.isfinite(scores).all(), "scores are not finite"


def check_wrong_shapes(trial: Trial) -> None:
    """Another number of features, rows of Y that are missing and wrong dimensions are refused with a message."""
    X, Y, X_test = trial.data()
    model = trial.model
    assert_refused(lambda: model.predict(X_test[:, :-1]), "a feature less at prediction")
    assert_refused(lambda: model.predict(X_test[0]), "a single row of one dimension")
    assert_refused(lambda: trial.fit(X, Y[:-1]), "a row of Y less than of X")
    assert_refused(lambda: trial.fit(X, Y[:, :, None]), "Y of three dimensions")


def check_wrong_labels(trial: Trial) -> None:
    """Label values other than 0 and 1 are refused, or kept as classes; they are never taken for 0 or 1."""
    X, Y, X_test = trial.data()
    for given in (2 * Y, 2 * Y - 1):
        try:
            decisions = trial.outputs(trial.fit(X, given), X_test)[1]
        except (ValueError, TypeError) as error:
            assert_message(error)
            continue
        assert set(np.unique(decisions)) <= set(np.unique(given)), (
            f"labels of the values {np.unique(given)} become {np.unique(decisions)}"
        )


def check_missing_values(trial: Trial) -> None:
    """NaN in X and in Y is refused by name, or learned from where tags or ``fit`` say so."""
    X, Y, X_test = trial.data()
    holes = np.where(X > 0.9, np.nan, X)
    if get_tags(trial.estimator).input_tags.allow_nan:
        scores, _ = trial.fitted_outputs(holes, Y, X_test)
        assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    else:
        assert_refused(lambda: trial.fit(holes, Y), "NaN in X", "NaN")
    hidden = np.where(np.arange(Y.size).reshape(Y.shape) % 7 == 0, np.nan, Y)
    if _learns_from_missing_labels(trial.estimator):
        scores, _ = trial.fitted_outputs(X, hidden, X_test)
        assert scores is None or np.isfinite(scores).all(), "scores are not finite"
    else:
        assert_refused(lambda: trial.fit(X, hidden), "NaN in Y", "NaN")


def _learns_from_missing_labels(estimator: Any) -> bool:
    accepts = getattr(estimator, "_accepts_missing_labels", None)
    return "y_mask" in signature(estimator.fit).parameters if accepts is None else bool(accepts)


def check_unfitted(trial: Trial) -> None:
    """Predictions before ``fit`` raise a NotFittedError."""
    try:
        trial.new().predict(trial.data()[2])
    except NotFittedError:
        return
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of NotFittedError: {error}") from error
    raise AssertionError("an estimator that was never fitted predicts")
