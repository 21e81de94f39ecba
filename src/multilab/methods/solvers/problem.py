"""Composite problems min f(W) + penalty(W): what a smooth term and a penalty must provide."""

from typing import Any, Protocol

import numpy as np

from multilab.methods.base import MethodError

__all__ = ["Penalty", "SmoothTerm", "require"]


class SmoothTerm(Protocol):
    r"""Convex quadratic that is diagonal in orthonormal bases known in advance.

    .. math:: f(W) = \tfrac12 \langle W, Q W\rangle - \langle B, W\rangle + \tfrac t2

    A subclass provides the attributes, `rotate` and `rotate_back`; the rest follows. A class that does not inherit
    from this one must provide all of it.

    Attributes
    ----------
    cross, cross_rotated : ndarray of shape (p, q)
        B, as it is and in the bases.
    target_square : float
        t, the squared norm of the targets.
    curvature : ndarray, broadcastable to (p, q)
        Eigenvalues of Q, >= 0.
    null : float
        Curvature up to this value is rounding error.
    """

    cross: np.ndarray
    cross_rotated: np.ndarray
    target_square: float
    curvature: np.ndarray
    null: float

    def rotate(self, W: np.ndarray) -> np.ndarray:
        """Return W in the bases in which Q is diagonal."""
        ...

    def rotate_back(self, rotated: np.ndarray) -> np.ndarray:
        """Undo `rotate`."""
        ...

    @property
    def lipschitz(self) -> float:
        """Return the exact Lipschitz constant of the gradient, the largest curvature."""
        largest = float(self.curvature.max())
        return largest if largest > 0 else 1.0

    def apply(self, W: np.ndarray) -> np.ndarray:
        """Return Q W."""
        return self.rotate_back(self.curvature * self.rotate(W))

    def apply_pinv(self, rotated: np.ndarray) -> np.ndarray:
        """Apply the pseudo-inverse of Q in the bases; directions without curvature give zero."""
        curved = self.curvature > self.null
        return np.where(curved, rotated / np.where(curved, self.curvature, 1.0), 0.0)

    def value(self, W: np.ndarray, QW: np.ndarray) -> float:
        """Return f(W), given Q W."""
        return float(0.5 * np.vdot(W, QW) - np.vdot(self.cross, W) + 0.5 * self.target_square)

    def value_rotated(self, rotated: np.ndarray) -> float:
        """Return f at a matrix given in the bases."""
        half = 0.5 * self.curvature * rotated - self.cross_rotated
        return float(np.vdot(rotated, half) + 0.5 * self.target_square)

    def minimum_norm(self) -> np.ndarray:
        """Return the minimiser of f of least norm."""
        return self.rotate_back(self.apply_pinv(self.cross_rotated))


class Penalty(Protocol):
    """Convex penalty, positively homogeneous of degree 1, with an inexpensive proximal operator."""

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised and no weight is fixed to zero."""
        ...

    def value(self, W: np.ndarray) -> float:
        """Return the penalty at W."""
        ...

    def prox(self, X: np.ndarray, step: float) -> np.ndarray:
        """Return argmin_W ||W - X||_F^2 / 2 + step * penalty(W)."""
        ...

    def dual_scale(self, A: np.ndarray, at_most: float) -> float:
        """Return the largest s <= at_most with s A in the dual ball, where the proximal operator of step 1 is zero."""
        ...

    def kkt_residual(self, W: np.ndarray, gradient: np.ndarray) -> float:
        """Return the size of the shortest vector in gradient + subdifferential(W)."""
        ...


def require(term: Any, kind: type, *further: str) -> None:
    """Check that a term has all public members of ``kind`` and the ``further`` ones that an algorithm needs.

    Raises
    ------
    MethodError
        Naming the missing members.
    """
    names = [name for name in (*kind.__annotations__, *vars(kind)) if not name.startswith("_")]
    missing = [name for name in (*names, *further) if not hasattr(term, name)]
    if missing:
        raise MethodError(
            f"{type(term).__name__} is not a {kind.__name__} for this solver: it lacks {', '.join(missing)}"
        )
