"""Validated labels, decisions and scores, read in blocks so that no second full matrix is allocated."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from multilab.core.tables import pandas_frame, table_values
from multilab.core.tags import same_columns
from multilab.metrics.errors import MetricError

# Cells of one block: 16 MB of float64. The results do not depend on it.
BLOCK_CELLS = 1 << 21
_ROUNDING = 1e-9  # a mean of probabilities may be 1 + 2e-16


def blocks(count: int, width: int, at_least: int = 0) -> list[tuple[int, int]]:
    """Return ranges (start, stop) of about ``BLOCK_CELLS`` cells that cover ``count`` lines of ``width`` cells."""
    step = max(1, max(BLOCK_CELLS, at_least) // width)
    return [(start, min(start + step, count)) for start in range(0, count, step)]


def without_tags(Y: Any, *given: Any, label_names: Any = None, names: Sequence[str] = ("Y", "decisions")) -> Any:
    """Return labels and predictions with tags as 0/1 columns of the same labels: `multilab.core.tags.same_columns`.

    Raises
    ------
    MetricError
        A matrix whose columns have no names stands beside tags, or texts can be split into tags in several ways.
    """
    try:
        return same_columns(Y, *given, label_names=label_names, names=names)
    except ValueError as error:
        raise MetricError(str(error)) from None


class Entries(NamedTuple):
    """Relevant entries of consecutive lists, ordered by list, then by position in the list."""

    lists: np.ndarray
    positions: np.ndarray
    starts: np.ndarray  # of each list, one longer than there are lists


def matrix_of_numbers(matrix: Any, name: str) -> np.ndarray | sp.csr_array:
    """Validate that an argument is a non-empty numeric matrix; return it as ndarray or canonical CSR."""
    try:
        array = table_values(matrix)
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


def refuse_unless_binary(matrix: np.ndarray | sp.csr_array, name: str) -> None:
    """Raise at the first entry that is neither 0 nor 1."""
    if matrix.dtype.kind == "b":
        return
    if isinstance(matrix, np.ndarray):
        for start, stop in blocks(*matrix.shape):
            block = matrix[start:stop]
            refuse_where((block != 0) & (block != 1), block, start, name)
        return
    wrong = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
    if wrong.size:
        row = np.searchsorted(matrix.indptr, wrong[0], side="right") - 1
        label, value = matrix.indices[wrong[0]], matrix.data[wrong[0]]
        raise MetricError(f"{name} must hold 0 and 1 only: row {row}, label {label} is {value}")


def refuse_where(wrong: np.ndarray, block: np.ndarray, start: int, name: str) -> None:
    """Raise at the first wrong cell of the rows from ``start`` on."""
    if wrong.any():
        row, label = np.argwhere(wrong)[0]
        raise MetricError(f"{name} must hold 0 and 1 only: row {start + row}, label {label} is {block[row, label]}")


class _Selection(Protocol):
    """Bool matrix that is read in blocks."""

    def rows(self, start: int, stop: int) -> np.ndarray: ...

    def columns(self, start: int, stop: int) -> np.ndarray: ...

    def take(self, lines: np.ndarray | None, labels: np.ndarray | None) -> _Selection: ...


class Cells:
    """Matrix that is read in dense blocks; a selection of its rows and labels is applied to each block.

    This is the one rule for large arguments: nothing larger than a block is made dense.

    Parameters
    ----------
    matrix : array-like or sparse, shape (n_rows, n_labels)
        Numbers; a missing entry of a sparse matrix is 0.
    name : str
        Name in error messages.

    Raises
    ------
    MetricError
        If it is not a non-empty two-dimensional matrix of numbers.
    """

    def __init__(self, matrix: Any, name: str) -> None:
        matrix = pandas_frame(matrix)
        self.matrix = matrix_of_numbers(matrix, name)
        self.names = getattr(matrix, "columns", None)
        self.shape: tuple[int, int] = self.matrix.shape
        self._lines: np.ndarray | None = None
        self._labels: np.ndarray | None = None
        self._observed: _Selection | None = None
        self._transposed: sp.csc_array | None = None

    def take(self, lines: np.ndarray | None = None, labels: np.ndarray | None = None) -> Self:
        """Return a selection of rows and labels, each an index array (a row may come several times) or None for all."""
        other = copy.copy(self)
        if lines is not None:
            other._lines = lines if self._lines is None else self._lines[lines]
        if labels is not None:
            other._labels = labels if self._labels is None else self._labels[labels]
        n_rows, n_labels = self.shape
        other.shape = (n_rows if lines is None else lines.size, n_labels if labels is None else labels.size)
        if self._observed is not None:
            other._observed = self._observed.take(lines, labels)
        return other

    def hiding(self, observed: _Selection) -> Self:
        """Return the same cells without the unobserved ones, which are False, or below all scores."""
        other = copy.copy(self)
        other._observed = observed
        return other

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as an array of shape (stop - start, n_labels)."""
        part = self.matrix[start:stop] if self._lines is None else self.matrix[self._lines[start:stop]]
        block = _dense(part)
        if self._labels is not None:
            block = block[:, self._labels]
        return self._converted(block, None if self._observed is None else self._observed.rows(start, stop))

    def columns(self, start: int, stop: int) -> np.ndarray:
        """Return the labels ``start`` to ``stop`` as a C-ordered array of shape (stop - start, n_rows)."""
        labels = slice(start, stop) if self._labels is None else self._labels[start:stop]
        if isinstance(self.matrix, np.ndarray):
            part = self.matrix[:, labels]
        else:
            if self._transposed is None:
                self._transposed = self.matrix.tocsc()
            part = self._transposed[:, labels].toarray()
        block = np.ascontiguousarray(part.T if self._lines is None else part[self._lines].T)
        return self._converted(block, None if self._observed is None else self._observed.columns(start, stop))

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        return block


class Scores(Cells):
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
        super().__init__(matrix, name)
        if self.matrix.dtype.kind != "f":
            return
        for start, stop in blocks(*self.shape):
            part = self.matrix[start:stop]
            finite = np.isfinite(part if isinstance(part, np.ndarray) else part.data)
            if not finite.all():
                block = self.rows(start, stop)
                row, label = np.argwhere(~np.isfinite(block))[0]
                value = block[row, label]
                raise MetricError(f"{name} must be finite: row {start + row}, label {label} is {value}")

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        """Give unobserved cells the score -inf, with which they are ranked below every observed one."""
        if observed is None:
            return block
        block = block.astype(block.dtype if block.dtype.kind == "f" else np.float64)
        block[~observed] = -np.inf
        return block


def refuse_outside_unit_interval(scores: Scores, decided: bool = True) -> None:
    """Raise at the first score that is below 0 or above 1 by more than rounding.

    ``decided``: decisions are made from the scores; otherwise they are measured as probabilities.
    """
    for start, stop in blocks(*scores.shape):
        block = scores.rows(start, stop)
        wrong = (block < -_ROUNDING) | (block > 1 + _ROUNDING)
        if wrong.any():
            row, label = np.argwhere(wrong)[0]
            where = f"row {start + row}, label {label} is {block[row, label]}"
            if not decided:
                raise MetricError(f"probabilities must be in [0, 1]: {where}; calibrate the scores first")
            raise MetricError(
                f"scores must be in [0, 1] unless decisions or threshold is given: {where}; "
                "pass decisions=model.predict(X), or threshold=0 for scores of a decision_function"
            )


class Decisions(Cells):
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
        super().__init__(matrix, name)
        refuse_unless_binary(self.matrix, name)

    def _converted(self, block: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        block = block.astype(bool, copy=False)
        return block if observed is None else block & observed


class ThresholdedScores:
    """Decisions from scores, block by block: predicted at or above the threshold, or only above it.

    ``threshold`` is one number, or an array of shape (n_labels,) that the caller has validated.
    """

    def __init__(self, scores: Scores, threshold: float | np.ndarray, rule: str) -> None:
        if not isinstance(threshold, np.ndarray) and (np.ndim(threshold) or not np.isfinite(threshold)):
            raise MetricError(f"threshold must be one finite number, got {threshold!r}")
        self._scores, self._threshold, self._rule = scores, threshold, rule

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop`` as a bool array."""
        block = self._scores.rows(start, stop)
        return block > self._threshold if self._rule == ">" else block >= self._threshold
