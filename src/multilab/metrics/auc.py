"""Metrics of the order in which scores put the rows: macro and micro AUC, per-label average precision.

Y and S as in :mod:`multilab.metrics.ranking_metrics`. AUC is a quotient of integers: pairs of a positive and
a negative, counted through a sort.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.inputs import LabelSets, Scores, blocks, refuse_other_shape
from multilab.metrics.ranks import INDEX_RULES, rank_relevant
from multilab.metrics.row_ranks import average_precisions
from multilab.metrics.values import Value, settle


def macro_auc_value(truth: LabelSets, scores: Scores, conventions: Conventions) -> Value:
    """Average the AUC of the labels; see :func:`macro_auc`."""
    refuse_other_shape(truth, "Y", scores, "scores")
    n_rows, n_labels = truth.shape
    rows_of = truth.transposed()
    positives = np.diff(rows_of.indptr)
    twice_wrong = np.zeros(n_labels, dtype=np.int64)
    for start, stop in blocks(n_labels, n_rows):
        ranks = rank_relevant(scores.columns(start, stop), rows_of.entries(start, stop), by_index=False)
        above = ranks.above - ranks.above_relevant
        tied = ranks.tied - ranks.tied_relevant
        twice_wrong[start:stop] = ranks.sum_per_list(2 * above + _twice_loss(conventions) * tied)
    twice_pairs = 2 * positives * (n_rows - positives)
    auc = (twice_pairs - twice_wrong) / np.maximum(twice_pairs, 1)
    what = "AUC is undefined for a label with one class only: label"
    return settle(auc, twice_pairs == 0, conventions.auc_one_class, what)


def _twice_loss(conventions: Conventions) -> int:
    """2 x what a tied pair of a positive and a negative loses."""
    return round(2 * (1 - conventions.auc_ties))


def micro_auc_value(truth: LabelSets, scores: Scores, conventions: Conventions) -> Value:
    """AUC over all cells; see :func:`micro_auc`."""
    refuse_other_shape(truth, "Y", scores, "scores")
    n_rows, n_labels = truth.shape
    positives = truth.indices.size
    negatives = n_rows * n_labels - positives
    if not positives or not negatives:
        return Value(math.nan)
    of_positives = []
    for start, stop in blocks(n_rows, n_labels):
        entries = truth.entries(start, stop)
        of_positives.append(scores.rows(start, stop)[entries.lists, entries.positions])
    levels, counts = np.unique(np.concatenate(of_positives), return_counts=True)
    below, up_to = np.zeros((2, levels.size), dtype=np.int64)
    # A block as large as the positives keeps the searches few without asking for more memory than they do.
    for start, stop in blocks(n_rows, n_labels, at_least=positives):
        ordered = np.sort(scores.rows(start, stop), axis=None)
        below += np.searchsorted(ordered, levels, side="left")
        up_to += np.searchsorted(ordered, levels, side="right")
    above_relevant = positives - np.cumsum(counts)
    above = n_rows * n_labels - up_to - above_relevant
    tied = up_to - below - counts
    twice_wrong = int(np.sum(counts * (2 * above + _twice_loss(conventions) * tied)))
    twice_pairs = 2 * positives * negatives
    return Value((twice_pairs - twice_wrong) / twice_pairs)


def label_average_precision_value(truth: LabelSets, scores: Scores, conventions: Conventions) -> Value:
    """Average the average precision of the labels; see :func:`label_average_precision`."""
    refuse_other_shape(truth, "Y", scores, "scores")
    ties = conventions.label_average_precision_ties
    rows_of = truth.transposed()
    precision = np.zeros(truth.shape[1])
    for start, stop in blocks(truth.shape[1], truth.shape[0]):
        entries = rows_of.entries(start, stop)
        ranks = rank_relevant(scores.columns(start, stop), entries, by_index=ties in INDEX_RULES)
        precision[start:stop] = average_precisions(ranks, ties)
    what = "average precision is undefined for a label without positives: label"
    empty = np.diff(rows_of.indptr) == 0
    return settle(precision, empty, conventions.label_average_precision_empty, what)


def macro_auc(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over labels of the area under the ROC curve; a tied pair counts ``auc_ties``.

    A label with one class only is skipped, makes the mean ``nan``, or is refused (``auc_one_class``).

    Raises
    ------
    MetricError
        If Y or S cannot be measured, their shapes differ, or the conventions refuse a label.
    """
    return macro_auc_value(LabelSets(Y), Scores(S), resolve(conventions)).value


def micro_auc(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Area under the ROC curve of all cells as one list; ``nan`` if all cells are of one class.

    Raises
    ------
    MetricError
        If Y or S cannot be measured, or their shapes differ.
    """
    return micro_auc_value(LabelSets(Y), Scores(S), resolve(conventions)).value


def label_average_precision(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over labels of the average precision of its rows ("mean average precision", macro AUPRC).

    Ties among the rows by ``label_average_precision_ties``: ``max`` is scikit-learn's step area (and MEKA's
    AUPRC on the arrays measured), ``lower_index`` the row order of Mulan. A label without positives follows
    ``label_average_precision_empty``. Not among the keys of ``score_all``.

    Raises
    ------
    MetricError
        If Y or S cannot be measured, their shapes differ, or the conventions refuse a label.
    """
    return label_average_precision_value(LabelSets(Y), Scores(S), resolve(conventions)).value
