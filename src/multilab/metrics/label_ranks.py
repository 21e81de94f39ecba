"""Ranks of the relevant labels of each row by their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.inputs import Entries, LabelSets, Scores, blocks, refuse_other_shape
from multilab.metrics.rank_counts import INDEX_RULES, RelevantRanks, rank_relevant


@dataclass(frozen=True)
class LabelRanks:
    """Sufficient statistics of the ranking metrics of rows; arrays of shape (n_rows,).

    Attributes
    ----------
    n_labels : int
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

    n_labels: int
    relevant: np.ndarray
    twice_wrong: np.ndarray
    twice_worst: np.ndarray
    precision: np.ndarray
    top_right: np.ndarray


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
    return LabelRanks(n_labels, np.diff(truth.indptr), wrong, worst, precision, right)


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

    def __post_init__(self) -> None:
        refuse_other_shape(self.truth, "Y", self.scores, "scores")

    @cached_property
    def rows(self) -> LabelRanks:
        """Ranks of the labels within their row; computed once."""
        return rank_labels(self.truth, self.scores, self.conventions)
