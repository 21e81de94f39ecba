"""Our values for published cells that follow from others: averages, average ranks, F_F, critical differences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from multilab.claims.errors import ClaimsError
from multilab.claims.naming import Aliases, Derived, any_of, decimals
from multilab.claims.selectors import mask
from multilab.statistics import friedman, iman_davenport, nemenyi_cd, rank_rows


def fill_derived(cells: pd.DataFrame, known: Aliases, value: str = "our_mean", spread: str = "our_std") -> pd.DataFrame:
    """Return the cells with the derived ones computed from the others.

    Parameters
    ----------
    cells : DataFrame
        Printed cells with the columns ``value`` and ``spread``. A derived cell is filled only where every cell it
        follows from has a value; a cell the paper has no number for (DNF) may lack one and counts as last.
    known : Aliases
        Says which cells follow from which.
    value, spread : str
        Columns to read and fill; ``mean`` and ``std`` recompute the paper's own arithmetic.

    Notes
    -----
    ``mean`` is the mean over the data sets of the same table, each rounded as it is printed, with the standard
    deviation over them (ddof = 1) and, where the cells have one, the uncertainty that follows from theirs,
    ``average_rank`` the average rank over them, ``friedman`` Iman and Davenport's F_F without correction for ties as
    the papers print it, ``nemenyi_cd`` the critical difference at .05.
    """
    filled = cells.copy()
    basis = cells[~any_of(cells, [rule.where for rule in known.derived])]
    for rule in known.derived:
        for row in cells.index[mask(cells, rule.where)]:
            rows = _rows(cells.loc[row], rule, basis)
            filled.loc[row, [value, spread]] = _value(cells.loc[row], rule, rows, value)
            if "uncertainty" in filled:
                error = float(np.sqrt(np.square(rows["uncertainty"]).sum())) / max(len(rows), 1)
                filled.loc[row, "uncertainty"] = error if rule.kind == "mean" else 0.0
    return filled


def _rows(cell: pd.Series, rule: Derived, basis: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that a derived one follows from."""
    rows = basis[basis["table"].isin(rule.tables or (cell["table"],))]
    if cell["metric"] != "all":
        rows = rows[rows["metric"] == cell["metric"]]
    return rows[rows["method"] == cell["method"]] if rule.kind == "mean" else rows


def _value(cell: pd.Series, rule: Derived, rows: pd.DataFrame, value: str) -> tuple[float, float]:
    if rule.kind == "nemenyi_cd":
        return nemenyi_cd(rows["method"].nunique(), rows["dataset"].nunique()), np.nan
    if rows.empty or (rows[value].isna() & rows["printed_mean"].notna()).any():
        return np.nan, np.nan
    if rule.kind == "mean":
        values = pd.Series(
            [round(v, decimals(text)) for v, text in zip(rows[value], rows["printed_mean"].astype(str), strict=True)]
        )
        return float(values.mean()), float(values.std(ddof=1))
    ranks = rank_rows(rows.pivot(index="dataset", columns="method", values=value), rows["direction"].iloc[0])
    if rule.kind == "average_rank":
        return float(ranks[cell["method"]].mean()), np.nan
    if rule.kind == "friedman":
        n, k = ranks.shape
        return iman_davenport(friedman(ranks.to_numpy(), tie_correction=False), n, k).F, np.nan
    raise ClaimsError(f"names.yaml: a derived cell cannot be a {rule.kind!r}")
