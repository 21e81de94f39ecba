# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Accelerated proximal gradient method (FISTA)."""

import math

import numpy as np

from multilab.methods.solvers.certificates import Progress, Solution
from multilab.methods.solvers.problem import Penalty, SmoothTerm

__all__ = ["fista"]


def fista(
    loss: SmoothTerm, penalty: Penalty, start: np.ndarray, progress: Progress, *, restart: bool = True
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
