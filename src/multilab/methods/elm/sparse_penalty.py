"""The sparse half of the elastic net: single weights (l1) or whole training points (l21) pulled to zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["SparsePenalty"]


@dataclass(frozen=True, eq=False)
class SparsePenalty:
    """The penalty t |W|_1, or t sum_i ||W_i:||_2 over the rows.

    It has the methods of `multilab.methods.stacking.penalty.SparseGroupPenalty`, whose blocks of rows are few and
    long; here every row is a block.

    Attributes
    ----------
    strength : float
        t = lambda alpha.
    by_row : bool
        Whether rows are the blocks (l21).
    """

    strength: float
    by_row: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised."""
        return self.strength == 0

    def sizes(self, W: np.ndarray) -> np.ndarray:
        """Return the absolute values, or the norms of the rows as a column."""
        if self.by_row:
            return np.sqrt(np.einsum("ij,ij->i", W, W))[:, None]
        return np.abs(W)

    def value(self, W: np.ndarray) -> float:
        """Return the penalty at W."""
        return self.strength * float(self.sizes(W).sum())

    def prox(self, X: np.ndarray, step: float) -> np.ndarray:
        """Return argmin_W ||W - X||^2 / 2 + step * penalty(W): eq. (21), or the same for norms of rows."""
        threshold = step * self.strength
        if not self.by_row:
            return X - np.minimum(np.maximum(X, -threshold), threshold)
        sizes = self.sizes(X)
        return X * np.maximum(0.0, 1.0 - threshold / np.where(sizes > 0, sizes, 1.0))

    def prox_row(self, x: np.ndarray) -> np.ndarray:
        """Return :meth:`prox` with step 1 of one row, shape (p,): in a loop over rows half of the time is here."""
        if not self.by_row:
            return x - np.minimum(np.maximum(x, -self.strength), self.strength)
        size = math.sqrt(float(x @ x))
        return x * (1.0 - self.strength / size) if size > self.strength else np.zeros_like(x)

    def dual_scale(self, A: np.ndarray, at_most: float) -> float:
        """Return the largest s <= at_most with s A in the dual ball: no entry (row) of A larger than t."""
        largest = float(self.sizes(A).max(initial=0.0))
        return min(at_most, self.strength / largest) if largest > 0 else at_most

    def violation(self, W: np.ndarray, gradient: np.ndarray) -> float:
        """Return the largest entry (row norm) of the shortest vector in gradient + subdifferential(W)."""
        sizes = self.sizes(W)
        pull = gradient + self.strength * W / np.where(sizes > 0, sizes, 1.0)
        residual = np.where(sizes > 0, self.sizes(pull), self.sizes(gradient) - self.strength)
        return max(0.0, float(residual.max(initial=0.0)))
