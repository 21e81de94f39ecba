"""Table of time, memory and model size."""

import math

import pandas as pd

from multilab.reports.data import ReportData
from multilab.reports.tables.entry import Entry, TextTable, number
from multilab.reports.tables.scores import best_first

_RECALL, _RECALL_TITLE = "neighbour_recall", "Recall of approximate neighbours"


def cost_table(report: ReportData) -> TextTable | None:
    """Return what each method costs: means over the data sets on which all methods were measured, the least in bold.

    The best average rank is first. Memory is shown if all cells have a peak: it is 0 in processes that had memory of
    earlier fits to reuse. If methods of the study read base scores, only the time to fit has them in; nothing else is
    bold then. The last column is the recall of approximate neighbours, where it was measured.

    ``None`` without measurements.
    """
    measured = report.measured
    if measured is None:
        return None
    own = measured[measured["method"].isin(report.methods)]
    fit, inputs = _numbers(own, "fit_seconds"), _numbers(own, "input_seconds").fillna(0.0)
    reads = bool((inputs > 0).any())
    peaks = _numbers(own, "peak_mb")
    fit_title = "Fit with base scores, s" if reads else "Fit, s"
    columns = {
        fit_title: _means(own, fit + inputs),
        **({"Fit alone, s": _means(own, fit)} if reads else {}),
        "Predict, s": _means(own, _numbers(own, "predict_seconds")),
        **({"Peak memory, MB": _means(own, peaks)} if (peaks > 0).all() else {}),
        "Model, kB": _means(own, _numbers(own, "model_bytes") / 1e3),
        _RECALL_TITLE: _numbers(own, _RECALL).groupby(own["method"]).mean(),
    }
    order = best_first(report.methods, report.comparisons.get(report.primary[0]))
    table = pd.DataFrame(columns).reindex(order)
    table = table.loc[:, (table.fillna(0) > 0).any()]
    marked = {fit_title} if reads else set(table.columns) - {_RECALL_TITLE}
    best = {name: values.min() for name, values in table.items() if name in marked}
    rows = tuple(
        (report.method_title(method), tuple(Entry(number(v), best=v == best.get(name)) for name, v in values.items()))
        for method, values in table.iterrows()
    )
    return TextTable("Method", tuple(table.columns), rows) if len(table.columns) else None


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


def _means(measured: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Return the mean over the data sets that all methods have values on, by method."""
    return values.groupby([measured["dataset"], measured["method"]]).mean().unstack().dropna().mean()
