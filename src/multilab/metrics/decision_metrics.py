"""Metrics of decisions: predicted label sets compared with the true ones.

A formula gets the :class:`DecisionCounts` of the two 0/1 matrices: true labels, predicted labels and hits of every row
and every label.
"""

from __future__ import annotations

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import DecisionCounts, safe_ratio
from multilab.metrics.registry import metric

_GODBOLE = "Godbole & Sarawagi, PAKDD 2004"
_SCHAPIRE = "Schapire & Singer, BoosTexter, Machine Learning 39 (2000)"
_YANG = "Yang, Information Retrieval 1 (1999)"


@metric("Hamming loss", "min", "decisions", group="example", mean_over="cells", source=_SCHAPIRE, filler="decisions")
def hamming_loss(counts: DecisionCounts, conventions: Conventions) -> float:
    """Return the share of wrongly decided cells of the matrix.

    Examples
    --------
    >>> from multilab.metrics import hamming_loss
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(hamming_loss(Y, decisions), 4)
    0.2222
    """
    return counts.share_wrong


@metric(
    "Subset accuracy",
    "max",
    "decisions",
    group="example",
    mean_over="rows",
    source="Zhu, Ji, Xu & Gong, SIGIR 2005",
    filler="decisions",
)
def subset_accuracy(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the share of rows with every label right.

    Two empty sets are equal.

    Examples
    --------
    >>> from multilab.metrics import subset_accuracy
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(subset_accuracy(Y, decisions), 4)
    0.3333
    """
    rows = counts.by_row
    return (rows.true == rows.hits) & (rows.predicted == rows.hits)


@metric(
    "Jaccard",
    "max",
    "decisions",
    skips="rows",
    group="example",
    mean_over="rows",
    source=_GODBOLE,
    conventions=("jaccard_both_empty",),
    filler="decisions",
)
def jaccard(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over rows of intersection / union of true and predicted set.

    It is the "accuracy" of Mulan and MEKA. A row with both sets empty counts ``jaccard_both_empty``, for which
    scikit-learn accepts only 0 and 1; ``nan`` drops the row here.

    Examples
    --------
    >>> from multilab.metrics import jaccard
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(jaccard(Y, decisions), 4)
    0.6667
    >>> round(jaccard(Y, decisions, "sklearn"), 4)
    0.3333
    """
    rows = counts.by_row
    return safe_ratio(rows.hits, rows.true + rows.predicted - rows.hits, conventions.jaccard_both_empty)


@metric(
    title="Example precision",
    direction="max",
    needs="decisions",
    skips="rows",
    group="example",
    mean_over="rows",
    source=_GODBOLE,
    conventions=("example_both_empty", "one_empty"),
    filler="decisions",
)
def example_precision(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over rows of hits / predicted labels.

    Both sets empty: ``example_both_empty``; only the prediction empty: ``one_empty``. MEKA has no such measure: its
    preset counts both-empty 0, as MEKA's example F1 does.

    Examples
    --------
    >>> from multilab.metrics import example_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(example_precision(Y, decisions), 4)
    0.8333
    >>> round(example_precision(Y, decisions, "sklearn"), 4)
    0.5
    """
    return counts.by_row.precision(conventions.example_both_empty, conventions.one_empty)


@metric(
    "Example recall",
    "max",
    "decisions",
    skips="rows",
    group="example",
    mean_over="rows",
    source=_GODBOLE,
    conventions=("example_both_empty", "one_empty"),
    filler="decisions",
)
def example_recall(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over rows of hits / true labels.

    Both sets empty: ``example_both_empty``; only the truth empty: ``one_empty``. MEKA has no such measure: its
    preset counts both-empty 0, as MEKA's example F1 does.

    Examples
    --------
    >>> from multilab.metrics import example_recall
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(example_recall(Y, decisions), 4)
    0.8333
    >>> round(example_recall(Y, decisions, "sklearn"), 4)
    0.5
    """
    return counts.by_row.recall(conventions.example_both_empty, conventions.one_empty)


@metric(
    "Example F1",
    "max",
    "decisions",
    skips="rows",
    group="example",
    mean_over="rows",
    source=_GODBOLE,
    conventions=("example_both_empty",),
    filler="decisions",
)
def example_f1(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over rows of 2 hits / (true + predicted).

    0/0 is ``example_both_empty``.

    Examples
    --------
    >>> from multilab.metrics import example_f1
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(example_f1(Y, decisions), 4)
    0.7778
    >>> round(example_f1(Y, decisions, "sklearn"), 4)
    0.4444
    """
    return counts.by_row.f1(conventions.example_both_empty)


@metric(
    "Macro F1",
    "max",
    "decisions",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_YANG,
    conventions=("macro_both_empty",),
    filler="decisions",
)
def macro_f1(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of 2 tp / (2 tp + fp + fn).

    0/0 is ``macro_both_empty``.

    Examples
    --------
    >>> from multilab.metrics import macro_f1
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_f1(Y, decisions), 4)
    0.5556
    """
    return counts.by_label.f1(conventions.macro_both_empty)


@metric(
    "Micro F1",
    "max",
    "decisions",
    group="label",
    mean_over="cells",
    source=_YANG,
    conventions=("micro_both_empty",),
    filler="decisions",
)
def micro_f1(counts: DecisionCounts, conventions: Conventions) -> float:
    """Return the ratio 2 tp / (2 tp + fp + fn) over all cells.

    0/0 is ``micro_both_empty``.

    Examples
    --------
    >>> from multilab.metrics import micro_f1
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(micro_f1(Y, decisions), 4)
    0.6667
    """
    return float(counts.by_label.total().f1(conventions.micro_both_empty)[0])


@metric(
    title="Macro precision",
    direction="max",
    needs="decisions",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_YANG,
    conventions=("macro_both_empty", "one_empty"),
    standard=False,
    filler="decisions",
)
def macro_precision(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of hits / predicted rows.

    0/0 as in :func:`macro_f1`, and ``one_empty`` for a label that is never predicted.

    Examples
    --------
    >>> from multilab.metrics import macro_precision
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_precision(Y, decisions), 4)
    0.5
    """
    return counts.by_label.precision(conventions.macro_both_empty, conventions.one_empty)


@metric(
    title="Macro recall",
    direction="max",
    needs="decisions",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_YANG,
    conventions=("macro_both_empty", "one_empty"),
    standard=False,
    filler="decisions",
)
def macro_recall(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of hits / true rows.

    0/0 as in :func:`macro_f1`, and ``one_empty`` for a label that is never true.

    Examples
    --------
    >>> from multilab.metrics import macro_recall
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_recall(Y, decisions), 4)
    0.6667
    """
    return counts.by_label.recall(conventions.macro_both_empty, conventions.one_empty)
