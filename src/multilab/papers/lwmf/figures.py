"""Figures 3 to 6 of the LWMF paper: a metric over the number of features, a panel per dataset."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from multilab.reports.data import ReportData, metric_title
from multilab.reports.figures import Figure, FigureSource
from multilab.reports.figures.style import COLD, COLOURS, SOFT, WARM, new_axes, style_axes, styled

_STYLES = (  # variants of one method share a colour
    {"color": COLD, "ls": "-"},
    {"color": COLD, "ls": "--"},
    {"color": COLOURS[3], "ls": "-."},
    {"color": COLOURS[4], "ls": "-", "marker": "s", "ms": 2.5},
    {"color": WARM, "ls": "-", "lw": 1.9},
    {"color": WARM, "ls": "--"},
    {"color": WARM, "ls": ":"},
    {"color": SOFT, "ls": "-"},
    {"color": SOFT, "ls": "--"},
)


def feature_curves(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a figure per metric; legends give the area under each curve up to the number of selected features."""
    for metric, rows in table.groupby("metric", sort=False):
        yield _figure(report, rows, metric_title(str(metric)))


def curve_area(curve: pd.Series) -> float:
    """Return the mean height of a curve by the trapezoid rule."""
    at, height = curve.index.to_numpy(dtype=float), curve.to_numpy()
    return float(np.trapezoid(height, at) / (at[-1] - at[0])) if len(at) > 1 else float(height[0])


@styled()
def _figure(report: ReportData, table: pd.DataFrame, title: str) -> Figure:
    names = [name for name in report.datasets if name in set(table["dataset"])]
    present = set(table["method"])
    methods = [m for m in (*report.methods, *sorted(present - set(report.methods))) if m in present]
    digits = 4 if table["value"].abs().max() < 1.5 else 3
    rows = math.ceil(len(names) / 2)
    canvas, axes = new_axes(8.6, 2.9 * rows, rows, 2, panels=len(names))
    for ax, name in zip(axes.flat, names, strict=False):
        points = table[table["dataset"] == name]
        curves = points.pivot(index="features", columns="method", values="value")
        own = points["method"].isin(report.methods) & points["kept"].astype(bool)
        selected = int(points.loc[own, "features"].min())
        for index, method in enumerate(methods):
            curve = curves[method].dropna()
            area = f"{curve_area(curve[curve.index <= selected]):.{digits}f}".removeprefix("0")
            style = {"lw": 1.2, **_STYLES[index % len(_STYLES)]}
            ax.plot(curve.index, curve, label=f"{report.method_title(method)} {area}", **style)
        ax.axvline(selected, color=SOFT, lw=0.8, ls=(0, (1, 2)))
        style_axes(ax, name)
        ax.legend(fontsize=6, frameon=True, framealpha=0.8, edgecolor="none")
    caption = (
        f"{title} of ML-kNN on the first features of each ranking; MLNB ranks none, its features come in the order "
        "of their columns. Dotted: the number that MLNB keeps, as the fair columns do; at the right end all features "
        "are used. Legends: area under the curve up to the dotted line, as its mean height."
    )
    return Figure.of(canvas, f"{title} over the number of features on {', '.join(names)}", caption)


FIGURES = (FigureSource("Metrics over the number of features (Figs. 3 to 6)", "feature_curves", feature_curves),)
"""Figures of the report page, in the paper's order."""
