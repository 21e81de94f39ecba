"""Arrays of another namespace in, arrays of that namespace out; the numbers are those of NumPy."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from multilab.methods import (
    ELM,
    MDDM,
    BinaryRelevance,
    ElasticNetKernelELM,
    KernelELM,
    KernelPCA,
    MLkNN,
    NystroemKernelELM,
    all_estimators,
)
from multilab.methods._array_api import namespace_of, to_numpy

xp = pytest.importorskip("array_api_strict", reason="array-api-strict (extra dev) is not installed")

CLASSIFIERS = [
    MLkNN(k=3),
    KernelELM(),
    KernelELM(kernel="poly", threshold=0.1),
    NystroemKernelELM(n_components=20, random_state=0),
    ElasticNetKernelELM(),
    ELM(n_hidden=10, random_state=0),
    BinaryRelevance(calibration="sigmoid"),
    BinaryRelevance(LogisticRegression()),
]


def make_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    return X, (X @ rng.normal(size=(4, 3)) > 0).astype(np.uint8), rng.normal(size=(9, 4))


def assert_same(given, expected: np.ndarray) -> None:
    assert given.__array_namespace__() is xp.asarray([0]).__array_namespace__()
    assert given.dtype == (xp.float64 if expected.dtype == np.float64 else xp.int64)
    np.testing.assert_allclose(to_numpy(given), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_classifiers_return_arrays_of_the_given_namespace(model):
    X, Y, X_new = make_data()
    names = ("predict", "predict_proba", "decision_function")
    model.fit(X, Y)
    names = [name for name in names if hasattr(model, name)]
    expected = [getattr(model, name)(X_new) for name in names] + [*model.predict_with_scores(X_new)]
    best = model.predict_top_k(X_new, 2)
    for labels in (xp.asarray(Y), xp.asarray(Y.astype(float)), Y):
        model.fit(xp.asarray(X), labels)
        given = [getattr(model, name)(xp.asarray(X_new)) for name in names]
        given += model.predict_with_scores(xp.asarray(X_new))
        for one, other in zip(given, expected, strict=True):
            assert_same(one, other)
        for one, other in zip(model.predict_top_k(xp.asarray(X_new), 2), best, strict=True):
            assert_same(one, other)
    assert isinstance(model.predict(X_new), np.ndarray), "NumPy in, NumPy out, whatever the model was fitted on"
    np.testing.assert_array_equal(model.predict_sparse(xp.asarray(X_new)).toarray(), model.predict(X_new))


@pytest.mark.parametrize("kind", [KernelPCA, MDDM, *(k for k in all_estimators() if k.__name__ == "LSKernelMDDM")])
def test_reducers_return_arrays_of_the_given_namespace(kind):
    X, Y, X_new = make_data()
    expected = kind(n_components=2).fit(X, Y).transform(X_new)
    model = kind(n_components=2).fit(xp.asarray(X), xp.asarray(Y))
    assert_same(model.transform(xp.asarray(X_new)), expected)
    assert_same(
        kind(n_components=2).fit_transform(xp.asarray(X), xp.asarray(Y)), kind(n_components=2).fit_transform(X, Y)
    )


def test_unobserved_labels_and_the_mask_may_be_such_arrays():
    X, Y, X_new = make_data()
    mask = np.random.default_rng(1).random(Y.shape) < 0.8
    expected = KernelELM().fit(X, Y, y_mask=mask).predict_proba(X_new)
    assert_same(
        KernelELM().fit(xp.asarray(X), xp.asarray(Y), y_mask=xp.asarray(mask)).predict_proba(xp.asarray(X_new)),
        expected,
    )


def test_the_given_arrays_are_not_changed():
    X, Y, _ = make_data()
    given, labels = xp.asarray(X, copy=True), xp.asarray(Y, copy=True)
    for model in CLASSIFIERS:
        model.fit(given, labels).predict(given)
    np.testing.assert_array_equal(to_numpy(given), X)
    np.testing.assert_array_equal(to_numpy(labels), Y)


def test_other_inputs_have_no_namespace():
    for X in (np.ones(2), [[1.0]], None, "text"):
        assert namespace_of(X) is None
        assert to_numpy(X) is X
