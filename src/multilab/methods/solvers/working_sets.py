# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Working sets: small problems on the rows of W that can be nonzero, until the full problem is certified."""

from dataclasses import replace
from typing import Protocol

import numpy as np

from multilab.methods.solvers.certificates import Solution, duality_gap, relative_kkt
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.solvers.problem import SmoothTerm, require
from multilab.methods.solvers.solve import solve

__all__ = ["Restrictable", "solve_sparse"]

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
    while len(path) < max_iter:
        excess = penalty.sizes(loss.cross - loss.apply(W)).max(axis=1) - penalty.strength
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
        gap = max(0.0, duality_gap(loss, penalty, W)) / path[-1]
        if gap <= tol:
            kkt = relative_kkt(penalty, W, loss.apply(W) - loss.cross, loss.cross)
            return Solution(W, len(path), np.array(path), gap, kkt, True)
    last = solve(loss, penalty, W, tol=tol, kkt_tol=0.0, max_iter=max(1, max_iter - len(path)))
    path.extend(last.objective_path.tolist())
    return replace(last, n_iter=len(path), objective_path=np.array(path))
