"""PPT-ReliefF: ReliefF on the frequent label sets as classes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from multilab.methods.ensembles.pruned_sets import prune
from multilab.methods.selection.ranking import RankingSelector
from multilab.methods.selection.relieff_ml import group_contrast
from multilab.methods.transformation.label_powerset import distinct_rows

__all__ = ["PPTReliefF"]


class PPTReliefF(RankingSelector):
    """ReliefF after pruned problem transformation.

    Each frequent label set becomes a class; rows of rare ones come back with frequent subsets of theirs.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        A number of features or a share; None keeps half of them.
    k : int, default=10
        Nearest hits, and nearest misses per other class, by Manhattan distance on features divided by their range.
    p : int, default=3
        A label set is kept iff more than p rows have it.
    strategy : {"A", "B"}, default="A"
    b : int, default=2
        How rare label sets come back, see `PrunedSets`.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Misses of class c count P(c) / (1 - P(own class)), as in ReliefF. With one label this is ReliefF on two classes.

    References
    ----------
    O. Reyes, C. Morell, S. Ventura. Scalable extensions of the ReliefF algorithm for weighting and selecting
    features on the multi-label learning context. Neurocomputing 161, 2015.
    I. Kononenko. Estimating attributes: analysis and extensions of RELIEF. ECML 1994.
    """

    _small: ClassVar[dict[str, Any]] = {"k": 3}

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
        rows, sets = prune(Y, self.p, self.strategy, self.b)
        classes = distinct_rows(sets)[1]
        return group_contrast(X[rows], np.eye(classes.max() + 1, dtype=np.uint8)[classes], self.k)
