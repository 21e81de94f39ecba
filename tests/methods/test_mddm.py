"""Linear MDDM, as a projection and as a ranking: against the problems it solves, written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eig, eigh

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.reduction.mddm import MDDM, dependence_directions
from multilab.methods.selection.mddm_selector import MDDMSelector


def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70, 9)) @ rng.normal(size=(9, 9)) + 5
    return X, (X[:, :4] + rng.normal(size=(70, 4)) > [5, 4, 6, 7]).astype(np.uint8)


def dense_matrices(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S and the scatter matrix, by the n x n centring matrix."""
    H = np.eye(len(X)) - 1 / len(X)
    return X.T @ H @ Y @ Y.T @ H @ X, X.T @ H @ X


@pytest.mark.parametrize(("variant", "mu"), [("proj", 0.5), ("spc", 0.5), ("spc", 0.9), ("spc", 1.0)])
def test_directions_solve_the_eigenproblem(variant, mu):
    X, Y = problem()
    S, scatter = dense_matrices(X, Y.astype(float))
    B = np.eye(9) if variant == "proj" else mu * scatter + (1 - mu) * np.eye(9)
    expected = eigh(S, B, eigvals_only=True)[::-1][:4]
    for given in (X, sp.csr_array(X)):
        eigenvalues, P = dependence_directions(given, Y, variant, mu)
        np.testing.assert_allclose(eigenvalues, expected, rtol=1e-8)
        np.testing.assert_allclose(P.T @ B @ P, np.eye(4), rtol=0, atol=1e-8)
        np.testing.assert_allclose(S @ P, B @ P * eigenvalues, rtol=0, atol=1e-8 * np.abs(S).max())
        kept = MDDM(variant, mu).fit(given, Y)
        np.testing.assert_allclose(kept.components_ @ S @ kept.components_.T, np.diag(expected), rtol=0, atol=1e-6)


def test_dependence_is_that_of_kernel_matrices():
    X, Y = problem()
    H = np.eye(len(X)) - 1 / len(X)
    hsic = np.trace(H @ X @ X.T @ H @ Y.astype(float) @ Y.T)
    assert dependence_directions(X, Y, "proj")[0].sum() == pytest.approx(hsic, rel=1e-10)


def test_spc_with_mu_0_is_proj():
    X, Y = problem()
    np.testing.assert_allclose(
        MDDM("spc", 0.0).fit_transform(X, Y), MDDM("proj").fit_transform(X, Y), rtol=0, atol=1e-9
    )


def test_proj_ranks_by_the_dependence_of_single_features():
    X, Y = problem()
    S, _ = dense_matrices(X, Y.astype(float))
    np.testing.assert_allclose(MDDMSelector(variant="proj").fit(X, Y).scores_, S.diagonal(), rtol=1e-10)
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    eigenvalues, P = dependence_directions(X, Y @ turned, "proj")
    np.testing.assert_allclose(P**2 @ eigenvalues, S.diagonal(), rtol=1e-10)


def test_spc_ranks_by_ridge_coefficients():
    X, Y = problem()
    for mu in (0.5, 0.9):
        centred = X - X.mean(axis=0)
        ridge = centred.T @ centred + (1 - mu) / mu * np.eye(9)
        coefficients = np.linalg.solve(ridge, centred.T @ (Y - Y.mean(axis=0))) / mu
        scores = MDDMSelector(mu=mu).fit(X, Y).scores_
        np.testing.assert_allclose(scores, (coefficients**2).sum(axis=1), rtol=1e-8)


def test_the_order_of_the_eigenvalues_says_nothing_of_features():
    """A solver that does not sort returns the positive eigenvalues first; rounding decides the order of the others."""
    X, Y = problem()
    S, scatter = dense_matrices(X, Y.astype(float))
    unsorted = np.real(eig(S, 0.5 * scatter + 0.5 * np.eye(9), right=False))
    assert set(np.argsort(-unsorted)[:4]) == {0, 1, 2, 3}
    rankings = [
        MDDMSelector(variant=variant, rank_by="eigenvalues", random_state=seed).fit(X, Y).ranking_
        for variant in ("spc", "proj")
        for seed in (0, 0, 1)
    ]
    for ranking in rankings:
        np.testing.assert_array_equal(ranking[:4], [1, 2, 3, 4])
        assert sorted(ranking[4:]) == [5, 6, 7, 8, 9]
    np.testing.assert_array_equal(rankings[0], rankings[1])
    assert len(set(map(tuple, rankings))) == 4


def test_a_constant_feature_scores_nothing():
    X, Y = problem()
    X[:, 3] = 7.0
    for variant in ("proj", "spc"):
        scores = MDDMSelector(variant=variant).fit(X, Y).scores_
        assert scores[3] == pytest.approx(0.0, abs=1e-12 * scores.max())


def test_how_many_directions():
    X, Y = problem()
    eigenvalues = MDDM().fit(X, Y).eigenvalues_
    for n_components, count in ((None, 4), (2, 2), (99, 4), (1.0, 4), (eigenvalues[:2].sum() / eigenvalues.sum(), 2)):
        assert MDDM(n_components=n_components).fit_transform(X, Y).shape == (70, count)
    one = MDDM().fit(X, np.repeat(Y[:, :1], 3, axis=1))
    assert len(one.eigenvalues_) == 1  # the same label three times
    np.testing.assert_array_equal(MDDM().fit(X, 0 * Y).eigenvalues_, [0.0])


def test_new_rows_are_centred_by_the_training_rows():
    X, Y = problem()
    model = MDDM().fit(X[:50], Y[:50])
    expected = (X[50:] - X[:50].mean(axis=0)) @ model.components_.T
    np.testing.assert_allclose(model.transform(X[50:]), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.transform(sp.csr_array(X[50:])), expected, rtol=0, atol=1e-10)


def test_wrong_arguments():
    X, Y, _ = make_data()
    for wrong, word in (
        (MDDM("linear"), "variant="),
        (MDDM(mu=1.5), "mu=1.5"),
        (MDDM(n_components=0), "n_components=0"),
        (MDDMSelector(mu=-1), "mu=-1"),
        (MDDMSelector(rank_by="noise"), "rank_by="),
    ):
        with pytest.raises(MethodError, match=word):
            wrong.fit(X, Y)
    with pytest.raises(MethodError, match="smaller mu"):
        MDDM(mu=1.0).fit(np.column_stack([X, np.ones(len(X))]), Y)
