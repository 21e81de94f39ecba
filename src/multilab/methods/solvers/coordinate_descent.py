# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Cyclic coordinate descent over the rows of W, each row for all labels at once."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from multilab.methods.solvers.certificates import Solution, relative_kkt, scaled_dual
from multilab.methods.solvers.penalties import RowSparsePenalty

__all__ = ["coordinate_descent"]

_BLOCK = 64


def coordinate_descent(
    design: np.ndarray,
    targets: np.ndarray,
    penalty: RowSparsePenalty,
    ridge: float,
    *,
    max_sweeps: int,
    tol: float,
    stop: Literal["gap", "step"] = "gap",
    scale: np.ndarray | float = 1.0,
    watch: Callable[[np.ndarray, float], object] | None = None,
) -> Solution:
    r"""Minimise ||Y - D W||_F^2 / 2 + penalty(W) + r ||W||_F^2 / 2 from W = 0, row after row of W.

    Row j becomes prox(D_j^T R^(j)) / (||D_j||^2 + r) with R^(j) the residual without row j: eq. (20) of the ML-EKELM
    paper with the squared norm of the column instead of its 1 and r = 2 lambda (1 - alpha), as in scikit-learn's
    ``MultiTaskElasticNet``.

    Parameters
    ----------
    design : ndarray of shape (n, k)
    targets : ndarray of shape (n, p)
    ridge : float
        r.
    max_sweeps : int
        Bound on the sweeps over all rows of W.
    tol : float
    stop : {"gap", "step"}
        "gap": when the relative duality gap is at most ``tol``. "step", scikit-learn's rule: when the largest
        change of a sweep is at most ``tol`` times the largest weight, and the gap ``tol`` ||Y||_F^2.
    scale : float or ndarray of shape (p,)
        By which the columns of W are divided before "step" compares them.
    watch : callable, optional
        Called with W, which it must neither change nor keep, and the objective there: at W = 0 and after each sweep.

    Notes
    -----
    The order is strictly cyclic; but R is brought up to date after each block of 64 rows only, and inside
    the block the gradient follows from its small Gram matrix. So nearly all work is in matrix products.
    """
    columns = np.ascontiguousarray(design.T)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(columns), _BLOCK)]
    grams = [columns[block] @ columns[block].T for block in blocks]
    W = np.zeros((len(columns), targets.shape[1]))
    residual = targets.copy()
    target_square = float(np.vdot(targets, targets))
    correlation = cross = columns @ targets
    path: list[float] = []
    best_dual, converged = 0.0, False
    if watch:
        watch(W, 0.5 * target_square)
    while len(path) < max_sweeps and not converged:
        change = 0.0
        for block, gram in zip(blocks, grams, strict=True):
            step = _descend(W[block], columns[block] @ residual, gram, penalty, ridge)
            if step.any():
                residual -= columns[block].T @ step
                change = max(change, float(np.abs(step / scale).max()))
        correlation = columns @ residual - ridge * W
        square = float(np.vdot(residual, residual)) + ridge * float(np.vdot(W, W))
        path.append(0.5 * square + penalty.value(W))
        if watch:
            watch(W, path[-1])
        best_dual = max(best_dual, scaled_dual(penalty, correlation, float(np.vdot(targets, residual)), square))
        gap = max(0.0, path[-1] - best_dual)
        if stop == "gap":
            converged = tol > 0 and gap <= tol * path[-1]
        else:
            small = change <= tol * float(np.abs(W / scale).max(initial=0.0))
            converged = small and gap <= tol * target_square
    relative = gap / path[-1] if path[-1] > 0 else 0.0
    kkt = relative_kkt(penalty, W, -correlation, cross)
    return Solution(W, len(path), np.array(path), relative, kkt, converged)


def _descend(
    W: np.ndarray, correlation: np.ndarray, gram: np.ndarray, penalty: RowSparsePenalty, ridge: float
) -> np.ndarray:
    """Update the rows of a block in place and return the change; ``correlation`` is D_j^T R before it."""
    step = np.zeros_like(W)
    for i, norm in _curved(gram):
        old = W[i]
        pull = correlation[i] - gram[i, :i] @ step[:i] + norm * old
        new = penalty.prox_row(pull) / (norm + ridge)
        step[i] = new - old
        W[i] = new
    return step


def _curved(gram: np.ndarray) -> Iterator[tuple[int, float]]:
    """Give the rows whose column of D is not zero, with its squared norm."""
    for i, norm in enumerate(gram.diagonal().tolist()):
        if norm > 0:
            yield i, norm
