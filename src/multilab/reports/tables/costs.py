"""Tables of time, memory and model size."""

import math

import pandas as pd

from multilab.reports.data import ReportData
from multilab.reports.tables.entry import number
from multilab.reports.tables.scores import ScoreTable, best_first, table_rows
from multilab.statistics import rank_rows, summarise

_RECALL = "neighbour_recall"


def cost_tables(report: ReportData) -> tuple[ScoreTable, ...]:
    """Return the measured costs: mean and standard deviation over splits, least in bold.

    If methods of the study read base scores, only the time to fit has them in; no other table has bold entries then.
    Peaks of 0 are missing: these were measured in processes that had memory of earlier fits to reuse.
    The last table is the recall of approximate neighbours, largest in bold, of all columns that have it.
    """
    measured = report.measured
    if measured is None:
        return ()
    own = _numbers(measured, "fit_seconds")
    inputs = _numbers(measured, "input_seconds") if "input_seconds" in measured else pd.Series(0.0, measured.index)
    reads = bool((inputs[measured["method"].isin(report.methods)] > 0).any())
    direction, without = ("", ", without base methods") if reads else ("min", "")
    tables = [_table(report, own + inputs, f"Time to fit{', base scores included' if reads else ''}", "s", "min")]
    if reads:
        tables.append(_table(report, own, "Time to fit, without base scores", "s", direction))
        tables.append(_table(report, inputs, "Time to fit base scores, shared by all who read them", "s", direction))
    tables += [
        _table(report, _numbers(measured, "predict_seconds"), f"Time to predict{without}", "s", direction),
        _table(report, _numbers(measured, "peak_mb").replace(0.0, math.nan), f"Peak memory{without}", "MB", direction),
        _table(report, _numbers(measured, "model_bytes") / 1e3, f"Size of the model{without}", "kB", direction),
    ]
    columns = (*report.methods, *(column for variant in report.variants for column in variant.methods))
    recall = _numbers(measured, _RECALL)
    known = set(measured.loc[recall.notna(), "method"])
    if approximate := tuple(method for method in columns if method in known):
        tables.append(_table(report, recall, "Recall of approximate neighbours", "", "max", approximate))
    return tuple(table for table in tables if table is not None)


def core_hours(report: ReportData) -> float | None:
    """Return the hours that the cells of the study took on one core, without analyses; None without measurements.

    A cell that repetitions share counts once, as do inputs that several methods read: these have equal seconds.
    """
    measured = report.measured
    if measured is None:
        return None
    searches = _numbers(measured, "tune_seconds").sum()  # listed once where repetitions share it
    if "key" in measured:
        measured = measured.drop_duplicates("key")
    seconds = searches + measured[["fit_seconds", "predict_seconds"]].sum().sum()
    if "input_seconds" in measured:
        seconds += measured.drop_duplicates(["dataset", "split", "input_seconds"])["input_seconds"].sum()
    return float(seconds) / 3600


def _numbers(measured: pd.DataFrame, column: str) -> pd.Series:
    """Return one measurement of all cells, NaN where a cell, or the whole study, does not have it."""
    return pd.to_numeric(measured[column] if column in measured else pd.Series(math.nan, measured.index), "coerce")


def _table(
    report: ReportData,
    values: pd.Series,
    title: str,
    unit: str,
    direction: str,
    methods: tuple[str, ...] = (),
) -> ScoreTable | None:
    """Return the table of one measurement, None if no cell has it; with ``max`` large values are good."""
    if report.measured is None or not (values.fillna(0) > 0).any():
        return None
    methods = methods or report.methods
    summary = summarise(report.measured.assign(metric=title, value=values), title, report.datasets, methods)
    ranks = rank_rows(summary.mean, direction or "min")
    order = best_first(ranks[list(methods)].mean().fillna(math.inf))
    titles = tuple(report.method_title(method) for method in methods)
    arrow = "↑" if direction == "max" else ""
    return ScoreTable(title, titles, table_rows(summary, direction, number), order, unit=unit, arrow=arrow)
