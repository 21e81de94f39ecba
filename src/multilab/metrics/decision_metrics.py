"""Metrics of decisions: which labels a row is given, compared with the true ones.

Y and B are 0/1 matrices of shape (n_rows, n_labels), dense or sparse: truth and decisions. Every function
raises :class:`MetricError` when they are not, or when their shapes differ.
"""

from __future__ import annotations

from typing import Any

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import FROM_COUNTS, count_decisions
from multilab.metrics.inputs import Decisions, LabelSets


def _measure(name: str, Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    chosen = resolve(conventions)
    return FROM_COUNTS[name](count_decisions(LabelSets(Y), Decisions(B)), chosen).value


def hamming_loss(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Share of the n_rows x n_labels cells that are decided wrongly; the same under all conventions."""
    return _measure("hamming_loss", Y, B, conventions)


def accuracy_1mHL(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """1 - Hamming loss, printed as "accuracy" for MLWSE in Table 4 of the MLWSE paper."""
    return _measure("accuracy_1mHL", Y, B, conventions)


def subset_accuracy(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Share of the rows with every label right; two empty sets are equal under all conventions."""
    return _measure("subset_accuracy", Y, B, conventions)


def jaccard(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of |true and predicted| / |true or predicted|, the "accuracy" of Mulan and MEKA.

    A row with both sets empty counts ``jaccard_both_empty``. scikit-learn accepts only 0 and 1 for it;
    ``nan`` drops the row here.
    """
    return _measure("jaccard", Y, B, conventions)


def example_precision(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of |true and predicted| / |predicted|.

    Both sets empty: ``example_both_empty``; only the prediction empty: ``one_empty``. MEKA has no such
    measure: its preset counts both-empty 0, as MEKA's example F1 does.
    """
    return _measure("example_precision", Y, B, conventions)


def example_recall(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of |true and predicted| / |true|.

    Both sets empty: ``example_both_empty``; only the truth empty: ``one_empty``. MEKA has no such measure:
    its preset counts both-empty 0, as MEKA's example F1 does.
    """
    return _measure("example_recall", Y, B, conventions)


def example_f1(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of 2 |true and predicted| / (|true| + |predicted|); 0/0 is ``example_both_empty``."""
    return _measure("example_f1", Y, B, conventions)


def macro_f1_example(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean example F1 with 0/0 = 0, printed as "Macro-F1" for MLWSE; the same under all conventions."""
    return _measure("macro_f1_example", Y, B, conventions)


def f1_of_means(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Harmonic mean of mean example precision and mean example recall, printed as "F1" for MLWSE.

    Every 0/0 is 0, as in the code of the MLWSE paper; the same under all conventions.
    """
    return _measure("f1_of_means", Y, B, conventions)


def macro_precision(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over labels of the precision; 0/0 as in :func:`macro_f1`, and ``one_empty`` if never predicted."""
    return _measure("macro_precision", Y, B, conventions)


def macro_recall(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over labels of the recall; 0/0 as in :func:`macro_f1`, and ``one_empty`` if never true."""
    return _measure("macro_recall", Y, B, conventions)


def macro_f1(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """Mean over labels of 2 tp / (2 tp + fp + fn); 0/0 is ``macro_both_empty``."""
    return _measure("macro_f1", Y, B, conventions)


def micro_f1(Y: Any, B: Any, conventions: str | Conventions = "default") -> float:
    """2 tp / (2 tp + fp + fn) over all cells; 0/0 is ``micro_both_empty``."""
    return _measure("micro_f1", Y, B, conventions)
