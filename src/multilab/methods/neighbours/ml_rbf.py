"""ML-RBF: radial basis function network with centres from k-means per label."""

import math
from typing import Any

import numpy as np
from scipy.linalg import lstsq
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, PartialClassifier
from multilab.methods.kernels import squared_distances
from multilab.methods.labels import is_partial, observed_groups
from multilab.methods.ties import merge_ties

__all__ = ["MLRBF"]

_APART = (
    1e-6  # relative: moves the starting centres, so that no row is equally near to two of them up to rounding errors
)
_RANK = 1e-8  # singular values up to this share of the largest count as 0: they would amplify rounding errors


class MLRBF(PartialClassifier):
    """Multi-label radial basis function network.

    The instances of each label are clustered by k-means. The basis functions, shared by all labels, are a constant and
    exp(-|x - c|^2 / (2 sigma^2)) for each cluster centre c. The output weights are the least squares solution for
    targets in {-1, +1}.

    Parameters
    ----------
    ratio : float, default=0.01
        Number of centres of a label as a share of its instances, rounded up; in (0, 1].
    mu : float, default=1.0
        sigma is mu times the mean distance of two centres; positive.
    random_state : int, RandomState or None
        Seed of k-means, the same for each label.

    Attributes
    ----------
    centres_ : ndarray of shape (h, d)
        Centres of the basis functions of all labels.
    width_ : float
        sigma; 1 if there is only one centre or all coincide.
    coef_ : ndarray of shape (h + 1, p)
        Output weights, one column for each of the p distinct columns of Y; the first row is that of the constant.
    column_ : ndarray of shape (q,)
        Column of ``coef_`` of each label.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label without positive training rows has no centres, and labels with equal columns of Y share theirs. Least
    squares uses singular values, because centres of related labels nearly coincide; values up to 1e-8 of the largest
    count as 0. Scores that differ by rounding errors only are made equal (`multilab.methods.ties.merge_ties`).

    **Missing labels**: the centres of a label are those of the rows known to have it, and its output weights are the
    least squares solution on the rows that observe it.

    Deviations from the paper: a label is assigned iff its score is >= 0 (the paper: > 0), and the starting centres of
    k-means, which are training rows, are moved by a relative 1e-6, so that no row is equally near to two of them.

    References
    ----------
    M.-L. Zhang. ML-RBF: RBF neural networks for multi-label learning. Neural Processing Letters 29(2), 2009,
    61-74.

    Examples
    --------
    >>> from multilab.methods import MLRBF
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLRBF(ratio=0.1, random_state=0).fit(X, y)
    >>> model.decision_function(X).shape
    (60, 3)
    """

    def __init__(self, ratio: float = 0.01, mu: float = 1.0, random_state: Any = None) -> None:
        self.ratio = ratio
        self.mu = mu
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        if not 0 < self.ratio <= 1:
            raise MethodError(f"ratio={self.ratio}: it lies in (0, 1]")
        if not self.mu > 0:
            raise MethodError(f"mu={self.mu}: it must be positive")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        distinct, self.column_ = np.unique(Y, axis=1, return_inverse=True)
        centres = [self._cluster(X[column == 1], seed) for column in distinct.T if (column == 1).any()]
        self.centres_ = np.vstack([np.empty((0, X.shape[1])), *centres])
        apart = pdist(self.centres_)
        self.width_ = self.mu * float(apart.mean()) if apart.any() else 1.0
        basis, targets = self._basis(X), 2.0 * distinct - 1.0
        if not is_partial(distinct):
            self.coef_ = lstsq(basis, targets, cond=_RANK)[0]
            return
        self.coef_ = np.empty((basis.shape[1], targets.shape[1]))
        for labels, rows in observed_groups(distinct):
            self.coef_[:, labels] = lstsq(basis[rows], targets[np.ix_(rows, labels)], cond=_RANK)[0]

    def _cluster(self, instances: Any, seed: int) -> np.ndarray:
        """Return the k-means centres of the instances of a label, shape (ceil(ratio n_l), d)."""
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
        """Return the constant 1 and the values of the basis functions, shape (m, h + 1)."""
        functions = np.exp(squared_distances(X, self.centres_) / (-2.0 * self.width_**2))
        return np.hstack([np.ones((X.shape[0], 1)), functions])

    def _score_kind(self) -> str:
        return "margin"

    def _scores(self, X: Any) -> np.ndarray:
        return merge_ties(self._basis(X) @ self.coef_)[:, self.column_]
