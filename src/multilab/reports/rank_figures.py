"""A printed figure of critical-difference diagrams made anew: average ranks from the printed cells and from ours."""

from __future__ import annotations

from dataclasses import dataclass

from multilab.claims import aliases, papers
from multilab.claims.naming import any_of
from multilab.reports.friedman import compared_cells, diagram
from multilab.reports.paper import Words
from multilab.reports.pictures import Picture
from multilab.reports.study import Study, metric_title
from multilab.reports.tables import Cell, number
from multilab.statistics import Comparison

__all__ = ["RankFigure", "RankRow", "rank_figures"]


@dataclass(frozen=True)
class RankRow:
    """One measure from one side: whose cells, the average rank of each method, and the test of their equality."""

    title: str
    source: str
    cells: tuple[Cell, ...]
    datasets: int
    F: str
    F_crit: str
    cd: str


@dataclass(frozen=True)
class RankFigure:
    """All measures of a figure; the diagrams by measure, from print first."""

    number: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[RankRow, ...]
    pictures: tuple[tuple[str, tuple[Picture, ...]], ...]


def rank_figures(study: Study, words: Words) -> tuple[RankFigure, ...]:
    """Return the figures that ``aliases.yaml`` lists under ``diagrams`` for the study's paper.

    Ours are ranks of the quantities that stand under the printed cells, over the datasets where nobody lacks one.
    """
    paper = study.info.get("paper")
    if study.cells is None or paper not in papers():
        return ()
    known = aliases(str(paper))
    basis = study.cells[~any_of(study.cells, [rule.where for rule in known.derived])]
    found = []
    for figure in known.diagrams:
        part = basis[basis["table"].isin(figure.tables)]
        methods = list(dict.fromkeys(part["method"]))
        rows, pictures = [], []
        for metric, cells in part.groupby("metric", sort=False):
            shown = []
            for value, source in (("printed_mean", "print"), ("our_mean", "ours")):
                uniform = str(cells["our_metric"].str.partition(".")[0].mode().iloc[0])
                comparison = compared_cells(study, cells, value, str(metric), uniform)
                if comparison is not None:
                    rows.append(_row(comparison, methods, source))
                    told = "the printed cells" if source == "print" else "our values"
                    shown.append(diagram(comparison, told, words))
            pictures.append((metric_title(str(metric)), tuple(shown)))
        heads = tuple(words("method", name) for name in methods)
        found.append(RankFigure(figure.figure, figure.title, heads, tuple(rows), tuple(pictures)))
    return tuple(found)


def _row(comparison: Comparison, methods: list[str], source: str) -> RankRow:
    best = min(comparison.ranks.values())
    return RankRow(
        title=metric_title(comparison.metric),
        source=source,
        cells=tuple(Cell(f"{comparison.ranks[m]:.2f}", best=comparison.ranks[m] == best) for m in methods),
        datasets=comparison.n,
        F=number(comparison.F),
        F_crit=number(comparison.F_crit, 4),
        cd=number(comparison.cd_nemenyi, 5),
    )
