"""Figure 1 of the iMLDF paper: regions of feature interactions in a plane."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from multilab.reports.data import ReportData
from multilab.reports.figures import Figure, FigureSource
from multilab.reports.figures.style import COLOURS, MARKERS, SOFT, TINTS, new_axes, style_axes, styled


def regions(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return points and regions, the confidence of the first region, and the label shares of all, side by side.

    Parameters
    ----------
    table : DataFrame
        ``regions.csv``: columns dataset, kind, region, label, x, y, x2, y2.
    """
    for name, rows in table.groupby("dataset", sort=False):
        yield _figure(str(name), rows)


@styled()
def _figure(name: str, rows: pd.DataFrame) -> Figure:
    kinds = dict(list(rows.groupby("kind")))
    boxes = kinds["box"]
    canvas, axes = new_axes(9.6, 2.9, 1, 3, width_ratios=[1.1, 1.25, 1.0])
    points, depth, shares = axes[0]
    for marker, (label, group) in zip(MARKERS, kinds["point"].groupby("label"), strict=False):
        points.scatter(group["x"], group["y"], s=9, lw=0.6, marker=marker, color=SOFT, alpha=0.7, label=label)
    for box in boxes.itertuples():
        _draw_box(points, box)
    _draw_box(depth, next(boxes.itertuples()))
    grid = kinds["confidence"].pivot(index="y", columns="x", values="x2")
    contours = depth.contourf(grid.columns, grid.index, grid.to_numpy(), levels=8, cmap="Greys")
    canvas.colorbar(contours, ax=depth, shrink=0.9).ax.tick_params(labelsize=7, colors=SOFT)
    _draw_shares(shares, kinds["share"])
    style_axes(points, "regions", "x", "y", grid=None, hidden=())
    style_axes(depth, "distance to the thresholds", "x", "y", grid=None, hidden=())
    style_axes(shares, "label shares", "region", grid=None, hidden=())
    for ax in (points, depth):
        ax.set(xlim=(boxes["x"].min(), boxes["x2"].max()))
    points.legend(fontsize=6, loc="lower left", frameon=True, framealpha=0.85, edgecolor="none")
    caption = (
        f"Interactions of x and y in {name} with the labels high (y above its median) and right (x > 0), each with "
        "noise, and both. Left: the points and the regions of the most stable interactions. Middle: the confidence "
        "that the first of them gives a point, the sum of the distances to its thresholds in units of the features' "
        "ranges; 0 outside. It grows away from the corner, not from the boundary, as the printed formula has it. "
        "Right: the share of the points inside each region that have each label."
    )
    return Figure.of(canvas, f"Regions of interactions in {name}", caption)


def _draw_box(ax: Axes, box: Any) -> None:
    colour = COLOURS[box.region % len(COLOURS)]
    size = box.x2 - box.x, box.y2 - box.y
    ax.add_patch(Rectangle((box.x, box.y), *size, fill=False, lw=1.6, ec=colour, zorder=3))
    ax.annotate(str(box.region + 1), (box.x2, box.y2), color=colour, fontsize=8, ha="right", va="top", zorder=4)


def _draw_shares(ax: Axes, shares: pd.DataFrame) -> None:
    table = shares.pivot(index="region", columns="label", values="x")[list(dict.fromkeys(shares["label"]))]
    width = 0.8 / len(table.columns)
    for index, (label, heights) in enumerate(table.items()):
        positions = heights.index + (index - (len(table.columns) - 1) / 2) * width
        ax.bar(positions, heights, width, color=TINTS[index % 3], label=label)
    ax.set(ylim=(0, 1))
    ax.set_xticks(range(len(table)), [str(k + 1) for k in table.index])
    ax.legend(fontsize=6, loc="upper right")


FIGURES = (FigureSource("Regions of feature interactions (Fig. 1)", "regions", regions),)
"""Figures of the report page, in the paper's order."""
