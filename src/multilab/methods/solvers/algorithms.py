"""The algorithms for a smooth term and a penalty: ADMM, FISTA, block and coordinate descent."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from multilab.methods.solvers.certificates import Progress, Solution, relative_kkt, scaled_dual
from multilab.methods.solvers.penalties import RowSparsePenalty, SparseGroupPenalty
from multilab.methods.solvers.problem import Penalty, SmoothTerm

__all__ = ["LOSS_NEEDS", "PENALTY_NEEDS", "admm", "block_descent", "coordinate_descent", "fista"]

_RELAXATION = 1.6  # over-relaxation of ADMM; values from 1.5 to 1.8 are usual (Boyd et al. 2011, 3.4.3)


def admm(loss: SmoothTerm, penalty: Penalty, start: np.ndarray, progress: Progress) -> Solution:
    """Minimise by ADMM on f(W) + penalty(Z), W = Z (Boyd et al. 2011), returning Z with its exact zeros.

    Scores of several classifiers for the same label are nearly collinear, and kernel matrices nearly singular: Q has
    eigenvalues over ten orders of magnitude, and a gradient method needs thousands of steps. Here the step in W
    solves (Q + rho I) W = rhs by a division in the eigenbases, so that conditioning does not matter and rho may
    change freely.

    Notes
    -----
    The multiplier rho U always lies in the dual ball; V with Q V = B - rho U is offered as a dual point and
    often certifies the gap long before the residual of Z does. rho balances the two parts of that gap. It is adjusted
    ever less often, so that it settles and the convergence proof of ADMM applies.
    """
    curvature, cross = loss.curvature, loss.cross_rotated
    Z = _better_start(loss, penalty, penalty.prox(start, 0.0))
    Z_rot = loss.rotate(Z)
    rho = _first_rho(loss, penalty, Z)
    correlation = loss.rotate_back(cross - curvature * Z_rot)
    U = (correlation - penalty.prox(correlation, 1.0)) / rho
    U_rot = loss.rotate(U)
    adapt_at = 4
    while True:
        W_rot = (cross + rho * (Z_rot - U_rot)) / (curvature + rho)
        W = loss.rotate_back(W_rot)
        U = U + _RELAXATION * W + (1.0 - _RELAXATION) * Z
        U_rot = U_rot + _RELAXATION * W_rot + (1.0 - _RELAXATION) * Z_rot
        Z = penalty.prox(U, 1.0 / rho)
        Z_rot_before, Z_rot = Z_rot, loss.rotate(Z)
        U, U_rot = U - Z, U_rot - Z_rot
        progress.path.append(loss.value_rotated(Z_rot) + penalty.value(Z))
        if progress.due():
            U_rot = loss.rotate(U)  # stops the drift between the two copies
            if progress.check(Z, Z_rot, loss.apply_pinv(cross - rho * U_rot)):
                return progress.solution(Z)
        if len(progress.path) == adapt_at:
            adapt_at = int(1.2 * adapt_at) + 1
            factor = _balance(loss, Z_rot - W_rot, rho * (Z_rot - Z_rot_before))
            if not 1 / 1.2 < factor < 1.2:
                rho, U, U_rot = rho * factor, U / factor, U_rot / factor


def _better_start(loss: SmoothTerm, penalty: Penalty, start: np.ndarray) -> np.ndarray:
    """Return ``start`` or the minimiser along the steepest descent from zero, whichever is lower.

    Near alpha_max the latter is close to the solution and everything else is far.
    """
    descent = penalty.prox(loss.cross, 1.0)
    Q_descent, Q_start = loss.apply(descent), loss.apply(start)
    slope = float(np.vdot(loss.cross, descent)) - penalty.value(descent)
    bend = float(np.vdot(descent, Q_descent))
    if slope <= 0 or bend <= 0:
        return start
    step = slope / bend
    steepest = loss.value(step * descent, step * Q_descent) + step * penalty.value(descent)
    return step * descent if steepest < loss.value(start, Q_start) + penalty.value(start) else start


def _first_rho(loss: SmoothTerm, penalty: Penalty, Z: np.ndarray) -> float:
    """Return a rho that weighs ||Z||^2 like the penalty at Z."""
    if not Z.any():
        Z = loss.minimum_norm()
    square = float(np.vdot(Z, Z))
    size = penalty.value(Z)
    return 10.0 * size / square if size > 0 and square > 0 else 1e-3 * loss.lipschitz


def _balance(loss: SmoothTerm, split: np.ndarray, moved: np.ndarray) -> float:
    """Return the factor for rho that balances the two parts of the duality gap.

    For the dual point rho U the gap is ||(Z - W) - Q^+ rho (Z - Z_before)||_Q^2 / 2: the first part falls with
    rho, the second, measured in the norm of Q^+, rises with it.
    """
    primal = float(np.vdot(split, loss.curvature * split))
    dual = float(np.vdot(moved, loss.apply_pinv(moved)))
    if primal <= 0 or dual <= 0:
        return 1.0
    return min(10.0, max(0.1, (primal / dual) ** 0.25))


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


_BLOCK = 64  # rows of W per block: their Gram matrix stays in the cache


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
