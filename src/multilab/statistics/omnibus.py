"""Omnibus tests of whether any methods differ: Friedman's, and Iman and Davenport's F."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class FriedmanResult:
    """Friedman's statistic and Iman and Davenport's F, each with its p value.

    Attributes
    ----------
    chi2, chi2_p : float
        Friedman's statistic with k - 1 degrees of freedom.
    F, p, F_crit : float
        The F statistic (infinite when all datasets rank the methods alike), its p value, and the critical
        value at level alpha, with (k - 1, (k - 1)(n - 1)) degrees of freedom.
    """

    chi2: float
    chi2_p: float
    F: float
    p: float
    F_crit: float


def friedman(ranks: np.ndarray, tie_correction: bool = True) -> float:
    """Return Friedman's chi squared of a rank table.

    ``chi2 = 12 n / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4)`` with average ranks R_j, divided by
    ``1 - sum (t^3 - t) / (n k (k^2 - 1))`` over all groups of t tied values when ties are corrected for.

    Parameters
    ----------
    ranks : ndarray of shape (n datasets, k methods), n >= 1, k >= 2
        Ranks within rows, ties averaged.
    tie_correction : bool
        False reproduces the printed statistics of the MLWSE and ML-EKELM papers.

    Returns
    -------
    float
        0 when every dataset ties all methods.

    Notes
    -----
    M. Friedman (1940), A comparison of alternative tests of significance for the problem of m rankings;
    correction as in W. J. Conover, Practical Nonparametric Statistics (1999), and in
    ``scipy.stats.friedmanchisquare``.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import friedman
    >>> round(friedman(np.array([[1, 2, 3], [1, 3, 2], [1, 2, 3]])), 4)
    4.6667
    """
    n, k = ranks.shape
    deviations = ranks.mean(axis=0) - (k + 1) / 2  # equal to the form above, without its cancellation
    chi2 = friedman_chi2(math.fsum(deviations**2), n, k)  # the same in every order of the methods
    if not tie_correction:
        return chi2
    ties = sum(int(t) ** 3 - int(t) for row in ranks for t in np.unique(row, return_counts=True)[1])
    free = 1 - ties / (n * k * (k * k - 1))
    return chi2 / free if free > 0 else 0.0


def friedman_chi2(squares: float, n: int, k: int) -> float:
    """Return Friedman's chi squared without correction for ties, from sum_j (R_j - (k + 1) / 2)^2 of average ranks."""
    return 12 * n / (k * (k + 1)) * squares


def iman_davenport_f(chi2: float, n: int, k: int) -> float:
    """Return Iman and Davenport's F of n datasets and k methods; infinite where all datasets rank alike."""
    rest = n * (k - 1) - chi2
    return math.inf if rest <= 1e-12 * n * (k - 1) else (n - 1) * chi2 / rest  # chi2 at its maximum up to rounding


def f_critical(n: int, k: int, alpha: float = 0.05) -> float:
    """Return the critical value of Iman and Davenport's F, with (k - 1, (k - 1)(n - 1)) degrees of freedom."""
    return float(stats.f.ppf(1 - alpha, k - 1, (k - 1) * (n - 1)))


def iman_davenport(chi2: float, n: int, k: int, alpha: float = 0.05) -> FriedmanResult:
    """Return Iman and Davenport's statistic ``F_F = (n - 1) chi2 / (n (k - 1) - chi2)`` with its p value.

    Parameters
    ----------
    chi2 : float
        From :func:`friedman`.
    n, k : int
        Numbers of datasets and methods, both at least 2.
    alpha : float
        Level of ``F_crit``.

    Notes
    -----
    R. L. Iman and J. M. Davenport (1980), Approximations of the critical region of the Friedman statistic. If all
    datasets rank the methods alike, F is infinite and p is that of k! equally likely rankings on each dataset,
    ``k! ** (1 - n)``.

    Examples
    --------
    >>> from multilab.statistics import iman_davenport
    >>> result = iman_davenport(4.6667, n=3, k=3)
    >>> round(result.F, 3), round(result.p, 3), round(result.F_crit, 3)
    (7.0, 0.049, 6.944)
    """
    df1, df2 = k - 1, (k - 1) * (n - 1)
    F = iman_davenport_f(chi2, n, k)
    return FriedmanResult(
        chi2=float(chi2),
        chi2_p=float(stats.chi2.sf(chi2, df1)),
        F=float(F),
        p=1 / math.factorial(k) ** (n - 1) if math.isinf(F) else float(stats.f.sf(F, df1, df2)),
        F_crit=f_critical(n, k, alpha),
    )
