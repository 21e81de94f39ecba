"""Figures of a comparison: intervals, quality against seconds, thresholds, labels, learning curve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from multilab.metrics.registry import defined
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import COLD, INK, PALE, SOFT, WARM, decades, new_axes, style_axes, styled
from multilab.statistics import Leaderboard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axis_title", "curve_figure", "interval_figure", "label_figure", "seconds_figure", "threshold_figure"]


def axis_title(metric: str) -> str:
    """Return the name of a metric with its direction: ``Macro F1 (higher is better)``."""
    return f"{defined(metric).title} ({'lower' if defined(metric).direction == 'min' else 'higher'} is better)"


@styled()
def interval_figure(board: Leaderboard, baseline: str) -> Figure:
    """Return the first metric by method: each split, the mean and its interval."""
    intervals, splits = board.intervals(), board.splits(board.headline)
    names = list(intervals.index[::-1])
    canvas, axes = new_axes(6.6, 0.8 + 0.27 * len(names))
    ax: Axes = axes[0, 0]
    for height, name in enumerate(names):
        colour = SOFT if name == baseline else COLD
        ax.hlines(height, *intervals.loc[name, ["low", "high"]], color=colour, lw=1.6)
        ax.plot(splits[name], [height] * len(splits), "o", color=PALE, mec=SOFT, mew=0.5, ms=3.5, zorder=3)
        ax.plot(intervals.loc[name, "mean"], height, "|", color=INK, ms=11, mew=1.8, zorder=4)
    ax.set_yticks(range(len(names)), names)
    style_axes(ax, x=axis_title(board.headline), grid="x")
    alt = ", ".join(f"{name} {intervals.loc[name, 'mean']:.3f}" for name in names[::-1])
    caption = (
        "Dots: the splits. Bar: mean. Line: 95 % interval with the variance of the corrected resampled t test. The "
        "splits are the same for all methods: whether two of them differ is for the tests to say, not for the overlap."
    )
    return Figure.of(canvas, f"{axis_title(board.headline)}: {alt}", caption)


@styled()
def seconds_figure(board: Leaderboard, baseline: str) -> Figure:
    """Return the first metric against seconds per fit; the baseline, whose value would set the scale, is left out."""
    shown = [name for name in board.methods if not name.startswith(baseline)]
    board = replace(board, methods=tuple(shown) or board.methods)
    seconds, quality, front = board.seconds.clip(lower=1e-3), board.table[board.headline], list(board.pareto)
    canvas, axes = new_axes(6.6, 4.2)
    ax: Axes = axes[0, 0]
    ax.plot(seconds[front], quality[front], color=COLD, lw=1.0, ls="--", zorder=1)
    for name in seconds.index:
        best = name in front
        ax.plot(seconds[name], quality[name], "o" if best else "s", color=COLD if best else SOFT, ms=6 if best else 4)
        ax.annotate(
            str(name), (seconds[name], quality[name]), (4, 4), textcoords="offset points", fontsize=7,
            color=INK if best else SOFT,
        )  # fmt: skip
    decades(ax.xaxis)
    ax.margins(x=0.12, y=0.08)
    style_axes(ax, x="seconds per fit and prediction (logarithmic)", y=axis_title(board.headline))
    alt = f"{axis_title(board.headline)} against seconds; on the front: {', '.join(front)}"
    caption = "Dashed line and circles: no other method is both better and faster. Without the baseline."
    return Figure.of(canvas, alt, caption)


@styled()
def threshold_figure(thresholds: pd.DataFrame, metric: str) -> Figure:
    """Return the mean of a metric with the method's own decisions and with tuned thresholds."""
    means = thresholds[thresholds["metric"] == metric].pivot_table(index="method", columns="decision", values="value")
    means = means.sort_values("tuned", ascending=defined(metric).direction == "max")
    canvas, axes = new_axes(6.6, 0.8 + 0.27 * len(means))
    ax: Axes = axes[0, 0]
    for height, (_, row) in enumerate(means.iterrows()):
        ax.annotate(
            "", (row["tuned"], height), (row["as predicted"], height), arrowprops={"arrowstyle": "-", "color": SOFT}
        )
    ax.plot(means["as predicted"], range(len(means)), "o", color="white", mec=SOFT, ms=5.5, label="own decisions")
    ax.plot(means["tuned"], range(len(means)), "o", color=WARM, ms=5.5, label="tuned thresholds")
    ax.set_yticks(range(len(means)), list(means.index))
    ax.legend(loc="best")
    style_axes(ax, x=axis_title(metric), grid="x")
    texts = (f"{name} {row['as predicted']:.3f} to {row['tuned']:.3f}" for name, row in means.iterrows())
    caption = "Thresholds are chosen on out-of-fold scores of the training rows; the values are those of the test rows."
    return Figure.of(canvas, f"{axis_title(metric)} by tuned thresholds: {', '.join(texts)}", caption)


@styled()
def label_figure(labels: pd.DataFrame, method: str) -> Figure:
    """Return F1 of each label against its frequency."""
    canvas, axes = new_axes(6.6, 3.2)
    ax: Axes = axes[0, 0]
    shown = labels[labels["prevalence"] > 0]
    ax.plot(shown["prevalence"], shown["f1"], "o", color=COLD, ms=4.5, alpha=0.8)
    if len(shown) <= 25:
        for row in shown.itertuples():
            ax.annotate(
                str(row.label)[:18],
                (row.prevalence, row.f1),
                (4, 3),
                textcoords="offset points",
                fontsize=6.5,
                color=SOFT,
            )
    if len(shown) and shown["prevalence"].max() > 20 * shown["prevalence"].min():
        decades(ax.xaxis)
    ax.set_ylim(-0.03, 1.03)
    style_axes(ax, x="share of the rows with the label", y="F1 of the label")
    caption = f"Each label by {method}, over all held-out rows. Labels that few rows have are hard for every method."
    return Figure.of(canvas, f"F1 of {len(shown)} labels against their frequency", caption)


@styled()
def curve_figure(curve: pd.DataFrame, metric: str, method: str) -> Figure:
    """Return the first metric against the number of training rows."""
    own = curve[curve["metric"] == metric]
    means = own.groupby("share").agg(rows=("rows", "mean"), value=("value", "mean"))
    canvas, axes = new_axes(6.6, 3.0)
    ax: Axes = axes[0, 0]
    ax.plot(own["rows"], own["value"], "o", color=PALE, mec=SOFT, mew=0.5, ms=3.5)
    ax.plot(means["rows"], means["value"], "-o", color=COLD, ms=5)
    ax.set_xscale("log")
    ticks = np.asarray(means["rows"].round().astype(int))
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
    style_axes(ax, x="training rows (logarithmic)", y=axis_title(metric))
    texts = ", ".join(f"{row.rows:.0f} rows {row.value:.3f}" for row in means.itertuples())
    caption = (
        f"{method} on random shares of the rows, with its own decisions, scored on the other rows; last: the folds."
    )
    return Figure.of(canvas, f"Learning curve of {method}: {texts}", caption)
