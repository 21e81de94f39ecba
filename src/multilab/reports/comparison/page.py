"""Page of a comparison: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from multilab.comparison import Recommendation
from multilab.comparison.curve import curve_remark
from multilab.comparison.decisions import Effects, tuned_name
from multilab.comparison.plan import PlannedMethod, duration
from multilab.comparison.results import Results
from multilab.core.text import listed
from multilab.experiments.environment import environment
from multilab.experiments.execute import jobs
from multilab.experiments.stored import setting_text
from multilab.metrics import over_assigned
from multilab.metrics.registry import defined
from multilab.reports.comparison.figures import (
    curve_figure,
    interval_figure,
    label_figure,
    seconds_figure,
    threshold_figure,
)
from multilab.reports.page import write_page
from multilab.reports.sections import flat
from multilab.reports.tables.entry import number, thousands
from multilab.statistics import Leaderboard

__all__ = ["write_comparison_page"]

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
    counted += [("splits", request.cv), ("methods", len(results.entries)), ("finished", len(board.table))]
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
        "flagged": _flagged_labels(results.labels),
        "remark": "" if results.curve is None else curve_remark(results.curve, request.metric),
        "files": [f"{name}.csv" for name in results.tables] + ["leaderboard.json"],
        "leaderboard": _leaderboard_rows(board) if ranked else [],
        "metrics": [(name, defined(name).title) for name in board.directions],
        "reference": reference,
        "tests": _test_rows(final, reference) if ranked else [],
        "paid": _paid_rows(results.recommendation),
        "intervals": interval_figure(final, baseline) if ranked else None,
        "seconds": seconds_figure(final, baseline) if ranked else None,
        "thresholds": threshold_figure(effects.thresholds, effects.objective) if len(effects.thresholds) else None,
        "decisions": _effect_table(effects.thresholds, "decision"),
        "probabilities": _effect_table(effects.calibration, "scores"),
        "labels": label_figure(results.labels, results.chosen) if results.labels is not None else None,
        "label_rows": _label_rows(results.labels),
        "curve": curve_figure(results.curve, board.headline, results.chosen) if results.curve is not None else None,
        "origin": flat({"dataset": facts, "protocol": request.protocol, "environment": environment()}),
        "objective": defined(effects.objective).title,
    }
    return write_page(request.out / "index.html", "comparison.html.j2", content, {"many_methods": 0})


def _method_row(entry: PlannedMethod) -> dict[str, str]:
    """Return why a method is compared, with which settings, what it was estimated to take, and how it ended."""
    return {
        "name": entry.name,
        "reason": entry.member.reason,
        "settings": " ".join(f"{name}={setting_text(value)}" for name, value in entry.member.changes.items()),
        "estimate": entry.expected(jobs()),
        "spent": duration(entry.spent) if entry.spent else "",
        "status": entry.status,
        "note": entry.note,
    }


def _leaderboard_rows(board: Leaderboard) -> list[dict[str, Any]]:
    """Return the rows of the table: rank, metrics with the best marked, seconds, whether on the front."""
    table, ranks, intervals = board.table, board.ranks, board.intervals()
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


def _effect_table(values: pd.DataFrame, kind: str) -> tuple[list[str], list[tuple[str, list[tuple[str, str, str]]]]]:
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


def _label_rows(labels: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return the per-label table as text, the most frequent label first."""
    if labels is None:
        return []
    columns = ("prevalence", "precision", "recall", "f1", "average_precision", "auc")
    ordered = labels.sort_values("count", ascending=False, kind="stable")
    return [
        {"label": row["label"], "count": row["count"], "predicted": row["predicted"]}
        | {name: number(float(row[name])) for name in columns}
        for row in ordered.to_dict("records")
    ]


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


def _flagged_labels(labels: pd.DataFrame | None) -> dict[str, str]:
    """Return which labels the decisions of the shown method assign far too often, and which never."""
    if labels is None:
        return {"often": "", "never": ""}
    seen = labels[labels["observed"] > 0]
    often = [*map(str, over_assigned(seen["label"], seen["predicted"] / seen["observed"], seen["prevalence"]))]
    never = seen.loc[(seen["predicted"] == 0) & (seen["count"] > 0), "label"].tolist()
    return {kind: listed(names, _NAMED) if names else "" for kind, names in (("often", often), ("never", never))}
