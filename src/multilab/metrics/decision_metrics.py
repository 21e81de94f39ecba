"""Metrics of decisions: predicted label sets compared with the true ones.

A formula gets the :class:`DecisionCounts` of the two 0/1 matrices: true labels, predicted labels and hits of every row
and every label.
"""

from __future__ import annotations

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import DecisionCounts, safe_ratio
from multilab.metrics.registry import Value, mean_of, metric

_GODBOLE = "Godbole & Sarawagi, PAKDD 2004"
_SCHAPIRE = "Schapire & Singer, BoosTexter, Machine Learning 39 (2000)"
_YANG = "Yang, Information Retrieval 1 (1999)"
_RIJSBERGEN = "van Rijsbergen, Information Retrieval, 2nd ed., 1979, chapter 7"
_MATTHEWS = "Matthews, Biochimica et Biophysica Acta 405 (1975)"


@metric(
    "Hamming loss",
    "min",
    "decisions",
    group="example",
    mean_over="cells",
    source=_SCHAPIRE,
    filler="decisions",
    cell_weights=True,
)
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

    A row counts ``example_both_empty`` if both sets are empty, and ``one_empty`` if only the prediction is empty. MEKA
    has no such measure; its preset counts 0 if both sets are empty, as MEKA's example F1 does.

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

    A row counts ``example_both_empty`` if both sets are empty, and ``one_empty`` if only the truth is empty. MEKA has
    no such measure; its preset counts 0 if both sets are empty, as MEKA's example F1 does.

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
    cell_weights=True,
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
    cell_weights=True,
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
    cell_weights=True,
)
def macro_precision(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of hits / predicted rows.

    0/0 follows :func:`macro_f1`; a label that is never predicted counts ``one_empty``.

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
    cell_weights=True,
)
def macro_recall(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of hits / true rows.

    0/0 follows :func:`macro_f1`; a label that is never true counts ``one_empty``.

    Examples
    --------
    >>> from multilab.metrics import macro_recall
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_recall(Y, decisions), 4)
    0.6667
    """
    return counts.by_label.recall(conventions.macro_both_empty, conventions.one_empty)


@metric(
    title="Weighted F1",
    direction="max",
    needs="decisions",
    group="label",
    source="scikit-learn, f1_score with average='weighted'",
    conventions=("macro_both_empty",),
    standard=False,
    cell_weights=True,
)
def weighted_f1(counts: DecisionCounts, conventions: Conventions) -> Value:
    """Return the mean over labels of F1, each label weighted by its number of relevant rows.

    Without any relevant cell, all labels have the same weight; 0/0 is then ``macro_both_empty``.

    Examples
    --------
    >>> from multilab.metrics import weighted_f1
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(weighted_f1(Y, decisions), 4)
    0.5556
    """
    labels = counts.by_label
    relevant = labels.true if labels.true.any() else None
    values = labels.f1(conventions.macro_both_empty if relevant is None else 0.0)
    return mean_of(values, weights=relevant)._replace(n_skipped=0, weighted=True)


@metric(
    title="Macro F-beta",
    direction="max",
    needs="decisions",
    skips="labels",
    group="label",
    mean_over="labels",
    source=_RIJSBERGEN,
    conventions=("macro_both_empty",),
    standard=False,
    filler="decisions",
    cell_weights=True,
)
def macro_fbeta(counts: DecisionCounts, conventions: Conventions, *, beta: float = 2.0) -> np.ndarray:
    """Return the mean over labels of (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp).

    0/0 is ``macro_both_empty``.

    Parameters
    ----------
    beta : float, default 2.0
        Greater than 0; recall counts beta times as much as precision. Use 2 if a missed label is worse than a wrong
        one, and 0.5 if it is better.

    Examples
    --------
    >>> from multilab.metrics import macro_fbeta
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_fbeta(Y, decisions), 4), round(macro_fbeta(Y, decisions, beta=0.5), 4)
    (0.6111, 0.5185)
    """
    return counts.by_label.fbeta(beta, conventions.macro_both_empty)


@metric(
    title="Micro F-beta",
    direction="max",
    needs="decisions",
    group="label",
    mean_over="cells",
    source=_RIJSBERGEN,
    conventions=("micro_both_empty",),
    standard=False,
    filler="decisions",
    cell_weights=True,
)
def micro_fbeta(counts: DecisionCounts, conventions: Conventions, *, beta: float = 2.0) -> float:
    """Return the ratio (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp) over all cells.

    0/0 is ``micro_both_empty``.

    Parameters
    ----------
    beta : float, default 2.0
        Greater than 0; recall counts beta times as much as precision.

    Examples
    --------
    >>> from multilab.metrics import micro_fbeta
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(micro_fbeta(Y, decisions), 4)
    0.6667
    """
    return float(counts.by_label.total().fbeta(beta, conventions.micro_both_empty)[0])


@metric(
    title="Example F-beta",
    direction="max",
    needs="decisions",
    skips="rows",
    group="example",
    mean_over="rows",
    source=_RIJSBERGEN,
    conventions=("example_both_empty",),
    standard=False,
    filler="decisions",
)
def example_fbeta(counts: DecisionCounts, conventions: Conventions, *, beta: float = 2.0) -> np.ndarray:
    """Return the mean over rows of (1 + beta^2) hits / (beta^2 true + predicted).

    0/0 is ``example_both_empty``.

    Parameters
    ----------
    beta : float, default 2.0
        Greater than 0; recall counts beta times as much as precision.

    Examples
    --------
    >>> from multilab.metrics import example_fbeta
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(example_fbeta(Y, decisions), 4)
    0.7963
    """
    return counts.by_row.fbeta(beta, conventions.example_both_empty)


@metric(
    title="Macro Matthews correlation",
    direction="max",
    needs="decisions",
    low=-1.0,
    group="label",
    mean_over="labels",
    source=_MATTHEWS,
    standard=False,
    cell_weights=True,
)
def macro_mcc(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of the correlation of true and predicted values.

    It is 0 for a label with one true or one predicted value, as in scikit-learn.

    Examples
    --------
    >>> from multilab.metrics import macro_mcc
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_mcc(Y, decisions), 4)
    0.5
    """
    return counts.by_label.matthews()


@metric(
    title="Micro Matthews correlation",
    direction="max",
    needs="decisions",
    low=-1.0,
    group="label",
    mean_over="cells",
    source=_MATTHEWS,
    standard=False,
    cell_weights=True,
)
def micro_mcc(counts: DecisionCounts, conventions: Conventions) -> float:
    """Return the correlation of true and predicted values over all cells.

    It is 0 if all true or all predicted values are the same.

    Examples
    --------
    >>> from multilab.metrics import micro_mcc
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(micro_mcc(Y, decisions), 4)
    0.5
    """
    return float(counts.by_label.total().matthews()[0])


@metric(
    title="Macro balanced accuracy",
    direction="max",
    needs="decisions",
    group="label",
    mean_over="labels",
    source="Brodersen, Ong, Stephan & Buhmann, ICPR 2010",
    standard=False,
    filler="decisions",
    cell_weights=True,
)
def macro_balanced_accuracy(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of (recall + specificity) / 2.

    For a label with one true value, only the recall of that value counts, as in scikit-learn.

    Examples
    --------
    >>> from multilab.metrics import macro_balanced_accuracy
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_balanced_accuracy(Y, decisions), 4)
    0.75
    """
    both = np.stack([sizes.recall(np.nan, np.nan) for sizes in (counts.by_label, counts.by_label.complement())])
    return np.where(np.isnan(both).any(axis=0), np.nansum(both, axis=0), both.mean(axis=0))


@metric(
    title="Macro specificity",
    direction="max",
    needs="decisions",
    skips="labels",
    group="label",
    mean_over="labels",
    source="Yerushalmy, Public Health Reports 62 (1947)",
    conventions=("macro_both_empty", "one_empty"),
    standard=False,
    filler="decisions",
    cell_weights=True,
)
def macro_specificity(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over labels of tn / (tn + fp), the share of the rows without the label that are not predicted.

    It is the recall of the value 0. A label that all rows have counts ``macro_both_empty`` if it is predicted for all
    of them, otherwise ``one_empty``.

    Examples
    --------
    >>> from multilab.metrics import macro_specificity
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_specificity(Y, decisions), 4)
    0.8333
    """
    return counts.by_label.complement().recall(conventions.macro_both_empty, conventions.one_empty)
