"""What selectors share: a score per feature becomes a ranking, and the first of it are kept."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from multilab.methods.base import MethodError
from multilab.methods.transformer import MultiLabelTransformer

__all__ = ["RankingSelector"]


class RankingSelector(SelectorMixin, MultiLabelTransformer):
    """Common part of the selectors that rank features; a subclass writes ``_score``.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        How many features are kept: a number, or a share in (0, 1]; None keeps half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (d,)
        The larger, the better; 0 for a constant feature.
    ranking_ : ndarray of shape (d,)
        Place of each feature, 1 for the best; of equal scores the feature further left comes first.
    support_ : bool ndarray of shape (d,)
        The features that are kept.
    n_features_in_ : int
    """

    def __init__(self, n_features_to_select: float | None = None) -> None:
        self.n_features_to_select = n_features_to_select

    def fit(self, X: Any, Y: Any) -> Self:
        """Rank the features of X, shape (n, d), dense or sparse, by what they tell of Y, shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of range or there are too few instances.
        """
        X, Y = self._validate_fit(X, Y)
        self.scores_ = self._score(X, Y)
        self.ranking_ = np.empty(X.shape[1], dtype=np.int64)
        self.ranking_[np.argsort(-self.scores_, kind="stable")] = np.arange(1, X.shape[1] + 1)
        self.support_ = self.ranking_ <= self._count(X.shape[1])
        return self

    @abstractmethod
    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return the scores of the features."""

    def _count(self, d: int) -> int:
        asked = self.n_features_to_select
        if asked is None:
            return max(1, d // 2)
        if isinstance(asked, Integral) and 1 <= asked <= d:
            return int(asked)
        if isinstance(asked, Real) and not isinstance(asked, Integral) and 0 < asked <= 1:
            return max(1, int(asked * d))
        raise MethodError(f"n_features_to_select={asked!r}: give 1 to {d} features or a share in (0, 1]")

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_
