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
    values = np.asarray(differences, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise StatisticsError("the corrected resampled t test needs at least two finite differences")
    if not test_to_train > 0:
        raise StatisticsError(f"test_to_train={test_to_train}: it must be positive")
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if np.all(values == values[0]):
        return 1.0 if mean == 0 else 0.0
    t = mean / math.sqrt((1 / len(values) + test_to_train) * variance)
    return float(2 * student.sf(abs(t), len(values) - 1))
