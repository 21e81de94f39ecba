"""Solutions with a certificate: one problem, a path of strengths, and working sets of rows."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.solvers.algorithms import LOSS_NEEDS, PENALTY_NEEDS, admm, block_descent, fista
from multilab.methods.solvers.certificates import Progress, Solution, duality_gap, relative_kkt
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.solvers.problem import Penalty, SmoothTerm, require

__all__ = ["ALGORITHMS", "Restrictable", "solve", "solve_path", "solve_sparse"]

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


def solve_path(loss: SmoothTerm, penalties: Iterable[Penalty], start: np.ndarray, **options: Any) -> list[Solution]:
    """Solve for each penalty, with the solution for the one before as warm start.

    Parameters
    ----------
    penalties : iterable
        From the strongest to the weakest.
    start : ndarray of shape (p, q)
        Starting point of the first, and where the solution before is zero.
    **options
        Of `multilab.methods.solvers.solve.solve`.
    """
    solutions: list[Solution] = []
    W = start
    for penalty in penalties:
        solutions.append(solve(loss, penalty, W, **options))
        W = solutions[-1].W if solutions[-1].W.any() else start
    return solutions


# Beyond this share of the rows the full problem is as fast.
_FEW = 0.3


class Restrictable(SmoothTerm, Protocol):
    """Smooth term that can be restricted to some rows of W."""

    def restricted(self, rows: np.ndarray) -> SmoothTerm:
        """Return the term as a function of the given rows of W, the others being zero."""
        ...


def solve_sparse(
    loss: Restrictable, penalty: RowSparsePenalty, start: np.ndarray, *, tol: float, max_iter: int
) -> Solution:
    """Minimise loss + penalty over a growing set of rows of W until the gap of the full problem is at most ``tol``.

    The working set begins with the nonzero rows of ``start`` and those with the largest KKT residual. More of these
    join it until the certificate holds; where they are many, the full problem goes to ADMM.

    Raises
    ------
    MethodError
        If the smooth term cannot be restricted.
    """
    require(loss, SmoothTerm, "restricted")
    n = len(loss.cross)
    path: list[float] = []
    W, inside = start.copy(), np.any(start, axis=1)
    inner_tol, n_new = 0.3 * tol, max(50, int(inside.sum()))
    QW = loss.apply(W)
    while len(path) < max_iter:
        excess = penalty.sizes(loss.cross - QW).max(axis=1) - penalty.strength
        outside = np.flatnonzero(~inside & (excess > 0))
        inside[outside[np.argsort(-excess[outside], kind="stable")[:n_new]]] = True
        if not outside.size:
            inner_tol *= 0.3
        n_new *= 2
        rows = np.flatnonzero(inside)
        if len(rows) > _FEW * n:
            break
        restricted = solve(
            loss.restricted(rows), penalty, W[rows], tol=inner_tol, kkt_tol=0.0, max_iter=max_iter - len(path)
        )
        W[rows] = restricted.W
        path.extend(restricted.objective_path.tolist())
        rotated = loss.rotate(W)
        QW = loss.rotate_back(loss.curvature * rotated)
        gap = max(0.0, duality_gap(loss, penalty, W, rotated=rotated)) / path[-1]
        if gap <= tol:
            kkt = relative_kkt(penalty, W, QW - loss.cross, loss.cross)
            return Solution(W, len(path), np.array(path), gap, kkt, True)
    last = solve(loss, penalty, W, tol=tol, kkt_tol=0.0, max_iter=max(1, max_iter - len(path)))
    path.extend(last.objective_path.tolist())
    return replace(last, n_iter=len(path), objective_path=np.array(path))
