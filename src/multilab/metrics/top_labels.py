"""Metrics of the k labels with the highest scores of a row: precision, recall, hits, average precision, nDCG.

Ties at the border of the k are averaged over random choices, so the value does not depend on the order of the
labels (as in scikit-learn's ``ndcg_score``). A row without relevant label counts 0.

Scores may be sparse, such as the 100 best labels of each row (`multilab.methods.sparse_scores.top_scores`). A label
that is not stored has the score 0. Ranks are counted from the stored entries alone, so that time and memory depend on
these and not on the number of labels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import safe_ratio
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Entries, Scores, blocks, without_tags
from multilab.metrics.label_ranks import Ranking, rank_relevant
from multilab.metrics.label_sets import LabelSets
from multilab.metrics.registry import Value, mean_of, metric

__all__ = ["hits_at_k", "label_propensities", "map_at_k", "ndcg_at_k", "precision_at_k", "recall_at_k"]


@metric(
    title="Precision at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Prabhu & Varma, KDD 2014; with propensities: Jain, Prabhu & Varma, KDD 2016",
    filler="ones",
    standard=False,
)
def precision_at_k(
    ranking: Ranking, conventions: Conventions, *, k: int = 5, propensities: Any = None
) -> np.ndarray | Value:
    """Return the mean over rows of the share of relevant labels among the k with the highest scores.

    A row with fewer than k labels (or observed labels) is measured over all of them. With ``propensities`` a relevant
    label counts 1 / propensity, and the sum over rows is divided by the best possible one (PSP@k).

    Parameters
    ----------
    k : int, default 5
        Number of labels.
    propensities : array-like of shape (n_labels,), optional
        Probabilities in (0, 1] that a relevant label is observed as such, see :func:`label_propensities`.

    Examples
    --------
    >>> from multilab.metrics import precision_at_k
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(precision_at_k(Y, scores, k=1), 4)
    0.6667
    """
    return _mean_gain(ranking, k, propensities, discounted=False)


@metric(
    title="Recall at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Manning, Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 8.4",
    standard=False,
)
def recall_at_k(ranking: Ranking, conventions: Conventions, *, k: int = 5) -> np.ndarray:
    """Return the mean over rows of the share of the relevant labels that are among the k with the highest scores.

    Parameters
    ----------
    k : int, default 5
        Number of labels.

    Examples
    --------
    >>> from multilab.metrics import recall_at_k
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(recall_at_k(Y, scores, k=1), 4), round(recall_at_k(Y, scores, k=2), 4)
    (0.5, 0.5833)
    """
    k = _checked_k(k, ranking)

    def hits(ranks: _Ranks, entries: Entries) -> np.ndarray:
        share = (np.minimum(ranks.above + ranks.tied, k) - np.minimum(ranks.above, k)) / ranks.tied
        return np.bincount(ranks.lists, share, entries.starts.size - 1)

    relevant = np.diff(ranking.truth.indptr)
    return _per_row(ranking, ("recall", k), hits) / np.maximum(relevant, 1)


@metric(
    title="Hits at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Deshpande & Karypis, ACM TOIS 22 (2004), hit rate",
    filler="ones",
    standard=False,
)
def hits_at_k(ranking: Ranking, conventions: Conventions, *, k: int = 5) -> np.ndarray:
    """Return the share of rows with a relevant label among the k with the highest scores.

    Parameters
    ----------
    k : int, default 5
        Number of labels.

    Examples
    --------
    >>> from multilab.metrics import hits_at_k
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(hits_at_k(Y, scores, k=1), 4)
    0.6667
    """
    k = _checked_k(k, ranking)

    def hit(ranks: _Ranks, entries: Entries) -> np.ndarray:
        tied = _tied_entries(ranks)
        # the tie at the border: the chance that a random choice of its labels has none of its relevant ones
        free, others = np.clip(k - tied.above, 0, tied.tied), tied.tied - tied.relevant
        missed = (
            gammaln(others + 1) - gammaln(others - free + 1) - gammaln(tied.tied + 1) + gammaln(tied.tied - free + 1)
        )
        chance = np.where(free > others, 1.0, -np.expm1(np.where(free > others, 0.0, missed)))
        # at most one tie of a row is at the border, and every one above it is a sure hit
        best = np.zeros(entries.starts.size - 1)
        np.maximum.at(best, tied.lists, chance)
        return best

    return _per_row(ranking, ("hit", k), hit)


@metric(
    title="Mean average precision at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Manning, Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 8.4, cut at k",
    standard=False,
)
def map_at_k(ranking: Ranking, conventions: Conventions, *, k: int = 5) -> np.ndarray:
    """Return the mean over rows of the average precision of the k labels with the highest scores.

    The precisions at the ranks of the relevant labels among the k are added and divided by the largest possible number
    of these, which is k, or the number of relevant labels if that is smaller.

    Parameters
    ----------
    k : int, default 5
        Number of labels.

    Examples
    --------
    >>> from multilab.metrics import map_at_k
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(map_at_k(Y, scores, k=1), 4), round(map_at_k(Y, scores, k=2), 4)
    (0.6667, 0.5833)
    """
    k = _checked_k(k, ranking)

    def precisions(ranks: _Ranks, entries: Entries) -> np.ndarray:
        tied = _tied_entries(ranks)
        share = tied.relevant / tied.tied
        # the expected number of other relevant labels of the tie before a relevant one grows by this with each rank
        more = (tied.relevant - 1) / np.maximum(tied.tied - 1, 1)
        sums = np.zeros(tied.lists.size)
        places = np.minimum(tied.tied, k - tied.above)  # of the tie, that are among the k
        for place in range(int(places.max(initial=0))):
            precision = share * (tied.relevant_above + 1 + place * more) / (tied.above + place + 1)
            sums += np.where(place < places, precision, 0.0)
        return np.bincount(tied.lists, sums, entries.starts.size - 1)

    relevant = np.diff(ranking.truth.indptr)
    return safe_ratio(_per_row(ranking, ("map", k), precisions), np.minimum(relevant, k), 0.0)


@metric(
    title="nDCG at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Järvelin & Kekäläinen, ACM TOIS 20 (2002); with propensities: Jain, Prabhu & Varma, KDD 2016",
    standard=False,
)
def ndcg_at_k(
    ranking: Ranking, conventions: Conventions, *, k: int = 5, propensities: Any = None
) -> np.ndarray | Value:
    """Return the mean over rows of the discounted gain of the k highest scores / that of the best ranking.

    The label of rank r counts 1 / log2(r + 1). With ``propensities`` a relevant label counts 1 / propensity in
    addition, and the sum over rows is divided by the best possible one (PSnDCG@k).

    Parameters
    ----------
    k : int, default 5
        Number of labels.
    propensities : array-like of shape (n_labels,), optional
        Probabilities in (0, 1] that a relevant label is observed as such, see :func:`label_propensities`.

    Examples
    --------
    >>> from multilab.metrics import ndcg_at_k
    >>> Y = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> scores = [[0.6, 0.4, 0.4], [0.7, 0.8, 0.1], [0.2, 0.3, 0.1]]
    >>> round(ndcg_at_k(Y, scores, k=2), 4)
    0.6022
    """
    return _mean_gain(ranking, k, propensities, discounted=True)


def label_propensities(Y: Any, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    """Return the propensities of the labels: the probabilities that a relevant label is observed as such.

    p = 1 / (1 + c (n_j + b)^-a) with c = (log n - 1) (b + 1)^a, where n_j of the n rows have the label j.

    Parameters
    ----------
    Y : array-like or sparse, shape (n_rows, n_labels)
        True labels of the training set.
    a, b : float, default 0.55 and 1.5
        Constants; the defaults are those of the paper for most datasets. It uses 0.5 and 0.4 for Wikipedia, 0.6 and 2.6
        for Amazon.

    Returns
    -------
    ndarray of shape (n_labels,)
        Between 0 and 1; frequent labels have higher propensities.

    Raises
    ------
    MetricError
        If Y is not a 0/1 matrix, or has fewer than three rows.

    References
    ----------
    H. Jain, Y. Prabhu, M. Varma. Extreme multi-label loss functions for recommendation, tagging, ranking and other
    missing label applications. KDD 2016, equation 1 and section 4.

    Examples
    --------
    >>> from multilab.metrics import label_propensities
    >>> label_propensities([[1, 0], [1, 0], [1, 1], [1, 0]]).round(3).tolist()
    [0.8, 0.721]
    """
    truth = LabelSets(without_tags(Y)[0])
    n_rows, n_labels = truth.shape
    if n_rows < 3:
        raise MetricError(f"label_propensities needs at least 3 rows (log n > 1), got {n_rows}")
    counts = np.bincount(truth.indices, minlength=n_labels)
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    return 1 / (1 + c * (counts + b) ** -a)


def _mean_gain(ranking: Ranking, k: int, propensities: Any, discounted: bool) -> np.ndarray | Value:
    """Return gain / best gain of each row, or with propensities the quotient of their sums."""
    k = _checked_k(k, ranking)
    worth = None if propensities is None else 1 / _checked(propensities, ranking)  # of each label
    # The gain of the first r ranks.
    discounts = 1 / np.log2(np.arange(2, k + 2)) if discounted else np.ones(k)
    summed = np.concatenate(([0.0], np.cumsum(discounts)))

    def gains(ranks: _Ranks, entries: Entries) -> np.ndarray:
        share = (summed[np.minimum(ranks.above + ranks.tied, k)] - summed[np.minimum(ranks.above, k)]) / ranks.tied
        sizes = np.diff(entries.starts)
        n_lists = sizes.size
        if worth is not None:
            best = _best_gain(entries, worth[entries.positions], discounts)
            return np.stack([np.bincount(ranks.lists, share * worth[ranks.positions], n_lists), best], axis=1)
        best = summed[np.minimum(sizes if discounted else ranks.lengths, k)]
        return np.stack([np.bincount(ranks.lists, share, n_lists), best], axis=1)

    key = None if worth is None else worth.tobytes()
    gain, best = _per_row(ranking, ("top", k, discounted, key), gains).T
    if worth is not None:
        total, mean = mean_of(best, weights=ranking.weights).value, mean_of(gain, weights=ranking.weights)
        return mean._replace(value=mean.value / total if total > 0 else 0.0)
    return safe_ratio(gain, best, 0.0)


class _Ranks(NamedTuple):
    """Counts for each relevant entry of a block of rows, ordered by row and, within it, by ascending score.

    ``above`` and ``tied`` are those of `multilab.metrics.label_ranks.RelevantRanks`; ``lengths`` are the numbers of
    observed labels of the rows.
    """

    lists: np.ndarray
    positions: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    lengths: np.ndarray


class _Ties(NamedTuple):
    """The relevant entries of each row with equal scores, as one.

    ``relevant`` and ``relevant_above`` are the numbers of relevant entries with the score and above it.
    """

    lists: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    relevant: np.ndarray
    relevant_above: np.ndarray


def _tied_entries(ranks: _Ranks) -> _Ties:
    """Return the distinct scores of the relevant entries of each row."""
    lists, above = ranks.lists, ranks.above
    begins = np.ones(lists.size, dtype=bool)
    begins[1:] = (lists[1:] != lists[:-1]) | (above[1:] != above[:-1])
    first = np.flatnonzero(begins)
    end = np.append(first[1:], lists.size)
    row_end = np.searchsorted(lists, lists[first], side="right")  # scores ascend within a row
    return _Ties(lists[first], above[first], ranks.tied[first], end - first, row_end - end)


def _per_row(ranking: Ranking, key: Hashable, function: Callable[[_Ranks, Entries], np.ndarray]) -> np.ndarray:
    """Return a number (or several) of each row, computed once per key."""

    def of_dense(scores: np.ndarray, entries: Entries) -> np.ndarray:
        ranks = rank_relevant(scores, entries, by_index=False)
        lengths = np.isfinite(scores).sum(axis=1)
        return function(_Ranks(ranks.lists, ranks.positions, ranks.above, ranks.tied, lengths), entries)

    if key not in ranking._per_row and _is_plain_sparse(ranking.scores):
        ranking._per_row[key] = np.concatenate([function(*block) for block in _sparse_blocks(ranking)])
    return ranking.per_row(key, of_dense)


def _is_plain_sparse(scores: Scores) -> bool:
    """Return whether scores are sparse, and neither a selection of rows or labels nor partly unobserved."""
    return sp.issparse(scores.matrix) and scores._lines is scores._labels is scores._observed is None


def _sparse_blocks(ranking: Ranking) -> Iterator[tuple[_Ranks, Entries]]:
    """Yield the ranks of the relevant entries of blocks of rows from the stored scores; all others are 0."""
    matrix: Any = ranking.scores.matrix
    n_rows, n_labels = ranking.truth.shape
    for start, stop in blocks(n_rows, 1 + matrix.nnz // n_rows):
        stored, entries = matrix[start:stop], ranking.truth.entries(start, stop)
        sizes = np.diff(stored.indptr)
        rows = np.repeat(np.arange(stop - start), sizes)
        # the scores of the relevant labels, searched among the stored ones, which come by row and label
        places, wanted = rows * n_labels + stored.indices, entries.lists * n_labels + entries.positions
        found = np.searchsorted(places, wanted)
        is_stored = np.append(places, -1)[found] == wanted
        scores = np.where(is_stored, np.append(stored.data, 0)[found], 0)
        order = np.lexsort((scores, entries.lists))
        scores, lists = scores[order], entries.lists
        # one sorted array of (row, score) for all rows, scores being numbered in ascending order
        distinct = np.unique(np.append(stored.data, 0))
        ordered = np.sort(rows * distinct.size + np.searchsorted(distinct, stored.data))
        sought = lists * distinct.size + np.searchsorted(distinct, scores)
        not_above, below = (np.searchsorted(ordered, sought, side) for side in ("right", "left"))
        missing = (n_labels - sizes)[lists]
        above = stored.indptr[lists + 1] - not_above + np.where(scores < 0, missing, 0)
        tied = not_above - below + np.where(scores == 0, missing, 0)
        yield _Ranks(lists, entries.positions[order], above, tied, np.full(stop - start, n_labels)), entries


def _checked_k(k: int, ranking: Ranking) -> int:
    """Return k, at most the number of labels."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise MetricError(f"`k` must be an integer >= 1, got {k!r}")
    return min(int(k), ranking.truth.shape[1])


def _best_gain(entries: Entries, worth: np.ndarray, discounts: np.ndarray) -> np.ndarray:
    """Return per list the gain of its entries of the greatest worth in descending order."""
    order = np.lexsort((-worth, entries.lists))
    ranks = np.arange(order.size) - entries.starts[entries.lists]
    top = ranks < discounts.size
    gain = worth[order][top] * discounts[ranks[top]]
    return np.bincount(entries.lists[top], gain, entries.starts.size - 1)


def _checked(propensities: Any, ranking: Ranking) -> np.ndarray:
    """Return the propensities as an array with one value in (0, 1] per label."""
    values = np.asarray(propensities, dtype=float)
    n_labels = ranking.truth.shape[1]
    if values.shape != (n_labels,):
        raise MetricError(f"`propensities` must have one value per (observed) label, {n_labels}; got {values.shape}")
    if not ((values > 0) & (values <= 1)).all():
        raise MetricError("`propensities` must be in (0, 1]; see multilab.metrics.label_propensities")
    return values
