# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Elastic net on a kernel matrix, in the eigenbasis for all labels at once."""

import numpy as np

from multilab.methods.elm._kernel_loss import KernelLoss
from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.solvers.solve import solve
from multilab.methods.solvers.working_sets import solve_sparse


def elastic_net(
    loss: KernelLoss,
    lam: float,
    alpha: float,
    *,
    by_row: bool = False,
    tol: float = 1e-4,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
) -> Solution:
    """Minimise loss + lam (alpha |W| + (1 - alpha) tr(W^T R W)) to a relative duality gap of ``tol``.

    ADMM in the eigenbasis, where each least squares step is exact, on a few rows of W where that is enough; alpha = 0
    is a closed form.

    Parameters
    ----------
    by_row : bool
        Whether |W| is the sum of the norms of the rows.
    start : ndarray of shape (n, p), optional
        Starting point; not changed.
    """
    penalty = RowSparsePenalty(lam * alpha, by_row)
    with_ridge = loss.with_ridge(2.0 * lam * (1.0 - alpha))
    begin = np.zeros_like(loss.cross) if start is None else start
    if penalty.is_zero or tol == 0 or penalty.dual_scale(loss.cross, 1.0) >= 1.0:
        return solve(with_ridge, penalty, begin, tol=tol, kkt_tol=0.0, max_iter=max_iter)
    return solve_sparse(with_ridge, penalty, begin, tol=tol, max_iter=max_iter)
