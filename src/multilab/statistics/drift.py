"""Drift between a reference sample and a new one: one test per feature and label, bounded over all tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.text import first_few
from multilab.statistics.errors import StatisticsError
from multilab.statistics.signed_rank import holm
from multilab.statistics.two_samples import category_p, fisher_p, ks_distances, ks_p_values, share_distance
from multilab.statistics.value_counts import ValueCounts, pooled_counts

COLUMNS = ("family", "item", "quantity", "test", "reference", "new", "effect", "p", "note")
"""Columns of a table of tests of drift, before they are judged together."""

_FEW_VALUES = 10  # numbers with at most as many different values are compared as categories


@dataclass(frozen=True, eq=False)
class DriftReport:
    """Tests of drift judged together.

    Attributes
    ----------
    table : DataFrame
        A row per test: ``family``; ``item`` (feature or label); ``quantity`` ("values", "missing", "prevalence" or
        "calibration"); ``test``; ``reference`` and ``new``, the quantity in both samples; ``effect``; ``p``, NaN where
        no test is possible; ``p_adjusted``; ``drift``; ``note``.
    alpha : float
        Bound of the probability that any of the tests reports drift when there is none.
    min_effect : float
        Smaller effects are not reported as drift, whatever their p value.
    """

    table: pd.DataFrame
    alpha: float
    min_effect: float

    @property
    def drifted(self) -> pd.DataFrame:
        """Rows of the table that report drift."""
        return self.table[self.table["drift"]]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON: what is undefined is None."""
        rows = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in self.table.to_dict("records")
        ]
        return {
            "drift": bool(self.table["drift"].any()),
            "alpha": self.alpha,
            "min_effect": self.min_effect,
            "tests": rows,
        }


def feature_drift(reference: Mapping[str, ValueCounts], new: Mapping[str, ValueCounts]) -> pd.DataFrame:
    """Test each feature for a change of its distribution and of its share of missing values.

    Parameters
    ----------
    reference, new : mapping of str to ValueCounts
        The same features in both samples.

    Returns
    -------
    DataFrame
        The columns ``COLUMNS``. One row per feature: the Kolmogorov-Smirnov test for numbers, chi-square or
        Fisher's exact test for categories and for numbers with at most 10 distinct values in both samples together. The
        effect of both is the largest difference of the shares of a set of rows: of rows below a value, or in some
        categories (total variation distance). Another row per feature with missing values: Fisher's exact test.

    Raises
    ------
    StatisticsError
        If a feature is in one sample only, or has numbers in one sample and text in the other.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.statistics import count_values, feature_drift
    >>> before, after = np.arange(40.0), np.arange(40.0) + 20
    >>> table = feature_drift({"x": count_values(before)}, {"x": count_values(after)})
    >>> table[["item", "test", "effect", "p"]].round(6)
      item                test  effect         p
    0    x  Kolmogorov-Smirnov     0.5  0.000066
    """
    if set(reference) != set(new):
        name = sorted(set(reference) ^ set(new))[0]
        raise StatisticsError(f"feature {name!r} is in only one of the two samples")
    rows: list[dict[str, Any]] = []
    numeric: list[tuple[int, tuple[np.ndarray, np.ndarray]]] = []
    for name, before in reference.items():
        after = new[name]
        try:
            values, a, b = pooled_counts(before, after)
        except StatisticsError as error:
            raise StatisticsError(f"feature {name!r}: {error}") from error
        if a.sum() and b.sum() and before.numeric and len(values) > _FEW_VALUES:
            numeric.append((len(rows), (a, b)))
            medians = [_median(values, counts) for counts in (a, b)]
            rows.append(_row("inputs", name, "values", "", medians[0], medians[1], note="medians"))
        else:
            rows.append(_category_row(name, values, a, b))
        if before.n_missing or after.n_missing:
            sizes = before.n + before.n_missing, after.n + after.n_missing
            rows.append(_share_row("inputs", name, "missing", before.n_missing, sizes[0], after.n_missing, sizes[1]))
    samples = [counts for _, counts in numeric]
    p_values, exact = ks_p_values(samples)
    for (k, _), effect, p, is_exact in zip(numeric, ks_distances(samples), p_values, exact, strict=True):
        test = "Kolmogorov-Smirnov" if is_exact else "Kolmogorov-Smirnov, limit"
        rows[k] |= {"test": test, "effect": float(effect), "p": float(p)}
    return pd.DataFrame(rows, columns=list(COLUMNS))


def prevalence_drift(
    family: str,
    labels: Sequence[str],
    reference_hits: Sequence[int],
    n_reference: int | Sequence[int],
    new_hits: Sequence[int],
    n_new: int | Sequence[int],
) -> pd.DataFrame:
    """Test the prevalence of each label by Fisher's exact test.

    Parameters
    ----------
    family : str
        Name of this family of tests, e.g. "labels" or "predictions".
    labels : sequence of str
    reference_hits, new_hits : sequence of int
        Rows with the label in either sample.
    n_reference, n_new : int or sequence of int
        Rows of either sample, or those in which the label was observed.

    Returns
    -------
    DataFrame
        The columns ``COLUMNS``; the effect is :func:`share_distance`.

    Examples
    --------
    >>> from multilab.statistics import prevalence_drift
    >>> table = prevalence_drift("labels", ["rain", "wind"], [30, 50], 100, [33, 20], 100)
    >>> table[["item", "reference", "new", "effect", "p"]].round(3)
       item  reference   new  effect      p
    0  rain        0.3  0.33   0.032  0.761
    1  wind        0.5  0.20   0.322  0.000
    """
    sizes = [np.broadcast_to(np.asarray(n), len(labels)).tolist() for n in (n_reference, n_new)]
    cells = zip(labels, reference_hits, sizes[0], new_hits, sizes[1], strict=True)
    rows = [_share_row(family, name, "prevalence", int(a), n, int(b), m) for name, a, n, b, m in cells]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def judge_drift(tables: Sequence[pd.DataFrame], alpha: float = 0.05, min_effect: float = 0.1) -> DriftReport:
    """Judge several families of tests together.

    Parameters
    ----------
    tables : sequence of DataFrame
        Tables with the columns ``COLUMNS``, of :func:`feature_drift`, :func:`prevalence_drift` and
        :func:`calibration_drift`.
    alpha : float, default 0.05
        Family-wise level of the complete report: without drift, the probability that any test reports it is at most
        ``alpha``, however the tests depend on each other. The families share it equally, and Holm's procedure holds
        each share.
    min_effect : float, default 0.1
        Smallest effect that is reported as drift, so that large samples do not report changes that do not matter. 0
        reports any effect.

    Returns
    -------
    DriftReport
        ``p_adjusted`` is Holm's p value within the family times the number of families, at most 1; drift is
        ``p_adjusted <= alpha`` and ``effect >= min_effect``.

    Raises
    ------
    StatisticsError
        If ``alpha`` is not in (0, 1) or ``min_effect`` not in [0, 1].

    Examples
    --------
    >>> from multilab.statistics import judge_drift, prevalence_drift
    >>> report = judge_drift([prevalence_drift("labels", ["rain", "wind"], [30, 50], 100, [33, 20], 100)])
    >>> report.drifted["item"].tolist()
    ['wind']
    """
    if not 0 < alpha < 1:
        raise StatisticsError(f"`alpha` must be in (0, 1), got {alpha}")
    if not 0 <= min_effect <= 1:
        raise StatisticsError(f"`min_effect` must be in [0, 1], got {min_effect}")
    filled = [table for table in tables if len(table)]
    table = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(COLUMNS))
    p = table["p"].to_numpy(dtype=float)
    families = table["family"].to_numpy()
    tested = ~np.isnan(p)
    names = list(dict.fromkeys(families[tested]))
    adjusted = np.full(len(table), np.nan)
    for name in names:
        rows = tested & (families == name)
        adjusted[rows] = np.minimum(1.0, len(names) * holm(p[rows]))
    table.insert(len(COLUMNS) - 1, "p_adjusted", adjusted)
    effect = table["effect"].to_numpy(dtype=float)
    table.insert(len(COLUMNS), "drift", tested & (adjusted <= alpha) & (effect >= min_effect))
    return DriftReport(table, alpha, min_effect)


def _row(
    family: str,
    item: str,
    quantity: str,
    test: str,
    reference: float,
    new: float,
    effect: float = math.nan,
    p: float = math.nan,
    note: str = "",
) -> dict[str, Any]:
    return dict(zip(COLUMNS, (family, item, quantity, test, reference, new, effect, p, note), strict=True))


def _share_row(family: str, item: str, quantity: str, a: int, n: int, b: int, m: int) -> dict[str, Any]:
    if n == 0 or m == 0:
        return _row(family, item, quantity, "none", math.nan, math.nan, note="no rows to compare")
    reference, new = a / n, b / m
    return _row(family, item, quantity, "Fisher", reference, new, share_distance(reference, new), fisher_p(a, n, b, m))


def _category_row(name: str, values: np.ndarray, a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    """Return the row of a feature with categories: the shares of the category whose share changes most."""
    if not (a.sum() and b.sum()):
        return _row("inputs", name, "values", "none", math.nan, math.nan, note="no values to compare")
    shares = a / a.sum(), b / b.sum()
    most = int(np.argmax(np.abs(shares[0] - shares[1])))
    note = f"share of {_shown(values[most])}"
    unseen = values[(a == 0) & (b > 0)]
    if len(unseen):
        note += f"; not in the reference: {first_few(map(_shown, unseen), 3)}"
    p, test = category_p(a, b)
    if len(values) == 1:
        note = "one value"
    elif test == "none":
        note += "; too few rows for a test"
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    return _row("inputs", name, "values", test, float(shares[0][most]), float(shares[1][most]), distance, p, note)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(str(value)[:40])


def _median(values: np.ndarray, counts: np.ndarray) -> float:
    cumulated = np.cumsum(counts)
    low, high = np.searchsorted(cumulated, [(cumulated[-1] - 1) // 2 + 1, cumulated[-1] // 2 + 1])
    return float((values[low] + values[high]) / 2)
