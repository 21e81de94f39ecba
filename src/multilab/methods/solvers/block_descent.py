# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Block coordinate descent over the groups of the penalty."""

from typing import Any

import numpy as np

from multilab.methods.solvers.certificates import Progress, Solution
from multilab.methods.solvers.penalties import SparseGroupPenalty

__all__ = ["LOSS_NEEDS", "PENALTY_NEEDS", "block_descent"]

# Further members that the two terms need here: Q W = gram W + beta W coupling.
LOSS_NEEDS = ("gram", "beta", "coupling", "label_values")
PENALTY_NEEDS = ("rows", "prox_group")


def block_descent(
    loss: Any, penalty: SparseGroupPenalty, start: np.ndarray, progress: Progress, *, inner_iter: int = 100
) -> Solution:
    """Minimise over one group of weights after the other; the objective never rises.

    Algorithm 2 of the MLWSE paper, corrected: all of W is initialised once, the residual of the other blocks
    is recomputed for each block and is a matrix (eq. 22 puts norm bars around it), the label coupling is in
    the gradient (missing in eqs. 24-25), and the test for an inactive group is made at W_k = 0, where it is
    exact and free of step sizes. An iteration is a sweep over all groups.
    """
    W = penalty.prox(start, 0.0)
    curvature = [float(np.linalg.eigvalsh(loss.gram[r, r])[-1]) for r in penalty.rows]
    couple = loss.beta * float(loss.label_values[-1])
    while True:
        for k, r in enumerate(penalty.rows):
            target = loss.cross[r] - loss.gram[r] @ W + loss.gram[r, r] @ W[r]
            step_inverse = max(curvature[k], 0.0) + couple
            W[r] = _solve_group(loss, penalty, k, target, W[r], step_inverse, inner_iter)
        QW = loss.apply(W)
        progress.path.append(loss.value(W, QW) + penalty.value(W))
        if progress.due() and progress.check(W):
            return progress.solution(W)


def _solve_group(
    loss: Any, penalty: SparseGroupPenalty, k: int, target: np.ndarray, W_k: np.ndarray, L_k: float, inner_iter: int
) -> np.ndarray:
    """Return group k after proximal gradient steps on it alone; ``target`` is C_k of eqs. 22-25."""
    if L_k <= 0:
        return np.zeros_like(W_k)
    zero = penalty.prox_group(k, target, 1.0)
    if not zero.any():  # the residual's correlation is inside the dual ball
        return zero
    r = penalty.rows[k]
    own = loss.gram[r, r]
    first = None
    for _ in range(inner_iter):
        gradient = own @ W_k - target + loss.beta * (W_k @ loss.coupling)
        W_next = penalty.prox_group(k, W_k - gradient / L_k, 1.0 / L_k)
        moved = float(np.abs(W_next - W_k).max(initial=0.0))
        W_k = W_next
        first = moved if first is None else first
        if moved <= 1e-2 * first:  # the other groups move next; more precision here would be wasted
            break
    return W_k
