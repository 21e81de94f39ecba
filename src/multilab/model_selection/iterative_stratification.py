"""Iterative stratification: folds in which every label, or pair of labels, is equally frequent.

Order 1 follows K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of multi-label data, ECML PKDD 2011
(Algorithm 1); order 2 follows P. Szymański, T. Kajdanowicz, A network perspective on stratification of multi-label
data, LIDTA 2017: pairs of labels that occur together are stratified like labels of their own.

Two deviations. A fold never takes more rows than its share, so that sizes are exact (the originals only prefer the fold
with more free rows when a label does not decide). And everything is integer arithmetic on raw PCG64 output: demands are
counted in units of 1/n, ties have a written rule, and no generator method is used whose stream may change between
NumPy versions, so that the indices can be pinned in tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError


class IterativeStratifiedKFold:
    """Iterative stratified k-fold cross-validator for multi-label data.

    A scikit-learn splitter: pass it as ``cv``.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, default 0
        Seed; the same folds on every machine.

    See Also
    --------
    multilab.model_selection.stored_splits.splits : The same folds of a benchmark dataset, stored.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of multi-label data, ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.model_selection import IterativeStratifiedKFold
    >>> y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> splitter = IterativeStratifiedKFold(2, random_state=0)
    >>> [y[test].sum(axis=0).tolist() for train, test in splitter.split(y, y)]
    [[1, 1], [1, 1]]
    """

    def __init__(self, n_splits: int = 5, *, order: int = 1, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.order = order
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row indices ``(train, test)`` of each fold.

        Parameters
        ----------
        X : ignored
        y : array-like or sparse of shape (n, q) or (n,)
            Labels, 0 or 1.
        groups : ignored

        Raises
        ------
        DatasetError
            Labels other than 0 and 1, or more folds than rows.
        """
        if y is None or self.order not in (1, 2):
            raise DatasetError("iterative stratification needs the labels, split(X, y), and the order 1 or 2")
        labels = label_table(y)
        sizes = fold_sizes(len(labels), self.n_splits)
        fold_of = stratified_assignment(labels, sizes, order=self.order, seed=self.random_state)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_splits}, order={self.order}, random_state={self.random_state})"


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
    Y : array-like or sparse of shape (n, q)
        Labels, 0 or 1.
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

    Examples
    --------
    >>> from multilab.model_selection import stratified_assignment
    >>> stratified_assignment([[1, 0], [1, 0], [0, 1], [0, 1]], [2, 2]).tolist()
    [0, 1, 0, 1]
    """
    labels = label_table(Y)
    free = [int(size) for size in sizes]
    n = len(labels)
    if sum(free) != n or min(free, default=0) < 0:
        raise DatasetError(f"the subset sizes {free} do not sum to the {n} rows")
    bits = _bit_generator(seed, repeat)
    shuffled = _permutation(n, bits)
    columns = (_with_pairs(labels) if order == 2 else labels.astype(bool))[shuffled]
    columns = columns[:, columns.any(axis=0)]
    left = columns.sum(axis=0, dtype=np.int64)
    needs = np.outer(left, np.array(free, dtype=np.int64))  # in units of 1/n rows
    columns_of = [np.flatnonzero(row) for row in columns]
    chosen = np.full(n, -1, dtype=np.int64)
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, n + 1)))
        for row in np.flatnonzero(columns[:, label] & (chosen < 0)):
            chosen[row] = subset = _neediest(needs[label].tolist(), free, bits)
            free[subset] -= 1
            needs[columns_of[row], subset] -= n
            left[columns_of[row]] -= 1
    for row in np.flatnonzero(chosen < 0):
        chosen[row] = subset = _neediest(free, free, bits)
        free[subset] -= 1
    assignment = np.empty_like(chosen)
    assignment[shuffled] = chosen
    return assignment


def _neediest(needs: list[int], free: list[int], bits: np.random.PCG64) -> int:
    """Return the subset with free rows that needs most rows; of several one with most free rows, then a random one."""
    best = max((need, space) for need, space in zip(needs, free, strict=True) if space > 0)
    ties = [j for j, pair in enumerate(zip(needs, free, strict=True)) if pair == best]
    return ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]


def _with_pairs(labels: np.ndarray) -> np.ndarray:
    """Return the columns of all pairs of labels that occur together, followed by the labels themselves."""
    wide = labels.astype(np.int64)
    first, second = np.nonzero(np.triu(wide.T @ wide, k=1))
    single = labels.astype(bool)
    return np.hstack([single[:, first] & single[:, second], single])


def _bit_generator(seed: int, repeat: int) -> np.random.PCG64:
    """Return the bit generator of one repetition; its raw output is the same in all NumPy versions."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repeat,)))


def _permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return the numbers 0..n-1 in random order: the order of n raw random numbers."""
    return np.argsort(bits.random_raw(n), kind="stable")


def label_table(Y: Any) -> np.ndarray:
    """Return the labels as a dense (n, q) uint8 array of 0 and 1."""
    dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    if dense.ndim == 1:
        dense = dense[:, None]
    if dense.ndim != 2 or not np.isin(dense, (0, 1)).all():
        raise DatasetError("labels must be a table of 0 and 1, one row per example")
    return dense.astype(np.uint8, copy=False)


def random_permutation(n: int, seed: int, repeat: int) -> np.ndarray:
    """Return the numbers 0..n-1 in the random order of one repetition."""
    return _permutation(n, _bit_generator(seed, repeat))
