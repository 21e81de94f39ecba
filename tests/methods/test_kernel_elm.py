"""Kernel extreme learning machine and the kernels: closed forms, ties, the printed rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.elm.kernel_elm import KernelELM
from multilab.methods.kernels import kernel_matrix, median_gamma, resolve_gamma, squared_distances


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_kernels_are_those_of_scikit_learn(kernel: str) -> None:
    X, _, X_test = make_data()
    options = {} if kernel == "linear" else {"gamma": 0.3}
    options |= {"degree": 2} if kernel == "poly" else {}
    options |= {"coef0": 0.7} if kernel in ("poly", "sigmoid") else {}
    expected = pairwise_kernels(X_test, X, metric=kernel, **options)
    for left, right in ((X_test, X), (sp.csr_array(X_test), sp.csr_array(X))):
        np.testing.assert_allclose(kernel_matrix(left, right, kernel=kernel, **options), expected, atol=1e-12)
    with pytest.raises(MethodError, match="kernel='cosine'"):
        kernel_matrix(X, kernel="cosine")


def test_widths() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    squared = squared_distances(X)
    np.testing.assert_array_equal(np.diag(squared), 0)
    np.testing.assert_allclose(squared, [[0, 1, 9], [1, 0, 4], [9, 4, 0]], atol=1e-14)
    assert median_gamma(squared) == pytest.approx(1 / (2 * 2.0**2))  # distances 1, 2, 3
    assert median_gamma(np.zeros((3, 3))) == median_gamma(np.zeros((1, 1))) == 1.0
    assert resolve_gamma("median", X) == median_gamma(squared)
    assert resolve_gamma("scale", X) == pytest.approx(1 / X.var())
    assert resolve_gamma("scale", sp.csr_array(X)) == pytest.approx(1 / X.var())
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0
    assert resolve_gamma("auto", np.ones((3, 4))) == 0.25
    for wrong in ("wide", 0.0, -1.0):
        with pytest.raises(MethodError, match="gamma="):
            resolve_gamma(wrong, X)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_scores_are_kernel_ridge_on_signs(kernel: str) -> None:
    X, Y, X_test = make_data(seed=2)
    gamma = 0.02 if kernel == "sigmoid" else 0.5
    model = KernelELM(kernel=kernel, gamma=gamma, C=4.0, degree=2, coef0=0.5).fit(X, Y)
    ridge = KernelRidge(kernel=kernel, gamma=gamma, alpha=1 / 4.0, degree=2, coef0=0.5).fit(X, 2.0 * Y - 1)
    expected = ridge.predict(X_test)
    np.testing.assert_allclose(model.decision_function(X_test), expected, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X_test), expected >= 0)


def test_training_residuals_satisfy_the_normal_equations() -> None:
    X, Y, _ = make_data(seed=3)
    model = KernelELM(gamma=0.5, C=10.0).fit(X, Y)
    # Omega beta + beta / C = Y: the residual at the training rows is beta / C
    # (scores are rounded so that ties are ties, so the sum itself is taken here)
    residual = (2.0 * Y - 1) - kernel_matrix(X, kernel="rbf", gamma=0.5) @ model.coef_[:, model.column_]
    np.testing.assert_allclose(residual, model.coef_[:, model.column_] / 10.0, rtol=0, atol=1e-10)


def test_probabilities_are_ordered_as_the_scores() -> None:
    X, Y, X_test = make_data(seed=4)
    model = KernelELM().fit(X, Y)
    scores, probabilities = model.decision_function(X_test), model.predict_proba(X_test)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_array_equal(np.argsort(probabilities, axis=1), np.argsort(scores, axis=1))
    one_pass, decisions = model.predict_with_scores(X_test)
    np.testing.assert_array_equal(one_pass, probabilities)
    np.testing.assert_array_equal(probabilities >= 0.5, decisions.astype(bool))


def test_equal_labels_tie_bit_by_bit() -> None:
    rng = np.random.default_rng(5)
    X, X_test = rng.normal(size=(53, 7)), rng.normal(size=(31, 7))
    Y = (rng.random((53, 21)) < 0.3).astype(int)
    Y[:, [0, 8, 20]] = 0
    Y[:, 13] = Y[:, 2]
    model = KernelELM(gamma=0.1, C=3.0).fit(X, Y)
    assert model.coef_.shape == (53, len(np.unique(Y, axis=1).T))  # one solution per distinct column
    scores = model.decision_function(X_test)
    for left, right in ((0, 8), (0, 20), (13, 2)):
        np.testing.assert_array_equal(scores[:, left], scores[:, right])


def test_wrong_arguments() -> None:
    X, Y, _ = make_data()
    for wrong, word in (
        ({"C": 0.0}, "C=0.0"),
        ({"gamma": -1}, "gamma=-1"),
        ({"kernel": "cosine"}, "kernel="),
    ):
        with pytest.raises(MethodError, match=word):
            KernelELM(**wrong).fit(X, Y)
    # K(x, x) = -1 for every pair, and 1/C = 1: the matrix is singular for one instance
    with pytest.raises(MethodError, match="singular"):
        KernelELM(kernel="poly", degree=1, gamma=1.0, coef0=-2.0, C=1.0).fit([[1.0]], [[1]])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "gamma", "C", "printed"),
    [
        ("yeast", 0.1, 10.0, ".1941 .2366 6.4264 .1702 .7618"),
        ("scene", 0.5, 2.0, ".0920 .2358 .4833 .0767 .8604"),
        ("yahoo-arts", 0.1, 3.0, ".0543 .4740 5.3377 .1358 .6143"),
    ],
)
def test_rows_of_the_paper(benchmark_data: Path, name: str, gamma: float, C: float, printed: str) -> None:
    from multilab.datasets import load
    from multilab.metrics import score_all

    data = load(name)
    train, test = data.splits["official"]
    model = KernelELM(gamma=gamma, C=C).fit(data.X[train], data.Y[train])
    scores, decisions = model.predict_with_scores(data.X[test])
    values = score_all(data.Y[test], scores, decisions, conventions="matlab")
    five = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision")
    assert [f"{values[m]:.4f}" for m in five] == [f"{float(p):.4f}" for p in printed.split()]
