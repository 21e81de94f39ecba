"""Verdicts on printed cells: our number for each, the verdict, and the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from multilab.claims.agreement import AGREE, BEYOND
from multilab.claims.errors import ClaimsError
from multilab.claims.published import Aliases, Derived, PublishedTables, any_of, mask, printed_number, rounds_to
from multilab.claims.statements import Erratum, touched
from multilab.statistics import friedman, iman_davenport, nemenyi_cd, rank_rows
from multilab.statistics.summary import exact_mean

if TYPE_CHECKING:
    from multilab.datasets import Dataset

VERDICTS = ("match", "within", "better", "worse", "differs", "not comparable", "not read", "not printed", "not run")
GROUPS = ("result", "derived", "data")
"""Kinds of published cells: a result of a method; a number that follows from other cells; a property of a dataset."""
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
    "other_method",
    "other_verdict",
)
DATA_METRICS = ("label_count", "label_frequency")
"""Properties of single labels; ``method`` is the label there."""
NO_RESULT = "no result yet"
"""Beginning of the reason of a cell that was not run without an excuse; a finished study has none."""


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
    cell = ["dataset", "method", "metric"]
    groups = scores.groupby(cell, sort=False)
    summary = groups["value"].agg(mean=exact_mean, std=lambda v: v.std(ddof=1, skipna=False))
    summary["runs"] = groups["key"].nunique() if "key" in scores else groups.size()
    if "test_set" in scores:
        by_set = scores.groupby([*cell, "test_set"], sort=False)["value"].agg(exact_mean).groupby(cell, sort=False)
        several = by_set.size().reindex(summary.index).gt(1) & by_set.size().reindex(summary.index).lt(groups.size())
        summary.loc[several, "std"] = by_set.agg(lambda v: v.std(ddof=1, skipna=False))
        summary.loc[several, "runs"] = by_set.size()
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
        Datasets whose data are unavailable, and why.

    Returns
    -------
    DataFrame
        One row per published cell, in their order, with :data:`COLUMNS`. ``uncertainty`` is the standard error u of the
        difference, u^2 = s_p^2 / r_p + s_o^2 / r_o + e^2 with the standard deviations s over r runs and the sampling
        error e of our mean; that of an average follows from its rows. The verdict is one of :data:`VERDICTS`:
        ``match`` if our mean equals the printed one at the printed number of decimals; else ``within`` if they differ
        by at most 2 u and half a unit of the last printed decimal; else ``better`` or ``worse`` where the cell has a
        direction, ``differs`` where it has none. ``not comparable`` cites an erratum; ``not printed`` is ours only, and
        so is ``not read``, where the paper has a number that nobody transcribed; ``not run`` where we have no result,
        with the excuse (data not available, DNF in the paper) or :data:`NO_RESULT`.
        ``group`` is one of :data:`GROUPS`. ``other_method`` is the column of another published method
        that agrees with most results of this cell's method, ``other_verdict`` the verdict on it.

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
    cells[["other_method", "other_verdict"]] = _best_others(cells, printed, ours, names, conventions)
    return cells.rename(columns={"std": "printed_std"})[list(COLUMNS)].reset_index(drop=True)


def judge_tables(
    tables: PublishedTables,
    ours: pd.DataFrame,
    conventions: str = "default",
    unavailable: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return the verdict on every published cell of a paper, see :func:`judge`."""
    return judge(tables.cells, ours, tables.errata, tables.aliases, conventions, unavailable)


def _best_others(
    cells: pd.DataFrame, printed: pd.DataFrame, ours: pd.DataFrame, names: Aliases, conventions: str
) -> pd.DataFrame:
    """Return, per published result, the column of another published method that agrees with most of its method's."""
    best = pd.DataFrame("", index=cells.index, columns=["other_method", "other_verdict"])
    compared = cells.index[(cells["group"] == "result") & cells["verdict"].isin([*AGREE, *BEYOND])]
    columns = names.named(printed.loc[compared], conventions)["method"]
    for _, rows in printed.loc[compared].groupby("method", sort=False):
        counts: dict[str, tuple[int, pd.DataFrame]] = {}
        for other in sorted(set(columns) - set(columns[rows.index])):
            of_other = _with_uncertainty(_compared_with(rows, ours, names, conventions, other), names)
            records: list[Any] = of_other.to_dict("records")
            verdicts = ["not run" if math.isnan(one["our_mean"]) else _compared(one)[0] for one in records]
            shown = pd.DataFrame({"other_method": other, "other_verdict": verdicts}, index=rows.index)
            counts[other] = sum(verdict in AGREE for verdict in verdicts), shown
        if counts:
            best.loc[rows.index] = max(counts.values(), key=lambda one: one[0])[1]
    return best


def _compared_with(
    printed: pd.DataFrame, ours: pd.DataFrame, names: Aliases, conventions: str, column: str | None = None
) -> pd.DataFrame:
    """Return the published cells with the columns our_metric, our_mean, our_std; of one column if named."""
    key = ["dataset", "method", "metric"]
    repeated = ours[ours.duplicated(key)]
    if len(repeated):
        raise ClaimsError(f"two of our values for {', '.join(map(str, repeated.iloc[0][key]))}")
    named = names.named(printed, conventions)
    if column is not None:
        named["method"] = column
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
    """Return the cells with the standard error of the difference between ours and the printed number.

    Where rows are the paper's own, their sampling error is in both numbers and no part of the difference.
    """
    sampling = cells["sampling"].where(~any_of(cells, names.same_rows)).fillna(0.0)
    spread = any_of(cells, names.spread)
    runs = cells["runs"].fillna(1.0).clip(lower=1.0)
    printed = cells["std"].where(~spread).fillna(0.0) ** 2 / (names.runs or runs)
    ours = cells["our_std"].where(~spread).fillna(0.0) ** 2 / runs
    return cells.assign(uncertainty=np.sqrt(printed + ours + sampling**2))


def _verdict(cell: Mapping[str, Any], about: list[Erratum], unavailable: Mapping[str, str]) -> tuple[str, str]:
    """Return verdict and reason of one cell."""
    if about and about[0].effect == "not_comparable":
        return "not comparable", about[0].why
    ours, paper = cell["our_mean"], cell["mean"]
    if math.isnan(ours):
        return "not run", _excuse(cell, unavailable)
    if math.isnan(paper):
        if unread := next((one for one in about if one.effect == "not_read"), None):
            return "not read", unread.why
        return "not printed", "the paper has no number here"
    verdict, reason = _compared(cell)
    right = next((e for e in about if e.right_number is not None and rounds_to(ours, e.right)), None)
    if right is not None and verdict != "match":
        reason += f"; ours equals {right.right}, see {right.id}"
    return verdict, reason


def _excuse(cell: Mapping[str, Any], unavailable: Mapping[str, str]) -> str:
    if cell["dataset"] in unavailable:
        return f"data not available: {unavailable[cell['dataset']]}"
    if cell["dnf"]:
        return "did not finish in the paper either"
    return NO_RESULT


def _compared(cell: Mapping[str, Any]) -> tuple[str, str]:
    ours, paper, printed = cell["our_mean"], cell["mean"], str(cell["printed_mean"])
    if rounds_to(ours, printed):
        return "match", f"equal at {printed_number(printed).decimals} decimals"
    gap = ours - paper
    allowed = 2 * cell["uncertainty"] if cell["uncertainty"] > 0 else 0.0
    relative = f" ({abs(gap / paper):.1%})" if paper else ""
    reason = f"differs by {abs(gap):.4g}{relative}" + (f", two standard errors are {allowed:.4g}" if allowed else "")
    if allowed and printed_number(printed).holds(ours, slack=allowed):
        return "within", reason
    if cell["direction"] not in ("min", "max"):
        return "differs", reason
    return ("better" if (gap < 0) == (cell["direction"] == "min") else "worse"), reason


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
            [round(v, printed_number(text).decimals) for v, text in zip(rows[value], rows["printed_mean"], strict=True)]
        )
        return float(values.mean()), float(values.std(ddof=1))
    ranks = rank_rows(rows.pivot(index="dataset", columns="method", values=value), rows["direction"].iloc[0])
    if rule.kind == "average_rank":
        return float(ranks[cell["method"]].mean()), np.nan
    n, k = ranks.shape
    return iman_davenport(friedman(ranks.to_numpy(), tie_correction=False), n, k).F, np.nan


def data_rows(data: Dataset) -> pd.DataFrame:
    """Return a data set's numbers in the form of results: columns dataset, method, metric, mean, std.

    ``method`` is ``data`` for the complete set (n_instances, n_features before one-hot coding, n_labels,
    label_cardinality; train_label_cardinality and test_label_cardinality with the standard deviation over instances,
    ddof = 1, where the set has an official split) and a label's name for its label_count and label_frequency.
    """
    n, q = data.Y.shape
    sizes = data.Y.sum(axis=1, dtype=float)
    rows: list[tuple[str, str, float, float]] = [
        ("data", "n_instances", n, np.nan),
        ("data", "n_features", data.features or data.X.shape[1], np.nan),
        ("data", "n_labels", q, np.nan),
        ("data", "label_cardinality", float(sizes.mean()), np.nan),
    ]
    if "official" in data.splits:
        for part, index in zip(("train", "test"), data.splits["official"], strict=True):
            mean, std = float(sizes[index].mean()), float(sizes[index].std(ddof=1))
            rows.append(("data", f"{part}_label_cardinality", mean, std))
    for name, count in zip(data.label_names, data.Y.sum(axis=0, dtype=int), strict=True):
        rows += [(name, "label_count", int(count), np.nan), (name, "label_frequency", int(count) / n, np.nan)]
    table = pd.DataFrame(rows, columns=["method", "metric", "mean", "std"])
    return table.assign(dataset=data.name).drop_duplicates(["method", "metric"])
