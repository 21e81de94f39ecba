"""Page of `multilab compare`: one dataset, several methods, a recommendation; and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from multilab.cells.environment import environment
from multilab.cells.execute import jobs
from multilab.cells.inventory import setting_text
from multilab.comparison import Recommendation
from multilab.comparison.curve import curve_remark
from multilab.comparison.decisions import Effects, tuned_name
from multilab.comparison.plan import MethodRun, duration
from multilab.comparison.results import Results
from multilab.core.text import BETTER, listed
from multilab.metrics import over_assigned
from multilab.metrics.registry import defined
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import (
    COLD,
    INK,
    PALE,
    SOFT,
    WARM,
    decades,
    new_axes,
    plain_labels,
    style_axes,
    styled,
)
from multilab.reports.page import flat, write_page
from multilab.reports.tables.entry import number, thousands
from multilab.statistics import Leaderboard

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OF_SPLITS = (
    "Dots: the splits. Bar: mean. Line: 95 % interval with the variance of the corrected resampled t test. The "
    "splits are the same for all methods: whether two of them differ is for the tests to say, not for the overlap."
)
_TICKS = 10
_NAMED_LABELS = 25
_NAMED = 10
"""Of more labels than this a sentence names the first ones and counts the others."""


def write_comparison_page(results: Results) -> Path:
    """Write ``index.html`` into the folder of the report and return its path.

    Raises
    ------
    ReportError
        If the extra ``lab`` is not installed.
    """
    request, facts, board, final, baseline = (
        results.request,
        results.facts,
        results.board,
        results.final,
        results.baseline,
    )
    effects = results.effects or Effects.empty(request.metric)
    ranked = len(board.table) > 0
    reference = (results.recommendation.method or final.best[0]) if ranked else ""
    counted = [("rows", facts["rows"]), ("features", facts["features"]), ("labels", facts["labels"])]
    counted += [("splits", request.cv), ("methods", _without(baseline, [entry.name for entry in results.entries]))]
    counted += [("finished", _without(baseline, board.table.index))]
    content = {
        "title": facts["title"],
        "facts": [(name, thousands(value)) for name, value in counted],
        "board": board,
        "final": final,
        "baseline": baseline,
        "recommendation": results.recommendation,
        "commands": results.commands,
        "methods": [_method_row(entry) for entry in results.entries],
        "left_out": effects.left_out,
        "method": results.chosen,
        "tuned": results.recommendation.method == tuned_name(results.chosen),
        "changes": _threshold_numbers(results, effects),
        "flagged": flagged_labels(results.labels),
        "remark": "" if results.curve is None else curve_remark(results.curve, request.metric),
        "files": [f"{name}.csv" for name in results.tables] + ["leaderboard.json"],
        "leaderboard": _leaderboard_rows(board) if ranked else [],
        "metrics": [(name, defined(name).title) for name in board.directions],
        "standardised": [entry.name for entry in results.entries if entry.standardised],
        "reference": reference,
        "tests": _test_rows(final, reference) if ranked else [],
        "paid": _paid_rows(results.recommendation),
        "intervals": interval_figure(
            final.headline, final.intervals(), _OF_SPLITS, final.splits(final.headline), baseline
        )
        if ranked
        else None,
        "seconds": seconds_figure(final, baseline) if ranked else None,
        "thresholds": threshold_figure(effects.thresholds, effects.objective) if len(effects.thresholds) else None,
        "decisions": effect_table(effects.thresholds, "decision"),
        "probabilities": effect_table(effects.calibration, "scores"),
        "labels": label_figure(results.labels, results.chosen) if results.labels is not None else None,
        "label_rows": label_rows(results.labels),
        "curve": curve_figure(results.curve, board.headline, results.chosen) if results.curve is not None else None,
        "origin": flat({"dataset": facts, "protocol": request.protocol, "environment": environment()}),
        "objective": defined(effects.objective).title,
    }
    return write_page(request.out / "index.html", "comparison.html.j2", content, {"many_methods": 0})


def _without(baseline: str, names: Iterable[str]) -> int:
    return sum(name != baseline for name in names)


def _method_row(entry: MethodRun) -> dict[str, str]:
    """Return why a method is compared, with which settings, what it was estimated to take, and how it ended."""
    return {
        "name": entry.name,
        "reason": entry.member.why,
        "settings": " ".join(f"{name}={setting_text(value)}" for name, value in entry.member.changes.items()),
        "estimate": entry.expected(jobs()),
        "spent": duration(entry.spent) if entry.spent else "",
        "status": entry.status,
        "note": entry.note,
    }


def _leaderboard_rows(board: Leaderboard) -> list[dict[str, Any]]:
    """Return the rows of the table by rank: metrics with the best marked, seconds, whether on the front."""
    table, ranks, intervals = board.table, board.ranks, board.intervals()
    if board.headline in ranks:
        table = table.loc[ranks.loc[table.index, board.headline].sort_values(kind="stable").index]
    best = {m: table[m].min() if d == "min" else table[m].max() for m, d in board.directions.items()}
    rows = []
    for name in table.index:
        low, high = intervals.loc[name, ["low", "high"]]
        values = [
            (f"{v:.4f}" if v == v else "–", v == best[m]) for m, v in table.loc[name, list(board.directions)].items()
        ]
        rows.append(
            {
                "name": name,
                "rank": f"{ranks.loc[name, board.headline]:.2f}" if board.headline in ranks else "–",
                "interval": f"{low:.3f} to {high:.3f}" if low == low else "–",
                "values": values,
                "seconds": number(float(board.seconds[name])),
                "front": name in board.pareto,
            }
        )
    return rows


def _test_rows(board: Leaderboard, reference: str) -> list[dict[str, Any]]:
    """Return a row per method that one is compared with; the interval is at the level of the corrected test."""
    rows = []
    for name, row in board.tests(reference=reference).iterrows():
        wins = f"{board.difference(reference, str(name))['wins']:.0f} of {board.n_splits}"
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        different = "significantly worse" if row["advantage"] > 0 else "significantly better"
        verdict = different if row["differs"] else "not separated"
        gain = f"{row['advantage']:+.4f}"
        rows.append({"name": name, "gain": gain, "interval": interval, "wins": wins, "verdict": verdict, **row})
    return rows


def _paid_rows(recommendation: Recommendation) -> list[tuple[str, list[str], str]]:
    """Return per metric its title, its values without and with thresholds and the change, and whether that is good."""
    rows = []
    changes, shown = recommendation.paid["change"].items(), recommendation.paid_texts().iterrows()
    for (metric, change), (title, texts) in zip(changes, shown, strict=True):
        gain = change * (1 if defined(str(metric)).direction == "max" else -1)
        rows.append((str(title), texts.tolist(), "good" if gain > 0 else "bad" if gain < 0 else ""))
    return rows


def effect_table(values: pd.DataFrame, kind: str) -> tuple[list[str], list[tuple[str, list[tuple[str, str, str]]]]]:
    """Return the metrics, and per method the mean before and after with a mark of the better one."""
    if values.empty:
        return [], []
    means = values.pivot_table(index="method", columns=["metric", kind], values="value", sort=False)
    metrics = list(dict.fromkeys(name for name, _ in means.columns))
    metrics = [name for name in metrics if not (_values_of(means, name, 0) == _values_of(means, name, 1)).all()]
    rows = []
    for method in means.index:
        cells = []
        for name in metrics:
            before, after = _values_of(means, name, 0)[method], _values_of(means, name, 1)[method]
            gain = (after - before) * (1 if defined(name).direction == "max" else -1)
            texts = f"{before:.3f}", f"{after:.3f}"
            mark = "" if texts[0] == texts[1] else "good" if gain > 0 else "bad"
            cells.append((*texts, mark))
        rows.append((str(method), cells))
    return [defined(name).title for name in metrics], rows


def _values_of(means: pd.DataFrame, metric: str, position: int) -> pd.Series:
    """Return the column of a metric before (0) or after (1)."""
    return means[metric].iloc[:, position]


def label_rows(labels: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return the per-label table as text, the most frequent label first; with intervals of F1 if the table has them."""
    if labels is None:
        return []
    columns = ("prevalence", "precision", "recall", "f1", "average_precision", "auc")
    ordered = labels.sort_values("count", ascending=False, kind="stable")
    rows = [
        {"label": row["label"], "count": row["count"], "predicted": row["predicted"]}
        | {name: number(float(row[name])) for name in columns}
        for row in ordered.to_dict("records")
    ]
    if "f1_low" in ordered:
        for shown, row in zip(rows, ordered.itertuples(), strict=True):
            shown["threshold"] = number(row.threshold)
            shown["interval"] = f"{row.f1_low:.3f} to {row.f1_high:.3f}" if row.f1_low == row.f1_low else "–"
    return rows


def _threshold_numbers(results: Results, effects: Effects) -> dict[str, Any]:
    """Return what tuned thresholds and calibration change for the chosen method, and what thresholds alone reach."""
    board, method, baseline, metric = results.board, results.chosen, results.baseline, effects.objective
    if effects.thresholds.empty:
        return {}
    tuned = effects.board(board, metric)
    numbers: dict[str, Any] = dict.fromkeys(("gain", "alone", "calibration"))
    if method in effects.methods:
        gain = tuned.difference(tuned_name(method), method, level=1 - board.alpha)
        numbers["gain"] = {"mean": gain["mean"], "interval": (gain["low"], gain["high"]) if board.n_splits > 1 else ()}
    if baseline in effects.methods:
        value = tuned.table.loc[tuned_name(baseline), metric]
        own = board.table.loc[board.table.index != baseline, metric]
        below = own < value if defined(metric).direction == "max" else own > value
        numbers["alone"] = {"name": tuned_name(baseline), "value": value, "below": int(below.sum()), "of": len(own)}
    rows = effects.calibration
    rows = rows[(rows["method"] == method) & (rows["metric"] == "expected_calibration_error")]
    if len(rows):
        numbers["calibration"] = rows.groupby("scores")["value"].mean().to_dict()
    return numbers


def flagged_labels(labels: pd.DataFrame | None) -> dict[str, str]:
    """Return which labels the decisions of the shown method assign far too often, and which never."""
    if labels is None:
        return {"often": "", "never": ""}
    seen = labels[labels["observed"] > 0]
    often = [*map(str, over_assigned(seen["label"], seen["predicted"] / seen["observed"], seen["prevalence"]))]
    never = seen.loc[(seen["predicted"] == 0) & (seen["count"] > 0), "label"].tolist()
    return {kind: listed(names, _NAMED) if names else "" for kind, names in (("often", often), ("never", never))}


def axis_title(metric: str) -> str:
    """Return the name of a metric with its direction: ``Macro F1 (higher is better)``."""
    return f"{defined(metric).title} ({BETTER[defined(metric).direction]})"


@styled()
def interval_figure(
    metric: str, intervals: pd.DataFrame, caption: str, splits: pd.DataFrame | None = None, baseline: str = ""
) -> Figure:
    """Return a metric by method: the values of the splits, the mean and its interval.

    ``intervals`` has the columns mean, low and high; the first row is at the top.
    """
    names = list(intervals.index[::-1])
    canvas, axes = new_axes(6.6, 0.8 + 0.27 * len(names))
    ax: Axes = axes[0, 0]
    for height, name in enumerate(names):
        colour = SOFT if name == baseline else COLD
        ax.hlines(height, *intervals.loc[name, ["low", "high"]], color=colour, lw=1.6)
        if splits is not None:
            ax.plot(splits[name], [height] * len(splits), "o", color=PALE, mec=SOFT, mew=0.5, ms=3.5, zorder=3)
        ax.plot(intervals.loc[name, "mean"], height, "|", color=INK, ms=11, mew=1.8, zorder=4)
    ax.set_yticks(range(len(names)), names)
    style_axes(ax, x=axis_title(metric), grid="x")
    alt = ", ".join(f"{name} {intervals.loc[name, 'mean']:.3f}" for name in names[::-1])
    return Figure.of(canvas, f"{axis_title(metric)}: {alt}", caption)


@styled()
def seconds_figure(board: Leaderboard, baseline: str) -> Figure:
    """Return the first metric against seconds per fit; the baseline, whose value would set the scale, is left out."""
    shown = [name for name in board.methods if board.untuned.get(name, name) != baseline]
    board = replace(board, methods=tuple(shown) or board.methods)
    seconds, quality, front = board.seconds.clip(lower=1e-3), board.table[board.headline], list(board.pareto)
    canvas, axes = new_axes(6.6, 4.2)
    ax: Axes = axes[0, 0]
    ax.plot(seconds[front], quality[front], color=COLD, lw=1.0, ls="--", zorder=1)
    for name in seconds.index:
        best = name in front
        ax.plot(seconds[name], quality[name], "o" if best else "s", color=COLD if best else SOFT, ms=6 if best else 4)
    decades(ax.xaxis)
    ax.margins(x=0.2, y=0.08)
    style_axes(ax, x="seconds per fit and prediction (logarithmic)", y=axis_title(board.headline))
    canvas.draw_without_rendering()  # positions are those of the layout
    names = [*front, *(name for name in seconds.index if name not in front)]
    _name_points(ax, [(str(name), seconds[name], quality[name], INK if name in front else SOFT) for name in names])
    alt = f"{axis_title(board.headline)} against seconds; on the front: {', '.join(front)}"
    caption = (
        "Dashed line and circles: no other method is both better and faster. Without the baseline; names that would "
        "cover others are left out."
    )
    return Figure.of(canvas, alt, caption)


def _name_points(ax: Axes, points: Sequence[tuple[str, float, float, str]]) -> None:
    """Write names next to points, each where it covers no point and no name before it; one without room has none."""
    inch, dots = ax.figure.dpi / 72, [ax.transData.transform((x, y)) for _, x, y, _ in points]
    taken = [(x - 4 * inch, y - 4 * inch, x + 4 * inch, y + 4 * inch) for x, y in dots]
    right = ax.get_window_extent().x1
    for (name, x, y, colour), (left, low) in zip(points, dots, strict=True):
        width, height = 4.3 * len(name) * inch, 8 * inch  # of letters of 7 points
        for side, up in (("left", 4), ("left", -11), ("right", 4), ("right", -11)):
            shift = 5 if side == "left" else -5
            start = left + shift * inch - (0 if side == "left" else width)
            box = (start, low + up * inch, start + width, low + up * inch + height)
            if box[2] <= right and box[0] >= 0 and not any(_overlap(box, other) for other in taken):
                ax.annotate(
                    name, (x, y), (shift, up), textcoords="offset points", fontsize=7, color=colour, ha=side
                )  # fmt: skip
                taken.append(box)
                break


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


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
    low, high = (shown["prevalence"].min(), shown["prevalence"].max()) if len(shown) else (1.0, 1.0)
    if high > 20 * low:
        ax.set_xscale("log")
        marks = np.outer(10.0 ** np.arange(-8, 1), (1, 2, 5)).ravel()
        within = marks[(marks >= low / 1.5) & (marks <= min(1, high * 1.5))]
        if len(within) > _TICKS:
            decades(ax.xaxis)
        else:
            plain_labels(ax.xaxis, within.tolist())
    ax.set_ylim(-0.03, 1.03)
    style_axes(ax, x="share of the rows with the label", y="F1 of the label")
    if len(shown) <= _NAMED_LABELS:
        canvas.draw_without_rendering()  # positions are those of the layout
        _name_points(ax, [(str(row.label)[:18], row.prevalence, row.f1, SOFT) for row in shown.itertuples()])
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
