"""Metrics that only this paper prints: columns of its Tables 4 and 5, the same under all conventions.

A study computes those that it lists under ``metrics``.
"""

from __future__ import annotations

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import DecisionCounts
from multilab.metrics.registry import Value, mean_of, metric

_MLWSE = "MLWSE paper, Tables 4-5, as its code computes it"


@metric(
    "1 - Hamming loss",
    "max",
    "decisions",
    group="example",
    mean_over="cells",
    ordered_like="hamming_loss",
    source=_MLWSE,
    filler="decisions",
)
def accuracy_1mHL(counts: DecisionCounts, conventions: Conventions) -> float:
    """Return the share of rightly decided cells of the matrix.

    The MLWSE paper prints it as "accuracy" for MLWSE.

    Examples
    --------
    >>> from multilab.papers.mlwse.metrics import accuracy_1mHL
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(accuracy_1mHL(Y, decisions), 4)
    0.7778
    """
    return 1.0 - counts.share_wrong


@metric("F1 of means", "max", "decisions", group="example", source=_MLWSE, filler="decisions")
def f1_of_means(counts: DecisionCounts, conventions: Conventions) -> Value:
    """Return the harmonic mean of mean example precision and mean example recall, 0/0 = 0.

    The MLWSE paper prints it as "F1" for MLWSE.

    Examples
    --------
    >>> from multilab.papers.mlwse.metrics import f1_of_means
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(f1_of_means(Y, decisions), 4)
    0.5
    """
    precision = mean_of(counts.by_row.precision(0.0, 0.0), weights=counts.weights)
    recall = mean_of(counts.by_row.recall(0.0, 0.0), weights=counts.weights).value
    total = precision.value + recall
    return precision._replace(value=2 * precision.value * recall / total if total > 0 else 0.0)


@metric(
    "Example F1 (0/0 = 0)",
    "max",
    "decisions",
    group="example",
    mean_over="rows",
    source=_MLWSE,
    filler="decisions",
)
def macro_f1_example(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the mean over rows of 2 hits / (true + predicted), 0/0 = 0.

    The MLWSE paper prints it as "Macro-F1" for MLWSE.

    Examples
    --------
    >>> from multilab.papers.mlwse.metrics import macro_f1_example
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> decisions = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    >>> round(macro_f1_example(Y, decisions), 4)
    0.4444
    """
    return counts.by_row.f1(0.0)
