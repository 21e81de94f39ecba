"""The HTML page of a comparison, and what it says about thresholds, calibration and more rows."""

from multilab.commands.leaderboard.effects import Effects, tuned_name
from multilab.commands.leaderboard.plan import duration
from multilab.commands.leaderboard.results import Results
from multilab.experiments.environment import environment
from multilab.experiments.stored import setting_text
from multilab.experiments.workers import jobs
from multilab.metrics.registry import defined
from multilab.reports.comparison.page import ComparisonPage, write_comparison_page

__all__ = ["write_page"]


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
        sentences=results.recommendation.sentences,
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
        remarks={"thresholds": _thresholds(results, baseline), "curve": _curve(results)},
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
        gain = tuned.difference(tuned_name(method), method)
        verb = "raise" if board.directions[effects.objective] == "max" else "lower"
        change = "improve" if gain["mean"] > 0 else "worsen"
        shown = (
            ""
            if board.n_splits < 2
            else f" (95 % interval {gain['low']:+.4f} to {gain['high']:+.4f}, p = {gain['p']:.2g})"
        )
        verb = {"improve": verb, "worsen": "raise" if verb == "lower" else "lower"}[change]
        sentences.append(f"Tuned thresholds {verb} {title} of {method} by {abs(gain['mean']):.4f}{shown}.")
    if baseline in effects.methods:
        value = tuned.table.loc[tuned_name(baseline), effects.objective]
        below = [
            n
            for n in board.table.index
            if n != baseline and _worse(board.table.loc[n, effects.objective], value, board, effects)
        ]
        text = f"Without any feature, thresholds alone reach {value:.4f} ({tuned_name(baseline)})"
        sentences.append(
            f"{text}: better than {len(below)} of the methods with their own decisions." if below else f"{text}."
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
        f"Its probabilities are off by {means['as predicted']:.3f} on average (expected calibration error); after "
        f"sigmoid calibration by {means['sigmoid']:.3f}."
    )


def _curve(results: Results) -> str:
    """Return whether more rows would help, from the last two sizes of the learning curve."""
    if results.curve is None:
        return ""
    metric, board = results.request.metric, results.board
    own = results.curve[results.curve["metric"] == metric]
    points = own.groupby("share").agg(rows=("rows", "mean"), value=("value", "mean"))
    if len(points) < 2:
        return "There are too few rows, or too little of the budget was left, for smaller training sets."
    (_, before), (_, last) = list(points.iterrows())[-2:]
    sign = 1 if board.directions[metric] == "max" else -1
    gain, title = sign * (last["value"] - before["value"]), defined(metric).title
    spread = own[own["share"] == points.index[-1]]["value"].std()
    text = (
        f"From {before['rows']:.0f} to {last['rows']:.0f} training rows {title} gets "
        f"{'better' if gain > 0 else 'worse'} by {abs(gain):.4f}"
    )
    if gain > spread:
        return f"{text}, more than the spread between splits ({spread:.4f}): more rows would probably still help."
    return f"{text}, within the spread between splits ({spread:.4f}): more rows of this kind would help little."
