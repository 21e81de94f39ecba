"""Page of a comparison: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.leaderboard import Leaderboard, Recommendation
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
from multilab.reports.tables.entry import number

__all__ = ["ComparisonPage", "write_comparison_page"]

_SHOWN = {"as predicted": "own decisions", "tuned": "tuned thresholds"}


@dataclass(frozen=True, eq=False)
class ComparisonPage:
    """What the page of a comparison shows.

    Attributes
    ----------
    title : str
        Of the dataset.
    facts : list of (name, value)
        The comparison in numbers.
    board : Leaderboard
        The methods with their own decisions.
    final : Leaderboard
        What is recommended from: with tuned thresholds too.
    baseline : str
    recommendation : Recommendation
    commands : sequence of str
        What to run next.
    methods : list of dict
        ``name``, ``title``, ``reason``, ``settings``, ``estimate``, ``spent``, ``status`` and ``note`` of every method.
    thresholds, calibration : DataFrame
        See :class:`multilab.commands.leaderboard.effects.Effects`; may be empty.
    objective : str
        What the thresholds are tuned for.
    left_out : dict of str to str
        Why a method has no tuned thresholds.
    method : str
        The method of the per-label table and the learning curve; empty without them.
    tuned : bool
        Whether the per-label table is that of tuned thresholds.
    labels, curve : DataFrame or None
    remarks : dict of str to str
        A sentence by section.
    origin : dict
        Dataset, protocol and environment.
    files : sequence of str
        Names of the files next to the page.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    board: Leaderboard
    final: Leaderboard
    baseline: str
    recommendation: Recommendation
    commands: Sequence[str]
    methods: Sequence[Mapping[str, Any]]
    thresholds: pd.DataFrame
    calibration: pd.DataFrame
    objective: str
    left_out: Mapping[str, str]
    method: str
    tuned: bool
    labels: pd.DataFrame | None
    curve: pd.DataFrame | None
    origin: Mapping[str, Any]
    files: Sequence[str]
    remarks: Mapping[str, str] = field(default_factory=dict)


def write_comparison_page(page: ComparisonPage, folder: Path) -> Path:
    """Write ``index.html`` into a folder and return its path.

    Raises
    ------
    ReportError
        If the extra ``lab`` is not installed.
    """
    board = page.board
    ranked = len(board.table) > 0
    content = {
        "page": page,
        "leaderboard": _leaderboard_rows(board) if ranked else [],
        "metrics": [(name, defined(name).title) for name in board.directions],
        "reference": _reference(page) if ranked else "",
        "tests": _test_rows(page.final, _reference(page)) if ranked else [],
        "paid": _paid_rows(page.recommendation),
        "intervals": interval_figure(page.final, page.baseline) if ranked else None,
        "seconds": seconds_figure(page.final, page.baseline) if ranked else None,
        "thresholds": threshold_figure(page.thresholds, page.objective) if len(page.thresholds) else None,
        "decisions": _effect_table(page.thresholds, "decision"),
        "probabilities": _effect_table(page.calibration, "scores"),
        "labels": label_figure(page.labels, page.method) if page.labels is not None else None,
        "label_rows": _label_rows(page.labels),
        "curve": curve_figure(page.curve, board.headline, page.method) if page.curve is not None else None,
        "origin": flat(page.origin),
        "objective": defined(page.objective).title,
    }
    return write_page(folder / "index.html", "comparison.html.j2", content, {"many_methods": 0})


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


def _reference(page: ComparisonPage) -> str:
    """Return the method that the tests compare with the others: the recommended one, else the best."""
    return page.recommendation.method or page.final.best[0]


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
