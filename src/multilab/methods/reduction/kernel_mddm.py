"""Kernel MDDM as defined: a generalised eigenproblem of the size of the training set."""

from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, qr_multiply, solve_triangular
from scipy.linalg.lapack import dtrcon
from scipy.sparse import csr_array

from multilab.methods.base import MethodError
from multilab.methods.reduction._inverse_free import largest_pairs
from multilab.methods.reduction.equations import KernelSpectrum
from multilab.methods.reduction.kernel_reducer import KernelReducer, equal_rows
from multilab.methods.reduction.label_problem import centred_labels, label_directions, sign_of_largest

__all__ = ["KernelMDDM"]

_CONDITION = 1e12  # upper bound of the estimated condition of K
_NEAR = 1e-8  # added to K in the preconditioner, relative to its mean diagonal
_ZERO = 1e-10  # eigenvalues up to this share of the largest count as 0


class KernelMDDM(KernelReducer):
    """Multi-label dimensionality reduction by dependence maximisation with a kernel (kMDDM).

    The columns of P are the leading solutions of K (H L H) K p = lambda M p with M = mu K K + (1 - mu) K, L = Y Y^T,
    H the centring matrix and p^T M p = 1. With mu = 1 this is eq. (1) of the LSkMDDM paper.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r, at most the rank of the centred label matrix; None takes that rank.
    gamma, gamma_factor, center_kernel
        See `LSKernelMDDM`.
    mu : float, default=1.0
        Weight in [0, 1] of uncorrelated features (K K) against orthonormal directions (K) in the constraint. Less than
        1 acts as a ridge.
    solver : {"dense", "factored", "ifp"}, default="dense"
        "dense" whitens the left matrix by a root R of the right one, M = R^T R, and solves an (n, n) eigenproblem by
        LAPACK. "factored" uses that the left matrix is F F^T with F = K H Y, shape (n, c): the singular values of the
        (n, c) matrix R^-T F; with mu < 1, a Cholesky factor of mu K + (1 - mu) I and the eigenvalues of a (c, c)
        matrix. "ifp" is the inverse-free preconditioned Krylov method (`largest_pairs`).
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
    the same on equal rows. If K is still singular (an estimated condition above 1e12), the problem is solved on the
    eigenvectors of K with eigenvalues above 1e-10 of the largest.

    "dense" and "factored" never form K K, whose condition is the square of that of K: R is the triangular factor of a
    QR decomposition of K. Their accuracy depends on the condition of K, like that of least squares (`LSKernelMDDM`);
    that of "ifp" depends on the condition of K K.

    With mu < 1 the columns of P are (mu K + (1 - mu) I)^{-1} Q V, where Q are the centred labels and V eigenvectors:
    kernel ridge regression with a ridge of (1 - mu) / mu.

    The sign of a column makes the entry of largest magnitude of its covariances with the labels positive, as in
    `LSKernelMDDM`.

    **Missing labels**: an unobserved label counts as its mean among the rows that observe it (its centred value is 0).

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

    results_version = 2

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        center_kernel: bool = False,
        solver: Literal["dense", "factored", "ifp"] = "dense",
        tol: float = 1e-10,
        max_iter: int = 200,
        mu: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.center_kernel = center_kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.mu = mu

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        solvers = {"dense": self._dense, "factored": self._factored, "ifp": self._inverse_free}
        if self.solver not in solvers:
            raise MethodError(f"solver={self.solver!r}: give 'dense', 'factored' or 'ifp'")
        if not 0 <= self.mu <= 1:
            raise MethodError(f"mu={self.mu}: give a number in [0, 1]")
        Q, groups = centred_labels(Y), equal_rows(X)
        sizes = np.bincount(groups)
        # (n, g) orthonormal basis of the coefficients that are equal on equal rows; K maps its complement to 0
        basis = csr_array((1.0 / np.sqrt(sizes[groups]), (np.arange(len(K)), groups)))
        K, Q = basis.T @ (basis.T @ K).T, basis.T @ Q  # (g, g), (g, c)
        count = len(label_directions(Q, self.n_components).eigenvalues)
        try:
            values, G = solvers[self.solver](K, Q, count)
        except LinAlgError:
            values, G = _on_range(K, Q, count, self.mu)
        kept = values > _ZERO * values[0]
        self.eigenvalues_, G = values[kept], G[:, kept]
        return basis @ (G * sign_of_largest(Q.T @ (K @ G)))

    def _dense(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by the whitened dense matrix R^-T F F^T R^-1 with M = R^T R."""
        root, half = _root_of_constraint(K, Q, self.mu)
        n = len(K)
        values, G = eigh(half @ half.T, subset_by_index=[n - count, n - 1], check_finite=False)
        return values[::-1], solve_triangular(root, G[:, ::-1])

    def _factored(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by the singular values of R^-T F, shape (g, c), with K K = R^T R."""
        if self.mu < 1:
            return self._ridged(K, Q, count)
        root, half = _root_of_constraint(K, Q, 1.0)
        left, singular, _ = np.linalg.svd(half, full_matrices=False)
        return singular[:count] ** 2, solve_triangular(root, left[:, :count])

    def _ridged(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors for mu < 1: M = K S^-1, and p = S Q v / sqrt(lambda)."""
        ridged = self.mu * K
        ridged[np.diag_indices_from(ridged)] += 1.0 - self.mu
        solved = cho_solve(cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False), Q)  # S Q, (g, c)
        gram = (K @ Q).T @ solved
        values, V = eigh((gram + gram.T) / 2.0)
        values, V = values[::-1][:count], V[:, ::-1][:, :count]
        return values, solved @ (V / np.sqrt(np.maximum(values, np.finfo(float).tiny)))

    def _inverse_free(self, K: np.ndarray, Q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors by `largest_pairs` and set ``residual_``."""

        def products(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # M x and K Q Q^T K x: the second product with K serves both
            once = K @ x
            twice = K @ np.stack([self.mu * once + (1.0 - self.mu) * x, Q @ (Q.T @ once)], axis=1)
            return twice[:, 0], twice[:, 1]

        near = K.copy()
        near[np.diag_indices_from(near)] += _NEAR * np.trace(K) / len(K)
        ridged = self.mu * near + (1.0 - self.mu) * np.eye(len(K)) if self.mu < 1 else None
        factor = cho_factor(near, lower=True, overwrite_a=True, check_finite=False)
        other = factor if ridged is None else cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)

        def precondition(x: np.ndarray) -> np.ndarray:
            return cho_solve(other, cho_solve(factor, x, check_finite=False), check_finite=False)

        starts = np.random.default_rng(0).normal(size=(len(K), count))
        pairs = largest_pairs(products, precondition, starts, self.tol, self.max_iter)
        self.residual_ = float(pairs.residuals.max())
        return pairs.values, pairs.vectors


def _on_range(K: np.ndarray, Q: np.ndarray, count: int, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors in the span of the eigenvectors of K with nonzero eigenvalues."""
    spectrum = KernelSpectrum(K)
    w, U = spectrum.w[spectrum.kept], spectrum.U[:, spectrum.kept]
    scale = (w if mu == 1 else np.sqrt(mu * w**2 + (1.0 - mu) * w))[:, None]  # the root of M
    left, singular, _ = np.linalg.svd((w[:, None] / scale) * (U.T @ Q), full_matrices=False)
    return singular[:count] ** 2, U @ (left[:, :count] / scale)


def _root_of_constraint(K: np.ndarray, Q: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return an upper triangular root R of M = mu K K + (1 - mu) K, M = R^T R, and R^-T K Q, by a QR decomposition.

    With K = L L^T, M is A^T A for the rows sqrt(mu) K and sqrt(1 - mu) L^T of A, and K Q is A^T Z for the rows
    sqrt(mu) Q and sqrt(1 - mu) L^T Q of Z. From A = O R follows R^-T K Q = O^T Z: nothing is divided by R.

    Parameters
    ----------
    K : ndarray of shape (g, g)
    Q : ndarray of shape (g, c)
    mu : float

    Returns
    -------
    root : ndarray of shape (g, g)
    half : ndarray of shape (g, c)

    Raises
    ------
    LinAlgError
        If the estimated condition of K exceeds 1e12.
    """
    A, Z = [], []
    if mu > 0:
        A.append(np.sqrt(mu) * K)
        Z.append(np.sqrt(mu) * Q)
    if mu < 1:
        upper = cholesky(K, check_finite=False)  # L^T
        _check_condition(upper, 2)
        A.append(np.sqrt(1.0 - mu) * upper)
        Z.append(np.sqrt(1.0 - mu) * (upper @ Q))
    half, root = qr_multiply(np.concatenate(A), np.concatenate(Z).T, mode="right", overwrite_a=True)
    if mu == 1:
        _check_condition(root, 1)
    return root, half.T


def _check_condition(triangular: np.ndarray, power: int) -> None:
    """Raise LinAlgError if a power of the condition of an upper triangular matrix is estimated to exceed 1e12."""
    if dtrcon(triangular)[0] ** power < 1.0 / _CONDITION:
        raise LinAlgError("the kernel matrix is singular")
