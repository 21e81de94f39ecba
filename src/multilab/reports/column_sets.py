"""Column sets of a study: the same methods set another way or tuned, beside their own settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.reports.pictures import Picture, rank_pictures
from multilab.reports.study import Study, load_comparisons, load_table, metric_title, set_columns
from multilab.reports.tables import Cell, ScoreTable, number, score_table
from multilab.statistics import Comparison, summarise

__all__ = ["Balance", "Chosen", "SetView", "column_sets"]


@dataclass(frozen=True)
class Balance:
    """One method of a set against its own settings: per metric, datasets won and lost and the mean difference."""

    title: str
    cells: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Chosen:
    """What tuning chose for one method on one dataset per split; ``best`` and ``seconds`` are means over them."""

    dataset: str
    method: str
    splits: tuple[str, ...]
    best: str
    seconds: str


@dataclass(frozen=True)
class SetView:
    """One column set ready for the page."""

    name: str
    about: str
    tune: Mapping[str, Any]
    datasets: tuple[str, ...]
    heads: tuple[str, ...]
    metrics: tuple[str, ...]
    tables: tuple[tuple[ScoreTable, Comparison | None], ...]
    headline: str
    pictures: tuple[Picture, ...]
    balance: tuple[Balance, ...]
    splits: tuple[str, ...]
    chosen: tuple[Chosen, ...]


def column_sets(study: Study) -> tuple[SetView, ...]:
    """Return the column sets that ``study.json`` names and that have scores."""
    sets = study.info.get("columns") or {}
    return tuple(_view(study, name, block) for name, block in sets.items() if _scored(study, name, block))


def _scored(study: Study, name: str, block: Mapping[str, Any]) -> bool:
    return bool(set(set_columns(name, block)) & set(study.scores["method"]))


def _view(study: Study, name: str, block: Mapping[str, Any]) -> SetView:
    columns = set_columns(name, block)
    part = _part(study, name, block, columns)
    tables = [(_beside(study, score_table(part, m), columns), part.comparisons.get(m)) for m in study.metrics]
    headline = study.primary[0] if study.primary else study.metrics[0]
    main = part.comparisons.get(headline)
    tuned = _tuned(study.folder / "tuned.csv", columns)
    splits = sorted(tuned["split"].unique()) if len(tuned) else []
    return SetView(
        name=name,
        about=str(block.get("about") or ""),
        tune=block.get("tune") or {},
        datasets=part.datasets,
        heads=tuple(part.titles.values()),
        metrics=tuple(metric_title(metric) for metric in study.metrics),
        tables=tuple(tables),
        headline=headline,
        pictures=rank_pictures(part, main) if main else (),
        balance=tuple(_balance(study, part, c, base) for c, base in columns.items() if base in study.methods),
        splits=tuple(f"fold {split}" for split in splits) if len(splits) > 1 else ("values",),
        chosen=_chosen(tuned, part.titles, splits),
    )


def _part(study: Study, name: str, block: Mapping[str, Any], columns: Mapping[str, str]) -> Study:
    """Return the set as a study of its own, so that the tables of a study serve it."""
    datasets = tuple(block.get("datasets") or study.datasets)
    summaries = {metric: summarise(study.scores, metric, datasets, list(columns)) for metric in study.metrics}
    titles = {c: study.method_title(c).removesuffix(f" ({name})") for c in columns}
    return replace(
        study,
        info={**study.info, "method_titles": titles, "columns": {}},
        datasets=datasets,
        methods=tuple(columns),
        summaries=summaries,
        comparisons=load_comparisons(study.folder / f"statistics-{name}.json", study.info, summaries),
    )


def _beside(study: Study, table: ScoreTable, columns: Mapping[str, str]) -> ScoreTable:
    """Return the table with each mean's difference to the method in the study's own settings."""
    own, sign = study.summaries[table.metric].mean, -1 if table.arrow == "↓" else 1
    values = summarise(study.scores, table.metric, [d for d, _ in table.rows], list(columns)).mean
    rows = []
    for dataset, cells in table.rows:
        made = []
        for cell, (column, base) in zip(cells, columns.items(), strict=True):
            known = base in own.columns and dataset in own.index
            change = values.loc[dataset, column] - own.loc[dataset, base] if known else math.nan
            made.append(_changed(cell, float(change), sign))
        rows.append((dataset, tuple(made)))
    return replace(table, rows=tuple(rows))


def _changed(cell: Cell, change: float, sign: int) -> Cell:
    if math.isnan(change):
        return cell
    digits = len(cell.mean.partition(".")[2])
    text = f"{change:+.{digits}f}".replace("-", "−")
    return replace(cell, delta=text, gain=0 if change == 0 else 1 if change * sign > 0 else -1)


def _balance(study: Study, part: Study, column: str, base: str) -> Balance:
    cells = []
    for metric in study.metrics:
        own, comparison = study.summaries[metric].mean, part.comparisons.get(metric)
        if comparison is None:
            cells.append(("–", 0))
            continue
        change = (part.summaries[metric].mean[column] - own[base].reindex(list(part.datasets))).dropna()
        gain = change if comparison.direction == "max" else -change
        won, lost = int((gain > 0).sum()), int((gain < 0).sum())
        mean = f"{change.mean():+.4f}".replace("-", "−") if len(change) else "–"
        cells.append((f"{won}–{lost} ({mean})", (won > lost) - (won < lost)))
    return Balance(part.method_title(column), tuple(cells))


def _tuned(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    needed = {"dataset", "split", "method", "parameter", "value", "best", "tune_seconds"}
    if not path.is_file():
        return pd.DataFrame(columns=sorted(needed))
    found = load_table(path, needed, numbers=False)
    return found[found["method"].isin(list(columns))]


def _chosen(tuned: pd.DataFrame, titles: Mapping[str, str], splits: Sequence[Any]) -> tuple[Chosen, ...]:
    rows = []
    for (dataset, method), part in tuned.groupby(["dataset", "method"], sort=False):
        once = part.drop_duplicates("split")
        rows.append(
            Chosen(
                dataset=str(dataset),
                method=titles[str(method)],
                splits=tuple(_values(part[part["split"] == split]) or "–" for split in splits),
                best=number(pd.to_numeric(once["best"], errors="coerce").mean()),
                seconds=number(pd.to_numeric(once["tune_seconds"], errors="coerce").mean()),
            )
        )
    return tuple(rows)


def _values(part: pd.DataFrame) -> str:
    """Return the chosen values of one fold; they are JSON, since ``null`` is a choice."""
    found = {str(row.parameter): json.loads(str(row.value)) for row in part.itertuples(index=False)}
    return ", ".join(f"{name} {f'{v:.3g}' if isinstance(v, float) else v}" for name, v in found.items())
