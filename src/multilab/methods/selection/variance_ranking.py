"""Feature ranking by variance, ignoring the labels: a ranking by labels has to beat it."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from multilab.methods.selection._ranking import RankingSelector
from multilab.methods.ties import merge_ties

__all__ = ["VarianceRanking"]


class VarianceRanking(RankingSelector):
    """Feature selector by the variances of the features, ignoring the labels.

    It is MDDM's ranking with the projection "proj" and a label kernel that knows each instance from the others only.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Variances depend on the units of the features. Equal ones, except for rounding, are ranked by the column number.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods import VarianceRanking
    >>> X = np.array([[0.0, 5.0, 1.0], [1.0, -5.0, 1.0], [2.0, 5.0, 1.0]])
    >>> VarianceRanking(n_features_to_select=1).fit(X, [[0], [1], [0]]).ranking_
    array([2, 1, 3])
    """

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        if issparse(X):
            return np.asarray(mean_variance_axis(X.astype(np.float64), axis=0)[1])
        return np.asarray(np.var(X, axis=0, dtype=np.float64))

    def _compared(self, scores: np.ndarray) -> np.ndarray:
        return merge_ties(np.sqrt(scores)[None])[0]
