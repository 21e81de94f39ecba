"""Feature selection by the genetic search of MLNB for naive Bayes."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError
from multilab.methods.bayes.mlnb import search_columns
from multilab.methods.selection._ranking import RankingSelector

__all__ = ["MLNBSelector"]


class MLNBSelector(RankingSelector):
    """Feature selector by a genetic search for multi-label naive Bayes.

    The search determines the number of features that are kept.

    Parameters
    ----------
    population : int, default=20
        Number of subsets per generation.
    generations : int, default=100
        Number of generations of the genetic search.
    folds : int, default=10
        Number of contiguous folds of the rows for the held-out loss of a subset.
    s : float, default=1.0
        Smoothing of the prior, positive.
    random_state : int or RandomState, optional
        Seed of the genetic search.

    Attributes
    ----------
    scores_ : ndarray of shape (d,)
        Held-out balanced accuracy of naive Bayes on the single feature, averaged over labels, plus 1 for a kept
        feature: the kept features are the first of ``ranking_``.
    losses_ : ndarray of shape (generations + 1,)
        Held-out loss of the best subset after each generation.
    ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    The search is that of `MLNB` on the original features. The published MLNB searches among principal components, which
    are not features: that is ``MLNB(components=0.3)``, or a pipeline of ``PCA`` of scikit-learn, this selector and
    another classifier. The publication gives no order of the kept features; the balanced accuracy is our choice.

    **Missing labels**: as in `MLNB`.

    References
    ----------
    M.-L. Zhang, J. M. Peña, V. Robles. Feature selection for multi-label naive Bayes classification. Information
    Sciences 179(19), 2009.

    Examples
    --------
    >>> from multilab.methods import MLNBSelector
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLNBSelector(generations=2, folds=3, random_state=0).fit(X, y)
    >>> bool(model.get_support().any())
    True
    """

    _accepts_missing_labels: ClassVar[bool] = True
    _makes_dense: ClassVar[bool] = True

    def __init__(
        self, population: int = 20, generations: int = 100, folds: int = 10, s: float = 1.0, random_state: Any = None
    ) -> None:
        self.population = population
        self.generations = generations
        self.folds = folds
        self.s = s
        self.random_state = random_state

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return the balanced accuracies plus the result of the search and set ``losses_``."""
        if not self.s > 0:
            raise MethodError(f"s={self.s}: the smoothing must be positive")
        dense = X.toarray() if sp.issparse(X) else X
        random = check_random_state(self.random_state)
        held_out, self._kept, self.losses_ = search_columns(
            dense, Y, self.population, self.generations, self.folds, self.s, random
        )
        return held_out.single_columns() + self._kept

    def _count(self, d: int) -> int:
        """Return the number of features that the search kept."""
        return int(self._kept.sum())
