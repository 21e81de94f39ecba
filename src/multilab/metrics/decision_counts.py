"""How decisions meet the truth: counts per row and label, and every decision metric computed from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.inputs import LabelSets, blocks, refuse_other_shape
from multilab.metrics.values import Value, mean_of, mean_where_defined


class _DecisionRows(Protocol):
    shape: tuple[int, int]

    def rows(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(frozen=True)
class SetSizes:
    """How many true labels, predicted labels and hits the rows (or the labels) have; integer arrays."""

    true: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray

    def total(self) -> SetSizes:
        """Add everything up: one line for the micro averages."""
        return SetSizes(*(np.atleast_1d(part.sum()) for part in (self.true, self.predicted, self.hits)))


@dataclass(frozen=True)
class DecisionCounts:
    """All that decision metrics need to know of the two matrices."""

    shape: tuple[int, int]
    by_row: SetSizes
    by_label: SetSizes


def count_decisions(truth: LabelSets, decisions: _DecisionRows, name: str = "decisions") -> DecisionCounts:
    """Count true labels, predicted labels and hits of every row and label, one block of rows at a time."""
    refuse_other_shape(truth, "Y", decisions, name)
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
    )


def _ratio(over: np.ndarray, under: np.ndarray, undefined: np.ndarray | float) -> np.ndarray:
    """Divide; where the denominator is 0 the value is ``undefined``."""
    return np.where(under == 0, undefined, over / np.maximum(under, 1))


def _precision(sizes: SetSizes, both_empty: float, one_empty: float) -> np.ndarray:
    return _ratio(sizes.hits, sizes.predicted, np.where(sizes.true == 0, both_empty, one_empty))


def _recall(sizes: SetSizes, both_empty: float, one_empty: float) -> np.ndarray:
    return _ratio(sizes.hits, sizes.true, np.where(sizes.predicted == 0, both_empty, one_empty))


def _f1(sizes: SetSizes, both_empty: float) -> np.ndarray:
    return _ratio(2 * sizes.hits, sizes.true + sizes.predicted, both_empty)


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def _hamming_loss(n: DecisionCounts, c: Conventions) -> Value:
    wrong = int(n.by_row.true.sum() + n.by_row.predicted.sum() - 2 * n.by_row.hits.sum())
    return Value(wrong / (n.shape[0] * n.shape[1]))


def _subset_accuracy(n: DecisionCounts, c: Conventions) -> Value:
    equal = (n.by_row.true == n.by_row.hits) & (n.by_row.predicted == n.by_row.hits)
    return Value(int(equal.sum()) / n.shape[0])


def _jaccard(n: DecisionCounts, c: Conventions) -> Value:
    union = n.by_row.true + n.by_row.predicted - n.by_row.hits
    return mean_where_defined(_ratio(n.by_row.hits, union, c.jaccard_both_empty))


def _accuracy_1mhl(n: DecisionCounts, c: Conventions) -> Value:
    return Value(1.0 - _hamming_loss(n, c).value)


def _f1_of_means(n: DecisionCounts, c: Conventions) -> Value:
    means = (mean_of(part(n.by_row, 0.0, 0.0)).value for part in (_precision, _recall))
    return Value(_harmonic(*means))


FROM_COUNTS: dict[str, Callable[[DecisionCounts, Conventions], Value]] = {
    "hamming_loss": _hamming_loss,
    "subset_accuracy": _subset_accuracy,
    "jaccard": _jaccard,
    "example_precision": lambda n, c: mean_where_defined(_precision(n.by_row, c.example_both_empty, c.one_empty)),
    "example_recall": lambda n, c: mean_where_defined(_recall(n.by_row, c.example_both_empty, c.one_empty)),
    "example_f1": lambda n, c: mean_where_defined(_f1(n.by_row, c.example_both_empty)),
    "macro_precision": lambda n, c: mean_where_defined(_precision(n.by_label, c.macro_both_empty, c.one_empty)),
    "macro_recall": lambda n, c: mean_where_defined(_recall(n.by_label, c.macro_both_empty, c.one_empty)),
    "macro_f1": lambda n, c: mean_where_defined(_f1(n.by_label, c.macro_both_empty)),
    "micro_f1": lambda n, c: Value(float(_f1(n.by_label.total(), c.micro_both_empty)[0])),
    "accuracy_1mHL": _accuracy_1mhl,
    "f1_of_means": _f1_of_means,
    "macro_f1_example": lambda n, c: mean_of(_f1(n.by_row, 0.0)),
}
