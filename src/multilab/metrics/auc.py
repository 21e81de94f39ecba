"""Metrics of the ranking of rows or cells by scores: AUC and average precision, macro and micro.

AUC is a quotient of integers: pairs of a positive and a negative, counted through a sort. With weights of the rows, a
pair counts the product of two weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import Value, mean_with_rule
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import blocks
from multilab.metrics.label_ranks import INDEX_RULES, Ranking, WeightedTies, average_precisions, rank_relevant
from multilab.metrics.registry import metric

_ZHANG = "Zhang & Zhou, IEEE TKDE 26 (2014)"


@metric(
    "Macro AUC",
    "max",
    "scores",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_ZHANG,
    conventions=("auc_ties", "auc_one_class"),
)
def macro_auc(ranking: Ranking, conventions: Conventions) -> Value | float:
    """Return the mean over labels of the area under the ROC curve.

    A tied pair counts ``auc_ties``. A label with one class only is skipped, makes the mean ``nan``, or is refused
    (``auc_one_class``).

    Examples
    --------
    >>> from multilab.metrics import macro_auc
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(macro_auc(Y, scores), 4)
    0.8333
    """
    auc, one_class = label_auc(ranking, conventions)
    message = "AUC is undefined for a label with one class only: label"
    return mean_with_rule(auc, one_class, conventions.auc_one_class, message)


def label_auc(ranking: Ranking, conventions: Conventions) -> tuple[np.ndarray, np.ndarray]:
    """Return the area under the ROC curve of each label, and where it is undefined."""
    weighted = ranking.weighted_labels()
    if weighted is not None:
        return _joined(ties.auc(_twice_loss(conventions)) for ties in weighted)
    truth, scores = ranking.truth, ranking.scores
    n_rows, n_labels = truth.shape
    rows_of = truth.transposed()
    positives = np.diff(rows_of.indptr)
    twice_wrong = np.zeros(n_labels, dtype=np.int64)
    for start, stop in blocks(n_labels, n_rows):
        ranks = rank_relevant(scores.columns(start, stop), rows_of.entries(start, stop), by_index=False)
        above = ranks.above - ranks.above_relevant
        tied = ranks.tied - ranks.tied_relevant
        twice_wrong[start:stop] = ranks.sum_per_list(2 * above + _twice_loss(conventions) * tied)
    twice_pairs = 2 * positives * (truth.label_lengths - positives)
    return (twice_pairs - twice_wrong) / np.maximum(twice_pairs, 1), twice_pairs == 0


def _joined(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Join the values and the undefined ones of blocks of labels."""
    values, undefined = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(undefined)


def _twice_loss(conventions: Conventions) -> int:
    """Return twice the loss of a tied pair of a positive and a negative."""
    return round(2 * (1 - conventions.auc_ties))


@metric("Micro AUC", "max", "scores", group="label", mean_over="cells", source=_ZHANG, conventions=("auc_ties",))
def micro_auc(ranking: Ranking, conventions: Conventions) -> Value | float:
    """Return the area under the ROC curve of all cells.

    ``nan`` if all cells are of one class; a tied pair counts ``auc_ties``.

    Examples
    --------
    >>> from multilab.metrics import micro_auc
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(micro_auc(Y, scores), 4)
    0.8611
    """
    truth = ranking.truth
    if not 0 < truth.indices.size < np.sum(np.broadcast_to(truth.row_lengths, truth.shape[0])):
        return Value(math.nan)
    if ranking.weights is not None:
        return float(_weighted_cells(ranking, ranking.weights).auc(_twice_loss(conventions))[0][0])
    levels, positives = _levels(ranking), truth.indices.size
    twice_wrong = int(np.sum(levels.relevant * (2 * levels.above + _twice_loss(conventions) * levels.tied)))
    twice_pairs = 2 * positives * (int(truth.n_cells) - positives)
    return Value((twice_pairs - twice_wrong) / twice_pairs)


class _Levels(NamedTuple):
    """Counts by the distinct scores of relevant cells, ascending: relevant with it, irrelevant above and with it."""

    relevant: np.ndarray
    above: np.ndarray
    tied: np.ndarray


def _levels(ranking: Ranking) -> _Levels:
    """Count the cells of the matrix by the scores of the relevant ones."""
    scores, (n_rows, n_labels) = ranking.scores, ranking.truth.shape
    of_positives = _scores_of_positives(ranking)
    positives = of_positives.size
    levels, counts = np.unique(of_positives, return_counts=True)
    below, up_to = np.zeros((2, levels.size), dtype=np.int64)
    # A block as large as the positives keeps the searches few without asking for more memory than they do.
    for start, stop in blocks(n_rows, n_labels, at_least=positives):
        ordered = np.sort(scores.rows(start, stop), axis=None)
        below += np.searchsorted(ordered, levels, side="left")
        up_to += np.searchsorted(ordered, levels, side="right")
    above_relevant = positives - np.cumsum(counts)
    above = n_rows * n_labels - up_to - above_relevant
    return _Levels(counts, above, up_to - below - counts)


def _weighted_cells(ranking: Ranking, weights: np.ndarray) -> WeightedTies:
    """Add the weights of the cells of the matrix, as one list, by the scores of the relevant ones."""
    truth, scores, (n_rows, n_labels) = ranking.truth, ranking.scores, ranking.truth.shape
    levels, which = np.unique(_scores_of_positives(ranking), return_inverse=True)
    from_here, above = np.zeros((2, levels.size))
    negatives = 0.0
    for start, stop in blocks(n_rows, n_labels, at_least=which.size):
        block, entries = scores.rows(start, stop), truth.entries(start, stop)
        irrelevant = block > -np.inf  # observed
        irrelevant[entries.lists, entries.positions] = False
        values, of_rows = block[irrelevant], np.repeat(weights[start:stop], irrelevant.sum(axis=1))
        from_top = np.append(0, np.cumsum(of_rows[np.argsort(values)[::-1]]))
        values.sort()
        from_here += from_top[values.size - np.searchsorted(values, levels, side="left")]
        above += from_top[values.size - np.searchsorted(values, levels, side="right")]
        negatives += from_top[-1]
    relevant = np.bincount(which, np.repeat(weights, np.diff(truth.indptr)))
    return WeightedTies(np.zeros(levels.size, dtype=np.int64), relevant, above, from_here, np.array([negatives]))


def _scores_of_positives(ranking: Ranking) -> np.ndarray:
    of_positives = []
    for start, stop in blocks(*ranking.truth.shape):
        entries = ranking.truth.entries(start, stop)
        of_positives.append(ranking.scores.rows(start, stop)[entries.lists, entries.positions])
    return np.concatenate(of_positives)


@metric(
    title="Macro average precision",
    direction="max",
    needs="scores",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_ZHANG,
    conventions=("label_average_precision_ties", "label_average_precision_empty"),
    standard=False,
)
def macro_average_precision(ranking: Ranking, conventions: Conventions) -> Value | float:
    """Return the mean over labels of the average precision of the rows (macro PR AUC).

    It is also called mean average precision (mAP), and is not :func:`average_precision`, which ranks the labels of a
    row. Ties among the rows by ``label_average_precision_ties``: ``max`` is scikit-learn's step area (and MEKA's AUPRC
    on the arrays measured), ``lower_index`` the row order of Mulan. A label without positives follows
    ``label_average_precision_empty``.

    Examples
    --------
    >>> from multilab.metrics import macro_average_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(macro_average_precision(Y, scores), 4)
    0.8333
    """
    precision, empty = label_average_precision(ranking, conventions)
    message = "average precision is undefined for a label without positives: label"
    return mean_with_rule(precision, empty, conventions.label_average_precision_empty, message)


def label_average_precision(ranking: Ranking, conventions: Conventions) -> tuple[np.ndarray, np.ndarray]:
    """Return the average precision of each label, and where it is undefined."""
    truth, scores = ranking.truth, ranking.scores
    ties = conventions.label_average_precision_ties
    if ties != "max" and ranking.weights is not None:
        raise MetricError(
            f"macro average precision takes no sample_weight where label_average_precision_ties is {ties!r}: "
            'a row that is repeated has another value than one of weight 2; choose "max"'
        )
    weighted = ranking.weighted_labels() if ties == "max" else None
    if weighted is not None:
        return _joined(block.average_precision() for block in weighted)
    rows_of = truth.transposed()
    precision = np.zeros(truth.shape[1])
    for start, stop in blocks(truth.shape[1], truth.shape[0]):
        entries = rows_of.entries(start, stop)
        ranks = rank_relevant(scores.columns(start, stop), entries, by_index=ties in INDEX_RULES)
        precision[start:stop] = average_precisions(ranks, ties)
    return precision, np.diff(rows_of.indptr) == 0


@metric(
    title="Micro average precision",
    direction="max",
    needs="scores",
    group="label",
    mean_over="cells",
    source="scikit-learn, average_precision_score",
    conventions=("label_average_precision_empty",),
    standard=False,
)
def micro_average_precision(ranking: Ranking, conventions: Conventions) -> Value | float:
    """Return the average precision of all cells as one list (micro PR AUC).

    Cells with the same score are one step of the curve, as in scikit-learn. Without any relevant cell:
    ``label_average_precision_empty``, where ``skip`` is ``nan``.

    Examples
    --------
    >>> from multilab.metrics import micro_average_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(micro_average_precision(Y, scores), 4)
    0.7556
    """
    positives = ranking.truth.indices.size
    if not positives:
        message = "average precision is undefined without a relevant cell: matrix"
        empty = np.ones(1, dtype=bool)
        value = mean_with_rule(np.zeros(1), empty, conventions.label_average_precision_empty, message).value
        return Value(value)
    if ranking.weights is not None:
        return float(_weighted_cells(ranking, ranking.weights).average_precision()[0][0])
    relevant, above, tied = _levels(ranking)
    up_to = np.cumsum(relevant[::-1])[::-1]
    return math.fsum((relevant / positives * (up_to / (up_to + above + tied))).tolist())
