"""The corrected resampled t test: two methods on the splits of one dataset."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t as student

from multilab.statistics.errors import StatisticsError


def corrected_resampled_p(differences: np.ndarray, test_to_train: float) -> float:
    """Return the two-sided p value of the corrected resampled t test.

    Parameters
    ----------
    differences : array-like of shape (J,)
        Paired differences of a metric on J >= 2 splits of one dataset, finite.
    test_to_train : float
        Number of test rows divided by the number of training rows, 1 / (k - 1) for k folds.

    Returns
    -------
    float
        1 if all differences are 0; 0 if they are all the same and not 0.

    Raises
    ------
    StatisticsError
        If there are fewer than two differences, one is not finite, or the ratio is not positive.

    Notes
    -----
    t = mean / sqrt((1 / J + n_test / n_train) s^2) with J - 1 degrees of freedom. The training sets of the splits
    overlap, so that the plain paired test, which has 1 / J alone, finds far too many differences.

    References
    ----------
    C. Nadeau, Y. Bengio (2003), Inference for the generalization error, Machine Learning 52, eq. (9).

    Examples
    --------
    >>> from multilab.statistics import corrected_resampled_p
    >>> round(corrected_resampled_p([0.02, 0.03, 0.01, 0.02, 0.02], 0.25), 4)
    0.0135
    """
    values = _checked(differences, test_to_train)
    mean = float(values.mean())
    if np.all(values == values[0]):
        return 1.0 if mean == 0 else 0.0
    t = mean / corrected_standard_error(values, test_to_train)
    return float(2 * student.sf(abs(t), len(values) - 1))


def corrected_resampled_interval(
    values: np.ndarray,
    test_to_train: float,
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float, float]:
    """Return the mean of a metric, or of a difference, over splits, and the ends of its confidence interval.

    Parameters
    ----------
    values : array-like of shape (J,)
        Values on J >= 2 splits of one dataset, finite.
    test_to_train : float
        Number of test rows divided by the number of training rows, 1 / (k - 1) for k folds.
    level : float, default=0.95
        Confidence.
    bounds : (float, float), optional
        Smallest and largest possible mean, which no end exceeds.

    Returns
    -------
    tuple of float
        Mean, lower end, upper end. 0 is outside the interval of a difference exactly if
        :func:`corrected_resampled_p` is below ``1 - level``.

    Raises
    ------
    StatisticsError
        As :func:`corrected_resampled_p`, and if the level is not in (0, 1).

    Examples
    --------
    >>> from multilab.statistics import corrected_resampled_interval
    >>> [round(value, 3) for value in corrected_resampled_interval([0.02, 0.03, 0.01, 0.02, 0.02], 0.25)]
    [0.02, 0.007, 0.033]
    """
    array = _checked(values, test_to_train)
    if not 0 < level < 1:
        raise StatisticsError(f"level={level}: it must be in (0, 1)")
    mean = float(array.mean())
    half = float(student.ppf((1 + level) / 2, len(array) - 1)) * corrected_standard_error(array, test_to_train)
    smallest, largest = min(bounds[0], mean), max(bounds[1], mean)  # some conventions give other ranges
    return mean, max(mean - half, smallest), min(mean + half, largest)


def corrected_unpaired_interval(
    first: np.ndarray, first_ratio: float, second: np.ndarray, second_ratio: float, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the difference between the means over the second and the first splits, with its confidence interval.

    The two sets of splits are not paired: another number of splits, or another number of training rows.

    Parameters
    ----------
    first, second : array-like
        Values on at least 2 splits each, finite.
    first_ratio, second_ratio : float
        Number of test rows divided by the number of training rows of either.
    level : float, default=0.95
        Confidence.

    Returns
    -------
    tuple of float
        Difference, lower end, upper end.

    Raises
    ------
    StatisticsError
        As :func:`corrected_resampled_interval`.

    Notes
    -----
    Welch's interval with the corrected variances of :func:`corrected_resampled_p` and Satterthwaite's degrees of
    freedom. All splits are of the same rows, which makes the interval wider than it need be.

    Examples
    --------
    >>> from multilab.statistics import corrected_unpaired_interval
    >>> gain, low, high = corrected_unpaired_interval([0.50, 0.51, 0.52], 1.5, [0.60, 0.61, 0.62], 0.25)
    >>> round(gain, 3), low < 0.1 < high
    (0.1, True)
    """
    if not 0 < level < 1:
        raise StatisticsError(f"level={level}: it must be in (0, 1)")
    parts = [(_checked(first, first_ratio), first_ratio), (_checked(second, second_ratio), second_ratio)]
    variances = [corrected_standard_error(values, ratio) ** 2 for values, ratio in parts]
    gain, total = float(parts[1][0].mean() - parts[0][0].mean()), sum(variances)
    if total == 0:
        return gain, gain, gain
    freedom = total**2 / sum(v**2 / (len(values) - 1) for v, (values, _) in zip(variances, parts, strict=True))
    half = float(student.ppf((1 + level) / 2, freedom)) * math.sqrt(total)
    return gain, gain - half, gain + half


def _checked(values: np.ndarray, test_to_train: float) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise StatisticsError("the corrected resampled t test needs at least two finite differences")
    if not test_to_train > 0:
        raise StatisticsError(f"test_to_train={test_to_train}: it must be positive")
    return array


def corrected_standard_error(values: np.ndarray, test_to_train: float) -> float:
    """Return the standard error of a mean over splits with common training rows, see :func:`corrected_resampled_p`."""
    return math.sqrt((1 / len(values) + test_to_train) * float(values.var(ddof=1)))
