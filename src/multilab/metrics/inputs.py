"""Validated labels, decisions and scores, read in blocks so that no second full matrix is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from multilab.metrics.errors import MetricError

# Cells of one block: 16 MB of float64. The results do not depend on it.
BLOCK_CELLS = 1 << 21
_ROUNDING = 1e-9  # a mean of probabilities may be 1 + 2e-16


def blocks(count: int, width: int, at_least: int = 0) -> Iterator[tuple[int, int]]:
    """Yield ranges (start, stop) of about ``BLOCK_CELLS`` cells that cover ``count`` lines of ``width`` cells."""
    step = max(1, max(BLOCK_CELLS, at_least) // width)
    for start in range(0, count, step):
        yield start, min(start + step, count)


class Entries(NamedTuple):
    """Relevant entries of consecutive lists, ordered by list, then by position in the list."""

    lists: np.ndarray
    positions: np.ndarray
    starts: np.ndarray  # of each list, one longer than there are lists


def _matrix(matrix: Any, name: str) -> np.ndarray | sp.csr_array:
    """Validate that an argument is a non-empty numeric matrix; return it as ndarray or canonical CSR."""
    if sp.issparse(matrix):
        array = matrix
    else:
        try:
            array = np.asarray(matrix)
        except ValueError as error:
            raise MetricError(f"{name} is not a rectangular array: {error}") from None
    if array.ndim != 2:
        raise MetricError(f"{name} has {array.ndim} dimension(s), shape {array.shape}; expected two, rows x labels")
    if 0 in array.shape:
        raise MetricError(f"{name} is empty: shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise MetricError(f"{name} holds values of type {array.dtype}, not numbers")
    if isinstance(array, np.ndarray):
        return array
    csr = sp.csr_array(array)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _dense(part: np.ndarray | sp.csr_array) -> np.ndarray:
    return part if isinstance(part, np.ndarray) else part.toarray()


def _refuse_unless_binary(matrix: np.ndarray | sp.csr_array, name: str) -> None:
    """Raise at the first entry that is neither 0 nor 1."""
    if matrix.dtype.kind == "b":
        return
    if isinstance(matrix, np.ndarray):
        for start, stop in blocks(*matrix.shape):
            block = matrix[start:stop]
            wrong = (block != 0) & (block != 1)
            if wrong.any():
                row, label = np.argwhere(wrong)[0]
                raise MetricError(
                    f"{name} must hold 0 and 1 only: row {start + row}, label {label} is {block[row, label]}"
                )
        return
    wrong = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
    if wrong.size:
        row = np.searchsorted(matrix.indptr, wrong[0], side="right") - 1
        label, value = matrix.indices[wrong[0]], matrix.data[wrong[0]]
        raise MetricError(f"{name} must hold 0 and 1 only: row {row}, label {label} is {value}")


def refuse_other_shape(first: Any, first_name: str, second: Any, second_name: str) -> None:
    """Raise when two matrices differ in shape; the message names both."""
    if first.shape != second.shape:
        raise MetricError(f"{first_name} has shape {first.shape} but {second_name} has shape {second.shape}")


class LabelSets:
    """0/1 matrix stored as the label indices of each row.

    Parameters
    ----------
    matrix : array-like or sparse, shape (n_rows, n_labels)
        Bool, integer or float, holding 0 and 1 only.
    name : str
        Name in error messages.

    Raises
    ------
    MetricError
        If it is not a non-empty two-dimensional 0/1 matrix.
    """

    def __init__(self, matrix: Any, name: str = "Y") -> None:
        checked = _matrix(matrix, name)
        _refuse_unless_binary(checked, name)
        self.shape: tuple[int, int] = checked.shape
        if isinstance(checked, np.ndarray):
            sizes, indices = [], []
            for start, stop in blocks(*self.shape):
                rows, labels = np.nonzero(checked[start:stop])
                sizes.append(np.bincount(rows, minlength=stop - start))
                indices.append(labels.astype(np.int32))
            self.indices = np.concatenate(indices)
            self.indptr = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
        else:
            if not checked.data.all():  # stored zeros
                checked = checked.copy()
                checked.eliminate_zeros()
            self.indptr = checked.indptr.astype(np.int64)
            self.indices = checked.indices

    def entries(self, start: int, stop: int) -> Entries:
        """Return the relevant entries of the rows ``start`` to ``stop``, lists counted from ``start``."""
        starts = self.indptr[start : stop + 1] - self.indptr[start]
        lists = np.repeat(np.arange(stop - start), np.diff(starts))
        return Entries(lists, self.indices[self.indptr[start] : self.indptr[stop]], starts)

    def transposed(self) -> LabelSets:
        """Return the same matrix as the row indices of each label."""
        ones = np.ones(self.indices.size, dtype=bool)
        columns = sp.csr_array((ones, self.indices, self.indptr), shape=self.shape).tocsc()
        other = object.__new__(LabelSets)
        other.shape = (self.shape[1], self.shape[0])
        other.indptr, other.indices = columns.indptr.astype(np.int64), columns.indices
        return other


class Scores:
    """Finite real scores, dense or sparse (a missing entry is a score of 0).

    Parameters
    ----------
    matrix : array-like or sparse, shape (n_rows, n_labels)
        Larger means more relevant.
    name : str
        Name in error messages.

    Raises
    ------
    MetricError
        If it is not a non-empty two-dimensional matrix of finite numbers.
    """

    def __init__(self, matrix: Any, name: str = "scores") -> None:
        self._matrix = _matrix(matrix, name)
        self._columns: sp.csc_array | None = None
        self.shape: tuple[int, int] = self._matrix.shape
        if self._matrix.dtype.kind != "f":
            return
        for start, stop in blocks(*self.shape):
            part = self._matrix[start:stop]
            finite = np.isfinite(part if isinstance(part, np.ndarray) else part.data)
            if not finite.all():
                block = self.rows(start, stop)
                row, label = np.argwhere(~np.isfinite(block))[0]
                value = block[row, label]
                raise MetricError(f"{name} must be finite: row {start + row}, label {label} is {value}")

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as an array of shape (stop - start, n_labels)."""
        return _dense(self._matrix[start:stop])

    def columns(self, start: int, stop: int) -> np.ndarray:
        """Return the labels ``start`` to ``stop`` as a C-ordered array of shape (stop - start, n_rows)."""
        if isinstance(self._matrix, np.ndarray):
            return np.ascontiguousarray(self._matrix[:, start:stop].T)
        if self._columns is None:
            self._columns = self._matrix.tocsc()
        return np.ascontiguousarray(self._columns[:, start:stop].toarray().T)


def refuse_outside_unit_interval(scores: Scores) -> None:
    """Raise at the first score that is below 0 or above 1 by more than rounding."""
    for start, stop in blocks(*scores.shape):
        block = scores.rows(start, stop)
        wrong = (block < -_ROUNDING) | (block > 1 + _ROUNDING)
        if wrong.any():
            row, label = np.argwhere(wrong)[0]
            raise MetricError(
                "scores must be in [0, 1] unless decisions or threshold is given: "
                f"row {start + row}, label {label} is {block[row, label]}; "
                "pass decisions=model.predict(X), or threshold=0 for scores of a decision_function"
            )


class Decisions:
    """0/1 matrix of predicted labels.

    Parameters
    ----------
    matrix : array-like or sparse, shape (n_rows, n_labels)
        0/1 decisions.
    name : str
        Name in error messages.

    Raises
    ------
    MetricError
        If it is not a non-empty two-dimensional 0/1 matrix.
    """

    def __init__(self, matrix: Any, name: str = "decisions") -> None:
        checked = _matrix(matrix, name)
        _refuse_unless_binary(checked, name)
        self.shape: tuple[int, int] = checked.shape
        self._matrix = checked

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as a bool array."""
        return _dense(self._matrix[start:stop]).astype(bool, copy=False)


class ThresholdedScores:
    """Decisions from scores, block by block: predicted at or above the threshold, or only above it."""

    def __init__(self, scores: Scores, threshold: float, rule: str) -> None:
        if not np.ndim(threshold) == 0 or not np.isfinite(threshold):
            raise MetricError(f"threshold must be one finite number, got {threshold!r}")
        self.shape = scores.shape
        self._scores, self._threshold, self._rule = scores, float(threshold), rule

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as a bool array."""
        block = self._scores.rows(start, stop)
        return block > self._threshold if self._rule == ">" else block >= self._threshold
