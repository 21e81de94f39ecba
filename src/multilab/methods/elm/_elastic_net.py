"""Elastic net on a kernel matrix, diagonal in its eigenbasis: the problem of ML-EKELM and its solution."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from scipy.linalg import eigh

from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.penalties import RowSparsePenalty
from multilab.methods.solvers.solve import Restrictable, solve, solve_sparse

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class KernelLoss(Restrictable):
    r"""Smooth term of eq. (18) of the ML-EKELM paper, for all labels at once.

    .. math:: f(\beta) = \tfrac s2 \|Y - \Omega\beta\|_F^2 + \tfrac r2 \operatorname{tr}(\beta^T R \beta)
              = \tfrac12\langle\beta, Q\beta\rangle - \langle B, \beta\rangle + \tfrac s2\|Y\|_F^2

    with R = I (ridge "frobenius", the paper) or R = Omega ("rkhs"), Q = s Omega^2 + r R and B = s Omega Y. In
    the eigenbasis of Omega all are diagonal, so that one eigendecomposition serves every r, every penalty and
    every label.

    Attributes
    ----------
    vectors : ndarray (n, n)
        Eigenvectors, in columns.
    squares : ndarray (n, 1)
        Eigenvalues of s Omega^2.
    ridge_values : ndarray (n, 1)
        Eigenvalues of R.
    null : float
        Curvature up to here is rounding.
    cross, cross_rotated : ndarray (n, p)
        B, as it is and in the eigenbasis.
    target_square : float
        s ||Y||_F^2.
    curvature : ndarray (n, 1)
        Eigenvalues of Q.
    """

    vectors: np.ndarray
    squares: np.ndarray
    ridge_values: np.ndarray
    null: float
    cross: np.ndarray
    cross_rotated: np.ndarray
    target_square: float
    curvature: np.ndarray

    @classmethod
    def from_kernel(
        cls,
        omega: np.ndarray,
        targets: np.ndarray,
        *,
        ridge: Literal["frobenius", "rkhs"] = "frobenius",
        scale: float = 1.0,
    ) -> Self:
        """Build the loss, r = 0, from a positive semidefinite Omega (n, n), which is not changed, and Y (n, p)."""
        values, vectors = eigh(omega, driver="evd", check_finite=False)
        values = np.maximum(values, _EPS * values[-1])[:, None]  # positive also where it is rounding
        rotated = vectors.T @ targets
        return cls(
            vectors,
            scale * values**2,
            values if ridge == "rkhs" else np.ones_like(values),
            scale * float(1e-12 * values[-1, 0]) ** 2,
            scale * (omega @ targets),
            scale * values * rotated,
            scale * float(np.vdot(targets, targets)),
            scale * values**2,
        )

    @classmethod
    def from_design(cls, design: np.ndarray, targets: np.ndarray, *, scale: float = 1.0) -> Self:
        """Build the loss, r = 0 and R = I, from any design (n, k) instead of Omega, such as a centred one."""
        values, vectors = eigh(design.T @ design, driver="evd", check_finite=False)
        values = scale * np.maximum(values, 0.0)[:, None]
        cross = scale * (design.T @ targets)
        return cls(
            vectors,
            values,
            np.ones_like(values),
            1e-13 * float(values[-1, 0]),
            cross,
            vectors.T @ cross,
            scale * float(np.vdot(targets, targets)),
            values,
        )

    def with_ridge(self, r: float) -> Self:
        """Return the same loss with another r >= 0; nothing is recomputed but n sums."""
        return replace(self, curvature=self.squares + r * self.ridge_values)

    def restricted(self, rows: np.ndarray) -> Self:
        """Return the loss of the given rows of W alone, the others being zero, r included and not to be changed."""
        basis = self.vectors[rows]
        values, vectors = eigh((basis * self.curvature.T) @ basis.T, driver="evd", check_finite=False)
        values = np.maximum(values, 0.0)[:, None]
        cross = self.cross[rows]
        return replace(
            self,
            vectors=vectors,
            squares=values,
            ridge_values=np.zeros_like(values),
            null=1e-13 * float(values[-1, 0]),
            cross=cross,
            cross_rotated=vectors.T @ cross,
            curvature=values,
        )

    def rotate(self, W: np.ndarray) -> np.ndarray:
        """Return W in the eigenbasis."""
        return self.vectors.T @ W

    def rotate_back(self, rotated: np.ndarray) -> np.ndarray:
        """Undo :meth:`rotate`."""
        return self.vectors @ rotated


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
