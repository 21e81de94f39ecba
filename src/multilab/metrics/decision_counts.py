"""Counts of true labels, predicted labels and hits per row and per label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from multilab.metrics.label_sets import LabelSets


class _DecisionRows(Protocol):
    def rows(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True)
class SetSizes:
    """Numbers of true labels, predicted labels and hits of each row (or each label).

    Integer arrays; of labels in weighted rows, sums of weights.
    """

    true: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray

    def total(self) -> SetSizes:
        """Return the sums over all rows (or labels), for micro averages."""
        return SetSizes(*(np.atleast_1d(sizes.sum()) for sizes in (self.true, self.predicted, self.hits)))

    def precision(self, both_empty: float, one_empty: float) -> np.ndarray:
        """Return hits / predicted."""
        return safe_ratio(self.hits, self.predicted, np.where(self.true == 0, both_empty, one_empty))

    def recall(self, both_empty: float, one_empty: float) -> np.ndarray:
        """Return hits / true."""
        return safe_ratio(self.hits, self.true, np.where(self.predicted == 0, both_empty, one_empty))

    def f1(self, both_empty: float) -> np.ndarray:
        """Return 2 hits / (true + predicted)."""
        return safe_ratio(2 * self.hits, self.true + self.predicted, both_empty)


@dataclass(frozen=True)
class DecisionCounts:
    """Sufficient statistics of the decision metrics.

    Attributes
    ----------
    shape : tuple of int
        (n_rows, n_labels).
    by_row, by_label : SetSizes
        Arrays of shape (n_rows,) and (n_labels,), over the observed cells. A row is one in ``by_row``, whatever its
        weight; in ``by_label`` it counts by its weight.
    n_cells : int or float
        Number of observed cells, each counted by the weight of its row.
    weights : ndarray of float, shape (n_rows,), or None
        Weights of the rows, > 0, for means over rows. None: all are 1.
    """

    shape: tuple[int, int]
    by_row: SetSizes
    by_label: SetSizes
    n_cells: float
    weights: np.ndarray | None = None

    @property
    def share_wrong(self) -> float:
        """Wrongly decided cells / all cells."""
        wrong = self.by_row.true + self.by_row.predicted - 2 * self.by_row.hits
        return float(wrong.sum() if self.weights is None else self.weights @ wrong) / self.n_cells


def count_decisions(truth: LabelSets, decisions: _DecisionRows) -> DecisionCounts:
    """Count true labels, predicted labels and hits of every row and label, one block of rows at a time."""
    n_rows, n_labels = truth.shape
    weights = truth.weights
    of_entries = None if weights is None else np.repeat(weights, np.diff(truth.indptr))
    row_predicted, row_hits = np.zeros((2, n_rows), dtype=np.int64)
    label_predicted, label_hits = np.zeros((2, n_labels), dtype=np.int64 if weights is None else np.float64)
    for start, stop, entries in truth.parts:
        predicted = decisions.rows(start, stop)
        hit = predicted[entries.lists, entries.positions]
        row_predicted[start:stop] = predicted.sum(axis=1)
        label_predicted += predicted.sum(axis=0) if weights is None else weights[start:stop] @ predicted
        row_hits[start:stop] = np.bincount(entries.lists[hit], minlength=stop - start)
        of_hits = None if weights is None else weights[start:stop][entries.lists[hit]]
        label_hits += np.bincount(entries.positions[hit], of_hits, n_labels)
    return DecisionCounts(
        truth.shape,
        SetSizes(np.diff(truth.indptr), row_predicted, row_hits),
        SetSizes(np.bincount(truth.indices, of_entries, n_labels), label_predicted, label_hits),
        truth.n_cells,
        weights,
    )


def safe_ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: np.ndarray | float) -> np.ndarray:
    """Divide; where the denominator is 0 the value is ``undefined``."""
    zero = denominator == 0
    return np.where(zero, undefined, numerator / np.where(zero, 1, denominator))
