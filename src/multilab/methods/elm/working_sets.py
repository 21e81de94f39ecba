"""Sparse solutions from small problems: only the rows of W that matter are solved, the rest is certified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from multilab.methods.elm.kernel_loss import KernelLoss
from multilab.methods.elm.sparse_penalty import SparsePenalty
from multilab.methods.stacking.certificates import Solution, duality_gap
from multilab.methods.stacking.solve import solve

__all__ = ["solve_sparse"]

# Beyond this share of the rows the whole problem is as fast.
_FEW = 0.3


def solve_sparse(loss: KernelLoss, penalty: SparsePenalty, start: np.ndarray, *, tol: float, max_iter: int) -> Solution:
    """Minimise loss + penalty over a growing set of rows of W until the gap of the whole problem is at most ``tol``.

    The set begins with the rows of ``start`` that are not zero and those whose optimality conditions fail most; it
    takes in more of these until the certificate holds, or passes the whole problem to ADMM where they are many.
    """
    whole: tuple[Any, Any] = (loss, penalty)
    n = len(loss.cross)
    path: list[float] = []
    W, inside = start.copy(), np.any(start, axis=1)
    inner, room = 0.3 * tol, max(50, int(inside.sum()))
    while len(path) < max_iter:
        excess = penalty.sizes(loss.cross - loss.apply(W)).max(axis=1) - penalty.strength
        outside = np.flatnonzero(~inside & (excess > 0))
        inside[outside[np.argsort(-excess[outside], kind="stable")[:room]]] = True
        if not outside.size:
            inner *= 0.3
        room *= 2
        rows = np.flatnonzero(inside)
        if len(rows) > _FEW * n:
            break
        part: Any = loss.restricted(rows)
        small = solve(part, whole[1], W[rows], tol=inner, kkt_tol=0.0, max_iter=max_iter - len(path))
        W[rows] = small.W
        path.extend(small.objective_path.tolist())
        gap = max(0.0, duality_gap(*whole, W)) / path[-1]
        if gap <= tol:
            violation = penalty.violation(W, loss.apply(W) - loss.cross)
            kkt = violation / float(np.abs(loss.cross).max())
            return Solution(W, len(path), np.array(path), gap, kkt, True)
    last = solve(*whole, W, tol=tol, kkt_tol=0.0, max_iter=max(1, max_iter - len(path)))
    path.extend(last.objective_path.tolist())
    return replace(last, n_iter=len(path), objective_path=np.array(path))
