"""LWMF: features weighted by hits and misses of every label, labels by their margins."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.selection.differences import added_differences, feature_scale, scaled
from multilab.methods.selection.hits import Metric, nearest_of_classes
from multilab.methods.selection.ranking import RankingSelector

__all__ = ["LWMF"]

LabelWeight = Literal["margin", "uniform", "frequency", "balanced_margin"]


class LWMF(RankingSelector):
    """Label-weighted multi-label feature selection.

    A feature is good if it differs between an instance and its nearest miss and not between the instance and its
    nearest hit, added up over instances and labels; labels with a large margin count more.

    Parameters
    ----------
    n_features_to_select : int or float, optional
        A number of features or a share; None keeps half of them.
    nn_space : {"range", "raw"}, default="range"
        Where the nearest hits and misses are looked for and margins measured: on features divided by their
        range, or as they are, which is the literal eq. (5).
    nn_metric : {"euclidean", "manhattan"}, default="euclidean"
    label_weight : {"margin", "uniform", "frequency", "balanced_margin"}, default="margin"
        "margin" is eq. (4), the sum of the margins of all instances; "balanced_margin" adds the mean margins of
        the instances with and without the label; "frequency" is the share of instances with it.
    weight_norm : {"l1", "minmax", None}, default="l1"
        Divided by the sum of absolute values; brought to [0, 1], which takes the weakest label out; or left as
        they are. "l1" and None rank alike.
    clip_negative : bool, default=True
        Whether a negative label weight becomes 0. A negative weight times negative feature weights would
        credit features that hurt.
    min_class_count : int, default=2
        Labels with fewer instances in one of their classes are left out.

    Attributes
    ----------
    margins_ : ndarray of shape (q,)
        Sum of the margins of each label, w_l of eq. (4); 0 where the label is left out.
    label_weights_ : ndarray of shape (q,)
        The weights in use, clipped and normalised.
    scores_, ranking_, support_, n_features_in_
        See `RankingSelector`.

    Notes
    -----
    Equation (9), with eq. (10) as the distance in one feature (0 where the feature is constant). The paper
    leaves open what is decided here: an instance is not its own hit; of equally near instances the first is taken;
    an instance without a hit or a miss (the only one of its class) does not count for that label (the paper counts
    half of it, which turns a label nobody has into the strongest evidence). Where no label has a positive weight all
    count alike, with a warning.

    Margins grow with imbalance: the rarer a label, the farther its hits for the few and the nearer for the many, so
    "margin" weights rare labels most, separable or not.

    References
    ----------
    M. Lin, J. Liu, C. Wang, Y. Lin. Multi-label feature selection algorithm based on label weighting. Computer
    Science 44(10), 2017, 289-295.
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
    ) -> None:
        super().__init__(n_features_to_select)
        self.nn_space = nn_space
        self.nn_metric = nn_metric
        self.label_weight = label_weight
        self.weight_norm = weight_norm
        self.clip_negative = clip_negative
        self.min_class_count = min_class_count

    def _score(self, X: Any, Y: np.ndarray) -> np.ndarray:
        if self.nn_space not in ("range", "raw"):
            raise MethodError(f"nn_space={self.nn_space!r}: give 'range' or 'raw'")
        positives = Y.sum(axis=0, dtype=np.int64)
        used = np.minimum(positives, len(Y) - positives) >= self.min_class_count
        self.margins_, self.label_weights_ = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
        if not used.any():
            warnings.warn("no label has enough instances in both classes: the features are not ranked", stacklevel=3)
            return np.zeros(X.shape[1])
        labels = Y[:, used]
        near, away = nearest_of_classes(scaled(X) if self.nn_space == "range" else X, labels, self.nn_metric)
        own = labels.astype(np.int64)[None]
        hits, misses = (np.take_along_axis(near, side, axis=0)[0] for side in (own, 1 - own))
        counted = (hits >= 0) & (misses >= 0)
        away = np.where(counted, away, 0.0)
        margins = (np.take_along_axis(away, 1 - own, axis=0) - np.take_along_axis(away, own, axis=0))[0]
        self.margins_[used] = margins.sum(axis=0)
        self.label_weights_[used] = weights = self._weights(margins, labels, counted)
        return feature_scale(X) * _added(X, hits, misses, counted, weights)

    def _weights(self, margins: np.ndarray, Y: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """Return the normalised label weights."""
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
                warnings.warn("no label has a positive weight: all count alike", stacklevel=4)
                weights = np.ones(Y.shape[1])
        if self.weight_norm == "minmax":
            weights = weights - weights.min()
            return weights / weights.max() if weights.any() else np.ones(Y.shape[1])
        if self.weight_norm == "l1":
            return weights / max(np.abs(weights).sum(), np.finfo(float).tiny)
        if self.weight_norm is not None:
            raise MethodError(f"weight_norm={self.weight_norm!r}: give 'l1', 'minmax' or None")
        return weights


def _added(X: Any, hits: np.ndarray, misses: np.ndarray, counted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return sum_l w_l sum_i (|x_i - x_miss| - |x_i - x_hit|) per feature, each pair of rows taken once."""
    n = len(hits)
    rows, labels = np.nonzero(counted & (weights != 0))
    pairs = np.concatenate([rows * n + misses[rows, labels], rows * n + hits[rows, labels]])
    signed = np.concatenate([weights[labels], -weights[labels]])
    distinct, number = np.unique(pairs, return_inverse=True)
    coefficients = np.bincount(number, signed, minlength=len(distinct))
    return added_differences(X, *np.divmod(distinct, n), coefficients)
