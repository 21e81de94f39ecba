# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Solver dispatch: the closed form where there is one, else an algorithm."""

from typing import Any

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.solvers.admm import admm
from multilab.methods.solvers.block_descent import LOSS_NEEDS, PENALTY_NEEDS, block_descent
from multilab.methods.solvers.certificates import Progress, Solution, relative_kkt
from multilab.methods.solvers.problem import Penalty, SmoothTerm, require
from multilab.methods.solvers.proximal_gradient import fista

__all__ = ["ALGORITHMS", "solve"]

ALGORITHMS = ("admm", "fista", "apg", "bcd")


def solve(
    loss: SmoothTerm,
    penalty: Penalty,
    start: np.ndarray,
    *,
    algorithm: str = "admm",
    tol: float = 1e-6,
    kkt_tol: float = 1e-9,
    max_iter: int = 5000,
) -> Solution:
    """Minimise loss + penalty.

    Parameters
    ----------
    start : ndarray of shape (p, q)
        Starting point; not changed.
    algorithm : {"admm", "fista", "apg", "bcd"}
        ``"apg"`` is FISTA without restart, as the paper prints it.
    tol, kkt_tol : float
        Stop when the relative duality gap is at most ``tol``, or the KKT residual,
        relative to max |B|, at most ``kkt_tol``. 0 switches a criterion off.

    Raises
    ------
    MethodError
        If the algorithm is unknown, a term lacks what it needs, or the shape of ``start`` is wrong.

    Notes
    -----
    Two cases need no iteration: W = 0 when B lies in the dual ball, and the minimum-norm solution when
    nothing is penalised. Their ``objective_path`` has one entry, ``n_iter`` is 0.
    """
    if algorithm not in ALGORITHMS:
        raise MethodError(f"algorithm is one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
    require(loss, SmoothTerm, *(LOSS_NEEDS if algorithm == "bcd" else ()))
    require(penalty, Penalty, *(PENALTY_NEEDS if algorithm == "bcd" else ()))
    if start.shape != loss.cross.shape:
        raise MethodError(f"the starting point has shape {start.shape}; W has shape {loss.cross.shape}")
    if penalty.dual_scale(loss.cross, 1.0) >= 1.0:
        path = np.array([0.5 * loss.target_square])
        return Solution(np.zeros_like(loss.cross), 0, path, 0.0, 0.0, True)
    if penalty.is_zero:
        return _least_squares(loss, penalty)
    progress = Progress(loss, penalty, tol, kkt_tol, max_iter)
    if algorithm == "admm":
        return admm(loss, penalty, start, progress)
    if algorithm == "bcd":
        grouped: Any = penalty
        return block_descent(loss, grouped, start, progress)
    return fista(loss, penalty, start, progress, restart=algorithm != "apg")


def _least_squares(loss: SmoothTerm, penalty: Penalty) -> Solution:
    W = loss.minimum_norm()
    QW = loss.apply(W)
    objective = loss.value(W, QW)
    rotated = loss.rotate(QW - loss.cross)
    excess = 0.5 * float(np.vdot(rotated, loss.apply_pinv(rotated)))  # exact, since f is quadratic
    gap = excess / objective if objective > 0 else 0.0
    kkt = relative_kkt(penalty, W, QW - loss.cross, loss.cross)
    return Solution(W, 0, np.array([objective]), gap, kkt, True)
