# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Exact maximisers over one number for all labels: a global threshold, or how many labels a row gets."""

from typing import Any

import numpy as np

from multilab.decision._cuts import allowed_cuts, check_scores, f1_ratio, first_best, thresholds_at
from multilab.methods._ties import merge_ties
from multilab.methods.base import MethodError

__all__ = ["best_k", "global_threshold"]

OBJECTIVES = ("macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy")


def global_threshold(Y: Any, scores: Any, objective: str = "macro_f1", sample_weight: Any = None) -> float:
    """Return the one threshold for all labels that is best for an objective: exact, in O(nq log nq).

    Parameters
    ----------
    Y : array-like of shape (n, q)
        0/1 labels.
    scores : array-like of shape (n, q)
        Scores of rows that the scoring model was not fitted on, comparable across labels.
    objective : {"macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"}
        Under the conventions that `multilab.metrics` has by default: an empty prediction for a row without labels
        counts 1 in example F1, a label without positives and predictions 0 in macro F1.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Of equally good thresholds the one that assigns fewest cells; +inf if that is none.

    Raises
    ------
    MethodError
        If the objective is unknown, the shapes differ or a score is NaN.

    Examples
    --------
    >>> from multilab.decision import global_threshold
    >>> global_threshold([[1, 0], [1, 1]], [[0.9, 0.2], [0.6, 0.3]], "subset_accuracy")
    0.25
    """
    checked = check_scores(Y, scores, sample_weight)
    return best_nested(checked[0], checked[1], checked[2], objective)


def best_k(Y: Any, scores: Any, objective: str = "example_f1", sample_weight: Any = None) -> int:
    """Return the number of labels per row that is best for an objective, if each row gets its labels of highest score.

    Parameters, conventions and errors as in :func:`global_threshold`; of equally good numbers the smallest. Of labels
    with equal scores the one with the lower index is assigned.

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


def best_nested(Y: np.ndarray, priority: np.ndarray, weights: np.ndarray, objective: str) -> float:
    """Return the best threshold of a priority: the decisions of two thresholds are nested, one cell apart at least."""
    if objective not in OBJECTIVES:
        raise MethodError(f"objective={objective!r}: give {', '.join(map(repr, OBJECTIVES))}")
    order = np.argsort(-priority, axis=None, kind="stable")
    ordered = priority.ravel()[order][:, None]
    steps = _gains(Y, order, weights, objective)
    values = np.concatenate([[0.0], np.cumsum(steps)])  # up to a constant
    if objective == "micro_f1":
        rows = weights[order // Y.shape[1]]
        values[1:] = f1_ratio(2 * values[1:], np.cumsum(rows) + weights @ Y.sum(axis=1))
    cut = first_best(values[:, None], allowed_cuts(ordered))
    return float(thresholds_at(ordered, cut)[0])


def _gains(Y: np.ndarray, order: np.ndarray, weights: np.ndarray, objective: str) -> np.ndarray:
    """Return what each cell adds to an objective when the cells are assigned in an order; of micro F1 to its hits."""
    n, q = Y.shape
    y, cell_weights = Y.ravel()[order].astype(float), weights[order // q]
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
