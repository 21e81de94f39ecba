# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Cuts between sorted scores: thresholds that differ in their decisions, and the rule for ties."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from multilab.core.tables import in_another_order
from multilab.methods._ties import first_largest
from multilab.methods.base import MethodError, check_labels

LOWEST = float(np.finfo(np.float64).min)
"""Threshold that every finite score reaches; +inf is one that none reaches."""

SAME_SCORE = 2.0**-30  # of the largest magnitude: the tolerance of merge_ties


def check_scores(Y: Any, scores: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels (uint8), scores (float64), both of shape (n, q), and weights (float64) of shape (n,).

    Raises
    ------
    MethodError
        If the shapes or the orders of the columns differ, or a weight is negative.
    """
    labels = check_labels(Y)
    if in_another_order(getattr(Y, "columns", None), getattr(scores, "columns", None)):
        raise MethodError("`scores` has the columns of Y in another order: pass scores[Y.columns]")
    array = check_array(scores, dtype=np.float64, ensure_all_finite=False, input_name="scores")
    if np.isnan(array).any():
        raise MethodError("`scores` holds NaN: every row and label needs a score")
    if array.shape != labels.shape:
        raise MethodError(f"`scores` has shape {array.shape}, Y has shape {labels.shape}: one score per row and label")
    weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(labels),) or not (weights >= 0).all():
        raise MethodError(f"`sample_weight` must hold {len(labels)} numbers >= 0, got shape {weights.shape}")
    return labels, array, weights


def allowed_cuts(ordered: np.ndarray) -> np.ndarray:
    """Return where each column of scores in descending order may be cut.

    Parameters
    ----------
    ordered : ndarray of shape (n, q)
        +inf marks cells that are always assigned, -inf cells that never are.

    Returns
    -------
    ndarray of shape (n + 1, q), bool
        Entry k: the first k cells can be assigned. Scores that are apart by at most 2^-30 of the column's largest
        finite magnitude differ by rounding only and stay together.
    """
    allowed = np.ones((len(ordered) + 1, ordered.shape[1]), dtype=bool)
    largest = np.max(np.abs(ordered), axis=0, where=np.isfinite(ordered), initial=0.0)
    with np.errstate(invalid="ignore"):  # inf - inf: no cut between cells of one kind
        allowed[1:-1] = ordered[:-1] - ordered[1:] > SAME_SCORE * largest
    allowed[0] = ordered[0] != np.inf
    allowed[-1] = ordered[-1] != -np.inf
    return allowed


def first_best(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the best cut of each column: of equal values (to 1e-12) the one that assigns fewest cells."""
    return first_largest(np.where(allowed, values, -np.inf), axis=0)


def thresholds_at(ordered: np.ndarray, cuts: np.ndarray, close: bool = False) -> np.ndarray:
    """Return the threshold of a cut of each column: midway between the scores on its two sides.

    With ``close`` it is above the lower score by 2^-30 of that, however far the other one is.
    Without a finite score above it the threshold is +inf, without one below it `LOWEST`.
    """
    padded = np.vstack([np.full(ordered.shape[1], np.inf), ordered, np.full(ordered.shape[1], -np.inf)])
    columns = np.arange(ordered.shape[1])
    above, below = padded[cuts, columns], padded[cuts + 1, columns]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = below + SAME_SCORE * np.abs(below) if close else above / 2 + below / 2
    middle = np.where(middle > below, middle, above)  # neighbours in floating point
    return np.where(np.isposinf(above), np.inf, np.where(np.isneginf(below), LOWEST, middle))


def f1_ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the ratio of two arrays, 0 for 0/0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator, dtype=float), where=denominator > 0)
