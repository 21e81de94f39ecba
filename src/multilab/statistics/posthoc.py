"""Post-hoc tests of average ranks: the critical differences of Nemenyi and Bonferroni-Dunn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class RankPair:
    """Comparison of the average ranks of two methods.

    Attributes
    ----------
    a, b : str
        The methods; ``difference`` is rank(b) - rank(a), so positive when ``a`` is the better one.
    p : float
        Nemenyi's p value, already adjusted for all pairs.
    differs : bool
        Whether the difference reaches Nemenyi's critical difference.
    """

    a: str
    b: str
    difference: float
    p: float
    differs: bool


@cache
def nemenyi_q(k: int, alpha: float = 0.05) -> float:
    """Return q_alpha of Nemenyi's test: the studentised range quantile of k means over sqrt 2 (slow, so kept)."""
    return float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / math.sqrt(2)


def bonferroni_dunn_q(k: int, alpha: float = 0.05) -> float:
    """Return q_alpha of Bonferroni-Dunn's test: the normal quantile at 1 - alpha / (2 (k - 1))."""
    return float(stats.norm.ppf(1 - alpha / (2 * (k - 1))))


def nemenyi_cd(k: int, n: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference of average ranks, ``q sqrt(k (k + 1) / (6 n))``, for all pairs.

    Parameters
    ----------
    k, n : int
        Numbers of methods (at least 2) and datasets (at least 1).
    alpha : float
        Family-wise level.

    Notes
    -----
    J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, section 3.2.2.
    The MLWSE paper prints CD(9, 14) = 3.211 as the critical value of F_F; it is this quantity.

    Examples
    --------
    >>> from multilab.statistics import nemenyi_cd
    >>> round(nemenyi_cd(k=9, n=14), 3)
    3.211
    """
    return nemenyi_q(k, alpha) * _rank_error(k, n)


def bonferroni_dunn_cd(k: int, n: int, alpha: float = 0.05) -> float:
    """Return the critical difference of k - 1 comparisons with a control, ``q sqrt(k (k + 1) / (6 n))``.

    Parameters and source as :func:`nemenyi_cd`. The LWMF paper prints 2.24, which is q for k = 5 at alpha =
    .10; its critical difference (n = 6) is 2.046.

    Examples
    --------
    >>> from multilab.statistics import bonferroni_dunn_cd
    >>> round(bonferroni_dunn_cd(k=5, n=6, alpha=0.10), 3)
    2.046
    """
    return bonferroni_dunn_q(k, alpha) * _rank_error(k, n)


def nemenyi_pairs(ranks: Mapping[str, float], n: int, cd: float) -> tuple[RankPair, ...]:
    """Return every pair of methods, better one first, in order of rank.

    Parameters
    ----------
    ranks : mapping of str to float
        Average rank per method, at least two.
    n : int
        Number of datasets.
    cd : float
        Nemenyi's critical difference at level alpha.
    """
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    gaps = np.array([ranks[b] - ranks[a] for a, b in pairs])
    ps = stats.studentized_range.sf(gaps / _rank_error(len(order), n) * math.sqrt(2), len(order), np.inf)
    return tuple(
        RankPair(a, b, float(gap), float(np.clip(p, 0, 1)), bool(gap >= cd))
        for (a, b), gap, p in zip(pairs, gaps, ps, strict=True)
    )


def cliques(ranks: Mapping[str, float], cd: float) -> tuple[tuple[str, ...], ...]:
    """Return the maximal groups of at least two methods of which no two differ by ``cd`` or more.

    They are the bars of a critical-difference diagram; methods and groups come in order of rank.

    Examples
    --------
    >>> from multilab.statistics import cliques
    >>> cliques({"a": 1.2, "b": 1.9, "c": 2.9}, cd=1.1)
    (('a', 'b'), ('b', 'c'))
    """
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    groups: list[tuple[str, ...]] = []
    reach = 0  # end of the last group: a group inside another one is not maximal
    for start, first in enumerate(order):
        end = start + 1
        while end < len(order) and ranks[order[end]] - ranks[first] < cd:
            end += 1
        if end > reach and end - start > 1:
            groups.append(tuple(order[start:end]))
        reach = max(reach, end)
    return tuple(groups)


def _rank_error(k: int, n: int) -> float:
    return math.sqrt(k * (k + 1) / (6 * n))
