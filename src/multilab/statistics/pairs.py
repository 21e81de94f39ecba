"""Comparison of two methods, over datasets or over the splits of one: difference, interval and p value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from multilab.statistics.errors import StatisticsError
from multilab.statistics.resampled_t import corrected_resampled_interval, corrected_resampled_p
from multilab.statistics.signed_rank import signed_rank_p

_DECIMALS = 12  # of differences: processors differ in the last bits, which must not order tied ones


@dataclass(frozen=True)
class PairedComparison:
    """Comparison of method ``a`` with method ``b`` by one metric.

    Attributes
    ----------
    a, b : str
        The methods.
    n : int
        Number of paired values: datasets, or splits of one dataset.
    wins, ties, losses : int
        How often ``a`` is better than, equal to, worse than ``b``.
    difference : float
        Advantage of ``a`` in units of the metric, positive where ``a`` is better, whatever the direction of the
        metric. Over datasets it is the median of the pairwise means of the differences (Hodges and Lehmann), over
        splits their mean.
    low, high : float
        95 % interval of the difference, NaN where there is none.
    p : float
        Two-sided p value.
    least_p : float
        Smallest p value that any outcome could have had. Above the level, the design could not have shown a
        difference.
    """

    a: str
    b: str
    n: int
    wins: int
    ties: int
    losses: int
    difference: float
    low: float
    high: float
    p: float
    least_p: float

    def __str__(self) -> str:
        interval = "" if math.isnan(self.low) else f", 95 % interval {self.low:+.4f} to {self.high:+.4f}"
        p = "" if math.isnan(self.p) else f", p = {self.p:.2g}"
        return f"{self.wins}-{self.losses} of {self.n}, difference {self.difference:+.4f}{interval}{p}"


def compare_pair(table: pd.DataFrame, a: str, b: str, direction: str, level: float = 0.95) -> PairedComparison:
    """Compare two methods over datasets with Wilcoxon's signed-rank test.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Means over splits. Datasets that lack one of the two values are left out.
    a, b : str
        Columns of the table.
    direction : {"min", "max"}
        Whether small or large values are good.
    level : float, default=0.95
        Confidence of the interval.

    Raises
    ------
    StatisticsError
        If a column is missing, the direction is neither, or no dataset has both values.

    Notes
    -----
    The interval holds the shifts that the test does not reject, so that the two cannot contradict each other (with
    ties an end can be 0 itself). Its ends are pairwise means of differences. With n datasets no p value is below
    2^(1 - n): fewer than six cannot differ at a level of .05.

    References
    ----------
    J. L. Hodges, E. L. Lehmann (1963), Estimates of location based on rank tests. Annals of Mathematical Statistics 34.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.statistics import compare_pair
    >>> loss = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.1, 0.2, 0.1], "b": [0.2, 0.4, 0.4, 0.4, 0.5, 0.5]})
    >>> print(compare_pair(loss, "a", "b", "min"))
    6-0 of 6, difference +0.2500, 95 % interval +0.1000 to +0.4000, p = 0.031
    """
    missing = [name for name in (a, b) if name not in table]
    if missing:
        raise StatisticsError(f"the table has no column {missing[0]!r}; its columns are {', '.join(table.columns)}")
    gain = _gains(table[a], table[b], direction, f"no dataset has values of both {a} and {b}")
    first, second = np.triu_indices(len(gain))
    means = np.sort((gain[first] + gain[second]) / 2)
    low, high = _kept_shifts(gain, np.unique(means), 1 - level)
    p, least = signed_rank_p(gain), 2.0 ** (1 - len(gain))
    return PairedComparison(a, b, *_counts(gain), float(np.median(means)), low, high, p, min(1.0, least))


def compare_on_splits(
    a: pd.Series, b: pd.Series, direction: str, test_to_train: float, level: float = 0.95
) -> PairedComparison:
    """Compare two methods on the splits of one dataset with the corrected resampled t test.

    Parameters
    ----------
    a, b : Series
        Values by split. Splits that lack one of the two are left out. The names of the Series are those of the methods.
    direction : {"min", "max"}
        Whether small or large values are good.
    test_to_train : float
        Number of test rows divided by the number of training rows, 1 / (k - 1) for k folds.
    level : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    PairedComparison
        With a single split, p and interval are NaN and ``least_p`` is 1.

    Raises
    ------
    StatisticsError
        If no split has both values, or the direction is neither.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.statistics import compare_on_splits
    >>> a, b = pd.Series([0.82, 0.83, 0.81], name="a"), pd.Series([0.80, 0.80, 0.80], name="b")
    >>> print(compare_on_splits(a, b, "max", test_to_train=3 / 7))
    3-0 of 3, difference +0.0200, 95 % interval -0.0176 to +0.0576, p = 0.15
    """
    gain = _gains(a, b, direction, f"no split has values of both {a.name} and {b.name}")
    names = str(a.name), str(b.name)
    if len(gain) == 1:
        return PairedComparison(*names, *_counts(gain), float(gain[0]), math.nan, math.nan, math.nan, 1.0)
    mean, low, high = corrected_resampled_interval(gain, test_to_train, level)
    return PairedComparison(*names, *_counts(gain), mean, low, high, corrected_resampled_p(gain, test_to_train), 0.0)


def _gains(a: pd.Series, b: pd.Series, direction: str, lacking: str) -> np.ndarray:
    """Return by how much ``a`` is better, where both have a value."""
    if direction not in ("min", "max"):
        raise StatisticsError(f'direction must be "min" or "max", got {direction!r}')
    gain = ((a - b) if direction == "max" else (b - a)).dropna().to_numpy(dtype=float)
    if len(gain) == 0:
        raise StatisticsError(lacking)
    return gain.round(_DECIMALS)


def _counts(gain: np.ndarray) -> tuple[int, int, int, int]:
    """Return the number of values, and of wins, ties and losses."""
    return len(gain), int((gain > 0).sum()), int((gain == 0).sum()), int((gain < 0).sum())


def _kept_shifts(gain: np.ndarray, means: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return the ends of the interval of shifts that the signed-rank test does not reject.

    Its p value is constant between two pairwise means, and smallest outside of all of them.
    """
    if 2.0 ** (1 - len(gain)) > alpha:
        return math.nan, math.nan  # no shift is rejected
    if len(means) == 1:
        return float(means[0]), float(means[0])
    kept = [signed_rank_p(gain - shift) > alpha for shift in (means[:-1] + means[1:]) / 2]
    inside = np.flatnonzero(kept)
    if len(inside) == 0:
        middle = float(np.median(means))
        return middle, middle
    return float(means[inside[0]]), float(means[inside[-1] + 1])
