"""LWMF: features weighted by their differences to hits and misses of each label, labels weighted by margins."""

import warnings
from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection._distances import Metric, added_differences, feature_scale, nearest_of_classes, scaled
from multilab.methods.selection._ranking import RankingSelector

__all__ = ["LWMF"]

LabelWeight = Literal["margin", "uniform", "frequency", "balanced_margin"]


class LWMF(RankingSelector):
    """Label-weighted multi-label feature selection.

    For each label l, the nearest hit NH^l(x) of an instance x is the nearest other instance of its class and the
    nearest miss NM^l(x) the nearest one of the other class. The weight of a feature is, eq. (9),
    W_f = sum_l w_l sum_i (d_f(x_i, NM^l(x_i)) - d_f(x_i, NH^l(x_i))). The label weight w_l, eq. (4), is the sum of the
    margins m^l(x_i) of eq. (6), the same difference of distances over all features.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        Number of features to keep, or a share of them in (0, 1]; None keeps half.
    nn_space : {"range", "raw"}, default="range"
        Space of the distances of hits, misses and margins: "range" divides each feature by its range, as eq. (10) does
        for d_f; "raw" uses the features unchanged, the literal eq. (5).
    nn_metric : {"euclidean", "manhattan"}, default="euclidean"
        Distance of hits, misses and margins; eq. (5) is Euclidean.
    label_weight : {"margin", "uniform", "frequency", "balanced_margin"}, default="margin"
        "margin" is eq. (4), the sum of the margins of all instances; "balanced_margin" is the sum of the mean margin of
        the instances with the label and that of those without; "frequency" is the share of instances with the label.
    weight_norm : {"l1", "minmax", None}, default="l1"
        Normalisation of the label weights, which the paper does not specify: "l1" divides them by the sum of absolute
        values; "minmax" maps them to [0, 1], which removes the label with the smallest weight; None leaves them
        unchanged. "l1" and None give the same ranking.
    clip_negative : bool, default=True
        Whether a negative label weight is set to 0. The product of a negative label weight and a negative feature
        weight would be a positive contribution of a harmful feature.
    min_class_count : int, default=2
        Labels with fewer instances in one of their classes are ignored; 0 ignores none.
    missing : {"skip", "zero"}, default="skip"
        An instance without a hit or a miss (the only one of its class, or all of them where a label has one class):
        "skip" does not count it for the label; "zero" is the literal text, which sets the missing distance to 0 and
        keeps the other one.

    Attributes
    ----------
    margins_ : ndarray of shape (q,)
        Sum of the margins of each label, w_l of eq. (4); 0 for an ignored label.
    label_weights_ : ndarray of shape (q,)
        Label weights after clipping and normalisation.
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Deviations from the paper, and decisions where it is silent:

    - Equation (9) is used; the outer sum of eq. (8) runs over instances although it is one over labels.
    - The distance d_f of eq. (10) is 0 for a constant feature, where the paper divides by 0.
    - An instance is not its own hit, and of equally near instances the first one is taken.
    - An instance without a hit or a miss does not count for that label. With the literal ``missing="zero"`` a label
      without positive instances has the margin -sum_i d(x_i, NH(x_i)), by far the smallest of all: "minmax" gives it
      the weight 0 and all other labels nearly the same one; unclipped "l1" gives it the largest weight by amount.
    - If no label has a positive weight, all weights are equal, with a warning.

    Margins grow with imbalance: the rarer a label, the farther the hits of its few instances and the nearer the hits of
    the many others. So "margin" gives the largest weights to rare labels, whether they are separable or not.

    References
    ----------
    M. Lin, J. Liu, C. Wang, Y. Lin. Multi-label feature selection algorithm based on label weighting. Computer
    Science 44(10), 2017, 289-295.

    Examples
    --------
    >>> from multilab.methods import LWMF
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = LWMF(n_features_to_select=2).fit(X, y)
    >>> model.ranking_
    array([4, 3, 6, 2, 1, 5])
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        n_features_to_select: float | None = None,
        nn_space: Literal["range", "raw"] = "range",
        nn_metric: Metric = "euclidean",
        label_weight: LabelWeight = "margin",
        weight_norm: Literal["l1", "minmax"] | None = "l1",
        clip_negative: bool = True,
        min_class_count: int = 2,
        missing: Literal["skip", "zero"] = "skip",
    ) -> None:
        super().__init__(n_features_to_select)
        self.nn_space = nn_space
        self.nn_metric = nn_metric
        self.label_weight = label_weight
        self.weight_norm = weight_norm
        self.clip_negative = clip_negative
        self.min_class_count = min_class_count
        self.missing = missing

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return W_f of eq. (9) and set ``margins_`` and ``label_weights_``."""
        self._check_choices(nn_space=("range", "raw"), missing=("skip", "zero"))
        positives = Y.sum(axis=0, dtype=np.int64)
        used = np.minimum(positives, len(Y) - positives) >= self.min_class_count
        self.margins_, self.label_weights_ = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
        if not used.any():
            warnings.warn("no label has enough instances in both classes: the features are not ranked", stacklevel=4)
            return np.zeros(X.shape[1])
        labels = Y[:, used]  # (n, q'), without the ignored labels
        near, away = nearest_of_classes(scaled(X) if self.nn_space == "range" else X, labels, self.nn_metric)
        own = labels.astype(np.int64)[None]  # (1, n, q'): class of each row; near and away are (2, n, q')
        hits, misses = (np.take_along_axis(near, side, axis=0)[0] for side in (own, 1 - own))
        counted = [hits >= 0, misses >= 0]
        if self.missing == "skip":
            counted = [counted[0] & counted[1]] * 2
        away = np.where(np.isnan(away) | ~(counted[0] | counted[1]), 0.0, away)
        # eq. (6), (n, q'): distance of the nearest miss less that of the nearest hit
        margins = (np.take_along_axis(away, 1 - own, axis=0) - np.take_along_axis(away, own, axis=0))[0]
        self.margins_[used] = margins.sum(axis=0)  # eq. (4)
        self.label_weights_[used] = weights = self._weights(margins, labels, counted[0] | counted[1])
        # eq. (10): the range of a feature is a common factor of its sums in eq. (9)
        return feature_scale(X) * _added(X, hits, misses, counted, weights)

    def _weights(self, margins: np.ndarray, Y: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Return the clipped and normalised label weights, shape (q',).

        Parameters
        ----------
        margins : ndarray of shape (n, q')
            Margins of eq. (6); 0 where not counted.
        Y : uint8 ndarray of shape (n, q')
        counted : bool ndarray of shape (n, q')
            Whether the instance counts for the label.
        """
        if self.label_weight == "margin":
            weights = margins.sum(axis=0)
        elif self.label_weight == "uniform":
            weights = np.ones(Y.shape[1])
        elif self.label_weight == "frequency":
            weights = Y.mean(axis=0)
        elif self.label_weight == "balanced_margin":
            classes = [counted & (kind == Y) for kind in (0, 1)]
            weights = sum((margins * one).sum(axis=0) / np.maximum(one.sum(axis=0), 1) for one in classes)
        else:
            known = "'margin', 'uniform', 'frequency' or 'balanced_margin'"
            raise MethodError(f"label_weight={self.label_weight!r}: give {known}")
        if self.clip_negative:
            weights = np.maximum(weights, 0.0)
            if not weights.any():
                warnings.warn("no label has a positive weight: all count alike", stacklevel=5)
                weights = np.ones(Y.shape[1])
        if self.weight_norm == "minmax":
            weights = weights - weights.min()
            return weights / weights.max() if weights.any() else np.ones(Y.shape[1])
        if self.weight_norm == "l1":
            return weights / max(np.abs(weights).sum(), np.finfo(float).tiny)
        if self.weight_norm is not None:
            raise MethodError(f"weight_norm={self.weight_norm!r}: give 'l1', 'minmax' or None")
        return weights


def _added(X: Any, hits: np.ndarray, misses: np.ndarray, counted: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return sum_l w_l sum_i (|x_i - x_miss| - |x_i - x_hit|) per feature, shape (d,): eq. (9) without the ranges.

    Labels share hits and misses, so the weights of equal pairs of rows are added up before differences are computed.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    hits, misses : int ndarray of shape (n, q')
        Row numbers.
    counted : list of two bool ndarrays of shape (n, q')
        Whether the distance to the hit, and that to the miss, counts.
    weights : ndarray of shape (q',)
    """
    n = len(hits)
    pairs, signed = [], []
    for nearest, kept, sign in ((misses, counted[1], 1.0), (hits, counted[0], -1.0)):
        rows, labels = np.nonzero(kept & (weights != 0))
        pairs.append(rows * n + nearest[rows, labels])
        signed.append(sign * weights[labels])
    distinct, number = np.unique(np.concatenate(pairs), return_inverse=True)
    coefficients = np.bincount(number, np.concatenate(signed), minlength=len(distinct))
    return added_differences(X, *np.divmod(distinct, n), coefficients)
