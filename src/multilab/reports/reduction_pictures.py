"""Figures of the LSkMDDM paper made anew: metrics over the dimension, time over the size, steps and ridges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from multilab.metrics import METRICS
from multilab.reports.drawing import decades, new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["dimension_pictures", "regularisation_pictures", "time_pictures"]

_INK, _SOFT, _PALE = "#1c2430", "#6b7482", "#d9dde3"
_COLOURS = ("#0b3c49", "#b3541e", "#7a8794", "#3f6b4f", "#8a4f7d", "#c2952b")
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MARKERS = "os^Dv*"
_PENALTIES = {"l2": "η |p|², as printed", "rkhs": "η pᵀK p"}


def dimension_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return a picture per metric, a panel per dataset, a curve per method, from ``dimension.csv``."""
    names = list(dict.fromkeys(table["dataset"]))
    for metric, rows in table.groupby("metric", sort=False):
        title = METRICS[str(metric)].title
        with styled():
            figure = new_figure(2.3 * len(names) + 0.4, 2.9)
            panels = figure.subplots(1, len(names), squeeze=False)[0]
            for ax, name in zip(panels, names, strict=True):
                here = rows[rows["dataset"] == name]
                for place, (method, curve) in enumerate(here.groupby("method", sort=False)):
                    _curve(ax, curve["dimension"], curve["value"], place, study.method_title(str(method)))
                _plain(ax, name, "dimensions")
            panels[0].set_ylabel(title)
            figure.legend(
                *panels[0].get_legend_handles_labels(), fontsize=7, frameon=False, ncols=6, loc="outside lower center"
            )
            uri = svg_uri(figure)
        caption = (
            f"{title} of ML-kNN after each reduction, over its dimensions, mean of two divisions. Each curve of a "
            "least squares method comes from one fit, whose first columns are taken; KLSCCA has no order among its "
            "columns, and keeps those of the first labels."
        )
        yield Picture(uri, f"{title} over the dimension on {', '.join(names)}", caption, 230 * len(names) + 40)


def time_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return the picture of seconds over the training size, both logarithmic, from ``reduction_time.csv``."""
    names = list(dict.fromkeys(table["dataset"]))
    sizes = sorted(set(table["n"]))
    with styled():
        figure = new_figure(2.3 * len(names) + 0.4, 2.9)
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for ax, name in zip(panels, names, strict=True):
            here = table[table["dataset"] == name]
            for place, (variant, curve) in enumerate(here.groupby("variant", sort=False)):
                _curve(ax, curve["n"], curve["seconds"], place, str(variant))
            ax.set_xscale("log")
            decades(ax.yaxis)
            _plain(ax, name, "training instances")
            _numbers(ax.xaxis, sizes)
        panels[0].set_ylabel("seconds")
        figure.legend(
            *panels[0].get_legend_handles_labels(), fontsize=7, frameon=False, ncols=6, loc="outside lower center"
        )
        uri = svg_uri(figure)
    slopes = table.groupby("variant", sort=False)["slope"].agg(["min", "max"])
    words = ", ".join(f"{variant} {low:.1f} to {high:.1f}" for variant, (low, high) in slopes.iterrows())
    caption = (
        "Processor seconds from kernel matrix to coefficients, one thread. Slopes of the logarithms over all sizes: "
        f"{words}. The paper’s seconds are another machine’s, and its implementations are not known."
    )
    yield Picture(uri, f"Seconds over the training size on {', '.join(names)}", caption, 230 * len(names) + 40)


def regularisation_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return the picture of metrics over LSQR's steps and over the ridge, from ``regularisation.csv``."""
    names, metrics = list(dict.fromkeys(table["dataset"])), list(dict.fromkeys(table["metric"]))
    for metric in metrics:
        title = METRICS[metric].title
        with styled():
            figure = new_figure(2.3 * len(names) + 0.4, 4.6)
            grid = figure.subplots(2, len(names), squeeze=False, sharey="col")
            for column, name in enumerate(names):
                here = table[(table["dataset"] == name) & (table["metric"] == metric)]
                exact = float(here.loc[here["kind"] == "exact", "value"].iloc[0])
                steps, ridges = here[here["kind"] == "lsqr"], here[here["kind"].isin(list(_PENALTIES))]
                _curve(grid[0, column], steps["strength"], steps["value"], 0, "LSQR")
                for place, (kind, curve) in enumerate(ridges.groupby("kind", sort=False), 1):
                    _curve(grid[1, column], curve["strength"], curve["value"], place, _PENALTIES[str(kind)])
                for ax, x in zip(grid[:, column], ("steps of LSQR", "η"), strict=True):
                    ax.axhline(exact, color=_INK, lw=0.9, ls=":", label="exact")
                    decades(ax.xaxis)
                    _plain(ax, name if ax is grid[0, column] else "", x)
                grid[0, column].axvline(20, color=_SOFT, lw=0.9, ls=":")
            for row in grid:
                row[0].set_ylabel(title)
                row[0].legend(fontsize=7, frameon=False)
            uri = svg_uri(figure)
        caption = (
            f"{title} of ML-kNN after LSkMDDM whose equations are solved by so many steps of LSQR (above; dotted: 20, "
            "MATLAB’s limit), and after a ridge (below), mean of the first two divisions. Dotted across: the exact "
            "solution, which is kMDDM. All curves of a division come from one eigendecomposition of its kernel matrix."
        )
        yield Picture(uri, f"{title} over LSQR steps and ridges on {', '.join(names)}", caption, 230 * len(names) + 40)


def _curve(ax: Axes, x: pd.Series, y: pd.Series, place: int, label: str) -> None:
    """Draw a curve that differs from the others in grey too."""
    look = {"color": _COLOURS[place], "ls": _LINES[place], "marker": _MARKERS[place]}
    ax.plot(x, y, ms=3.2, lw=1.2, label=label, **look)  # type: ignore[arg-type]


def _plain(ax: Axes, title: str, x: str) -> None:
    ax.set_title(title, fontsize=9, color=_INK)
    ax.set_xlabel(x)
    ax.grid(True, color=_PALE, lw=0.5)
    ax.tick_params(labelsize=7, colors=_SOFT)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _numbers(axis: Axis, values: list[int]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")
