"""ReliefF-ML: hits from the groups of the labels of an instance, misses from the groups of the other labels."""

from typing import Any

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection._distances import added_differences, distance_blocks, feature_scale, scaled, smallest
from multilab.methods.selection._ranking import RankingSelector

__all__ = ["ReliefFML", "group_contrast"]


class ReliefFML(RankingSelector):
    """ReliefF with one group of neighbours per label.

    The group of a label are the instances that have it. An instance has k hits in each group that it belongs to and k
    misses in each other group. The weight of a feature is its mean distance to misses less that to hits.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.
    k : int, default=10
        Number of neighbours per group, by Manhattan distance on features divided by their ranges; fewer if the group is
        smaller.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    A group is weighted by the frequency of its label; the weights of hits, and of misses, sum to 1 per instance. An
    instance without labels has no hits. If each instance has exactly one label, this is ReliefF. RF-ML (`RFML`) is a
    different method: it compares the label sets of one set of neighbours. The primary text was not available; this
    implements the method as the literature describes it.

    References
    ----------
    O. Reyes, C. Morell, S. Ventura. Scalable extensions of the ReliefF algorithm for weighting and selecting
    features on the multi-label learning context. Neurocomputing 161, 2015.

    Examples
    --------
    >>> from multilab.methods import ReliefFML
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ReliefFML(n_features_to_select=2, k=5).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(self, n_features_to_select: float | None = None, k: int = 10) -> None:
        super().__init__(n_features_to_select)
        self.k = k

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return the contrast of the features with one group per label."""
        return group_contrast(X, Y, self.k)


def group_contrast(X: Any, groups: np.ndarray, k: int) -> np.ndarray:
    """Return the mean distance to misses less the mean distance to hits of each feature, shape (d,).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    groups : uint8 ndarray of shape (n, g)
        Membership of the instances in the groups. Neighbours in a group of the instance are hits, others misses.
    k : int
        Number of neighbours per group.

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
    # (n, g): weight of each group for each instance, negative for hits
    share = _normalised(groups * -prior, own) + _normalised((1 - groups) * prior, prior - own)
    total = np.zeros(X.shape[1])
    for rows, block in distance_blocks(scaled(X)):
        coefficients = np.zeros_like(block)  # (b, n): weights of the pairs, added up over groups
        for group in np.flatnonzero(prior):
            members = np.flatnonzero(groups[:, group])
            line, column = smallest(block[:, members], k)
            counts = np.bincount(line, minlength=len(block))[line]
            coefficients[line, members[column]] += share[rows, group][line] / counts
        line, column = np.divmod(np.flatnonzero(coefficients != 0), n)  # much faster than np.nonzero(coefficients)
        total += added_differences(X, line + rows.start, column, coefficients[line, column])
    return feature_scale(X) * total / n


def _normalised(signed: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return ``signed`` divided by the row sums of ``size``, both (n, g); rows with the sum 0 become 0."""
    total = size.sum(axis=1, keepdims=True)
    return np.divide(signed, total, out=np.zeros_like(signed), where=total > 0)
