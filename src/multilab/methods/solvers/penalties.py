"""Sparse group lasso and row-sparse penalties."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

__all__ = ["RowSparsePenalty", "SparseGroupPenalty", "soft_threshold"]


def soft_threshold(X: np.ndarray, threshold: float) -> np.ndarray:
    """Return the soft thresholding of every entry (the MLWSE paper, eq. 20)."""
    return X - np.clip(X, -threshold, threshold)


@dataclass(frozen=True, eq=False)
class SparseGroupPenalty:
    """Sparse group lasso penalty a |W|_1 + sum_k b_k ||W_k||_F over groups W_k of rows; b = 0 is the L1 norm.

    Attributes
    ----------
    l1 : float
        a >= 0. The paper's alpha (L1), or alpha lambda (L21; its eq. 8 lacks the lambda of eq. 9).
    group : ndarray of shape (m,)
        b_k >= 0: (1 - alpha) lambda c_k.
    rows : sequence of slice
        Rows of each group; together all rows.
    support : ndarray of bool (p, q) or None
        Entries that may differ from zero; None for all.
    """

    l1: float
    group: np.ndarray
    rows: Sequence[slice]
    support: np.ndarray | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised and no entry is fixed to zero."""
        return self.l1 == 0 and not self.group.any() and self.support is None

    def scaled(self, strength: float) -> Self:
        """Return the same penalty multiplied by ``strength``."""
        return replace(self, l1=strength * self.l1, group=strength * self.group)

    def value(self, W: np.ndarray) -> float:
        """Return the penalty at W."""
        total = self.l1 * float(np.abs(W).sum())
        if self.group.any():
            total += sum(b * float(np.linalg.norm(W[r])) for b, r in zip(self.group, self.rows, strict=True))
        return total

    def prox(self, X: np.ndarray, step: float) -> np.ndarray:
        """Return argmin_W ||W - X||^2 / 2 + step * penalty(W): soft thresholding, then each group is shrunk."""
        shrunk = soft_threshold(self._free(X, slice(None)), step * self.l1)
        if self.group.any():
            for k, r in enumerate(self.rows):
                shrunk[r] *= self._shrinkage(shrunk[r], step * self.group[k])
        return shrunk

    def prox_group(self, k: int, X: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal point of group k alone, X of shape (rows of k, q)."""
        shrunk = soft_threshold(self._free(X, self.rows[k]), step * self.l1)
        return shrunk * self._shrinkage(shrunk, step * self.group[k])

    def dual_scale(self, A: np.ndarray, at_most: float) -> float:
        """Return the largest s <= at_most with s A in the dual ball: all ||soft(s A_k, a)||_F <= b_k."""
        A = self._free(A, slice(None))
        if not self.group.any():
            return min(at_most, _ratio(self.l1, float(np.abs(A).max(initial=0.0))))
        groups = zip(self.group, self.rows, strict=True)
        return min(_largest_scale(A[r], self.l1, float(b), at_most) for b, r in groups)

    def kkt_residual(self, W: np.ndarray, gradient: np.ndarray) -> float:
        """Return the largest entry of the shortest vector in gradient + subdifferential(W).

        For a group whose weights are all zero the norm of its part of the vector counts.
        """
        worst = 0.0
        for k, r in enumerate(self.rows):
            q, w = self._free(gradient[r], r), W[r]
            norm = float(np.linalg.norm(w))
            if norm == 0 and self.group[k] > 0:
                worst = max(worst, float(np.linalg.norm(soft_threshold(q, self.l1))) - self.group[k])
                continue
            pull = q + (self.group[k] / norm) * w if norm > 0 else q
            at_zero = np.abs(soft_threshold(pull, self.l1))
            elsewhere = np.abs(pull + self.l1 * np.sign(w))
            residual = np.where(self._free(w, r) != 0, elsewhere, at_zero)
            worst = max(worst, float(residual.max(initial=0.0)))
        return worst

    def alpha_max(self, B: np.ndarray) -> float:
        """Return the smallest t for which W = 0 is optimal under t times this penalty, given B = S^T Y.

        For the L1 norm max |B|; with groups the root of a monotone function, by bisection to full precision. It is
        infinite when some group is not penalised at all.
        """
        B = self._free(B, slice(None))
        return max(_group_alpha_max(B[r], self.l1, float(b)) for b, r in zip(self.group, self.rows, strict=True))

    def _free(self, X: np.ndarray, rows: slice) -> np.ndarray:
        return X if self.support is None else np.where(self.support[rows], X, 0.0)

    @staticmethod
    def _shrinkage(T: np.ndarray, threshold: float) -> float:
        norm = float(np.linalg.norm(T))
        return max(0.0, 1.0 - threshold / norm) if norm > 0 else 0.0


@dataclass(frozen=True, eq=False)
class RowSparsePenalty:
    """Row-sparse penalty t sum_i ||W_i:||_2 (L21), or t |W|_1.

    The special case of `SparseGroupPenalty` with one group per row, without a loop over the groups.

    Attributes
    ----------
    strength : float
        t = lambda alpha.
    by_row : bool
        Whether the rows are the groups (L21).
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
        """Return argmin_W ||W - X||^2 / 2 + step * penalty(W): eq. (21) of the ML-EKELM paper, or row by row."""
        threshold = step * self.strength
        if not self.by_row:
            return X - np.minimum(np.maximum(X, -threshold), threshold)
        sizes = self.sizes(X)
        return X * np.maximum(0.0, 1.0 - threshold / np.where(sizes > 0, sizes, 1.0))

    def prox_row(self, x: np.ndarray) -> np.ndarray:
        """Return :meth:`prox` with step 1 of one row, shape (p,): half of the time of a loop over rows."""
        if not self.by_row:
            return x - np.minimum(np.maximum(x, -self.strength), self.strength)
        size = math.sqrt(float(x @ x))
        return x * (1.0 - self.strength / size) if size > self.strength else np.zeros_like(x)

    def dual_scale(self, A: np.ndarray, at_most: float) -> float:
        """Return the largest s <= at_most with s A in the dual ball: no entry (row) of A larger than t."""
        largest = float(self.sizes(A).max(initial=0.0))
        return min(at_most, self.strength / largest) if largest > 0 else at_most

    def kkt_residual(self, W: np.ndarray, gradient: np.ndarray) -> float:
        """Return the largest entry (row norm) of the shortest vector in gradient + subdifferential(W)."""
        sizes = self.sizes(W)
        pull = gradient + self.strength * W / np.where(sizes > 0, sizes, 1.0)
        residual = np.where(sizes > 0, self.sizes(pull), self.sizes(gradient) - self.strength)
        return max(0.0, float(residual.max(initial=0.0)))

    def alpha_max(self, B: np.ndarray) -> float:
        """Return the smallest t for which W = 0 is optimal under t times this penalty, given B = S^T Y."""
        return _ratio(float(self.sizes(B).max(initial=0.0)), self.strength)


def _largest_scale(A: np.ndarray, a: float, b: float, at_most: float) -> float:
    """Return the largest s <= at_most with ||soft(s A, a)||_F <= b, from below.

    The excess over b is convex in s: tangents at its right end and chords close in on the root from both
    sides.
    """
    low, high = 0.0, at_most
    below = -b
    for _ in range(50):
        outside = soft_threshold(high * A, a)
        norm = float(np.linalg.norm(outside))
        above = norm - b
        if above <= 0:
            return high
        low = max(low, low - below * (high - low) / (above - below), _ratio(a, float(np.abs(A).max())))
        below = min(0.0, float(np.linalg.norm(soft_threshold(low * A, a))) - b)
        tangent = high - above * norm / float(np.vdot(outside, A))
        if high - low <= 1e-15 * high or not low < tangent < high:
            break
        high = tangent
    return low


def _group_alpha_max(B: np.ndarray, a: float, b: float) -> float:
    largest, norm = float(np.abs(B).max(initial=0.0)), float(np.linalg.norm(B))
    if largest == 0:
        return 0.0
    low, high = 0.0, min(_ratio(largest, a), _ratio(norm, b))
    if b == 0 or a == 0:
        return high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if np.linalg.norm(soft_threshold(B, middle * a)) <= middle * b:
            high = middle
        else:
            low = middle
    return high


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else float("inf")
