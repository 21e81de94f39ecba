# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Rows of each label sorted once: AUC and average precision of many draws of rows follow from their weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multilab.metrics import inputs
from multilab.metrics.inputs import Scores
from multilab.metrics.label_sets import LabelSets

_BLOCKS = 4  # more cells are not kept sorted


@dataclass(frozen=True)
class SortedLabels:
    """Rows of each label by ascending score, and the ties among them.

    Attributes
    ----------
    order : ndarray of int, shape (n_labels, n_rows)
    relevant, observed : ndarray of bool, shape (n_labels, n_rows)
        In this order.
    starts : ndarray of int, shape (n_ties,)
        Position of the first row of each tie in the flat order.
    labels : ndarray of int, shape (n_ties,)
        Label of each tie.
    first : ndarray of int, shape (n_labels,)
        First tie of each label.
    """

    order: np.ndarray
    relevant: np.ndarray
    observed: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    first: np.ndarray

    def draw(self, lines: np.ndarray) -> DrawnLabels:
        """Count the drawn rows of each tie."""
        weights = np.bincount(lines, minlength=self.order.shape[1])[self.order] * self.observed
        counts = np.add.reduceat(weights.ravel(), self.starts)
        relevant = np.add.reduceat((weights * self.relevant).ravel(), self.starts)
        return DrawnLabels(self, relevant, counts - relevant)


@dataclass(frozen=True)
class DrawnLabels:
    """Numbers of relevant and irrelevant rows of a draw in each tie of the sorted labels."""

    sorted: SortedLabels
    relevant: np.ndarray
    irrelevant: np.ndarray

    def auc(self, twice_loss: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the area under the ROC curve of each label that the draw observes, and where it is undefined."""
        wrong = self._per_label(self.relevant * (2 * self._above(self.irrelevant) + twice_loss * self.irrelevant))
        positives, negatives = self._per_label(self.relevant), self._per_label(self.irrelevant)
        twice_pairs = 2 * positives * negatives
        kept = positives + negatives > 0
        return ((twice_pairs - wrong) / np.maximum(twice_pairs, 1))[kept], (twice_pairs == 0)[kept]

    def average_precision(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the average precision of each label that the draw observes, ties as one step, and where undefined."""
        relevant = self._above(self.relevant) + self.relevant
        everything = relevant + self._above(self.irrelevant) + self.irrelevant
        positives, negatives = self._per_label(self.relevant), self._per_label(self.irrelevant)
        steps = self._per_label(self.relevant * (relevant / np.maximum(everything, 1)))
        kept = positives + negatives > 0
        return (steps / np.maximum(positives, 1))[kept], (positives == 0)[kept]

    def _per_label(self, counts: np.ndarray) -> np.ndarray:
        return np.add.reduceat(counts, self.sorted.first)

    def _above(self, counts: np.ndarray) -> np.ndarray:
        """Return the counts of the ties of the same label with higher scores."""
        up_to = np.cumsum(counts)
        last = np.append(self.sorted.first[1:], counts.size) - 1
        return up_to[last][self.sorted.labels] - up_to


def sort_labels(truth: LabelSets, scores: Scores) -> SortedLabels | None:
    """Sort the rows of each label; None if there are too many cells to keep."""
    n_rows, n_labels = truth.shape
    if n_rows * n_labels > _BLOCKS * inputs.BLOCK_CELLS:
        return None
    columns = scores.columns(0, n_labels)
    order = np.argsort(columns, axis=1).astype(np.int32)
    columns = np.take_along_axis(columns, order, axis=1)
    relevant = np.take_along_axis(truth.to_csr().T.toarray(), order, axis=1)
    begins = np.ones(columns.shape, dtype=bool)
    begins[:, 1:] = columns[:, 1:] != columns[:, :-1]
    starts = np.flatnonzero(begins)
    labels = starts // n_rows
    return SortedLabels(
        order, relevant, columns > -np.inf, starts, labels, np.searchsorted(labels, np.arange(n_labels))
    )
