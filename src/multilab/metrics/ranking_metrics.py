"""Ranking metrics of rows: the ranking of a row's labels by scores.

A formula gets the :class:`Ranking` of the labels. A mean over no row at all is ``nan``.
"""

from __future__ import annotations

import math

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.label_ranks import LabelRanks, Ranking
from multilab.metrics.registry import Mean, metric

_SCHAPIRE = "Schapire & Singer, BoosTexter, Machine Learning 39 (2000)"


def _without_full_rows(values: np.ndarray, rows: LabelRanks, conventions: Conventions) -> np.ndarray:
    """Return the values, NaN where all labels are relevant if the conventions leave such rows out."""
    return np.where(rows.relevant == rows.n_labels, math.nan, values) if conventions.skip_full_rows else values


def _mean_worst_rank(ranking: Ranking, conventions: Conventions, offset: int, normalised: bool = False) -> Mean:
    """Return the worst rank of a relevant label of each row, where the best rank is ``offset``."""
    rows, rule = ranking.rows, conventions.coverage_empty
    worst, n_labels = rows.twice_worst / 2 - (1 - offset), rows.n_labels if normalised else 1
    empty = (rows.relevant == 0) & (rule != "minus_one")  # their worst rank is 0
    message = "coverage is undefined without a relevant label: row"
    if isinstance(n_labels, int):
        return Mean(worst, empty, rule, message, unit=n_labels)
    return Mean(worst / n_labels, empty, rule, message)


@metric(
    title="Average precision",
    direction="max",
    needs="scores",
    skips="rows",
    group="ranking",
    mean_over="rows",
    source=_SCHAPIRE,
    conventions=("average_precision_ties", "average_precision_empty", "skip_full_rows"),
)
def average_precision(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over rows and their relevant labels of rank among relevant / rank.

    Both ranks follow ``average_precision_ties``; with ``max`` this is scikit-learn's label ranking average precision. A
    row without relevant label follows ``average_precision_empty``, a row with all labels relevant ``skip_full_rows``.

    Examples
    --------
    >>> from multilab.metrics import average_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(average_precision(Y, scores), 4)
    0.9167
    >>> round(average_precision(Y, scores, "mulan"), 4)
    1.0
    >>> round(average_precision(Y, scores, "sklearn"), 4)
    0.9444
    """
    rows = ranking.rows
    message = "average precision is undefined without a relevant label: row"
    rule = conventions.average_precision_empty
    return Mean(_without_full_rows(rows.precision, rows, conventions), rows.relevant == 0, rule, message)


@metric(
    title="Ranking loss",
    direction="min",
    needs="scores",
    skips="rows",
    group="ranking",
    mean_over="rows",
    source=_SCHAPIRE,
    conventions=("ranking_loss_ties", "ranking_loss_degenerate"),
)
def ranking_loss(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over rows of the share of wrongly ordered (relevant, irrelevant) pairs.

    A tie is an error, half an error, or decided by the column index (``ranking_loss_ties``); a row without such a pair
    follows ``ranking_loss_degenerate``. Pairs are counted as integers through a sort.

    Examples
    --------
    >>> from multilab.metrics import ranking_loss
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(ranking_loss(Y, scores), 4)
    0.25
    >>> round(ranking_loss(Y, scores, "uniform"), 4)
    0.0833
    >>> round(ranking_loss(Y, scores, "mulan"), 4)
    0.0
    """
    rows = ranking.rows
    pairs = 2 * rows.relevant * (rows.n_labels - rows.relevant)
    loss = rows.twice_wrong / np.maximum(pairs, 1)
    message = "ranking loss is undefined without both relevant and irrelevant labels: row"
    return Mean(loss, pairs == 0, conventions.ranking_loss_degenerate, message)


@metric(
    title="One-error",
    direction="min",
    needs="scores",
    skips="rows",
    group="ranking",
    mean_over="rows",
    source=_SCHAPIRE,
    conventions=("one_error_ties", "one_error_empty", "skip_full_rows"),
)
def one_error(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the share of rows whose top label is not relevant.

    If several labels have the highest score, ``one_error_ties`` decides. A row without relevant label follows
    ``one_error_empty``, a row with all labels relevant ``skip_full_rows``. scikit-learn has no one-error; its preset
    takes NumPy's argmax and counts every row.

    Examples
    --------
    >>> from multilab.metrics import one_error
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(one_error(Y, scores), 4)
    0.0
    >>> round(one_error(Y, scores, "uniform"), 4)
    0.3333
    """
    rows = ranking.rows
    message = "one-error is undefined without a relevant label: row"
    wrong = _without_full_rows(~rows.top_right, rows, conventions)
    return Mean(wrong, rows.relevant == 0, conventions.one_error_empty, message)


@metric(
    title="Coverage",
    direction="min",
    needs="scores",
    skips="rows",
    high=math.inf,
    group="ranking",
    mean_over="rows",
    source=_SCHAPIRE,
    conventions=("coverage_ties", "coverage_empty", "coverage_offset", "coverage_normalised"),
)
def coverage(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over rows of the worst rank of a relevant label, minus 1.

    The 1 is not subtracted if ``coverage_offset`` is 1; the value is divided by the number of labels if
    ``coverage_normalised`` is set. Ties follow ``coverage_ties``, rows without relevant label ``coverage_empty``. MEKA
    has no coverage; its preset is 0-based with the worst rank of a tie, and an empty row counts 0.

    Examples
    --------
    >>> from multilab.metrics import coverage
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(coverage(Y, scores), 4)
    1.0
    >>> round(coverage(Y, scores, "sklearn"), 4)
    1.3333
    >>> round(coverage(Y, scores, "mulan"), 4)
    0.3333
    """
    normalised = conventions.coverage_normalised
    return _mean_worst_rank(ranking, conventions, conventions.coverage_offset, normalised)


@metric(
    title="Coverage (1-based)",
    direction="min",
    needs="scores",
    skips="rows",
    high=math.inf,
    group="ranking",
    mean_over="rows",
    ordered_like="coverage",
    source="scikit-learn, coverage_error",
    conventions=("coverage_ties", "coverage_empty"),
)
def coverage_1based(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over rows of the worst rank of a relevant label.

    ``coverage_offset`` and ``coverage_normalised`` do not matter; a row without relevant label is skipped, refused or
    counts 0.

    Examples
    --------
    >>> from multilab.metrics import coverage_1based
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(coverage_1based(Y, scores), 4)
    2.0
    >>> round(coverage_1based(Y, scores, "sklearn"), 4)
    1.3333
    """
    return _mean_worst_rank(ranking, conventions, offset=1)


@metric(
    title="Coverage (normalised)",
    direction="min",
    needs="scores",
    skips="rows",
    group="ranking",
    mean_over="rows",
    ordered_like="coverage",
    source="iMLDF paper",
    conventions=("coverage_ties", "coverage_empty"),
)
def coverage_normalised(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over rows of (the worst rank of a relevant label, minus 1) / number of labels.

    ``coverage_offset`` and ``coverage_normalised`` do not matter.

    Examples
    --------
    >>> from multilab.metrics import coverage_normalised
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(coverage_normalised(Y, scores), 4)
    0.3333
    >>> round(coverage_normalised(Y, scores, "lamda"), 4)
    0.0
    """
    return _mean_worst_rank(ranking, conventions, offset=0, normalised=True)
