"""Training and test sets of given sizes, by iterative stratification."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.model_selection import BaseShuffleSplit
from sklearn.utils import _safe_indexing, indexable

from multilab.datasets.errors import DatasetError
from multilab.model_selection.group_kfold import IterativeStratifiedGroupKFold, group_matrix
from multilab.model_selection.iterative_stratification.assignment import random_permutation, stratified_assignment
from multilab.model_selection.iterative_stratification.kfold import labels_of, seed_of


class IterativeStratifiedShuffleSplit(BaseShuffleSplit):
    """Iterative stratified training and test sets of given sizes, drawn several times.

    A scikit-learn splitter: pass it as ``cv`` where test sets may overlap (not to ``cross_val_predict``).

    Parameters
    ----------
    n_splits : int, default 10
        Number of splits.
    test_size, train_size : float, int or None
        A share in (0, 1) or a number of rows. ``test_size`` shares are rounded up, ``train_size`` shares down, as in
        scikit-learn; a share is the decimal number as written, so .07 of 100 rows are 7. If one is None it is the rest;
        if both are, ``test_size`` is .1. Rows beyond the sum of both are left out.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, RandomState or None, default 0
        Seed; the rows are the same on every machine. None gives other rows in every call.

    See Also
    --------
    train_test_split : One split of given arrays.

    Notes
    -----
    All three sets, training, test and left out, are stratified. The splits are those of the protocol
    ``{holdout: {train_size: ...}, repeats: n_splits, stratify: order, seed: random_state}``.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.model_selection import IterativeStratifiedShuffleSplit
    >>> y = np.repeat(np.eye(2, dtype=int), [4, 8], axis=0)
    >>> splitter = IterativeStratifiedShuffleSplit(2, test_size=0.25)
    >>> [y[test].sum(axis=0).tolist() for train, test in splitter.split(y, y)]
    [[1, 2], [1, 2]]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        order: int = 1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(n_splits, test_size=test_size, train_size=train_size, random_state=random_state)
        self.order = order

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row indices ``(train, test)`` of each split, ascending.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n, d)
            Only the number of rows is used; may be None.
        y : str, array-like or sparse of shape (n, q) or (n,), or n collections of tags
            Labels, 0 or 1; NaN, or -1 in an int8 matrix, where a label is not observed. Tags such as ``red|blue`` or
            lists; the name of a column of tags if X is a data frame.
        groups : ignored

        Raises
        ------
        DatasetError
            If labels are not 0 and 1, X has another number of rows, or the sizes do not fit.
        """
        labels = labels_of(X, y)
        sizes = _set_sizes(labels.positive.shape[0], self.test_size, self.train_size, default=0.1)
        seed = seed_of(self.random_state)
        for repeat in range(self.n_splits):
            subset = stratified_assignment(labels, sizes, order=self.order, seed=seed, repeat=repeat)
            yield np.flatnonzero(subset == 0), np.flatnonzero(subset == 1)


def train_test_split(
    *arrays: Any,
    test_size: float | None = None,
    train_size: float | None = None,
    stratify: Any = "labels",
    groups: Any = None,
    order: int = 1,
    random_state: Any = 0,
) -> list[Any]:
    """Split arrays into a training and a test set in which every label is equally frequent.

    Parameters
    ----------
    *arrays : array-like, sparse or DataFrame, with n rows each
        X, Y and any others.
    test_size, train_size : float, int or None
        See :class:`IterativeStratifiedShuffleSplit`; but if both are None, ``test_size`` is .25.
    stratify : {"labels"}, str, array-like or sparse of shape (n, q), n collections of tags, or None, default "labels"
        The labels to stratify by; "labels" means the second array. If the first array is a data frame, this may be the
        name of its column of tags. None draws the rows at random.
    groups : array-like of shape (n,), optional
        Group of each row: all rows of a group are in the same set. The sizes are then met as nearly as twentieths of
        the rows and the groups allow, and no row is left out. See :class:`IterativeStratifiedGroupKFold`.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, RandomState or None, default 0
        Seed; the rows are the same on every machine. None gives other rows in every call.

    Returns
    -------
    list of length 2 * len(arrays)
        Training and test rows of each array, of the same type and in the original order; sparse matrices as CSR.

    Raises
    ------
    DatasetError
        If labels are not 0 and 1, sizes do not fit, or there are fewer than two groups.
    ValueError
        If the arrays have different numbers of rows (raised by scikit-learn).

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.model_selection import train_test_split
    >>> X, Y = np.arange(8), np.repeat(np.eye(2, dtype=int), 4, axis=0)
    >>> X_train, X_test, Y_train, Y_test = train_test_split(X, Y)
    >>> Y_test.tolist()
    [[1, 0], [0, 1]]
    """
    if not arrays:
        raise DatasetError("train_test_split needs at least one array")
    by_labels = isinstance(stratify, str) and stratify == "labels" and len(arrays) > 1
    if isinstance(stratify, str) and not by_labels and not hasattr(arrays[0], "columns"):
        raise DatasetError(
            f"stratify={stratify!r} with {len(arrays)} arrays: pass X and Y, stratify=Y or stratify=None, or a data "
            "frame and the name of its column of tags"
        )
    indexed = indexable(*arrays)
    n = indexed[0].shape[0] if hasattr(indexed[0], "shape") else len(indexed[0])
    sizes = _set_sizes(n, test_size, train_size, default=0.25)
    seed = seed_of(random_state)
    if groups is not None:
        by = np.ones((n, 1)) if stratify is None else indexed[1] if by_labels else stratify
        subset = _grouped_subset(indexed[0], by, groups, sizes, order, seed)
    elif stratify is None:
        subset = np.empty(n, dtype=np.int64)
        subset[random_permutation(n, seed, 0)] = np.repeat(np.arange(3), sizes)
    else:
        labels = labels_of(indexed[0], indexed[1] if by_labels else stratify)
        subset = stratified_assignment(labels, sizes, order=order, seed=seed)
    rows = np.flatnonzero(subset == 0), np.flatnonzero(subset == 1)
    return [_safe_indexing(array, chosen) for array in indexed for chosen in rows]


def _grouped_subset(X: Any, y: Any, groups: Any, sizes: list[int], order: int, seed: int) -> np.ndarray:
    """Return 1 for the rows of the test set: some of k folds of groups, with k at most 20."""
    train, test, left_out = sizes
    if left_out:
        raise DatasetError("with groups, no row is left out; give test_size or train_size, not both")
    n_groups = group_matrix(groups, train + test).shape[0]
    share = Fraction(test, train + test).limit_denominator(min(20, max(n_groups, 2)))
    k = max(share.denominator, 2)
    n_folds = min(max(share.numerator, 1), k - 1)
    folds = IterativeStratifiedGroupKFold(k, order=order, random_state=seed).split(X, y, groups)
    subset = np.zeros(train + test, dtype=np.int64)
    for _, rows in itertools.islice(folds, n_folds):
        subset[rows] = 1
    return subset


def _set_sizes(n: int, test_size: float | None, train_size: float | None, default: float) -> list[int]:
    """Return the numbers of training rows, test rows and rows left out."""
    if test_size is None and train_size is None:
        test_size = default
    test = None if test_size is None else math.ceil(_rows(n, test_size, "test_size"))
    train = None if train_size is None else math.floor(_rows(n, train_size, "train_size"))
    if test is None:
        assert train is not None
        test = n - train
    train = n - test if train is None else train
    if min(train, test) < 1 or train + test > n:
        raise DatasetError(f"{train} training and {test} test rows of {n}: both need a row, and the sum at most {n}")
    return [train, test, n - train - test]


def _rows(n: int, size: Any, name: str) -> Fraction:
    """Return a size in rows; a share is the decimal number as written."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1:
        return Fraction(int(size))
    if isinstance(size, float | np.floating) and 0 < size < 1:
        return Fraction(str(size)) * n
    raise DatasetError(f"{name} must be a share in (0, 1) or a number of rows, got {size!r}")
