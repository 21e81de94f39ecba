"""Dots in rows, one of them marked: what belongs to a row lies between its ends, and the mark is its best or mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import COLD, INK, SOFT, WARM, new_axes, style_axes, styled


@dataclass(frozen=True)
class Row:
    """A row of dots: its title, a value per dot, and the marked value."""

    title: str
    values: Sequence[float]
    mark: float


@styled()
def dots_figure(
    panels: Mapping[str, Sequence[Row]], legend: tuple[str, str], alt: str, caption: str, line: float | None = None
) -> Figure:
    """Return a panel of rows of dots per title of an axis, all with the same rows.

    Parameters
    ----------
    panels : mapping of str to sequence of Row
        By the label of the axis of values.
    legend : tuple of str
        What a dot is, and what the mark is.
    alt, caption : str
        Texts of the figure.
    line : float, optional
        A value at which a line is drawn: no gain.
    """
    rows = len(next(iter(panels.values())))
    canvas, axes = new_axes(1.7 + 2.4 * len(panels), 0.9 + 0.24 * rows, 1, len(panels), sharey=True)
    for ax, (label, shown) in zip(axes.flat, panels.items(), strict=True):
        for y, row in enumerate(shown):
            ax.plot(row.values, [y] * len(row.values), "o", ms=4, mec="none", mfc=COLD, alpha=0.4, label=legend[0])
            ax.plot([row.mark], [y], "D", ms=5.5, color=WARM, label=legend[1])
        if line is not None:
            ax.axvline(line, color=SOFT, lw=0.8, zorder=0)
        style_axes(ax, x=label, grid="x", hidden=("top", "right", "left"))
        ax.set_yticks(range(rows), [row.title for row in shown])
        ax.tick_params(axis="y", length=0, labelsize=8, labelcolor=INK)
        ax.set_ylim(rows - 0.5, -0.7)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    canvas.legend(handles[:2], labels[:2], loc="outside upper right", ncols=2)
    return Figure.of(canvas, alt, caption)
