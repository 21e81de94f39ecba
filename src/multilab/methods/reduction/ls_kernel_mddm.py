"""Kernel MDDM by least squares, plain and with a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.reduction.exact_equations import equations
from multilab.methods.reduction.kernel_reducer import ONE_DIMENSION, KernelReducer
from multilab.methods.reduction.label_problem import centred_labels, group_means, label_directions
from multilab.methods.reduction.regression import Regression, chosen_eta, regressions, relative_residual
from multilab.methods.reduction.training_kernel import equal_rows

__all__ = ["LSKernelMDDM"]

_SOLVED = 1e-8


class LSKernelMDDM(KernelReducer):
    """LSkMDDM (eta = 0) and rLSkMDDM (eta > 0).

    Kernel MDDM asks for the P that makes K P depend most on the labels by the Hilbert-Schmidt independence criterion.
    Its eigenproblem K (H L H) K p = lambda K K p (1) is solved in two steps: the label problem H L H b = lambda b (2)
    by an eigenproblem of c labels, then K p = b by least squares (3), with a penalty eta |p|^2 in rLSkMDDM (5).

    Parameters
    ----------
    n_components : int or None, default=None
        Dimensions, at most the rank of the centred label matrix, which None takes.
    gamma : float or {"median", "scale", "auto"}, default="median"
        Of exp(-gamma |x - x'|^2). "median" is 1 / (2 s^2), s the median distance of two training rows (of 4096 of them
        where there are more).
    gamma_factor : float, default=1.0
        Factor on gamma; 2 is the other reading of "standard deviation", exp(-|x - x'|^2 / s^2).
    center_kernel : bool, default=False
        Whether H K H stands for K, with the new rows centred to match. The paper has no centring.
    eta : float or sequence of float, default=0.0
        Strength of the penalty; of several the one with the least squared error in cross-validation.
    penalty : {"l2", "rkhs"}, default="l2"
        eta |p|^2 as printed, or eta p^T K p (kernel ridge regression).
    solver : {"cholesky", "cg", "lsqr"}, default="cholesky"
        With eta = 0, "cholesky" is the exact solution: of one row per group of equal rows or, where these make K
        numerically singular, by the eigendecomposition. "lsqr" is the paper's; a low ``max_iter`` regularises. "cg" is
        for many rows.
    range_projection : bool, default=True
        Whether labels are first projected on the range of K, by the mean over equal rows. Without it Theorem 1 (least
        squares = kMDDM) fails where equal rows have different labels.
    tol : float, default=1e-10
        Of "cg" and "lsqr".
    max_iter : int, default=1000
        Of "cg" and "lsqr".
    cv : int, default=3
        Folds of the choice of eta.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        P.
    eigenvalues_ : ndarray of shape (r,)
        Of the label problem, falling.
    eta_ : float
        The strength taken.
    residual_ : float
        |K P - B| / |B|.
    n_iter_ : int
        Iterations; 0 of "cholesky".
    gamma_, n_features_in_

    Notes
    -----
    In print (1) and (2) bear the same number, and the formulas are missing; they are reconstructed from the text. The
    signs of the columns are fixed by the labels alone.

    References
    ----------
    J. Qiu. The LSkMDDM paper (Suzhou University of Science and Technology): (1) to (5), Theorem 1, Lemma 1.
    """

    _small: ClassVar[dict[str, Any]] = {"n_components": 3, "eta": [0.01, 1.0]}
    _expected_failed_checks: ClassVar[dict[str, str]] = ONE_DIMENSION

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        center_kernel: bool = False,
        eta: float | Sequence[float] = 0.0,
        penalty: Literal["l2", "rkhs"] = "l2",
        solver: Literal["cholesky", "cg", "lsqr"] = "cholesky",
        range_projection: bool = True,
        tol: float = 1e-10,
        max_iter: int = 1000,
        cv: int = 3,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.center_kernel = center_kernel
        self.eta = eta
        self.penalty = penalty
        self.solver = solver
        self.range_projection = range_projection
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        how = Regression(self.solver, self.penalty, self.tol, self.max_iter)
        etas = [float(eta) for eta in np.atleast_1d(self.eta)]
        if not etas or min(etas) < 0 or (len(etas) > 1 and min(etas) == 0):
            raise MethodError(f"eta={self.eta}: give 0, a positive number, or positive numbers to choose from")
        groups, Q = equal_rows(X), centred_labels(Y)
        if etas == [0.0] and self.solver == "cholesky":
            system = equations(K, groups)
            B = self._targets(system.project(Q) if self.range_projection else Q)
            self.eta_, self.n_iter_, P = 0.0, 0, system.solve(B)
        else:
            B = self._targets(group_means(Q, groups)[groups] if self.range_projection else Q)
            self.eta_ = etas[0] if len(etas) == 1 else chosen_eta(how, K, B, etas, self.cv)
            ((P, self.n_iter_),) = regressions(how, K, B, [self.eta_])
        self.residual_ = relative_residual(K, P, B)
        self._B = B
        return P

    def _embedding(self, K: np.ndarray) -> np.ndarray:
        # Solved exactly, K P is B: rows with equal labels coincide, and rounding would order them at random.
        return self._B if self.residual_ < _SOLVED else super()._embedding(K)

    def _targets(self, Q: np.ndarray) -> np.ndarray:
        """Return what K P is to be, shape (n, r), from the centred labels."""
        directions = label_directions(Q, self.n_components)
        self.eigenvalues_ = directions.eigenvalues
        return directions.B
