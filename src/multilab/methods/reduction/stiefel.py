"""Least squares over matrices with orthonormal columns: the global solution, and the search of Wen and Yin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg

__all__ = ["StiefelSolution", "global_orthonormal_regression", "orthonormal_regression", "polar_factor"]

_ORTHONORMAL = 1e-10  # on P^T P - I, of the global solution
_NEWTON_STEPS = 100
_SHORTEST = 1e-10

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


def global_orthonormal_regression(w: np.ndarray, B: np.ndarray) -> StiefelSolution | None:
    """Return the global minimum of |diag(w) P - B|_F^2 over the P with P^T P = I, or None where it is not certified.

    Parameters
    ----------
    w : ndarray of shape (n,)
        Non-negative.
    B : ndarray of shape (n, r)

    Notes
    -----
    With a symmetric matrix Lambda of multipliers the minimum of the Lagrangian is P = (w_i b_i.) (w_i^2 I + Lambda)^-1
    row by row, and the dual g(Lambda) = -tr(B^T W P) - tr(Lambda) is concave. Where a positive definite Lambda has
    P^T P = I, both have the same value, so this P is the global minimum of the problem that is not convex. That is
    so when the unconstrained least squares solution has singular values above 1, as with kernel matrices, whose small
    eigenvalues make it large. Lambda is found by Newton's method with conjugate gradients inside; a product with the
    Hessian takes O(r^3), a step O(n r^3).
    """
    C = w[:, None] * B
    Lambda = _uniform_multiplier(w, C) * np.eye(B.shape[1])
    value, theta, V, P = _dual(w, C, Lambda)
    path = []
    for _ in range(_NEWTON_STEPS):
        gradient = P.T @ P - np.eye(len(theta))
        path.append(float(np.vdot(w[:, None] * (P @ V.T) - B, w[:, None] * (P @ V.T) - B)))
        if np.abs(gradient).max() <= _ORTHONORMAL:
            return StiefelSolution(polar_factor(P) @ V.T, np.array(path), 0.0, 1.0)
        ascent = _newton_direction(w, theta, P, gradient)
        slope, step = float(np.vdot(gradient, ascent)), 1.0
        while step > _SHORTEST:
            moved = V @ (np.diag(theta) + step * ascent) @ V.T
            found = _dual(w, C, (moved + moved.T) / 2)
            if found[1][0] > 0 and found[0] >= value + _DECREASE * step * slope - _REPAIR * abs(value):
                break
            step /= 2
        else:
            return None
        value, theta, V, P = found
    return None


def _uniform_multiplier(w: np.ndarray, C: np.ndarray) -> float:
    """Return the multiplier t of Lambda = t I at which |P|_F^2 is r, to one per cent: the start."""
    power = np.einsum("ij,ij->i", C, C)
    low, high = 0.0, float(np.sqrt(power.sum() / C.shape[1])) or 1.0  # at the upper end |P|_F^2 is at most r
    while high - low > 0.01 * high and high > _STEPS[0]:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(power / (w**2 + middle) ** 2) > C.shape[1] else (low, middle)
    return high


def _dual(w: np.ndarray, C: np.ndarray, Lambda: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return the dual value, eigenvalues and eigenvectors of Lambda, and P in that basis."""
    theta, V = eigh(Lambda)
    turned = C @ V
    P = turned / (w[:, None] ** 2 + np.maximum(theta, np.finfo(float).tiny))
    return float(-np.vdot(turned, P) - theta.sum()), theta, V, P


def _newton_direction(w: np.ndarray, theta: np.ndarray, P: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the symmetric E with -Hessian E = gradient, by conjugate gradients."""
    r = len(theta)
    M = np.stack([(P / (w**2 + theta[k])[:, None]).T @ P for k in range(r)])  # M[k, m, l]

    def product(entries: np.ndarray) -> np.ndarray:
        E = entries.reshape(r, r)
        half = np.einsum("kml,lk->mk", M, (E + E.T) / 2)
        return (half + half.T).ravel()

    diagonal = np.einsum("kmm->mk", M)
    scale = (diagonal + diagonal.T).ravel()
    precondition = LinearOperator((r * r, r * r), matvec=lambda entries: entries / scale, dtype=np.float64)
    hessian = LinearOperator((r * r, r * r), matvec=product, dtype=np.float64)
    tolerance = min(1e-2, float(np.abs(gradient).max()))
    E, _ = cg(hessian, gradient.ravel(), rtol=max(tolerance, 1e-12), M=precondition)
    E = E.reshape(r, r)
    return (E + E.T) / 2


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
