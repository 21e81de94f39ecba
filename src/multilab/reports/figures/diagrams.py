"""Diagrams, readable in grey: critical differences as figures; heat maps on given axes."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from multilab.reports.data import ReportData
from multilab.reports.errors import ReportError
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import INK, PALE, colour_scale, new_axes, style_axes, styled
from multilab.statistics import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.image import AxesImage

_STEP = 0.42  # height of a line of names, in units of the axis


def cd_diagram(
    comparison: Comparison, ax: Axes, titles: Mapping[str, str] | None = None, test: str = "nemenyi"
) -> None:
    """Draw average ranks with the differences that a post-hoc test does not find significant.

    Parameters
    ----------
    comparison : Comparison
        The one result that tables read too; at least two methods and one dataset.
    ax : matplotlib Axes
        Emptied of its frame; about 0.3 inch of height per pair of methods, plus 1 inch.
    titles : mapping, optional
        Printed names of methods.
    test : {"nemenyi", "bonferroni-dunn"}
        Nemenyi: thick bars join methods that do not differ. Bonferroni-Dunn: the grey band holds the methods
        that do not differ from the control.

    Raises
    ------
    ReportError
        For an unknown test, one without a control, or a comparison that has no critical difference.

    Notes
    -----
    J. Demsar (2006), JMLR 7, figures 1 and 2. The best method is on the left.
    """
    cd = {"nemenyi": comparison.cd_nemenyi, "bonferroni-dunn": comparison.cd_bonferroni_dunn}.get(test)
    if cd is None or (test == "bonferroni-dunn" and comparison.control is None):
        raise ReportError(f"no {test} diagram of {comparison.metric or 'this comparison'}: nothing to compare")
    ranks, k = comparison.ranks, comparison.k
    bars = _stack([(ranks[g[0]], ranks[g[-1]]) for g in comparison.groups]) if test == "nemenyi" else []
    top = 0.55 + 0.22 * max((level + 1 for *_, level in bars), default=0)
    bottom = top + _STEP * ((k + 1) // 2)
    margin = 0.34 * max(k - 1, 2)
    ax.set(xlim=(1 - margin, k + margin), ylim=(bottom, -1.25))
    _rank_axis(ax, k, cd)
    _names(ax, comparison, titles or {}, top, 0.04 * margin)
    for low, high, level in bars:
        y = 0.3 + 0.22 * level
        ax.plot([low - 0.03, high + 0.03], [y, y], color=INK, lw=4, solid_capstyle="butt")
    if test == "bonferroni-dunn":
        centre = ranks[str(comparison.control)]
        low, high = max(centre - cd, 1), min(centre + cd, k)
        ax.fill_betweenx([-0.14, bottom], low, high, color=PALE, lw=0, zorder=0)


def _rank_axis(ax: Axes, k: int, cd: float) -> None:
    """Draw the axis of ranks from 1 to k, and the critical difference above it."""
    ax.axis("off")
    ax.hlines(0, 1, k, color=INK, lw=1.1)
    ax.vlines(range(1, k + 1), -0.14, 0, color=INK, lw=1.1)
    for rank in range(1, k + 1):
        ax.text(rank, -0.24, str(rank), ha="center", va="bottom", color=INK, fontsize=8)
    if cd <= k - 1:
        ax.plot([1, 1 + cd], [-0.85, -0.85], color=INK, lw=1.1)
        ax.vlines([1, 1 + cd], -0.95, -0.75, color=INK, lw=1.1)
        centre, label = 1 + cd / 2, f"CD = {cd:.3f}"
    else:
        centre, label = (1 + k) / 2, f"CD = {cd:.3f}: no two methods can differ"
    ax.text(centre, -0.95, label, ha="center", va="bottom", fontsize=8, color=INK)


def _names(ax: Axes, comparison: Comparison, titles: Mapping[str, str], top: float, gap: float) -> None:
    """Write the better half of the methods on the left, the others on the right, with lines to ranks."""
    ranks, k = comparison.ranks, comparison.k
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    for position, name in enumerate(order):
        left = position < (k + 1) // 2
        y = top + _STEP * (position if left else k - 1 - position)
        end = 1 - gap if left else k + gap
        control = name == comparison.control
        ax.plot([ranks[name], ranks[name], end], [0, y, y], color=INK, lw=1.5 if control else 0.8)
        texts = [titles.get(name, name), f"{ranks[name]:.2f}"]
        ax.text(
            end + (-0.7 if left else 0.7) * gap,
            y,
            "  ".join(texts if left else texts[::-1]),
            ha="right" if left else "left",
            va="center",
            fontsize=8.5,
            color=INK,
            fontweight="bold" if control or ranks[name] == ranks[order[0]] else "normal",
        )


def _stack(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Give each span the lowest level on which it overlaps no earlier one."""
    ends: list[float] = []
    stacked = []
    for low, high in spans:
        level = next((i for i, end in enumerate(ends) if end + 0.1 < low), len(ends))
        ends[level : level + 1] = [high]
        stacked.append((low, high, level))
    return stacked


def heatmap(
    matrix: np.ndarray,
    ax: Axes,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    limit: float | None = None,
    title: str = "",
    signed: bool | None = None,
) -> AxesImage:
    """Draw a matrix so that it can be read in grey: the larger an entry, the darker its cell.

    Negative entries of matrices up to 40 x 40 have a hue of their own and a dash; larger matrices with a
    sign are drawn in a scale whose brightness grows from the lowest to the highest value.

    Parameters
    ----------
    matrix : ndarray of shape (r, c)
        Values; NaN is left white.
    ax : matplotlib Axes
        Where to draw.
    rows, columns : sequence of str
        Names; written when there are at most 24 of them, else numbered.
    limit : float, optional
        Largest absolute value of the colour scale, so that several matrices can share one; default is the
        matrix's own.
    title : str
        Written above.
    signed : bool, optional
        Draw from -limit to limit instead of from 0 to limit; default is whether an entry is negative.

    Returns
    -------
    matplotlib AxesImage
        For a colour bar.
    """
    values = np.asarray(matrix, dtype=float)
    top = limit if limit is not None else float(np.nanmax(np.abs(values), initial=0.0))
    signed = bool((values < 0).any()) if signed is None else signed
    marked = signed and max(values.shape) <= 40  # beyond that a mark would hide its cell
    image = ax.imshow(
        values,
        cmap=colour_scale("two_sided") if marked else "cividis" if signed else "Greys",
        vmin=-top if signed else 0.0,
        vmax=top or 1.0,
        aspect="auto" if values.shape[0] != values.shape[1] else "equal",
        interpolation="none",
    )
    if marked:
        down, across = np.nonzero(values < -0.02 * top)
        size = 120 / max(values.shape)
        ax.scatter(across, down, marker="_", s=size, color=INK, linewidths=0.8)
    style_axes(ax, title, grid=None, hidden=())
    for axis, names, size in ((ax.yaxis, rows, values.shape[0]), (ax.xaxis, columns, values.shape[1])):
        if len(names) == size <= 24:
            axis.set_ticks(range(size), [name if len(name) <= 18 else name[:17] + "…" for name in names])
    ax.tick_params(length=0)
    if len(columns) == values.shape[1] <= 24:
        ax.tick_params(axis="x", rotation=90)
    for spine in ax.spines.values():
        spine.set(color=PALE)
    return image


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
    """Return one critical-difference diagram as a figure of a page."""
    return Figure.of(_rank_canvas(comparison, titles, test), alt, caption, scale=114)


@styled()
def rank_pdf(comparison: Comparison, titles: Mapping[str, str]) -> bytes:
    """Return the critical-difference diagram of Nemenyi's test as a PDF file."""
    buffer = io.BytesIO()
    _rank_canvas(comparison, titles, "nemenyi").savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def _rank_canvas(comparison: Comparison, titles: Mapping[str, str], test: str) -> Canvas:
    """Draw a critical-difference diagram, wide enough for the ranks of many methods."""
    canvas, axes = new_axes(4.9 + 0.25 * max(comparison.k - 7, 0), ranks_height(comparison, 0.9))
    cd_diagram(comparison, axes[0, 0], titles, test)
    return canvas


def ranks_height(comparison: Comparison, margin: float) -> float:
    """Return the height of a critical-difference diagram in inches."""
    return margin + 0.24 * math.ceil(comparison.k / 2) + 0.1 * len(comparison.groups)


def rank_text(comparison: Comparison, titles: Mapping[str, str]) -> str:
    """Return the methods with their average ranks, the best first."""
    order = sorted(comparison.ranks, key=lambda name: (comparison.ranks[name], name))
    return ", ".join(f"{titles.get(name, name)} {comparison.ranks[name]:.2f}" for name in order)
