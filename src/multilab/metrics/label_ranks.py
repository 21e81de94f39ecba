"""Ranks of the relevant labels of each row by their scores, and of the rows of each label."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from multilab.metrics import inputs
from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import safe_ratio
from multilab.metrics.inputs import Entries, Scores, blocks, refuse_other_shape
from multilab.metrics.label_sets import LabelSets

INDEX_RULES = ("higher_index", "lower_index")


@dataclass(frozen=True)
class RelevantRanks:
    """Counts for each relevant entry of a block of lists, ordered by list and, within it, by ascending score.

    Attributes
    ----------
    lists : ndarray of int, shape (n_entries,)
        Index of the list of each entry.
    positions : ndarray of int, shape (n_entries,)
        Its position in the list.
    starts : ndarray of int, shape (n_lists + 1,)
        Position of the first entry of each list.
    above, tied, later : ndarray of int, shape (n_entries,)
        Entries of the list with a higher score; with the same score, itself included; of these the ones with
        a higher index (0 without ``by_index``).
    above_relevant, tied_relevant, later_relevant : ndarray of int, shape (n_entries,)
        The same counts among the relevant entries.
    """

    lists: np.ndarray
    positions: np.ndarray
    starts: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    later: np.ndarray
    above_relevant: np.ndarray
    tied_relevant: np.ndarray
    later_relevant: np.ndarray

    def twice_rank(self, ties: str) -> np.ndarray:
        """Return 2 x the rank (1 = highest score) among all entries of the list; doubled, it is an integer."""
        return _twice_rank(self.above, self.tied, self.later, ties)

    def twice_rank_among_relevant(self, ties: str) -> np.ndarray:
        """Return 2 x the rank among the relevant entries of the list, by the same tie rule."""
        return _twice_rank(self.above_relevant, self.tied_relevant, self.later_relevant, ties)

    def twice_wrong_pairs(self, ties: str) -> np.ndarray:
        """Return 2 x the irrelevant entries ranked before each entry; of a tie all, half, or by index."""
        above = self.above - self.above_relevant
        tied = self.tied - self.tied_relevant
        later = self.later - self.later_relevant
        if ties == "max":
            return 2 * (above + tied)
        if ties == "average":
            return 2 * above + tied
        return 2 * (above + (later if ties == "higher_index" else tied - later))

    def sum_per_list(self, counts: np.ndarray) -> np.ndarray:
        """Return the sums of integer counts over the entries of each list."""
        return np.diff(np.concatenate(([0], np.cumsum(counts)))[self.starts])

    def max_per_list(self, counts: np.ndarray) -> np.ndarray:
        """Return the largest count of each list, 0 if the list has no entry."""
        largest = np.zeros(self.starts.size - 1, dtype=counts.dtype)
        filled = np.diff(self.starts) > 0
        if counts.size:
            largest[filled] = np.maximum.reduceat(counts, self.starts[:-1][filled])
        return largest


def _twice_rank(above: np.ndarray, tied: np.ndarray, later: np.ndarray, ties: str) -> np.ndarray:
    if ties == "max":
        return 2 * (above + tied)
    if ties == "average":
        return 2 * above + tied + 1
    return 2 * (above + (later + 1 if ties == "higher_index" else tied - later))


def rank_relevant(scores: np.ndarray, entries: Entries, by_index: bool) -> RelevantRanks:
    """Count, for each relevant entry, the entries ranked above it and those tied with it.

    Parameters
    ----------
    scores : ndarray, shape (n_lists, length)
        Finite scores.
    entries : Entries
        The relevant entries of these lists.
    by_index : bool
        Whether a tie rule by index is used; only then the indices within a tie are counted.

    Returns
    -------
    RelevantRanks
    """
    values, lists, positions, begins = _sorted_entries(scores, entries)
    count, first = values.size, np.flatnonzero(begins)
    tie = np.cumsum(begins) - 1
    end = np.append(first[1:], count)[tie]
    tied_relevant = end - first[tie]
    above_relevant = entries.starts[1:][lists] - end
    later_relevant = end - 1 - np.arange(count)

    ordered = np.sort(scores, axis=1)
    not_above = _count_up_to(ordered, lists[first], values[first], inclusive=True)
    below = _count_up_to(ordered, lists[first], values[first], inclusive=False)
    above = (scores.shape[1] - not_above)[tie]
    tied = (not_above - below)[tie]
    later = np.zeros_like(tied)
    if by_index:
        later = _later_in_tie(scores, lists, positions, not_above[tie], later_relevant, tied != tied_relevant)
    return RelevantRanks(
        lists, positions, entries.starts, above, tied, later, above_relevant, tied_relevant, later_relevant
    )


def _sorted_entries(scores: np.ndarray, entries: Entries) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, lists and positions of the relevant entries by list and score, and where a tie of them begins."""
    values = scores[entries.lists, entries.positions]
    # Stable, and the entries come by ascending position: within a tie they stay so.
    order = np.lexsort((values, entries.lists))
    values, lists = values[order], entries.lists
    begins = np.ones(values.size, dtype=bool)
    begins[1:] = (values[1:] != values[:-1]) | (lists[1:] != lists[:-1])
    return values, lists, entries.positions[order], begins


def _count_up_to(ordered: np.ndarray, lists: np.ndarray, values: np.ndarray, inclusive: bool) -> np.ndarray:
    """Count the scores of each list below (or up to) a value: one binary search per value, all in step."""
    length = ordered.shape[1]
    flat, base = ordered.ravel(), lists * length - 1
    count = np.zeros(lists.size, dtype=np.int64)
    step = 1 << (length.bit_length() - 1)
    while step:
        trial = count + step
        value = flat[base + np.minimum(trial, length)]
        passed = (value <= values) if inclusive else (value < values)
        count = np.where(passed & (trial <= length), trial, count)
        step >>= 1
    return count


def _later_in_tie(
    scores: np.ndarray,
    lists: np.ndarray,
    positions: np.ndarray,
    not_above: np.ndarray,
    later_relevant: np.ndarray,
    mixed: np.ndarray,
) -> np.ndarray:
    """Count the entries of a tie with a higher index; lists without a mixed tie need no second sort."""
    later = later_relevant.copy()
    if not mixed.any():
        return later
    chosen = np.unique(lists[mixed])
    order = np.argsort(scores[chosen], axis=1, kind="stable")
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.arange(scores.shape[1])[None, :], axis=1)
    local = np.searchsorted(chosen, lists[mixed])
    later[mixed] = not_above[mixed] - 1 - position[local, positions[mixed]]
    return later


@dataclass(frozen=True)
class WeightedTies:
    """Sums of weights for each distinct score of the relevant entries of a list, ordered by list and score.

    Lists without any weight, such as labels that no row of a draw observes, are left out of what the methods return.
    All sums are added from the top, because a difference of two large sums would lose the digits of a small one.

    Attributes
    ----------
    lists : ndarray of int, shape (n_ties,)
        Index of the list of each tie.
    relevant : ndarray of float, shape (n_ties,)
        Weight of the relevant entries of each tie.
    above, from_here : ndarray of float, shape (n_ties,)
        Weight of the irrelevant entries of the list with a higher score; with a higher or the same score.
    negatives : ndarray of float, shape (n_lists,)
        Weight of the irrelevant entries of each list.
    """

    lists: np.ndarray
    relevant: np.ndarray
    above: np.ndarray
    from_here: np.ndarray
    negatives: np.ndarray

    def auc(self, twice_loss: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the area under the ROC curve of each list, and where it is undefined."""
        wrong = self._per_list(self.relevant * (2 * self.above + twice_loss * (self.from_here - self.above)))
        positives = self._per_list(self.relevant)
        twice_pairs, kept = 2 * positives * self.negatives, positives + self.negatives > 0
        return safe_ratio(twice_pairs - wrong, twice_pairs, 0)[kept], (twice_pairs == 0)[kept]

    def average_precision(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the average precision of each list, ties as one step, and where it is undefined."""
        sizes = np.bincount(self.lists, minlength=self.negatives.size)
        place = np.cumsum(sizes)[self.lists] - 1 - np.arange(self.lists.size)  # of each tie, from the top of its list
        sums = np.zeros((sizes.size, sizes.max(initial=0)))
        sums[self.lists, place] = self.relevant
        found = np.cumsum(sums, axis=1)[self.lists, place]
        positives = self._per_list(self.relevant)
        steps = self._per_list(self.relevant * safe_ratio(found, found + self.from_here, 0))
        kept = positives + self.negatives > 0
        return safe_ratio(steps, positives, 0)[kept], (positives == 0)[kept]

    def _per_list(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.lists, values, self.negatives.size)


@dataclass(frozen=True)
class SortedLists:
    """Lists of scores, sorted once, whose ties can be weighed with any weights of the positions.

    Attributes
    ----------
    order : ndarray of int, shape (n_lists, length)
        Positions of the irrelevant entries of each list by descending score, then all others.
    n_irrelevant : ndarray of int, shape (n_lists,)
    positions : ndarray of int, shape (n_entries,)
        Positions of the relevant entries, by list and ascending score.
    first : ndarray of int, shape (n_ties,)
        First relevant entry of each tie.
    lists : ndarray of int, shape (n_ties,)
        List of each tie.
    above, from_here : ndarray of int, shape (n_ties,)
        Irrelevant entries of the list with a higher score; with a higher or the same score.
    """

    order: np.ndarray
    n_irrelevant: np.ndarray
    positions: np.ndarray
    first: np.ndarray
    lists: np.ndarray
    above: np.ndarray
    from_here: np.ndarray

    def weigh(self, weights: np.ndarray) -> WeightedTies:
        """Add the weights of the positions."""
        n_lists, length = self.order.shape
        sums = np.zeros((n_lists, length + 1), dtype=weights.dtype)
        np.cumsum(weights[self.order], axis=1, out=sums[:, 1:])
        relevant = np.add.reduceat(np.append(weights[self.positions], 0), self.first)
        above, from_here = sums[self.lists, self.above], sums[self.lists, self.from_here]
        return WeightedTies(self.lists, relevant, above, from_here, sums[np.arange(n_lists), self.n_irrelevant])


def sort_lists(scores: np.ndarray, entries: Entries) -> SortedLists:
    """Sort lists of scores, -inf where a cell is not observed, and their relevant entries."""
    values, lists, positions, begins = _sorted_entries(scores, entries)
    first = np.flatnonzero(begins)
    values, lists, length = values[first], lists[first], scores.shape[1]
    others = scores.astype(scores.dtype if scores.dtype.kind == "f" else np.float64)
    others[entries.lists, entries.positions] = -np.inf  # below all irrelevant entries
    order = np.argsort(others, axis=1)[:, ::-1]
    others.sort(axis=1)
    above, from_here = (length - _count_up_to(others, lists, values, inclusive) for inclusive in (True, False))
    return SortedLists(order, (others > -np.inf).sum(axis=1), positions, first, lists, above, from_here)


_BLOCKS = 4  # more cells are not kept sorted


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

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows, > 0; None if all are 1."""
        return self.truth.weights

    @cached_property
    def sorted_labels(self) -> SortedLists | None:
        """Rows of each label by their scores; None if there are too many cells to keep."""
        n_rows, n_labels = self.truth.shape
        if n_rows * n_labels > _BLOCKS * inputs.BLOCK_CELLS:
            return None
        return sort_lists(self.scores.columns(0, n_labels), self.truth.transposed().entries(0, n_labels))

    def weighted_labels(self) -> Iterator[WeightedTies] | None:
        """Return the ties of the relevant rows of each label, for blocks of labels; None if every row counts once.

        A draw shares the sorted labels of the ranking that it is a selection of.
        """
        ranking, lines = self._source or (None, None)
        if ranking is not None and lines is not None and ranking.sorted_labels is not None:
            drawn = None if ranking.weights is None else ranking.weights[lines]
            return iter([ranking.sorted_labels.weigh(np.bincount(lines, drawn, ranking.truth.shape[0]))])
        if self.weights is None:
            return None
        rows_of, weights, (n_rows, n_labels) = self.truth.transposed(), self.weights, self.truth.shape
        sort = (sort_lists(self.scores.columns(*part), rows_of.entries(*part)) for part in blocks(n_labels, n_rows))
        return (block.weigh(weights) for block in sort)

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
