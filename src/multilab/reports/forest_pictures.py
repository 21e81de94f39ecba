"""Regions of feature interactions in a plane (Fig. 1 of the iMLDF paper)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pandas as pd

from multilab.reports.drawing import new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["region_pictures"]

_INK, _SOFT = "#1c2430", "#6b7482"
_COLOURS = ("#0b3c49", "#b3541e", "#7a8794", "#3f6b4f")
_MARKERS = "os^Dvx"


def region_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return points and regions, the confidence of the first region, and the label shares of all, side by side.

    Parameters
    ----------
    table : DataFrame
        ``regions.csv``: columns dataset, kind, region, label, x, y, x2, y2.
    """
    for name, rows in table.groupby("dataset", sort=False):
        kinds = dict(list(rows.groupby("kind")))
        boxes = kinds["box"]
        with styled():
            figure = new_figure(9.6, 2.9)
            points, depth, shares = figure.subplots(1, 3, width_ratios=[1.1, 1.25, 1.0])
            for mark, (labels, some) in zip(_MARKERS, kinds["point"].groupby("label"), strict=False):
                points.scatter(some["x"], some["y"], s=9, lw=0.6, marker=mark, color=_SOFT, alpha=0.7, label=labels)
            for box in boxes.itertuples():
                _frame(points, box)
            _frame(depth, next(boxes.itertuples()))
            grid = kinds["confidence"].pivot(index="y", columns="x", values="x2")
            drawn = depth.contourf(grid.columns, grid.index, grid.to_numpy(), levels=8, cmap="Greys")
            figure.colorbar(drawn, ax=depth, shrink=0.9).ax.tick_params(labelsize=7, colors=_SOFT)
            _bars(shares, kinds["share"])
            for ax, title in ((points, "regions"), (depth, "distance to the thresholds"), (shares, "label shares")):
                ax.set_title(title, fontsize=9, color=_INK)
                ax.tick_params(labelsize=7, colors=_SOFT)
            for ax in (points, depth):
                ax.set(xlabel="x", ylabel="y", xlim=(boxes["x"].min(), boxes["x2"].max()))
            points.legend(fontsize=6, loc="lower left", framealpha=0.85, edgecolor="none")
            uri = svg_uri(figure)
        caption = (
            f"Interactions of x and y in {name} with the labels high (y above its median) and right (x > 0), each with "
            "noise, and both. Left: the points and the regions of the most stable interactions. Middle: what the first "
            "of them gives a point as confidence, the sum of the distances to its thresholds in units of the features' "
            "ranges; 0 outside. It grows away from the corner, not from the boundary, as the printed formula has it. "
            "Right: the share of the points inside each region that have each label."
        )
        yield Picture(uri, f"Regions of interactions in {name}", caption, 960)


def _frame(ax: Axes, box: Any) -> None:
    from matplotlib.patches import Rectangle

    colour = _COLOURS[box.region % len(_COLOURS)]
    size = box.x2 - box.x, box.y2 - box.y
    ax.add_patch(Rectangle((box.x, box.y), *size, fill=False, lw=1.6, ec=colour, zorder=3))
    ax.annotate(str(box.region + 1), (box.x2, box.y2), color=colour, fontsize=8, ha="right", va="top", zorder=4)


def _bars(ax: Axes, shares: pd.DataFrame) -> None:
    table = shares.pivot(index="region", columns="label", values="x")[list(dict.fromkeys(shares["label"]))]
    width = 0.8 / len(table.columns)
    for place, (label, heights) in enumerate(table.items()):
        at = heights.index + (place - (len(table.columns) - 1) / 2) * width
        ax.bar(at, heights, width, color=("#0b3c49", "#7ba5b4", "#d9dde3")[place % 3], label=label)
    ax.set(ylim=(0, 1), xlabel="region")
    ax.set_xticks(range(len(table)), [str(k + 1) for k in table.index])
    ax.legend(fontsize=6, frameon=False, loc="upper right")
