"""PPT-ReliefF: ReliefF with the frequent label sets as classes."""

from typing import Any, Literal

import numpy as np

from multilab.methods.ensembles.pruned_sets import prune
from multilab.methods.selection._ranking import RankingSelector
from multilab.methods.selection.relieff_ml import group_contrast
from multilab.methods.transformation._label_sets import distinct_rows

__all__ = ["PPTReliefF"]


class PPTReliefF(RankingSelector):
    """ReliefF after pruned problem transformation.

    Each frequent label set is a class. Rows with a rare label set are reintroduced with frequent subsets of it.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.
    k : int, default=10
        Number of nearest hits, and of nearest misses per other class, by Manhattan distance on features divided by
        their ranges.
    p : int, default=3
        A label set is kept iff more than p rows have it.
    strategy : {"A", "B"}, default="A"
    b : int, default=2
        How rare label sets are reintroduced, see `PrunedSets`.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Misses of class c have the weight P(c) / (1 - P(own class)), as in ReliefF. With one label this is ReliefF with two
    classes.

    References
    ----------
    O. Reyes, C. Morell, S. Ventura. Scalable extensions of the ReliefF algorithm for weighting and selecting
    features on the multi-label learning context. Neurocomputing 161, 2015.
    I. Kononenko. Estimating attributes: analysis and extensions of RELIEF. ECML 1994.

    Examples
    --------
    >>> from multilab.methods import PPTReliefF
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = PPTReliefF(n_features_to_select=2, k=5).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        n_features_to_select: float | None = None,
        k: int = 10,
        p: int = 3,
        strategy: Literal["A", "B"] = "A",
        b: int = 2,
    ) -> None:
        super().__init__(n_features_to_select)
        self.k = k
        self.p = p
        self.strategy = strategy
        self.b = b

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return the weights of ReliefF with label sets as classes."""
        rows, sets = prune(Y, self.p, self.strategy, self.b)
        classes = distinct_rows(sets)[1]
        return group_contrast(X[rows], np.eye(classes.max() + 1, dtype=np.uint8)[classes], self.k)
