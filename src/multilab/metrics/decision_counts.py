# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Counts of true labels, predicted labels and hits per row and per label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from multilab.metrics.inputs import blocks, refuse_other_shape
from multilab.metrics.label_sets import LabelSets


class _DecisionRows(Protocol):
    shape: tuple[int, int]

    def rows(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True)
class SetSizes:
    """Numbers of true labels, predicted labels and hits of each row (or each label); integer arrays."""

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
        Arrays of shape (n_rows,) and (n_labels,), over the observed cells.
    n_cells : int
        Number of observed cells.
    """

    shape: tuple[int, int]
    by_row: SetSizes
    by_label: SetSizes
    n_cells: int

    @property
    def share_wrong(self) -> float:
        """Wrongly decided cells / all cells."""
        wrong = int(self.by_row.true.sum() + self.by_row.predicted.sum() - 2 * self.by_row.hits.sum())
        return wrong / self.n_cells


def count_decisions(truth: LabelSets, decisions: _DecisionRows) -> DecisionCounts:
    """Count true labels, predicted labels and hits of every row and label, one block of rows at a time."""
    refuse_other_shape(truth, "Y", decisions, "decisions")
    n_rows, n_labels = truth.shape
    row_predicted, row_hits = np.zeros((2, n_rows), dtype=np.int64)
    label_predicted, label_hits = np.zeros((2, n_labels), dtype=np.int64)
    for start, stop in blocks(n_rows, n_labels):
        predicted = decisions.rows(start, stop)
        entries = truth.entries(start, stop)
        hit = predicted[entries.lists, entries.positions]
        row_predicted[start:stop] = predicted.sum(axis=1)
        label_predicted += predicted.sum(axis=0)
        row_hits[start:stop] = np.bincount(entries.lists[hit], minlength=stop - start)
        label_hits += np.bincount(entries.positions[hit], minlength=n_labels)
    return DecisionCounts(
        truth.shape,
        SetSizes(np.diff(truth.indptr), row_predicted, row_hits),
        SetSizes(np.bincount(truth.indices, minlength=n_labels), label_predicted, label_hits),
        truth.n_cells,
    )


def safe_ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: np.ndarray | float) -> np.ndarray:
    """Divide; where the denominator is 0 the value is ``undefined``."""
    return np.where(denominator == 0, undefined, numerator / np.maximum(denominator, 1))
