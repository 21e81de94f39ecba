"""Kernel MDDM as it is defined: a generalised eigenproblem of the size of the training part."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.sparse import csr_array

from multilab.methods.base import MethodError
from multilab.methods.reduction.inverse_free import largest_pairs
from multilab.methods.reduction.kernel_reducer import ONE_DIMENSION, KernelReducer
from multilab.methods.reduction.label_problem import centred_labels, label_directions, sign_of_largest
from multilab.methods.reduction.training_kernel import equal_rows

__all__ = ["KernelMDDM"]

_JITTER = 1e-14  # of K K
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
    K K + 1e-12 (trace / n) I stands for K K, which equal rows make singular ("dense", "factored"). The sign of a column
    is such that the entry of largest magnitude of its covariances with the labels is positive, as in `LSKernelMDDM`.

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
        values, G = solvers[self.solver](K, Q, count)
        kept = values > _ZERO * values[0]
        self.eigenvalues_, G = values[kept], G[:, kept]
        return basis @ (G * sign_of_largest(Q.T @ (K @ G)))

    def _dense(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        F, n = K @ Q, len(K)
        values, G = eigh(F @ F.T, _square(K), subset_by_index=[n - count, n - 1])
        return values[::-1], G[:, ::-1]

    def _factored(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        factor = cholesky(_square(K), lower=True, overwrite_a=True, check_finite=False)
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


def _square(K: np.ndarray) -> np.ndarray:
    """Return K K + 1e-14 (trace / n) I."""
    M = K @ K
    M[np.diag_indices_from(M)] += _JITTER * np.trace(M) / len(M)
    return M
