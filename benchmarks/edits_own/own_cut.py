"""A user's method: the frequencies of the labels among the nearest rows, cut where the user's metric is largest."""

import numpy as np
from own_metric import own_f2
from scipy.sparse import issparse
from sklearn.neighbors import NearestNeighbors

from multilab.methods.base import MultiLabelClassifier

CUTS = (0.2, 0.3, 0.4, 0.5)


class OwnCut(MultiLabelClassifier):
    """Shares among the k nearest rows; one cut for all labels."""

    def __init__(self, k=9):
        self.k = k

    def _fit(self, X, Y):
        self.rows_ = X.toarray() if issparse(X) else X
        self.labels_ = Y
        self.search_ = NearestNeighbors(n_neighbors=self.k).fit(self.rows_)
        shares = self._shares(self.search_.kneighbors(return_distance=False))
        values = [own_f2(Y, shares >= cut) for cut in CUTS]
        self.cut_ = CUTS[int(np.argmax(values))]

    def _scores(self, X):
        X = X.toarray() if issparse(X) else X
        shares = self._shares(self.search_.kneighbors(X, return_distance=False))
        return shares - self.cut_

    def _shares(self, neighbours):
        return self.labels_[neighbours].mean(axis=1)

    def _score_kind(self):
        return "margin"
