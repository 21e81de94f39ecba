"""What to say of each printed cell: the number we have for it, the verdict, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.dataset_rows import DATA_METRICS
from multilab.claims.derived import fill_derived
from multilab.claims.erratum import Erratum, touched
from multilab.claims.errors import ClaimsError
from multilab.claims.naming import Aliases, any_of, decimals, half_unit
from multilab.statistics.summary import exact_mean

VERDICTS = ("match", "within", "better", "worse", "differs", "not comparable", "not printed", "not run")
BEYOND = ("better", "worse", "differs")
"""Verdicts on cells that could be compared and do not agree."""
GROUPS = ("result", "derived", "data")
"""What a published cell is: a result of a method; a number that follows from other cells; a property of a dataset."""
COLUMNS = (
    "table",
    "dataset",
    "method",
    "metric",
    "printed_mean",
    "printed_std",
    "our_metric",
    "our_mean",
    "our_std",
    "uncertainty",
    "group",
    "verdict",
    "reason",
    "erratum",
)
MISSING = "no result: "
"""Beginning of the reason of a cell that was not run without an excuse; a finished study has none."""
_NEAR = (0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Agreement:
    """How far the numbers of a study are from the published ones: its result cells that could be compared.

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
        results = cells[cells["group"] == "result"]
        verdicts = Counter(results["verdict"])
        known = results[results["verdict"].isin(["match", "within", *BEYOND])]
        ours, printed = (
            pd.to_numeric(known[name], errors="coerce").to_numpy(float) for name in ("our_mean", "printed_mean")
        )
        gaps = np.abs(ours - printed)[printed != 0] / np.abs(printed[printed != 0])
        near = tuple(float(np.mean(gaps <= limit)) if len(gaps) else math.nan for limit in _NEAR)
        median = float(np.median(gaps)) if len(gaps) else math.nan
        agree = verdicts["match"] + verdicts["within"]
        return cls(len(results), len(known), agree, median, near, len(cells) - len(results))


def summarised(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sample standard deviation over the splits of long scores.

    Parameters
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value; where there is ``key``, rows of equal key are one result.

    Returns
    -------
    DataFrame
        Columns dataset, method, metric, mean, std (NaN for a single split or result), runs (the number of results). A
        value that is NaN on some split makes the mean NaN.
    """
    groups = scores.groupby(["dataset", "method", "metric"], sort=False)
    summary = groups["value"].agg(mean=exact_mean, std=lambda v: v.std(ddof=1, skipna=False))
    summary["runs"] = groups["key"].nunique() if "key" in scores else groups.size()
    summary["std"] = summary["std"].where(summary["runs"] != 1)
    return summary.reset_index()


def judge(
    printed: pd.DataFrame,
    ours: pd.DataFrame,
    known: Iterable[Erratum] = (),
    names: Aliases | None = None,
    conventions: str = "default",
    unavailable: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Compare every published cell with our results.

    Parameters
    ----------
    printed : DataFrame
        Published cells, see :func:`multilab.claims.published.read_cells`.
    ours : DataFrame
        Columns dataset, method, metric, mean, std, runs and, where it is known, sampling (the sampling error of the
        mean); at most one row each. ``metric`` may carry a preset: ``ranking_loss.mulan``.
    known : iterable of Erratum
        Cells they touch cite them; those with the effect ``not_comparable`` are not judged.
    names : Aliases, optional
        Our names and quantities for the published ones.
    conventions : str
        The preset that metrics without one were measured under.
    unavailable : mapping of str to str, optional
        Datasets whose data cannot be had, and why.

    Returns
    -------
    DataFrame
        One row per published cell, in their order, with :data:`COLUMNS`. ``uncertainty`` is the standard error u of the
        difference, u^2 = s_p^2 / r_p + s_o^2 / r_o + e^2 with the standard deviations s over r runs and the sampling
        error e of our mean; that of an average follows from its rows. The verdict is one of :data:`VERDICTS`:
        ``match`` if our mean equals the printed one at the printed number of decimals; else ``within`` if they differ
        by at most 2 u and half a unit of the last printed decimal; else ``better`` or ``worse`` where the cell has a
        direction,
        ``differs`` where it has none. ``not comparable`` cites an erratum; ``not printed`` is ours only; ``not run``
        where we have no result, with the excuse (data not available, DNF in the paper) or a reason that begins with
        :data:`MISSING`. ``group`` is one of :data:`GROUPS`.

    Raises
    ------
    ClaimsError
        If ``ours`` has two rows for one cell.
    """
    names = names or Aliases()
    cells = _with_uncertainty(_compared_with(printed, ours, names, conventions), names)
    cells = fill_derived(cells, names)
    of_data = (cells["method"] == "data") | cells["metric"].isin(DATA_METRICS)
    cells["group"] = np.where(of_data, "data", "result")
    cells.loc[any_of(cells, [rule.where for rule in names.derived]), "group"] = "derived"
    cells["dnf"] = any_of(cells, names.dnf)
    about = touched(cells, known)
    records: list[Any] = cells.to_dict("records")
    verdicts = [_verdict(cell, known, unavailable or {}) for cell, known in zip(records, about, strict=True)]
    cells["verdict"] = [verdict for verdict, _ in verdicts]
    cells["reason"] = [reason for _, reason in verdicts]
    cells["erratum"] = [" ".join(erratum.id for erratum in known) for known in about]
    return cells.rename(columns={"std": "printed_std"})[list(COLUMNS)].reset_index(drop=True)


def compared(verdicts: Iterable[str]) -> tuple[int, int, int, str]:
    """Return how many cells could be compared, of how many, how many of these agree, and that share as text."""
    counts = Counter(verdicts)
    agree = counts["match"] + counts["within"]
    known = agree + sum(counts[verdict] for verdict in BEYOND)
    return known, sum(counts.values()), agree, f"{100 * agree / known:.1f} %" if known else "–"


def _compared_with(printed: pd.DataFrame, ours: pd.DataFrame, names: Aliases, conventions: str) -> pd.DataFrame:
    """Return the published cells with the columns our_metric, our_mean, our_std."""
    key = ["dataset", "method", "metric"]
    repeated = ours[ours.duplicated(key)]
    if len(repeated):
        raise ClaimsError(f"two of our values for {', '.join(map(str, repeated.iloc[0][key]))}")
    named = names.named(printed, conventions)
    ours = ours.reindex(columns=[*key, "mean", "std", "runs", "sampling"])
    matched = named.rename(columns={"quantity": "metric"}).merge(ours, on=key, how="left", validate="many_to_one")
    scale = named["scale"].to_numpy()
    return printed.assign(
        our_metric=named["quantity"],
        our_mean=matched["mean"].to_numpy(dtype=float) * scale,
        our_std=matched["std"].to_numpy(dtype=float) * scale,
        runs=matched["runs"].to_numpy(dtype=float),
        sampling=matched["sampling"].to_numpy(dtype=float) * scale,
    )


def _with_uncertainty(cells: pd.DataFrame, names: Aliases) -> pd.DataFrame:
    """Return the cells with the standard error of the difference between ours and the printed number."""
    spread = any_of(cells, names.spread)
    runs = cells["runs"].fillna(1.0).clip(lower=1.0)
    printed = cells["std"].where(~spread).fillna(0.0) ** 2 / (names.runs or runs)
    ours = cells["our_std"].where(~spread).fillna(0.0) ** 2 / runs
    return cells.assign(uncertainty=np.sqrt(printed + ours + cells["sampling"].fillna(0.0) ** 2))


def _verdict(cell: Mapping[str, Any], about: list[Erratum], unavailable: Mapping[str, str]) -> tuple[str, str]:
    """Return verdict and reason of one cell."""
    if about and about[0].effect == "not_comparable":
        return "not comparable", about[0].why
    ours, paper = cell["our_mean"], cell["mean"]
    if math.isnan(ours):
        return "not run", _excuse(cell, unavailable)
    if math.isnan(paper):
        return "not printed", "the paper has no number here"
    verdict, reason = _compared(cell)
    right = next((e for e in about if e.right_number is not None and _equal(ours, e.right)), None)
    if right is not None and verdict != "match":
        reason += f"; ours equals {right.right}, see {right.id}"
    return verdict, reason


def _excuse(cell: Mapping[str, Any], unavailable: Mapping[str, str]) -> str:
    if cell["dataset"] in unavailable:
        return f"data not available: {unavailable[cell['dataset']]}"
    if cell["dnf"]:
        return "did not finish in the paper either"
    return f"{MISSING}{cell['method']} on {cell['dataset']} by {cell['our_metric']} is not in the study's results"


def _compared(cell: Mapping[str, Any]) -> tuple[str, str]:
    ours, paper, printed = cell["our_mean"], cell["mean"], str(cell["printed_mean"])
    if _equal(ours, printed):
        return "match", f"equal at {decimals(printed)} decimals"
    gap = ours - paper
    allowed = 2 * cell["uncertainty"] if cell["uncertainty"] > 0 else 0.0
    relative = f" ({abs(gap / paper):.1%})" if paper else ""
    reason = f"differs by {abs(gap):.4g}{relative}" + (f", two standard errors are {allowed:.4g}" if allowed else "")
    if allowed and abs(gap) <= allowed * (1 + 1e-9) + half_unit(printed):
        return "within", reason
    if cell["direction"] not in ("min", "max"):
        return "differs", reason
    return ("better" if (gap < 0) == (cell["direction"] == "min") else "worse"), reason


def _equal(ours: float, printed: str) -> bool:
    """Return whether a number rounds to a printed one; one halfway between two rounds to both."""
    return abs(ours - float(printed)) <= half_unit(printed)
