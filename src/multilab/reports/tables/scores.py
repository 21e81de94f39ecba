"""Tables of scores and of ranks: best in bold, the average rank apart."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from multilab.reports.data import ReportData, metric_direction, metric_title
from multilab.reports.tables.entry import ARROWS, Entry, Row, TextTable, number, p_text
from multilab.statistics import Comparison, rank_rows

MANY_METHODS = 8
"""Tables of more methods have them as rows, so that the best are seen first and nothing is cut off at the right."""


def score_table(report: ReportData, metric: str) -> TextTable:
    """Return the means and standard deviations of one metric, with the average ranks of its comparison.

    More than eight methods are the rows, the best average rank first; fewer are the columns. The columns of variants
    that are shown in the study's own tables come last, without ranks; their values may be the best of a data set.
    Values up to about one have four decimals, larger ones three, as in the papers; ranks and best values are those of
    the unrounded means.
    """
    extra = report.extra_columns
    methods = (*report.methods, *extra)
    summary = replace(report.board, methods=methods).summary(metric) if extra else report.summaries[metric]
    comparison = report.comparisons.get(metric)
    largest = summary.mean.abs().max().max()
    decimals = 4 if math.isnan(largest) or largest < 1.5 else 3
    direction = comparison.direction if comparison else ""
    ranks = rank_rows(summary.mean, direction) if direction else pd.DataFrame(math.nan, *summary.mean.axes)
    known = ranks.where(summary.mean.notna())
    best = known.eq(known.min(axis="columns"), axis="index")
    entries = {
        (dataset, method): _entry(mean, summary.std.loc[dataset, method], best.loc[dataset, method], decimals)
        for dataset, means in summary.mean.iterrows()
        for method, mean in means.items()
    }
    ranked = comparison is not None and comparison.k > 1 and bool(comparison.ranks)
    average = {m: rank_entry(comparison, m) for m in methods} if comparison is not None and ranked else {}
    corner = f"{metric_title(metric)} {ARROWS[metric_direction(metric)]}".strip()
    titles = {method: report.method_title(method) for method in methods}
    if len(methods) > MANY_METHODS:
        rows = tuple(
            (titles[m], (*([average[m]] if ranked else []), *(entries[d, m] for d in report.datasets)))
            for m in best_first(methods, comparison)
        )
        return TextTable(corner, (*(["Average rank"] if ranked else []), *report.datasets), rows)
    foot = (("Average rank", tuple(average.values())),) if ranked else ()
    rows = tuple((d, tuple(entries[d, m] for m in methods)) for d in report.datasets)
    return TextTable(corner, tuple(titles.values()), rows, foot)


def rank_table(report: ReportData) -> TextTable | None:
    """Return the average ranks of the methods by every metric and the tests of all methods together.

    ``None`` if no metric ranks them.
    """
    ranked = {m: c for m in report.metrics if (c := report.comparisons.get(m)) is not None and c.k > 1 and c.ranks}
    if not ranked:
        return None
    comparisons = tuple(ranked.values())
    order = best_first(report.methods, report.comparisons.get(report.primary[0]))
    rows = tuple((report.method_title(m), tuple(rank_entry(c, m) for c in comparisons)) for m in order)
    tests = {
        "Friedman χ²": [number(c.chi2) for c in comparisons],
        "p": [p_text(c.chi2_p, "") for c in comparisons],
        "Iman–Davenport F": [number(c.F) for c in comparisons],
        "p of F": [p_text(c.p, "") for c in comparisons],
        "Critical difference (Nemenyi)": [number(c.cd_nemenyi) for c in comparisons],
    }
    foot: tuple[Row, ...] = tuple((title, tuple(map(Entry, texts))) for title, texts in tests.items())
    heads = tuple(f"{metric_title(metric)} {ARROWS[metric_direction(metric)]}" for metric in ranked)
    return TextTable("Average rank", heads, rows, foot)


def _entry(mean: float, std: float, best: bool, decimals: int) -> Entry:
    if math.isnan(mean):
        return Entry("–")
    return Entry(f"{mean:.{decimals}f}", "" if math.isnan(std) else f"{std:.{decimals}f}", bool(best))


def best_first(methods: Sequence[str], comparison: Comparison | None) -> list[str]:
    """Return methods by average rank; those without a rank are last and stay in their order."""
    ranks = comparison.ranks if comparison is not None else {}
    return sorted(methods, key=lambda method: ranks.get(method, math.inf))


def rank_entry(comparison: Comparison, method: str) -> Entry:
    """Return the average rank of a method as an entry, a dash if it has none."""
    if method not in comparison.ranks:
        return Entry("–")
    rank = comparison.ranks[method]
    return Entry(f"{rank:.2f}", best=rank == min(comparison.ranks.values()))
