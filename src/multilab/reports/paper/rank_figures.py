"""Published figures of critical-difference diagrams: average ranks from the published cells and from ours."""

from dataclasses import dataclass

from multilab.claims.paper import Paper
from multilab.claims.published import any_of
from multilab.reports.data import ReportData, metric_title
from multilab.reports.figures import Figure
from multilab.reports.paper.friedman import compare_cells, rank_diagram
from multilab.reports.paper.names import names_on_page
from multilab.reports.tables.entry import Entry
from multilab.reports.tables.scores import rank_entry
from multilab.statistics import Comparison


@dataclass(frozen=True)
class RankRow:
    """One measure: whose cells ("paper" or "ours"), their comparison, and the average rank of each method."""

    source: str
    test: Comparison
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class RankFigure:
    """All measures of a figure; its diagrams by measure, those of the published cells first."""

    number: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[RankRow, ...]
    figures: tuple[tuple[str, tuple[Figure, ...]], ...]


def paper_rank_figures(report: ReportData, paper: Paper | None) -> tuple[RankFigure, ...]:
    """Return the figures that ``names.yaml`` of the paper lists under ``diagrams``.

    Ours are ranks of the quantities under the published cells, over the datasets on which no value is missing.
    """
    if report.cells is None or paper is None:
        return ()
    names, shown = names_on_page(report, paper), []
    basis = report.cells[~any_of(report.cells, [rule.where for rule in paper.aliases.derived])]
    for figure in paper.aliases.diagrams:
        table = basis[basis["table"].isin(figure.tables)]
        methods = list(dict.fromkeys(table["method"]))
        rows, diagrams = [], []
        for metric, cells in table.groupby("metric", sort=False):
            drawn = []
            for column, source, values in (
                ("printed_mean", "paper", "the printed cells"),
                ("our_mean", "ours", "our values"),
            ):
                comparison = compare_cells(report, cells, column, str(metric))
                if comparison is not None:
                    entries = tuple(rank_entry(comparison, method) for method in methods)
                    rows.append(RankRow(source, comparison, entries))
                    drawn.append(rank_diagram(comparison, values, names))
            diagrams.append((metric_title(str(metric)), tuple(drawn)))
        heads = tuple(names("method", name) for name in methods)
        shown.append(RankFigure(str(figure.figure), figure.title, heads, tuple(rows), tuple(diagrams)))
    return tuple(shown)
