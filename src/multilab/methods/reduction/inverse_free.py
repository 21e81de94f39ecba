"""The largest eigenpairs of A p = lambda M p by products alone: the inverse-free Krylov method of Golub and Ye."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

__all__ = ["EigenPairs", "largest_pairs"]

Products = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

_KRYLOV = 5  # products per outer step
_PATIENCE = 3  # outer steps without a smaller residual: rounding is reached
_LOST = 1e-10  # what is left, as a share, of a vector that lies in the span of others


@dataclass(frozen=True)
class EigenPairs:
    """What was found.

    Attributes
    ----------
    values : ndarray of shape (r,)
        Falling.
    vectors : ndarray of shape (n, r)
        M-orthonormal.
    residuals : ndarray of shape (r,)
        |A p - lambda M p| / (|p| (lambda |M| + |A|)).
    steps : int
        Outer steps in all.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    steps: int


def largest_pairs(
    products: Products,
    precondition: Callable[[np.ndarray], np.ndarray],
    starts: np.ndarray,
    tol: float,
    max_iter: int,
) -> EigenPairs:
    """Return as many pairs as there are starting vectors, one after another.

    Parameters
    ----------
    products : callable
        Returns M x and A x for x of shape (n,): M symmetric positive (semi)definite, A symmetric.
    precondition : callable
        Returns T x, T symmetric positive definite: the nearer to M^{-1}, the fewer steps.
    starts : ndarray of shape (n, r)
        One starting vector per pair, which M must not make 0.
    tol : float
        On the residual.
    max_iter : int
        Outer steps per pair; three in a row without a smaller residual end a pair, too.

    Notes
    -----
    An outer step takes rho = x^T A x / x^T M x, an M-orthonormal basis of span{x, C x, ..., C^5 x}, C = T (A - rho M),
    and the best vector of that span and the step before (Rayleigh-Ritz). Found vectors are kept out of every
    basis. What accuracy can be reached depends on the condition of M.

    References
    ----------
    G. H. Golub, Q. Ye. An inverse free preconditioned Krylov subspace method for symmetric generalized eigenvalue
    problems. SIAM Journal on Scientific Computing 24(1), 2002. Section 4: the preconditioned form.
    """
    size_m, size_a = _norms(products, starts[:, 0])
    found: list[np.ndarray] = []  # each (3, n): x, M x, A x
    values, residuals, steps = [], [], 0
    for start in starts.T:
        x, before = np.stack([start, *products(start)]), None
        best: tuple[float, np.ndarray, int] = (np.inf, x, 0)
        for step in range(max_iter):
            steps += 1
            basis = _basis(products, precondition, x, before, found)
            ritz = basis[0].T @ basis[2]
            rho, weights = eigh((ritz + ritz.T) / 2, subset_by_index=[len(ritz) - 1] * 2)
            vector = basis[0] @ weights[:, 0]
            before, x = x, np.stack([vector, *products(vector)])  # anew: rounding adds up in sums of the products
            gap = np.linalg.norm(x[2] - rho[0] * x[1]) / np.linalg.norm(vector)
            residual = float(gap / (rho[0] * size_m + size_a))
            best = min(best, (residual, x, step), key=lambda seen: seen[0])
            if residual <= tol or step - best[2] >= _PATIENCE:
                break
        residual, x, _ = best
        found.append(x / np.sqrt(x[0] @ x[1]))
        values.append(float(found[-1][0] @ found[-1][2]))
        residuals.append(residual)
    order = np.argsort(values)[::-1]
    vectors = np.stack([found[i][0] for i in order], axis=1)
    return EigenPairs(np.array(values)[order], vectors, np.array(residuals)[order], steps)


def _basis(
    products: Products,
    precondition: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    before: np.ndarray | None,
    found: list[np.ndarray],
) -> np.ndarray:
    """Return an M-orthonormal basis of the search space, M and A times it, shape (3, n, size)."""
    basis: list[np.ndarray] = []
    rho = 0.0
    for step in range(_KRYLOV + 1):
        made = _orthonormal(x, [*found, *basis])
        if made is None:
            break
        basis.append(made)
        rho = float(made[0] @ made[2]) if step == 0 else rho
        following = precondition(made[2] - rho * made[1])
        x = np.stack([following, *products(following)]) if step < _KRYLOV else x
    if before is not None:
        made = _orthonormal(before, [*found, *basis])
        basis += [] if made is None else [made]
    return np.stack(basis, axis=2)


def _orthonormal(x: np.ndarray, others: list[np.ndarray]) -> np.ndarray | None:
    """Return x, M x and A x without the parts along others, of M-length 1; None where nothing is left."""
    length = np.sqrt(max(x[0] @ x[1], 0.0))
    if length == 0.0:
        return None
    x = x / length
    if others:
        kept = np.stack(others, axis=2)
        for _ in range(2):  # twice is enough
            x = x - kept @ (kept[1].T @ x[0])
    left = np.sqrt(max(x[0] @ x[1], 0.0))
    return x / left if left > _LOST else None


def _norms(products: Products, start: np.ndarray) -> list[float]:
    """Return about the largest eigenvalues of M and A, from ten power steps each."""
    sizes = []
    for which in (0, 1):
        x, size = start / np.linalg.norm(start), 1.0
        for _ in range(10):
            x = products(x)[which]
            size = float(np.linalg.norm(x)) or 1.0
            x = x / size
        sizes.append(size)
    return sizes
