"""Tables of the variants of a study: the same methods with other settings or tuned, compared with its own."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.reports.data import ReportData, VariantData, load_comparisons, metric_direction, metric_title
from multilab.reports.figures import Figure
from multilab.reports.figures.diagrams import rank_figures
from multilab.reports.tables.entry import Entry, number, signed_text
from multilab.reports.tables.scores import ScoreTable, score_table
from multilab.statistics import Comparison
from multilab.statistics.result_files import read_table, statistics_file, variant_column

_TUNED = {"dataset", "split", "method", "parameter", "value", "best"}


@dataclass(frozen=True)
class Balance:
    """One method of a variant compared with the study's own settings.

    ``cells`` has, per metric, the datasets won and lost with the mean difference, and the sign of won minus lost.
    """

    title: str
    cells: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Chosen:
    """Values that tuning chose for one method on one dataset, per split; ``best`` and ``seconds`` are means."""

    dataset: str
    method: str
    splits: tuple[str, ...]
    best: str
    seconds: str


@dataclass(frozen=True)
class VariantView:
    """One variant ready for the page."""

    variant: VariantData
    heads: tuple[str, ...]
    metrics: tuple[str, ...]
    tables: tuple[tuple[ScoreTable, Comparison | None], ...]
    headline: str
    figures: tuple[Figure, ...]
    balance: tuple[Balance, ...]
    splits: tuple[str, ...]
    chosen: tuple[Chosen, ...]


def variant_views(report: ReportData) -> tuple[VariantView, ...]:
    """Return the variants of a study."""
    return tuple(_view(report, variant) for variant in report.variants)


def _view(report: ReportData, variant: VariantData) -> VariantView:
    own, report = _as_report(report, variant), _on_the_splits_of(report, variant)
    headline = report.primary[0]
    main = own.comparisons.get(headline)
    tuned = _tuned(report.folder / "tuned.csv", variant)
    splits = sorted(tuned["split"].unique())
    return VariantView(
        variant=variant,
        heads=tuple(own.titles.values()),
        metrics=tuple(metric_title(metric) for metric in report.metrics),
        tables=tuple(
            (_with_deltas(report, own, variant, metric), own.comparisons.get(metric)) for metric in own.metrics
        ),
        headline=headline,
        figures=rank_figures(own, main) if main else (),
        balance=tuple(_balance(report, own, c, base) for c, base in variant.methods.items() if base in report.methods),
        splits=tuple(f"fold {split}" for split in splits) if len(splits) > 1 else ("values",),
        chosen=_chosen(tuned, own, splits),
    )


def _as_report(report: ReportData, variant: VariantData) -> ReportData:
    """Return the variant as a study of its own, so that the tables of a study can be used."""
    methods = tuple(variant.methods)
    board = replace(report.board, datasets=variant.datasets, methods=methods)
    control = variant_column(str(report.info.get("control")), variant.name)
    return replace(
        report,
        info={**report.info, "method_titles": variant.titles, "variants": {}},
        board=board,
        comparisons=load_comparisons(report.folder / statistics_file(variant.name), report.info, board, control),
    )


def _on_the_splits_of(report: ReportData, variant: VariantData) -> ReportData:
    """Return the report with the means of the splits that a variant was run on, if it was not run on all."""
    scores = report.scores
    run = scores[scores["method"].isin(list(variant.methods))].set_index(["dataset", "split"]).index.unique()
    elsewhere = scores["dataset"].isin(variant.datasets) & ~scores.set_index(["dataset", "split"]).index.isin(run)
    if not elsewhere.any():
        return report
    return replace(report, board=replace(report.board, scores=scores[~elsewhere]))


def _with_deltas(report: ReportData, own: ReportData, variant: VariantData, metric: str) -> ScoreTable:
    """Return the table of a metric with the difference of each mean to the method with the study's own settings."""
    table, sign = score_table(own, metric), -1 if metric_direction(metric) == "min" else 1
    main, means = report.summaries[metric].mean, own.summaries[metric].mean
    rows = []
    for dataset, entries in table.rows:
        changed = []
        for entry, (column, base) in zip(entries, variant.methods.items(), strict=True):
            known = base in main.columns and dataset in main.index
            change = float(means.loc[dataset, column] - main.loc[dataset, base]) if known else math.nan
            changed.append(entry if math.isnan(change) else _with_delta(entry, change, sign, table.decimals))
        rows.append((dataset, tuple(changed)))
    return replace(table, rows=tuple(rows))


def _with_delta(entry: Entry, change: float, sign: int, decimals: int) -> Entry:
    return replace(entry, delta=signed_text(change, decimals), gain=int((change * sign > 0) - (change * sign < 0)))


def _balance(report: ReportData, own: ReportData, column: str, base: str) -> Balance:
    cells = []
    for metric in report.metrics:
        if not metric_direction(metric):
            cells.append(("–", 0))
            continue
        main = report.summaries[metric].mean[base].reindex(list(own.datasets))
        change = (own.summaries[metric].mean[column] - main).dropna()
        gain = change if metric_direction(metric) == "max" else -change
        won, lost = int((gain > 0).sum()), int((gain < 0).sum())
        mean = signed_text(change.mean(), 4) if len(change) else "–"
        cells.append((f"{won}–{lost} ({mean})", (won > lost) - (won < lost)))
    return Balance(own.method_title(column), tuple(cells))


def _tuned(path: Path, variant: VariantData) -> pd.DataFrame:
    if not path.is_file():
        return pd.DataFrame(columns=sorted(_TUNED))
    tuned = read_table(path, _TUNED, text=True)
    return tuned[tuned["method"].isin(list(variant.methods))]


def _chosen(tuned: pd.DataFrame, own: ReportData, splits: Sequence[str]) -> tuple[Chosen, ...]:
    rows, measured = [], own.measured
    seconds: Mapping[Any, float] = {}
    if measured is not None and "tune_seconds" in measured:
        seconds = measured.groupby(["dataset", "method"])["tune_seconds"].mean().to_dict()
    for (dataset, method), trials in tuned.groupby(["dataset", "method"], sort=False):
        per_split = trials.drop_duplicates("split")
        rows.append(
            Chosen(
                dataset=str(dataset),
                method=own.method_title(str(method)),
                splits=tuple(_values(trials[trials["split"] == split]) or "–" for split in splits),
                best=number(pd.to_numeric(per_split["best"], errors="coerce").mean()),
                seconds=number(seconds.get((dataset, method), math.nan)),
            )
        )
    return tuple(rows)


def _values(trials: pd.DataFrame) -> str:
    """Return the chosen values of one fold; they are JSON, since ``null`` is a choice."""
    values = {str(row.parameter): json.loads(str(row.value)) for row in trials.itertuples(index=False)}
    return ", ".join(f"{name} {f'{v:.3g}' if isinstance(v, float) else v}" for name, v in values.items())
