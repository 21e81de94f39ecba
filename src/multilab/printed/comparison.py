"""Printed results next to ours: the difference, and how large it is next to the spread of both."""

from __future__ import annotations

import numpy as np
import pandas as pd

from multilab.printed.errors import PaperError
from multilab.printed.published import PublishedTables, mask
from multilab.statistics.summary import exact_mean

_CELL = ["dataset", "method", "metric"]


def summarised(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and sample standard deviation over the splits of long scores.

    Parameters
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value; where there is ``key``, rows of equal key are one result, and
        where there is ``test_set``, the number of a set of test rows, results on the same rows are averaged first.

    Returns
    -------
    DataFrame
        Columns dataset, method, metric, mean, std (NaN for a single split or result), runs. ``runs`` is the number of
        test sets, or of results if all have the same test rows. A value that is NaN on some split makes the mean NaN.
    """
    groups = scores.groupby(_CELL, sort=False)
    summary = groups["value"].agg(mean=exact_mean, std=lambda v: v.std(ddof=1, skipna=False))
    summary["runs"] = groups["key"].nunique() if "key" in scores else groups.size()
    if "test_set" in scores:
        by_set = scores.groupby([*_CELL, "test_set"], sort=False)["value"].agg(exact_mean).groupby(_CELL, sort=False)
        several = by_set.size().reindex(summary.index).gt(1) & by_set.size().reindex(summary.index).lt(groups.size())
        summary.loc[several, "std"] = by_set.agg(lambda v: v.std(ddof=1, skipna=False))
        summary.loc[several, "runs"] = by_set.size()
    summary["std"] = summary["std"].where(summary["runs"] != 1)
    return summary.reset_index()


def compare_printed(tables: PublishedTables, ours: pd.DataFrame, conventions: str = "default") -> pd.DataFrame:
    """Return the printed results that we have a number for, next to it.

    Parameters
    ----------
    tables : PublishedTables
        Printed numbers, and our names for theirs. Numbers with an erratum whose effect is ``not_comparable`` are left
        out.
    ours : DataFrame
        Columns dataset, method, metric, mean, std, runs (see :func:`summarised`) and, where it is known, sampling (the
        sampling error of the mean). ``metric`` may carry a preset: ``ranking_loss.mulan``.
    conventions : str
        The preset that metrics without one were measured under.

    Returns
    -------
    DataFrame
        Columns table, dataset, method, metric (as printed), our_method, our_metric, printed, text (as printed), ours,
        difference (ours - printed), spread and distance (the difference in units of the spread, NaN without one).
        ``spread`` is the standard error of the difference: its square is s^2 / r of the printed and of our number,
        with the standard deviation s over r runs, plus the square of the sampling error of our test rows where these
        are not the paper's own.

    Raises
    ------
    PaperError
        If ``ours`` has two rows for one cell.
    """
    if ours.duplicated(_CELL).any():
        repeated = ours[ours.duplicated(_CELL)].iloc[0]
        raise PaperError(f"two of our values for {', '.join(map(str, repeated[_CELL]))}")
    cells, aliases = tables.cells, tables.aliases
    refused = [erratum.where for erratum in tables.errata if erratum.effect == "not_comparable"]
    cells = cells[~np.any([mask(cells, where) for where in refused], axis=0)] if refused else cells
    named = aliases.named(cells, conventions).rename(columns={"quantity": "metric"})
    found = named.merge(
        ours.reindex(columns=[*_CELL, "mean", "std", "runs", "sampling"]), on=_CELL, how="left", validate="many_to_one"
    ).set_index(cells.index)
    scale, runs = found["scale"], found["runs"].fillna(1.0).clip(lower=1.0)
    same_rows = np.any([mask(cells, where) for where in aliases.same_rows], axis=0) if aliases.same_rows else False
    sampling = (found["sampling"].astype(float) * scale).where(~pd.Series(same_rows, index=cells.index)).fillna(0.0)
    variance = cells["std"].fillna(0.0) ** 2 / (aliases.runs or runs) + (found["std"].fillna(0.0) * scale) ** 2 / runs
    shown = pd.DataFrame(
        {
            **{name: cells[name] for name in ("table", *_CELL)},
            "our_method": found["method"],
            "our_metric": found["metric"],
            "printed": cells["mean"],
            "text": cells["printed_mean"],
            "ours": found["mean"] * scale,
        }
    )
    shown["difference"] = shown["ours"] - shown["printed"]
    shown["spread"] = np.sqrt(variance + sampling**2)
    shown["distance"] = (shown["difference"] / shown["spread"]).where(shown["spread"] > 0)
    return shown.dropna(subset=["printed", "ours"]).reset_index(drop=True)
