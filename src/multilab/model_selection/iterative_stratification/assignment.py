"""Iterative stratification: the assignment of rows to subsets.

Two deviations from the papers. A fold never takes more rows than its share, so that sizes are exact (the originals only
prefer the fold with more free rows when a label does not decide). And everything is integer arithmetic on raw PCG64
output: demands are counted in units of 1/n, ties have a written rule, and no generator method is used whose stream may
change between NumPy versions, so that the indices can be pinned in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError
from multilab.model_selection.iterative_stratification.columns import stratification_columns

_NONE = np.iinfo(np.int64).max


def fold_sizes(n: int, folds: int) -> list[int]:
    """Return the numbers of rows of the folds of n rows; they differ by at most one."""
    if not isinstance(folds, Integral) or folds < 2:
        raise DatasetError(f"n_splits must be an integer of at least 2, got {folds}")
    if folds > n:
        raise DatasetError(f"{folds} folds of {n} rows: every fold needs at least one row")
    return [n // folds + (fold < n % folds) for fold in range(folds)]


def stratified_assignment(
    Y: Any, sizes: Sequence[int], *, order: int = 1, seed: int = 0, repeat: int = 0
) -> np.ndarray:
    """Return the subset index of every row, by iterative stratification.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q) or (n,)
        Labels, 0 or 1; NaN, or -1 in an int8 matrix, where a label is not observed. A sparse Y is not made dense.
    sizes : sequence of int
        Rows of each subset; they sum to n. Subset j gets ``sizes[j] / n`` of every label's rows, as
        nearly as possible.
    order : {1, 2}
        2 adds a column for every pair of labels that occurs.
    seed, repeat : int
        Entropy and spawn key of the seed sequence.

    Returns
    -------
    ndarray of shape (n,), int64

    Notes
    -----
    The label (or pair) with the fewest unassigned rows comes first; among equals a pair before a label, then the lower
    column. Its rows come in one fixed random order. A row goes to the subset that needs most rows of that label; among
    equals to the one with most free rows; among those by a raw random number modulo their number. Rows without labels
    fill the free rows by the same rule.

    The rows of one label are assigned in one batch: until it ends, only the demand for that label matters.

    Examples
    --------
    >>> from multilab.model_selection import stratified_assignment
    >>> stratified_assignment([[1, 0], [1, 0], [0, 1], [0, 1]], [2, 2]).tolist()
    [0, 1, 0, 1]
    """
    columns = stratification_columns(Y, order)
    n = columns.shape[0]
    free = [int(size) for size in sizes]
    if sum(free) != n or min(free, default=0) < 0:
        raise DatasetError(f"the subset sizes {free} do not sum to the {n} rows")
    bits = _bit_generator(seed, repeat)
    shuffled = _permutation(n, bits)
    by_row = columns[shuffled]
    by_column = by_row.tocsc()
    by_column.sort_indices()
    left = np.diff(by_column.indptr).astype(np.int64)
    rarest = _RarestColumn(left)
    needs = np.outer(left, np.array(free, dtype=np.int64))  # in units of 1/n rows
    chosen = np.full(n, -1, dtype=np.int64)
    while (column := rarest.column()) is not None:
        rows = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        rows = rows[chosen[rows] < 0]
        chosen[rows] = subsets = _deal(len(rows), needs[column].tolist(), n, free, bits)
        lengths = by_row.indptr[rows + 1] - by_row.indptr[rows]
        starts = by_row.indptr[rows] - np.cumsum(lengths) + lengths
        touched = by_row.indices[np.repeat(starts, lengths) + np.arange(lengths.sum())]
        rarest.subtract(touched)
        np.subtract.at(needs, (touched, np.repeat(subsets, lengths)), n)
    rows = np.flatnonzero(chosen < 0)
    chosen[rows] = _deal(len(rows), list(free), 1, free, bits)
    assignment = np.empty_like(chosen)
    assignment[shuffled] = chosen
    return assignment


class _RarestColumn:
    """The column with the fewest unassigned rows, the first of several; blocks of columns keep their minimum.

    Parameters
    ----------
    left : ndarray of shape (columns,), int64
        Unassigned rows of each column.
    """

    def __init__(self, left: np.ndarray) -> None:
        self._count = max(len(left), 1)
        self._width = int(np.ceil(np.sqrt(self._count)))
        self._left = np.zeros((self._width, self._width), dtype=np.int64)
        self._left.flat[: len(left)] = left
        self._smallest = np.empty(self._width, dtype=np.int64)  # rows * number of columns + column
        self._refresh(np.arange(self._width))

    def _refresh(self, blocks: np.ndarray) -> None:
        left = self._left[blocks]
        columns = blocks[:, None] * self._width + np.arange(self._width)
        ranks = np.where(left > 0, left * self._count + columns, _NONE)
        self._smallest[blocks] = ranks.min(axis=1)

    def column(self) -> int | None:
        """Return the rarest column, None if all rows of all columns are assigned."""
        smallest = int(self._smallest.min())
        return None if smallest == _NONE else smallest % self._count

    def subtract(self, columns: np.ndarray) -> None:
        """Take one row from each of the columns; a column may occur several times."""
        np.subtract.at(self._left.reshape(-1), columns, 1)
        self._refresh(np.unique(columns // self._width))


def _deal(rows: int, needs: list[int], unit: int, free: list[int], bits: np.random.PCG64) -> list[int]:
    """Return the subsets of rows that come one after the other; the needs and the free rows are counted down.

    Of the subsets with free rows the one that needs most rows, of several one with most free rows, then a random one.
    """
    subsets = []
    for _ in range(rows):
        best = max(need for need, space in zip(needs, free, strict=True) if space)
        ties = [j for j, need in enumerate(needs) if need == best and free[j]]
        if len(ties) > 1:
            most = max(free[j] for j in ties)
            ties = [j for j in ties if free[j] == most]
        subset = ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]
        needs[subset] -= unit
        free[subset] -= 1
        subsets.append(subset)
    return subsets


def _bit_generator(seed: int, repeat: int) -> np.random.PCG64:
    """Return the bit generator of one repetition; its raw output is the same in all NumPy versions."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repeat,)))


def _permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return the numbers 0..n-1 in random order: the order of n raw random numbers."""
    return np.argsort(bits.random_raw(n), kind="stable")


def random_permutation(n: int, seed: int, repeat: int) -> np.ndarray:
    """Return the numbers 0..n-1 in the random order of one repetition."""
    return _permutation(n, _bit_generator(seed, repeat))
