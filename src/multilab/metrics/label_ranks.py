"""Ranks of the relevant labels of each row by their scores, and of the rows of each label."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from multilab.metrics import inputs
from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import safe_ratio
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Entries, Scores, blocks
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

    def auc(self, of_tie: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the area under the ROC curve of each list (``of_tie``: of a tied pair), and where it is undefined."""
        wrong = self._per_list(self.relevant * (2 * self.above + (2 - 2 * of_tie) * (self.from_here - self.above)))
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
        sums = _cumulated(weights.take(self.order))
        relevant = np.add.reduceat(np.append(weights[self.positions], 0), self.first)
        negatives = sums(np.arange(len(self.order)), self.n_irrelevant)
        return WeightedTies(
            self.lists, relevant, sums(self.lists, self.above), sums(self.lists, self.from_here), negatives
        )


def _cumulated(weights: np.ndarray) -> Callable[[np.ndarray | int, np.ndarray], np.ndarray]:
    """Return a function of lists and counts: the sums of so many first weights of these lists."""
    np.cumsum(weights, axis=1, out=weights)
    return lambda lists, counts: np.where(counts > 0, weights[lists, counts - 1], 0) if weights.size else counts * 0.0


def sort_lists(scores: np.ndarray, entries: Entries) -> SortedLists:
    """Sort lists of scores, -inf where a cell is not observed, and their relevant entries."""
    values, lists, positions, begins = _sorted_entries(scores, entries)
    first = np.flatnonzero(begins)
    descending = _descending(scores, entries)
    values, lists = -values[first].astype(descending.dtype), lists[first]
    order = np.argsort(descending, axis=1)
    descending.sort(axis=1)
    above, from_here = (_count_up_to(descending, lists, values, inclusive) for inclusive in (False, True))
    n_irrelevant = _count_up_to(descending, np.arange(len(order)), np.full(len(order), np.inf), inclusive=False)
    return SortedLists(order, n_irrelevant, positions, first, lists, above, from_here)


_BLOCKS = 4  # more cells are not kept sorted
_FEW = 8  # levels whose sums are added one by one


class Levels(NamedTuple):
    """Counts by the distinct scores of relevant cells, ascending: relevant with it, irrelevant above and with it."""

    relevant: np.ndarray
    above: np.ndarray
    tied: np.ndarray


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
    n_rows = truth.shape[0]
    wrong, worst = np.zeros((2, n_rows), dtype=np.int64)
    precision, right = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
    for start, stop, entries in truth.parts:
        block = scores.rows(start, stop)
        ranks = rank_relevant(block, entries, by_index)
        wrong[start:stop] = ranks.sum_per_list(ranks.twice_wrong_pairs(c.ranking_loss_ties))
        worst[start:stop] = ranks.max_per_list(ranks.twice_rank(c.coverage_ties))
        precision[start:stop] = average_precisions(ranks, c.average_precision_ties)
        right[start:stop] = _top_right(block, entries, ranks, c.one_error_ties)
    return LabelRanks(truth.row_lengths, np.diff(truth.indptr), wrong, worst, precision, right)


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Join the values and the undefined ones of blocks of labels."""
    values, undefined = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(undefined)


def _sums_from_top(
    scores: np.ndarray, entries: Entries, weights: np.ndarray, levels: np.ndarray, tied: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of the irrelevant cells with scores at or above, and above, each level, and of all of them.

    Parameters
    ----------
    scores : ndarray, shape (n_rows, n_labels)
        -inf where a cell is not observed.
    entries : Entries
        The relevant entries of these rows.
    weights : ndarray of shape (n_rows,)
    levels : ndarray
        Scores, ascending and distinct.
    tied : bool
        Whether many cells may have the score of a level.
    """
    n_rows, n_labels = scores.shape
    low, descending_levels = (1 << n_rows.bit_length()) - 1, 0.0 - levels
    exact, unclear = scores.dtype.itemsize <= 4 and low < 1 << 20, np.arange(levels.size)
    if exact or not tied:
        # Sorting scores with the rows in their lowest bits is several times faster than argsort. Nothing is lost where
        # these bits are 0 (float32); else only a cell that has all other bits of a level may be at its wrong side.
        keys = _ordered_bits(_descending(scores, entries))
        keys &= ~low
        keys |= np.arange(n_rows)[:, None]
        keys = keys.ravel()
        keys.sort()
        floors = _ordered_bits(descending_levels) & ~low
        above = np.searchsorted(keys, floors)
        from_here, found = above.copy(), np.flatnonzero(keys.take(above, mode="clip") <= floors + low)
        from_here[found] = np.searchsorted(keys, floors[found] + low, "right")
        unclear = found[:0] if exact else found[from_here[found] > above[found]]
        rows = keys[: np.searchsorted(keys, _ordered_bits(np.array(np.inf)) & ~low)] & low
    if unclear.size > _FEW or (tied and not exact):
        ordered, unclear = _descending(scores, entries).ravel(), unclear[:0]
        rows = np.argsort(ordered) // n_labels
        ordered.sort()
        above, from_here = (np.searchsorted(ordered, descending_levels, side) for side in ("left", "right"))
        rows = rows[: np.searchsorted(ordered, np.inf)]
    sums = _cumulated(weights.take(rows)[None])
    of_above, of_from_here = sums(0, above), sums(0, from_here)
    for level in unclear:
        others = _descending(scores, entries)
        of_above[level] = weights @ (others < descending_levels[level]).sum(axis=1)
        of_from_here[level] = weights @ (others <= descending_levels[level]).sum(axis=1)
    return of_from_here, of_above, sums(0, np.array([rows.size]))


def _descending(scores: np.ndarray, entries: Entries) -> np.ndarray:
    """Return the negative scores of the irrelevant entries; those of others are inf."""
    negative = np.subtract(0.0, scores, dtype=scores.dtype if scores.dtype.kind == "f" else np.float64)  # no -0.0
    negative[entries.lists, entries.positions] = np.inf
    return negative


def _ordered_bits(values: np.ndarray) -> np.ndarray:
    """Return the bits of numbers as integers in the same order."""
    bits = values.astype(np.float64, copy=False).view(np.int64)
    return bits ^ ((bits >> 63) & np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Ranking:
    """True labels and scores of the same shape, and what is counted of them, once.

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

    @cached_property
    def rows(self) -> LabelRanks:
        """Ranks of the labels within their row."""
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
            values = [function(self.scores.rows(*part), entries) for *part, entries in self.truth.parts]
            self._per_row[key] = np.concatenate(values)
        return self._per_row[key]

    @cached_property
    def weights(self) -> np.ndarray | None:
        """Weights of the rows, > 0; None if all are 1."""
        return self.truth.weights

    @cached_property
    def label_auc(self) -> tuple[np.ndarray, np.ndarray]:
        """Area under the ROC curve of each label, and where it is undefined."""
        of_tie = self.conventions.auc_ties
        if self._has_weighted_labels:
            return _joined([ties.auc(of_tie) for ties in self._weighted_labels])
        rows_of, n_labels = self.truth.transposed, self.truth.shape[1]
        positives, twice_wrong = np.diff(rows_of.indptr), np.zeros(n_labels, dtype=np.int64)
        for start, stop, entries in rows_of.parts:
            ranks = rank_relevant(self.scores.columns(start, stop), entries, by_index=False)
            above, tied = ranks.above - ranks.above_relevant, ranks.tied - ranks.tied_relevant
            twice_wrong[start:stop] = ranks.sum_per_list(2 * above + int(2 - 2 * of_tie) * tied)
        twice_pairs = 2 * positives * (self.truth.label_lengths - positives)
        return (twice_pairs - twice_wrong) / np.maximum(twice_pairs, 1), twice_pairs == 0

    @cached_property
    def label_average_precision(self) -> tuple[np.ndarray, np.ndarray]:
        """Average precision of each label, and where it is undefined."""
        ties = self.conventions.label_average_precision_ties
        if ties != "max" and self.weights is not None:
            raise MetricError(
                f"macro average precision takes no sample_weight where label_average_precision_ties is {ties!r}: "
                'a row that is repeated has another value than one of weight 2; choose "max"'
            )
        if ties == "max" and self._has_weighted_labels:
            return _joined([block.average_precision() for block in self._weighted_labels])
        rows_of, precision = self.truth.transposed, np.zeros(self.truth.shape[1])
        for start, stop, entries in rows_of.parts:
            ranks = rank_relevant(self.scores.columns(start, stop), entries, by_index=ties in INDEX_RULES)
            precision[start:stop] = average_precisions(ranks, ties)
        return precision, np.diff(rows_of.indptr) == 0

    @cached_property
    def _sorted_labels(self) -> SortedLists | None:
        """Rows of each label by their scores; None if there are too many cells to keep."""
        n_rows, n_labels = self.truth.shape
        if n_rows * n_labels > _BLOCKS * inputs.BLOCK_CELLS:
            return None
        return sort_lists(self.scores.columns(0, n_labels), self.truth.transposed.entries(0, n_labels))

    @property
    def _has_weighted_labels(self) -> bool:
        """Whether rows have weights; those of a draw count as often as they were drawn, if sorted labels are kept."""
        return self.weights is not None or (self._source is not None and self._source[0]._sorted_labels is not None)

    @cached_property
    def _weighted_labels(self) -> list[WeightedTies]:
        """Ties of the relevant rows of each label, for blocks of labels.

        A draw shares the sorted labels of the ranking that it is a selection of.
        """
        if self._source is not None and (ordered := self._source[0]._sorted_labels) is not None:
            ranking, lines = self._source
            drawn = None if ranking.weights is None else ranking.weights[lines]
            return [ordered.weigh(np.bincount(lines, drawn, ranking.truth.shape[0]))]
        assert self.weights is not None
        parts = self.truth.transposed.parts
        return [sort_lists(self.scores.columns(*part), entries).weigh(self.weights) for *part, entries in parts]

    @cached_property
    def levels(self) -> Levels:
        """Numbers of cells of the matrix, by the scores of the relevant ones."""
        of_positives, (n_rows, n_labels) = self._scores_of_positives(), self.truth.shape
        levels, counts = np.unique(of_positives, return_counts=True)
        below, up_to = np.zeros((2, levels.size), dtype=np.int64)
        # A block as large as the positives keeps the searches few without asking for more memory than they do.
        for part in blocks(n_rows, n_labels, at_least=of_positives.size):
            ordered = np.sort(self.scores.rows(*part), axis=None)
            below += np.searchsorted(ordered, levels, side="left")
            up_to += np.searchsorted(ordered, levels, side="right")
        above = n_rows * n_labels - up_to - (of_positives.size - np.cumsum(counts))
        return Levels(counts, above, up_to - below - counts)

    @cached_property
    def weighted_cells(self) -> WeightedTies:
        """Weights of the cells of the matrix, as one list, by the scores of the relevant ones."""
        truth, weights = self.truth, self.weights
        assert weights is not None
        levels, which = np.unique(self._scores_of_positives(), return_inverse=True)
        from_here, above, negatives = np.zeros(levels.size), np.zeros(levels.size), np.zeros(1)
        for start, stop in blocks(*truth.shape, at_least=which.size):
            block, entries = self.scores.rows(start, stop), truth.entries(start, stop)
            sums = _sums_from_top(block, entries, weights[start:stop], levels, levels.size < which.size)
            from_here, above, negatives = from_here + sums[0], above + sums[1], negatives + sums[2]
        relevant = np.bincount(which, np.repeat(weights, np.diff(truth.indptr)))
        return WeightedTies(np.zeros(levels.size, dtype=np.int64), relevant, above, from_here, negatives)

    def _scores_of_positives(self) -> np.ndarray:
        parts = ((self.scores.rows(*part), entries) for *part, entries in self.truth.parts)
        return np.concatenate([block[entries.lists, entries.positions] for block, entries in parts])

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
