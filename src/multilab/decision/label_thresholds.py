# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Exact maximisers over one threshold per label."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from multilab.decision._cuts import allowed_cuts, check_scores, f1_ratio, first_best, thresholds_at
from multilab.methods.base import MethodError

__all__ = ["cost_thresholds", "macro_f1_thresholds", "micro_f1_thresholds"]


def macro_f1_thresholds(Y: Any, scores: Any, sample_weight: Any = None) -> np.ndarray:
    """Return the thresholds that maximise macro F1: per label the exact maximum, in O(n log n).

    Parameters
    ----------
    Y : array-like of shape (n, q)
        0/1 labels.
    scores : array-like of shape (n, q)
        Scores of rows that the scoring model was not fitted on.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    ndarray of shape (q,)
        A label is assigned where its score is at least its threshold. +inf for a label without positives; the most
        negative number where assigning all rows is best.

    Raises
    ------
    MethodError
        If the shapes differ or a score is NaN.

    Notes
    -----
    Macro F1 is a mean over labels, so each label is maximised alone: only the n + 1 cuts between its sorted scores can
    differ. Of cuts with equal F1 the one that assigns fewest rows is taken; the threshold is midway between the scores
    on its two sides; scores that differ by rounding only (2^-30 of the largest) are never separated.

    References
    ----------
    Z. C. Lipton, C. Elkan, B. Naryanaswamy. Optimal thresholding of classifiers to maximize F1 measure. ECML PKDD 2014
    (also why an uninformative score is best assigned to all rows).

    Examples
    --------
    >>> from multilab.decision import macro_f1_thresholds
    >>> macro_f1_thresholds([[1, 0], [1, 0], [0, 1]], [[0.4, 0.1], [0.2, 0.6], [0.1, 0.5]]).round(2)
    array([0.15, 0.3 ])
    """
    curves = LabelCurves.of(*check_scores(Y, scores, sample_weight))
    return curves.thresholds(curves.macro_f1_cuts())


def micro_f1_thresholds(Y: Any, scores: Any, sample_weight: Any = None) -> np.ndarray:
    """Return the thresholds, one per label, that maximise micro F1 exactly.

    Parameters and errors as in :func:`macro_f1_thresholds`.

    Returns
    -------
    ndarray of shape (q,)

    Notes
    -----
    Micro F1 is a ratio of sums over labels, 2 tp / (predicted + true). Dinkelbach's method maximises
    ``2 tp - value * predicted`` label by label and updates the value; it reaches the global maximum in a few
    steps. At the maximum this is the fixed point of F-optimal decisions: a label is worth assigning where its precision
    in the next group of rows exceeds half of the F1 that is reached.

    References
    ----------
    W. Dinkelbach. On nonlinear fractional programming. Management Science 13, 1967.
    M.-J. Zhao, N. Edakunni, A. Pocock, G. Brown. Beyond Fano's inequality: bounds on the optimal F-score, BER, and
    cost-sensitive risk and their implications. JMLR 14, 2013.

    Examples
    --------
    >>> from multilab.decision import micro_f1_thresholds
    >>> micro_f1_thresholds([[1, 0], [1, 0], [0, 1]], [[0.4, 0.1], [0.2, 0.6], [0.1, 0.5]]).round(2)
    array([0.15, 0.3 ])
    """
    curves = LabelCurves.of(*check_scores(Y, scores, sample_weight))
    return curves.thresholds(curves.micro_f1_cuts())


def cost_thresholds(Y: Any, scores: Any, cost: Any = (1.0, 1.0), sample_weight: Any = None) -> np.ndarray:
    """Return the thresholds, one per label, of the smallest cost of errors; equal costs give Hamming loss.

    Parameters
    ----------
    Y, scores, sample_weight
        As in :func:`macro_f1_thresholds`.
    cost : pair (false positive, false negative), default=(1, 1)
        Numbers >= 0 or arrays of shape (q,).

    Returns
    -------
    ndarray of shape (q,)

    Raises
    ------
    MethodError
        If a cost is negative or of another shape, the shapes of Y and scores differ, or a score is NaN.

    References
    ----------
    C. Elkan. The foundations of cost-sensitive learning. IJCAI 2001: of calibrated probabilities the threshold is
    fp / (fp + fn). Here it is the smallest cost on the held-out rows, which needs no calibration.

    Examples
    --------
    >>> from multilab.decision import cost_thresholds
    >>> Y, scores = [[1], [0], [1], [0]], [[0.9], [0.5], [0.4], [0.1]]
    >>> cost_thresholds(Y, scores, cost=(1, 3)), cost_thresholds(Y, scores, cost=(3, 1))
    (array([0.25]), array([0.7]))
    """
    curves = LabelCurves.of(*check_scores(Y, scores, sample_weight))
    return curves.thresholds(curves.cost_cuts(cost))


@dataclass(frozen=True)
class LabelCurves:
    """True positives and predicted rows of every cut of every label.

    Attributes
    ----------
    ordered : ndarray of shape (n, q)
        The scores of each label in descending order.
    hits, predicted : ndarray of shape (n + 1, q)
        Weight of the true positives, and of all rows, among the first k.
    true : ndarray of shape (q,)
        Weight of the rows with the label.
    allowed : ndarray of shape (n + 1, q), bool
        Cuts to choose from.
    close : bool
        Whether the threshold of a cut is close to the score below it, not midway.
    """

    ordered: np.ndarray
    hits: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    allowed: np.ndarray
    close: bool = False

    @classmethod
    def of(cls, Y: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> "LabelCurves":
        """Return the curves of checked labels, scores and weights."""
        order = np.argsort(-scores, axis=0, kind="stable")
        ordered = np.take_along_axis(scores, order, axis=0)
        hits = np.take_along_axis(Y, order, axis=0) * weights[order]
        none = np.zeros((1, Y.shape[1]))
        return cls(
            ordered,
            np.vstack([none, np.cumsum(hits, axis=0)]),
            np.vstack([none, np.cumsum(weights[order], axis=0)]),
            weights @ Y,
            allowed_cuts(ordered),
        )

    def thresholds(self, cuts: np.ndarray) -> np.ndarray:
        """Return the threshold of the cut of each label."""
        return thresholds_at(self.ordered, cuts, close=self.close)

    def macro_f1_cuts(self) -> np.ndarray:
        """Return the cut of the largest F1 of each label."""
        return first_best(f1_ratio(2 * self.hits, self.predicted + self.true), self.allowed)

    def micro_f1_cuts(self) -> np.ndarray:
        """Return the cuts of the largest micro F1."""
        columns, value = np.arange(len(self.true)), -1.0
        reached = 0.0
        while reached > value:
            value = reached
            cuts = first_best(2 * self.hits - value * self.predicted, self.allowed)
            assigned = self.predicted[cuts, columns].sum() + self.true.sum()
            reached = 2 * self.hits[cuts, columns].sum() / assigned if assigned > 0 else 0.0
        return cuts

    def cost_cuts(self, cost: Any) -> np.ndarray:
        """Return the cut of the smallest cost of each label."""
        try:
            pair = [np.broadcast_to(np.asarray(c, dtype=float), self.true.shape) for c in cost]
            false_positive, false_negative = pair
        except (TypeError, ValueError):
            shape = self.true.shape
            raise MethodError(f"`cost` must be a pair (false positive, false negative) of numbers or {shape}") from None
        if not ((false_positive >= 0) & (false_negative >= 0)).all():
            raise MethodError(f"`cost` must be >= 0, got {cost}")
        false = false_positive * (self.predicted - self.hits) + false_negative * (self.true - self.hits)
        return first_best(-false, self.allowed)
