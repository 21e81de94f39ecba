"""ML-RBF: a radial basis function network whose centres are found label by label."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import lstsq
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.kernels import squared_distances
from multilab.methods.ties import merge_ties

__all__ = ["MLRBF"]

_APART = 1e-6  # relative: a row as near to one starting centre as to another would go where rounding says
_RANK = 1e-8  # singular values up to this share of the largest are 0: smaller ones would multiply rounding errors


class MLRBF(MultiLabelClassifier):
    """Multi-label radial basis function network.

    The instances of each label are clustered by k-means; every cluster centre c is a basis function
    exp(-|x - c|^2 / (2 sigma^2)) for all labels, beside a constant. The output weights are the least squares
    solution for Y in {-1, +1}.

    Parameters
    ----------
    ratio : float, default=0.01
        Centres per instance of a label, rounded up; in (0, 1].
    mu : float, default=1.0
        sigma is mu times the mean distance between two centres.
    random_state : int, RandomState or None
        Seed of k-means, the same for each label.

    Attributes
    ----------
    centres_ : ndarray of shape (h, d)
    width_ : float
        sigma; 1 where there is one centre only, or all coincide.
    coef_ : ndarray of shape (h + 1, p)
        Output weights, the constant's first, one column for each of the p distinct columns of Y.
    column_ : ndarray of shape (q,)
        Which column of ``coef_`` belongs to each label.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label without a training positive has no centres of its own, and labels with equal columns have theirs
    once. Least squares by singular values, since centres of related labels nearly coincide. A label is assigned
    iff its score is >= 0 (the paper: > 0). Singular values up to 1e-8 of the largest count as 0, and the rows at which
    k-means starts are moved by 1e-6, so that no row is as near to one centre as to another.
    Scores that differ by rounding errors only are made equal, see `multilab.methods.ties.merge_ties`.

    References
    ----------
    M.-L. Zhang. ML-RBF: RBF neural networks for multi-label learning. Neural Processing Letters 29(2), 2009,
    61-74.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_training_permutation": "k-means starts at rows drawn by number",
    }

    def __init__(self, ratio: float = 0.01, mu: float = 1.0, random_state: Any = None) -> None:
        self.ratio = ratio
        self.mu = mu
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of range.
        """
        X, Y = self._validate_fit(X, Y)
        if not 0 < self.ratio <= 1:
            raise MethodError(f"ratio={self.ratio}: it lies in (0, 1]")
        if not self.mu > 0:
            raise MethodError(f"mu={self.mu}: it must be positive")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        distinct, self.column_ = np.unique(Y, axis=1, return_inverse=True)
        centres = [self._cluster(X[column == 1], seed) for column in distinct.T if column.any()]
        self.centres_ = np.vstack([np.empty((0, X.shape[1])), *centres])
        apart = pdist(self.centres_)
        self.width_ = self.mu * float(apart.mean()) if apart.any() else 1.0
        self.coef_ = lstsq(self._basis(X), 2.0 * distinct - 1.0, cond=_RANK)[0]
        return self

    def _cluster(self, instances: Any, seed: int) -> np.ndarray:
        """Return the centres of a label's instances."""
        k = math.ceil(self.ratio * instances.shape[0])
        if k == 1:
            return np.asarray(instances.mean(axis=0)).reshape(1, -1)
        random = np.random.RandomState(seed)
        start = instances[
            random.choice(instances.shape[0], k, replace=False, p=np.full(instances.shape[0], 1.0) / instances.shape[0])
        ]
        start = start.toarray() if issparse(start) else start
        start = start * (1.0 + _APART * random.uniform(size=start.shape))
        return KMeans(k, init=start, n_init=1).fit(instances).cluster_centers_

    def _basis(self, X: Any) -> np.ndarray:
        """Return 1 and the basis functions, shape (m, h + 1)."""
        functions = np.exp(squared_distances(X, self.centres_) / (-2.0 * self.width_**2))
        return np.hstack([np.ones((X.shape[0], 1)), functions])

    def _score_kind(self) -> str:
        return "margin"

    def _scores(self, X: Any) -> np.ndarray:
        return merge_ties(self._basis(X) @ self.coef_)[:, self.column_]
