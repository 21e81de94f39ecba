"""Figures of the ML-EKELM study: progress by sweep of coordinate descent, and the error of a Nystroem approximation."""

import math
from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from multilab.reports.data import ReportData, metric_title
from multilab.reports.figures import Figure, FigureSource
from multilab.reports.figures.style import COLD, INK, WARM, new_axes, plain_labels, style_axes, styled

_SHOWN = 20  # sweeps, as in the paper's figure
_COLUMNS = 4
_FIXED = {"method", "dataset", "train_rows", "held_out", "landmarks", "draw", "exact", "difference"}


def sweeps(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a figure per method: Hamming loss on the left axis of each panel, the gap on the right one.

    Parameters
    ----------
    table : DataFrame
        ``sweeps.csv``, see `multilab.papers.mlekelm.sweeps`.
    """
    for method, rows in table.groupby("method", sort=False):
        yield _sweeps_figure(report.method_title(str(method)), rows)


@styled()
def _sweeps_figure(title: str, rows: pd.DataFrame) -> Figure:
    shown = rows[rows["sweep"] <= _SHOWN]
    names = list(dict.fromkeys(rows["dataset"]))
    n_rows = math.ceil(len(names) / _COLUMNS)
    gaps = shown.loc[shown["gap"] > 0, "gap"]
    limits = 10.0 ** math.floor(math.log10(gaps.min())), 10.0 ** math.ceil(math.log10(gaps.max()))
    canvas, axes = new_axes(9.6, 1.75 * n_rows + 0.5, n_rows, _COLUMNS, panels=len(names), sharex=True)
    for index, (ax, name) in enumerate(zip(axes.flat, names, strict=False)):
        first, last = index % _COLUMNS == 0, index % _COLUMNS == min(_COLUMNS, len(names)) - 1
        _panel(ax, name, shown[shown["dataset"] == name], limits, first, last)
        lowest = index + _COLUMNS >= len(names)
        ax.tick_params(labelbottom=lowest)
        ax.set_xlabel("sweep" if lowest else "")
    end = rows[rows["sweep"] == rows["sweep"].max()]
    caption = (
        f"{title}: Hamming loss on the test set (line, left) and relative distance of the objective from its "
        "minimum, F / F* − 1 (dashed, right, one scale for all panels), after each sweep over all training points; "
        "0 is the constant model, which the paper calls iteration 1. After "
        f"{int(end['sweep'].iloc[0])} sweeps the distance is {end['gap'].min():.2g} to {end['gap'].max():.2g}. "
        f"F* is certified to {rows['certified'].max():.0e} by a duality gap."
    )
    alt = f"Hamming loss and distance from the minimum over sweeps of {title} on {', '.join(names)}"
    return Figure.of(canvas, alt, caption)


def _panel(ax: Axes, title: str, rows: pd.DataFrame, limits: tuple[float, float], first: bool, last: bool) -> None:
    right, hidden = ax.twinx(), ("top", "right", "left")
    ax.plot(rows["sweep"], rows["hamming_loss"], color=COLD, lw=1.4)
    right.plot(rows["sweep"], rows["gap"], color=WARM, lw=1.2, ls="--")
    right.set_yscale("log")
    right.set_ylim(limits)
    right.yaxis.set_major_locator(LogLocator(base=10.0, numticks=20))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(lambda value, _: f"{value:g}" if last else "")
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.set_xticks(range(0, _SHOWN + 1, 5))
    style_axes(ax, title, hidden=hidden)
    style_axes(right, grid=None, hidden=hidden)
    for axes, colour, label in (
        (ax, COLD, "Hamming loss" if first else ""),
        (right, WARM, "F / F* − 1" if last else ""),
    ):
        axes.set_ylabel(label, color=colour)
        axes.tick_params(axis="y", colors=colour)


def nystroem(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Return a figure per method and dataset: difference of the scores, and each metric of the held-out rows.

    Parameters
    ----------
    table : DataFrame
        ``nystroem.csv``, see `multilab.papers.mlekelm.nystroem`.
    """
    for (method, dataset), rows in table.groupby(["method", "dataset"], sort=False):
        yield _nystroem_figure(f"{report.method_title(str(method))} on {dataset}", rows)


@styled()
def _nystroem_figure(where: str, rows: pd.DataFrame) -> Figure:
    metrics = [name for name in rows.columns if name not in _FIXED]
    approximate, exact = rows[~rows["exact"]], rows[rows["exact"] & rows["held_out"]].iloc[0]
    canvas, axes = new_axes(2.6 * (1 + len(metrics)), 2.4, 1, 1 + len(metrics))
    first = axes[0, 0]
    for held_out, colour, line in ((False, COLD, "-"), (True, WARM, "--")):
        draws = approximate[approximate["held_out"] == held_out]
        label = f"{draws['train_rows'].iloc[0]} rows, " + ("other rows" if held_out else "the same rows")
        _curve(first, draws, "difference", colour, line, label)
    first.set_yscale("log")
    first.legend(loc="lower left")
    _style_landmarks(first, "difference of the scores")
    for ax, metric in zip(axes[0, 1:], metrics, strict=True):
        _curve(ax, approximate[approximate["held_out"]], metric, WARM, "--", "")
        ax.axhline(exact[metric], color=INK, lw=0.9, ls=":")
        _style_landmarks(ax, metric_title(metric))
    n_max = approximate["landmarks"].max()
    smallest = approximate[approximate["landmarks"] == n_max].groupby("held_out")["difference"].mean()
    caption = (
        f"{where}: the Nystroem approximation from randomly drawn landmarks "
        f"(points: draws; line: mean) against the exact solution. Left: root mean square of the difference of the "
        f"scores relative to that of the exact ones, trained on all {rows['train_rows'].max()} rows, scores of the "
        f"same, and on four fifths, scores of the others; with {n_max} landmarks it is "
        f"{smallest[False]:.2g} and {smallest[True]:.2g}. The others: metrics of the held-out rows; dotted, the exact "
        "solution."
    )
    return Figure.of(canvas, f"Nystroem approximation of {where}", caption)


def _curve(ax: Axes, rows: pd.DataFrame, name: str, colour: str, line: str, label: str) -> None:
    mean = rows.groupby("landmarks")[name].mean()
    ax.plot(mean.index, mean, color=colour, ls=line, lw=1.4, label=label)
    ax.scatter(rows["landmarks"], rows[name], s=7, color=colour, lw=0)


def _style_landmarks(ax: Axes, title: str) -> None:
    ax.set_xscale("log")
    plain_labels(ax.xaxis, LogLocator(base=10.0))
    if ax.get_yscale() == "log":
        plain_labels(ax.yaxis, LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_minor_locator(NullLocator())
    style_axes(ax, title, "landmarks")


FIGURES = (
    FigureSource("Hamming loss and objective by sweep (Fig. 2)", "sweeps", sweeps),
    FigureSource("What a Nystroem approximation costs", "nystroem", nystroem),
)
"""Figures of the report page, in the paper's order."""
