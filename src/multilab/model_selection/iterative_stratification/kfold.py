"""K-fold cross-validation with iterative stratification."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
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
    random_state : int, RandomState or None, default 0
        Seed; the folds are the same on every machine. None gives other folds in every call.

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

    def __init__(self, n_splits: int = 5, *, order: int = 1, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.order = order
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the row indices ``(train, test)`` of each fold, ascending.

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
        yield from folds_of(stratified_assignment(labels, sizes, order=self.order, seed=seed_of(self.random_state)))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits


def folds_of(assignment: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows outside and inside each fold, given the fold of every row."""
    for fold in range(assignment.max() + 1):
        yield np.flatnonzero(assignment != fold), np.flatnonzero(assignment == fold)


def seed_of(random_state: Any) -> int:
    """Return a seed: the integer itself, a draw of a RandomState, or fresh entropy for None."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(random_state, Integral) or random_state < 0:
        raise DatasetError(
            f"random_state must be an integer of at least 0, a RandomState or None, got {random_state!r}"
        )
    return int(random_state)


def labels_of(X: Any, y: Any) -> LabelMatrix:
    """Return the labels of the rows of X.

    Raises
    ------
    DatasetError
        If there are no labels, labels are not 0 and 1, or X has another number of rows.
    """
    if y is None:
        raise DatasetError("iterative stratification needs the labels; call split(X, y)")
    if isinstance(y, str) or (hasattr(X, "columns") and isinstance(y, list | tuple)):
        from multilab.datasets.rows_and_labels import labels_by_name, names_columns, rows_of  # they import all readers

        frame = rows_of(X)
        y = labels_by_name(frame, y)[1] if names_columns(frame, y) else y
    labels = check_label_matrix(y)
    rows = len(X) if X is not None and not hasattr(X, "shape") else None if X is None else X.shape[0]
    if rows not in (None, labels.positive.shape[0]):
        raise DatasetError(f"X has {rows} rows but y has {labels.positive.shape[0]}")
    return labels
