"""What to say of each printed cell: the number we have for it, the verdict, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from multilab.claims.derived import fill_derived
from multilab.claims.erratum import Erratum, touched
from multilab.claims.errors import ClaimsError
from multilab.claims.naming import Aliases, any_of
from multilab.statistics.summary import exact_mean

VERDICTS = ("match", "within", "better", "worse", "differs", "not comparable", "not printed", "not run")
BEYOND = ("better", "worse", "differs")
"""Verdicts on cells that could be compared and do not agree."""
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
    "verdict",
    "reason",
    "erratum",
)
MISSING = "no result: "
"""Beginning of the reason of a cell that was not run without an excuse; a finished study has none."""


def summarised(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sample standard deviation over the splits of long scores.

    Parameters
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value; where there is ``key``, rows of equal key are one result.

    Returns
    -------
    DataFrame
        Columns dataset, method, metric, mean, std (NaN for a single split or result). A value that is NaN on some
        split makes the mean NaN.
    """
    groups = scores.groupby(["dataset", "method", "metric"], sort=False)
    summary = groups["value"].agg(mean=exact_mean, std=lambda v: v.std(ddof=1, skipna=False))
    if "key" in scores:
        summary["std"] = summary["std"].where(groups["key"].nunique() != 1)
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
        Columns dataset, method, metric, mean, std; at most one row each. ``metric`` may carry a preset:
        ``ranking_loss.mulan``.
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
        One row per published cell, in their order, with :data:`COLUMNS`. The verdict is one of :data:`VERDICTS`:
        ``match`` if our mean equals the printed one at the printed number of decimals; else ``within`` if
        |ours - paper| <= 2 sqrt(s_p^2 + s_o^2), where a standard deviation is positive; else ``better`` or ``worse``
        where the cell has a direction, ``differs`` where it has none. ``not comparable`` cites an erratum; ``not
        printed`` is ours only; ``not run`` where we have no result, with the excuse (data not available, DNF
        in the paper) or a reason that begins with :data:`MISSING`.

    Raises
    ------
    ClaimsError
        If ``ours`` has two rows for one cell.
    """
    names = names or Aliases()
    cells = fill_derived(_compared_with(printed, ours, names, conventions), names)
    cells["spread"], cells["dnf"] = any_of(cells, names.spread), any_of(cells, names.dnf)
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


def decimals(printed: str) -> int:
    """Return the number of decimals of a printed number."""
    return len(printed.partition(".")[2])


def _compared_with(printed: pd.DataFrame, ours: pd.DataFrame, names: Aliases, conventions: str) -> pd.DataFrame:
    """Return the published cells with the columns our_metric, our_mean, our_std."""
    key = ["dataset", "method", "metric"]
    repeated = ours[ours.duplicated(key)]
    if len(repeated):
        raise ClaimsError(f"two of our values for {', '.join(map(str, repeated.iloc[0][key]))}")
    named = names.named(printed, conventions)
    matched = named.rename(columns={"quantity": "metric"}).merge(
        ours[[*key, "mean", "std"]], on=key, how="left", validate="many_to_one"
    )
    scale = named["scale"].to_numpy()
    return printed.assign(
        our_metric=named["quantity"],
        our_mean=matched["mean"].to_numpy(dtype=float) * scale,
        our_std=matched["std"].to_numpy(dtype=float) * scale,
    )


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
    spreads = [s for s in (cell["std"], cell["our_std"]) if not math.isnan(s) and s > 0]
    allowed = 2 * math.hypot(*spreads) if spreads else 0.0
    reason = f"differs by {abs(gap):.4g}" + (f", two standard deviations are {allowed:.4g}" if spreads else "")
    if spreads and not cell["spread"] and abs(gap) <= allowed + 1e-12:
        return "within", reason
    if cell["direction"] not in ("min", "max"):
        return "differs", reason
    return ("better" if (gap < 0) == (cell["direction"] == "min") else "worse"), reason


def _equal(ours: float, printed: str) -> bool:
    """Return whether a number rounds to a printed one; one halfway between two rounds to both."""
    return abs(ours - float(printed)) <= 0.5 * 10.0 ** -decimals(printed) * (1 + 1e-9)
