"""Repeated k-fold cross-validation with iterative stratification."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from multilab.datasets.errors import DatasetError
from multilab.model_selection.iterative_stratification.assignment import fold_sizes, stratified_assignment
from multilab.model_selection.iterative_stratification.kfold import folds_of, labels_of, seed_of


class RepeatedIterativeStratifiedKFold(BaseCrossValidator):
    """Iterative stratified k-fold cross-validator, repeated with other row orders and ties.

    A scikit-learn splitter: pass it as ``cv``.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2.
    n_repeats : int, default 10
        Number of repetitions, at least 1.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, RandomState or None, default 0
        Seed; the folds are the same on every machine. None gives other folds in every call.

    See Also
    --------
    IterativeStratifiedKFold : One repetition; its folds are those of the first.

    Notes
    -----
    The folds are those of the protocol ``{kfold: n_splits, repeats: n_repeats, stratify: order, seed: random_state}``.
    Folds of different repetitions share rows: their scores are not independent.

    Examples
    --------
    >>> from multilab.model_selection import RepeatedIterativeStratifiedKFold
    >>> y = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> splitter = RepeatedIterativeStratifiedKFold(n_splits=2, n_repeats=3)
    >>> splitter.get_n_splits()
    6
    >>> [test.tolist() for train, test in splitter.split(y, y)]
    [[0, 2], [1, 3], [0, 2], [1, 3], [0, 3], [1, 2]]
    """

    def __init__(self, n_splits: int = 5, *, n_repeats: int = 10, order: int = 1, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.order = order
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row indices ``(train, test)`` of each fold of each repetition, ascending.

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
            If labels are not 0 and 1, X has another number of rows, or there are more folds than rows.
        """
        labels = labels_of(X, y)
        sizes = fold_sizes(labels.positive.shape[0], self.n_splits)
        seed = seed_of(self.random_state)
        for repeat in range(self._repeats()):
            yield from folds_of(stratified_assignment(labels, sizes, order=self.order, seed=seed, repeat=repeat))

    def _repeats(self) -> int:
        if not isinstance(self.n_repeats, Integral) or self.n_repeats < 1:
            raise DatasetError(f"n_repeats must be an integer of at least 1, got {self.n_repeats!r}")
        return int(self.n_repeats)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds of all repetitions."""
        return self.n_splits * self._repeats()
