# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Ranks of the relevant labels of each row by their scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.inputs import Entries, Scores, blocks, refuse_other_shape
from multilab.metrics.label_draws import DrawnLabels, SortedLabels, sort_labels
from multilab.metrics.label_sets import LabelSets
from multilab.metrics.rank_counts import INDEX_RULES, RelevantRanks, rank_relevant


@dataclass(frozen=True)
class LabelRanks:
    """Sufficient statistics of the ranking metrics of rows; arrays of shape (n_rows,).

    Attributes
    ----------
    n_labels : int, or ndarray of int
        Labels of each row, without those that are not observed; one number if all rows have the same.
    relevant : ndarray of int
        Relevant labels.
    twice_wrong : ndarray of int
        2 x the wrongly ordered pairs of a relevant and an irrelevant label.
    twice_worst : ndarray of int
        2 x the worst rank of a relevant label, 0 without one.
    precision : ndarray of float
        Average precision, 0 without a relevant label.
    top_right : ndarray of bool
        Whether the top-ranked label is relevant, by the tie rule of one-error.
    """

    n_labels: int | np.ndarray
    relevant: np.ndarray
    twice_wrong: np.ndarray
    twice_worst: np.ndarray
    precision: np.ndarray
    top_right: np.ndarray

    def take(self, lines: np.ndarray) -> LabelRanks:
        """Return the ranks of a selection of rows."""
        n_labels = self.n_labels if isinstance(self.n_labels, int) else self.n_labels[lines]
        arrays = (self.relevant, self.twice_wrong, self.twice_worst, self.precision, self.top_right)
        return LabelRanks(n_labels, *(array[lines] for array in arrays))


def average_precisions(ranks: RelevantRanks, ties: str) -> np.ndarray:
    """Average, per list, rank among the relevant / rank among all; both ranks follow the same tie rule."""
    ratio = ranks.twice_rank_among_relevant(ties) / ranks.twice_rank(ties)
    sizes = np.diff(ranks.starts)
    # bincount adds in order of rank, so that the columns' order does not reach the last digit.
    return np.bincount(ranks.lists, weights=ratio, minlength=sizes.size) / np.maximum(sizes, 1)


def _top_right(scores: np.ndarray, entries: Entries, ranks: RelevantRanks, ties: str) -> np.ndarray:
    """Return for each row whether its top-ranked label is relevant."""
    right = np.zeros(scores.shape[0], dtype=bool)
    if ties in INDEX_RULES:
        if ties == "lower_index":
            top = np.argmax(scores, axis=1)
        else:
            top = scores.shape[1] - 1 - np.argmax(scores[:, ::-1], axis=1)
        right[entries.lists[entries.positions == top[entries.lists]]] = True
        return right
    best = ranks.above == 0
    if ties == "all":
        best &= ranks.tied == ranks.tied_relevant
    right[ranks.lists[best]] = True
    return right


def rank_labels(truth: LabelSets, scores: Scores, conventions: Conventions) -> LabelRanks:
    """Rank the labels of every row, one block of rows at a time."""
    c = conventions
    by_index = any(t in INDEX_RULES for t in (c.ranking_loss_ties, c.average_precision_ties, c.coverage_ties))
    n_rows, n_labels = truth.shape
    wrong, worst = np.zeros((2, n_rows), dtype=np.int64)
    precision, right = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
    for start, stop in blocks(n_rows, n_labels):
        block, entries = scores.rows(start, stop), truth.entries(start, stop)
        ranks = rank_relevant(block, entries, by_index)
        wrong[start:stop] = ranks.sum_per_list(ranks.twice_wrong_pairs(c.ranking_loss_ties))
        worst[start:stop] = ranks.max_per_list(ranks.twice_rank(c.coverage_ties))
        precision[start:stop] = average_precisions(ranks, c.average_precision_ties)
        right[start:stop] = _top_right(block, entries, ranks, c.one_error_ties)
    return LabelRanks(truth.row_lengths, np.diff(truth.indptr), wrong, worst, precision, right)


@dataclass(frozen=True)
class Ranking:
    """True labels and scores, and the ranks of the labels of each row.

    Attributes
    ----------
    truth : LabelSets
    scores : Scores
    conventions : Conventions
        Its tie rules decide the ranks.
    """

    truth: LabelSets
    scores: Scores
    conventions: Conventions
    _per_row: dict[Hashable, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    _source: tuple[Ranking, np.ndarray] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        refuse_other_shape(self.truth, "Y", self.scores, "scores")

    @cached_property
    def rows(self) -> LabelRanks:
        """Ranks of the labels within their row; computed once."""
        return rank_labels(self.truth, self.scores, self.conventions)

    def per_row(self, key: Hashable, function: Callable[[np.ndarray, Entries], np.ndarray]) -> np.ndarray:
        """Return a number (or several) of each row, computed once per key.

        Parameters
        ----------
        key : hashable
            Identifies the function and its arguments.
        function : callable
            ``function(scores, entries)`` of a block of rows; unobserved cells have the score -inf.
        """
        if key not in self._per_row:
            parts = blocks(*self.truth.shape)
            values = [function(self.scores.rows(*part), self.truth.entries(*part)) for part in parts]
            self._per_row[key] = np.concatenate(values)
        return self._per_row[key]

    @cached_property
    def sorted_labels(self) -> SortedLabels | None:
        """Rows of each label by their scores; None if there are too many cells to keep."""
        return sort_labels(self.truth, self.scores)

    @property
    def drawn_labels(self) -> DrawnLabels | None:
        """Counts by the sorted labels of the ranking that this is a selection of; None if there is none."""
        ranking, lines = self._source or (None, None)
        if ranking is None or lines is None or ranking.sorted_labels is None:
            return None
        return ranking.sorted_labels.draw(lines)

    def take(self, lines: np.ndarray) -> Ranking:
        """Return the ranking of a selection of rows; what is known of each row is not computed again."""
        truth, scores = self.truth.take(lines), self.scores.take(lines)
        if truth.observed is not None and not truth.observed.sizes[1].all():
            seen = np.flatnonzero(truth.observed.sizes[1])
            truth, scores = truth.take(None, seen), scores.take(None, seen)
        known = {key: values[lines] for key, values in self._per_row.items()}
        other = Ranking(truth, scores, self.conventions, known, (self, lines))
        if "rows" in vars(self):
            vars(other)["rows"] = self.rows.take(lines)
        return other
