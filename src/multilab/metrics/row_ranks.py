"""How scores order the labels of each row, and every ranking metric computed from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.inputs import Entries, LabelSets, Scores, blocks, refuse_other_shape
from multilab.metrics.ranks import INDEX_RULES, RelevantRanks, rank_relevant
from multilab.metrics.values import Value, settle


@dataclass(frozen=True)
class RowRanks:
    """What ranking metrics need to know of each row; arrays of shape (n_rows,).

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
        Whether one-error takes the row for right.
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
    """Say for each row whether its top-ranked label is relevant."""
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


def rank_rows(truth: LabelSets, scores: Scores, conventions: Conventions) -> RowRanks:
    """Rank the labels of every row, one block of rows at a time."""
    refuse_other_shape(truth, "Y", scores, "scores")
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
    return RowRanks(n_labels, np.diff(truth.indptr), wrong, worst, precision, right)


def _ranking_loss(r: RowRanks, c: Conventions) -> Value:
    pairs = 2 * r.relevant * (r.n_labels - r.relevant)
    loss = r.twice_wrong / np.maximum(pairs, 1)
    what = "ranking loss is undefined without both relevant and irrelevant labels: row"
    return settle(loss, pairs == 0, c.ranking_loss_degenerate, what)


def _full_rows(r: RowRanks, c: Conventions) -> np.ndarray | None:
    return r.relevant == r.n_labels if c.skip_full_rows else None


def _average_precision(r: RowRanks, c: Conventions) -> Value:
    what = "average precision is undefined without a relevant label: row"
    return settle(r.precision, r.relevant == 0, c.average_precision_empty, what, _full_rows(r, c))


def _one_error(r: RowRanks, c: Conventions) -> Value:
    what = "one-error is undefined without a relevant label: row"
    wrong = (~r.top_right).astype(float)
    return settle(wrong, r.relevant == 0, c.one_error_empty, what, _full_rows(r, c))


def _coverage_from(r: RowRanks, c: Conventions, offset: int) -> Value:
    rule = c.coverage_empty
    if offset == 1 and rule == "minus_one":
        rule = "zero"
    what = "coverage is undefined without a relevant label: row"
    return settle(r.twice_worst / 2 - (1 - offset), r.relevant == 0, rule, what)


def _coverage_normalised(r: RowRanks, c: Conventions) -> Value:
    steps, skipped = _coverage_from(r, c, 0)
    return Value(steps / r.n_labels, skipped)


def _coverage(r: RowRanks, c: Conventions) -> Value:
    steps, skipped = _coverage_from(r, c, c.coverage_offset)
    return Value(steps / r.n_labels if c.coverage_normalised else steps, skipped)


FROM_RANKS: dict[str, Callable[[RowRanks, Conventions], Value]] = {
    "average_precision": _average_precision,
    "ranking_loss": _ranking_loss,
    "one_error": _one_error,
    "coverage": _coverage,
    "coverage_1based": lambda r, c: _coverage_from(r, c, 1),
    "coverage_normalised": _coverage_normalised,
}
