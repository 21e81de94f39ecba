"""Counts of true labels, predicted labels and hits per row and per label."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Protocol

import numpy as np

from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Entries
from multilab.metrics.label_sets import LabelSets


class _DecisionRows(Protocol):
    def rows(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True)
class SetSizes:
    """Sizes of the sets of true and predicted labels, and of the sets of the other labels, per row (or per label).

    Integer arrays over the observed cells; of labels in weighted rows, sums of weights.

    Attributes
    ----------
    true, predicted, hits : ndarray
        Cells with the label, cells that are predicted, and cells that are both.
    absent, unpredicted : ndarray
        Cells without the label, and cells that are not predicted. Of weighted rows they are sums of their own: a
        difference of two sums would be a rounding error where there is no such cell.
    """

    true: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray
    absent: np.ndarray
    unpredicted: np.ndarray

    def total(self) -> SetSizes:
        """Return the sums over all rows (or labels), for micro averages."""
        return SetSizes(*(np.atleast_1d(getattr(self, field.name).sum()) for field in fields(self)))

    def complement(self) -> SetSizes:
        """Return the sizes with the two values of a label exchanged: hits are then the cells rightly not predicted."""
        hits = np.maximum(self.unpredicted - (self.true - self.hits), 0)
        return SetSizes(self.absent, self.unpredicted, hits, self.true, self.predicted)

    def precision(self, both_empty: float, one_empty: float) -> np.ndarray:
        """Return hits / predicted."""
        return safe_ratio(self.hits, self.predicted, np.where(self.true == 0, both_empty, one_empty))

    def recall(self, both_empty: float, one_empty: float) -> np.ndarray:
        """Return hits / true."""
        return safe_ratio(self.hits, self.true, np.where(self.predicted == 0, both_empty, one_empty))

    def f1(self, both_empty: float) -> np.ndarray:
        """Return 2 hits / (true + predicted)."""
        return safe_ratio(2 * self.hits, self.true + self.predicted, both_empty)

    def fbeta(self, beta: float, both_empty: float) -> np.ndarray:
        """Return (1 + beta^2) hits / (beta^2 true + predicted)."""
        if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < beta < math.inf:
            raise MetricError(f"`beta` must be a finite number > 0, got {beta!r}")
        square = float(beta) ** 2
        return safe_ratio((1 + square) * self.hits, square * self.true + self.predicted, both_empty)

    def matthews(self) -> np.ndarray:
        """Return the correlation of true and predicted labels, 0 where one of the two is constant."""
        right, wrong = self.hits, self.predicted - self.hits
        covariance = right * np.asarray(self.complement().hits, dtype=float) - wrong * (self.true - right)
        spread = (
            np.asarray(self.true, dtype=float) * self.absent * (np.asarray(self.predicted, float) * self.unpredicted)
        )
        return np.clip(safe_ratio(covariance, np.sqrt(spread), 0.0), -1, 1)


@dataclass(frozen=True)
class DecisionCounts:
    """Sufficient statistics of the decision metrics.

    Attributes
    ----------
    shape : tuple of int
        (n_rows, n_labels).
    by_row, by_label : SetSizes
        Arrays of shape (n_rows,) and (n_labels,), over the observed cells. A cell is one in ``by_row``, whatever its
        weight; in ``by_label`` it counts by its weight or that of its row.
    n_cells : int or float
        Number of observed cells, each counted by its weight.
    weights : ndarray of float, shape (n_rows,), or None
        Weights of the rows, > 0, for means over rows. None: all are 1.
    truth : LabelSets or None
        The true labels; None for a draw of rows.
    """

    shape: tuple[int, int]
    by_row: SetSizes
    by_label: SetSizes
    n_cells: float
    weights: np.ndarray | None = None
    truth: LabelSets | None = None

    @property
    def share_wrong(self) -> float:
        """Wrongly decided cells / all cells."""
        if self.truth is not None and self.truth.cell_weights is not None:
            of_labels = self.by_label
            return float((of_labels.true + of_labels.predicted - 2 * of_labels.hits).sum()) / self.n_cells
        wrong = self.by_row.true + self.by_row.predicted - 2 * self.by_row.hits
        return float(wrong.sum() if self.weights is None else self.weights @ wrong) / self.n_cells


def count_decisions(truth: LabelSets, decisions: _DecisionRows) -> DecisionCounts:
    """Count true labels, predicted labels and hits of every row and label, one block of rows at a time."""
    n_rows, n_labels = truth.shape
    row_predicted, row_hits = np.zeros((2, n_rows), dtype=np.int64)
    weighted = truth.weights is not None or truth.cell_weights is not None
    of_labels: Any = np.zeros((5, n_labels), dtype=np.float64 if weighted else np.int64)
    for start, stop, entries in truth.parts:
        predicted = decisions.rows(start, stop)
        hit = predicted[entries.lists, entries.positions]
        row_predicted[start:stop] = predicted.sum(axis=1)
        row_hits[start:stop] = np.bincount(entries.lists[hit], minlength=stop - start)
        of_labels += _of_labels(truth, predicted, entries, hit, start, stop)
    row_true = np.diff(truth.indptr)
    if not weighted:  # the last two are differences, which are exact
        of_labels[3:] = truth.label_lengths - of_labels[:2]
    of_rows = row_true, row_predicted, row_hits, truth.row_lengths - row_true, truth.row_lengths - row_predicted
    return DecisionCounts(truth.shape, SetSizes(*of_rows), SetSizes(*of_labels), truth.n_cells, truth.weights, truth)


def _of_labels(
    truth: LabelSets, predicted: np.ndarray, entries: Entries, hit: np.ndarray, start: int, stop: int
) -> np.ndarray:
    """Return the sizes of `SetSizes` by label of a block of rows, shape (5, n_labels); the last two only of weights."""
    n_labels, lists, positions = predicted.shape[1], entries.lists, entries.positions
    weights, cells = truth.weights, truth.cell_weights
    if weights is None and cells is None:
        none = np.zeros(n_labels, dtype=np.int64)
        true, hits = (np.bincount(positions[chosen], minlength=n_labels) for chosen in (slice(None), hit))
        return np.stack([true, predicted.sum(axis=0), hits, none, none])
    seen = np.ones(predicted.shape, dtype=bool) if truth.observed is None else truth.observed.rows(start, stop)
    absent = seen.copy()
    absent[lists, positions] = False
    parts = predicted, absent, seen & ~predicted
    if cells is not None:
        block = cells.rows(start, stop)
        of_entries, sums = block[lists, positions], [(block * part).sum(axis=0) for part in parts]
    else:
        assert weights is not None
        of_entries, sums = weights[start:stop][lists], [weights[start:stop] @ part for part in parts]
    true, hits = (np.bincount(positions[chosen], of_entries[chosen], n_labels) for chosen in (slice(None), hit))
    return np.stack([true, sums[0], hits, *sums[1:]])


def safe_ratio(numerator: np.ndarray, denominator: np.ndarray, undefined: np.ndarray | float) -> np.ndarray:
    """Divide; where the denominator is 0 the value is ``undefined``."""
    zero = denominator == 0
    return np.where(zero, undefined, numerator / np.where(zero, 1, denominator))
