"""Extreme learning machines with a closed form, Nystroem's kernel machine, and the radial basis function network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone

from helpers.batches import assert_exact, batches_of, make_rows
from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.elm.elastic_net_kernel_elm import ElasticNetKernelELM
from multilab.methods.elm.elm import ELM, hidden_output
from multilab.methods.elm.kernel_elm import KernelELM
from multilab.methods.elm.nystroem_kernel_elm import NystroemKernelELM
from multilab.methods.elm.relm import RELM
from multilab.methods.kernels import kernel_matrix
from multilab.methods.neighbours.ml_rbf import MLRBF


def sigmoids(model: ELM, X: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-(X @ model.weights_ + model.bias_)))


@pytest.mark.parametrize("n_hidden", [5, 40, 200])
def test_elm_is_the_pseudo_inverse(n_hidden: int) -> None:
    X, Y, X_test = make_data(seed=1)
    model = ELM(n_hidden=n_hidden, random_state=3).fit(X, Y)
    H = sigmoids(model, X)
    np.testing.assert_allclose(hidden_output(sp.csr_array(X), model.weights_, model.bias_), H, rtol=1e-13)
    inverse = np.linalg.pinv(H, rcond=max(H.shape) * np.finfo(float).eps)
    expected = sigmoids(model, X_test) @ (inverse @ (2.0 * Y - 1.0))
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_elm_of_deficient_rank_takes_the_smallest_weights() -> None:
    X, Y, _ = make_data(seed=1)
    X = np.repeat(X[:20], 2, axis=0)  # rank at most 20 of 40 rows
    model = ELM(n_hidden=60, random_state=0).fit(X, Y[:40])
    H, targets = sigmoids(model, X), 2.0 * Y[:40] - 1.0
    coef = model.coef_[:, model.column_]
    assert np.abs(H.T @ (targets - H @ coef)).max() < 1e-6
    row_space = np.linalg.svd(H)[2][: np.linalg.matrix_rank(H)]
    np.testing.assert_allclose(row_space.T @ (row_space @ coef), coef, rtol=0, atol=1e-6 * np.abs(coef).max())


def test_hidden_layers_are_seeded_and_bounded() -> None:
    X, Y, X_test = make_data()
    first, same, other = (ELM(n_hidden=30, random_state=seed).fit(X, Y) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.decision_function(X_test), same.decision_function(X_test))
    assert not np.array_equal(first.weights_, other.weights_)
    wide = ELM(n_hidden=300, weight_range=5.0, random_state=0).fit(X, Y)
    assert 4.9 < np.abs(wide.weights_).max() <= 5.0
    assert 0.9 < np.abs(first.weights_).max() <= 1.0


@pytest.mark.parametrize("n_hidden", [10, 59, 60, 61, 150])
def test_both_forms_of_relm_are_equal(n_hidden: int) -> None:
    X, Y, X_test = make_data(seed=2)
    C = 7.0
    model = RELM(n_hidden=n_hidden, C=C, random_state=0).fit(X, Y)
    H, targets = sigmoids(model, X), 2.0 * Y - 1.0
    primal = np.linalg.solve(np.eye(n_hidden) / C + H.T @ H, H.T @ targets)
    dual = H.T @ np.linalg.solve(np.eye(len(X)) / C + H @ H.T, targets)
    for form in (primal, dual):
        np.testing.assert_allclose(model.coef_[:, model.column_], form, rtol=0, atol=1e-9)
        np.testing.assert_allclose(model.decision_function(X_test), sigmoids(model, X_test) @ form, rtol=0, atol=1e-9)


def test_relm_approaches_elm_as_its_ridge_vanishes() -> None:
    X, Y, X_test = make_data(seed=2)
    scores = ELM(n_hidden=8, random_state=0).fit(X, Y).decision_function(X_test)
    close = RELM(n_hidden=8, C=1e10, random_state=0).fit(X, Y).decision_function(X_test)
    far = RELM(n_hidden=8, C=1.0, random_state=0).fit(X, Y).decision_function(X_test)
    np.testing.assert_allclose(close, scores, rtol=0, atol=1e-4)
    assert np.abs(far - scores).max() > 1e-2


@pytest.mark.parametrize(
    "model",
    [
        ELM(25, random_state=0),
        RELM(25, random_state=0),
        NystroemKernelELM(20, random_state=0),
        MLRBF(0.1, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_equal_labels_tie_bit_by_bit(model) -> None:
    rng = np.random.default_rng(5)
    X, X_test = rng.uniform(size=(53, 7)), rng.uniform(size=(31, 7))
    Y = (rng.random((53, 21)) < 0.3).astype(int)
    Y[:, [0, 8, 20]] = 0
    Y[:, 13] = Y[:, 2]
    scores = model.fit(X, Y).decision_function(X_test)
    for left, right in ((0, 8), (0, 20), (13, 2)):
        np.testing.assert_array_equal(scores[:, left], scores[:, right])
    assert (scores[:, 0] < 0).all()


def test_nystroem_with_all_rows_is_the_kernel_machine() -> None:
    X, Y, X_test = make_data(seed=3)
    exact = KernelELM(gamma=0.7, C=5.0).fit(X, Y)
    approximate = NystroemKernelELM(n_components=1000, gamma=0.7, C=5.0, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(approximate.landmarks_, np.arange(len(X)))
    np.testing.assert_allclose(
        approximate.decision_function(X_test), exact.decision_function(X_test), rtol=0, atol=1e-7
    )


def test_nystroem_is_ridge_regression_on_its_approximate_kernel(monkeypatch) -> None:
    from multilab.methods.elm import nystroem_kernel_elm

    monkeypatch.setattr(nystroem_kernel_elm, "_ROWS", 7)  # many blocks, the last one short
    X, Y, X_test = make_data(seed=3)
    model = NystroemKernelELM(n_components=15, gamma=0.7, C=5.0, random_state=0).fit(X, Y)
    Z = X[model.landmarks_]
    assert len(Z) == 15
    middle = np.linalg.inv(kernel_matrix(Z, gamma=0.7))
    left, right = kernel_matrix(X, Z, gamma=0.7), kernel_matrix(X_test, Z, gamma=0.7)
    dual = np.linalg.solve(left @ middle @ left.T + np.eye(len(X)) / 5.0, 2.0 * Y - 1.0)
    np.testing.assert_allclose(model.decision_function(X_test), right @ middle @ left.T @ dual, rtol=0, atol=1e-6)


def test_nystroem_on_repeated_rows() -> None:
    X, Y, X_test = make_data(seed=3)
    X, Y = np.repeat(X[:10], 6, axis=0), np.repeat(Y[:10], 6, axis=0)
    approximate = NystroemKernelELM(n_components=60, gamma=0.7, C=5.0).fit(X, Y)
    exact = KernelELM(gamma=0.7, C=5.0).fit(X, Y)
    np.testing.assert_allclose(
        approximate.decision_function(X_test), exact.decision_function(X_test), rtol=0, atol=1e-7
    )


def test_ml_rbf_is_least_squares_on_its_centres() -> None:
    X, Y, X_test = make_data(seed=4)
    model = MLRBF(ratio=0.15, mu=0.8, random_state=0).fit(X, Y)
    assert len(model.centres_) == sum(int(np.ceil(0.15 * positives)) for positives in Y.sum(axis=0))
    assert model.width_ == pytest.approx(0.8 * pdist(model.centres_).mean())

    def basis(rows: np.ndarray) -> np.ndarray:
        functions = np.exp(-cdist(rows, model.centres_, "sqeuclidean") / (2 * model.width_**2))
        return np.hstack([np.ones((len(rows), 1)), functions])

    coef = np.linalg.lstsq(basis(X), 2.0 * Y - 1.0, rcond=None)[0]
    np.testing.assert_allclose(model.decision_function(X_test), basis(X_test) @ coef, rtol=0, atol=1e-7)


def test_ml_rbf_with_one_centre_per_label_takes_the_means() -> None:
    X, Y, _ = make_data(seed=4)
    model = MLRBF(random_state=0).fit(X, Y)
    means = np.array([X[column == 1].mean(axis=0) for column in Y.T])
    np.testing.assert_allclose(np.sort(model.centres_, axis=0), np.sort(means, axis=0), atol=1e-14)


def test_ml_rbf_degenerate_labels() -> None:
    X, Y, X_test = make_data(seed=4)
    Y[:, [0, 2]] = 0
    model = MLRBF(ratio=0.1, random_state=0).fit(X, Y)
    assert len(model.centres_) == sum(int(np.ceil(0.1 * positives)) for positives in Y[:, [1, 3]].sum(axis=0))
    np.testing.assert_allclose(model.decision_function(X_test)[:, [0, 2]], -1.0, atol=1e-8)
    nothing = MLRBF(random_state=0).fit(X, np.zeros_like(Y))  # the constant alone
    assert nothing.centres_.shape == (0, X.shape[1])
    assert nothing.width_ == 1.0
    np.testing.assert_allclose(nothing.decision_function(sp.csr_array(X_test)), -1.0, atol=1e-12)
    one = MLRBF(random_state=0).fit(X, Y[:, [1]])  # one centre: no distance between two
    assert one.width_ == 1.0
    same = MLRBF(ratio=1.0, random_state=0).fit(np.ones((6, 2)), np.tile([0, 1], 3).reshape(-1, 1))
    assert same.width_ == 1.0
    assert np.isfinite(same.decision_function(np.zeros((2, 2)))).all()


def test_wrong_arguments() -> None:
    X, Y, _ = make_data()
    for wrong, word in (
        (ELM(n_hidden=0), "n_hidden=0"),
        (ELM(weight_range=0.0), "weight_range=0"),
        (RELM(C=0.0), "C=0"),
        (NystroemKernelELM(n_components=0), "n_components=0"),
        (NystroemKernelELM(C=-1.0), "C=-1"),
        (MLRBF(ratio=0.0), "ratio=0"),
        (MLRBF(mu=0.0), "mu=0"),
    ):
        with pytest.raises(MethodError, match=word):
            wrong.fit(X, Y)


BATCHED = {
    "elm": ELM(n_hidden=40, random_state=3),
    "elm, deficient": ELM(n_hidden=60, weight_range=1e-3, random_state=3),
    "elm, more units than rows": ELM(n_hidden=350, random_state=3),
    "relm": RELM(n_hidden=40, C=5.0, random_state=3),
    "relm, more units than rows": RELM(n_hidden=350, random_state=3),
    "nystroem": NystroemKernelELM(n_components=50, gamma="median", C=10.0, random_state=3),
    "nystroem, all rows": NystroemKernelELM(n_components=2000, random_state=3),
}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_of_rows_give_the_fit_to_all_rows(name: str, sparse: bool) -> None:
    X, Y = make_rows()
    assert_exact(BATCHED[name], sp.csr_array(X) if sparse else X, Y)


def test_nystroem_landmarks_of_batches_are_those_of_all_rows() -> None:
    model, (X, Y) = BATCHED["nystroem"], make_rows()
    batches = batches_of(X, Y)
    found = clone(model).fit_batches(batches)
    np.testing.assert_array_equal(found.landmarks_, clone(model).fit(X, Y).landmarks_)
    np.testing.assert_array_equal(found.coef_, clone(model).fit_batches(batches, n_rows=300).coef_)
    with pytest.raises(MethodError, match="n_rows=900, but the batches have 300 rows"):
        clone(model).fit_batches(batches, n_rows=900)
    with pytest.raises(MethodError, match="several passes"):
        clone(model).fit_batches(iter(batches))


@pytest.mark.data
def test_nystroem_comes_close_on_yeast(benchmark_data: Path) -> None:
    from multilab.datasets import load

    data = load("yeast")
    train, test = data.splits["official"]
    X, Y, X_test = data.X[train], data.Y[train], data.X[test]
    exact = KernelELM(gamma=0.1, C=10.0).fit(X, Y).decision_function(X_test)
    few, many = (
        NystroemKernelELM(r, gamma=0.1, C=10.0, random_state=0).fit(X, Y).decision_function(X_test) for r in (100, 1200)
    )
    assert np.abs(many - exact).mean() < 0.25 * np.abs(few - exact).mean()
    assert ((many >= 0) == (exact >= 0)).mean() > 0.99


@pytest.mark.parametrize(
    "model",
    [
        ELM(25, random_state=0),
        RELM(25, random_state=0),
        KernelELM(),
        NystroemKernelELM(20, random_state=0),
        ElasticNetKernelELM(lam=0.5, alpha=0.5),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_threshold_moves_decisions_and_not_scores(model) -> None:
    X, Y, X_test = make_data(seed=2)
    first = clone(model).fit(X, Y)
    scores, at_zero = first.decision_function(X_test), first.predict(X_test)
    np.testing.assert_array_equal(at_zero, scores >= 0)
    threshold = float(np.median(scores))  # one of the scores may be on it
    moved = clone(model).set_params(threshold=threshold).fit(X, Y)
    again, decisions = moved.decision_function(X_test), moved.predict(X_test)
    np.testing.assert_array_equal(again, scores)
    np.testing.assert_array_equal(decisions, scores >= threshold)
    assert (decisions != at_zero).any()
    if hasattr(moved, "predict_proba"):
        np.testing.assert_array_equal(moved.predict_proba(X_test) >= 0.5, decisions.astype(bool))
    for wrong in (np.nan, np.inf):
        with pytest.raises(MethodError, match="threshold="):
            clone(model).set_params(threshold=wrong).fit(X, Y)


@pytest.mark.parametrize("make", [ELM, RELM])
def test_the_biases_may_have_a_range_of_their_own(make) -> None:
    X, Y, _ = make_data()
    usual, positive = (make(n_hidden=300, random_state=0, bias_range=b).fit(X, Y) for b in (None, (0.0, 1.0)))
    np.testing.assert_array_equal(usual.weights_, positive.weights_)
    assert usual.bias_.min() < -0.9 < 0 <= positive.bias_.min() < 0.1 < 0.9 < positive.bias_.max() <= 1.0
    same = make(n_hidden=300, random_state=0, bias_range=[-1.0, 1.0]).fit(X, Y)
    np.testing.assert_array_equal(same.bias_, usual.bias_)
    for wrong in ((1.0, 0.0), (0.0,), (0.0, 0.0)):
        with pytest.raises(MethodError, match="bias_range="):
            make(bias_range=wrong).fit(X, Y)
