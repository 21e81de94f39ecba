"""Published tables of Friedman's test and diagrams of average ranks, from the published cells and from ours."""

import math
from dataclasses import dataclass

import pandas as pd

from multilab.claims.paper import Paper
from multilab.claims.published import Derived, any_of, mask
from multilab.reports.data import ReportData, metric_direction, metric_title
from multilab.reports.figures import Figure
from multilab.reports.figures.diagrams import rank_figure, rank_text
from multilab.reports.paper.printed_cells import Names, names_on_page
from multilab.reports.tables.entry import Entry, number
from multilab.reports.tables.scores import rank_entry
from multilab.statistics import Comparison, compare_methods, summarise


@dataclass(frozen=True)
class FriedmanRow:
    """One measure of a published table of Friedman's test.

    ``printed`` is the published F_F, ``recomputed`` follows from the published cells, ``papers_definitions`` from our
    values of the quantities that the paper uses, ``one_definition`` from ``quantity`` for all methods. ``sizes`` are
    the numbers of datasets behind the last three; ``F_crit`` and ``cd`` belong to the last that could be computed.
    """

    title: str
    quantity: str
    printed: str
    recomputed: str
    papers_definitions: str
    one_definition: str
    sizes: tuple[int, ...]
    degrees: str
    F_crit: str
    cd: str
    rejected: str


@dataclass(frozen=True)
class FriedmanTable:
    """All measures of a published table of Friedman's test; ``other`` are its further cells: name and number."""

    table: str
    methods: tuple[str, ...]
    datasets: int
    rows: tuple[FriedmanRow, ...]
    other: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, tuple[Figure, ...]], ...]


def friedman_tables(report: ReportData, paper: Paper | None) -> dict[str, FriedmanTable]:
    """Return, by number, the published tables whose cells follow from others by Friedman's test.

    ``names.yaml`` of the paper lists them under ``derived`` with the tables they follow from.
    """
    if report.cells is None or paper is None:
        return {}
    names, tables = names_on_page(report, paper), {}
    basis = report.cells[~any_of(report.cells, [rule.where for rule in paper.aliases.derived])]
    for rule in paper.aliases.derived:
        cells = report.cells[mask(report.cells, rule.where)]
        if rule.kind == "friedman" and len(cells):
            table = str(cells["table"].iloc[0])
            tables[table] = _table(report, cells, basis[basis["table"].isin(rule.tables or (table,))], rule, names)
    return tables


def _table(report: ReportData, cells: pd.DataFrame, basis: pd.DataFrame, rule: Derived, names: Names) -> FriedmanTable:
    assert report.cells is not None
    number_of = str(cells["table"].iloc[0])
    rows, figures = [], []
    for metric, printed in zip(cells["metric"], cells["printed_mean"], strict=True):
        values = basis[basis["metric"] == metric]
        recomputed, theirs = (compare_cells(report, values, column, metric) for column in ("printed_mean", "our_mean"))
        ours = _compare_measured(report, values)
        rows.append(_row(metric, metric_title(main_quantity(values)), printed, recomputed, theirs, ours))
        diagrams = [(recomputed, "the printed cells"), (ours, "our values")]
        figures.append(
            (metric_title(metric), tuple(rank_diagram(c, source, names) for c, source in diagrams if c is not None))
        )
    others = report.cells[(report.cells["table"] == number_of) & ~mask(report.cells, rule.where)]
    return FriedmanTable(
        table=number_of,
        methods=tuple(names("method", name) for name in dict.fromkeys(basis["method"])),
        datasets=basis["dataset"].nunique(),
        rows=tuple(rows),
        other=tuple(zip(others["method"], others["printed_mean"], strict=True)),
        figures=tuple(figures),
    )


def main_quantity(cells: pd.DataFrame) -> str:
    """Return our quantity for most columns of a published measure, without its conventions."""
    return str(cells["our_metric"].str.partition(".")[0].mode().iloc[0])


def compare_cells(report: ReportData, cells: pd.DataFrame, column: str, metric: str) -> Comparison | None:
    """Compare the methods by one column of the published cells, over the datasets on which no value is missing.

    A cell that did not finish in the paper counts as last there.
    """
    cells = cells.assign(value=pd.to_numeric(cells[column], errors="coerce"))
    incomplete = set(cells.loc[cells["value"].isna() & (cells["printed_mean"] != ""), "dataset"])
    values = cells.pivot(index="dataset", columns="method", values="value")[list(dict.fromkeys(cells["method"]))]
    complete = [name for name in dict.fromkeys(cells["dataset"]) if name not in incomplete]
    return _compare(report, values.loc[complete], metric, main_quantity(cells))


def _compare_measured(report: ReportData, cells: pd.DataFrame) -> Comparison | None:
    """Compare the same methods by one quantity for all of them."""
    quantity = main_quantity(cells)
    datasets = [name for name in dict.fromkeys(cells["dataset"]) if name in report.datasets]
    means = summarise(report.scores, quantity, datasets, list(dict.fromkeys(cells["method"]))).mean
    return _compare(report, means.dropna(), quantity, quantity)


def _compare(report: ReportData, means: pd.DataFrame, metric: str, quantity: str) -> Comparison | None:
    if min(means.shape) < 2 or not metric_direction(quantity):
        return None
    return compare_methods(means, metric_direction(quantity), report.alpha, metric=metric, tie_correction=False)


def _row(
    metric: str,
    quantity: str,
    printed: str,
    recomputed: Comparison | None,
    papers_definitions: Comparison | None,
    one_definition: Comparison | None,
) -> FriedmanRow:
    basis = one_definition or papers_definitions or recomputed
    known = basis is not None and basis.F_crit is not None
    return FriedmanRow(
        title=metric_title(metric),
        quantity=quantity,
        printed=printed or "–",
        recomputed=_f_text(recomputed),
        papers_definitions=_f_text(papers_definitions),
        one_definition=_f_text(one_definition),
        sizes=tuple(c.n if c else 0 for c in (recomputed, papers_definitions, one_definition)),
        degrees=f"{basis.k - 1}, {(basis.k - 1) * (basis.n - 1)}" if basis and known else "–",
        F_crit=f"{basis.F_crit:.3f}" if basis and known else "–",
        cd=f"{basis.cd_nemenyi:.3f}" if basis and basis.cd_nemenyi is not None else "–",
        rejected={None: "", True: "yes", False: "no"}[one_definition.rejected if one_definition else None],
    )


def _f_text(comparison: Comparison | None) -> str:
    if comparison is None or comparison.F is None:
        return "–"
    return number(comparison.F) if math.isinf(comparison.F) else f"{comparison.F:.3f}"


def rank_diagram(comparison: Comparison, source: str, names: Names) -> Figure:
    """Return the critical-difference diagram of one measure with the paper's names; ``source`` says whose values."""
    titles = {name: names("method", name) for name in comparison.methods}
    caption = f"From {source}, by {metric_title(comparison.metric)}, {comparison.n} datasets, α = {comparison.alpha:g}."
    return rank_figure(comparison, titles, f"Average ranks: {rank_text(comparison, titles)}", caption)


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
