# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Decision stumps: every split of one feature, sorted once, scored for many weightings at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

_BLOCK_ENTRIES = 2**18  # sums held at a time: 2 MiB, so that they stay in the cache


@dataclass(frozen=True)
class StumpSplit:
    """The two sides x_feature <= threshold and x_feature > threshold."""

    feature: int
    threshold: float

    def left(self, X: Any) -> np.ndarray:
        """Return for each row of X whether it is on the first side."""
        column = X[:, [self.feature]]
        values = column.toarray() if sp.issparse(column) else column
        return values.ravel() <= self.threshold


class SplitTable:
    """All splits of the features of X between neighbouring different values.

    Rows with equal values of a feature form a block; the blocks of all features are kept in order, and a split is
    between two blocks of one feature. A sum over the rows left of every split is then one product of a sparse 0/1
    matrix (blocks x rows) and one cumulative sum. Zeros are not stored, dense or sparse: the block of zeros is what
    the other blocks of the feature leave.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Attributes
    ----------
    n_splits : int
    """

    def __init__(self, X: Any) -> None:
        columns = sp.csc_array(X)
        columns.eliminate_zeros()
        n, d = columns.shape
        stored = np.diff(columns.indptr)
        feature = np.repeat(np.arange(d), stored)
        order = np.lexsort((columns.data, feature))
        value, row = columns.data[order], columns.indices[order]
        fresh = np.ones(len(value), dtype=bool)
        fresh[1:] = (value[1:] != value[:-1]) | (feature[1:] != feature[:-1])
        with_zeros = np.flatnonzero(stored < n)
        start = np.flatnonzero(fresh)
        block_feature = np.concatenate([feature[start], with_zeros])
        block_value = np.concatenate([value[start], np.zeros(len(with_zeros))])
        order = np.lexsort((block_value, block_feature))
        # blocks in order; the blocks of zeros hold no rows
        size = np.concatenate([np.diff(np.append(start, len(value))), np.zeros(len(with_zeros), dtype=np.intp)])[order]
        beginning = np.concatenate([start, np.zeros(len(with_zeros), dtype=np.intp)])[order]
        entries = np.repeat(beginning - np.cumsum(size) + size, size) + np.arange(len(value))
        self._rows = row[entries]
        self._bounds = np.concatenate([[0], np.cumsum(size)])
        self._feature, self._value = block_feature[order], block_value[order]
        self._zero = np.full(d, -1)
        self._zero[with_zeros] = np.flatnonzero(order >= len(start))
        self._starts = np.searchsorted(self._feature, np.arange(d + 1))
        self._n = n
        self.n_splits = int(np.maximum(np.diff(self._starts) - 1, 0).sum())

    def best(
        self, weights: np.ndarray, loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> tuple[StumpSplit | None, float]:
        """Return the split of the smallest loss, the first of equals, and that loss.

        Parameters
        ----------
        weights : ndarray of shape (n, r)
            What is summed over the rows of each side.
        loss : callable
            Of the sums on the left, shape (m, r), and of all rows, shape (r,); returns shape (m,).

        Returns
        -------
        StumpSplit or None
            None where no feature has two values.
        """
        total = weights.sum(axis=0)
        best, smallest = -1, np.inf
        for first, last in self._feature_ranges(weights.shape[1]):
            blocks, left = self._left_sums(weights, total, first, last)
            if len(blocks):
                losses = loss(left, total)
                at = int(np.argmin(losses))
                if losses[at] < smallest:
                    best, smallest = int(blocks[at]), float(losses[at])
        if best < 0:
            return None, smallest
        return StumpSplit(int(self._feature[best]), self._threshold(best)), smallest

    def _feature_ranges(self, r: int) -> list[tuple[int, int]]:
        """Return ranges of features whose sums fit the cache, at least one feature each."""
        cuts, last = [0], len(self._starts) - 1
        while cuts[-1] < last:
            limit = self._starts[cuts[-1]] + max(1, _BLOCK_ENTRIES // r)
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(self._starts, limit, side="right")) - 1))
        return list(zip(cuts[:-1], [min(c, last) for c in cuts[1:]], strict=True))

    def _left_sums(
        self, weights: np.ndarray, total: np.ndarray, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks of features first..last-1 that have a right neighbour, and the sums up to each."""
        begin, end = self._starts[first], self._starts[last]
        bounds = self._bounds[begin : end + 1]
        rows = self._rows[bounds[0] : bounds[-1]]
        ones = np.ones(len(rows))
        members = sp.csr_array((ones, rows, bounds - bounds[0]), shape=(end - begin, self._n))
        sums = members @ weights
        feature = self._feature[begin:end] - first
        starts = self._starts[first:last] - begin
        filled = np.flatnonzero(self._starts[first + 1 : last + 1] - begin > starts)
        by_feature = np.zeros((last - first, weights.shape[1]))
        by_feature[filled] = np.add.reduceat(sums, starts[filled], axis=0)
        zero = self._zero[first:last]
        has_zero = np.flatnonzero(zero >= 0)
        sums[zero[has_zero] - begin] = total - by_feature[has_zero]
        by_feature[has_zero] = total
        left = np.cumsum(sums, axis=0)
        before = np.zeros_like(by_feature)
        before[1:] = np.cumsum(by_feature, axis=0)[:-1]
        left -= before[feature]
        inner = np.flatnonzero(feature[:-1] == feature[1:])
        return inner + begin, left[inner]

    def _threshold(self, block: int) -> float:
        """Return the middle between a block's value and the next, and never the next itself."""
        low, high = self._value[block], self._value[block + 1]
        middle = low + (high - low) / 2.0
        return float(low if middle >= high else middle)


@dataclass(frozen=True)
class StumpRound:
    """One weak hypothesis: h = left on one side of the split, right on the other, each with one value per label."""

    split: StumpSplit | None
    left: np.ndarray
    right: np.ndarray

    def values(self, X: Any) -> np.ndarray:
        """Return h, shape (n, q); without a split all rows are on the left."""
        if self.split is None:
            return np.tile(self.left, (X.shape[0], 1))
        return np.where(self.split.left(X)[:, None], self.left, self.right)
