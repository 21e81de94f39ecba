"""Thresholds of scores and numbers of labels that maximise a metric, exactly: per label, global, and the best k."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from multilab.methods.base import MethodError
from multilab.methods.labels import check_labels, labels_and_scores
from multilab.methods.ties import first_largest, merge_ties
from multilab.metrics.conventions import PRESETS
from multilab.metrics.decision_counts import DecisionCounts, SetSizes
from multilab.metrics.errors import MetricError
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import Metric, argument_metric

__all__ = [
    "best_k",
    "cost_thresholds",
    "expected_cost_thresholds",
    "global_threshold",
    "macro_f1_thresholds",
    "micro_f1_thresholds",
]

LOWEST = float(np.finfo(np.float64).min)
"""Threshold that every finite score reaches; +inf is one that none reaches."""

SAME_SCORE = 2.0**-30  # of the largest magnitude: the tolerance of merge_ties
_SAME_VALUE = 1e-12  # values of a metric this close are equal, as in `first_best`

OBJECTIVES = ("macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy")

_MOST_CUTS = 100  # that are tried for a metric without an exact maximiser, as many as scikit-learn's classifier tries
_MOST_PASSES = 10  # over the labels; two or three are usual


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
        A label is assigned where its score is at least its threshold. The threshold is +inf for a label without
        positives, and the most negative number if assigning all rows is best.

    Raises
    ------
    MethodError
        If the shapes differ or a score is NaN.

    Notes
    -----
    Macro F1 is a mean over labels, so each label is maximised alone: only the n + 1 cuts between its sorted scores can
    differ. Of cuts with equal F1, the one that assigns the fewest rows is taken. The threshold is midway between the
    scores on its two sides; scores that differ only by rounding (2^-30 of the largest) are never separated.

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
    cost : pair (false positive, false negative) or mapping, default=(1, 1)
        Numbers or arrays of shape (q,). The mapping has the costs of the outcomes "fp" and "fn", and those of "tp" and
        "tn" if they are not 0.

    Returns
    -------
    ndarray of shape (q,)

    Raises
    ------
    MethodError
        If an error costs less than the right decision, a cost is not finite or of another shape, the shapes of Y and
        scores differ, or a score is NaN.

    See Also
    --------
    expected_cost_thresholds : Thresholds for calibrated probabilities, without labels.

    Notes
    -----
    The thresholds have the smallest cost on the held-out rows, without any calibration.

    Examples
    --------
    >>> from multilab.decision import cost_thresholds
    >>> Y, scores = [[1], [0], [1], [0]], [[0.9], [0.5], [0.4], [0.1]]
    >>> cost_thresholds(Y, scores, cost=(1, 3)), cost_thresholds(Y, scores, cost=(3, 1))
    (array([0.25]), array([0.7]))
    """
    curves = LabelCurves.of(*check_scores(Y, scores, sample_weight))
    return curves.thresholds(curves.cost_cuts(cost))


def expected_cost_thresholds(cost: Any, n_labels: int) -> np.ndarray:
    """Return the thresholds, one per label, of the least expected cost if the probabilities are calibrated.

    Parameters
    ----------
    cost : pair (false positive, false negative) or mapping
        As in :func:`cost_thresholds`.
    n_labels : int
        Number of labels, q.

    Returns
    -------
    ndarray of shape (q,)
        (fp - tn) / ((fp - tn) + (fn - tp)), in [0, 1]. At the threshold both decisions have the same expected cost.

    Raises
    ------
    MethodError
        If an error costs less than the right decision, neither error of a label costs more, or a cost is not finite or
        of another shape.

    References
    ----------
    C. Elkan. The foundations of cost-sensitive learning. IJCAI 2001.

    Examples
    --------
    >>> from multilab.decision import expected_cost_thresholds
    >>> expected_cost_thresholds((1, 4), n_labels=2)
    array([0.2, 0.2])
    >>> expected_cost_thresholds({"fp": 1, "fn": [4, 1], "tp": [1, 0]}, n_labels=2)
    array([0.25, 0.5 ])
    """
    false_positive, false_negative = _error_costs(cost, n_labels)
    total = false_positive + false_negative
    if not (total > 0).all():
        raise MethodError(f"`cost`: no error in label {np.argmin(total)} costs more than the right decision: {cost}")
    return false_positive / total


def _error_costs(cost: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much false positives and false negatives cost more than the right decisions, shape (q,) each."""
    try:
        given = cost if isinstance(cost, Mapping) else zip(("fp", "fn"), cost, strict=True)
        outcomes = {"tp": 0.0, "tn": 0.0, **dict(given)}
        tp, tn, fp, fn = (
            np.broadcast_to(np.asarray(outcomes.pop(name), float), n_labels) for name in ("tp", "tn", "fp", "fn")
        )
        if outcomes:
            raise ValueError("there are four outcomes")
    except (KeyError, TypeError, ValueError):
        raise MethodError(
            "`cost` must be a pair (false positive, false negative), or a mapping with fp, fn and maybe tp, tn, of "
            f"numbers or arrays of shape ({n_labels},); got {cost}"
        ) from None
    errors = fp - tn, fn - tp
    if not all((np.isfinite(error) & (error >= 0)).all() for error in errors):
        raise MethodError(f"`cost`: fp - tn and fn - tp must be >= 0 and finite, got {cost}")
    return errors


@dataclass(frozen=True)
class LabelCurves:
    """True positives and predicted rows of every cut of every label.

    Attributes
    ----------
    ordered : ndarray of shape (n, q)
        The scores of each label in descending order.
    hits, predicted : ndarray of shape (n + 1, q)
        Weight of the true positives, and of all rows, among the first k; rows with equal scores are in theirs.
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
        by_label, labels = np.ascontiguousarray(scores.T), np.ascontiguousarray(Y.T)  # side by side in memory
        ordered = np.empty_like(by_label)
        hits, predicted = np.zeros((2, len(labels), len(Y) + 1))
        for label, of_label in enumerate(by_label):
            order = descending(of_label)
            rows = weights[order]
            ordered[label] = of_label[order]
            np.cumsum(labels[label][order] * rows, out=hits[label, 1:])
            np.cumsum(rows, out=predicted[label, 1:])
        return cls(ordered.T, hits.T, predicted.T, weights @ Y, allowed_cuts(ordered.T))

    def thresholds(self, cuts: np.ndarray) -> np.ndarray:
        """Return the threshold of the cut of each label."""
        return thresholds_at(self.ordered, cuts, close=self.close)

    def macro_f1_cuts(self) -> np.ndarray:
        """Return the cut of the largest F1 of each label."""
        return first_best(f1_ratio(2 * self.hits, self.predicted + self.true), self.allowed)

    def label_metric_cuts(self, metric: Metric) -> np.ndarray:
        """Return the cut of the best value of each label, for a metric of decisions that is a mean over labels."""
        labels = np.arange(len(self.true))
        observed = self.predicted[(self.ordered > -np.inf).sum(axis=0), labels]
        sizes = self.true, self.predicted, self.hits, np.maximum(observed - self.true, 0), observed - self.predicted
        # every cut of every label is a label of its own
        every = SetSizes(*(np.broadcast_to(size, self.hits.shape).ravel() for size in sizes))
        rows = SetSizes(*np.zeros((5, 0)))
        counts = DecisionCounts((0, self.hits.size), rows, every, float(observed.sum()))
        values = np.asarray(metric.formula(counts, PRESETS["default"]), dtype=float).reshape(self.hits.shape)
        values = values if metric.direction == "max" else -values
        return first_best(np.where(np.isnan(values), -np.inf, values), self.allowed)

    def searched_cuts(self, scores: np.ndarray, value: Callable[[np.ndarray], float]) -> np.ndarray:
        """Return cuts that no change of the cut of one label makes better, from those of the largest macro F1.

        Parameters
        ----------
        scores : ndarray of shape (n, q)
            Of which these are the curves.
        value : callable
            Of decisions (n, q); the larger, the better.
        """
        cuts = self.macro_f1_cuts()
        decided = (scores >= self.thresholds(cuts)).astype(np.int64)
        best, before = value(decided), -np.inf
        for _ in range(_MOST_PASSES):
            if best <= before + _SAME_VALUE:
                break
            before = best
            for label in range(scores.shape[1]):
                tried = np.flatnonzero(self.allowed[:, label])
                # rows of weight 0 make no further cuts
                tried = _spread(tried[np.diff(self.predicted[tried, label], prepend=-1.0) > 0])
                column = self.ordered[:, [label]]
                thresholds = [thresholds_at(column, tried[[k]], close=self.close)[0] for k in range(len(tried))]
                kept, values = decided[:, label].copy(), np.empty(len(tried))
                for k, threshold in enumerate(thresholds):
                    decided[:, label] = scores[:, label] >= threshold
                    values[k] = value(decided)
                chosen = first_best(values[:, None], np.ones((len(tried), 1), dtype=bool))[0]
                if values[chosen] > best + _SAME_VALUE:
                    best, cuts[label] = values[chosen], tried[chosen]
                    kept = scores[:, label] >= thresholds[chosen]
                decided[:, label] = kept
        return cuts

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
        false_positive, false_negative = _error_costs(cost, len(self.true))
        false = false_positive * (self.predicted - self.hits) + false_negative * (self.true - self.hits)
        return first_best(-false, self.allowed)


def metric_of_decisions(objective: MetricLike) -> Metric:
    """Return the metric of an objective; refuse one that decisions do not change."""
    try:
        metric = argument_metric(objective)
    except MetricError as error:
        raise MethodError(f"objective: {error}") from None
    if metric.needs != "decisions":
        raise MethodError(f"objective {metric.name} is a metric of {metric.needs}; give a metric of decisions")
    return metric


def value_of_decisions(
    metric: Metric, Y: np.ndarray, weights: np.ndarray, observed: np.ndarray | None = None
) -> Callable[[np.ndarray], float]:
    """Return a function of decisions: the metric, negated where smaller is better; the worst value where undefined."""
    given = {"sample_weight": None if (weights == 1).all() else weights, "y_mask": observed}
    sign = 1.0 if metric.direction == "max" else -1.0

    def value(decisions: np.ndarray) -> float:
        number = sign * metric.function(Y, decisions, **given)
        return -np.inf if np.isnan(number) else number

    return value


def _spread(cuts: np.ndarray) -> np.ndarray:
    """Return some of the cuts, evenly spaced, the first and the last among them."""
    if len(cuts) <= _MOST_CUTS:
        return cuts
    return cuts[np.rint(np.linspace(0, len(cuts) - 1, _MOST_CUTS)).astype(int)]


def global_threshold(Y: Any, scores: Any, objective: MetricLike = "macro_f1", sample_weight: Any = None) -> float:
    """Return the one threshold for all labels that is best for an objective.

    Parameters
    ----------
    Y : array-like of shape (n, q)
        0/1 labels.
    scores : array-like of shape (n, q)
        Scores of rows that the scoring model was not fitted on, comparable across labels.
    objective : str or callable, default "macro_f1"
        "macro_f1", "micro_f1", "example_f1", "hamming_loss" and "subset_accuracy" are exact, in O(nq log nq). Any other
        metric of decisions, by name, scorer or function, is computed at 100 cuts, evenly spaced among the scores.
        Metrics follow the default conventions of `multilab.metrics`: an empty prediction for a row without labels
        counts 1 in example F1, and a label without positives and predictions counts 0 in macro F1.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        The threshold that assigns the fewest cells among equally good ones; +inf if it assigns none.

    Raises
    ------
    MethodError
        If the objective is unknown or not a metric of decisions, the shapes differ or a score is NaN.

    Examples
    --------
    >>> from multilab.decision import global_threshold
    >>> global_threshold([[1, 0], [1, 1]], [[0.9, 0.2], [0.6, 0.3]], "subset_accuracy")
    0.25
    """
    checked = check_scores(Y, scores, sample_weight)
    return best_nested(checked[0], checked[1], checked[2], objective)


def best_k(Y: Any, scores: Any, objective: MetricLike = "example_f1", sample_weight: Any = None) -> int:
    """Return the number of labels per row that is best for an objective, if each row gets its labels of highest score.

    Parameters, conventions and errors are as in :func:`global_threshold`. The result is the smallest of equally good
    numbers. Among labels with equal scores, the one with the lower index is assigned first.

    Examples
    --------
    >>> from multilab.decision import best_k
    >>> best_k([[1, 1, 0], [0, 1, 1]], [[0.9, 0.2, 0.1], [0.3, 0.6, 0.4]], "example_f1")
    2
    """
    labels, array, weights = check_scores(Y, scores, sample_weight)
    priority = np.where(np.isfinite(array), -label_ranks(array).astype(float), array)
    threshold = best_nested(labels, priority, weights, objective)  # between -(k - 1) and -k
    return int(np.clip(np.ceil(-threshold), 0, labels.shape[1]))


def label_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each label in its row, 0 for the highest score; ties go to the lower index.

    Finite scores that differ by rounding only are equal (`merge_ties`).
    """
    finite = np.isfinite(scores)
    merged = np.where(finite, merge_ties(np.where(finite, scores, 0.0)), scores)
    order = np.argsort(-merged, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(scores.shape[1]), scores.shape), axis=1)
    return ranks


def best_nested(
    Y: np.ndarray,
    priority: np.ndarray,
    weights: np.ndarray,
    objective: MetricLike,
    observed: np.ndarray | None = None,
) -> float:
    """Return the best threshold of a priority: the decisions of two thresholds are nested, one cell apart at least.

    ``observed`` is the mask of the cells that count, None if all do; the others have the priority -inf and no label.
    """
    if not (isinstance(objective, str) and objective in OBJECTIVES):
        value = value_of_decisions(metric_of_decisions(objective), Y, weights, observed)
        ordered = -np.sort(-priority[weights > 0], axis=None)[:, None]
        tried = _spread(np.flatnonzero(allowed_cuts(ordered)[:, 0]))
        thresholds = [float(thresholds_at(ordered, tried[[k]])[0]) for k in range(len(tried))]
        values = np.array([value(priority >= threshold) for threshold in thresholds])
        return thresholds[first_best(values[:, None], np.ones((len(tried), 1), dtype=bool))[0]]
    order = descending(priority.ravel())
    ordered = priority.ravel()[order][:, None]
    cell_weights = weights[order // Y.shape[1]]
    steps = _gains(Y, order, weights, cell_weights, objective)
    values = np.concatenate([[0.0], np.cumsum(steps)])  # up to a constant
    if objective == "micro_f1":
        values[1:] = f1_ratio(2 * values[1:], np.cumsum(cell_weights) + weights @ Y.sum(axis=1))
    cut = first_best(values[:, None], allowed_cuts(ordered))
    return float(thresholds_at(ordered, cut)[0])


def descending(scores: np.ndarray) -> np.ndarray:
    """Return the order of descending scores of shape (n,); equal ones stay in theirs.

    NumPy sorts numbers of 16 bits by their digits, in a tenth of the time of a comparing sort: two such sorts order the
    scores as float32, and what these cannot tell apart stays for a sort that is quick on what is nearly in order.
    """
    rising = 0.0 - scores  # and not -scores: -0.0 has other bits than 0.0
    with np.errstate(over="ignore"):
        bits = rising.astype(np.float32).view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF  # in the order of the numbers: those of negative ones rise with the magnitude
    order = np.argsort((bits & 0xFFFF).astype(np.uint16), kind="stable")
    order = order[np.argsort((bits >> 16).astype(np.int16)[order], kind="stable")]
    return order[np.argsort(rising[order], kind="stable")]


def _gains(
    Y: np.ndarray, order: np.ndarray, weights: np.ndarray, cell_weights: np.ndarray, objective: str
) -> np.ndarray:
    """Return what each cell adds to an objective when the cells are assigned in an order; of micro F1 to its hits."""
    n, q = Y.shape
    y = Y.ravel()[order].astype(float)
    if objective == "micro_f1":
        return cell_weights * y
    if objective == "hamming_loss":
        return cell_weights * (2 * y - 1)
    groups, size = (order % q, n) if objective == "macro_f1" else (order // q, q)
    within = np.argsort(groups, kind="stable")  # the cells of each label, or row, in their order
    inside = cell_weights[within].reshape(-1, size) if objective == "macro_f1" else np.ones((n, q))
    hits = np.cumsum(inside * y[within].reshape(-1, size), axis=1)
    assigned = np.cumsum(inside, axis=1)
    true = hits[:, -1:]
    if objective == "subset_accuracy":
        values, before = ((hits == assigned) & (hits == true)).astype(float), (true == 0).astype(float)
    else:
        values = f1_ratio(2 * hits, assigned + true)
        before = (true == 0).astype(float) if objective == "example_f1" else np.zeros_like(true)
    gains = np.diff(np.hstack([before, values]), axis=1)
    if objective != "macro_f1":
        gains *= weights[:, None]
    result = np.empty(n * q)
    result[within] = gains.ravel()
    return result


def check_scores(Y: Any, scores: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels (uint8), scores (float64), both of shape (n, q), and weights (float64) of shape (n,).

    Raises
    ------
    MethodError
        If the shapes or the orders of the columns differ, or a weight is negative.
    """
    Y, scores = labels_and_scores(Y, scores)
    labels = check_labels(Y)
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
    with np.errstate(invalid="ignore"):
        ratio = numerator / denominator
    ratio[~(denominator > 0)] = 0.0
    return ratio
