"""ReliefF-ML: hits from the groups of an instance's own labels, misses from those of all others."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection.differences import added_differences, feature_scale, scaled
from multilab.methods.selection.manhattan import distance_blocks, smallest
from multilab.methods.selection.ranking import RankingSelector

__all__ = ["ReliefFML", "group_contrast"]


class ReliefFML(RankingSelector):
    """ReliefF with one group of neighbours per label.

    Each label is a group, the instances that have it. An instance draws k hits from each group it belongs to and k
    misses from each it does not; a feature is good if it differs from misses and not from hits.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        A number of features or a share; None keeps half of them.
    k : int, default=10
        Neighbours per group, by Manhattan distance on features divided by their range; fewer where a group is smaller.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Groups count by the frequency of their label, hits and misses each normalised to 1 per instance. An instance
    without labels has no hits. Where each instance has exactly one label this is ReliefF. RF-ML (`RFML`) is another
    method: one set of neighbours, compared by label sets. The primary text was not at hand; this is the method as
    the literature describes it.

    References
    ----------
    O. Reyes, C. Morell, S. Ventura. Scalable extensions of the ReliefF algorithm for weighting and selecting
    features on the multi-label learning context. Neurocomputing 161, 2015.
    """

    _small: ClassVar[dict[str, Any]] = {"k": 3}

    def __init__(self, n_features_to_select: float | None = None, k: int = 10) -> None:
        super().__init__(n_features_to_select)
        self.k = k

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        return group_contrast(X, Y, self.k)


def group_contrast(X: Any, groups: np.ndarray, k: int) -> np.ndarray:
    """Return, per feature, the mean distance from misses less that from hits.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    groups : uint8 ndarray of shape (n, g)
        Which instances belong to which group. Those of an instance's own groups are its hits.
    k : int
        Neighbours per group.

    Raises
    ------
    MethodError
        If k is not positive.
    """
    if k < 1:
        raise MethodError(f"k={k}: there must be at least one neighbour")
    n = len(groups)
    prior = groups.mean(axis=0)
    own = groups * prior
    share = _normalised(groups * -prior, own) + _normalised((1 - groups) * prior, prior - own)
    total = np.zeros(X.shape[1])
    for rows, block in distance_blocks(scaled(X)):
        coefficients = np.zeros_like(block)
        for group in np.flatnonzero(prior):
            members = np.flatnonzero(groups[:, group])
            line, column = smallest(block[:, members], k)
            found = np.bincount(line, minlength=len(block))[line]
            coefficients[line, members[column]] += share[rows, group][line] / found
        line, column = np.nonzero(coefficients)
        total += added_differences(X, line + rows.start, column, coefficients[line, column])
    return feature_scale(X) * total / n


def _normalised(signed: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return rows divided by the sum of their sizes; rows of zeros stay."""
    total = size.sum(axis=1, keepdims=True)
    return np.divide(signed, total, out=np.zeros_like(signed), where=total > 0)
