"""Largest eigenpairs of A p = lambda M p from products alone: the inverse-free Krylov method of Golub and Ye."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

Products = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

_KRYLOV = 5  # products per outer step
_PATIENCE = 3  # outer steps without a smaller residual after which rounding errors dominate
_LOST = 1e-10  # a vector whose orthogonal remainder is a smaller share of it lies in the span of the others


@dataclass(frozen=True)
class EigenPairs:
    """Eigenpairs with their residuals.

    Attributes
    ----------
    values : ndarray of shape (r,)
        Eigenvalues lambda, descending.
    vectors : ndarray of shape (n, r)
        Eigenvectors p as columns, M-orthonormal.
    residuals : ndarray of shape (r,)
        Relative residuals |A p - lambda M p| / (|p| (lambda |M| + |A|)).
    steps : int
        Total number of outer steps.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    steps: int


def largest_pairs(
    products: Products, precondition: Callable[[np.ndarray], np.ndarray], starts: np.ndarray, tol: float, max_iter: int
) -> EigenPairs:
    """Return the eigenpairs with the largest eigenvalues, one per starting vector, computed one after another.

    Parameters
    ----------
    products : callable
        Returns M x and A x for x of shape (n,); M is symmetric positive (semi)definite, A symmetric.
    precondition : callable
        Returns T x; T is symmetric positive definite, and fewer steps are needed the closer it is to M^{-1}.
    starts : ndarray of shape (n, r)
        One starting vector per pair, not in the null space of M.
    tol : float
        Upper bound of the relative residual.
    max_iter : int
        Maximum number of outer steps per pair. Three in a row without a smaller residual also end it.

    Notes
    -----
    An outer step computes rho = x^T A x / x^T M x, an M-orthonormal basis of span{x, C x, ..., C^5 x} with
    C = T (A - rho M), extended by the vector of the previous step, and the Ritz vector of the largest Ritz value in
    that basis. Each basis is M-orthogonal to the eigenvectors computed before (deflation). The condition of M bounds
    the accuracy.

    References
    ----------
    G. H. Golub, Q. Ye. An inverse free preconditioned Krylov subspace method for symmetric generalized eigenvalue
    problems. SIAM Journal on Scientific Computing 24(1), 2002. Section 4: the preconditioned form.
    """
    size_m, size_a = _norms(products, starts[:, 0])
    solved: list[np.ndarray] = []  # each (3, n): x, M x, A x, so that no product is computed twice
    values, residuals, steps = [], [], 0
    for start in starts.T:
        x, before = np.stack([start, *products(start)]), None
        best: tuple[float, np.ndarray, int] = (np.inf, x, 0)
        for step in range(max_iter):
            steps += 1
            basis = _basis(products, precondition, x, before, solved)
            ritz = basis[0].T @ basis[2]  # (size, size), symmetric up to rounding
            rho, weights = eigh((ritz + ritz.T) / 2, subset_by_index=[len(ritz) - 1] * 2)
            vector = basis[0] @ weights[:, 0]
            before, x = x, np.stack([vector, *products(vector)])  # recomputed: rounding adds up in sums of the products
            gap = np.linalg.norm(x[2] - rho[0] * x[1]) / np.linalg.norm(vector)
            residual = float(gap / (rho[0] * size_m + size_a))
            best = min(best, (residual, x, step), key=lambda seen: seen[0])
            if residual <= tol or step - best[2] >= _PATIENCE:
                break
        residual, x, _ = best
        solved.append(x / np.sqrt(x[0] @ x[1]))
        values.append(float(solved[-1][0] @ solved[-1][2]))
        residuals.append(residual)
    order = np.argsort(values)[::-1]
    vectors = np.stack([solved[i][0] for i in order], axis=1)
    return EigenPairs(np.array(values)[order], vectors, np.array(residuals)[order], steps)


def _basis(
    products: Products,
    precondition: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    before: np.ndarray | None,
    solved: list[np.ndarray],
) -> np.ndarray:
    """Return an M-orthonormal basis X of the search space with M X and A X, shape (3, n, size).

    Parameters
    ----------
    products, precondition
        See `largest_pairs`.
    x : ndarray of shape (3, n)
        Current vector, with M and A times it.
    before : ndarray of shape (3, n) or None
        Vector of the previous outer step.
    solved : list of ndarray of shape (3, n)
        Eigenvectors to which the basis is M-orthogonal.
    """
    basis: list[np.ndarray] = []
    rho = 0.0
    for step in range(_KRYLOV + 1):
        made = _orthonormal(x, [*solved, *basis])
        if made is None:
            break
        basis.append(made)
        rho = float(made[0] @ made[2]) if step == 0 else rho
        following = precondition(made[2] - rho * made[1])
        x = np.stack([following, *products(following)]) if step < _KRYLOV else x
    if before is not None:
        made = _orthonormal(before, [*solved, *basis])
        basis += [] if made is None else [made]
    return np.stack(basis, axis=2)


def _orthonormal(x: np.ndarray, others: list[np.ndarray]) -> np.ndarray | None:
    """Return (x, M x, A x), shape (3, n), M-orthogonal to ``others`` and of M-norm 1; None if x is in their span."""
    length = np.sqrt(max(x[0] @ x[1], 0.0))
    if length == 0.0:
        return None
    x = x / length
    if others:
        kept = np.stack(others, axis=2)
        for _ in range(2):  # a second pass removes the rounding errors of the first
            x = x - kept @ (kept[1].T @ x[0])
    left = np.sqrt(max(x[0] @ x[1], 0.0))
    return x / left if left > _LOST else None


def _norms(products: Products, start: np.ndarray) -> list[float]:
    """Return estimates of the largest eigenvalues of M and A, by ten power iterations each."""
    sizes = []
    for which in (0, 1):
        x, size = start / np.linalg.norm(start), 1.0
        for _ in range(10):
            x = products(x)[which]
            size = float(np.linalg.norm(x)) or 1.0
            x = x / size
        sizes.append(size)
    return sizes
