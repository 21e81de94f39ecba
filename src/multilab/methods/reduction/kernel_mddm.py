"""Kernel MDDM as it is defined: a generalised eigenproblem of the size of the training part."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dlange, dpocon
from scipy.sparse import csr_array

from multilab.methods.base import MethodError
from multilab.methods.reduction.exact_equations import KernelSpectrum
from multilab.methods.reduction.inverse_free import largest_pairs
from multilab.methods.reduction.kernel_reducer import ONE_DIMENSION, KernelReducer
from multilab.methods.reduction.label_problem import centred_labels, label_directions, sign_of_largest
from multilab.methods.reduction.training_kernel import equal_rows

__all__ = ["KernelMDDM"]

_JITTER = 1e-14  # of K K
_CLEAR = 10.0  # how far above it the least eigenvalue must be
_NEAR = 1e-8  # of K, in its preconditioner
_ZERO = 1e-10


class KernelMDDM(KernelReducer):
    """Multi-label dimensionality reduction by dependence maximisation with a kernel (kMDDM).

    The leading solutions of K (H L H) K p = lambda K K p, L = Y Y^T, with p^T K K p = 1: eq. (1) of the LSkMDDM paper.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimensions, at most the rank of the centred label matrix, which None takes.
    gamma, gamma_factor, center_kernel
        See `LSKernelMDDM`.
    solver : {"dense", "factored", "ifp"}, default="dense"
        "dense" forms both matrices and leaves them to LAPACK. "factored" keeps the left one as F F^T with F = K H Y of
        few columns: one Cholesky factor of the right one and singular values of n x c. "ifp" is the inverse-free Krylov
        method (products with K alone).
    tol : float, default=1e-10
        Of "ifp", on the relative residual of a pair.
    max_iter : int, default=200
        Of "ifp", outer steps per pair.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        P.
    eigenvalues_ : ndarray of shape (r,)
        lambda, falling.
    residual_ : float
        Largest relative residual of the pairs of "ifp", 0 of the others.
    gamma_, n_features_in_

    Notes
    -----
    The problem is solved for the coefficients that are the same on equal rows. K K + 1e-14 (trace / n) I stands for
    K K; where that is singular all the same, "dense" and "factored" solve the problem on the eigenvectors of K with
    eigenvalues above 1e-10 of the largest. The condition of K K bounds what accuracy there is; least squares needs that
    of K only.

    The sign of a column is such that the entry of largest magnitude of its covariances with the labels is positive, as
    in `LSKernelMDDM`.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multilabel dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.
    """

    _small: ClassVar[dict[str, Any]] = {"n_components": 3}
    _expected_failed_checks: ClassVar[dict[str, str]] = ONE_DIMENSION

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        center_kernel: bool = False,
        solver: Literal["dense", "factored", "ifp"] = "dense",
        tol: float = 1e-10,
        max_iter: int = 200,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.center_kernel = center_kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        solvers = {"dense": self._dense, "factored": self._factored, "ifp": self._inverse_free}
        if self.solver not in solvers:
            raise MethodError(f"solver={self.solver!r}: give 'dense', 'factored' or 'ifp'")
        Q, groups = centred_labels(Y), equal_rows(X)
        sizes = np.bincount(groups)
        # an orthonormal basis of the coefficients that are the same on equal rows; the others lie in the kernel of K
        basis = csr_array((1.0 / np.sqrt(sizes[groups]), (np.arange(len(K)), groups)))
        K, Q = basis.T @ (basis.T @ K).T, basis.T @ Q
        count = len(label_directions(Q, self.n_components).eigenvalues)
        try:
            values, G = solvers[self.solver](K, Q, count)
        except LinAlgError:
            values, G = _on_range(K, Q, count)
        kept = values > _ZERO * values[0]
        self.eigenvalues_, G = values[kept], G[:, kept]
        return basis @ (G * sign_of_largest(Q.T @ (K @ G)))

    def _dense(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        factor, F, n = _factor_of_square(K), K @ Q, len(K)
        half = solve_triangular(factor, F @ F.T, lower=True, check_finite=False)
        whitened = solve_triangular(factor, half.T, lower=True, check_finite=False)
        values, G = eigh(whitened, subset_by_index=[n - count, n - 1], check_finite=False)
        return values[::-1], solve_triangular(factor, G[:, ::-1], lower=True, trans="T")

    def _factored(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        factor = _factor_of_square(K)
        left, singular, _ = np.linalg.svd(solve_triangular(factor, K @ Q, lower=True), full_matrices=False)
        return singular[:count] ** 2, solve_triangular(factor, left[:, :count], lower=True, trans="T")

    def _inverse_free(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        def products(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            once = K @ x
            twice = K @ np.stack([once, Q @ (Q.T @ once)], axis=1)
            return twice[:, 0], twice[:, 1]

        near = K.copy()
        near[np.diag_indices_from(near)] += _NEAR * np.trace(K) / len(K)
        factor = cho_factor(near, lower=True, overwrite_a=True, check_finite=False)

        def precondition(x: np.ndarray) -> np.ndarray:
            return cho_solve(factor, cho_solve(factor, x, check_finite=False), check_finite=False)

        starts = np.random.default_rng(0).normal(size=(len(K), count))
        pairs = largest_pairs(products, precondition, starts, self.tol, self.max_iter)
        self.residual_ = float(pairs.residuals.max())
        return pairs.values, pairs.vectors


def _on_range(K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the solutions among the eigenvectors of K that are not those of 0, where K K is definite."""
    spectrum = KernelSpectrum(K)
    w, U = spectrum.w[spectrum.kept], spectrum.U[:, spectrum.kept]
    left, singular, _ = np.linalg.svd(U.T @ Q, full_matrices=False)
    return singular[:count] ** 2, U @ (left[:, :count] / w[:, None])


def _factor_of_square(K: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of K K + 1e-14 (trace / n) I.

    Raises
    ------
    LinAlgError
        If what is added is of the size of the smallest eigenvalue, so that it would decide the solution.
    """
    M = K @ K
    added = _JITTER * np.trace(M) / len(M)
    M[np.diag_indices_from(M)] += added
    norm = dlange("1", M.T)
    factor = cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    if dpocon(factor, norm, uplo="L")[0] * norm < _CLEAR * added:
        raise LinAlgError("the square of the kernel matrix is singular")
    return factor
