"""How MLWSE is minimised in the paper's two ways: proximal gradient and block coordinate descent."""

from __future__ import annotations

import math

import numpy as np

from multilab.methods.stacking.certificates import Progress, Solution
from multilab.methods.stacking.objective import StackingLoss
from multilab.methods.stacking.penalty import SparseGroupPenalty

__all__ = ["accelerated_gradient", "block_descent"]


def accelerated_gradient(
    loss: StackingLoss,
    penalty: SparseGroupPenalty,
    start: np.ndarray,
    progress: Progress,
    *,
    restart: bool = True,
) -> Solution:
    """Minimise by FISTA: extrapolate, step along the gradient by 1/L, apply the proximal operator.

    Algorithm 1 of the MLWSE paper with the exact L, the proximal step as in its eq. (20) (eq. 17 lacks the
    1/L) and, unless ``restart`` is False, the momentum dropped whenever it points uphill (O'Donoghue and
    Candès 2015).
    """
    L = loss.lipschitz
    W = penalty.prox(start, 0.0)
    QW = loss.apply(W)
    W_before, QW_before = W, QW
    b_before = b = 1.0
    progress.spacing = 20  # a check costs about five of these iterations
    while True:
        momentum = (b_before - 1.0) / b
        V = W + momentum * (W - W_before)
        gradient = QW + momentum * (QW - QW_before) - loss.cross
        W_next = penalty.prox(V - gradient / L, 1.0 / L)
        if restart and np.vdot(V - W_next, W_next - W) > 0:
            b_before = b = 1.0
        else:
            b_before, b = b, 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * b * b))
        W_before, QW_before = W, QW
        W, QW = W_next, loss.apply(W_next)
        progress.path.append(loss.value(W, QW) + penalty.value(W))
        if progress.due() and progress.check(W):
            return progress.solution(W)


def block_descent(
    loss: StackingLoss,
    penalty: SparseGroupPenalty,
    start: np.ndarray,
    progress: Progress,
    *,
    inner_iter: int = 100,
) -> Solution:
    """Minimise over one classifier's block of weights after the other; the objective never rises.

    Algorithm 2 of the MLWSE paper, corrected: all of W is initialised once, the residual of the other blocks
    is recomputed for each block and is a matrix (eq. 22 puts norm bars around it), the label coupling is in
    the gradient (missing in eqs. 24-25), and the test for an empty block is made at W_k = 0, where it is
    exact and free of step sizes. An iteration is a sweep over all blocks.
    """
    W = penalty.prox(start, 0.0)
    curvature = [float(np.linalg.eigvalsh(loss.gram[r, r])[-1]) for r in penalty.rows]
    couple = loss.beta * float(loss.label_values[-1])
    while True:
        for k, r in enumerate(penalty.rows):
            target = loss.cross[r] - loss.gram[r] @ W + loss.gram[r, r] @ W[r]
            step_inverse = max(curvature[k], 0.0) + couple
            W[r] = _solve_block(loss, penalty, k, target, W[r], step_inverse, inner_iter)
        QW = loss.apply(W)
        progress.path.append(loss.value(W, QW) + penalty.value(W))
        if progress.due() and progress.check(W):
            return progress.solution(W)


def _solve_block(
    loss: StackingLoss,
    penalty: SparseGroupPenalty,
    k: int,
    target: np.ndarray,
    W_k: np.ndarray,
    L_k: float,
    inner_iter: int,
) -> np.ndarray:
    """Return block k after proximal gradient steps on it alone; ``target`` is C_k of eqs. 22-25."""
    if L_k <= 0:
        return np.zeros_like(W_k)
    zero = penalty.prox_block(k, target, 1.0)
    if not zero.any():  # the residual's correlation is inside the dual ball
        return zero
    r = penalty.rows[k]
    own = loss.gram[r, r]
    first = None
    for _ in range(inner_iter):
        gradient = own @ W_k - target + loss.beta * (W_k @ loss.coupling)
        W_next = penalty.prox_block(k, W_k - gradient / L_k, 1.0 / L_k)
        moved = float(np.abs(W_next - W_k).max(initial=0.0))
        W_k = W_next
        first = moved if first is None else first
        if moved <= 1e-2 * first:  # the other blocks move next; more precision here would be wasted
            break
    return W_k
