"""Signed-rank tests of pairs of methods: Wilcoxon's with Holm's correction, and the Bayesian one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from multilab.core import json_digest
from multilab.statistics.errors import StatisticsError
from multilab.statistics.ranks import check_table

_PRIOR = 0.5  # strength of the pseudo-observation at 0


@dataclass(frozen=True)
class SignedRankPair:
    """Result of Wilcoxon's signed-rank test for one pair of methods.

    Attributes
    ----------
    a, b : str
        The methods.
    n : int
        Datasets on which both finished.
    wins, ties, losses : int
        Datasets on which ``a`` is better than, equal to, worse than ``b``.
    median : float
        Median advantage of ``a``, in units of the metric; positive when ``a`` is better, whatever the
        direction.
    p, p_holm : float
        Two-sided p value, and the same after Holm's correction over the pairs of one table.
    differs : bool
        Whether ``p_holm <= alpha``.
    """

    a: str
    b: str
    n: int
    wins: int
    ties: int
    losses: int
    median: float
    p: float
    p_holm: float
    differs: bool


@dataclass(frozen=True)
class BayesPair:
    """Posterior probabilities of one Bayesian comparison: ``a`` better, practically equal, ``b`` better.

    ``n`` is the number of datasets on which both methods finished; the three probabilities sum to 1.
    """

    a: str
    b: str
    n: int
    p_a: float
    p_rope: float
    p_b: float


def holm(p: Sequence[float]) -> np.ndarray:
    """Return Holm's step-down adjusted p values: ``max over smaller p of (m - i + 1) p_(i)``, at most 1.

    Examples
    --------
    >>> from multilab.statistics import holm
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * values[order]))
    return adjusted


def holm_levels(p: Sequence[float], alpha: float) -> np.ndarray:
    """Return the level at which Holm's procedure judges each p value.

    A p value is below its level exactly if its adjusted one, see :func:`holm`, is below ``alpha``. So a confidence
    interval at one minus this level excludes 0 exactly if the procedure rejects: the two never contradict each other.

    Examples
    --------
    >>> from multilab.statistics import holm_levels
    >>> holm_levels([0.01, 0.04, 0.03], alpha=0.05).round(4).tolist()
    [0.0167, 0.025, 0.025]
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = alpha / (len(values) - np.arange(len(values)))
    kept = np.flatnonzero(values[order] > steps)
    if len(kept):  # the procedure stops at the first that is not rejected
        steps[kept[0] :] = steps[kept[0]]
    levels = np.empty(len(values))
    levels[order] = steps
    return levels


def signed_rank_p(differences: np.ndarray) -> float:
    """Return the exact two-sided p value of Wilcoxon's signed-rank test.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        Paired differences, finite. Zeros are ranked and count half on either side (Demsar 2006);
        tied sizes share their mean rank.

    Returns
    -------
    float
        Share of the 2^n assignments of signs with a rank sum at least as far from its mean as the observed one; 1 if
        all differences are 0.

    Notes
    -----
    The distribution is counted exactly by adding one rank after the other, in O(n^3), with or without ties.
    ``scipy.stats.wilcoxon`` gives the same numbers, but with ties it enumerates all signs (0.8 s per pair at
    n = 13) and uses the normal approximation above n = 13.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import signed_rank_p
    >>> signed_rank_p(np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    0.0625
    """
    values = np.asarray(differences, dtype=float)
    sizes = np.abs(values)
    below, upto = (sizes < sizes[:, None]).sum(axis=1), (sizes <= sizes[:, None]).sum(axis=1)
    doubled = below + upto + 1  # twice the mean ranks: integers even when ranks are tied
    moving = doubled[values != 0]
    if len(moving) == 0:
        return 1.0
    total = int(moving.sum())
    shares = np.zeros(total + 1)
    shares[0] = 1.0
    for rank in moving:
        shares = (shares + np.concatenate([np.zeros(rank), shares[:-rank]])) / 2
    observed = int(doubled[values > 0].sum())
    lower = min(observed, total - observed)
    return float(min(1.0, 2 * shares[: lower + 1].sum()))


def wilcoxon_holm(
    table: pd.DataFrame, direction: str, alpha: float = 0.05, control: str | None = None
) -> tuple[SignedRankPair, ...]:
    """Compare all pairs of methods, or all methods with a control, by signed ranks with Holm's correction.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Unrounded means; a dataset that one of the two methods did not finish is left out of that pair.
    direction : {"min", "max"}
        Whether small or large values are good.
    alpha : float
        Level of ``differs``.
    control : str, optional
        Compare only with this method, which is then ``a`` of every pair; k - 1 comparisons are corrected for.

    Returns
    -------
    tuple of SignedRankPair
        In the table's column order. Pairs without a common dataset are left out.

    Notes
    -----
    F. Wilcoxon (1945); S. Holm (1979); as recommended by J. Demsar (2006), section 3.1.3.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.4], "c": [0.3, 0.3, 0.5]}, ["x", "y", "z"])
    >>> from multilab.statistics import wilcoxon_holm
    >>> [(pair.b, pair.wins, pair.losses, pair.p_holm) for pair in wilcoxon_holm(table, "min", control="a")]
    [('b', 3, 0, 0.5), ('c', 3, 0, 0.5)]
    """
    pairs = [(*pair, signed_rank_p(pair[-1])) for pair in _gains(check_table(table, direction), direction, control)]
    adjusted = holm([p for *_, p in pairs])
    return tuple(
        SignedRankPair(
            a=a,
            b=b,
            n=len(gain),
            wins=int((gain > 0).sum()),
            ties=int((gain == 0).sum()),
            losses=int((gain < 0).sum()),
            median=float(np.median(gain)),
            p=p,
            p_holm=float(after),
            differs=bool(after <= alpha),
        )
        for (a, b, gain, p), after in zip(pairs, adjusted, strict=True)
    )


def bayesian_signed_rank(
    table: pd.DataFrame, direction: str, rope: float, control: str | None = None, seed: int = 0, samples: int = 10_000
) -> tuple[BayesPair, ...]:
    """Return the posterior probabilities of better, practically equal and worse, for pairs of methods.

    Parameters
    ----------
    table, direction, control
        As in :func:`wilcoxon_holm`.
    rope : float
        Half the width of the region of practical equivalence, in units of the metric; differences of at most
        ``rope`` do not matter. 0: no such region.
    seed : int
        Each pair has its own random stream, derived from the seed and the two names: the result depends neither on
        the order of the methods nor on the other methods.
    samples : int
        Posterior samples per pair; the standard error of a probability is at most ``0.5 / sqrt(samples)``.

    Raises
    ------
    StatisticsError
        If ``rope`` is negative or not finite.

    Notes
    -----
    A. Benavoli, F. Mangili, G. Corani, M. Zaffalon, F. Ruggeri (2014), A Bayesian Wilcoxon signed-rank test based on
    the Dirichlet process. The draws are those of the library baycomp (prior strength .5 at 0), which loops over them
    in Python; a test compares the two.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.4], "c": [0.3, 0.3, 0.5]}, ["x", "y", "z"])
    >>> from multilab.statistics import bayesian_signed_rank
    >>> pair, _ = bayesian_signed_rank(table, "min", rope=0.01, control="a")
    >>> (pair.a, pair.b, pair.n), pair.p_a > 0.8
    (('a', 'b', 3), True)
    """
    if not (math.isfinite(rope) and rope >= 0):
        raise StatisticsError(f"rope must be a finite number >= 0, got {rope!r}")
    return tuple(
        BayesPair(a, b, len(gain), *_posterior(gain, (a, b), rope, seed, samples))
        for a, b, gain in _gains(check_table(table, direction), direction, control)
    )


def _posterior(
    gain: np.ndarray, names: tuple[str, str], rope: float, seed: int, samples: int
) -> tuple[float, float, float]:
    """Return how often the posterior's largest share is ``a`` better, equivalence, ``b`` better."""
    if rope == 0 and not gain.any():
        return 0.5, 0.0, 0.5  # baycomp returns probability 1 for the first one
    first, second = sorted(names)  # so that (a, b) and (b, a) are the same draw, mirrored
    mirrored = names != (first, second)
    stream = int(json_digest([seed, first, second])[:8], 16)
    draws = posterior_draws(-gain if mirrored else gain, rope, samples, stream)
    left, middle, right = (np.bincount(np.argmax(draws, axis=1), minlength=3) / samples).tolist()
    return (right, middle, left) if mirrored else (left, middle, right)


def posterior_draws(gain: np.ndarray, rope: float, samples: int, seed: int) -> np.ndarray:
    """Return draws of the shares left of, inside and right of the rope: baycomp's, without its loop over the draws.

    Parameters
    ----------
    gain : ndarray of shape (n,)
        Differences in favour of the first method.
    rope : float
    samples, seed : int

    Returns
    -------
    ndarray of shape (samples, 3)
    """
    values = np.concatenate([[0.0], -gain])  # the first is the pseudo-observation, of weight 0.5
    sums = values[:, None] + values
    weights = np.random.RandomState(seed).dirichlet([_PRIOR, *[1.0] * len(gain)], samples)
    left = _weighted(weights, np.heaviside(-sums - 2 * rope, 0.5))
    right = _weighted(weights, np.heaviside(sums - 2 * rope, 0.5))
    return np.column_stack([left, -left - right + 1, right] if rope > 0 else [1 - right, np.zeros(samples), right])


def _weighted(weights: np.ndarray, indicator: np.ndarray) -> np.ndarray:
    """Return ``w' I w`` for every row w of the weights."""
    return ((weights @ indicator) * weights).sum(axis=1)


def _pairs(methods: list[str], control: str | None) -> Iterable[tuple[str, str]]:
    if control is None:
        return [(a, b) for i, a in enumerate(methods) for b in methods[i + 1 :]]
    if control not in methods:
        raise StatisticsError(f"control {control!r} is not a method of the table; there are {', '.join(methods)}")
    return [(control, b) for b in methods if b != control]


def _gains(plain: pd.DataFrame, direction: str, control: str | None) -> list[tuple[str, str, np.ndarray]]:
    """Return by how much ``a`` is better than ``b`` on each dataset both finished; no pair without such a dataset."""
    values = dict(zip(plain.columns, plain.to_numpy().T * (1 if direction == "max" else -1), strict=True))
    gains = [(a, b, values[a] - values[b]) for a, b in _pairs(list(plain.columns), control)]
    return [(a, b, gain[~np.isnan(gain)]) for a, b, gain in gains if not np.isnan(gain).all()]
