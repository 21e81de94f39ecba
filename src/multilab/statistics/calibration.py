"""Drift of calibration: whether the share of a label, given its predicted probability, has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from multilab.statistics.drift import COLUMNS
from multilab.statistics.errors import StatisticsError
from multilab.statistics.two_samples import share_distance

EDGES = (0.005, 0.01, 0.02, 0.05, *(k / 10 for k in range(1, 10)), 0.95, 0.98, 0.99, 0.995)
"""Borders between the bins of probabilities; a bin includes its right border."""

_LEAST_EXPECTED = 5.0  # rows per bin, the usual condition of a chi-square test
_ZERO = 1e-15  # a variance below it is a rounding error: the probabilities are constant


@dataclass(frozen=True, eq=False)
class CalibrationBins:
    """Sums over the rows of a sample, by label and bin of its probability.

    Attributes
    ----------
    count, positives, scores, squares, score_squares : ndarray of shape (q, len(EDGES) + 1)
        Number of observed rows; of these, with the label; sums of the probabilities p, of (y - p)^2, and of p^2.
    """

    count: np.ndarray
    positives: np.ndarray
    scores: np.ndarray
    squares: np.ndarray
    score_squares: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, for JSON."""
        return {name: getattr(self, name).tolist() for name in _SUMS}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> CalibrationBins:
        """Return the bins of :meth:`to_dict`.

        Raises
        ------
        StatisticsError
            If there are not as many bins as this version has.
        """
        sums = [np.asarray(plain[name], dtype=float) for name in _SUMS]
        if any(part.ndim != 2 or part.shape != (len(sums[0]), len(EDGES) + 1) for part in sums):
            raise StatisticsError(f"bins of calibration: {len(EDGES) + 1} sums per label are needed")
        return cls(*sums)


_SUMS = ("count", "positives", "scores", "squares", "score_squares")


def calibration_sums(Y: Any, scores: Any) -> CalibrationBins:
    """Return the sums of a sample that the test of calibration needs.

    Parameters
    ----------
    Y : array-like of shape (n, q)
        True labels, 0 or 1; NaN or -1 where a label was not observed.
    scores : array-like of shape (n, q)
        Probabilities; NaN where there is none.

    Raises
    ------
    StatisticsError
        If the shapes differ, or a score is not in [0, 1].

    Examples
    --------
    >>> from multilab.statistics import calibration_sums
    >>> calibration_sums([[1], [0]], [[0.7], [0.65]]).positives.sum(axis=1).tolist()
    [1.0]
    """
    truth, given = np.asarray(Y, dtype=float), np.asarray(scores, dtype=float)
    if truth.shape != given.shape or truth.ndim != 2:
        raise StatisticsError(f"labels {truth.shape} and scores {given.shape} must have the same rows and columns")
    if not ((given >= 0) & (given <= 1) | np.isnan(given)).all():
        raise StatisticsError("calibration needs probabilities: a score is not in [0, 1]")
    n_labels, n_bins = truth.shape[1], len(EDGES) + 1
    seen = (truth >= 0) & ~np.isnan(given)
    cells = (np.searchsorted(EDGES, given) + n_bins * np.arange(n_labels))[seen]
    y, p = truth[seen], given[seen]
    weights = (np.ones(len(y)), y, p, (y - p) ** 2, p**2)
    sums = [np.bincount(cells, weight, n_labels * n_bins) for weight in weights]
    return CalibrationBins(*(part.reshape(n_labels, n_bins) for part in sums))


def calibration_drift(
    labels: Sequence[str], reference: CalibrationBins, new: CalibrationBins, n_bins: int = 5
) -> pd.DataFrame:
    """Test each label for a change of the calibration of its probabilities.

    Parameters
    ----------
    labels : sequence of str, length q
    reference, new : CalibrationBins
        Of out-of-fold probabilities of the training rows, and of new rows.
    n_bins : int, default 5
        Largest number of bins that are compared: neighbouring ones are merged.

    Returns
    -------
    DataFrame
        The columns ``COLUMNS``; ``reference`` and ``new`` are the calibration errors (mean over bins of
        ``|mean probability - share of the label|``, weighted by rows); the effect is the mean over bins of the
        :func:`share_distance` of the observed share in the new rows and the one that the calibration of the reference
        predicts. A label with fewer than five expected rows with and without it in either sample has p NaN.

    Raises
    ------
    StatisticsError
        If there is not one label name per row of the bins.

    Notes
    -----
    A model need not be calibrated: the test looks for a change. In each bin the mean of ``y - p`` is compared between
    the two samples, as in Spiegelhalter's test of one sample, and divided by its standard deviation over all
    assignments of the rows of the bin to the samples. The squares add up to chi-square with one degree of freedom per
    bin. Bins are merged by both samples together, to about equal ``sum p (1 - p)``, so that merging does not bias the
    test. Different probabilities alone, with the same calibration, are no drift of calibration.

    References
    ----------
    D. J. Spiegelhalter. Probabilistic prediction in patient management and clinical trials. Statistics in Medicine 5,
    1986.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import calibration_drift, calibration_sums
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=(600, 1))
    >>> y = (rng.uniform(size=p.shape) < p).astype(int)
    >>> old, new = calibration_sums(y[:400], p[:400]), calibration_sums(y[400:], 1 - p[400:])
    >>> inverted = calibration_drift(["rain"], old, new)
    >>> bool(inverted["p"][0] < 1e-6)
    True
    """
    if not len(labels) == len(reference.count) == len(new.count):
        sizes = f"{len(reference.count)} and {len(new.count)}"
        raise StatisticsError(f"{len(labels)} labels are named, the samples have {sizes}")
    samples = [np.stack([getattr(sample, name) for name in _SUMS]) for sample in (reference, new)]  # (5, q, bins)
    rows = [_label_row(name, samples[0][:, j], samples[1][:, j], n_bins) for j, name in enumerate(labels)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def probability_drift(labels: Sequence[str], reference: CalibrationBins, scores: Any) -> pd.DataFrame:
    """Test each label for a change of its mean probability, the predicted prevalence.

    Parameters
    ----------
    labels : sequence of str, length q
    reference : CalibrationBins
        Of out-of-fold probabilities of the training rows.
    scores : array-like of shape (m, q)
        Probabilities of new rows.

    Returns
    -------
    DataFrame
        The columns ``COLUMNS``; the effect is the :func:`share_distance` of the two means, the test compares them with
        the standard deviation of their difference over all assignments of the rows to the samples.

    Notes
    -----
    Shares of decisions would be a worse measure: a threshold that is tuned again on each training set may fall on
    either side of many equal scores.

    Examples
    --------
    >>> from multilab.statistics import calibration_sums, probability_drift
    >>> reference = calibration_sums([[0], [1]] * 50, [[0.2], [0.4]] * 50)
    >>> table = probability_drift(["rain"], reference, [[0.5], [0.7]] * 20)
    >>> table[["reference", "new", "effect"]].round(3)
       reference  new  effect
    0        0.3  0.6   0.306
    """
    given = np.asarray(scores, dtype=float)
    if not len(labels) == len(reference.count) == given.shape[1]:
        sizes = f"{len(reference.count)} and {given.shape[1]}"
        raise StatisticsError(f"{len(labels)} labels are named, the samples have {sizes}")
    n, total, squares = (part.sum(axis=1) for part in (reference.count, reference.scores, reference.score_squares))
    m = np.full(len(labels), len(given))
    rows = []
    for j, name in enumerate(labels):
        row: dict[str, Any] = dict.fromkeys(COLUMNS, math.nan)
        row |= {"family": "predictions", "item": name, "quantity": "mean probability", "test": "none", "note": ""}
        rows.append(row)
        if not (n[j] and m[j]):
            row["note"] = "no rows to compare"
            continue
        old, new = total[j] / n[j], given[:, j].mean()
        mean = (total[j] + given[:, j].sum()) / (n[j] + m[j])
        spread = squares[j] + (given[:, j] ** 2).sum() - (n[j] + m[j]) * mean**2
        variance = spread / (n[j] + m[j] - 1) * (1 / n[j] + 1 / m[j])
        statistic = (new - old) ** 2 / variance if variance > _ZERO else 0.0
        p = float(chi2.sf(statistic, 1))
        row |= {"test": "means", "reference": old, "new": new, "effect": share_distance(old, new), "p": p}
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _label_row(name: str, reference: np.ndarray, new: np.ndarray, n_bins: int) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS, math.nan)
    row |= {"family": "calibration", "item": name, "quantity": "calibration", "test": "none", "note": ""}
    starts = _merged(reference, new, n_bins)
    if not len(starts):
        return row | {"note": "too few rows with or without the label"}
    n, hits_old, sum_old, squares_old, _ = np.add.reduceat(reference, starts, axis=1)
    m, hits_new, sum_new, squares_new, _ = np.add.reduceat(new, starts, axis=1)
    gap_old, gap_new = (hits_old - sum_old) / n, (hits_new - sum_new) / m
    mean = (n * gap_old + m * gap_new) / (n + m)
    spread = squares_old + squares_new - (n + m) * mean**2
    variance = spread / (n + m - 1) * (1 / n + 1 / m)  # over all assignments of the rows
    statistic = np.where(variance > _ZERO, (gap_new - gap_old) ** 2 / np.maximum(variance, _ZERO), 0.0).sum()
    observed = hits_new / m
    predicted = np.clip(observed - gap_new + gap_old, 0, 1)
    distances = [share_distance(*pair) for pair in zip(observed, predicted, strict=True)]
    return row | {
        "test": f"chi-square, {len(starts)} bin{'s' if len(starts) > 1 else ''}",
        "reference": float(np.average(np.abs(gap_old), weights=n)),
        "new": float(np.average(np.abs(gap_new), weights=m)),
        "effect": float(np.average(distances, weights=m)),
        "p": float(chi2.sf(statistic, len(starts))),
        "note": "calibration errors",
    }


def _merged(reference: np.ndarray, new: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the first bin of each group of bins; none if no group has enough rows with and without the label.

    Enough: five of each are expected in the smaller sample, and each sample has two rows.
    """
    pooled = reference + new
    sizes = np.array([reference[0].sum(), new[0].sum()])
    share = sizes.min() / max(1, sizes.sum())
    weights = pooled[2] * (1 - pooled[2] / np.maximum(pooled[0], 1)) + 0.01 * pooled[0]
    target = weights.sum() / n_bins * (1 - 1e-9)
    starts, first, last = [], 0, 0
    for stop in range(1, pooled.shape[1] + 1):
        rows, hits = pooled[0, first:stop].sum(), pooled[1, first:stop].sum()
        enough = min(hits, rows - hits) * share >= _LEAST_EXPECTED
        enough &= min(reference[0, first:stop].sum(), new[0, first:stop].sum()) >= 2
        if enough and weights[last:stop].sum() >= target:
            starts.append(first)
            first = last = stop
    return np.array(starts, dtype=int)  # what is left at the end belongs to the last group
