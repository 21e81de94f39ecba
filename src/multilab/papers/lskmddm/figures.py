"""Figures of the LSkMDDM paper: metrics over the dimension, time over the size, steps of LSQR and ridges."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from multilab.metrics import METRICS
from multilab.reports.data import ReportData
from multilab.reports.figures import Figure, FigureSource
from multilab.reports.figures.style import INK, SOFT, curve_style, decades, new_axes, plain_labels, style_axes, styled

_PENALTIES = {"l2": "η |p|², as printed", "rkhs": "η pᵀK p"}


def dimension(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a figure per metric, a panel per dataset, a curve per method, from ``dimension.csv``."""
    by = ["method", "dataset", "dimension", "metric"]
    means = table.groupby(by, sort=False)["value"].mean().reset_index()
    for metric, rows in means.groupby("metric", sort=False):
        yield _dimension_figure(report, METRICS[str(metric)].title, rows)


@styled()
def _dimension_figure(report: ReportData, title: str, rows: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(rows["dataset"]))
    canvas, axes = _panels(names, 2.9)
    for ax, name in zip(axes[0], names, strict=True):
        curves = rows[rows["dataset"] == name].groupby("method", sort=False)
        for index, (method, curve) in enumerate(curves):
            _curve(ax, curve["dimension"], curve["value"], index, report.method_title(str(method)))
        style_axes(ax, name, "dimensions", title if ax is axes[0, 0] else "")
    _legend_below(canvas, axes)
    caption = (
        f"{title} of ML-kNN after each reduction, over its dimensions, mean of ten splits. Each curve of a "
        "least squares method comes from one fit, whose first columns are taken; KLSCCA has no order among its "
        "columns, and keeps those of the first labels."
    )
    return Figure.of(canvas, f"{title} over the dimension on {', '.join(names)}", caption)


@styled()
def reduction_time(report: ReportData, table: pd.DataFrame) -> Figure:
    """Return the figure of seconds over the training size, both logarithmic, from ``reduction_time.csv``."""
    names, sizes = list(dict.fromkeys(table["dataset"])), sorted(set(table["n"]))
    canvas, axes = _panels(names, 2.9, sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        curves = table[table["dataset"] == name].groupby("variant", sort=False)
        for index, (variant, curve) in enumerate(curves):
            _curve(ax, curve["n"], curve["seconds"], index, str(variant))
        ax.set_xscale("log")
        decades(ax.yaxis)
        style_axes(ax, name, "training instances", "seconds" if ax is axes[0, 0] else "")
        plain_labels(ax.xaxis, sizes)
    _legend_below(canvas, axes)
    slopes = table.groupby("variant", sort=False)["slope"].agg(["min", "max"])
    ranges = ", ".join(f"{variant} {low:.1f} to {high:.1f}" for variant, (low, high) in slopes.iterrows())
    caption = (
        "Processor seconds from kernel matrix to coefficients, one thread. Slopes of the logarithms over all sizes: "
        f"{ranges}. The paper’s seconds are another machine’s, and its implementations are not known."
    )
    return Figure.of(canvas, f"Seconds over the training size on {', '.join(names)}", caption)


def regularisation(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a figure per metric, over the steps of LSQR and over the ridge, from ``regularisation.csv``."""
    for metric, rows in table.groupby("metric", sort=False):
        yield _regularisation_figure(METRICS[str(metric)].title, rows)


@styled()
def _regularisation_figure(title: str, rows: pd.DataFrame) -> Figure:
    names = list(dict.fromkeys(rows["dataset"]))
    canvas, axes = _panels(names, 4.6, rows=2, sharey="col")
    for (above, below), name in zip(axes.T, names, strict=True):
        kinds = dict(list(rows[rows["dataset"] == name].groupby("kind", sort=False)))
        _curve(above, kinds["lsqr"]["strength"], kinds["lsqr"]["value"], 0, "LSQR")
        for index, kind in enumerate((kind for kind in kinds if kind in _PENALTIES), 1):
            _curve(below, kinds[kind]["strength"], kinds[kind]["value"], index, _PENALTIES[kind])
        for ax, panel_title, x in ((above, name, "steps of LSQR"), (below, "", "η")):
            ax.axhline(float(kinds["exact"]["value"].iloc[0]), color=INK, lw=0.9, ls=":", label="exact")
            decades(ax.xaxis)
            style_axes(ax, panel_title, x, title if ax in axes[:, 0] else "")
        above.axvline(20, color=SOFT, lw=0.9, ls=":")
    for ax in axes[:, 0]:
        ax.legend()
    caption = (
        f"{title} of ML-kNN after LSkMDDM whose equations are solved by a number of steps of LSQR (above; dotted: 20, "
        "MATLAB’s limit), and after a ridge (below), mean of the first two splits. Dotted across: the exact "
        "solution, which is kMDDM. All curves of a split come from one eigendecomposition of its kernel matrix."
    )
    return Figure.of(canvas, f"{title} over LSQR steps and ridges on {', '.join(names)}", caption)


def _panels(names: Sequence[str], height: float, rows: int = 1, **options: Any) -> tuple[Canvas, np.ndarray]:
    return new_axes(2.3 * len(names) + 0.4, height, rows, len(names), **options)


def _curve(ax: Axes, x: pd.Series, y: pd.Series, index: int, label: str) -> None:
    ax.plot(x, y, label=label, **curve_style(index, ms=3.2, lw=1.2))


def _legend_below(canvas: Canvas, axes: np.ndarray) -> None:
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), ncols=6, loc="outside lower center")


FIGURES = (
    FigureSource("Metrics over the dimension (Figs. 1 to 3)", "dimension", dimension),
    FigureSource("Time over the number of training instances (Fig. 4)", "reduction_time", reduction_time),
    FigureSource("Steps of LSQR and ridges as regularisers", "regularisation", regularisation),
)
"""Figures of the report page, in the paper's order."""
