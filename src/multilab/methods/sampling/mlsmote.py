"""MLSMOTE: synthetic rows for rare labels, between a row and one of its neighbours."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.stats import mode

from multilab.methods.base import MethodError
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.sampling._sampler import LabelSampler, minority_labels

__all__ = ["MLSMOTE"]

LabelRule = Literal["ranking", "union", "intersection"]


class MLSMOTE(LabelSampler):
    """Synthetic over-sampling by label: for each row with a minority label a new one between it and a neighbour.

    Minority labels are those whose imbalance ratio IRLbl is above its mean, MeanIR. For each of them, each row with the
    label and one of its k nearest neighbours among the rows with the label, drawn at random, give a synthetic row.

    Parameters
    ----------
    k : int, default=5
        Number of neighbours; all other rows with the label where there are fewer.
    labels : {"ranking", "union", "intersection"}, default="ranking"
        Labels of a synthetic row: those that at least half of the row and its k neighbours have, that any of them has,
        or that all have.
    categorical_features : sequence of int, optional
        Columns that are not interpolated: they get the most frequent value of the neighbours, of equals the smallest.
    random_state : int or RandomState, optional
        Seed of the draws.

    Attributes
    ----------
    n_synthetic_ : int
        Number of synthetic rows, which follow the given ones.
    n_features_in_ : int

    Notes
    -----
    Use it inside folds only: `ResampledClassifier` resamples in ``fit`` and leaves test rows alone.

    A synthetic row is x + u (z - x), z the neighbour and u uniform on (0, 1), one u per row: it is on the segment
    between both, and a sparse X gives the same rows as a dense one (the pseudo-code of the paper draws one u per
    feature). Distances are Euclidean over all columns, also categorical ones, for which the paper has the value
    difference metric. Neighbours and the minority are those of the given rows. A label with a single row has no
    neighbours and gets no synthetic row.

    References
    ----------
    F. Charte, A. J. Rivera, M. J. del Jesus, F. Herrera. MLSMOTE: approaching imbalanced multilabel learning through
    synthetic instance generation. Knowledge-Based Systems 89, 2015.

    Examples
    --------
    >>> from multilab.methods import MLSMOTE
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [[1, 0], [1, 0], [1, 0], [1, 1], [0, 1]]
    >>> new_X, new_y = MLSMOTE(random_state=0).fit_resample(X, y)
    >>> new_X.round(2).ravel()
    array([0.  , 1.  , 2.  , 3.  , 4.  , 3.55, 3.28])
    >>> new_y[-2:]
    array([[1, 1],
           [1, 1]])
    """

    def __init__(
        self,
        k: int = 5,
        labels: LabelRule = "ranking",
        categorical_features: Sequence[int] | None = None,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.labels = labels
        self.categorical_features = categorical_features
        self.random_state = random_state

    def _check_arguments(self) -> None:
        if self.k < 1:
            raise MethodError(f"k={self.k!r}: give the number of neighbours, 1 or more")
        self._check_choices(labels=("ranking", "union", "intersection"))

    def _resample(self, X: Any, Y: np.ndarray, rng: np.random.RandomState) -> tuple[Any, np.ndarray]:
        categorical = self._categorical(X.shape[1])
        new_X, new_Y = [X], [Y]
        for label in minority_labels(Y):
            bag = np.flatnonzero(Y[:, label])
            if len(bag) < 2:
                continue
            near = bag[exact_neighbours(X[bag], min(self.k, len(bag) - 1))[0]]  # (rows of the bag, k)
            chosen = near[np.arange(len(bag)), rng.randint(near.shape[1], size=len(bag))]
            rows = _between(X[bag], X[chosen], rng.uniform(size=len(bag)))
            new_X.append(_with_modes(rows, X, near, categorical) if len(categorical) else rows)
            new_Y.append(self._label_sets(Y, bag, near))
        self.n_synthetic_ = sum(len(part) for part in new_Y[1:])
        return sp.vstack(new_X, format="csr") if sp.issparse(X) else np.vstack(new_X), np.vstack(new_Y)

    def _label_sets(self, Y: np.ndarray, bag: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the labels of the synthetic rows, shape (rows of the bag, q)."""
        counts = Y[bag].astype(np.intp)
        for column in near.T:
            counts += Y[column]
        members = near.shape[1] + 1
        least = {"ranking": members / 2, "union": 1, "intersection": members}[self.labels]
        return (counts >= least).astype(np.uint8)

    def _categorical(self, d: int) -> np.ndarray:
        if self.categorical_features is None:
            return np.empty(0, dtype=np.intp)
        columns = np.unique(np.asarray(self.categorical_features))
        if columns.dtype.kind not in "iu" or not len(columns) or columns[0] < 0 or columns[-1] >= d:
            raise MethodError(
                f"categorical_features={self.categorical_features!r}: give column numbers from 0 to {d - 1}"
            )
        return columns


def _between(X: Any, Z: Any, share: np.ndarray) -> Any:
    """Return X + share (Z - X), row by row."""
    if sp.issparse(X):
        return type(X)(X + sp.diags_array(share).tocsr() @ (Z - X))
    return X + share[:, None] * (Z - X)


def _with_modes(rows: Any, X: Any, near: np.ndarray, columns: np.ndarray) -> Any:
    """Return synthetic rows with the most frequent values of the neighbours in some columns."""
    values = X[:, columns]
    values = values.toarray() if sp.issparse(values) else values
    modes = mode(values[near], axis=1).mode
    if not sp.issparse(rows):
        rows[:, columns] = modes
        return rows
    others = np.ones(rows.shape[1])
    others[columns] = 0.0
    scatter = sp.csr_array((np.ones(len(columns)), (np.arange(len(columns)), columns)), (len(columns), rows.shape[1]))
    return type(rows)(rows @ sp.diags_array(others).tocsr() + sp.csr_array(modes) @ scatter)
