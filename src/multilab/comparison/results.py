"""Results of a comparison: its tables, and ``leaderboard.json`` for programs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.cells.environment import environment
from multilab.cells.rows import indices
from multilab.comparison import Recommendation
from multilab.comparison.decisions import Effects
from multilab.comparison.plan import MethodRun, Request
from multilab.comparison.scores import CellScores
from multilab.core import write_atomically
from multilab.core.numbers import finite
from multilab.statistics import Leaderboard

FORMAT = 1
"""Raised when ``leaderboard.json`` changes its meaning."""


@dataclass
class Results:
    """Results of a comparison.

    Attributes
    ----------
    request : Request
    entries : list of MethodRun
        In running order.
    scores : CellScores
    board : Leaderboard
        The methods with their own decisions.
    final : Leaderboard
        The leaderboard that the recommendation is based on, with rows for tuned thresholds if the first metric depends
        on decisions.
    recommendation : Recommendation
    commands : list of str
        Commands to run next.
    facts : dict
        Name, title, rows, features and labels of the dataset.
    baseline : str
    seconds : float
        Wall seconds of the comparison.
    chosen : str
        The method of the per-label table and the learning curve: the recommended one, otherwise the best; may be empty.
    effects : Effects or None
    labels : DataFrame or None
        Per-label table of the recommended method.
    curve : DataFrame or None
        Learning curve of the recommended method.
    """

    request: Request
    entries: Sequence[MethodRun]
    scores: CellScores
    board: Leaderboard
    final: Leaderboard
    recommendation: Recommendation
    commands: Sequence[str]
    facts: dict[str, Any]
    baseline: str
    seconds: float
    chosen: str = ""
    effects: Effects | None = None
    labels: pd.DataFrame | None = None
    curve: pd.DataFrame | None = None

    @property
    def finished(self) -> bool:
        """Whether a method other than the baseline finished."""
        return any(entry.name not in (self.baseline, *self.board.failures) for entry in self.entries)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name of their files."""
        board = self.board
        summary = board.table.assign(pareto=[name in board.pareto for name in board.table.index])
        tables = {
            "scores": self.scores.rows(self.entries),
            "table": summary.rename_axis("method").reset_index(),
            "ranks": board.ranks.rename_axis("method").reset_index(),
            "intervals": board.intervals().rename_axis("method").reset_index(),
            "tests": board.tests().reset_index(names="method").assign(best=board.best[0] if len(board.table) else ""),
            "costs": costs(self.entries),
            "decided": self.final.decided,
        }
        if self.effects is not None:
            tables |= {"thresholds": self.effects.thresholds, "calibration": self.effects.calibration}
        tables |= {"labels": self.labels} if self.labels is not None else {}
        return tables | ({"learning_curve": self.curve} if self.curve is not None else {})


def costs(entries: Sequence[MethodRun]) -> pd.DataFrame:
    """Return the estimate and the outcome of each method."""
    return pd.DataFrame(
        [
            {
                "method": entry.name,
                "estimated_seconds": entry.seconds,
                "estimated_megabytes": entry.megabytes,
                "factor": entry.factor,
                "wall_seconds": entry.spent,
                "status": entry.status,
                "note": entry.note,
            }
            for entry in entries
        ]
    )


def write_files(results: Results) -> Path:
    """Write the tables and ``leaderboard.json`` into the folder of the report; return the path of the JSON file."""
    folder = results.request.out
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in results.tables.items():
        write_atomically(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    target = folder / "leaderboard.json"
    write_atomically(target, json.dumps(content(results), indent=1, allow_nan=False) + "\n")
    return target


def content(results: Results) -> dict[str, Any]:
    """Return ``leaderboard.json``: which rows, which methods, the value of each metric on each split.

    Two files have paired splits where the ``digest`` of the splits are equal.
    """
    request, entries, board = results.request, results.entries, results.board
    rows = results.scores.rows(entries)
    values = {
        str(method): {
            str(metric): dict(zip(map(str, group["split"]), group["value"], strict=True))
            for metric, group in method_rows.groupby("metric", sort=False)
        }
        for method, method_rows in rows.groupby("method", sort=False)
    }
    splits = []
    for cell in entries[0].cells:
        train, test = indices(cell.split_ref)
        reference = {"split": cell.split_ref.split, "digest": cell.split_ref.digest}
        splits.append({**reference, "train": len(train), "test": len(test)})
    return {
        "format": FORMAT,
        "dataset": results.facts,
        "protocol": request.protocol,
        "metric": request.metric,
        "directions": dict(board.directions),
        "alpha": board.alpha,
        "test_to_train": board.test_to_train,
        "splits": splits,
        "methods": [_method(entry, values.get(entry.name, {}), board) for entry in entries],
        "ranking": [str(name) for name in board.table.index],
        "best": list(board.best) if len(board.table) else [],
        "recommendation": {
            "method": results.recommendation.method,
            "text": list(results.recommendation.sentences),
            "not_separated": list(results.recommendation.level),
            "cheaper": list(results.recommendation.cheaper),
            "paid": finite(results.recommendation.paid.to_dict(orient="index")),
            "over_assigned": {
                name: [label._asdict() for label in labels]
                for name, labels in results.recommendation.over_assigned.items()
            },
            "commands": list(results.commands),
        },
        "environment": environment(),
    }


def _method(entry: MethodRun, values: dict[str, Any], board: Leaderboard) -> dict[str, Any]:
    complete = entry.name not in board.failures
    return {
        "name": entry.name,
        "title": entry.member.method.title,
        "reason": entry.member.why,
        "changes": entry.member.changes,
        "status": entry.status,
        "note": entry.note,
        "keys": {str(cell.split_ref.split): cell.key for cell in entry.cells},
        "means": finite(dict(board.table.loc[entry.name])) if complete else {},
        "values": finite(values),
    }
