"""ML-kNN with the scores of a released implementation."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from multilab.methods.neighbours._label_counts import rows_by_count
from multilab.methods.neighbours._search import Neighbours
from multilab.methods.neighbours.mlknn import MLkNN

__all__ = ["MLkNNReleased"]


class MLkNNReleased(MLkNN):
    """ML-kNN whose score is the joint probability of a label and of its count among the neighbours.

    The posterior of a label divides P(label) P(count | label) by the sum of this number with and without the label;
    ``predict_proba`` of scikit-multilearn 0.2.0 left the division out. The scores of a row are then no probabilities
    and their order among the labels is another one: a frequent label with an unlikely count has a lower score than its
    posterior says, and hardly any score reaches 1/2.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours.
    s : float, default=1.0
        Smoothing of the counts, positive; 1 is Laplace's rule.
    exclude_self : bool, default=False
        Whether a training row is excluded from its own neighbours when frequencies are counted.
    scale, nominal, tie_tol, neighbours
        See `MLkNN`.

    Attributes
    ----------
    prior_ : ndarray of shape (q,)
        Smoothed frequency of each label.
    posterior_ : ndarray of shape (q, k + 1)
        Joint probability of each label and r = 0..k neighbours that have it.
    neighbour_recall_
        See `MLkNN`.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    For the reconstruction of published results; use `MLkNN` for others. A label is assigned iff its score >= 0.5, as
    those do who decide by ``predict_proba``. The released ``predict`` is not affected by the missing division: it
    compares the numbers with and without the label.

    References
    ----------
    P. Szymanski, T. Kajdanowicz. scikit-multilearn: a scikit-based Python environment for performing multi-label
    classification. Journal of Machine Learning Research 20(6), 2019. Version 0.2.0; corrected in pull request 193.

    Examples
    --------
    >>> from multilab.methods import MLkNN, MLkNNReleased
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> MLkNN(k=5, exclude_self=False).fit(X, y).predict_proba(X[:1]).round(3)
    array([[0.937, 0.726, 0.857]])
    >>> MLkNNReleased(k=5).fit(X, y).predict_proba(X[:1]).round(3)
    array([[0.199, 0.173, 0.158]])
    """

    def __init__(
        self,
        k: int = 10,
        s: float = 1.0,
        exclude_self: bool = False,
        scale: Literal["minmax"] | None = None,
        nominal: Sequence[Sequence[int]] | None = None,
        tie_tol: float = 0.0,
        neighbours: Neighbours = "exact",
    ) -> None:
        super().__init__(k, s, exclude_self, scale, nominal, tie_tol, neighbours)

    def _posterior(self, Y: Any, counts: Any, prior: np.ndarray, k: int) -> np.ndarray:
        """Return P(label) P(r neighbours have it | label), shape (q, k + 1); see `MLkNN._posterior`."""
        kappa = rows_by_count(Y, counts, k)[:, 1]
        likelihood = (self.s + kappa) / (self.s * (k + 1) + kappa.sum(axis=1, keepdims=True))
        return prior[:, None] * likelihood
