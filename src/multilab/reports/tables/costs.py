"""Tables of time, memory and model size."""

import math
from dataclasses import replace

import pandas as pd

from multilab.reports.data import ReportData
from multilab.reports.tables.entry import number
from multilab.reports.tables.scores import ScoreTable, best_first, table_rows
from multilab.statistics import rank_rows, summarise

_COSTS = (
    ("fit_seconds", "Time to fit", "s", 1.0),
    ("input_seconds", "Time to fit the base scores it reads, shared by all who read them", "s", 1.0),
    ("predict_seconds", "Time to predict", "s", 1.0),
    ("peak_mb", "Peak memory", "MB", 1.0),
    ("model_bytes", "Size of the model", "kB", 1e3),
)


def cost_tables(report: ReportData) -> tuple[ScoreTable, ...]:
    """Return the measured costs: mean and standard deviation over splits, least in bold."""
    tables = []
    for column, title, unit, divisor in _COSTS:
        if report.measured is None or column not in report.measured:
            continue
        values = pd.to_numeric(report.measured[column], errors="coerce") / divisor
        if not (values.fillna(0) > 0).any():
            continue
        long = report.measured.assign(metric=column, value=values)
        summary = summarise(long, column, report.datasets, report.methods)
        ranks = rank_rows(summary.mean, "min")
        rows = tuple(
            (dataset, tuple(replace(entry, rank="") for entry in entries))
            for dataset, entries in table_rows(summary, ranks.to_dict("index"), number)
        )
        order = best_first(ranks[list(report.methods)].mean().fillna(math.inf))
        tables.append(ScoreTable(title, tuple(report.titles.values()), rows, order, unit=unit))
    return tuple(tables)
