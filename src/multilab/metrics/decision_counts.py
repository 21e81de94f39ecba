"""Counts of true labels, predicted labels and hits per row and per label, and means of their ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import blocks, refuse_other_shape
from multilab.metrics.label_sets import LabelSets

_REPLACEMENTS = {"zero": 0.0, "one": 1.0, "minus_one": -1.0}


class Value(NamedTuple):
    """A metric's value and the number of rows or labels that were left out of it."""

    value: float
    n_skipped: int = 0


def mean_of(values: np.ndarray, kept: np.ndarray | None = None) -> Value:
    """Average the kept values; ``nan`` when none is kept.

    The sum is exact and rounded once, so that it depends neither on the order of rows nor on the block size.
    """
    chosen = values if kept is None else values[kept]
    if not chosen.size:
        return Value(math.nan, values.size)
    return Value(math.fsum(chosen.tolist()) / chosen.size, values.size - chosen.size)


def mean_where_defined(values: np.ndarray) -> Value:
    """Average the values that are not ``nan``."""
    return mean_of(values, ~np.isnan(values))


def mean_with_rule(
    values: np.ndarray, degenerate: np.ndarray, rule: str, message: str, also_skip: np.ndarray | None = None
) -> Value:
    """Average the values of rows (or labels) after applying the rule for the degenerate ones.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Any finite value where degenerate.
    degenerate : ndarray of bool, shape (n,)
        Rows without a value.
    rule : {"skip", "zero", "one", "minus_one", "nan", "error"}
        Value of these rows.
    message : str
        Start of the error message; the index of the first degenerate row follows.
    also_skip : ndarray of bool, optional
        Rows left out under any rule.

    Returns
    -------
    Value

    Raises
    ------
    MetricError
        If the rule is ``error`` and a row is degenerate.
    """
    kept = np.ones(values.size, dtype=bool) if also_skip is None else ~also_skip
    if degenerate.any():
        if rule == "error":
            raise MetricError(f"{message} {np.argmax(degenerate)}; the conventions refuse it")
        if rule == "nan":
            return Value(math.nan)
        if rule == "skip":
            kept &= ~degenerate
        else:
            values = np.where(degenerate, _REPLACEMENTS[rule], values)
    return mean_of(values, kept)


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
