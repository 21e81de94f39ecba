# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""ADMM in the eigenbases of the smooth term, where each least squares step is exact."""

import numpy as np

from multilab.methods.solvers.certificates import Progress, Solution
from multilab.methods.solvers.problem import Penalty, SmoothTerm

__all__ = ["admm"]

_RELAXATION = 1.6


def admm(loss: SmoothTerm, penalty: Penalty, start: np.ndarray, progress: Progress) -> Solution:
    """Minimise by ADMM on f(W) + penalty(Z), W = Z (Boyd et al. 2011), returning Z with its exact zeros.

    Scores of several classifiers for the same label are nearly collinear, and kernel matrices nearly singular: Q has
    eigenvalues over ten orders of magnitude, and a gradient method needs thousands of steps. Here the step in W
    solves (Q + rho I) W = rhs by a division in the eigenbases, so that conditioning does not matter and rho may
    change freely.

    Notes
    -----
    The multiplier rho U always lies in the dual ball; V with Q V = B - rho U is offered as a dual point and
    often certifies the gap long before the residual of Z does. rho balances the two parts of that gap. It is adjusted
    ever less often, so that it settles and the convergence proof of ADMM applies.
    """
    curvature, cross = loss.curvature, loss.cross_rotated
    Z = _better_start(loss, penalty, penalty.prox(start, 0.0))
    Z_rot = loss.rotate(Z)
    rho = _first_rho(loss, penalty, Z)
    correlation = loss.rotate_back(cross - curvature * Z_rot)
    U = (correlation - penalty.prox(correlation, 1.0)) / rho
    U_rot = loss.rotate(U)
    adapt_at = 4
    while True:
        W_rot = (cross + rho * (Z_rot - U_rot)) / (curvature + rho)
        W = loss.rotate_back(W_rot)
        U = U + _RELAXATION * W + (1.0 - _RELAXATION) * Z
        U_rot = U_rot + _RELAXATION * W_rot + (1.0 - _RELAXATION) * Z_rot
        Z = penalty.prox(U, 1.0 / rho)
        Z_rot_before, Z_rot = Z_rot, loss.rotate(Z)
        U, U_rot = U - Z, U_rot - Z_rot
        progress.path.append(loss.value_rotated(Z_rot) + penalty.value(Z))
        if progress.due():
            U_rot = loss.rotate(U)  # stops the drift between the two copies
            if progress.check(Z, loss.apply_pinv(cross - rho * U_rot)):
                return progress.solution(Z)
        if len(progress.path) == adapt_at:
            adapt_at = int(1.2 * adapt_at) + 1
            factor = _balance(loss, Z_rot - W_rot, rho * (Z_rot - Z_rot_before))
            if not 1 / 1.2 < factor < 1.2:
                rho, U, U_rot = rho * factor, U / factor, U_rot / factor


def _better_start(loss: SmoothTerm, penalty: Penalty, start: np.ndarray) -> np.ndarray:
    """Return ``start`` or the minimiser along the steepest descent from zero, whichever is lower.

    Near alpha_max the latter is close to the solution and everything else is far.
    """
    descent = penalty.prox(loss.cross, 1.0)
    Q_descent, Q_start = loss.apply(descent), loss.apply(start)
    slope = float(np.vdot(loss.cross, descent)) - penalty.value(descent)
    bend = float(np.vdot(descent, Q_descent))
    if slope <= 0 or bend <= 0:
        return start
    step = slope / bend
    steepest = loss.value(step * descent, step * Q_descent) + step * penalty.value(descent)
    return step * descent if steepest < loss.value(start, Q_start) + penalty.value(start) else start


def _first_rho(loss: SmoothTerm, penalty: Penalty, Z: np.ndarray) -> float:
    """Return a rho that weighs ||Z||^2 like the penalty at Z."""
    if not Z.any():
        Z = loss.minimum_norm()
    square = float(np.vdot(Z, Z))
    size = penalty.value(Z)
    return 10.0 * size / square if size > 0 and square > 0 else 1e-3 * loss.lipschitz


def _balance(loss: SmoothTerm, split: np.ndarray, moved: np.ndarray) -> float:
    """Return the factor for rho that balances the two parts of the duality gap.

    For the dual point rho U the gap is ||(Z - W) - Q^+ rho (Z - Z_before)||_Q^2 / 2: the first part falls with
    rho, the second, measured in the norm of Q^+, rises with it.
    """
    primal = float(np.vdot(split, loss.curvature * split))
    dual = float(np.vdot(moved, loss.apply_pinv(moved)))
    if primal <= 0 or dual <= 0:
        return 1.0
    return min(10.0, max(0.1, (primal / dual) ** 0.25))
