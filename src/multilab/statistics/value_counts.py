"""Distinct values of a column with their counts, the input of drift tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from multilab.statistics.errors import StatisticsError


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Distinct values of a column, how often each occurs, and the number of missing values.

    Attributes
    ----------
    values : ndarray of shape (v,)
        Distinct values in ascending order: float64, or text for categories.
    counts : ndarray of shape (v,), int64
    n_missing : int
    """

    values: np.ndarray
    counts: np.ndarray
    n_missing: int = 0

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.values.dtype.kind == "f"

    @property
    def n(self) -> int:
        """Number of values that are present."""
        return int(self.counts.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, for JSON."""
        return {"values": self.values.tolist(), "counts": self.counts.tolist(), "n_missing": self.n_missing}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ValueCounts:
        """Return the counts of :meth:`to_dict`.

        Raises
        ------
        StatisticsError
            If the lists do not have the same length, or a count is negative.
        """
        values, counts = np.asarray(plain["values"]), np.asarray(plain["counts"], dtype=np.int64)
        if values.shape != counts.shape or (counts < 0).any():
            raise StatisticsError("counts of values: one count >= 0 per value is needed")
        is_text = values.dtype.kind in "UO"
        return cls(values.astype(str if is_text else float), counts, int(plain["n_missing"]))


def count_values(column: Any) -> ValueCounts:
    """Return the distinct values of a column with their counts.

    Parameters
    ----------
    column : array-like of shape (n,)
        Numbers and booleans are numeric; anything else is compared as text. NaN, None and NA are missing.

    Examples
    --------
    >>> from multilab.statistics import count_values
    >>> count_values([2.0, 1.0, 2.0, None]).to_dict()
    {'values': [1.0, 2.0], 'counts': [1, 2], 'n_missing': 1}
    """
    series = pd.Series(column)
    present = series.dropna()
    is_number = pd.api.types.is_bool_dtype(series) or pd.api.types.is_numeric_dtype(series)
    kept = present.to_numpy(dtype=float) + 0.0 if is_number else present.astype(str).to_numpy(dtype=str)
    values, counts = np.unique(kept, return_counts=True)
    return ValueCounts(values, counts.astype(np.int64), len(series) - len(present))


def pooled_counts(reference: ValueCounts, new: ValueCounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values of two samples in ascending order, and how often each occurs in either of them.

    Returns
    -------
    values : ndarray of shape (v,)
    reference_counts, new_counts : ndarray of shape (v,), int64

    Raises
    ------
    StatisticsError
        If one sample has numbers and the other one text.

    Examples
    --------
    >>> from multilab.statistics import count_values, pooled_counts
    >>> values, before, after = pooled_counts(count_values(["a", "b", "a"]), count_values(["c", "a"]))
    >>> values.tolist(), before.tolist(), after.tolist()
    (['a', 'b', 'c'], [2, 1, 0], [1, 0, 1])
    """
    if reference.n and new.n and reference.numeric != new.numeric:
        kinds = ["numbers" if sample.numeric else "text" for sample in (reference, new)]
        raise StatisticsError(f"the reference sample has {kinds[0]}, the new one {kinds[1]}")
    present: Sequence[np.ndarray] = [sample.values for sample in (reference, new) if sample.n]
    values = np.unique(np.concatenate(present)) if present else np.zeros(0)
    counts = []
    for sample in (reference, new):
        spread = np.zeros(len(values), dtype=np.int64)
        if sample.n:
            spread[np.searchsorted(values, sample.values)] = sample.counts
        counts.append(spread)
    return values, counts[0], counts[1]
