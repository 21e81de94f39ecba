"""Metrics over a grid of parameters as heat maps with the numbers in them."""

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from multilab.reports.data import ReportData, metric_title
from multilab.reports.figures import Figure
from multilab.reports.figures.style import INK, WARM, colour_scale, new_axes, style_axes, styled

_DEPTH = 0.1  # a metric this far below its best is white
_GREEK = {"alpha": "α", "lam": "λ", "beta": "β"}


def sensitivity(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a heat map per method and dataset where two parameters vary, slices through the best point where three do.

    Parameters
    ----------
    table : DataFrame
        ``sensitivity.csv``; its first metric is drawn, larger being better.
    """
    rows = table[table["metric"] == table["metric"].iloc[0]]
    for (method, dataset), points in rows.groupby(["method", "dataset"], sort=False):
        yield _figure(report, str(method), str(dataset), points)


@styled()
def _figure(report: ReportData, method: str, dataset: str, points: pd.DataFrame) -> Figure:
    free = [name for name in _GREEK if points[name].nunique() > 1]
    best, metric = points.loc[points["value"].idxmax()], str(points["metric"].iloc[0])
    settings = report.settings(method)
    own = {name: float(settings.get(name, math.nan)) for name in free}
    pairs = list(itertools.combinations(free, 2))
    width = sum(0.36 * points[b].nunique() + 0.75 for _, b in pairs)
    height = 0.3 * max(points[a].nunique() for a, _ in pairs) + 0.9
    canvas, axes = new_axes(width, height, 1, len(pairs), width_ratios=[points[b].nunique() for _, b in pairs])
    for ax, (a, b) in zip(axes[0], pairs, strict=True):
        fixed = {c: best[c] for c in free if c not in (a, b)}
        in_slice = (points[list(fixed)] == pd.Series(fixed)).all(axis=1) if fixed else slice(None)
        values = points.loc[in_slice].pivot(index=a, columns=b, values="value")
        _numbered(ax, values, float(best["value"]), ", ".join(f"{_GREEK[c]} = {v:g}" for c, v in fixed.items()))
        if all(own[c] == v for c, v in fixed.items()) and own[a] in values.index and own[b] in values.columns:
            _mark_cell(ax, values.columns.get_loc(own[b]), values.index.get_loc(own[a]))
    where = f"{report.method_title(method)} on {dataset}"
    through = ", ".join(f"{_GREEK[c]} = {best[c]:g}" for c in free)
    caption = (
        f"{metric_title(metric)} of {where}, mean over the splits; the best is {best['value']:.3f} at {through}"
        + (", through which the slices go" if len(pairs) > 1 else "")
        + f". White is {_DEPTH:g} or more below the best; a frame marks the paper’s choice, where it is in view."
    )
    return Figure.of(canvas, f"{metric} over the parameters, {where}", caption)


def _numbered(ax: Axes, values: pd.DataFrame, best: float, title: str) -> None:
    """Draw a table of values as a heat map with the values in it, the better the darker."""
    numbers, scale = values.to_numpy(), colour_scale("one_sided")
    ax.imshow(numbers, cmap=scale, vmin=best - _DEPTH, vmax=best, aspect="auto", interpolation="none")
    for (i, j), value in np.ndenumerate(numbers):
        dark = value > best - 0.55 * _DEPTH
        ax.text(j, i, f"{value:.3f}".lstrip("0"), ha="center", va="center", fontsize=6, color="white" if dark else INK)
    ax.set_xticks(range(values.shape[1]), [f"{v:g}" for v in values.columns], rotation=90)
    ax.set_yticks(range(values.shape[0]), [f"{v:g}" for v in values.index])
    style_axes(ax, title, _GREEK[str(values.columns.name)], _GREEK[str(values.index.name)], grid=None, hidden=())
    ax.tick_params(length=0)


def _mark_cell(ax: Axes, x: int, y: int) -> None:
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=WARM, lw=1.8))
