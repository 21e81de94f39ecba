"""Tests of two samples given as counts: Kolmogorov-Smirnov with ties, Fisher's exact test, chi-square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2, hypergeom, kstwo

EXACT_CELLS = 2_000_000
"""Largest (n + m) min(n, m) for which the Kolmogorov-Smirnov test counts paths: about 10 ms."""

_CHUNK = 1 << 20  # numbers in the table of paths that is held at a time
_RELATIVE = 1e-9  # probabilities that differ by rounding are equal
_LEAST_EXPECTED = 5.0  # rows per category, the usual condition of a chi-square test


def ks_distances(samples: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the largest distance of two empirical distribution functions, for each pair of samples.

    Parameters
    ----------
    samples : sequence of (reference_counts, new_counts)
        For each pair, two integer arrays of shape (v,): how often each value occurs, values in ascending order.
        Neither sample is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import ks_distances
    >>> ks_distances([(np.array([2, 1, 1]), np.array([0, 1, 1]))]).tolist()
    [0.5]
    """
    return np.array([np.abs(np.cumsum(a) / a.sum() - np.cumsum(b) / b.sum()).max() for a, b in samples])


def ks_p_values(samples: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the p values of the two-sample Kolmogorov-Smirnov test, exact with ties where that is affordable.

    Parameters
    ----------
    samples : sequence of (reference_counts, new_counts)
        As in :func:`ks_distances`.

    Returns
    -------
    p : ndarray of shape (len(samples),)
    exact : ndarray of shape (len(samples),), bool
        True: the share of all assignments of the pooled values to the two samples whose distance is at least the
        observed one; tied values are compared only after all of them, so that the test keeps its power on discrete
        values. False, where ``(n + m) min(n, m)`` exceeds 2,000,000: Kolmogorov's distribution for n m / (n + m)
        rows, which is conservative with ties.

    Notes
    -----
    The assignments are counted row by row of the pooled sample with hypergeometric probabilities, for many pairs of
    samples at once; the probability that leaves the band is summed where it leaves, so that small p values are
    exact too.

    References
    ----------
    G. Schroeer, D. Trenkler. Exact and randomization distributions of Kolmogorov-Smirnov tests two or three samples.
    Computational Statistics & Data Analysis 20, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import ks_p_values
    >>> p, exact = ks_p_values([(np.array([1, 1, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 1, 1]))])
    >>> p.round(12).tolist(), exact.tolist()
    ([0.1], [True])
    """
    sizes = np.array([(a.sum(), b.sum()) for a, b in samples], dtype=np.int64).reshape(-1, 2)
    total, smaller = sizes.sum(axis=1), sizes.min(axis=1, initial=np.iinfo(np.int64).max)
    exact = total * smaller <= EXACT_CELLS
    p = np.ones(len(samples))
    for k in np.flatnonzero(~exact).tolist():
        n, m = sizes[k].tolist()
        p[k] = kstwo.sf(ks_distances([samples[k]])[0], max(1, round(n * m / (n + m))))
    # samples of similar size are counted together
    order = sorted(np.flatnonzero(exact).tolist(), key=lambda k: (smaller[k], total[k]))
    while order:
        width = int(smaller[order[-1]]) + 1
        chunk = order[-max(1, _CHUNK // width) :]
        del order[-len(chunk) :]
        p[chunk] = _exact_ks([samples[k] for k in chunk])
    return np.minimum(p, 1.0), exact


def _exact_ks(samples: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return exact p values; state x of a pair is how many of the rows passed belong to its smaller sample."""
    pairs = [(a, b) if a.sum() <= b.sum() else (b, a) for a, b in samples]
    m = np.array([a.sum() for a, _ in pairs])[:, None]
    n = np.array([b.sum() for _, b in pairs])[:, None]
    limit = np.array([np.abs(np.cumsum(a) * b.sum() - np.cumsum(b) * a.sum()).max() for a, b in pairs])[:, None]
    total, steps = m + n, int((m + n).max())
    ends = np.zeros((steps, len(pairs)), dtype=bool)  # after which rows all values tied with the last one are passed
    for k, (a, b) in enumerate(pairs):
        pooled = a + b
        ends[np.cumsum(pooled[pooled > 0]) - 1, k] = True
    x = np.arange(int(m.max()) + 1)[None, :]
    chances = np.zeros((len(pairs), x.size))
    chances[:, 0] = 1.0
    left_band = np.zeros(len(pairs))
    for row in range(steps):
        moved = chances * np.clip((m - x) / np.maximum(total - row, 1), 0, 1)
        chances -= moved
        chances[:, 1:] += moved[:, :-1]
        at = np.flatnonzero(ends[row])
        if at.size:
            beyond = np.abs(x * n[at] - (row + 1 - x) * m[at]) >= limit[at]
            here = chances[at]
            left_band[at] += (here * beyond).sum(axis=1)
            chances[at] = np.where(beyond, 0.0, here)
    return np.where(limit[:, 0] == 0, 1.0, left_band)


def fisher_p(reference_hits: int, n_reference: int, new_hits: int, n_new: int) -> float:
    """Return the two-sided p value of Fisher's exact test of two shares.

    Parameters
    ----------
    reference_hits, n_reference : int
        Rows of the reference sample with the property, and all its rows.
    new_hits, n_new : int
        The same of the new sample.

    Returns
    -------
    float
        Sum of the probabilities, given the margins, of all tables that are at most as probable as the observed one.

    Examples
    --------
    >>> from multilab.statistics import fisher_p
    >>> round(fisher_p(1, 20, 8, 20), 4)
    0.0197
    """
    hits, total = reference_hits + new_hits, n_reference + n_new
    low, high = max(0, hits - n_reference), min(hits, n_new)
    if low == high:
        return 1.0
    logs = hypergeom.logpmf(np.arange(low, high + 1), total, hits, n_new)
    return float(min(1.0, np.exp(logs[logs <= logs[new_hits - low] + _RELATIVE]).sum()))


def category_p(reference_counts: np.ndarray, new_counts: np.ndarray) -> tuple[float, str]:
    """Return the p value of the hypothesis that two samples have the same shares of categories.

    Parameters
    ----------
    reference_counts, new_counts : ndarray of shape (v,), int
        How often each category occurs.

    Returns
    -------
    p : float
        NaN if no test is possible.
    test : {"chi-square", "Fisher", "none"}
        Pearson's test, or the exact one if two categories are left. Rare categories are counted as one before, so that
        at least five are expected of each in each sample: a rule about both samples together, which does not bias
        the test.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import category_p
    >>> p, test = category_p(np.array([30, 20, 10, 1]), np.array([10, 20, 30, 0]))
    >>> round(p, 5), test
    (8e-05, 'chi-square')
    """
    table = np.array([reference_counts, new_counts], dtype=np.int64)
    table = table[:, np.argsort(-table.sum(axis=0), kind="stable")]
    table = table[:, table.sum(axis=0) > 0]
    sizes, total = table.sum(axis=1), table.sum()
    if table.shape[1] < 2 or sizes.min() == 0:
        return float("nan"), "none"
    least = _LEAST_EXPECTED * total / sizes.min()  # pooled rows with which five are expected in the smaller sample
    pooled = table.sum(axis=0)
    if table.shape[1] > 2:
        kept = int((pooled >= least).sum())
        if kept < len(pooled) and pooled[kept:].sum() < least:
            kept -= 1
        kept = max(kept, 0)
        if kept < len(pooled):
            table = np.column_stack([table[:, :kept], table[:, kept:].sum(axis=1)])
    if table.shape[1] < 2:
        return float("nan"), "none"
    if table.shape[1] == 2:
        return fisher_p(int(table[0, 0]), int(sizes[0]), int(table[1, 0]), int(sizes[1])), "Fisher"
    expected = sizes[:, None] * table.sum(axis=0) / total
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1)), "chi-square"


def share_distance(a: float, b: float) -> float:
    """Return ``|arcsin(sqrt(a)) - arcsin(sqrt(b))|``, half of Cohen's h: the distance of two shares.

    It is about ``|a - b|`` for shares near one half and larger near 0 and 1: 0.1 lies between 50 % and 60 %, and
    between 1 % and 4 %.

    References
    ----------
    J. Cohen. Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 6.

    Examples
    --------
    >>> from multilab.statistics import share_distance
    >>> round(share_distance(0.5, 0.6), 3), round(share_distance(0.01, 0.04), 3)
    (0.101, 0.101)
    """
    return float(abs(np.arcsin(np.sqrt(a)) - np.arcsin(np.sqrt(b))))
