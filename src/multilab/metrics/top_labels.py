"""Metrics of the k labels with the highest scores of a row: precision, recall and normalised discounted gain.

Of labels tied at the border of the k a random choice is expected, so that the value does not depend on the order of the
labels (as in scikit-learn's ``ndcg_score``). A row without relevant label counts 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multilab.metrics.conventions import Conventions
from multilab.metrics.decision_counts import Value, mean_of
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Entries
from multilab.metrics.label_ranks import Ranking, rank_relevant
from multilab.metrics.label_sets import LabelSets
from multilab.metrics.registry import metric

__all__ = ["label_propensities", "ndcg_at_k", "precision_at_k", "recall_at_k"]


@metric(
    title="Precision at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Prabhu & Varma, KDD 2014; with propensities: Jain, Prabhu & Varma, KDD 2016",
    filler="ones",
    in_score_all=False,
)
def precision_at_k(
    ranking: Ranking, conventions: Conventions, *, k: int = 5, propensities: Any = None
) -> Value | float:
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
    in_score_all=False,
)
def recall_at_k(ranking: Ranking, conventions: Conventions, *, k: int = 5) -> Value | float:
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

    def hits(scores: np.ndarray, entries: Entries) -> np.ndarray:
        ranks = rank_relevant(scores, entries, by_index=False)
        share = (np.minimum(ranks.above + ranks.tied, k) - np.minimum(ranks.above, k)) / ranks.tied
        return np.bincount(ranks.lists, share, entries.starts.size - 1)

    relevant = np.diff(ranking.truth.indptr)
    return mean_of(ranking.per_row(("recall", k), hits) / np.maximum(relevant, 1))


@metric(
    title="nDCG at k",
    direction="max",
    needs="scores",
    group="ranking",
    mean_over="rows",
    source="Järvelin & Kekäläinen, ACM TOIS 20 (2002); with propensities: Jain, Prabhu & Varma, KDD 2016",
    in_score_all=False,
)
def ndcg_at_k(ranking: Ranking, conventions: Conventions, *, k: int = 5, propensities: Any = None) -> Value | float:
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
        Constants of the paper for most data sets; Wikipedia: 0.5 and 0.4, Amazon: 0.6 and 2.6.

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
    truth = LabelSets(Y)
    n_rows, n_labels = truth.shape
    if n_rows < 3:
        raise MetricError(f"label_propensities needs at least 3 rows (log n > 1), got {n_rows}")
    counts = np.bincount(truth.indices, minlength=n_labels)
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    return 1 / (1 + c * (counts + b) ** -a)


def _mean_gain(ranking: Ranking, k: int, propensities: Any, discounted: bool) -> Value:
    """Return the mean over rows of gain / best gain, or with propensities the quotient of their sums."""
    k = _checked_k(k, ranking)
    weights = None if propensities is None else 1 / _checked(propensities, ranking)
    # The gain of the first r ranks.
    discounts = 1 / np.log2(np.arange(2, k + 2)) if discounted else np.ones(k)
    summed = np.concatenate(([0.0], np.cumsum(discounts)))

    def gains(scores: np.ndarray, entries: Entries) -> np.ndarray:
        ranks = rank_relevant(scores, entries, by_index=False)
        share = (summed[np.minimum(ranks.above + ranks.tied, k)] - summed[np.minimum(ranks.above, k)]) / ranks.tied
        sizes = np.diff(entries.starts)
        n_lists = sizes.size
        if weights is not None:
            value = weights[ranks.positions]
            best = _best_weighted(entries, weights[entries.positions], discounts)
            return np.stack([np.bincount(ranks.lists, share * value, n_lists), best], axis=1)
        lengths = np.isfinite(scores).sum(axis=1)
        best = summed[np.minimum(sizes if discounted else lengths, k)]
        return np.stack([np.bincount(ranks.lists, share, n_lists), best], axis=1)

    key = None if weights is None else weights.tobytes()
    gain, best = ranking.per_row(("top", k, discounted, key), gains).T
    if weights is not None:
        total = mean_of(best).value
        return Value(mean_of(gain).value / total if total > 0 else 0.0)
    return mean_of(np.where(best > 0, gain / np.where(best > 0, best, 1), 0.0))


def _checked_k(k: int, ranking: Ranking) -> int:
    """Return k, at most the number of labels."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise MetricError(f"`k` must be an integer >= 1, got {k!r}")
    return min(int(k), ranking.truth.shape[1])


def _best_weighted(entries: Entries, weights: np.ndarray, discounts: np.ndarray) -> np.ndarray:
    """Return per list the gain of its heaviest entries in descending order."""
    order = np.lexsort((-weights, entries.lists))
    ranks = np.arange(order.size) - entries.starts[entries.lists]
    top = ranks < discounts.size
    gain = weights[order][top] * discounts[ranks[top]]
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
