"""K-fold cross-validation with iterative stratification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from multilab.datasets.errors import DatasetError
from multilab.model_selection.iterative_stratification.assignment import fold_sizes, stratified_assignment
from multilab.model_selection.iterative_stratification.columns import LabelMatrix, check_label_matrix


class IterativeStratifiedKFold(BaseCrossValidator):
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
    RepeatedIterativeStratifiedKFold : The same, several times with other ties.
    IterativeStratifiedGroupKFold : Groups of rows stay together.
    multilab.model_selection.stored_splits.splits : The same folds of a benchmark dataset, stored.

    Notes
    -----
    Fold sizes differ by at most one. The positive rows of the rarest label (order 2: the rarest pair) are within one
    row of an equal share in every fold. The folds depend on the order of the rows.

    Labels that are not observed, NaN or -1 in an int8 ``y``, count neither as positive nor as negative: the positive,
    the negative and the unobserved rows of a label are stratified.

    References
    ----------
    K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of multi-label data, ECML PKDD 2011.

    P. Szymański, T. Kajdanowicz, A network perspective on stratification of multi-label data, LIDTA 2017 (order 2).

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
        """Yield the row indices ``(train, test)`` of each fold, ascending.

        Parameters
        ----------
        X : array-like or sparse of shape (n, d)
            Only its number of rows is read; may be None.
        y : array-like or sparse of shape (n, q) or (n,)
            Labels, 0 or 1; NaN, or -1 in an int8 matrix, where a label is not observed.
        groups : ignored

        Raises
        ------
        DatasetError
            Labels other than 0 and 1, another number of rows in X, or more folds than rows.
        """
        yield from self._folds(labels_of(X, y), repeat=0)

    def _folds(self, labels: LabelMatrix, repeat: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the folds of one repetition."""
        sizes = fold_sizes(labels.positive.shape[0], self.n_splits)
        fold_of = stratified_assignment(labels, sizes, order=self.order, seed=self.random_state, repeat=repeat)
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits


def labels_of(X: Any, y: Any) -> LabelMatrix:
    """Return the labels of the rows of X.

    Raises
    ------
    DatasetError
        There are no labels, labels other than 0 and 1, or another number of rows in X.
    """
    if y is None:
        raise DatasetError("iterative stratification needs the labels: split(X, y)")
    labels = check_label_matrix(y)
    rows = len(X) if X is not None and not hasattr(X, "shape") else None if X is None else X.shape[0]
    if rows not in (None, labels.positive.shape[0]):
        raise DatasetError(f"X has {rows} rows and y {labels.positive.shape[0]}")
    return labels
