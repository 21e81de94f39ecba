"""What every multi-label classifier and transformer must do; each check takes an unfitted estimator and asserts.

``ALL_CHECKS`` lists those of classifiers, ``TRANSFORMER_CHECKS`` those of transformers. What an estimator
cannot pass is in :mod:`helpers.expected_failures` with the reason, as for scikit-learn's own checks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from multilab.methods.base import MethodError
from multilab.methods.neighbours.mlknn import MLkNN

# Relative to scores of order one: sums taken in another order, not another result.
ROUNDING = 1e-8


def make_data(seed: int = 0, n: int = 60, d: int = 8, q: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, Y and X_test: dependent labels, about half of them set, row 0 without any."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n + 15, d))
    latent = (X - 0.5) @ rng.normal(size=(d, q)) + 0.2 * rng.normal(size=(n + 15, q))
    latent[:, 1] += 0.5 * latent[:, 0]
    Y = (latent > np.median(latent, axis=0)).astype(np.int64)
    Y[0] = 0
    return X[:n], Y[:n], X[n:]


def _fitted(estimator: Any, X: Any, Y: Any) -> Any:
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, Y)


def _assert_same(left: tuple[Any, Any], right: tuple[Any, Any], atol: float = ROUNDING) -> None:
    np.testing.assert_allclose(left[0], right[0], rtol=0, atol=atol)
    np.testing.assert_array_equal(left[1], right[1])


def check_shapes_and_agreement(estimator: Any) -> None:
    """One pass gives what the separate calls give; decisions are 0/1."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    scores, decisions = model.predict_with_scores(X_test)
    assert scores.shape == decisions.shape == (len(X_test), Y.shape[1])
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert set(np.unique(decisions)) <= {0, 1}
    np.testing.assert_array_equal(model.predict(X_test), decisions)
    named = [m for m in ("predict_proba", "decision_function") if hasattr(model, m)]
    assert named
    assert any(np.array_equal(getattr(model, m)(X_test), scores) for m in named)


def check_learns(estimator: Any) -> None:
    """On the training rows the decisions are better than always giving the commoner class."""
    X, Y, _ = make_data()
    errors = (_fitted(estimator, X, Y).predict(X) != Y).mean()
    assert errors < np.minimum(Y.mean(axis=0), 1 - Y.mean(axis=0)).mean()


def check_decision_rule(estimator: Any) -> None:
    """A label is assigned iff its score reaches the threshold: .5, of margins 0, or the argument of that name."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    scores, decisions = model.predict_with_scores(X_test)
    kind = model._score_kind()
    threshold = {"probability": 0.5, "margin": 0.0}.get(kind)
    if kind == "score":
        threshold = getattr(model, "final_estimator_", model).threshold
    np.testing.assert_array_equal(decisions, scores >= threshold)


def check_probabilities(estimator: Any) -> None:
    """What ``predict_proba`` returns is in [0, 1], for rows far from the training rows too; else there is none."""
    X, Y, X_test = make_data()
    Y[:, 3] = 1 - Y[:, 0]
    model = _fitted(estimator, X, Y)
    if not hasattr(model, "predict_proba"):
        assert hasattr(model, "decision_function")
        return
    for rows in (X, X_test, 100 * X_test, 1 - 100 * X_test, np.zeros_like(X_test)):
        scores = model.predict_proba(rows)
        assert scores.min() >= 0
        assert scores.max() <= 1


def check_type_of_decisions(estimator: Any) -> None:
    """Decisions are int64 whatever the type of Y, so that differences of predictions do not wrap around."""
    X, Y, X_test = make_data()
    for kind in (np.uint8, np.int32, bool, float):
        model = _fitted(estimator, X, Y.astype(kind))
        decisions = model.predict(X_test)
        assert decisions.dtype == model.predict_with_scores(X_test)[1].dtype == np.int64
        assert set(np.unique(decisions - (1 - decisions))) <= {-1, 1}


def check_label_permutation(estimator: Any) -> None:
    """Another order of the labels gives the same scores in that order."""
    X, Y, X_test = make_data()
    order = np.array([3, 2, 0, 1])
    scores, decisions = _fitted(estimator, X, Y).predict_with_scores(X_test)
    _assert_same(
        _fitted(estimator, X, Y[:, order]).predict_with_scores(X_test), (scores[:, order], decisions[:, order])
    )


def check_training_permutation(estimator: Any) -> None:
    """Another order of the training rows gives the same scores."""
    X, Y, X_test = make_data()
    order = np.random.default_rng(2).permutation(len(X))
    _assert_same(
        _fitted(estimator, X[order], Y[order]).predict_with_scores(X_test),
        _fitted(estimator, X, Y).predict_with_scores(X_test),
        atol=1e-6,  # iterative solvers take another path to the same minimum
    )


def check_test_permutation(estimator: Any) -> None:
    """A row's scores do not depend on the other rows."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    scores, decisions = model.predict_with_scores(X_test)
    _assert_same(model.predict_with_scores(X_test[::-1]), (scores[::-1], decisions[::-1]))
    _assert_same(model.predict_with_scores(X_test[3:4]), (scores[3:4], decisions[3:4]))


def check_never_set_label(estimator: Any) -> None:
    """Labels without a training positive are never assigned, and tie exactly."""
    X, Y, X_test = make_data()
    Y[:, [0, 2]] = 0
    scores, decisions = _fitted(estimator, X, Y).predict_with_scores(X_test)
    assert np.isfinite(scores).all()
    assert not decisions[:, [0, 2]].any()
    np.testing.assert_array_equal(scores[:, 0], scores[:, 2])


def check_always_set_label(estimator: Any) -> None:
    """A label of every training row is always assigned."""
    X, Y, X_test = make_data()
    Y[:, 1] = 1
    scores, decisions = _fitted(estimator, X, Y).predict_with_scores(X_test)
    assert np.isfinite(scores).all()
    assert decisions[:, 1].all()


def check_rows_without_label(estimator: Any) -> None:
    """Many rows without any label, and no row with one, are training data like any other."""
    X, Y, X_test = make_data()
    Y[::3] = 0
    assert np.isfinite(_fitted(estimator, X, Y).predict_with_scores(X_test)[0]).all()
    scores, decisions = _fitted(estimator, X, np.zeros_like(Y)).predict_with_scores(X_test)
    assert np.isfinite(scores).all()
    assert not decisions.any()


def check_single_label(estimator: Any) -> None:
    """Y may have one column."""
    X, Y, X_test = make_data()
    scores, decisions = _fitted(estimator, X, Y[:, :1]).predict_with_scores(X_test)
    assert scores.shape == decisions.shape == (len(X_test), 1)


def check_two_classes(estimator: Any) -> None:
    """A one-dimensional y of two classes is a label matrix of one column, with scikit-learn's shapes and classes."""
    X, Y, X_test = make_data()
    names = np.array(["no", "yes"])
    scores, decisions = _fitted(estimator, X, Y[:, :1]).predict_with_scores(X_test)
    model = _fitted(estimator, X, names[Y[:, 0]])
    _assert_same(model.predict_with_scores(X_test), (scores, decisions), atol=0)
    assert model.classes_.tolist() == names.tolist()
    assert model.predict(X_test).tolist() == names[decisions[:, 0]].tolist()
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X_test)
        assert probabilities.shape == (len(X_test), 2)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-15)
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(model.decision_function(X_test) >= 0, decisions[:, 0])
    model.fit(X, Y)
    assert model.classes_.shape == (Y.shape[1], 2)
    assert model.predict(X_test).shape == (len(X_test), Y.shape[1])


def check_names(estimator: Any) -> None:
    """Feature and label names of data frames are kept, checked, given back in frames, and forgotten by the next fit."""
    X, Y, X_test = make_data()
    features, labels = [f"f{j}" for j in range(X.shape[1])], ["sun", "rain", "wind", "fog"]
    rows = [f"row {i}" for i in range(len(X_test))]
    frame, test = pd.DataFrame(X, columns=features), pd.DataFrame(X_test, index=rows, columns=features)
    model = _fitted(estimator, frame, pd.DataFrame(Y, columns=labels))
    assert model.feature_names_in_.tolist() == features
    assert model.label_names_.tolist() == labels
    for scores in (False, True):
        made = model.predict_frame(test, scores=scores)
        assert made.columns.tolist() == labels
        assert made.index.tolist() == rows
        np.testing.assert_array_equal(made, model.predict_with_scores(test)[0 if scores else 1])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(test[features[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(test.rename(columns={"f0": "other"}))
    model.fit(X, Y)
    assert not hasattr(model, "label_names_")
    assert not hasattr(model, "feature_names_in_")
    assert model.predict_frame(X_test).columns.tolist() == ["label0", "label1", "label2", "label3"]
    assert model.predict_frame(X_test).index.tolist() == list(range(len(X_test)))


def check_sparse_input(estimator: Any) -> None:
    """Sparse X of any format, unsorted too, gives what dense X gives; else it is refused clearly."""
    X, Y, X_test = make_data()
    X, X_test = np.where(X > 0.5, X, 0), np.where(X_test > 0.5, X_test, 0)
    if not get_tags(estimator).input_tags.sparse:
        with pytest.raises(TypeError, match=r"(?i)sparse"):
            _fitted(estimator, sp.csr_matrix(X), Y)
        return
    expected = _fitted(estimator, X, Y).predict_with_scores(X_test)
    unsorted = sp.csr_array(X)
    for row in range(len(X)):
        part = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    for given in (sp.csr_matrix(X), sp.csr_array(X), sp.csc_array(X), sp.coo_array(X), unsorted):
        _assert_same(_fitted(estimator, given, Y).predict_with_scores(sp.csr_array(X_test)), expected)
    np.testing.assert_array_equal(unsorted.toarray(), X)
    assert not np.all(np.diff(unsorted.indices[: unsorted.indptr[1]]) > 0), "the caller's matrix was sorted"


def check_label_types(estimator: Any) -> None:
    """Y as list, booleans, floats, uint8, data frame or sparse matrix means the same."""
    X, Y, X_test = make_data()
    expected = _fitted(estimator, X, Y).predict_with_scores(X_test)
    kinds: list[Any] = [Y.tolist(), Y.astype(bool), Y.astype(float), Y.astype(np.uint8), np.asfortranarray(Y)]
    kinds += [pd.DataFrame(Y), sp.csr_array(Y), sp.csc_matrix(Y.astype(bool))]
    for given in kinds:
        _assert_same(_fitted(estimator, X, given).predict_with_scores(X_test), expected, atol=0)


def check_inputs_untouched(estimator: Any) -> None:
    """Fitting and predicting change nothing of the caller's, and work on read-only arrays."""
    X, Y, X_test = make_data()
    before = [a.copy() for a in (X, Y, X_test)]
    for array in (X, Y, X_test):
        array.setflags(write=False)
    _fitted(estimator, X, Y).predict_with_scores(X_test)
    for array, copy in zip((X, Y, X_test), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def check_model_keeps_own_data(estimator: Any) -> None:
    """What the caller does to X and Y after fitting does not change the model."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    expected = model.predict_with_scores(X_test)
    Y[:] = 1 - Y
    _assert_same(model.predict_with_scores(X_test), expected, atol=0)


def check_params(estimator: Any) -> None:
    """Cloning keeps the arguments, fitting does not change them."""
    X, Y, _ = make_data()
    model = clone(estimator)
    before = joblib.hash({k: repr(v) for k, v in model.get_params().items()})
    assert before == joblib.hash({k: repr(v) for k, v in clone(model).get_params().items()})
    model.fit(X, Y)
    assert before == joblib.hash({k: repr(v) for k, v in model.get_params().items()})


def check_repeatable(estimator: Any) -> None:
    """Equal seeds give equal results, whatever was drawn from NumPy's global generator; refitting forgets."""
    X, Y, X_test = make_data()
    expected = _fitted(estimator, X, Y).predict_with_scores(X_test)
    np.random.seed(12345)  # noqa: NPY002 (a method that reads the global generator shall be caught)
    model = _fitted(estimator, X, Y)
    _assert_same(model.predict_with_scores(X_test), expected, atol=0)
    other_X, other_Y, _ = make_data(seed=5, q=2)
    model.fit(other_X, other_Y)
    assert model.predict(X_test).shape[1] == 2
    _assert_same(model.fit(X, Y).predict_with_scores(X_test), expected, atol=0)


def check_n_jobs(estimator: Any) -> None:
    """The number of workers does not change the result."""
    if "n_jobs" not in estimator.get_params():
        return
    X, Y, X_test = make_data()
    results = [_fitted(clone(estimator).set_params(n_jobs=jobs), X, Y).predict_with_scores(X_test) for jobs in (1, 2)]
    _assert_same(*results, atol=0)


def check_pickle(estimator: Any) -> None:
    """A fitted model survives pickling."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    copy = pickle.loads(pickle.dumps(model))
    _assert_same(copy.predict_with_scores(X_test), model.predict_with_scores(X_test), atol=0)


def check_wrong_input(estimator: Any) -> None:
    """Mistakes are refused with a message that names them."""
    X, Y, X_test = make_data()
    model = _fitted(estimator, X, Y)
    with pytest.raises(ValueError, match="features"):
        model.predict_with_scores(X_test[:, :-1])
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
    if not estimator._accepts_missing_labels:
        with pytest.raises(ValueError, match="NaN"):
            _fitted(estimator, X, np.where(Y == 1, np.nan, 0.0))
    with pytest.raises(ValueError, match="NaN"):
        _fitted(estimator, np.where(X > 0.9, np.nan, X), Y)


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
ALL_CHECKS: list[Callable[[Any], None]] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_") and callable(check)
]
