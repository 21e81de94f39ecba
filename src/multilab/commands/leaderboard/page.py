"""The HTML page of a comparison, and what it says about thresholds, calibration and more rows."""

import pandas as pd

from multilab.commands.leaderboard.curve import curve_remark
from multilab.commands.leaderboard.effects import Effects, tuned_name
from multilab.commands.leaderboard.plan import duration
from multilab.commands.leaderboard.results import Results
from multilab.core.text import listed
from multilab.experiments.environment import environment
from multilab.experiments.execute import jobs
from multilab.experiments.stored import setting_text
from multilab.metrics import over_assigned
from multilab.metrics.registry import defined
from multilab.reports.comparison.page import ComparisonPage, write_comparison_page

__all__ = ["write_page"]

_NAMED = 10
"""Of more labels than this a sentence names the first ones and counts the others."""


def write_page(results: Results, baseline: str) -> None:
    """Write ``index.html`` into the folder of the report."""
    request, facts, effects = results.request, results.facts, results.effects
    methods = [
        {
            "name": entry.name,
            "reason": entry.candidate.reason,
            "settings": " ".join(f"{name}={setting_text(value)}" for name, value in entry.candidate.changes.items()),
            "estimate": entry.expected(jobs()),
            "spent": duration(entry.spent) if entry.spent else "",
            "status": entry.status,
            "note": entry.note,
        }
        for entry in results.entries
    ]
    counted = [("rows", facts["rows"]), ("features", facts["features"]), ("labels", facts["labels"])]
    counted += [("splits", request.cv), ("methods", len(results.entries)), ("finished", len(results.board.table))]
    empty = Effects.empty(request.metric)
    page = ComparisonPage(
        title=str(facts["title"]),
        facts=[(name, f"{value:,}".replace(",", "\u202f")) for name, value in counted],
        board=results.board,
        final=results.final or results.board,
        baseline=baseline,
        recommendation=results.recommendation,
        commands=results.commands,
        methods=methods,
        thresholds=(effects or empty).thresholds,
        calibration=(effects or empty).calibration,
        objective=(effects or empty).objective,
        left_out=(effects or empty).left_out,
        method=results.chosen,
        labels=results.labels,
        curve=results.curve,
        origin={"dataset": facts, "protocol": request.protocol, "environment": environment()},
        files=[f"{name}.csv" for name in results.tables] + ["leaderboard.json"],
        tuned=results.recommendation.method == tuned_name(results.chosen),
        remarks={
            "thresholds": _thresholds(results, baseline),
            "labels": _labels(results.labels),
            "curve": "" if results.curve is None else curve_remark(results.curve, request.metric),
        },
    )
    write_comparison_page(page, request.out)


def _thresholds(results: Results, baseline: str) -> str:
    """Return what tuned thresholds and calibration change for the recommended method, in sentences."""
    effects, board = results.effects, results.board
    if effects is None or not len(effects.thresholds):
        return ""
    title, method = defined(effects.objective).title, results.chosen
    sentences = []
    tuned = effects.board(board, effects.objective)
    if method in effects.methods:
        gain = tuned.difference(tuned_name(method), method, level=1 - board.alpha)
        size = f"{abs(gain['mean']):.4f}"
        change = f"better by {size}" if gain["mean"] > 0 else f"worse by {size}" if gain["mean"] < 0 else "no different"
        shown = "" if board.n_splits < 2 else f" (interval of the gain {gain['low']:+.4f} to {gain['high']:+.4f})"
        sentences.append(f"With tuned thresholds {title} of {method} is {change}{shown}.")
    if baseline in effects.methods:
        value = tuned.table.loc[tuned_name(baseline), effects.objective]
        below = [
            n
            for n in board.table.index
            if n != baseline and _worse(board.table.loc[n, effects.objective], value, board, effects)
        ]
        sentences.append(
            f"Without any feature, thresholds alone reach {value:.4f} ({tuned_name(baseline)}); "
            f"{len(below)} of {len(board.table) - 1} methods have less with their own decisions."
        )
    return " ".join([*sentences, _calibration(effects, method)]).strip()


def _worse(value: float, reference: float, board: object, effects: Effects) -> bool:
    return value < reference if defined(effects.objective).direction == "max" else value > reference


def _calibration(effects: Effects, method: str) -> str:
    rows = effects.calibration[
        (effects.calibration["method"] == method) & (effects.calibration["metric"] == "expected_calibration_error")
    ]
    if rows.empty:
        return ""
    means = rows.groupby("scores")["value"].mean()
    return (
        f"The probabilities of {method} are off by {means['as predicted']:.3f} on average (expected calibration "
        f"error); after sigmoid calibration by {means['sigmoid']:.3f}."
    )


def _labels(labels: pd.DataFrame | None) -> str:
    """Return which labels the decisions of the shown method assign far too often, and which never."""
    if labels is None:
        return ""
    seen = labels[labels["observed"] > 0]
    often = over_assigned(seen["label"], seen["predicted"] / seen["observed"], seen["prevalence"])
    never = seen.loc[(seen["predicted"] == 0) & (seen["count"] > 0), "label"].tolist()
    named = (("Assigned far too often", [*map(str, often)]), ("Never assigned", never))
    return " ".join(f"{what}: {listed(names, _NAMED)}." for what, names in named if names)
