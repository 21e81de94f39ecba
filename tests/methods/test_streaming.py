"""Learning from batches of rows gives what a fit to all rows gives."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier

from multilab.methods import ELM, MLNB, RELM, BinaryRelevance, MLkNN, NativeMultiLabel, NystroemKernelELM
from multilab.methods.base import MethodError
from multilab.methods.streaming import fit_batches

N, D, Q = 300, 9, 4


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.random((N, D)) * [1, 1, 1, 1, 1, 1, 1, 1, 0] + 0.5  # the last column is constant
    scores = X @ random.normal(size=(D, Q))
    Y = (scores > np.median(scores, axis=0)).astype(int)
    Y[:, 3] = 0
    Y[5, 3] = 1  # a class of one row
    return X, Y


def batches_of(X, Y, sizes=(1, 150, 7, 142)):
    stops = np.cumsum(sizes)
    return [(X[stop - size : stop], Y[stop - size : stop]) for size, stop in zip(sizes, stops, strict=True)]


EXACT = {
    "elm": ELM(n_hidden=40, random_state=3),
    "elm, deficient": ELM(n_hidden=60, weight_range=1e-3, random_state=3),
    "elm, more units than rows": ELM(n_hidden=350, random_state=3),
    "relm": RELM(n_hidden=40, C=5.0, random_state=3),
    "relm, more units than rows": RELM(n_hidden=350, random_state=3),
    "nystroem": NystroemKernelELM(n_components=50, gamma="median", C=10.0, random_state=3),
    "nystroem, all rows": NystroemKernelELM(n_components=2000, random_state=3),
    "naive Bayes": MLNB(components=None, generations=0),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("sparse", [False, True])
def test_exact_methods_equal_a_fit_to_all_rows(data, name, sparse):
    X, Y = data
    rows = sp.csr_array(X) if sparse else X
    whole = clone(EXACT[name]).fit(rows, Y)
    model = fit_batches(clone(EXACT[name]), batches_of(rows, Y))
    expected = whole.decision_function(rows)
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    if hasattr(whole, "landmarks_"):
        np.testing.assert_array_equal(model.landmarks_, whole.landmarks_)


def test_means_far_from_zero_lose_no_digits(data):
    X, Y = data
    X = X * 1e-3 + 1e3
    whole = MLNB(components=None, generations=0).fit(X, Y)
    model = fit_batches(clone(whole), batches_of(X, Y))
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-6, atol=1e-7)


def test_stochastic_gradients_are_those_of_partial_fit_on_the_same_batches(data):
    X, Y = data
    Y = np.column_stack([Y[:, :2], np.ones(N, dtype=int)])  # the last label is constant
    base = SGDClassifier(loss="log_loss", random_state=1, average=True)
    model = fit_batches(BinaryRelevance(base), batches_of(X, Y), epochs=2)
    for j in range(2):
        single = clone(base)
        for part, labels in [*batches_of(X, Y)] * 2:
            single.partial_fit(part, labels[:, j], classes=[0, 1])
        np.testing.assert_array_equal(model.predict_proba(X)[:, j], single.predict_proba(X)[:, 1])
    assert (model.predict_proba(X)[:, 2] == 1.0).all()


def test_nystroem_machines_check_the_number_of_rows_that_they_are_told(data):
    model, batches = NystroemKernelELM(n_components=50, random_state=3), batches_of(*data)
    told = fit_batches(clone(model), batches, n_rows=N)
    np.testing.assert_array_equal(told.coef_, fit_batches(clone(model), batches).coef_)
    with pytest.raises(MethodError, match="n_rows=900, but the batches have 300 rows"):
        fit_batches(model, batches, n_rows=900)


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_xgboost_learns_through_its_external_memory(data, strategy):
    xgboost = pytest.importorskip("xgboost", reason="the extra arena is not installed")
    X, Y = data
    Y = np.column_stack([Y[:, :3], np.ones(N, dtype=int)])  # the last label is constant
    base = xgboost.XGBClassifier(n_estimators=5, multi_strategy=strategy, tree_method="hist", n_jobs=1)
    whole = NativeMultiLabel(base, random_state=1).fit(X, Y)
    model = fit_batches(NativeMultiLabel(base, random_state=1), batches_of(X, Y))
    # the sketch of so few rows keeps all values
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    single = fit_batches(NativeMultiLabel(base, random_state=1), batches_of(X, Y[:, [0, 3]]))
    assert single.varying_.tolist() == [0]
    assert (single.predict(X) == Y[:, [0, 3]]).mean() > 0.9
    with pytest.raises(MethodError, match="several passes"):
        fit_batches(model, iter(batches_of(X, Y)))


REFUSED = {
    "no such method": (MLkNN(), "MLkNN cannot learn from batches of rows: take BinaryRelevance"),
    "another library": (NativeMultiLabel(), "NativeMultiLabel cannot learn from batches of rows"),
    "no partial_fit": (BinaryRelevance(LogisticRegression()), "LogisticRegression has no partial_fit"),
    "calibration": (BinaryRelevance(SGDClassifier(), calibration="sigmoid"), "needs all rows for its calibration"),
    "weights": (RELM(label_weight="balanced"), "leave out label_weight"),
    "search": (MLNB(), "set components=None and generations=0"),
    "an argument": (RELM(C=-1.0), "C=-1.0: it must be positive"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_learn_from_batches_is_refused(data, name):
    model, message = REFUSED[name]
    with pytest.raises(MethodError, match=message):
        fit_batches(model, batches_of(*data))


def test_wrong_batches_are_refused(data):
    X, Y = data
    with pytest.raises(MethodError, match="no row to learn from"):
        fit_batches(RELM(), [])
    with pytest.raises(MethodError, match="several passes"):
        fit_batches(NystroemKernelELM(), iter(batches_of(X, Y)))
    with pytest.raises(MethodError, match="a batch has labels of shape"):
        fit_batches(RELM(), [(X, Y), (X, Y[:, :2])])
    with pytest.raises(ValueError, match="8 features, but RELM is expecting 9"):
        fit_batches(RELM(), [(X, Y), (X[:, :8], Y)])
    with pytest.raises(MethodError, match="missing labels"):
        fit_batches(RELM(), [(X, np.where(Y == 1, np.nan, 0.0))])
    with pytest.raises(MethodError, match="not one-dimensional"):
        fit_batches(RELM(), [(X, Y[:, 0])])
