"""One door to the solvers: the closed form where there is one, an algorithm, a whole grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.stacking.admm import alternating_directions
from multilab.methods.stacking.certificates import Progress, Solution
from multilab.methods.stacking.objective import StackingLoss
from multilab.methods.stacking.penalty import SparseGroupPenalty
from multilab.methods.stacking.proximal import accelerated_gradient, block_descent

__all__ = ["ALGORITHMS", "solve", "solve_path"]

ALGORITHMS = ("admm", "fista", "apg", "bcd")


def solve(
    loss: StackingLoss,
    penalty: SparseGroupPenalty,
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
        Where to begin; not changed.
    algorithm : {"admm", "fista", "apg", "bcd"}
        ``"apg"`` is FISTA without restart, as the paper prints it.
    tol, kkt_tol : float
        Stop when the relative duality gap is at most ``tol``, or the violation of the optimality conditions,
        relative to max |S^T Y|, at most ``kkt_tol``. 0 switches a criterion off.

    Notes
    -----
    Two cases need no iteration: W = 0 when B lies in the dual ball, and the minimum-norm solution when
    nothing is penalised. Their ``objective_path`` has one entry, ``n_iter`` is 0.
    """
    if algorithm not in ALGORITHMS:
        raise MethodError(f"algorithm is one of {', '.join(ALGORITHMS)}, not {algorithm!r}")
    if start.shape != loss.cross.shape:
        raise MethodError(f"the starting point has shape {start.shape}; W has shape {loss.cross.shape}")
    if penalty.dual_scale(loss.cross, 1.0) >= 1.0:
        path = np.array([0.5 * loss.target_square])
        return Solution(np.zeros_like(loss.cross), 0, path, 0.0, 0.0, True)
    if penalty.is_zero:
        return _least_squares(loss, penalty)
    progress = Progress(loss, penalty, tol, kkt_tol, max_iter)
    if algorithm == "admm":
        return alternating_directions(loss, penalty, start, progress)
    if algorithm == "bcd":
        return block_descent(loss, penalty, start, progress)
    return accelerated_gradient(loss, penalty, start, progress, restart=algorithm != "apg")


def solve_path(
    loss: StackingLoss,
    penalties: Sequence[SparseGroupPenalty],
    betas: Iterable[float],
    start: np.ndarray,
    **options: object,
) -> dict[tuple[int, float], Solution]:
    """Solve a whole grid from one Gram matrix, each point started at its stronger-penalised neighbour.

    Parameters
    ----------
    penalties : sequence
        From the strongest to the weakest.
    betas : iterable of float
    start : ndarray of shape (p, q)
        Where to begin when there is no neighbour, or its solution is zero.
    **options
        Passed to :func:`solve`.

    Returns
    -------
    dict
        (index of the penalty, beta) -> Solution.
    """
    found: dict[tuple[int, float], Solution] = {}
    for beta in betas:
        at_beta = loss.with_beta(beta)
        W = start
        for i, penalty in enumerate(penalties):
            solution = solve(at_beta, penalty, W, **options)  # type: ignore[arg-type]
            found[i, beta] = solution
            W = solution.W if solution.W.any() else start
    return found


def _least_squares(loss: StackingLoss, penalty: SparseGroupPenalty) -> Solution:
    W = loss.minimum_norm()
    QW = loss.apply(W)
    objective = loss.value(W, QW)
    rotated = loss.rotate(QW - loss.cross)
    excess = 0.5 * float(np.vdot(rotated, loss.divide(rotated)))  # exact, since f is quadratic
    gap = excess / objective if objective > 0 else 0.0
    kkt = penalty.violation(W, QW - loss.cross) / float(np.abs(loss.cross).max())
    return Solution(W, 0, np.array([objective]), gap, kkt, True)
