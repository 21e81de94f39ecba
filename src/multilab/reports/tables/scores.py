"""Tables of scores: mean and spread, best in bold, the average rank apart."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from multilab.reports.data import ReportData, metric_direction, metric_title
from multilab.reports.tables.entry import ARROWS, Entry
from multilab.statistics import Comparison, Summary, rank_rows

MANY_METHODS = 8
"""Tables of more methods have them as rows, so that the best are seen first and nothing is cut off at the right."""


@dataclass(frozen=True)
class ScoreTable:
    """One quantity over datasets and methods, ready to print.

    Attributes
    ----------
    title : str
        Name of the quantity.
    heads : tuple of str
        Display names of the methods.
    rows : tuple of (str, tuple of Entry)
        One per dataset.
    order : tuple of int
        Positions of the methods, the best average rank first, those without a rank last.
    metric : str
        Key of the metric; empty for a cost.
    arrow : str
        "↓" or "↑" where small or large is good, empty if unknown.
    unit : str
        Unit of a cost.
    average_ranks : tuple of Entry
        Empty if the methods are not ranked.
    decimals : int
        Of the values of a metric.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    order: tuple[int, ...]
    metric: str = ""
    arrow: str = ""
    unit: str = ""
    average_ranks: tuple[Entry, ...] = ()
    decimals: int = 0

    @property
    def spread(self) -> bool:
        """Whether any standard deviation is printed."""
        return any(entry.std for _, entries in self.rows for entry in entries)

    @property
    def corner(self) -> str:
        """Text of the first cell of the header: the title with its arrow or unit."""
        return f"{self.title} ({self.unit})" if self.unit else f"{self.title} {self.arrow}"


@dataclass(frozen=True)
class MethodRow:
    """One method of a table with methods as rows: its name, its average rank if known, its entry for each dataset."""

    head: str
    average_rank: Entry | None
    entries: tuple[Entry, ...]


def method_rows(table: ScoreTable) -> tuple[MethodRow, ...]:
    """Return the rows of a table with the methods as rows, the best first."""
    ranks, columns = table.average_ranks, [entries for _, entries in table.rows]
    return tuple(
        MethodRow(table.heads[i], ranks[i] if ranks else None, tuple(entries[i] for entries in columns))
        for i in table.order
    )


def score_table(report: ReportData, metric: str) -> ScoreTable:
    """Return the table of one metric; average ranks are those of the study's :class:`Comparison`.

    The columns of variants that are shown in the study's own tables come last, without ranks; their values may be the
    best of a dataset. Values up to about one have four decimals, larger ones three, as in the papers; ranks and best
    values are those of the unrounded means.
    """
    extra = report.extra_columns
    methods = (*report.methods, *extra)
    summary = replace(report.board, methods=methods).summary(metric) if extra else report.summaries[metric]
    comparison = report.comparisons.get(metric)
    largest = summary.mean.abs().max().max()
    decimals = 4 if math.isnan(largest) or largest < 1.5 else 3
    average = comparison.ranks if comparison else {}
    return ScoreTable(
        title=metric_title(metric),
        heads=tuple(report.method_title(m) for m in methods),
        rows=table_rows(summary, comparison.direction if comparison else "", lambda v: f"{v:.{decimals}f}"),
        order=best_first(average.get(m, math.inf) for m in methods),
        metric=metric,
        arrow=ARROWS[metric_direction(metric)],
        average_ranks=_average_ranks(methods, comparison),
        decimals=decimals,
    )


def table_rows(
    summary: Summary, direction: str, text: Callable[[float], str]
) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """Return the rows of a table: per dataset an entry for each method; without a direction none is the best."""
    rows = []
    ranks = rank_rows(summary.mean, direction) if direction else pd.DataFrame(math.nan, *summary.mean.axes)
    for dataset, means in summary.mean.iterrows():
        known, spread = ranks.loc[dataset].where(means.notna()), summary.std.loc[dataset]
        entries = [_entry(means[name], spread[name], bool(known[name] == known.min()), text) for name in means.index]
        rows.append((str(dataset), tuple(entries)))
    return tuple(rows)


def _entry(mean: float, std: float, best: bool, text: Callable[[float], str]) -> Entry:
    return Entry("–") if math.isnan(mean) else Entry(text(mean), "" if math.isnan(std) else text(std), best)


def best_first(ranks: Iterable[float] | pd.Series) -> tuple[int, ...]:
    """Return the positions of ranks in ascending order; equal ranks stay in their order."""
    values = list(ranks)
    return tuple(sorted(range(len(values)), key=values.__getitem__))


def _average_ranks(methods: Sequence[str], comparison: Comparison | None) -> tuple[Entry, ...]:
    if comparison is None or comparison.k < 2 or not comparison.ranks:
        return ()
    return tuple(rank_entry(comparison, m) if m in comparison.ranks else Entry("–") for m in methods)


def rank_entry(comparison: Comparison, method: str) -> Entry:
    """Return the average rank of a method as an entry."""
    rank = comparison.ranks[method]
    return Entry(f"{rank:.2f}", best=rank == min(comparison.ranks.values()))
