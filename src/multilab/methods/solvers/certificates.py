"""Certificates of optimality: duality gap, KKT residual, and the stopping rule made of them."""

from dataclasses import dataclass, field

import numpy as np

from multilab.methods.solvers.problem import Penalty, SmoothTerm

__all__ = ["Progress", "Solution", "dual_value", "duality_gap", "relative_kkt", "scaled_dual"]


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a composite problem with its certificates.

    Attributes
    ----------
    W : ndarray of shape (p, q)
    n_iter : int
    objective_path : ndarray
        F after each iteration; the last one belongs to W.
    gap : float
        Upper bound of (F(W) - min F) / F(W).
    kkt : float
        KKT residual divided by max |B|.
    converged : bool
    """

    W: np.ndarray
    n_iter: int
    objective_path: np.ndarray
    gap: float
    kkt: float
    converged: bool


def dual_value(loss: SmoothTerm, penalty: Penalty, rotated: np.ndarray) -> float:
    """Return the dual objective at the best multiple of the residual of V, given in the eigenbases.

    With f(V) = ||T - A V||^2 / 2, T and A the targets and the operator that give Q = A^T A and B = A^T T (for MLWSE
    T = [Y; 0]), and r = T - A V, the dual at s r is s <r, T> - s^2 ||r||^2 / 2, subject to s times the correlation
    B - Q V lying in the dual ball; all three follow from Q and B. A lower bound of the minimum for every V.
    """
    linear = float(np.vdot(loss.cross_rotated, rotated))
    on_target = loss.target_square - linear
    square = on_target - linear + float(np.vdot(rotated, loss.curvature * rotated))
    correlation = loss.rotate_back(loss.cross_rotated - loss.curvature * rotated)
    return scaled_dual(penalty, correlation, on_target, square)


def scaled_dual(penalty: Penalty, correlation: np.ndarray, on_target: float, square: float) -> float:
    """Return the dual objective at the best feasible multiple of a residual r: a lower bound of the minimum.

    Parameters
    ----------
    correlation : ndarray of shape (p, q)
        A^T r.
    on_target, square : float
        <r, T> and ||r||^2.
    """
    if on_target <= 0 or square <= 0:
        return 0.0
    s = penalty.dual_scale(correlation, on_target / square)
    return s * on_target - 0.5 * s * s * square


def relative_kkt(penalty: Penalty, W: np.ndarray, gradient: np.ndarray, cross: np.ndarray) -> float:
    """Return the KKT residual at W divided by max |B|."""
    scale = float(np.abs(cross).max(initial=0.0))
    residual = penalty.kkt_residual(W, gradient)
    return residual / scale if scale > 0 else residual


def duality_gap(
    loss: SmoothTerm, penalty: Penalty, W: np.ndarray, *, corrected: bool = True, rotated: np.ndarray | None = None
) -> float:
    """Return an upper bound of F(W) - min F.

    Parameters
    ----------
    corrected : bool
        The residual of W alone (False) has to be shrunk until it is dual feasible, which makes the bound
        useless for small penalties. True first moves it: with A = B - Q W, it solves Q M = prox(A), the part
        of A outside the dual ball, and takes the residual of W + M.
    rotated : ndarray, optional
        W in the eigenbases, where it is known.
    """
    rotated = loss.rotate(W) if rotated is None else rotated
    objective = loss.value_rotated(rotated) + penalty.value(W)
    return objective - dual_value(loss, penalty, _corrected(loss, penalty, rotated) if corrected else rotated)


def _corrected(loss: SmoothTerm, penalty: Penalty, rotated: np.ndarray) -> np.ndarray:
    correlation = loss.rotate_back(loss.cross_rotated - loss.curvature * rotated)
    return rotated + loss.apply_pinv(loss.rotate(penalty.prox(correlation, 1.0)))


@dataclass(eq=False)
class Progress:
    """Progress of one run of a solver: F per iteration, the best dual value, and when to stop.

    Every dual value bounds the minimum, whichever iterate it came from, so the best one is kept. Checks cost
    a few iterations; they are made after 1, 2, 3, ... and then every ``spacing`` iterations.
    """

    loss: SmoothTerm
    penalty: Penalty
    tol: float
    kkt_tol: float
    max_iter: int
    spacing: int = 10
    path: list[float] = field(default_factory=list)
    best_dual: float = 0.0
    gap: float = float("inf")
    kkt: float = float("inf")
    _next: int = 1

    def due(self) -> bool:
        """Whether the iterate just recorded is to be checked."""
        done = len(self.path)
        if done < self._next and done < self.max_iter:
            return False
        self._next = max(done + 1, min(done + self.spacing, int(1.5 * done)))
        return True

    def check(self, W: np.ndarray, rotated: np.ndarray | None = None, dual_candidate: np.ndarray | None = None) -> bool:
        """Update gap and KKT residual at W, the iterate recorded last; return whether to stop.

        Parameters
        ----------
        rotated : ndarray, optional
            W in the eigenbases, where the solver has it.
        dual_candidate : ndarray, optional
            A matrix in the eigenbases whose residual the solver believes to be dual feasible.
        """
        if dual_candidate is not None:
            self._offer(dual_candidate)
        if not self.gap_met:
            self._offer(_corrected(self.loss, self.penalty, self.loss.rotate(W) if rotated is None else rotated))
        last = self.gap_met or len(self.path) >= self.max_iter
        if last or self.kkt_tol > 0 or self.tol == 0:  # elsewhere the residual decides nothing
            self.kkt = relative_kkt(self.penalty, W, self.loss.apply(W) - self.loss.cross, self.loss.cross)
        return last or self.converged

    @property
    def converged(self) -> bool:
        """Whether one of the two tolerances is met."""
        return self.gap_met or self.kkt <= self.kkt_tol

    @property
    def gap_met(self) -> bool:
        """Whether the gap is small enough; rounding can make it 0, which must not end a run with ``tol=0``."""
        return 0 < self.tol >= self.gap

    def solution(self, W: np.ndarray) -> Solution:
        """Return the result, W being the iterate checked last."""
        return Solution(W, len(self.path), np.array(self.path), self.gap, self.kkt, self.converged)

    def _offer(self, rotated: np.ndarray) -> None:
        self.best_dual = max(self.best_dual, dual_value(self.loss, self.penalty, rotated))
        objective = self.path[-1]
        self.gap = max(0.0, objective - self.best_dual) / objective if objective > 0 else 0.0
