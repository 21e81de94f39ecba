"""Kernel MDDM as defined: a generalised eigenproblem of the size of the training set."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dlange, dpocon
from scipy.sparse import csr_array

from multilab.methods.base import MethodError
from multilab.methods.reduction._exact_equations import KernelSpectrum
from multilab.methods.reduction._inverse_free import largest_pairs
from multilab.methods.reduction._kernel_reducer import KernelReducer
from multilab.methods.reduction._label_problem import centred_labels, label_directions, sign_of_largest
from multilab.methods.reduction._training_kernel import equal_rows

__all__ = ["KernelMDDM"]

_JITTER = 1e-14  # added to K K, relative to its mean diagonal
_CLEAR = 10.0  # the smallest eigenvalue of K K must exceed the jitter by this factor
_NEAR = 1e-8  # added to K in the preconditioner, relative to its mean diagonal
_ZERO = 1e-10  # eigenvalues up to this share of the largest count as 0


class KernelMDDM(KernelReducer):
    """Multi-label dimensionality reduction by dependence maximisation with a kernel (kMDDM).

    The columns of P are the leading solutions of K (H L H) K p = lambda K K p, eq. (1) of the LSkMDDM paper, with
    L = Y Y^T, H the centring matrix and p^T K K p = 1.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r, at most the rank of the centred label matrix; None takes that rank.
    gamma, gamma_factor, center_kernel
        See `LSKernelMDDM`.
    solver : {"dense", "factored", "ifp"}, default="dense"
        "dense" forms both matrices and solves the eigenproblem by LAPACK. "factored" uses that the left matrix is F F^T
        with F = K H Y, shape (n, c): a Cholesky factor of the right matrix and the singular values of an (n, c) matrix.
        "ifp" is the inverse-free preconditioned Krylov method (`largest_pairs`).
    tol : float, default=1e-10
        Upper bound of the relative residual of a pair, for "ifp".
    max_iter : int, default=200
        Maximum number of outer steps per pair, for "ifp".

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        Expansion coefficients P.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues lambda, descending.
    residual_ : float
        Largest relative residual of the pairs; set by "ifp" only.
    gamma_, n_features_in_

    Notes
    -----
    Deviations from the paper, because K is singular when training rows are equal: coefficients are restricted to be
    the same on equal rows. "dense" and "factored" replace K K by K K + 1e-14 (trace / n) I. If a matrix is still
    singular, the problem is solved on the eigenvectors of K with eigenvalues above 1e-10 of the largest. The condition
    of K K bounds the accuracy; least squares (`LSKernelMDDM`) depends on the condition of K only.

    The sign of a column makes the entry of largest magnitude of its covariances with the labels positive, as in
    `LSKernelMDDM`.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multilabel dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.

    Examples
    --------
    >>> from multilab.methods import KernelMDDM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = KernelMDDM(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

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
        # (n, g) orthonormal basis of the coefficients that are equal on equal rows; K maps its complement to 0
        basis = csr_array((1.0 / np.sqrt(sizes[groups]), (np.arange(len(K)), groups)))
        K, Q = basis.T @ (basis.T @ K).T, basis.T @ Q  # (g, g), (g, c)
        count = len(label_directions(Q, self.n_components).eigenvalues)
        try:
            values, G = solvers[self.solver](K, Q, count)
        except LinAlgError:
            values, G = _on_range(K, Q, count)
        kept = values > _ZERO * values[0]
        self.eigenvalues_, G = values[kept], G[:, kept]
        return basis @ (G * sign_of_largest(Q.T @ (K @ G)))

    def _dense(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by the whitened dense matrix R^-1 F F^T R^-T with K K = R R^T."""
        factor, F, n = _factor_of_square(K), K @ Q, len(K)
        half = solve_triangular(factor, F @ F.T, lower=True, check_finite=False)
        whitened = solve_triangular(factor, half.T, lower=True, check_finite=False)
        values, G = eigh(whitened, subset_by_index=[n - count, n - 1], check_finite=False)
        return values[::-1], solve_triangular(factor, G[:, ::-1], lower=True, trans="T")

    def _factored(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by the singular values of R^-1 F, shape (g, c), with K K = R R^T."""
        factor = _factor_of_square(K)
        left, singular, _ = np.linalg.svd(solve_triangular(factor, K @ Q, lower=True), full_matrices=False)
        return singular[:count] ** 2, solve_triangular(factor, left[:, :count], lower=True, trans="T")

    def _inverse_free(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by `largest_pairs` and set ``residual_``."""

        def products(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # K K x and K Q Q^T K x: the second product with K serves both
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
    """Return eigenvalues and eigenvectors in the span of the eigenvectors of K with nonzero eigenvalues."""
    spectrum = KernelSpectrum(K)
    w, U = spectrum.w[spectrum.kept], spectrum.U[:, spectrum.kept]
    left, singular, _ = np.linalg.svd(U.T @ Q, full_matrices=False)
    return singular[:count] ** 2, U @ (left[:, :count] / w[:, None])


def _factor_of_square(K: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor R of K K + 1e-14 (trace / n) I, shape (g, g).

    Raises
    ------
    LinAlgError
        If the smallest eigenvalue does not exceed the added value clearly, which would then determine the solution.
    """
    M = K @ K
    added = _JITTER * np.trace(M) / len(M)
    M[np.diag_indices_from(M)] += added
    norm = dlange("1", M.T)
    factor = cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    if dpocon(factor, norm, uplo="L")[0] * norm < _CLEAR * added:
        raise LinAlgError("the square of the kernel matrix is singular")
    return factor
