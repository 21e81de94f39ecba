"""What estimators of this package promise beyond `multilab.testing`; each check takes an unfitted estimator.

``CLASSIFIER_CHECKS`` lists those of classifiers, ``TRANSFORMER_CHECKS`` those of transformers. What an estimator
cannot pass is in :mod:`helpers.expected_failures` with the reason, as for scikit-learn's own checks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from multilab.methods.base import MethodError
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.testing.trials import ROUNDING, Trial, assert_same
from multilab.testing.trials import make_check_data as make_data


def _fitted(estimator: Any, X: Any, Y: Any) -> Any:
    return Trial(estimator).fit(X, Y)


def classifier_agreement(estimator: Any) -> None:
    """One pass gives what the separate calls give: float64 scores, int64 decisions whatever the type of Y."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y.astype(bool))
    scores, decisions = model.predict_with_scores(X_test)
    assert scores.dtype == np.float64
    assert decisions.dtype == np.int64
    np.testing.assert_array_equal(model.predict(X_test), decisions)
    named = [m for m in ("predict_proba", "decision_function") if hasattr(model, m)]
    assert any(np.array_equal(getattr(model, m)(X_test), scores) for m in named)


def classifier_two_classes(estimator: Any) -> None:
    """A one-dimensional y of two classes is a label matrix of one column, up to its classes and shapes."""
    X, Y, X_test = make_data()
    scores, decisions = _fitted(estimator, X, Y[:, :1]).predict_with_scores(X_test)
    model = _fitted(estimator, X, np.array(["no", "yes"])[Y[:, 0]])
    assert_same(model.predict_with_scores(X_test), (scores, decisions), atol=0)
    assert model.predict(X_test).tolist() == np.array(["no", "yes"])[decisions[:, 0]].tolist()
    model.fit(X[:20], Y[:20])
    assert model.classes_.shape == (Y.shape[1], 2)
    assert model.predict_frame(X_test).columns.tolist() == ["label0", "label1", "label2", "label3"]
    assert model.predict_frame(X_test).index.tolist() == list(range(len(X_test)))


def classifier_messages(estimator: Any) -> None:
    """Mistakes are refused with a message that names them and what to do."""
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="0 and 1"):
        _fitted(estimator, X, 2 * Y)
    with pytest.raises(MethodError, match="y > 0"):
        _fitted(estimator, X, 2 * Y - 1)
    with pytest.raises(MethodError, match=r"multiclass.*two classes"):
        _fitted(estimator, X, Y.sum(axis=1))
    with pytest.raises(MethodError, match="one class only"):
        _fitted(estimator, X, np.ones(len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        _fitted(estimator, X, Y[:-1])
    if not get_tags(estimator).input_tags.sparse:
        with pytest.raises(TypeError, match=r"(?i)sparse"):
            _fitted(estimator, sp.csr_matrix(X), Y)


def _transformed(transformer: Any, X: Any, Y: Any, X_test: Any) -> np.ndarray:
    made = _fitted(transformer, X, Y).transform(X_test)
    return made.toarray() if sp.issparse(made) else np.asarray(made)


def transformer_shapes(transformer: Any) -> None:
    """New rows become as many rows of finite numbers, each by itself, with a name per column."""
    X, Y, X_test = make_data()
    model = _fitted(transformer, X, Y)
    made = np.asarray(model.transform(X_test))
    assert made.shape[0] == len(X_test)
    assert made.shape[1] >= 1
    assert np.isfinite(made).all()
    np.testing.assert_allclose(model.transform(X_test[3:5]), made[3:5], rtol=0, atol=ROUNDING)
    if hasattr(model, "get_feature_names_out"):
        assert len(model.get_feature_names_out()) == made.shape[1]


def transformer_inputs_untouched(transformer: Any) -> None:
    """Nothing of the caller's changes, and read-only arrays will do; the global generator is not read."""
    X, Y, X_test = make_data()
    before = [a.copy() for a in (X, Y, X_test)]
    for array in (X, Y, X_test):
        array.setflags(write=False)
    first = _transformed(transformer, X, Y, X_test)
    np.random.seed(12345)  # noqa: NPY002 (a method that reads the global generator shall be caught)
    np.testing.assert_array_equal(_transformed(transformer, X, Y, X_test), first)
    for array, copy in zip((X, Y, X_test), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def transformer_label_types(transformer: Any) -> None:
    """Y as booleans, floats, data frame or sparse matrix means the same."""
    X, Y, X_test = make_data()
    expected = _transformed(transformer, X, Y, X_test)
    for given in (Y.astype(bool), Y.astype(float), pd.DataFrame(Y), sp.csr_array(Y)):
        np.testing.assert_array_equal(_transformed(transformer, X, given, X_test), expected)


def transformer_sparse_input(transformer: Any) -> None:
    """Sparse X gives what dense X gives."""
    X, Y, X_test = make_data()
    X, X_test = np.where(X > 0.5, X, 0), np.where(X_test > 0.5, X_test, 0)
    if not get_tags(transformer).input_tags.sparse:
        with pytest.raises(TypeError, match=r"(?i)sparse"):
            _fitted(transformer, sp.csr_matrix(X), Y)
        return
    expected = _transformed(transformer, X, Y, X_test)
    made = _transformed(transformer, sp.csc_array(X), Y, sp.csr_array(X_test))
    np.testing.assert_allclose(made, expected, rtol=0, atol=ROUNDING)


def transformer_degenerate_labels(transformer: Any) -> None:
    """Labels that are never or always set, and a single label, are labels like any other."""
    X, Y, X_test = make_data()
    Y[:, 0], Y[:, 2] = 0, 1
    for given in (Y, Y[:, 1:2]):
        assert np.isfinite(_transformed(transformer, X, given, X_test)).all()


def transformer_wrong_input(transformer: Any) -> None:
    """Mistakes are refused with a message that names them."""
    X, Y, X_test = make_data()
    with pytest.raises(ValueError, match="features"):
        _fitted(transformer, X, Y).transform(X_test[:, :-1])
    with pytest.raises(MethodError, match="0 and 1"):
        _fitted(transformer, X, 2 * Y)
    with pytest.raises(MethodError, match=r"multiclass.*two classes"):
        _fitted(transformer, X, Y.sum(axis=1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        _fitted(transformer, X, Y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        _fitted(transformer, np.where(X > 0.9, np.nan, X), Y)


def transformer_in_a_pipeline(transformer: Any) -> None:
    """Before ML-kNN it is a multi-label classifier; a pickled one gives the same."""
    X, Y, X_test = make_data()
    model = Pipeline([("change", clone(transformer)), ("classify", MLkNN(k=3))]).fit(X, Y)
    assert model.predict(X_test).shape == (len(X_test), Y.shape[1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X_test), model.predict_proba(X_test))


TRANSFORMER_CHECKS: list[Callable[[Any], None]] = [
    check for name, check in sorted(globals().items()) if name.startswith("transformer_") and callable(check)
]
CLASSIFIER_CHECKS: list[Callable[[Any], None]] = [
    check for name, check in sorted(globals().items()) if name.startswith("classifier_") and callable(check)
]
