"""Solvers behind the kernel reducers, against others and against what they must reach."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import lsqr as scipy_lsqr

from multilab.methods.reduction._inverse_free import largest_pairs
from multilab.methods.reduction._stiefel import orthonormal_regression, polar_factor
from multilab.methods.reduction.equations import (
    GroupedEquations,
    KernelSpectrum,
    conjugate_gradients,
    equations,
    lsqr,
    lsqr_iterates,
)
from multilab.methods.reduction.label_problem import group_means, label_directions


def definite(n: int = 40, seed: int = 0, least: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return (U * np.geomspace(least, 10.0, n)) @ U.T


@pytest.mark.parametrize("damp", [0.0, 0.8])
def test_every_lsqr_iterate_is_that_of_scipy(damp):
    K, B = definite(), np.random.default_rng(1).normal(size=(40, 3))
    iterates = lsqr_iterates(lambda V: K @ V, B, damp)
    for step in range(1, 13):
        P, _ = next(iterates)
        theirs = [scipy_lsqr(K, b, damp=damp, atol=0, btol=0, conlim=0, iter_lim=step)[0] for b in B.T]
        np.testing.assert_allclose(P, np.stack(theirs, axis=1), rtol=0, atol=1e-9)


def test_lsqr_stops_at_the_tolerance_and_not_before():
    K, B = definite(), np.random.default_rng(1).normal(size=(40, 3))
    P, steps = lsqr(lambda V: K @ V, B, 1e-6, 500)
    worst = np.max(np.linalg.norm(K @ P - B, axis=0) / np.linalg.norm(B, axis=0))
    assert worst <= 1.01e-6
    before, _ = lsqr(lambda V: K @ V, B, 0.0, steps - 1)
    assert np.max(np.linalg.norm(K @ before - B, axis=0) / np.linalg.norm(B, axis=0)) > 1e-6
    M = np.diag([1.0, 2.0, 0.0])  # the last equation cannot be met
    P, steps = lsqr(lambda V: M @ V, np.ones((3, 1)), 1e-10, 50)
    assert steps <= 3
    np.testing.assert_allclose(P[:, 0], [1.0, 0.5, 0.0], atol=1e-9)


def test_columns_of_zeros_stay_zero():
    K, B = definite(), np.random.default_rng(1).normal(size=(40, 2)) * [1.0, 0.0]
    for P, _ in (lsqr(lambda V: K @ V, B, 1e-10, 300), conjugate_gradients(lambda V: K @ V, B, 1e-10, 300)):
        assert not P[:, 1].any()
        np.testing.assert_allclose(K @ P, B, atol=1e-8)


def test_conjugate_gradients_take_no_more_steps_than_allowed():
    K, B = definite(), np.random.default_rng(1).normal(size=(40, 3))
    assert conjugate_gradients(lambda V: K @ V, B, 0.0, 7)[1] == 7
    P, steps = conjugate_gradients(lambda V: K @ V, B, 1e-9, 500)
    assert steps < 200
    assert np.max(np.linalg.norm(K @ P - B, axis=0) / np.linalg.norm(B, axis=0)) <= 1.01e-9


def test_equations_of_a_kernel_that_only_an_eigendecomposition_solves():
    groups, K = np.arange(40), definite(least=1e-14)
    with pytest.raises(LinAlgError):
        GroupedEquations(K, groups)
    spectrum = equations(K, groups)
    assert isinstance(spectrum, KernelSpectrum)
    B = np.random.default_rng(1).normal(size=(40, 2))
    np.testing.assert_allclose(K @ spectrum.solve(B), spectrum.project(B), atol=1e-4)
    np.testing.assert_allclose(spectrum.project(spectrum.project(B)), spectrum.project(B), atol=1e-12)
    assert isinstance(equations(definite(), groups), GroupedEquations)


def test_the_spectrum_gives_every_ridge():
    K, B = definite(), np.random.default_rng(1).normal(size=(40, 2))
    spectrum = KernelSpectrum(K)
    for eta in (0.01, 5.0):
        eye = eta * np.eye(40)
        np.testing.assert_allclose(spectrum.ridge(B, eta), np.linalg.solve(K @ K + eye, K @ B), atol=1e-9)
        np.testing.assert_allclose(spectrum.ridge(B, eta, "rkhs"), np.linalg.solve(K + eye, B), atol=1e-9)


def test_pairs_found_by_products_are_those_of_lapack():
    rng = np.random.default_rng(0)
    M, F = definite(seed=3), rng.normal(size=(40, 6))
    A = F @ F.T
    pairs = largest_pairs(lambda x: (M @ x, A @ x), lambda x: x, rng.normal(size=(40, 4)), 1e-11, 300)
    values, vectors = eigh(A, M, subset_by_index=[36, 39])
    np.testing.assert_allclose(pairs.values, values[::-1], rtol=1e-8)
    np.testing.assert_allclose(pairs.vectors.T @ M @ pairs.vectors, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(np.abs(np.diag(pairs.vectors.T @ M @ vectors[:, ::-1])), 1.0, rtol=1e-6)
    assert pairs.residuals.max() < 1e-9
    near = np.linalg.inv(M)
    helped = largest_pairs(lambda x: (M @ x, A @ x), lambda x: near @ x, rng.normal(size=(40, 4)), 1e-11, 300)
    assert helped.steps < pairs.steps


def test_the_search_on_orthonormal_columns():
    rng = np.random.default_rng(0)
    w, B = np.geomspace(0.1, 5.0, 40), rng.normal(size=(40, 3))
    starts = [polar_factor(rng.normal(size=(40, 3))) for _ in range(3)]
    solutions = [orthonormal_regression(w, B, start, 1e-6, 3000) for start in starts]
    for start, one in zip(starts, solutions, strict=True):
        np.testing.assert_allclose(one.P.T @ one.P, np.eye(3), rtol=0, atol=1e-12)
        assert one.objective_path[0] == pytest.approx(np.sum((w[:, None] * start - B) ** 2))
        assert one.objective_path.min() == pytest.approx(np.sum((w[:, None] * one.P - B) ** 2))
        assert one.gradient_norm <= 1e-6 * one.first_gradient_norm
        G = 2 * w[:, None] * (w[:, None] * one.P - B)
        assert np.linalg.norm(G - one.P @ (G.T @ one.P)) == pytest.approx(one.gradient_norm, abs=1e-10)
    best = min(one.objective_path.min() for one in solutions)
    assert all(one.objective_path.min() < 1.02 * best for one in solutions)


def test_lemma_1():
    Y = (np.random.default_rng(0).uniform(size=(30, 4)) < 0.4).astype(float)
    Q = Y - Y.mean(axis=0)
    directions = label_directions(Q, None)
    np.testing.assert_allclose(Q @ Q.T @ directions.B, directions.B * directions.eigenvalues, atol=1e-12)
    np.testing.assert_allclose(directions.B.T @ directions.B, np.eye(4), atol=1e-12)
    assert (np.diff(directions.eigenvalues) <= 0).all()
    assert label_directions(Q, 2).B.shape == (30, 2)


def test_means_of_groups():
    groups, Q = np.array([0, 1, 0, 0, 2, 1]), np.full((6, 2), 0.1)
    np.testing.assert_array_equal(group_means(Q, groups), Q[:3])
    Q = np.random.default_rng(0).normal(size=(6, 2))
    expected = [Q[groups == group].mean(axis=0) for group in range(3)]
    np.testing.assert_allclose(group_means(Q, groups), expected, rtol=0, atol=1e-15)
