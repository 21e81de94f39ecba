"""Feature ranking by MDDM: by the weights of the features in the directions that depend most on the labels."""

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state

from multilab.methods.reduction.mddm import Variant, dependence_directions
from multilab.methods.selection._ranking import RankingSelector
from multilab.methods.ties import merge_ties

__all__ = ["MDDMSelector"]


class MDDMSelector(RankingSelector):
    """Feature selector by the weights of the features in the projections of MDDM.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.
    variant : {"proj", "spc"}, default="spc"
        See `MDDM`.
    mu : float, default=0.5
        See `MDDM`.
    rank_by : {"weights", "eigenvalues"}, default="weights"
        "weights" ranks by the weights in the projections. "eigenvalues" reconstructs what the LWMF paper seems to have
        run: the order that sorts the eigenvalues is taken for a ranking of the features, which it is not.
    random_state : int or RandomState, optional
        Seed of "eigenvalues".

    Attributes
    ----------
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    The score of feature f is sum_k lambda_k P_fk^2 over all directions k. MDDM extracts features and does not rank
    them; the LWMF paper compares it as a ranking without saying how, so the score is our choice. For "proj" it equals
    ||Yc' xc_f||^2, the dependence of the single feature (Xc and Yc are centred). For "spc" it equals the squared norm
    of row f of B^-1 Xc'Yc: the coefficients of a ridge regression of all labels with penalty (1 - mu) / mu.

    With ``rank_by="eigenvalues"`` the score of column f is the f-th of the d eigenvalues as a solver returns them that
    does not sort. The r positive ones come first (the matrix of dependences has a rank of at most q); the others are 0,
    and rounding errors decide their order. These are drawn at random here, so that the result does not depend on the
    linear algebra library: the ranking is columns 1 to r, then a random order of the others.

    **Missing labels**: as in `MDDM`.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multi-label dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.

    Examples
    --------
    >>> from multilab.methods import MDDMSelector
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MDDMSelector(n_features_to_select=2).fit(X, y)
    >>> model.ranking_
    array([2, 5, 3, 4, 1, 6])
    >>> model.transform(X).shape
    (60, 2)
    """

    _accepts_missing_labels: ClassVar[bool] = True

    def __init__(
        self,
        n_features_to_select: float | None = None,
        variant: Variant = "spc",
        mu: float = 0.5,
        rank_by: Literal["weights", "eigenvalues"] = "weights",
        random_state: Any = None,
    ) -> None:
        super().__init__(n_features_to_select)
        self.variant = variant
        self.mu = mu
        self.rank_by = rank_by
        self.random_state = random_state

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return sum_k lambda_k P_fk^2 for each feature f, or the f-th eigenvalue."""
        self._check_choices(rank_by=("weights", "eigenvalues"))
        eigenvalues, directions = dependence_directions(X, Y, self.variant, self.mu)
        if self.rank_by == "weights":
            return directions**2 @ eigenvalues
        noise = check_random_state(self.random_state).uniform(-1, 1, (2, X.shape[1]))
        scores = noise[int(self.variant == "proj")] * np.finfo(float).eps * eigenvalues.min(initial=1.0)
        scores[: len(eigenvalues)] = eigenvalues
        return scores

    def _compared(self, scores: np.ndarray) -> np.ndarray:
        """Return weights without rounding errors: those of features that occur in the same rows are equal."""
        return merge_ties(np.sqrt(scores)[None])[0] if self.rank_by == "weights" else scores
