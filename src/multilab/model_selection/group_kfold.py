"""Group k-fold cross-validation in which every label is about equally frequent in all folds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from pandas import isna
from sklearn.model_selection import BaseCrossValidator

from multilab.datasets.errors import DatasetError
from multilab.model_selection.iterative_stratification.assignment import fold_sizes, random_permutation
from multilab.model_selection.iterative_stratification.columns import LabelMatrix, stratification_columns
from multilab.model_selection.iterative_stratification.kfold import folds_of, labels_of, seed_of

_SCALE = 16  # resolution of the integer weights
_EXCHANGED = 500  # groups; exchanges take seconds up to here, and with more groups moves alone come close


class IterativeStratifiedGroupKFold(BaseCrossValidator):
    r"""Group k-fold cross-validator that balances labels: all rows of a group are in one fold.

    A scikit-learn splitter: pass it as ``cv``, with ``groups``, which it requests if metadata routing is enabled.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2 and at most the number of groups.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, RandomState or None, default 0
        Seed of the order of similar groups and of ties; the folds are the same on every machine. None gives other folds
        in every call.

    See Also
    --------
    IterativeStratifiedKFold : Rows without groups, with exact fold sizes.

    Notes
    -----
    The method is this project's own; there is no published one for groups of multi-label rows. It reduces

    .. math:: \sum_c \frac{1}{N_c} \sum_j \left(n_{cj} - \frac{N_c}{k}\right)^2,

    a chi-square over k folds: c is a label (or pair) of :math:`N_c` rows, of which :math:`n_{cj}` are in fold j. An
    additional label that every row has balances the fold sizes. As in scikit-learn's ``StratifiedGroupKFold`` for
    classes, groups are assigned one by one, the most uneven first (here: the largest :math:`\sum_c v_c^2 / N_c`, in
    powers of two, where :math:`v_c` of its rows have label c), each to the fold where the sum grows least. Then single
    groups are moved and, with at most 500 groups, pairs are exchanged, as long as that reduces the sum. Weights are
    rounded to integers, so the folds are the same on every machine.

    Fold sizes differ as much as the groups require. The fold of a group does not depend on the order of the rows.

    Examples
    --------
    >>> from multilab.model_selection import IterativeStratifiedGroupKFold
    >>> y = [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> groups = ["a", "a", "b", "c", "c", "d"]
    >>> splitter = IterativeStratifiedGroupKFold(2)
    >>> sorted(test.tolist() for train, test in splitter.split(y, y, groups))
    [[0, 1, 5], [2, 3, 4]]
    """

    __metadata_request__split: ClassVar = {"groups": True}

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
        groups : array-like of shape (n,)
            Group of each row: numbers or text.

        Raises
        ------
        DatasetError
            If labels are not 0 and 1, groups are missing, numbers of rows differ, or there are more folds than groups.
        """
        labels = labels_of(X, y)
        members = group_matrix(groups, labels.positive.shape[0])
        fold_sizes(labels.positive.shape[0], self.n_splits)
        if self.n_splits > members.shape[0]:
            raise DatasetError(
                f"{self.n_splits} folds of {members.shape[0]} groups: every fold needs at least one group"
            )
        counts, weights = _weighted_counts(labels, members, self.order)
        fold_of = _Folds(counts, weights, self.n_splits).assign(seed_of(self.random_state))
        yield from folds_of(members.T @ fold_of)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits


def group_matrix(groups: Any, n: int) -> sp.csr_array:
    """Return which rows are in which group, groups in ascending order."""
    if groups is None:
        raise DatasetError("the groups of the rows are missing; call split(X, y, groups)")
    array = np.asarray(groups)
    if array.shape != (n,):
        raise DatasetError(f"groups must have one value per row, shape ({n},), got shape {array.shape}")
    if isna(array).any():
        raise DatasetError("groups hold missing values; give every row a group")
    try:
        names, group = np.unique(array, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in array.tolist()}))
        raise DatasetError(f"groups must all be numbers or all texts, but hold {kinds}; convert them to text") from None
    return sp.csr_array((np.ones(n, dtype=np.int64), (group, np.arange(n))), shape=(len(names), n))


def _weighted_counts(labels: LabelMatrix, members: sp.csr_array, order: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return the rows of each group per column, the last of which counts all rows, and the weights of the columns."""
    columns = stratification_columns(labels, order).astype(np.int64)
    n = columns.shape[0]
    everything = sp.csr_array(np.ones((n, 1), dtype=np.int64))
    counts = sp.csr_array(members @ sp.hstack([columns, everything], format="csr"))
    return counts, _SCALE * n // counts.sum(axis=0)


class _Folds:
    """Assignment of groups to folds.

    Parameters
    ----------
    counts : csr_array of int64 of shape (groups, columns)
    weights : ndarray of int64 of shape (columns,)
    k : int
        Number of folds.
    """

    def __init__(self, counts: sp.csr_array, weights: np.ndarray, k: int) -> None:
        self.k = k
        self.table = counts
        self.weighted_table = sp.csr_array(counts * weights)
        self.columns, self.counts, self.weighted = (
            np.split(values, counts.indptr[1:-1])
            for values in (counts.indices, counts.data, counts.data * weights[counts.indices])
        )
        self.norms = np.array([int(v @ w) for v, w in zip(self.counts, self.weighted, strict=True)])
        self.needs = np.repeat(counts.sum(axis=0)[:, None], k, axis=1)  # in units of 1/k rows
        self.sizes = np.zeros(k, dtype=np.int64)  # in groups

    def gains(self, group: int) -> np.ndarray:
        """Return by how much the objective falls if a group joins each fold, up to scale and a constant."""
        return self.weighted[group] @ self.needs[self.columns[group]]

    def put(self, group: int, fold: int, sign: int = 1) -> None:
        """Add a group to a fold, or take it out."""
        self.needs[self.columns[group], fold] -= sign * self.k * self.counts[group]
        self.sizes[fold] += sign

    def assign(self, seed: int) -> np.ndarray:
        """Return the fold of every group."""
        n_groups = len(self.counts)
        ties = random_permutation(n_groups, seed, 0)
        # in powers of two, so that another seed gives another order and other folds
        order = np.lexsort((ties, np.array([-int(norm).bit_length() for norm in self.norms])))
        fold_of = np.empty(n_groups, dtype=np.int64)
        for position, group in enumerate(order):
            empty = self.sizes == 0
            gains = self.gains(group)
            if empty.sum() == n_groups - position:
                gains = np.where(empty, gains, np.iinfo(np.int64).min)
            best = np.flatnonzero(gains == gains.max())
            fold_of[group] = fold = best[ties[group] % len(best)]
            self.put(group, fold)
        while self._move(order, fold_of) or self._exchange(order, fold_of):
            pass
        return fold_of

    def _move(self, order: np.ndarray, fold_of: np.ndarray) -> bool:
        """Move groups to better folds, one after the other; return whether any was moved."""
        moved = False
        for group in order:
            gains, fold = self.gains(group), fold_of[group]
            better = int(gains.argmax())
            if self.sizes[fold] > 1 and gains[better] - gains[fold] > self.k * self.norms[group]:
                self.put(group, fold, -1)
                self.put(group, better)
                fold_of[group] = better
                moved = True
        return moved

    def _exchange(self, order: np.ndarray, fold_of: np.ndarray) -> bool:
        """Exchange pairs of groups, each group with its best partner; return whether any were exchanged."""
        if len(order) > _EXCHANGED:
            return False
        every = np.arange(len(order))
        products = (self.weighted_table @ self.table.T).toarray()
        gains = self.weighted_table @ self.needs
        exchanged = False
        for group in order:
            fold = fold_of[group]
            distances = self.norms[group] + self.norms - 2 * products[group]
            values = gains[group, fold_of] - gains[group, fold] + gains[:, fold] - gains[every, fold_of]
            values -= self.k * distances
            partner = int(np.where(fold_of == fold, 0, values).argmax())
            other = fold_of[partner]
            if other != fold and values[partner] > 0:
                for member, old, new in ((group, fold, other), (partner, other, fold)):
                    self.put(member, old, -1)
                    self.put(member, new)
                    fold_of[member] = new
                change = self.k * (products[group] - products[partner])
                gains[:, fold] += change
                gains[:, other] -= change
                exchanged = True
        return exchanged
