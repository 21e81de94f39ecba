"""Least squares over matrices with orthonormal columns: the curvilinear search of Wen and Yin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["StiefelSolution", "orthonormal_regression", "polar_factor"]

_MEMORY = 0.85  # weight of earlier values in the nonmonotone rule
_DECREASE = 1e-4
_SHRINK = 0.1
_TRIALS = 5
_STEPS = (1e-20, 1e20)
_REPAIR = 1e-13  # on P^T P - I


@dataclass(frozen=True)
class StiefelSolution:
    """What the search reached.

    Attributes
    ----------
    P : ndarray of shape (n, r)
        P^T P = I.
    objective_path : ndarray of shape (steps + 1,)
        |diag(w) P - B|_F^2, from the starting point on.
    gradient_norm, first_gradient_norm : float
        Frobenius norm of the Riemannian gradient at P and at the starting point.
    """

    P: np.ndarray
    objective_path: np.ndarray
    gradient_norm: float
    first_gradient_norm: float


def polar_factor(P: np.ndarray) -> np.ndarray:
    """Return the matrix with orthonormal columns that is nearest to P (n x r of rank r)."""
    left, _, right = np.linalg.svd(P, full_matrices=False)
    return left @ right


def orthonormal_regression(
    w: np.ndarray, B: np.ndarray, start: np.ndarray, tol: float = 1e-6, max_iter: int = 500
) -> StiefelSolution:
    """Minimise |diag(w) P - B|_F^2 over the P with P^T P = I, eq. (6) in the eigenbasis of K.

    With K = U diag(w) U^T and B' = U^T B, the solution of the problem of K and B is U P'.

    Parameters
    ----------
    w : ndarray of shape (n,)
    B, start : ndarray of shape (n, r)
        The starting point has orthonormal columns.
    tol : float
        On the norm of the Riemannian gradient, relative to that at the start.
    max_iter : int

    Returns
    -------
    StiefelSolution
        The best point seen. The problem is not convex: a stationary point, and with ``max_iter`` steps near one.

    Notes
    -----
    A step moves along P(tau) = P - tau Z (I + tau/2 V^T Z)^{-1} V^T P, Z = [G, P], V = [P, -G], G the Euclidean
    gradient: the Cayley transform of a skew matrix of rank 2 r, which keeps P^T P = I, at O(n r^2). The first trial is
    a Barzilai-Borwein step, accepted when the value is below a weighted mean of earlier ones.

    References
    ----------
    Z. Wen, W. Yin. A feasible method for optimization with orthogonality constraints. Mathematical Programming 142,
    2013. Algorithm 2.
    """
    P = start
    value, G = _value_and_gradient(w, B, P)
    tangent = _tangent(P, G)
    first = norm = float(np.linalg.norm(tangent))
    path, best = [value], (value, P, norm)
    mean, weight, tau = value, 1.0, 1.0 / max(float(np.abs(w).max()) ** 2, 1.0)
    for step in range(max_iter):
        if norm <= tol * first:
            break
        for trial in range(_TRIALS + 1):
            moved = _along(P, G, tau)
            new_value, new_G = _value_and_gradient(w, B, moved)
            if new_value <= mean - _DECREASE * tau * norm**2 or trial == _TRIALS:
                break
            tau *= _SHRINK
        new_tangent = _tangent(moved, new_G)
        difference, change = moved - P, new_tangent - tangent
        P, G, value, tangent = moved, new_G, new_value, new_tangent
        norm = float(np.linalg.norm(tangent))
        tau = _next_step(difference, change, step)
        weight, old = _MEMORY * weight + 1.0, weight
        mean = (_MEMORY * old * mean + value) / weight
        path.append(value)
        if value < best[0]:
            best = (value, P, norm)
    _, P, norm = best
    return StiefelSolution(P, np.array(path), norm, first)


def _value_and_gradient(w: np.ndarray, B: np.ndarray, P: np.ndarray) -> tuple[float, np.ndarray]:
    residual = w[:, None] * P - B
    return float(np.vdot(residual, residual)), 2.0 * w[:, None] * residual


def _tangent(P: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the gradient along the manifold, G - P G^T P."""
    return G - P @ (G.T @ P)


def _along(P: np.ndarray, G: np.ndarray, tau: float) -> np.ndarray:
    """Return the point of the curve at tau; should rounding have bent P^T P = I, its polar factor."""
    Z, V = np.hstack([G, P]), np.hstack([P, -G])
    inner = np.eye(Z.shape[1]) + 0.5 * tau * (V.T @ Z)
    moved = P - tau * (Z @ np.linalg.solve(inner, V.T @ P))
    bent = np.abs(moved.T @ moved - np.eye(P.shape[1])).max()
    return polar_factor(moved) if bent > _REPAIR else moved


def _next_step(difference: np.ndarray, change: np.ndarray, step: int) -> float:
    """Return the Barzilai-Borwein step, its long and its short form in turn."""
    across = abs(float(np.vdot(difference, change)))
    if across == 0.0:
        return _STEPS[1]
    long, short = float(np.vdot(difference, difference)) / across, across / float(np.vdot(change, change))
    return float(np.clip(long if step % 2 == 0 else short, *_STEPS))
