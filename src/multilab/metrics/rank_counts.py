# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Ranks of the relevant entries of a list among all its entries, as exact integer counts.

Every ranking metric is computed from them: ranking loss, coverage and average precision over the labels of a row,
AUC and per-label average precision over the rows of a label. Lists are sorted, never compared pair by pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multilab.metrics.inputs import Entries

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
    values = scores[entries.lists, entries.positions]
    # Stable, and the entries come by ascending position: within a tie they stay so.
    order = np.lexsort((values, entries.lists))
    values, lists, positions = values[order], entries.lists, entries.positions[order]
    count = values.size
    begins = np.ones(count, dtype=bool)  # of a tie among the relevant entries of one list
    begins[1:] = (values[1:] != values[:-1]) | (lists[1:] != lists[:-1])
    first = np.flatnonzero(begins)
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
