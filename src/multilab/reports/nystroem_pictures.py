"""What a Nystroem approximation costs, over the number of landmarks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from multilab.reports.drawing import new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study, metric_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["nystroem_pictures"]

_INK, _SOFT, _PALE, _COLD, _WARM = "#1c2430", "#6b7482", "#d9dde3", "#0b3c49", "#b3541e"
_FIXED = {"method", "dataset", "train_rows", "held_out", "landmarks", "draw", "exact", "difference"}


def nystroem_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return a picture per method and dataset: difference of the scores, and each metric of the held-out rows.

    Parameters
    ----------
    table : DataFrame
        ``nystroem.csv``, see `multilab.experiments.analyses.nystroem`.
    """
    metrics = [name for name in table.columns if name not in _FIXED]
    for (method, dataset), rows in table.groupby(["method", "dataset"], sort=False):
        near, exact = rows[~rows["exact"]], rows[rows["exact"] & rows["held_out"]].iloc[0]
        with styled():
            figure = new_figure(2.6 * (1 + len(metrics)), 2.4)
            first, *others = figure.subplots(1, 1 + len(metrics), squeeze=False)[0]
            for held_out, colour, style in ((False, _COLD, "-"), (True, _WARM, "--")):
                here = near[near["held_out"] == held_out]
                words = f"{here['train_rows'].iloc[0]} rows, " + ("other rows" if held_out else "the same rows")
                _curve(first, here, "difference", colour, style, words)
            first.set_yscale("log")
            first.legend(fontsize=7, frameon=False, loc="lower left")
            _plain(first, "difference of the scores")
            for ax, metric in zip(others, metrics, strict=True):
                _curve(ax, near[near["held_out"]], metric, _WARM, "--", "")
                ax.axhline(exact[metric], color=_INK, lw=0.9, ls=":")
                _plain(ax, metric_title(metric))
            uri = svg_uri(figure)
        most = near[near["landmarks"] == near["landmarks"].max()].groupby("held_out")["difference"].mean()
        caption = (
            f"{study.method_title(str(method))} on {dataset}: the Nystroem approximation from randomly drawn landmarks "
            f"(points: draws; line: mean) against the exact solution. Left: root mean square of the difference of the "
            f"scores relative to that of the exact ones, trained on all {rows['train_rows'].max()} rows, scores of the "
            f"same, and on four fifths, scores of the others; with {near['landmarks'].max()} landmarks it is "
            f"{most[False]:.2g} and {most[True]:.2g}. The others: metrics of the held-out rows; dotted, the exact "
            "solution."
        )
        alt = f"Nystroem approximation of {study.method_title(str(method))} on {dataset}"
        yield Picture(uri, alt, caption, 260 * (1 + len(metrics)))


def _curve(ax: Axes, rows: pd.DataFrame, name: str, colour: str, style: str, words: str) -> None:
    mean = rows.groupby("landmarks")[name].mean()
    ax.plot(mean.index, mean, color=colour, ls=style, lw=1.4, label=words)
    ax.scatter(rows["landmarks"], rows[name], s=7, color=colour, lw=0)


def _plain(ax: Axes, title: str) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(base=10.0))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    if ax.get_yscale() == "log":
        ax.yaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_title(title, fontsize=9, color=_INK)
    ax.set_xlabel("landmarks")
    ax.grid(True, color=_PALE, lw=0.5)
    ax.tick_params(labelsize=7, colors=_SOFT)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
