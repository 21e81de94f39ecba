"""Metrics of the ranking of rows or cells by scores: AUC and average precision, macro and micro.

AUC is a quotient of integers: pairs of a positive and a negative, counted through a sort. With weights of the rows, a
pair counts the product of two weights.
"""

from __future__ import annotations

import math

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.registry import Mean, metric

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
def macro_auc(ranking: Ranking, conventions: Conventions) -> Mean:
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
    message = "AUC is undefined for a label with one class only: label"
    return Mean(*ranking.label_auc, conventions.auc_one_class, message)


@metric("Micro AUC", "max", "scores", group="label", mean_over="cells", source=_ZHANG, conventions=("auc_ties",))
def micro_auc(ranking: Ranking, conventions: Conventions) -> float:
    """Return the area under the ROC curve of all cells.

    The value is ``nan`` if all cells have one class. A tied pair counts ``auc_ties``.

    Examples
    --------
    >>> from multilab.metrics import micro_auc
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(micro_auc(Y, scores), 4)
    0.8611
    """
    if ranking.weights is not None:
        (area,), (one_class,) = ranking.weighted_cells.auc(conventions.auc_ties)
        return math.nan if one_class else float(area)
    levels, positives = ranking.levels, ranking.truth.indices.size
    twice_pairs = 2 * positives * (ranking.truth.n_cells - positives)
    twice_wrong = int(np.sum(levels.relevant * (2 * levels.above + int(2 - 2 * conventions.auc_ties) * levels.tied)))
    return (twice_pairs - twice_wrong) / twice_pairs if twice_pairs else math.nan


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
def macro_average_precision(ranking: Ranking, conventions: Conventions) -> Mean:
    """Return the mean over labels of the average precision of the rows (macro PR AUC).

    It is also called mean average precision (mAP), and differs from :func:`average_precision`, which ranks the labels
    of a row. ``label_average_precision_ties`` decides ties among the rows: ``max`` is scikit-learn's step area (and
    MEKA's AUPRC on the arrays measured), ``lower_index`` is the row order of Mulan. A label without positives follows
    ``label_average_precision_empty``.

    Examples
    --------
    >>> from multilab.metrics import macro_average_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(macro_average_precision(Y, scores), 4)
    0.8333
    """
    message = "average precision is undefined for a label without positives: label"
    return Mean(*ranking.label_average_precision, conventions.label_average_precision_empty, message)


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
def micro_average_precision(ranking: Ranking, conventions: Conventions) -> Mean | float:
    """Return the average precision of all cells as one list (micro PR AUC).

    Cells with the same score are one step of the curve, as in scikit-learn. Without any relevant cell,
    ``label_average_precision_empty`` decides; ``skip`` gives ``nan``.

    Examples
    --------
    >>> from multilab.metrics import micro_average_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(micro_average_precision(Y, scores), 4)
    0.7556
    """
    message = "average precision is undefined without a relevant cell: matrix"
    positives = ranking.truth.indices.size
    if not positives:
        return Mean(np.zeros(1), np.ones(1, dtype=bool), conventions.label_average_precision_empty, message)
    if ranking.weights is not None:
        return float(ranking.weighted_cells.average_precision()[0][0])
    relevant, above, tied = ranking.levels
    up_to = np.cumsum(relevant[::-1])[::-1]
    return math.fsum((relevant / positives * (up_to / (up_to + above + tied))).tolist())
