"""The ten best methods of a study by average rank, and which of them are not told apart from the first."""

from multilab.reports.data import ReportData, metric_title
from multilab.reports.tables.entry import ARROWS, Entry, TextTable, number
from multilab.reports.tables.scores import rank_entry
from multilab.statistics import Comparison

LEADERS = 10


def leaders(report: ReportData) -> TextTable | None:
    """Return the best methods by the headline metric, ``None`` if the methods are not ranked."""
    metric = report.primary[0]
    comparison = report.comparisons.get(metric)
    if comparison is None or comparison.k < 2 or not comparison.ranks:
        return None
    means = report.summaries[metric].mean.loc[list(comparison.datasets)].mean()
    level = not_told_apart(comparison)
    best = sorted(comparison.ranks, key=lambda method: (comparison.ranks[method], comparison.methods.index(method)))
    rows = []
    for method in best[:LEADERS]:
        test = () if level is None else (Entry("yes" if method in level else "no"),)
        rows.append(
            (report.method_title(method), (rank_entry(comparison, method), Entry(number(means[method])), *test))
        )
    head = f"{metric_title(metric)} {ARROWS[comparison.direction]}, mean"
    heads = ("Average rank", head, *(() if level is None else ("Not told apart from the first",)))
    return TextTable("Method", heads, tuple(rows))


def not_told_apart(comparison: Comparison) -> tuple[str, ...] | None:
    """Return the methods that are not shown to be worse than the best, which is among them.

    These are all methods where the test of all of them together finds no difference, else those within Nemenyi's
    critical difference of the best average rank; ``None`` without a test.
    """
    if comparison.cd_nemenyi is None:
        return None
    if not comparison.rejected:
        return comparison.methods
    limit = min(comparison.ranks.values()) + comparison.cd_nemenyi
    return tuple(method for method in comparison.methods if comparison.ranks[method] <= limit)
