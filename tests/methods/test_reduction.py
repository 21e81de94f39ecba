"""Kernel reducers: the identities between them, their limits, and what they do with equal rows and missing rank."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as ScikitLearnKernelPCA

from multilab.methods import KLSCCA, KernelMDDM, KernelPCA, LSKernelMDDM, MLkNN, NystroemLSKernelMDDM, OLSKernelMDDM
from multilab.methods.base import MethodError
from multilab.methods.kernels import kernel_matrix, median_gamma, squared_distances
from multilab.methods.reduction._stiefel import global_orthonormal_regression
from multilab.methods.reduction.equations import lsqr
from multilab.methods.reduction.kernel_mddm import _root_of_constraint
from multilab.methods.reduction.kernel_reducer import equal_rows, kernel_width, training_kernel
from multilab.methods.reduction.label_problem import centred_labels, label_directions
from multilab.metrics import micro_f1


def sample(n: int = 120, d: int = 30, q: int = 5, seed: int = 0, equal: int = 0) -> tuple[np.ndarray, ...]:
    """Return X, Y, X_test; the last ``equal`` training rows repeat the first ones, with labels of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, d))
    Y = (X @ rng.normal(size=(d, q)) + rng.normal(size=(n + 40, q)) > 2.0).astype(np.uint8)
    if equal:
        X[n - equal : n] = X[:equal]
    return X[:n], Y[:n], X[n:]


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def kernel_and_targets(X, Y):
    K = kernel_matrix(X, gamma=median_gamma(squared_distances(X)))
    return K, label_directions(centred_labels(Y), None).B


@pytest.mark.parametrize("solver", ["dense", "factored", "ifp"])
@pytest.mark.parametrize("equal", [0, 15])
def test_the_eigenproblem_and_least_squares_are_the_same(solver, equal):
    """Theorem 1; with equal rows after the projection of the labels on the range of K."""
    X, Y, X_test = sample(equal=equal)
    theirs = KernelMDDM(solver=solver).fit(X, Y)
    ours = LSKernelMDDM().fit(X, Y)
    np.testing.assert_allclose(theirs.eigenvalues_, ours.eigenvalues_, rtol=1e-7 if solver == "ifp" else 1e-12)
    assert relative(theirs.transform(X_test), ours.transform(X_test)) < (1e-4 if solver == "ifp" else 1e-11)
    K = kernel_matrix(X, gamma=ours.gamma_)
    np.testing.assert_allclose(theirs.coef_.T @ K @ K @ theirs.coef_, np.eye(5), atol=1e-6)


def test_coefficients_solve_the_eigenproblem():
    X, Y, _ = sample(equal=10)
    model = LSKernelMDDM().fit(X, Y)
    K = kernel_matrix(X, gamma=model.gamma_)
    Q = centred_labels(Y)
    left, right = K @ Q @ (Q.T @ (K @ model.coef_)), K @ (K @ model.coef_) * model.eigenvalues_
    assert relative(left, right) < 1e-8


def test_without_the_projection_equal_rows_break_the_equivalence():
    X, Y, X_test = sample(equal=15)
    exact, literal = LSKernelMDDM().fit(X, Y), LSKernelMDDM(range_projection=False).fit(X, Y)
    assert exact.residual_ < 1e-10
    assert literal.residual_ > 0.05
    assert relative(literal.transform(X_test), exact.transform(X_test)) > 0.01
    X, Y, X_test = sample()
    same = [LSKernelMDDM(range_projection=choice).fit(X, Y).transform(X_test) for choice in (True, False)]
    assert relative(*same) < 1e-12


def test_equal_rows_get_the_mean_of_their_targets():
    """The solution of least norm of a singular K, as by the pseudo-inverse."""
    X, Y, _ = sample(equal=15)
    model = LSKernelMDDM(range_projection=False)
    model.fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(K, rcond=1e-10, hermitian=True) @ B, rtol=0, atol=1e-6)
    np.testing.assert_allclose(K[0] @ model.coef_, (B[0] + B[-15]) / 2, rtol=0, atol=1e-10)


def test_a_definite_kernel_makes_the_training_embedding_a_matter_of_labels_alone():
    X, Y, _ = sample()
    Z = LSKernelMDDM().fit_transform(X, Y)
    model = LSKernelMDDM().fit(X, Y)
    np.testing.assert_allclose(model.transform(X), Z, rtol=0, atol=1e-9)
    assert model.residual_ < 1e-10
    assert len(np.unique(Z, axis=0)) == len(np.unique(Y, axis=0))
    np.testing.assert_allclose(Z.T @ Z, np.eye(5), atol=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_klscca_is_lskmddm_turned(eta):
    """Equal distances between embedded rows at equal penalties, so ML-kNN gives the same."""
    X, Y, X_test = sample()
    embedded = []
    for reducer in (LSKernelMDDM(eta=eta), KLSCCA(eta=eta)):
        Z, Z_test = reducer.fit_transform(X, Y), reducer.transform(X_test)
        embedded.append((pdist(Z), cdist(Z_test, Z), MLkNN(k=5).fit(Z, Y).predict_proba(Z_test)))
    for one, other in zip(*embedded, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    V = label_directions(centred_labels(Y), None).V
    turned = LSKernelMDDM(eta=eta).fit(X, Y).coef_ @ V.T
    assert relative(KLSCCA(eta=eta).fit(X, Y).coef_, turned) < 1e-10


@pytest.mark.parametrize("solver", ["dense", "factored"])
def test_a_kernel_whose_square_is_not_definite(solver):
    X, Y, X_test = sample(d=1)
    theirs, ours = KernelMDDM(solver=solver).fit(X, Y), LSKernelMDDM().fit(X, Y)
    np.testing.assert_allclose(theirs.eigenvalues_, ours.eigenvalues_, rtol=1e-6)
    assert relative(theirs.transform(X_test), ours.transform(X_test)) < 1e-4


@pytest.mark.parametrize(("equal", "mu"), [(0, 0.5), (15, 0.5), (0, 0.0)])  # with mu = 0 equal rows make M singular
def test_the_released_constraint(mu, equal):
    """K (H L H) K p = lambda (mu K K + (1 - mu) K) p by each solver and, restricted to distinct rows, by SciPy."""
    X, Y, X_test = sample(equal=equal)
    models = {solver: KernelMDDM(solver=solver, mu=mu).fit(X, Y) for solver in ("dense", "factored", "ifp")}
    exact = models["factored"]
    K, Q = kernel_matrix(X, gamma=exact.gamma_), centred_labels(Y)
    M = mu * K @ K + (1 - mu) * K
    left = K @ Q @ (Q.T @ (K @ exact.coef_))
    assert relative(M @ exact.coef_ * exact.eigenvalues_, left) < 1e-10
    np.testing.assert_allclose(exact.coef_.T @ M @ exact.coef_, np.eye(5), atol=1e-10)
    assert equal or exact.eigenvalues_[0] == pytest.approx(eigh(K @ Q @ Q.T @ K, M, eigvals_only=True)[-1], rel=1e-8)
    for solver, model in models.items():
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
        near = 1e-4 if solver == "ifp" else 1e-6
        assert relative(model.transform(X_test), exact.transform(X_test)) < near


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0])
def test_the_dense_solver_whitens_the_constraint(mu):
    """By itself: where there is no root, the solver falls back to the eigenvectors of K, which hides why."""
    X, Y, _ = sample(n=30)
    K, Q = kernel_matrix(X, gamma=1.0), centred_labels(Y)
    root, half = _root_of_constraint(K, Q, mu)
    assert relative(root.T @ root, mu * K @ K + (1 - mu) * K) < 1e-12
    assert relative(root.T @ half, K @ Q) < 1e-12


def solved_with_60_digits(K: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the solution of K P = B by Gaussian elimination in decimal numbers."""
    with localcontext() as context:
        context.prec = 60
        rows = [[Decimal(value) for value in row] for row in np.hstack([K, B]).tolist()]
        n = len(rows)
        for i in range(n):
            for below in rows[i + 1 :]:  # K is positive definite: no pivoting
                share = below[i] / rows[i][i]
                below[i:] = [x - share * y for x, y in zip(below[i:], rows[i][i:], strict=True)]
        P = [row[n:] for row in rows]
        for i in reversed(range(n)):
            for j in range(B.shape[1]):
                known = sum((rows[i][k] * P[k][j] for k in range(i + 1, n)), Decimal(0))
                P[i][j] = (P[i][j] - known) / rows[i][i]
    return np.array(P, dtype=float)


@pytest.mark.parametrize("solver", ["dense", "factored"])
@pytest.mark.parametrize(("gamma", "condition"), [(0.006, 8e6), (0.0012, 1e9)])
def test_the_square_of_an_ill_conditioned_kernel_is_not_formed(solver, gamma, condition):
    """Eigenvalues and eigenvectors of H L H, and K p = b with sixty digits: the solution by Theorem 1."""
    X, Y, X_test = sample(n=40, d=6, q=4)
    K, K_test = kernel_matrix(X, gamma=gamma), kernel_matrix(X_test, X, gamma=gamma)
    assert condition / 2 < np.linalg.cond(K) < condition * 2
    Q = centred_labels(Y)
    values, B = (part[..., :-5:-1] for part in np.linalg.eigh(Q @ Q.T))
    P = solved_with_60_digits(K, B)
    model = KernelMDDM(solver=solver, gamma=gamma).fit(X, Y)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-12)
    turned = np.sign(np.sum(model.transform(X) * B, axis=0))
    assert relative(model.transform(X) * turned, B) < 1e-14 * condition
    assert relative(model.transform(X_test) * turned, K_test @ P) < 1e-14 * condition


def test_the_released_constraint_is_a_ridge():
    """With mu = 1/2 its directions span those of kernel ridge regression with a ridge of 1."""
    X, Y, _ = sample()
    theirs, ours = KernelMDDM(mu=0.5).fit(X, Y), LSKernelMDDM(eta=1.0, penalty="rkhs").fit(X, Y)
    assert subspace_angles(theirs.coef_, ours.coef_).max() < 1e-6
    assert subspace_angles(KernelMDDM().fit(X, Y).coef_, ours.coef_).max() > 0.1
    flat = KernelMDDM(mu=0.5, solver="dense").fit(*sample(d=1)[:2])
    narrow = KernelMDDM(mu=0.5, solver="factored").fit(*sample(d=1)[:2])
    np.testing.assert_allclose(flat.eigenvalues_, narrow.eigenvalues_, rtol=1e-6)
    with pytest.raises(MethodError, match="mu=2"):
        KernelMDDM(mu=2).fit(X, Y)


def test_klscca_reaches_every_canonical_correlation():
    X, Y, _ = sample()
    Z = KLSCCA().fit_transform(X, Y)
    assert subspace_angles(Z, centred_labels(Y)).max() < 1e-6


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
@pytest.mark.parametrize("center", [False, True])
def test_the_closed_form_of_the_penalty(penalty, center):
    X, Y, X_test = sample(equal=5)
    model = LSKernelMDDM(eta=0.7, penalty=penalty, center_kernel=center, range_projection=False).fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    H = np.eye(len(K)) - 1 / len(K)
    K_test = kernel_matrix(X_test, X, gamma=model.gamma_)
    if center:
        K_test = (K_test - K.mean(axis=0)) @ H
        K = H @ K @ H
    eye = np.eye(len(K))
    P = np.linalg.solve(K @ K + 0.7 * eye, K @ B) if penalty == "l2" else np.linalg.solve(K + 0.7 * eye, B)
    np.testing.assert_allclose(model.coef_, P, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.transform(X_test), K_test @ P, rtol=0, atol=1e-9)


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
def test_limits_of_the_penalty(penalty):
    X, Y, X_test = sample(equal=5)
    plain = LSKernelMDDM().fit(X, Y)
    weak = LSKernelMDDM(eta=1e-9, penalty=penalty).fit(X, Y)
    assert relative(weak.transform(X_test), plain.transform(X_test)) < 1e-3
    assert relative(LSKernelMDDM(eta=1e-3, penalty=penalty).fit(X, Y).transform(X_test), plain.transform(X_test)) > 1e-3
    strong = LSKernelMDDM(eta=1e12, penalty=penalty, range_projection=False).fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    assert relative(1e12 * strong.coef_, K @ B if penalty == "l2" else B) < 1e-6


@pytest.mark.parametrize("eta", [0.0, 0.5])
@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
@pytest.mark.parametrize("solver", ["cg", "lsqr"])
def test_iterative_solvers_reach_the_exact_solution(solver, eta, penalty):
    X, Y, X_test = sample(n=60, equal=5)
    exact = LSKernelMDDM(eta=eta, penalty=penalty).fit(X, Y)
    iterative = LSKernelMDDM(eta=eta, penalty=penalty, solver=solver, tol=1e-13, max_iter=3000).fit(X, Y)
    assert relative(iterative.transform(X_test), exact.transform(X_test)) < 1e-5
    assert 0 < iterative.n_iter_ < 3000


def test_few_lsqr_steps_are_another_method():
    X, Y, X_test = sample()
    exact = LSKernelMDDM().fit(X, Y)
    capped = LSKernelMDDM(solver="lsqr", max_iter=5).fit(X, Y)
    assert capped.n_iter_ == 5
    assert capped.residual_ > 0.3
    assert relative(capped.transform(X_test), exact.transform(X_test)) > 0.3


def test_reorthogonalised_lsqr_does_not_show_rounding_errors():
    """Perturbed by rounding, plain LSQR goes another way; reorthogonalised it solves K p = b in the Krylov space."""
    X, Y, _ = sample(d=2)
    K, B = kernel_and_targets(X, Y)
    noise = 1 + 1e-15 * np.random.default_rng(0).normal(size=K.shape)
    settings = {"tol": 0.0, "max_iter": 20}
    moved = {}
    for choice in (False, True):
        one, other = (lsqr(lambda V, M=M: M @ V, B, reorthogonalise=choice, **settings)[0] for M in (K, K * noise))
        moved[choice] = relative(K @ other, K @ one)
    assert moved[True] < 1e-9 < 1e-4 < moved[False]
    exact = LSKernelMDDM(solver="lsqr", max_iter=3).fit(X, Y).coef_
    np.testing.assert_allclose(LSKernelMDDM(solver="lsqr", max_iter=3, reorthogonalise=True).fit(X, Y).coef_, exact)


def test_the_penalty_of_the_best_micro_f1():
    X, Y, X_test = sample(d=6)
    etas = [1e-3, 0.1, 10.0]
    model = LSKernelMDDM(eta=etas, select_by="micro_f1", classifier=MLkNN(k=5)).fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    fold = np.arange(len(K)) % 3
    scores = np.zeros(3)
    for i, eta in enumerate(etas):
        for out in range(3):
            a, b = np.flatnonzero(fold != out), np.flatnonzero(fold == out)
            M = K[np.ix_(a, a)]
            P = np.linalg.solve(M @ M + eta * np.eye(len(a)), M @ B[a])
            predicted = MLkNN(k=5).fit(M @ P, Y[a]).predict(K[np.ix_(b, a)] @ P)
            scores[i] += micro_f1(Y[b], predicted)
    assert model.eta_ == etas[int(scores.argmax())]
    np.testing.assert_array_equal(model.transform(X_test), LSKernelMDDM(eta=model.eta_).fit(X, Y).transform(X_test))
    by_default = LSKernelMDDM(eta=etas, select_by="micro_f1").fit(X, Y)
    ten = LSKernelMDDM(eta=etas, select_by="micro_f1", classifier=MLkNN(k=10, tie_tol=1e-9)).fit(X, Y)
    assert by_default.eta_ == ten.eta_
    with pytest.raises(MethodError, match="select_by='accuracy'"):
        LSKernelMDDM(select_by="accuracy").fit(X, Y)


def test_the_chosen_penalty_is_the_best_on_rows_left_out():
    X, Y, X_test = sample(d=6)
    etas = [1e-3, 1.0, 1e3]
    model = LSKernelMDDM(eta=etas, cv=3).fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    fold = np.arange(len(K)) % 3
    errors = []
    for eta in etas:
        error = 0.0
        for out in range(3):
            a, b = np.flatnonzero(fold != out), np.flatnonzero(fold == out)
            M = K[np.ix_(a, a)]
            error += np.sum((K[np.ix_(b, a)] @ np.linalg.solve(M @ M + eta * np.eye(len(a)), M @ B[a]) - B[b]) ** 2)
        errors.append(error)
    assert model.eta_ == etas[int(np.argmin(errors))] == 1.0
    np.testing.assert_array_equal(model.transform(X_test), LSKernelMDDM(eta=1.0).fit(X, Y).transform(X_test))


def test_orthonormal_coefficients_by_the_search():
    X, Y, _ = sample()
    model = OLSKernelMDDM(solver="search", max_iter=1000, tol=1e-3).fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    np.testing.assert_allclose(model.coef_.T @ model.coef_, np.eye(5), rtol=0, atol=1e-12)
    assert model.objective_ == pytest.approx(np.sum((K @ model.coef_ - B) ** 2), rel=1e-10)
    assert model.gradient_norm_ <= 1e-2
    start = OLSKernelMDDM(solver="search", max_iter=0).fit(X, Y)
    assert start.gradient_norm_ == 1  # relative to itself
    assert model.objective_ < start.objective_
    assert start.n_iter_ == 0
    left, _, right = np.linalg.svd(LSKernelMDDM(eta=1.0).fit(X, Y).coef_, full_matrices=False)
    assert relative(start.coef_, left @ right) < 1e-8


def test_orthonormal_coefficients_with_the_global_minimum():
    X, Y, _ = sample()
    model = OLSKernelMDDM().fit(X, Y)
    K, B = kernel_and_targets(X, Y)
    P = model.coef_
    np.testing.assert_allclose(P.T @ P, np.eye(5), rtol=0, atol=1e-9)
    assert model.is_global_
    assert model.objective_ == pytest.approx(np.sum((K @ P - B) ** 2), rel=1e-10)
    # the multipliers of the constraint, P^T K (B - K P), are symmetric and positive definite: the certificate
    multipliers = P.T @ (K @ (B - K @ P))
    np.testing.assert_allclose(multipliers, multipliers.T, rtol=0, atol=1e-8 * np.abs(multipliers).max())
    assert np.linalg.eigvalsh(multipliers)[0] > 0
    np.testing.assert_allclose(K @ (B - K @ P), P @ multipliers, rtol=0, atol=1e-8 * np.abs(multipliers).max())
    search = OLSKernelMDDM(solver="search", max_iter=3000, tol=1e-6).fit(X, Y)
    assert model.objective_ <= search.objective_ <= model.objective_ * 1.01


def test_the_search_is_taken_where_the_global_minimum_is_not_certified():
    w, B = np.ones(6), np.eye(6, 2) * 0.5  # the unconstrained solution has singular values below 1
    assert global_orthonormal_regression(w, B) is None


def test_kernel_pca_is_that_of_scikit_learn():
    X, Y, X_test = sample()
    for n_components in (None, 20):  # by ARPACK, by the full decomposition
        model = KernelPCA(n_components)
        Z = model.fit_transform(X, Y)
        theirs = ScikitLearnKernelPCA(n_components or 5, kernel="rbf", gamma=model.gamma_, eigen_solver="dense").fit(X)
        np.testing.assert_allclose(model.transform(X_test), theirs.transform(X_test), rtol=0, atol=1e-8)
        np.testing.assert_allclose(Z.var(axis=0), model.eigenvalues_ / len(X), rtol=1e-8)


@pytest.mark.parametrize(
    "reducer", [KernelMDDM(), KernelPCA(), KLSCCA(), LSKernelMDDM(), LSKernelMDDM(eta=0.1), OLSKernelMDDM(max_iter=20)]
)
def test_embeddings_to_fewer_dimensions_are_those_of_fits(reducer):
    X, Y, X_test = sample()
    counts = [1, 2, 5]
    for count, (Z, Z_test) in zip(counts, reducer.embeddings(X, Y, X_test, counts), strict=True):
        alone = clone(reducer).set_params(n_components=count)
        np.testing.assert_allclose(Z, alone.fit_transform(X, Y), rtol=0, atol=1e-6)
        np.testing.assert_allclose(Z_test, alone.transform(X_test), rtol=0, atol=1e-6)


@pytest.mark.parametrize("reducer", [KernelMDDM(), LSKernelMDDM(), LSKernelMDDM(eta=1.0), OLSKernelMDDM(max_iter=20)])
def test_dimensions_end_with_the_rank_of_the_labels(reducer):
    X, Y, X_test = sample()
    Y[:, 1], Y[:, 2] = 1, Y[:, 0]  # a constant label and a copy
    assert reducer.fit(X, Y).transform(X_test).shape == (40, 3)
    assert len(reducer.eigenvalues_) == 3
    with pytest.raises(MethodError, match="no label varies"):
        reducer.fit(X, np.ones_like(Y))


def test_centring_changes_new_rows_only():
    X, Y, X_test = sample()
    plain, centred = LSKernelMDDM(), LSKernelMDDM(center_kernel=True)
    np.testing.assert_allclose(plain.fit_transform(X, Y), centred.fit_transform(X, Y), rtol=0, atol=1e-8)
    assert centred.residual_ < 1e-8
    assert relative(centred.transform(X_test), plain.transform(X_test)) > 1e-3
    assert relative(KernelMDDM(center_kernel=True).fit(X, Y).transform(X_test), centred.transform(X_test)) < 1e-4


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
def test_all_rows_as_landmarks_are_the_kernel_itself(penalty, monkeypatch):
    X, Y, X_test = sample()
    exact = LSKernelMDDM(eta=0.5, penalty=penalty).fit(X, Y)
    model = NystroemLSKernelMDDM(n_landmarks=500, eta=0.5, penalty=penalty)
    assert relative(model.fit(X, Y).transform(X_test), exact.transform(X_test)) < 1e-6
    assert model.residual_ == pytest.approx(exact.residual_, abs=1e-6)
    few = NystroemLSKernelMDDM(n_landmarks=60, eta=0.5, penalty=penalty, random_state=0).fit(X, Y)
    assert len(few.landmarks_) == len(few.coef_) == 60
    B = label_directions(centred_labels(Y), None).B
    assert few.residual_ == pytest.approx(relative(few.transform(X), B), abs=1e-10)
    assert 1e-3 < relative(few.transform(X_test), exact.transform(X_test)) < 1.0
    once = few.transform(X_test)
    monkeypatch.setattr("multilab.methods.reduction.kernel_reducer._BLOCK_ENTRIES", 1000)
    np.testing.assert_allclose(few.fit(X, Y).transform(X_test), once, rtol=0, atol=1e-8)


def test_kernel_width_and_equal_rows(monkeypatch):
    X, _, _ = sample(equal=3)
    X[5], X[6] = 0.0, -0.0
    groups = equal_rows(X)
    assert (groups[-3:] == groups[:3]).all()
    assert groups[5] == groups[6]
    assert groups.max() + 1 == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(equal_rows(sp.csr_array(X)), groups)
    for rows in (X, X[:-1], X[:2], X[:1]):
        K, width = training_kernel(rows, "median", 2.0)
        assert width == kernel_width("median", 2.0, rows) == 2 * median_gamma(squared_distances(rows))
        np.testing.assert_array_equal(K, kernel_matrix(rows, gamma=width))
    with pytest.raises(MethodError, match="gamma_factor"):
        kernel_width("median", 0.0, X)
    monkeypatch.setattr("multilab.methods.reduction.kernel_reducer._BLOCK_ENTRIES", 1000)
    np.testing.assert_allclose(training_kernel(X, 0.3)[0], kernel_matrix(X, gamma=0.3), rtol=0, atol=1e-14)


def test_blocks_of_new_rows_are_put_together(monkeypatch):
    X, Y, X_test = sample()
    model = LSKernelMDDM(eta=1.0).fit(X, Y)
    unblocked = model.transform(X_test)
    monkeypatch.setattr("multilab.methods.reduction.kernel_reducer._BLOCK_ENTRIES", 1000)
    np.testing.assert_allclose(model.transform(X_test), unblocked, rtol=0, atol=1e-12)


def test_a_data_frame_is_returned_where_requested():
    X, Y, X_test = sample()
    made = LSKernelMDDM().set_output(transform="pandas").fit(X, Y).transform(X_test)
    assert list(made.columns) == [f"lskernelmddm{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("reducer", "message"),
    [
        (LSKernelMDDM(solver="qr"), "'cholesky', 'cg' or 'lsqr'"),
        (LSKernelMDDM(penalty="l1"), "'l2' or 'rkhs'"),
        (LSKernelMDDM(eta=-1.0), "eta=-1.0"),
        (LSKernelMDDM(eta=[]), "eta="),
        (LSKernelMDDM(eta=[0.0, 1.0]), "positive numbers"),
        (LSKernelMDDM(eta=[0.1, 1.0], cv=1), "cv=1"),
        (LSKernelMDDM(n_components=0), "at least one dimension"),
        (KLSCCA(n_components=0), "at least one dimension"),
        (KernelPCA(n_components=0), "at least one dimension"),
        (KernelMDDM(solver="svd"), "'dense', 'factored' or 'ifp'"),
        (OLSKernelMDDM(eta=0.0), "eta=0.0"),
        (NystroemLSKernelMDDM(eta=0.0), "eta=0.0 must be positive"),
        (LSKernelMDDM(gamma=-1.0), "gamma=-1.0"),
    ],
)
def test_wrong_arguments_are_one_clear_line(reducer, message):
    X, Y, _ = sample(n=30)
    with pytest.raises(MethodError, match=message) as caught:
        reducer.fit(X, Y)
    assert "\n" not in str(caught.value)
