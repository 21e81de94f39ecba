"""Tables of time, memory and model size."""

import math

import pandas as pd

from multilab.reports.data import ReportData
from multilab.reports.tables.entry import number
from multilab.reports.tables.scores import ScoreTable, best_first, table_rows
from multilab.statistics import rank_rows, summarise
from multilab.statistics.result_files import read_table

_COSTS = (
    ("fit_seconds", "Time to fit", "s", 1.0),
    ("input_seconds", "Time to fit the base scores it reads, shared by all who read them", "s", 1.0),
    ("predict_seconds", "Time to predict", "s", 1.0),
    ("peak_mb", "Peak memory", "MB", 1.0),
    ("model_bytes", "Size of the model", "kB", 1e3),
)
_RECALL = "neighbour_recall"


def cost_tables(report: ReportData) -> tuple[ScoreTable, ...]:
    """Return the measured costs: mean and standard deviation over splits, least in bold.

    The last table is the recall of approximate neighbours, largest in bold, of all columns that have it.
    """
    tables = [
        _table(report, column, title, report.methods, divisor, unit=unit) for column, title, unit, divisor in _COSTS
    ]
    columns = (*report.methods, *(column for variant in report.variants for column in variant.methods))
    measured = report.measured if report.measured is not None and _RECALL in report.measured else None
    known = set() if measured is None else set(measured.dropna(subset=_RECALL)["method"])
    approximate = tuple(method for method in columns if method in known)
    if approximate:
        tables.append(_table(report, _RECALL, "Recall of approximate neighbours", approximate, arrow="↑"))
    return tuple(table for table in tables if table is not None)


def core_hours(report: ReportData) -> float | None:
    """Return the hours that the cells of the study took on one core, without analyses; None without measurements.

    A cell that repetitions share counts once, as do inputs that several methods read: these have equal seconds.
    """
    measured = report.measured
    if measured is None:
        return None
    if "key" in measured:
        measured = measured.drop_duplicates("key")
    seconds = measured[["fit_seconds", "predict_seconds"]].sum().sum()
    if "input_seconds" in measured:
        seconds += measured.drop_duplicates(["dataset", "split", "input_seconds"])["input_seconds"].sum()
    if (path := report.folder / "tuned.csv").is_file():
        seconds += read_table(path).drop_duplicates(["dataset", "split", "method"])["tune_seconds"].sum()
    return float(seconds) / 3600


def _table(
    report: ReportData,
    column: str,
    title: str,
    methods: tuple[str, ...],
    divisor: float = 1.0,
    unit: str = "",
    arrow: str = "",
) -> ScoreTable | None:
    """Return the table of one measurement, None if no cell has it; with ``arrow`` large values are good."""
    if report.measured is None or column not in report.measured:
        return None
    values = pd.to_numeric(report.measured[column], errors="coerce") / divisor
    if not (values.fillna(0) > 0).any():
        return None
    long = report.measured.assign(metric=column, value=values)
    summary = summarise(long, column, report.datasets, methods)
    ranks = rank_rows(summary.mean, "max" if arrow else "min")
    rows = table_rows(summary, ranks.to_dict("index"), number)
    order = best_first(ranks[list(methods)].mean().fillna(math.inf))
    titles = tuple(report.method_title(method) for method in methods)
    return ScoreTable(title, titles, rows, order, unit=unit, arrow=arrow)
