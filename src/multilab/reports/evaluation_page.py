"""Page of `multilab evaluate`: models from elsewhere on the same labelled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.cells.environment import environment
from multilab.comparison import Evaluation
from multilab.metrics.registry import defined
from multilab.reports.comparison_page import effect_table, flagged_labels, interval_figure, label_figure, label_rows
from multilab.reports.page import flat, write_page
from multilab.reports.tables.entry import thousands

__all__ = ["write_evaluation_page"]

_OF_ROWS = (
    "Bar: value on all rows. Line: bootstrap interval over rows. The rows are the same for all models: whether two of "
    "them differ is for the tests to say, not for the overlap."
)


def write_evaluation_page(
    result: Evaluation,
    folder: Path,
    title: str,
    *,
    files: Sequence[str] = (),
    commands: Sequence[str] = (),
    checks: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write ``index.html`` into a folder and return its path.

    Parameters
    ----------
    result : Evaluation
    folder : Path
    title : str
    files : sequence of str
        Names of the files in the folder that the page links to.
    commands : sequence of str
        What to run next.
    checks : sequence of str
        Outcomes of the checks of the command.
    settings : mapping, optional
        What the evaluation was made from; ``command`` is the whole command.

    Raises
    ------
    MultilabError
        If Jinja2 or matplotlib is not installed.
    """
    board = result.board
    values = result.values.set_index(["model", "metric"])
    headline = values.xs(board.headline, level="metric").loc[list(board.table.index)]
    shown = board.best[0]  # the per-label figure is of one row; the tables are of all
    origin = dict(settings or {})
    content = {
        "title": title,
        "facts": [
            ("rows", thousands(result.n_rows)),
            ("labels", thousands(len(result.labels[shown]))),
            ("models", len(result.models)),
        ],
        "sentences": result.sentences(),
        "notes": result.notes,
        "checks": checks,
        "commands": commands,
        "files": files,
        "level": f"{100 * (1 - result.alpha):g}",
        "alpha": result.alpha,
        "metrics": [(name, defined(name).title) for name in board.directions],
        "rows": _rows(result, values),
        "intervals": interval_figure(board.headline, headline.rename(columns={"value": "mean"}), _OF_ROWS)
        if headline["low"].notna().any()
        else None,
        "tests": [
            {
                **row,
                "interval": f"{row['low']:+.4f} to {row['high']:+.4f}",
                "verdict": "not separated"
                if not row["differs"]
                else "significantly better"
                if row["advantage"] > 0
                else "significantly worse",
            }
            for row in result.tests.to_dict("records")
        ],
        "decisions": effect_table(_decided(result), "decision"),
        "probabilities": effect_table(result.calibration.rename(columns={"model": "method"}), "scores"),
        "left_out": result.left_out,
        "shown": shown,
        "labels": label_figure(result.labels[shown], shown),
        "label_tables": [(name, label_rows(table), flagged_labels(table)) for name, table in result.labels.items()],
        "command": origin.pop("command", None),
        "origin": flat({**origin, "environment": environment()}),
    }
    return write_page(folder / "index.html", "evaluation.html.j2", content, {"many_methods": 0})


def _rows(result: Evaluation, values: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of the table, the best one first; the best value of each metric is marked."""
    board = result.board
    table = board.table[list(board.directions)]
    best = {name: table[name].min() if way == "min" else table[name].max() for name, way in board.directions.items()}
    rows = []
    for name in table.index:
        low, high = values.loc[(name, board.headline), ["low", "high"]]
        cells = [(f"{v:.4f}" if v == v else "–", v == best[metric]) for metric, v in table.loc[name].items()]
        rows.append({"name": name, "values": cells, "interval": f"{low:.3f} to {high:.3f}" if low == low else "–"})
    return rows


def _decided(result: Evaluation) -> pd.DataFrame:
    """Return the metrics of decisions of each model as it decides and with thresholds."""
    needs = result.values["metric"].map(lambda name: defined(name).needs == "decisions")
    tuned = {plain: name for name, plain in result.board.untuned.items()}
    parts = [
        result.values[needs & (result.values["model"] == name)].assign(method=plain, decision=decision)
        for plain in tuned
        for name, decision in ((plain, "as predicted"), (tuned[plain], "tuned"))
    ]
    return pd.concat(parts) if parts else result.values.head(0)
