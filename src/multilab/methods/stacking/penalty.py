"""What MLWSE minimises, its penalty: entries and whole blocks of weights pulled to exact zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

__all__ = ["SparseGroupPenalty", "soft_threshold", "strength_max"]


def soft_threshold(X: np.ndarray, threshold: float) -> np.ndarray:
    """Move every entry towards zero by ``threshold``, not past it (the MLWSE paper, eq. 20)."""
    return X - np.clip(X, -threshold, threshold)


@dataclass(frozen=True, eq=False)
class SparseGroupPenalty:
    """The penalty a |W|_1 + sum_k b_k ||W_k||_F, over blocks W_k of rows; b = 0 is the plain L1 norm.

    Attributes
    ----------
    entry : float
        a >= 0. The paper's alpha (L1), or alpha lambda (L21; its eq. 8 lacks the lambda of eq. 9).
    block : ndarray of shape (m,)
        b_k >= 0: (1 - alpha) lambda c_k.
    rows : sequence of slice
        Rows of each block; together all rows.
    support : ndarray of bool (p, q) or None
        Entries that may differ from zero; None for all.
    """

    entry: float
    block: np.ndarray
    rows: Sequence[slice]
    support: np.ndarray | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised and no entry is fixed to zero."""
        return self.entry == 0 and not self.block.any() and self.support is None

    def times(self, strength: float) -> Self:
        """Return the same penalty multiplied by ``strength``."""
        return replace(self, entry=strength * self.entry, block=strength * self.block)

    def value(self, W: np.ndarray) -> float:
        """Return the penalty at W."""
        total = self.entry * float(np.abs(W).sum())
        if self.block.any():
            total += sum(b * float(np.linalg.norm(W[r])) for b, r in zip(self.block, self.rows, strict=True))
        return total

    def prox(self, X: np.ndarray, step: float) -> np.ndarray:
        """Return argmin_W ||W - X||^2 / 2 + step * penalty(W): soft threshold, then shrink each block."""
        shrunk = soft_threshold(self._free(X, slice(None)), step * self.entry)
        if self.block.any():
            for k, r in enumerate(self.rows):
                shrunk[r] *= self._shrinkage(shrunk[r], step * self.block[k])
        return shrunk

    def prox_block(self, k: int, X: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal point of block k alone, X of shape (rows of k, q)."""
        shrunk = soft_threshold(self._free(X, self.rows[k]), step * self.entry)
        return shrunk * self._shrinkage(shrunk, step * self.block[k])

    def dual_scale(self, A: np.ndarray, at_most: float) -> float:
        """Return the largest s <= at_most with s A in the dual ball: all ||soft(s A_k, a)||_F <= b_k."""
        A = self._free(A, slice(None))
        if not self.block.any():
            return min(at_most, _ratio(self.entry, float(np.abs(A).max(initial=0.0))))
        blocks = zip(self.block, self.rows, strict=True)
        return min(_largest_scale(A[r], self.entry, float(b), at_most) for b, r in blocks)

    def violation(self, W: np.ndarray, gradient: np.ndarray) -> float:
        """Return by how much the optimality conditions fail (KKT residual), in units of the gradient.

        Largest entry of the shortest vector in gradient + subdifferential(W), for an inactive block its norm.
        """
        worst = 0.0
        for k, r in enumerate(self.rows):
            q, w = self._free(gradient[r], r), W[r]
            norm = float(np.linalg.norm(w))
            if norm == 0 and self.block[k] > 0:
                worst = max(worst, float(np.linalg.norm(soft_threshold(q, self.entry))) - self.block[k])
                continue
            pull = q + (self.block[k] / norm) * w if norm > 0 else q
            at_zero = np.abs(soft_threshold(pull, self.entry))
            elsewhere = np.abs(pull + self.entry * np.sign(w))
            residual = np.where(self._free(w, r) != 0, elsewhere, at_zero)
            worst = max(worst, float(residual.max(initial=0.0)))
        return worst

    def _free(self, X: np.ndarray, rows: slice) -> np.ndarray:
        return X if self.support is None else np.where(self.support[rows], X, 0.0)

    @staticmethod
    def _shrinkage(T: np.ndarray, threshold: float) -> float:
        norm = float(np.linalg.norm(T))
        return max(0.0, 1.0 - threshold / norm) if norm > 0 else 0.0


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


def strength_max(B: np.ndarray, unit: SparseGroupPenalty) -> float:
    """Return the smallest t for which W = 0 is optimal under t times the penalty ``unit``, given B = S^T Y.

    For the L1 norm max |B|; with blocks the root of a monotone function, by bisection to full precision. It
    is infinite when some block is not penalised at all.
    """
    if unit.support is not None:
        B = np.where(unit.support, B, 0.0)
    return max(_block_strength(B[r], unit.entry, float(b)) for b, r in zip(unit.block, unit.rows, strict=True))


def _block_strength(B: np.ndarray, a: float, b: float) -> float:
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
