"""Quality of decisions on rows without labels, expected from calibrated probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from multilab.statistics.errors import StatisticsError

__all__ = ["LARGEST_MISS", "ExpectedCounts", "HeldOutQuality", "expected_quality", "held_out_quality"]

LARGEST_MISS = 0.05
"""Largest difference of expected and true micro or macro F1 on held-out training rows with which quality is estimated.

Chosen before the first measurement. A difference that is the same on new rows cancels in the estimate, but nothing says
that a large one stays the same when the rows change.
"""

OVERALL = ("micro_f1", "macro_f1")
PER_LABEL = ("precision", "recall", "f1")


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Counts of the decisions of each label, and sums of its probabilities p over the rows.

    Attributes
    ----------
    predicted, hits, positives : ndarray of shape (q,)
        Rows with the decision; sum of p over these rows; sum of p over all rows.
    hit_variance, variance : ndarray of shape (q,)
        Sums of p (1 - p) over the rows with the decision, and over all rows.
    """

    predicted: np.ndarray
    hits: np.ndarray
    positives: np.ndarray
    hit_variance: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, probabilities: Any, decisions: Any, observed: Any = True) -> ExpectedCounts:
        """Return the counts of arrays of shape (n, q); cells that are not ``observed`` do not count.

        Raises
        ------
        StatisticsError
            If the shapes differ, or a probability is not in [0, 1].
        """
        p, d = np.asarray(probabilities, dtype=float), np.asarray(decisions, dtype=float)
        if p.ndim != 2 or p.shape != d.shape:
            raise StatisticsError(f"probabilities {p.shape} and decisions {d.shape} must have the same rows and labels")
        if not ((p >= 0) & (p <= 1)).all():
            raise StatisticsError("quality without labels needs probabilities: a score is not in [0, 1]")
        seen = np.broadcast_to(observed, p.shape)
        p, d, spread = p * seen, d * seen, p * (1 - p) * seen
        parts = (d, d * p, p, d * spread, spread)
        return cls(*(part.sum(axis=0) for part in parts))

    def values(self, hits: np.ndarray | None = None, positives: np.ndarray | None = None) -> dict[str, Any]:
        """Return micro and macro F1, and precision, recall and F1 of each label.

        ``hits`` and ``positives``, by default the expected ones, may be those of true labels. A label without decisions
        has no precision, one without positives no recall; without both its F1 is 0.
        """
        hits = self.hits if hits is None else hits
        positives = self.positives if positives is None else positives
        f1 = _ratio(2 * hits, self.predicted + positives)
        total = float(self.predicted.sum() + positives.sum())
        return {
            "micro_f1": 2 * float(hits.sum()) / total if total > 0 else math.nan,
            "macro_f1": float(np.nan_to_num(f1).mean()),
            "precision": _ratio(hits, self.predicted),
            "recall": _ratio(hits, positives),
            "f1": np.nan_to_num(f1),
        }

    def variances(self, overdispersion: dict[str, float]) -> dict[str, Any]:
        """Return the variances of :meth:`values` over the labels of these rows, to first order.

        Labels of different rows are independent. ``overdispersion`` has the factors by which the dependence of the
        labels of a row raises the variances of micro and macro F1.
        """
        values = self.values()
        total = self.predicted + self.positives
        of_labels = self._variance_of(values["f1"], 2.0) / np.maximum(total, 1e-300) ** 2
        of_labels = np.where(total > 0, of_labels, 0.0)
        of_all = self._variance_of(values["micro_f1"], 2.0).sum() / total.sum() ** 2 if total.sum() else math.nan
        recall = np.nan_to_num(values["recall"])
        return {
            "micro_f1": overdispersion["micro_f1"] * float(of_all),
            "macro_f1": overdispersion["macro_f1"] * float(of_labels.sum()) / len(total) ** 2,
            "precision": _ratio(self.hit_variance, self.predicted**2),
            "recall": _ratio(self._variance_of(recall, 1.0), self.positives**2),
            "f1": of_labels,
        }

    def _variance_of(self, ratio: Any, factor: float) -> np.ndarray:
        """Return the sum of (factor d - ratio)^2 p (1 - p) of each label, where d is the decision."""
        return ((factor - ratio) ** 2 - ratio**2) * self.hit_variance + ratio**2 * self.variance

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain lists, for JSON."""
        return {entry.name: getattr(self, entry.name).tolist() for entry in fields(self)}


@dataclass(frozen=True, eq=False)
class HeldOutQuality:
    """What is known of a model from held-out rows with labels: the origin of its estimates.

    Attributes
    ----------
    expected : ExpectedCounts
    hits, positives : ndarray of shape (q,)
        True counts of the same rows.
    overdispersion : dict of str to float
        Of micro and macro F1: variance of the errors of the held-out rows, relative to independent labels.
    """

    expected: ExpectedCounts
    hits: np.ndarray
    positives: np.ndarray
    overdispersion: dict[str, float]

    @property
    def true(self) -> dict[str, Any]:
        """Micro and macro F1, and precision, recall and F1 of each label, on the held-out rows."""
        return self.expected.values(self.hits, self.positives)

    @property
    def misses(self) -> dict[str, float]:
        """Expected minus true micro and macro F1 of the held-out rows."""
        true, expected = self.true, self.expected.values()
        return {name: expected[name] - true[name] for name in OVERALL}

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, for JSON."""
        counts = {"hits": self.hits.tolist(), "positives": self.positives.tolist()}
        return {"expected": self.expected.to_dict(), **counts, "overdispersion": self.overdispersion}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> HeldOutQuality:
        """Return what :meth:`to_dict` gave."""
        expected = ExpectedCounts(**{name: np.asarray(values, float) for name, values in plain["expected"].items()})
        hits, positives = (np.asarray(plain[name], float) for name in ("hits", "positives"))
        return cls(expected, hits, positives, plain["overdispersion"])


def held_out_quality(Y: Any, probabilities: Any, decisions: Any) -> HeldOutQuality:
    """Return what held-out rows with labels show about the estimates of a model.

    Parameters
    ----------
    Y : array-like of shape (n, q)
        True labels, 0 or 1; NaN or -1 where a label was not observed.
    probabilities, decisions : array-like of shape (n, q)
        Output for these rows of a model that was not fitted to them.

    Raises
    ------
    StatisticsError
        See :meth:`ExpectedCounts.of`.

    Examples
    --------
    >>> from multilab.statistics import expected_quality, held_out_quality
    >>> Y, probabilities = [[1, 0], [1, 1], [0, 0], [1, 0]], [[0.9, 0.1], [0.8, 0.6], [0.2, 0.3], [0.7, 0.2]]
    >>> known = held_out_quality(Y, probabilities, [[1, 0], [1, 1], [0, 0], [1, 0]])
    >>> round(known.expected.values()["micro_f1"], 3)
    0.769
    """
    truth, p, d = (np.asarray(each, dtype=float) for each in (Y, probabilities, decisions))
    seen = (truth == 0) | (truth == 1)
    expected = ExpectedCounts.of(p, d, seen)
    y = np.where(seen, truth, 0.0)
    values, residuals = expected.values(), np.where(seen, y - p, 0.0)
    spread, sizes = seen * p * (1 - p), np.maximum(expected.predicted + expected.positives, 1e-300)
    influences = {"micro_f1": 2 * d - values["micro_f1"], "macro_f1": (2 * d - values["f1"]) / sizes}
    overdispersion = {}
    for name, influence in influences.items():
        independent = float((influence**2 * spread).sum())
        found = float(((influence * residuals).sum(axis=1) ** 2).sum())
        overdispersion[name] = found / independent if independent > 0 else 1.0
    return HeldOutQuality(expected, (y * d).sum(axis=0), y.sum(axis=0), overdispersion)


def expected_quality(
    probabilities: Any, decisions: Any, held_out: HeldOutQuality, *, repeats: float = 1.0, level: float = 0.95
) -> pd.DataFrame:
    """Estimate the quality of decisions on rows without labels, from the probabilities of a calibrated model.

    Parameters
    ----------
    probabilities, decisions : array-like of shape (n, q)
        Output of the model for the new rows.
    held_out : HeldOutQuality
    repeats : float, default 1
        How often each held-out row was counted, by repeated splits.
    level : float, default 0.95
        Nominal coverage of the intervals.

    Returns
    -------
    DataFrame
        Columns ``label`` (its number; -1: all labels), ``quantity`` ("micro_f1", "macro_f1", "precision", "recall",
        "f1"), ``expected``, ``low``, ``high``, and ``held_out``, the true value on the held-out rows. A precision is
        NaN where fewer than five rows have the decision, a recall where fewer than five positives are expected, an F1
        where their mean is below five, on the new rows or on the held-out ones.

    Raises
    ------
    StatisticsError
        If there is no row, the labels are not those of the held-out rows, or see :meth:`ExpectedCounts.of`.

    Notes
    -----
    The estimate is the expected value of the new rows, plus the true value of the held-out rows minus their expected
    value: an error of calibration that is the same in both cancels. It is right if the probability of a label given a
    row has not changed (covariate shift), and wrong if it has. The interval is normal, to first order; its variance is
    that of the labels of the new rows and of those of the held-out rows given their probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import expected_quality, held_out_quality
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=(800, 3)) ** 2
    >>> y = (rng.uniform(size=p.shape) < p).astype(int)
    >>> known = held_out_quality(y[:400], p[:400], p[:400] >= 0.4)
    >>> estimate = expected_quality(p[400:], p[400:] >= 0.4, known)
    >>> estimate.loc[:1, ["quantity", "expected", "low", "high"]].round(2)
       quantity  expected   low  high
    0  micro_f1      0.71  0.67  0.75
    1  macro_f1      0.71  0.67  0.75
    """
    new, old = ExpectedCounts.of(probabilities, decisions), held_out.expected
    if len(new.predicted) != len(old.predicted):
        raise StatisticsError(f"{len(new.predicted)} labels, the held-out rows have {len(old.predicted)}")
    if not len(np.asarray(probabilities)):
        raise StatisticsError("there is no row")
    expected, before, true = new.values(), old.values(), held_out.true
    spreads = [counts.variances(held_out.overdispersion) for counts in (new, old)]
    z = float(norm.isf((1 - level) / 2))
    tables = []
    for quantity in (*OVERALL, *PER_LABEL):
        value = np.clip(np.atleast_1d(expected[quantity] + true[quantity] - before[quantity]), 0, 1)
        half = z * np.sqrt(np.atleast_1d(spreads[0][quantity] + repeats * spreads[1][quantity]))
        if quantity in PER_LABEL:
            few = _too_few(new, new.positives, quantity) | _too_few(old, held_out.positives, quantity, repeats)
            value, half = np.where(few, np.nan, value), np.where(few, np.nan, half)
        labels = np.arange(len(value)) if quantity in PER_LABEL else [-1]
        columns = {"expected": value, "low": np.clip(value - half, 0, 1), "high": np.clip(value + half, 0, 1)}
        tables.append(pd.DataFrame({"label": labels, "quantity": quantity, **columns, "held_out": true[quantity]}))
    return pd.concat(tables, ignore_index=True)


_FEW = 5.0  # rows, as in the tests of drift: with fewer a normal interval says nothing


def _too_few(counts: ExpectedCounts, positives: np.ndarray, quantity: str, repeats: float = 1.0) -> np.ndarray:
    size = {"precision": counts.predicted, "recall": positives, "f1": (counts.predicted + positives) / 2}[quantity]
    return np.asarray(size / repeats < _FEW)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a quotient, NaN where nothing is below."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
