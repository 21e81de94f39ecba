"""Features ranked by MDDM: by their weights in the directions that depend most on the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from multilab.methods.reduction.mddm import Variant, dependence_directions
from multilab.methods.selection.ranking import RankingSelector

__all__ = ["MDDMSelector"]


class MDDMSelector(RankingSelector):
    """Keeps the features with the largest weights in the projections of MDDM.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        A number of features or a share; None keeps half of them.
    variant : {"proj", "spc"}, default="spc"
        See `MDDM`.
    mu : float, default=0.5
        See `MDDM`.

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    The score of feature f is sum_k lambda_k P_fk^2 over all directions k. MDDM extracts features and ranks none; the
    LWMF paper, which compares it as a ranking, does not say how. For "proj" the score equals ||Yc' xc_f||^2, the
    dependence of the feature by itself. For "spc" it equals the squared length of row f of B^-1 Xc'Yc: the
    coefficients of a ridge regression of all labels with penalty (1 - mu) / mu.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multi-label dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.
    """

    def __init__(self, n_features_to_select: float | None = None, variant: Variant = "spc", mu: float = 0.5) -> None:
        super().__init__(n_features_to_select)
        self.variant = variant
        self.mu = mu

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        eigenvalues, directions = dependence_directions(X, Y, self.variant, self.mu)
        return directions**2 @ eigenvalues
