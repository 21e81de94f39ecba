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
    """A metric's value, the number of rows or labels that were left out of it, and whether it used weights of rows."""

    value: float
    n_skipped: int = 0
    weighted: bool = False


def mean_of(values: np.ndarray, kept: np.ndarray | None = None, *, weights: np.ndarray | None = None) -> Value:
    """Average the kept values; ``nan`` when none is kept.

    The sum is exact and rounded once, so that it depends neither on the order of rows nor on the block size.
    """
    chosen = values if kept is None else values[kept]
    n_skipped, weighted = values.size - chosen.size, weights is not None
    if not chosen.size:
        return Value(math.nan, n_skipped, weighted)
    if weights is None:
        return Value(math.fsum(chosen.tolist()) / chosen.size, n_skipped)
    weights = weights if kept is None else weights[kept]
    return Value(math.fsum((weights * chosen).tolist()) / math.fsum(weights.tolist()), n_skipped, weighted)


def mean_where_defined(values: np.ndarray, *, weights: np.ndarray | None = None) -> Value:
    """Average the values that are not ``nan``."""
    return mean_of(values, ~np.isnan(values), weights=weights)


def mean_with_rule(
    values: np.ndarray,
    degenerate: np.ndarray,
    rule: str,
    message: str,
    also_skip: np.ndarray | None = None,
    *,
    weights: np.ndarray | None = None,
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
    weights : ndarray of float, shape (n,), optional
        Weights of the rows, > 0.

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
            return Value(math.nan, weighted=weights is not None)
        if rule == "skip":
            kept &= ~degenerate
        else:
            values = np.where(degenerate, _REPLACEMENTS[rule], values)
    return mean_of(values, kept, weights=weights)


class _DecisionRows(Protocol):
    shape: tuple[int, int]

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
    refuse_other_shape(truth, "Y", decisions, "decisions")
    n_rows, n_labels = truth.shape
    weights = truth.weights
    of_entries = None if weights is None else np.repeat(weights, np.diff(truth.indptr))
    row_predicted, row_hits = np.zeros((2, n_rows), dtype=np.int64)
    label_predicted, label_hits = np.zeros((2, n_labels), dtype=np.int64 if weights is None else np.float64)
    for start, stop in blocks(n_rows, n_labels):
        predicted = decisions.rows(start, stop)
        entries = truth.entries(start, stop)
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
