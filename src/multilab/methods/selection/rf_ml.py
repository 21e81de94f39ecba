"""RF-ML: Relief for regression, with the distance of label sets in the place of the target's."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection.differences import added_differences, feature_scale, scaled
from multilab.methods.selection.manhattan import distance_blocks, smallest
from multilab.methods.selection.ranking import RankingSelector

__all__ = ["RFML"]


class RFML(RankingSelector):
    """ReliefF for multi-label data.

    A feature is good if it differs between near instances whose label sets differ, and not between others.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        A number of features or a share; None keeps half of them.
    k : int, default=10
        Nearest neighbours of each instance, by Manhattan distance on features divided by their range.
    weighting : {"uniform", "exponential"}, default="uniform"
        How neighbours count: alike, or by exp(-(rank / sigma)^2).
    sigma : float, default=20.0
        Only with weighting="exponential".

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    RReliefF over all n instances, W_f = N_dCdf / N_dC - (N_df - N_dCdf) / (n - N_dC), with the Hamming distance of
    label sets as dC; a part whose divisor is 0 is 0. With one label it is the mean distance of neighbours of different
    class less that of neighbours of the same class. Of equally near instances the first are taken.

    References
    ----------
    N. Spolaôr, E. A. Cherman, M. C. Monard, H. D. Lee. ReliefF for multi-label feature selection. BRACIS 2013.
    M. Robnik-Šikonja, I. Kononenko. Theoretical and empirical analysis of ReliefF and RReliefF. Machine Learning
    53, 2003.
    """

    _small: ClassVar[dict[str, Any]] = {"k": 3}

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
        apart = share * (Y[rows] != Y[near]).mean(axis=1)
        both, apart_and_differ = added_differences(X, rows, near, np.column_stack([share, apart])) * feature_scale(X)
        total = apart.sum()
        scores = np.zeros(X.shape[1])
        if total > 0:
            scores += apart_and_differ / total
        if n - total > 0:
            scores -= (both - apart_and_differ) / (n - total)
        return scores
