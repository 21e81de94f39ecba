"""Agreement of a study's numbers with the published ones: overall, and by method next to another method's column."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

AGREE = ("match", "within")
"""Verdicts on cells that agree."""
BEYOND = ("better", "worse", "differs")
"""Verdicts on cells that could be compared and do not agree."""
_NEAR = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Agreement:
    """Agreement of a study's numbers with the published ones, over the result cells that could be compared.

    Attributes
    ----------
    cells, comparable, agree : int
        Published results, those that could be compared, and those of these that agree (match or within).
    median_gap : float
        Median of |ours - printed| / |printed|: the number that can be compared between studies. NaN without cells.
    near : tuple of float
        Shares of the comparable cells with a relative gap of at most 1, 2 and 5 %.
    others : int
        Further published cells, counted apart: averages, ranks and tests that follow from others, and properties of
        datasets.
    """

    cells: int
    comparable: int
    agree: int
    median_gap: float
    near: tuple[float, ...]
    others: int

    @property
    def share(self) -> float:
        """Share of the comparable cells that agree."""
        return self.agree / self.comparable if self.comparable else math.nan

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Agreement:
        """Return the agreement of judged cells, numbers as numbers or as text."""
        results, known = int((cells["group"] == "result").sum()), _known(cells)
        gaps = _gaps(known)
        near = tuple(float(np.mean(gaps <= limit)) if len(gaps) else math.nan for limit in _NEAR)
        median = float(np.median(gaps)) if len(gaps) else math.nan
        agree = int(known["verdict"].isin(AGREE).sum())
        return cls(results, len(known), agree, median, near, len(cells) - results)


@dataclass(frozen=True)
class MethodAgreement:
    """Agreement of one method's column with its published row, and of the best column of another method.

    Where another method's column agrees with as many cells, agreement says little about the method.

    Attributes
    ----------
    method : str
        The published method.
    comparable, agree : int
        Its published results that could be compared, and those of these that agree with its own column.
    median_gap : float
        Median of |ours - printed| / |printed|.
    other : str
        The column of another published method that agrees with most of them; empty if there is none.
    other_agree : int
        With how many it agrees.
    """

    method: str
    comparable: int
    agree: int
    median_gap: float
    other: str
    other_agree: int


def agreement_by_method(cells: pd.DataFrame) -> tuple[MethodAgreement, ...]:
    """Return the agreement of each published method, from judged cells, in their order."""
    known = _known(cells)
    found = []
    for method, rows in known.groupby("method", sort=False):
        others = rows.get("other_method", pd.Series("", rows.index)).fillna("")
        agree = int(rows["verdict"].isin(AGREE).sum())
        reached = int(rows["other_verdict"].isin(AGREE).sum()) if others.any() else 0
        gaps = _gaps(rows)
        median = float(np.median(gaps)) if len(gaps) else math.nan
        found.append(MethodAgreement(str(method), len(rows), agree, median, str(others.iloc[0]), reached))
    return tuple(found)


def _known(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the results that could be compared."""
    return cells[(cells["group"] == "result") & cells["verdict"].isin([*AGREE, *BEYOND])]


def _gaps(rows: pd.DataFrame) -> np.ndarray:
    """Return the relative gaps of cells, numbers as numbers or as text; those whose printed number is 0 left out."""
    ours, printed = (
        pd.to_numeric(rows[name], errors="coerce").to_numpy(float) for name in ("our_mean", "printed_mean")
    )
    return np.abs(ours - printed)[printed != 0] / np.abs(printed[printed != 0])


def compared(verdicts: Iterable[str]) -> tuple[int, int, int, str]:
    """Return how many cells could be compared, of how many, how many of these agree, and that share as text."""
    counts = Counter(verdicts)
    agree = sum(counts[verdict] for verdict in AGREE)
    known = agree + sum(counts[verdict] for verdict in BEYOND)
    return known, sum(counts.values()), agree, f"{100 * agree / known:.1f} %" if known else "–"
