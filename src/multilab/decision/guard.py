"""Thresholds that assign no label far more often than it occurs, and that few positives do not decide alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from multilab.decision.thresholds import LabelCurves, check_scores, first_best
from multilab.methods.base import MethodError
from multilab.methods.labels import check_labels, labels_and_scores

__all__ = ["guarded_thresholds"]

SHRINKAGE = 10.0
"""Positives of a label at which its own best cut counts as much as the cut that matches its frequency.

Measured on 13 datasets with three learners and three outer folds (`benchmarks/guard.py`): 10 has the best macro F1 of
thresholds tuned for it, and every value from 1 to 50 is within .005 of that.
"""


def guarded_thresholds(
    Y: Any, scores: Any, thresholds: Any, sample_weight: Any = None, *, shrinkage: float = SHRINKAGE, y_mask: Any = None
) -> np.ndarray:
    """Return thresholds that assign no label far more often than it occurs.

    Thresholds tuned for F1 assign a label that the scores cannot predict to most rows, because that maximises its F1. A
    label that is assigned to more than ``max(3 * frequency, frequency + 0.2)`` of the held-out rows (the rule of
    `multilab.metrics.over_assigned`) gets the cut that assigns it as often as it occurs. The thresholds of the other
    labels are shrunk towards that cut, more strongly if they are based on few positives.

    Parameters
    ----------
    Y : array-like of shape (n, q)
        0/1 labels; NaN, or -1 in int8, where a label was not observed. Such cells do not count.
    scores : array-like of shape (n, q)
        Scores of rows that the scoring model was not fitted on.
    thresholds : array-like of shape (q,), or float
        A label is assigned where its score is at least its threshold.
    sample_weight : array-like of shape (n,), optional
    shrinkage : float, default=10
        Positives at which a label's threshold is halfway to the matching cut; 0 leaves the labels that are not assigned
        too often as they are.
    y_mask : array-like of shape (n, q), optional
        True where a label was observed.

    Returns
    -------
    ndarray of shape (q,)

    Raises
    ------
    MethodError
        If the shapes differ, a score is NaN, or ``shrinkage`` is negative.

    Notes
    -----
    Let a label have m positives, and let its threshold assign it to a rows. It then gets the cut that assigns it to
    w a + (1 - w) m rows, with w = m / (m + shrinkage). This is the posterior mean of a normal model: the number of rows
    that is best on a sample scatters around the true one with a variance proportional to 1 / m, and labels scatter
    around their frequencies with a variance that does not depend on m; ``shrinkage`` is the ratio of the two. Rows are
    counted rather than scores averaged, so that decisions depend on the order of the scores only: probabilities and
    margins give the same ones.

    Examples
    --------
    The second label is noise: F1 is largest if all rows have it.

    >>> import numpy as np
    >>> from multilab.decision import guarded_thresholds, macro_f1_thresholds
    >>> rng = np.random.default_rng(0)
    >>> Y = np.column_stack([np.arange(200) < 60, np.arange(200) % 50 == 0]).astype(int)
    >>> scores = 0.1 * rng.random((200, 2)) + 0.8 * Y * [1, 0]
    >>> tuned = macro_f1_thresholds(Y, scores)
    >>> Y.sum(axis=0), (scores >= tuned).sum(axis=0)
    (array([60,  4]), array([ 60, 162]))
    >>> (scores >= guarded_thresholds(Y, scores, tuned)).sum(axis=0)
    array([60,  4])
    """
    if not shrinkage >= 0:
        raise MethodError(f"`shrinkage` must be >= 0, got {shrinkage}")
    Y, scores = labels_and_scores(Y, scores)
    labels = check_labels(Y, y_mask, missing=True)
    hidden = labels == -1 if labels.dtype == np.int8 else np.zeros(labels.shape, dtype=bool)
    labels, array, weights = check_scores(np.where(hidden, 0, labels), scores, sample_weight)
    limits = np.asarray(thresholds, dtype=np.float64)
    if limits.shape not in ((), (labels.shape[1],)) or np.isnan(limits).any():
        raise MethodError(f"`thresholds` must be one number, or one per label ({labels.shape[1]}); got {thresholds!r}")
    limits = np.broadcast_to(limits, labels.shape[1])
    return guarded(LabelCurves.of(labels, np.where(hidden, -np.inf, array), weights), limits, weights, shrinkage)


def guarded(curves: LabelCurves, thresholds: np.ndarray, weights: np.ndarray, shrinkage: float) -> np.ndarray:
    """Return guarded thresholds of curves in which unobserved cells have the score -inf and no label."""
    labels = np.arange(len(curves.true))
    # Ordered scores, not weights, say where a threshold cuts: rows of weight 0 are among them.
    tuned = (curves.ordered >= thresholds).sum(axis=0)
    assigned = curves.predicted[tuned, labels]
    observed = curves.predicted[(curves.ordered > -np.inf).sum(axis=0), labels]
    limit = np.maximum(3 * curves.true, curves.true + 0.2 * observed) + 1e-9 * observed  # as `over_assigned` rounds
    positives = curves.true * np.count_nonzero(weights) / max(weights.sum(), np.finfo(float).tiny)
    own = positives / np.maximum(positives + shrinkage, np.finfo(float).tiny)
    wanted = np.where(assigned > limit, curves.true, own * assigned + (1 - own) * curves.true)
    cuts = first_best(-np.abs(curves.predicted - wanted), curves.allowed & (curves.predicted <= limit))
    # A label that no, or every, training row has is left alone: it has one score, an infinite one.
    changed = (cuts != tuned) & np.isfinite(curves.ordered).any(axis=0)
    return np.where(changed, curves.thresholds(cuts), thresholds)
