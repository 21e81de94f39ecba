"""Least squares over matrices with orthonormal columns: global minimum by duality, and search of Wen and Yin."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg

# Newton's method on the dual
_ORTHONORMAL = 1e-10  # upper bound of |P^T P - I|
_NEWTON_STEPS = 100  # a bound only: the loop ends when the constraint holds
_SHORTEST = 1e-10  # step length at which the line search fails

# search
_MEMORY = 0.85  # weight of earlier values in the nonmonotone rule
_DECREASE = 1e-4  # required share of the decrease that the gradient predicts
_SHRINK = 0.1  # factor on the step length after a rejected trial
_TRIALS = 5  # rejected trials after which a step is taken regardless
_STEPS = (1e-20, 1e20)  # bounds of the step length
_REPAIR = 1e-13  # |P^T P - I| above which a point is replaced by its polar factor


@dataclass(frozen=True)
class StiefelSolution:
    """Solution of min |diag(w) P - B|_F^2 subject to P^T P = I.

    Attributes
    ----------
    P : ndarray of shape (n, r)
        Solution, with orthonormal columns.
    objective_path : ndarray of shape (steps + 1,)
        Value of the objective at the starting point and after each step.
    gradient_norm, first_gradient_norm : float
        Frobenius norm of the Riemannian gradient at P and at the starting point.
    """

    P: np.ndarray
    objective_path: np.ndarray
    gradient_norm: float
    first_gradient_norm: float


def polar_factor(P: np.ndarray) -> np.ndarray:
    """Return the matrix with orthonormal columns that is nearest to P, shape (n, r), of rank r."""
    left, _, right = np.linalg.svd(P, full_matrices=False)
    return left @ right


def global_orthonormal_regression(w: np.ndarray, B: np.ndarray) -> StiefelSolution | None:
    """Return the global minimum of |diag(w) P - B|_F^2 subject to P^T P = I, or None if it is not certified.

    Parameters
    ----------
    w : ndarray of shape (n,)
        Eigenvalues of K, not negative.
    B : ndarray of shape (n, r)
        Targets in the eigenbasis of K, U^T B.

    Notes
    -----
    With W = diag(w) and a symmetric matrix Lambda of multipliers, the Lagrangian
    |W P - B|^2 + tr(Lambda (P^T P - I)) has its minimum at the rows p_i = (w_i^2 I + Lambda)^-1 w_i b_i. The dual
    function is |B|^2 + g(Lambda) with g(Lambda) = -tr(B^T W P) - tr(Lambda); it is concave, and its gradient is
    P^T P - I. If P^T P = I for a positive definite Lambda, the primal and the dual value agree, so this P is the global
    minimum although the problem is not convex. Such a Lambda exists if the singular values of the unconstrained least
    squares solution exceed 1, which holds for kernel matrices: their small eigenvalues make that solution large.

    Newton's method maximises g, with conjugate gradients for the direction and a backtracking line search that keeps
    Lambda positive definite. A product with the Hessian takes O(r^3), a step O(n r^3). The method is not in the LSkMDDM
    paper.
    """
    C = w[:, None] * B  # W B, (n, r)
    Lambda = _uniform_multiplier(w, C) * np.eye(B.shape[1])
    value, theta, V, P = _dual(w, C, Lambda)
    path = []
    for _ in range(_NEWTON_STEPS):
        gradient = P.T @ P - np.eye(len(theta))  # (r, r), in the eigenbasis V of Lambda
        path.append(float(np.vdot(w[:, None] * (P @ V.T) - B, w[:, None] * (P @ V.T) - B)))
        if np.abs(gradient).max() <= _ORTHONORMAL:
            return StiefelSolution(polar_factor(P) @ V.T, np.array(path), 0.0, 1.0)
        ascent = _newton_direction(w, theta, P, gradient)
        slope, step = float(np.vdot(gradient, ascent)), 1.0
        while step > _SHORTEST:
            moved = V @ (np.diag(theta) + step * ascent) @ V.T
            candidate = _dual(w, C, (moved + moved.T) / 2)
            if candidate[1][0] > 0 and candidate[0] >= value + _DECREASE * step * slope - _REPAIR * abs(value):
                break
            step /= 2
        else:
            return None
        value, theta, V, P = candidate
    return None


def _uniform_multiplier(w: np.ndarray, C: np.ndarray) -> float:
    """Return the t at which Lambda = t I gives |P|_F^2 = r, to one per cent, by bisection: the starting point."""
    power = np.einsum("ij,ij->i", C, C)
    low, high = 0.0, float(np.sqrt(power.sum() / C.shape[1])) or 1.0  # |P|_F^2 <= r at the upper end
    while high - low > 0.01 * high and high > _STEPS[0]:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.sum(power / (w**2 + middle) ** 2) > C.shape[1] else (low, middle)
    return high


def _dual(w: np.ndarray, C: np.ndarray, Lambda: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Return g(Lambda), the eigenvalues (r,) and eigenvectors V (r, r) of Lambda, and P V (n, r)."""
    theta, V = eigh(Lambda)
    turned = C @ V
    P = turned / (w[:, None] ** 2 + np.maximum(theta, np.finfo(float).tiny))
    return float(-np.vdot(turned, P) - theta.sum()), theta, V, P


def _newton_direction(w: np.ndarray, theta: np.ndarray, P: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the symmetric E with -Hessian E = gradient, shape (r, r), by preconditioned conjugate gradients.

    All are in the eigenbasis of Lambda, where a change E of Lambda moves P_ik by -sum_l E_kl P_il / (w_i^2 + theta_k).
    """
    r = len(theta)
    M = np.stack([(P / (w**2 + theta[k])[:, None]).T @ P for k in range(r)])  # M[k, m, l], (r, r, r)

    def product(entries: np.ndarray) -> np.ndarray:
        E = entries.reshape(r, r)
        half = np.einsum("kml,lk->mk", M, (E + E.T) / 2)
        return (half + half.T).ravel()

    diagonal = np.einsum("kmm->mk", M)
    scale = (diagonal + diagonal.T).ravel()
    precondition = LinearOperator((r * r, r * r), matvec=lambda entries: entries / scale, dtype=np.float64)
    hessian = LinearOperator((r * r, r * r), matvec=product, dtype=np.float64)
    # inexact Newton: the tolerance decreases with the gradient, which keeps the convergence superlinear
    tolerance = min(1e-2, float(np.abs(gradient).max()))
    E, _ = cg(hessian, gradient.ravel(), rtol=max(tolerance, 1e-12), M=precondition)
    E = E.reshape(r, r)
    return (E + E.T) / 2


def orthonormal_regression(
    w: np.ndarray, B: np.ndarray, start: np.ndarray, tol: float = 1e-6, max_iter: int = 500
) -> StiefelSolution:
    """Minimise |diag(w) P - B|_F^2 subject to P^T P = I: eq. (6) of the LSkMDDM paper in the eigenbasis of K.

    With K = U diag(w) U^T the arguments are w and U^T B, and the solution for K and B is U P.

    Parameters
    ----------
    w : ndarray of shape (n,)
    B : ndarray of shape (n, r)
    start : ndarray of shape (n, r)
        Starting point, with orthonormal columns.
    tol : float
        Tolerance on the norm of the Riemannian gradient, relative to that at the starting point.
    max_iter : int
        Maximum number of steps.

    Returns
    -------
    StiefelSolution
        The best iterate. The problem is not convex: it approximates a stationary point.

    Notes
    -----
    A step follows the curve P(tau) = P - tau Z (I + tau/2 V^T Z)^{-1} V^T P with Z = [G, P], V = [P, -G] and the
    Euclidean gradient G: the Cayley transform of a skew-symmetric matrix of rank 2 r, which preserves P^T P = I, in
    O(n r^2). The first trial is a Barzilai-Borwein step. A trial is accepted if its value is sufficiently below a
    weighted mean of earlier values (nonmonotone rule).

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
    """Return |diag(w) P - B|_F^2 and its Euclidean gradient, shape (n, r)."""
    residual = w[:, None] * P - B
    return float(np.vdot(residual, residual)), 2.0 * w[:, None] * residual


def _tangent(P: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the Riemannian gradient G - P G^T P, shape (n, r)."""
    return G - P @ (G.T @ P)


def _along(P: np.ndarray, G: np.ndarray, tau: float) -> np.ndarray:
    """Return P(tau), or its polar factor if rounding errors violate P^T P = I; shape (n, r)."""
    Z, V = np.hstack([G, P]), np.hstack([P, -G])
    inner = np.eye(Z.shape[1]) + 0.5 * tau * (V.T @ Z)
    moved = P - tau * (Z @ np.linalg.solve(inner, V.T @ P))
    bent = np.abs(moved.T @ moved - np.eye(P.shape[1])).max()
    return polar_factor(moved) if bent > _REPAIR else moved


def _next_step(difference: np.ndarray, change: np.ndarray, step: int) -> float:
    """Return the Barzilai-Borwein step length: the long form in even steps, the short form in odd ones."""
    across = abs(float(np.vdot(difference, change)))
    if across == 0.0:
        return _STEPS[1]
    long, short = float(np.vdot(difference, difference)) / across, across / float(np.vdot(change, change))
    return float(np.clip(long if step % 2 == 0 else short, *_STEPS))
