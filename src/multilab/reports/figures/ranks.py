"""Critical-difference diagrams of a comparison as figures."""

import math
from collections.abc import Mapping

from multilab.reports.data import ReportData
from multilab.reports.figures.diagrams import cd_diagram
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import new_axes, styled
from multilab.statistics import Comparison


def rank_figures(report: ReportData, comparison: Comparison) -> tuple[Figure, ...]:
    """Return the critical-difference diagrams of one metric; two if there is a control."""
    if comparison.cd_nemenyi is None:
        return ()
    level = f"α = {comparison.alpha:g}, {comparison.n} datasets"
    captions = {
        "nemenyi": f"Nemenyi, {level}: average ranks, best on the left; thick bars join methods that do not differ."
    }
    if comparison.control:
        control = report.method_title(comparison.control)
        captions["bonferroni-dunn"] = (
            f"Bonferroni–Dunn against {control}, {level}: methods inside the grey band do not differ from it."
        )
    titles = report.titles
    return tuple(
        rank_figure(
            comparison,
            titles,
            f"Average ranks by {comparison.metric} ({test}): {rank_text(comparison, titles)}",
            caption,
            test,
        )
        for test, caption in captions.items()
    )


@styled()
def rank_figure(
    comparison: Comparison, titles: Mapping[str, str], alt: str, caption: str, test: str = "nemenyi"
) -> Figure:
    """Return one critical-difference diagram, wide enough for the ranks of many methods."""
    canvas, axes = new_axes(4.9 + 0.25 * max(comparison.k - 7, 0), ranks_height(comparison, 0.9))
    cd_diagram(comparison, axes[0, 0], titles, test)
    return Figure.of(canvas, alt, caption, scale=114)


def ranks_height(comparison: Comparison, margin: float) -> float:
    """Return the height of a critical-difference diagram in inches."""
    return margin + 0.24 * math.ceil(comparison.k / 2) + 0.1 * len(comparison.groups)


def rank_text(comparison: Comparison, titles: Mapping[str, str]) -> str:
    """Return the methods with their average ranks, the best first."""
    order = sorted(comparison.ranks, key=lambda name: (comparison.ranks[name], name))
    return ", ".join(f"{titles.get(name, name)} {comparison.ranks[name]:.2f}" for name in order)
