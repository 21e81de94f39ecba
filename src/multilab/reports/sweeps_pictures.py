"""Hamming loss and distance from the minimum by sweep of coordinate descent, a panel for each dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from multilab.reports.drawing import new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["sweeps_pictures"]

_INK, _SOFT, _PALE, _COLD, _WARM = "#1c2430", "#6b7482", "#d9dde3", "#0b3c49", "#b3541e"
_SHOWN = 20  # as far as the paper's figure goes
_COLUMNS = 4


def sweeps_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return a picture per method: Hamming loss on the left axis of each panel, the gap on the right one.

    Parameters
    ----------
    table : DataFrame
        ``sweeps.csv``, see `multilab.experiments.analyses.sweeps`.
    """
    for method, rows in table.groupby("method", sort=False):
        shown = rows[rows["sweep"] <= _SHOWN]
        names = list(dict.fromkeys(rows["dataset"]))
        lines = math.ceil(len(names) / _COLUMNS)
        gaps = shown.loc[shown["gap"] > 0, "gap"]
        limits = 10.0 ** math.floor(math.log10(gaps.min())), 10.0 ** math.ceil(math.log10(gaps.max()))
        with styled():
            figure = new_figure(9.6, 1.75 * lines + 0.5)
            grid = figure.subplots(lines, _COLUMNS, squeeze=False, sharex=True)
            for place, ax in enumerate(grid.flat):
                if place >= len(names):
                    ax.axis("off")
                    continue
                outer = place % _COLUMNS == min(_COLUMNS, len(names)) - 1
                _panel(ax, names[place], shown[shown["dataset"] == names[place]], limits, place, outer)
                below = place + _COLUMNS >= len(names)
                ax.tick_params(labelbottom=below)
                ax.set_xlabel("sweep" if below else "")
            uri = svg_uri(figure)
        title, last = study.method_title(str(method)), rows[rows["sweep"] == rows["sweep"].max()]
        caption = (
            f"{title}: Hamming loss on the test part (line, left) and relative distance of the objective from its "
            "minimum, F / F* − 1 (dashed, right, one scale for all panels), after each sweep over all training points; "
            "0 is the constant model, which the paper calls iteration 1. After "
            f"{int(last['sweep'].iloc[0])} sweeps the distance is {last['gap'].min():.2g} to {last['gap'].max():.2g}. "
            f"F* is certified to {rows['certified'].max():.0e} by a duality gap."
        )
        alt = f"Hamming loss and distance from the minimum over sweeps of {title} on {', '.join(names)}"
        yield Picture(uri, alt, caption, 960)


def _panel(ax: Axes, title: str, rows: pd.DataFrame, limits: tuple[float, float], place: int, outer: bool) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    right = ax.twinx()
    ax.plot(rows["sweep"], rows["hamming_loss"], color=_COLD, lw=1.4)
    right.plot(rows["sweep"], rows["gap"], color=_WARM, lw=1.2, ls="--")
    right.set_yscale("log")
    right.set_ylim(limits)
    right.yaxis.set_major_locator(LogLocator(base=10.0, numticks=20))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(lambda value, _: f"{value:g}" if outer else "")
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.set_xticks(range(0, _SHOWN + 1, 5))
    ax.set_title(title, fontsize=9, color=_INK)
    ax.grid(True, color=_PALE, lw=0.5)
    ax.tick_params(labelsize=7, colors=_SOFT)
    ax.tick_params(axis="y", colors=_COLD)
    right.tick_params(labelsize=7, colors=_WARM)
    ax.set_ylabel("Hamming loss" if place % _COLUMNS == 0 else "", color=_COLD)
    right.set_ylabel("F / F* − 1" if outer else "", color=_WARM)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
        right.spines[side].set_visible(False)
