"""The features that MLNB's genetic search chooses for naive Bayes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError
from multilab.methods.bayes.mlnb import search_columns
from multilab.methods.selection.ranking import RankingSelector

__all__ = ["MLNBSelector"]


class MLNBSelector(RankingSelector):
    """Keeps the subset of features that a genetic search finds best for multi-label naive Bayes.

    How many features are kept comes out of the search.

    Parameters
    ----------
    population : int, default=20
    generations : int, default=100
    folds : int, default=10
        Contiguous parts of the rows on which a subset is judged.
    s : float, default=1.0
        Smoothing of the prior, positive.
    random_state : int or RandomState, optional

    Attributes
    ----------
    scores_ : ndarray of shape (d,)
        Held-out balanced accuracy of naive Bayes on the feature by itself, averaged over labels, and 1 more for a
        feature that is kept. So those kept come first in ``ranking_``.
    losses_ : ndarray of shape (generations + 1,)
        Held-out loss of the best subset after each generation.
    ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    The search is that of `MLNB` on the features themselves. MLNB as published searches among principal components,
    which are no features: that is ``MLNB(components=0.3)``, or before another classifier a pipeline of scikit-learn's
    ``PCA`` and this selector. The publication gives no order of the features it keeps.

    References
    ----------
    M.-L. Zhang, J. M. Peña, V. Robles. Feature selection for multi-label naive Bayes classification. Information
    Sciences 179(19), 2009.
    """

    _small: ClassVar[dict[str, Any]] = {"generations": 5, "folds": 3}

    def __init__(
        self, population: int = 20, generations: int = 100, folds: int = 10, s: float = 1.0, random_state: Any = None
    ) -> None:
        self.population = population
        self.generations = generations
        self.folds = folds
        self.s = s
        self.random_state = random_state

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        if not self.s > 0:
            raise MethodError(f"s={self.s}: the smoothing must be positive")
        dense = X.toarray() if sp.issparse(X) else X
        random = check_random_state(self.random_state)
        held_out, self._kept, self.losses_ = search_columns(
            dense, Y, self.population, self.generations, self.folds, self.s, random
        )
        return held_out.single_columns() + self._kept

    def _count(self, d: int) -> int:
        return int(self._kept.sum())
