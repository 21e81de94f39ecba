"""ML-kNN: the labels of a point from how many of its neighbours have them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.neighbours.search import exact_neighbours

__all__ = ["MLkNN"]


class MLkNN(MultiLabelClassifier):
    """Multi-label k-nearest neighbours by maximum a posteriori.

    For each label the number of neighbours that have it is turned into a posterior probability, with
    frequencies counted on the training set.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    s : float, default=1.0
        Smoothing of the counts, positive; 1 is Laplace's rule.
    exclude_self : bool, default=True
        Whether a training point is left out of its own neighbours when frequencies are counted (as
        published). False is what scikit-multilearn does by default.
    scale : {None, "minmax"}, default=None
        "minmax" divides each feature by its range in the training part before distances are taken (a constant
        feature is ignored); this is Weka's default and therefore Mulan's.
    tie_tol : float, default=0.0
        Distances are rounded to about this share of the largest distance from the mean (see `exact_neighbours`). For
        features that are computed, such as an embedding: 1e-9 makes ties of what differs by rounding errors only,
        which another processor would order otherwise. Features read from a file need none.

    Attributes
    ----------
    prior_ : ndarray of shape (q,)
        Smoothed frequency of each label.
    posterior_ : ndarray of shape (q, k + 1)
        Probability of the label when r = 0..k neighbours have it.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The published method is the default. Mulan is ``MLkNN(scale="minmax")``, scikit-multilearn is
    ``MLkNN(exclude_self=False)``. A label is assigned iff its probability >= 0.5; the paper leaves a tie to
    chance. Neighbours are exact, ties go to the lower row index (`multilab.methods.neighbours.search`).

    References
    ----------
    M.-L. Zhang, Z.-H. Zhou. ML-KNN: a lazy learning approach to multi-label learning. Pattern Recognition
    40(7), 2007, 2038-2048. Equations (1) to (4).
    """

    _small: ClassVar[dict[str, Any]] = {"k": 3}

    def __init__(
        self,
        k: int = 10,
        s: float = 1.0,
        exclude_self: bool = True,
        scale: Literal["minmax"] | None = None,
        tie_tol: float = 0.0,
    ) -> None:
        self.k = k
        self.s = s
        self.exclude_self = exclude_self
        self.scale = scale
        self.tie_tol = tie_tol

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q), with n > k.

        Raises
        ------
        MethodError
            If an argument is out of range or there are too few instances.
        """
        X, Y = self._validate_fit(X, Y)
        if not self.s > 0:
            raise MethodError(f"s={self.s}: the smoothing must be positive")
        if self.scale not in (None, "minmax"):
            raise MethodError(f"scale={self.scale!r}: give None or 'minmax'")
        if not 0 <= self.tie_tol < 1:
            raise MethodError(f"tie_tol={self.tie_tol}: it lies in [0, 1)")
        self._inverse_range = _inverse_range(X) if self.scale == "minmax" else None
        self._X = self._scaled(X)
        self._Y = Y
        neighbours, _ = exact_neighbours(self._X, self.k, exclude_self=self.exclude_self, tie_tol=self.tie_tol)
        self.prior_ = (self.s + Y.sum(axis=0)) / (2.0 * self.s + len(Y))
        self.posterior_ = self._posterior(self._count(neighbours))
        return self

    def _posterior(self, counts: np.ndarray) -> np.ndarray:
        """Return P(label | r neighbours have it) for every label and r, shape (q, k + 1)."""
        q, size = self.n_labels_, self.k + 1
        place = (2 * np.arange(q) + self._Y) * size + counts
        kappa = np.bincount(place.ravel(), minlength=2 * q * size).reshape(q, 2, size)
        likelihood = (self.s + kappa) / (self.s * size + kappa.sum(axis=2, keepdims=True))
        present = self.prior_[:, None] * likelihood[:, 1]
        absent = (1.0 - self.prior_)[:, None] * likelihood[:, 0]
        return present / (present + absent)

    def _scores(self, X: Any) -> np.ndarray:
        neighbours, _ = exact_neighbours(self._X, self.k, self._scaled(X), tie_tol=self.tie_tol)
        return self.posterior_[np.arange(self.n_labels_), self._count(neighbours)]

    def _count(self, neighbours: np.ndarray) -> np.ndarray:
        """Return how many of each row's neighbours have each label, shape (m, q)."""
        m, k = neighbours.shape
        chosen = sp.csr_array(
            (np.ones(m * k, dtype=np.int64), neighbours.ravel(), np.arange(0, m * k + 1, k)),
            shape=(m, len(self._Y)),
        )
        return chosen @ self._Y

    def _scaled(self, X: Any) -> Any:
        if self._inverse_range is None:
            return X
        return X @ sp.diags_array(self._inverse_range) if sp.issparse(X) else X * self._inverse_range


def _inverse_range(X: Any) -> np.ndarray:
    """Return 1 / (max - min) of each column, 0 for a constant one."""
    if sp.issparse(X):
        span = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
    else:
        span = np.ptp(X, axis=0)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)
