"""ML-kNN: labels of a row by the numbers of its neighbours that have them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy.sparse as sp

from multilab.methods.base import MethodError, PartialClassifier
from multilab.methods.labels import Layout, is_partial, observed_groups
from multilab.methods.neighbours._label_counts import label_counts, rows_by_count, values_at
from multilab.methods.neighbours._search import Neighbours, exact_neighbours, neighbour_search

__all__ = ["MLkNN", "one_hot_columns"]


class MLkNN(PartialClassifier):
    """Multi-label k-nearest neighbours by maximum a posteriori.

    The score of a label is the posterior probability given the number of neighbours that have it; its distribution is
    estimated on the training set.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    s : float, default=1.0
        Smoothing of the counts, positive; 1 is Laplace's rule.
    exclude_self : bool, default=True
        Whether a training row is excluded from its own neighbours when frequencies are counted, as published. False is
        the default of scikit-multilearn.
    scale : {None, "minmax"}, default=None
        "minmax" divides each feature by its range in the training set before distances are taken (a constant
        feature is ignored); this is Weka's default for numeric features and therefore Mulan's.
    nominal : sequence of sequences of int, optional
        The columns of each nominal feature, for ``scale="minmax"``: its one-hot columns (`one_hot_columns` finds them
        by their names), or its one column of 0 and 1. Two different values of a nominal feature are one unit apart, as
        in Weka; without this argument each of the two one-hot columns counts one unit.
    tie_tol : float, default=0.0
        Distances are rounded to about this share of the largest distance from the mean (see `exact_neighbours`). With
        computed features, such as an embedding, 1e-9 turns distances that differ by rounding errors only into ties;
        their order would depend on the processor. Features read from a file do not need it.
    neighbours : {"exact", "hnsw", "ivf"}, default="exact"
        How neighbours are searched: "hnsw" (a graph of near rows; fast in many rows) and "ivf" (clusters; not misled
        by equal rows) are approximate, need the package faiss-cpu (extra ``ann``), and warn where they find less than
        nine of ten neighbours.

    Attributes
    ----------
    neighbour_recall_ : float
        1 for exact neighbours; else the share of the approximate neighbours of a seeded sample of up to 200 training
        rows that are not farther than the k-th exact one.
    prior_ : ndarray of shape (q,)
        Smoothed frequency of each label.
    posterior_ : ndarray of shape (q, k + 1)
        Posterior probability of each label if r = 0..k neighbours have it; NaN for more neighbours than observe it.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The published method is the default. scikit-multilearn is ``MLkNN(exclude_self=False)``. Mulan is
    ``MLkNN(scale="minmax")`` where all features are numeric, or 0/1 with both values in the training set; with other
    nominal features it is ``MLkNN(scale="minmax", nominal=one_hot_columns(feature_names))``. Mulan's order among
    equally distant neighbours is that of a heap, so it may keep others where the k-th and the next are tied.

    **Missing labels**: prior, neighbours and posterior of a label are those of the rows that observe it, as if it were
    fitted on these alone (k is the number of the other such rows, if there are fewer than k); scaling uses all rows.
    Each set of rows that observes a label needs a search of its own.

    A new row without a 1 in the one-hot columns of a feature (a value unknown in training) is half a unit from each
    value. A label is assigned iff its probability >= 0.5; the paper leaves a tie to
    chance. Exact neighbours: ties go to the lower row index (`multilab.methods.neighbours._search`).

    A sparse Y is not made dense; `predict_sparse` and `predict_top_k` make no dense scores of all rows.

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou. ML-KNN: a lazy learning approach to multi-label learning. Pattern Recognition
    40(7), 2007, 2038-2048. Equations (1) to (4).

    Examples
    --------
    >>> from multilab.methods import MLkNN
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLkNN(k=5).fit(X, y)
    >>> model.prior_.round(3)
    array([0.597, 0.661, 0.645])
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 1, 0]])
    """

    _sparse_labels: ClassVar[Layout | None] = "csr"

    def __init__(
        self,
        k: int = 10,
        s: float = 1.0,
        exclude_self: bool = True,
        scale: Literal["minmax"] | None = None,
        nominal: Sequence[Sequence[int]] | None = None,
        tie_tol: float = 0.0,
        neighbours: Neighbours = "exact",
    ) -> None:
        self.k = k
        self.s = s
        self.exclude_self = exclude_self
        self.scale = scale
        self.nominal = nominal
        self.tie_tol = tie_tol
        self.neighbours = neighbours

    def _fit(self, X: Any, Y: Any) -> None:
        if not self.s > 0:
            raise MethodError(f"s={self.s}: the smoothing must be positive")
        self._check_choices(scale=(None, "minmax"), neighbours=get_args(Neighbours))
        if not 0 <= self.tie_tol < 1:
            raise MethodError(f"tie_tol={self.tie_tol}: it lies in [0, 1)")
        if self.scale is None and self.nominal is not None:
            raise MethodError("nominal is for scale='minmax': without it features have no common unit")
        self._columns: np.ndarray | None = None
        self._factors: np.ndarray | None = None
        if self.nominal is not None:
            self._columns, self._factors = _with_nominal(X, _inverse_range(X), self.nominal)
        elif self.scale == "minmax":
            self._factors = _inverse_range(X)
        self._X = self._scaled(X)
        self._Y = Y
        self._groups = observed_groups(Y) if is_partial(Y) else None
        if self._groups is None:
            self._search = neighbour_search(self._X, self.k, self.neighbours, self.tie_tol)
            self.neighbour_recall_ = self._search.recall
            neighbours = self._search.neighbours(exclude_self=self.exclude_self)
            self.prior_, self.posterior_ = self._probabilities(Y, label_counts(neighbours, Y), self.k)
            return
        if self.neighbours != "exact":
            raise MethodError(
                f"neighbours={self.neighbours!r} needs labels that are all observed: each set of rows that observes a "
                "label would need an index of its own; use neighbours='exact'"
            )
        self.neighbour_recall_ = 1.0
        self.prior_, self.posterior_ = np.empty(self.n_labels_), np.full((self.n_labels_, self.k + 1), np.nan)
        for labels, rows in self._groups:
            known, k = Y[np.ix_(rows, labels)], self._neighbours_of(rows)
            counts = np.zeros(known.shape, dtype=np.int64)
            if k:
                neighbours, _ = exact_neighbours(self._X[rows], k, exclude_self=self.exclude_self, tie_tol=self.tie_tol)
                counts = label_counts(neighbours, known)
            self.prior_[labels], self.posterior_[labels, : k + 1] = self._probabilities(known, counts, k)

    def _neighbours_of(self, rows: np.ndarray) -> int:
        """Return k, or how many neighbours the rows of a group have."""
        return min(self.k, len(rows) - self.exclude_self)

    def _probabilities(self, Y: Any, counts: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the prior of the labels, shape (q,), and the posterior for r = 0..k neighbours, shape (q, k + 1).

        Parameters
        ----------
        Y : ndarray or CSR array of shape (n, q)
        counts : int ndarray or CSR array of shape (n, q)
            Number of neighbours of each training row that have each label.
        k : int
            Number of neighbours.
        """
        prior = (self.s + Y.sum(axis=0)) / (2.0 * self.s + Y.shape[0])
        return prior, self._posterior(Y, counts, prior, k)

    def _posterior(self, Y: Any, counts: Any, prior: np.ndarray, k: int) -> np.ndarray:
        """Return P(label | r neighbours have it) for all labels and r = 0..k, shape (q, k + 1)."""
        kappa = rows_by_count(Y, counts, k)
        likelihood = (self.s + kappa) / (self.s * (k + 1) + kappa.sum(axis=2, keepdims=True))
        present = prior[:, None] * likelihood[:, 1]
        absent = (1.0 - prior)[:, None] * likelihood[:, 0]
        return present / (present + absent)

    def _scores(self, X: Any) -> np.ndarray:
        X = self._scaled(X)
        if self._groups is None:
            return values_at(self.posterior_, label_counts(self._search.neighbours(X), self._Y))
        scores = np.empty((X.shape[0], self.n_labels_))
        for labels, rows in self._groups:
            counts = np.zeros((X.shape[0], len(labels)), dtype=np.int64)
            if k := self._neighbours_of(rows):
                neighbours, _ = exact_neighbours(self._X[rows], k, X, tie_tol=self.tie_tol)
                counts = label_counts(neighbours, self._Y[np.ix_(rows, labels)])
            scores[:, labels] = self.posterior_[labels, counts]
        return scores

    def _scaled(self, X: Any) -> Any:
        """Return the columns in use, multiplied by their factors; X itself without scaling."""
        if self._factors is None:
            return X
        if self._columns is not None:
            X = X[:, self._columns] if sp.issparse(X) else X.take(self._columns, axis=1)
        if not sp.issparse(X):
            return X * self._factors
        scaled = sp.csr_array(X @ sp.diags_array(self._factors))
        scaled.sort_indices()
        return scaled


def one_hot_columns(feature_names: Sequence[str]) -> list[list[int]]:
    """Return the columns of each nominal feature: adjacent columns with names ``feature=value``.

    `multilab.datasets` names the one-hot columns of a nominal feature so. A single column, such as that of a feature
    with the values 0 and 1, is not in the result.
    """
    names = [str(name) for name in feature_names]
    one_hot = [j for j, name in enumerate(names) if "=" in name]
    features = [list(columns) for _, columns in groupby(one_hot, key=lambda j: names[j].partition("=")[0])]
    return [columns for columns in features if len(columns) > 1]


def _inverse_range(X: Any) -> np.ndarray:
    """Return 1 / (max - min) of each column, 0 for a constant one."""
    if sp.issparse(X):
        span = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
    else:
        span = np.ptp(X, axis=0)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)


def _with_nominal(X: Any, factors: np.ndarray, nominal: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return column numbers and their factors with which two values of a nominal feature have the distance 1.

    One-hot columns occur twice with the factor 1/2: the squared distance is 4 (1/2)^2 = 1, without rounding error.
    Nominal columns are first, so that their sum is exact and equal distances are equal numbers.
    """
    features = [np.asarray(columns, dtype=np.intp).ravel() for columns in nominal]
    flat = np.concatenate([np.empty(0, dtype=np.intp), *features])
    if flat.size and (flat.min() < 0 or flat.max() >= X.shape[1]):
        wrong = flat.min() if flat.min() < 0 else flat.max()
        raise MethodError(f"nominal has column {wrong}; the columns of X are 0 to {X.shape[1] - 1}")
    if len(np.unique(flat)) < flat.size:
        raise MethodError("nominal has a column twice; give each column of a nominal feature once")
    for columns in features:
        _check_one_hot(X, columns)
    singles = np.concatenate([flat[:0], *(c for c in features if len(c) == 1)])
    one_hot = np.concatenate([flat[:0], *(c for c in features if len(c) > 1)])
    others = np.setdiff1d(np.arange(X.shape[1]), flat)
    units = [np.full(2 * one_hot.size, 0.5), np.ones(singles.size), factors[others]]
    return np.concatenate([one_hot, one_hot, singles, others]), np.concatenate(units)


def _check_one_hot(X: Any, columns: np.ndarray) -> None:
    """Raise a `MethodError` if the columns of a nominal feature are not one-hot, or a single one not 0/1."""
    part = X[:, columns]
    values = part.toarray() if sp.issparse(part) else part
    wrong = ~np.isin(values, (0.0, 1.0)).all(axis=1)
    if len(columns) > 1:
        wrong |= values.sum(axis=1) != 1
    if wrong.any():
        rule = "a single 1, else 0," if len(columns) > 1 else "0 or 1"
        raise MethodError(
            f"nominal columns {columns.tolist()} must hold {rule} in each row; row {wrong.argmax()} does not"
        )
