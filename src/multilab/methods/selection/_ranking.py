"""Base class of the selectors: features are ranked by a score, and the first of the ranking are kept."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from multilab.methods.base import MethodError, MultiLabelTransformer


class RankingSelector(SelectorMixin, MultiLabelTransformer):
    """Base class of selectors that rank features; a subclass implements ``_score``.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.

    Attributes
    ----------
    scores_ : ndarray of shape (d,)
        Scores of the features, larger is better; a constant feature has 0.
    ranking_ : ndarray of shape (d,)
        Rank of each feature, 1 for the best; ties are ranked by the column number.
    support_ : bool ndarray of shape (d,)
        Whether a feature is kept.
    n_features_in_ : int
    """

    def __init__(self, n_features_to_select: float | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def _fit(self, X: Any, Y: Any) -> None:
        self.scores_ = self._score(X, Y)
        self.ranking_ = np.empty(X.shape[1], dtype=np.int64)
        self.ranking_[np.argsort(-self._compared(self.scores_), kind="stable")] = np.arange(1, X.shape[1] + 1)
        self.support_ = self.ranking_ <= self._count(X.shape[1])

    @abstractmethod
    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return the scores of the features, shape (d,).

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, d)
        Y : uint8 ndarray of shape (n, q)
        """

    def _compared(self, scores: np.ndarray) -> np.ndarray:
        """Return what features are ranked by: the scores, or these without differences that are rounding errors."""
        return scores

    def _count(self, d: int) -> int:
        """Return the number of features to keep of d; raise a `MethodError` if the argument is out of range."""
        requested = self.n_features_to_select
        if requested is None:
            return max(1, d // 2)
        if isinstance(requested, Integral) and 1 <= requested <= d:
            return int(requested)
        if isinstance(requested, Real) and not isinstance(requested, Integral) and 0 < requested <= 1:
            return max(1, int(requested * d))
        raise MethodError(f"n_features_to_select={requested!r}: give 1 to {d} features or a share in (0, 1]")

    def _get_support_mask(self) -> np.ndarray:
        """Return ``support_``, as the mixin of scikit-learn requires."""
        check_is_fitted(self)
        return self.support_
