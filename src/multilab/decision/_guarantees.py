# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Cuts of a label with a guaranteed recall or precision."""

from dataclasses import replace

import numpy as np
from scipy.stats import binom

from multilab.decision.label_thresholds import LabelCurves
from multilab.methods.base import MethodError

GUARANTEES = ("recall", "precision")


def guaranteed(curves: LabelCurves, measure: str, level: float, confidence: float) -> LabelCurves:
    """Return the curves with only those cuts allowed that guarantee a recall or precision of each label.

    Parameters
    ----------
    curves : LabelCurves
        Of rows that count one each, which the scoring model has not seen.
    measure : {"recall", "precision"}
    level : float
        Least value for rows of the same distribution, in (0, 1).
    confidence : float
        Probability, over the held-out rows, that the guarantee of a label holds, in (0, 1).

    Notes
    -----
    Recall falls with the threshold. With m positives, a cut that misses j of them is allowed where
    P(Binomial(m, 1 - level) <= j) <= 1 - confidence: the exact tolerance limit of order statistics, which is Learn then
    Test for a monotone risk, without a correction for many cuts. Assigning every row is always allowed.

    Precision is not monotone. Cuts after 1, 2, 3, 4, 6, 8, 11, ... rows (powers of the square root of 2) and after all
    of them are tested, each with the exact binomial test and level (1 - confidence) / number of tests (Learn then Test
    with Bonferroni's correction). The rows above a threshold at the next row's score are a sample of rows above it, so
    that the test is valid given the threshold; the threshold is therefore close to that score, not midway. Assigning no
    row is always allowed.

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei. Learn then test: calibrating predictive algorithms
    to achieve risk control. Annals of Applied Statistics 19, 2025 (arXiv:2110.01052).
    """
    for name, value in (("the level of `guarantee`", level), ("`confidence`", confidence)):
        if not 0 < value < 1:
            raise MethodError(f"{name} must be between 0 and 1, got {value}")
    error = 1 - confidence
    if measure == "recall":
        missed = curves.true - curves.hits
        allowed = curves.allowed & (binom.cdf(missed, curves.true, 1 - level) <= error)
        allowed[-1] = True
        return replace(curves, allowed=allowed)
    if measure != "precision":
        raise MethodError(f"guarantee={measure!r}: give {' or '.join(map(repr, GUARANTEES))} and a level")
    tested = precision_ranks(len(curves.ordered))
    cuts = np.where(curves.allowed, np.arange(len(curves.allowed))[:, None], 0)
    cuts = np.maximum.accumulate(cuts, axis=0)[tested]  # rows above the score after each: ties stay together
    hits = np.take_along_axis(curves.hits, cuts, axis=0)
    passed = (cuts > 0) & (binom.sf(hits - 1, cuts, level) <= error / len(tested))
    allowed = np.zeros_like(curves.allowed)
    np.put_along_axis(allowed, np.where(passed, cuts, 0), True, axis=0)
    allowed[0] = True
    return replace(curves, allowed=allowed & curves.allowed, close=True)


def precision_ranks(n: int) -> np.ndarray:
    """Return the numbers of rows after which precision is tested: powers of the square root of 2, and n."""
    ranks = np.unique(np.rint(2.0 ** np.arange(0, np.log2(n), 0.5)).astype(int))
    return np.append(ranks[ranks < n], n)
