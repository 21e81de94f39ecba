"""RF-ML: ReliefF for regression with a distance of label sets instead of the distance of targets."""

from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection._distances import added_differences, distance_blocks, feature_scale, scaled, smallest
from multilab.methods.selection._ranking import RankingSelector

__all__ = ["RFML"]


class RFML(RankingSelector):
    """ReliefF for multi-label data.

    The weight of a feature is large if it differs between near instances with different label sets and does not differ
    between near instances with similar ones.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.
    k : int, default=10
        Number of nearest neighbours, by Manhattan distance on features divided by their ranges.
    weighting : {"uniform", "exponential"}, default="uniform"
        Weights of the neighbours: equal, or proportional to exp(-(rank / sigma)^2).
    sigma : float, default=20.0
        Positive; used with weighting="exponential" only.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    RReliefF over all n instances, W_f = N_dCdf / N_dC - (N_df - N_dCdf) / (n - N_dC), where dC is the Hamming distance
    of label sets divided by q; a quotient with the divisor 0 counts as 0. With one label W_f is the mean distance of
    neighbours of different class less that of neighbours of the same class. Of equally near instances the first ones
    are taken.

    References
    ----------
    N. Spolaôr, E. A. Cherman, M. C. Monard, H. D. Lee. ReliefF for multi-label feature selection. BRACIS 2013.
    M. Robnik-Šikonja, I. Kononenko. Theoretical and empirical analysis of ReliefF and RReliefF. Machine Learning
    53, 2003.

    Examples
    --------
    >>> from multilab.methods import RFML
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = RFML(n_features_to_select=2, k=5).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        n_features_to_select: float | None = None,
        k: int = 10,
        weighting: Literal["uniform", "exponential"] = "uniform",
        sigma: float = 20.0,
    ) -> None:
        super().__init__(n_features_to_select)
        self.k = k
        self.weighting = weighting
        self.sigma = sigma

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return W_f of RReliefF for each feature f."""
        n = len(Y)
        if not 1 <= self.k < n:
            raise MethodError(f"k={self.k} neighbours need at least {max(self.k, 1) + 1} instances; n_samples = {n}")
        if self.weighting not in ("uniform", "exponential") or not self.sigma > 0:
            raise MethodError(f"weighting={self.weighting!r}, sigma={self.sigma}: give 'uniform' or 'exponential'")
        near = np.concatenate([smallest(block, self.k)[1] for _, block in distance_blocks(scaled(X))])
        rows = np.repeat(np.arange(n), self.k)
        rank = np.arange(1, self.k + 1)
        share = np.ones(self.k) if self.weighting == "uniform" else np.exp(-((rank / self.sigma) ** 2))
        share = np.tile(share / share.sum(), n)
        # (n k,): weighted distance of label sets of each pair; its sum is N_dC
        apart = share * (Y[rows] != Y[near]).mean(axis=1)
        # N_df and N_dCdf, (d,) each
        both, apart_and_differ = added_differences(X, rows, near, np.column_stack([share, apart])) * feature_scale(X)
        total = apart.sum()
        scores = np.zeros(X.shape[1])
        if total > 0:
            scores += apart_and_differ / total
        if n - total > 0:
            scores -= (both - apart_and_differ) / (n - total)
        return scores
