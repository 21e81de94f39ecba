"""Tables of a study from its stored cells: metrics, measurements, tuned arguments, sampling errors, unfinished."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from multilab.cells.cell import Cell
from multilab.cells.cell_metrics import evaluate_cell, labels_of
from multilab.cells.checks import changed_results
from multilab.cells.execute import parallel_map
from multilab.cells.fit_costs import RECALL
from multilab.cells.store import Store
from multilab.experiments.study import Study
from multilab.metrics import METRICS
from multilab.metrics.registry import defined, paper_metrics
from multilab.statistics.result_files import CELL

if TYPE_CHECKING:  # every train stage imports this file, and needs neither
    from multilab.printed import PublishedTables

__all__ = [
    "FEW_TEST_SETS",
    "MEASURED",
    "evaluate",
    "extra_quantities",
    "learned",
    "measurements",
    "sampling_errors",
    "tuned",
    "unchecked",
    "unfinished",
]

FEW_TEST_SETS = 5
"""Minimum number of test sets for a standard error from their spread; below it, rows are bootstrapped."""
_DRAWS = 200  # bootstrap draws: a standard error is then known to about 5 %

MEASURED = ("fit_seconds", "input_seconds", "predict_seconds", "peak_mb", "model_bytes")
"""Measurements of a cell; ``input_seconds`` is the time of fitting the cells that it reads."""
_TUNE = "tune_seconds"


def extra_quantities(
    study: Study, published: PublishedTables | None = None
) -> Callable[[str], tuple[tuple[str, str], ...]]:
    """Return the function that gives the ``extra`` pairs of a method, see `evaluate_cell`.

    These are the metrics of papers that the study lists, and what ``published`` tables have under other conventions.
    """
    listed = tuple((name, study.conventions) for name in study.metrics if name in paper_metrics())
    if published is None:
        return lambda method: listed
    return functools.cache(lambda method: (*listed, *published.quantities(method, study.conventions)))


def _evaluate(work: tuple[Cell, Iterable[tuple[str, str]]], store: Store, conventions: str) -> dict[str, float]:
    cell, extra = work
    return evaluate_cell(cell, store, conventions, extra)


def evaluate(
    study: Study, cells: Iterable[Cell], store: Store, published: PublishedTables | None = None
) -> pd.DataFrame:
    """Return every (dataset, split, method, metric) of a study's cells in a fixed order, with the cell key.

    Metrics are those of :data:`multilab.metrics.METRICS` and of `extra_quantities`.
    """
    cells = list(cells)
    distinct = {(cell.key, cell.method.name): cell for cell in cells}  # a cell may be that of many repetitions
    extra = extra_quantities(study, published)
    work = [(cell, extra(cell.method.name)) for cell in distinct.values()]
    metrics = parallel_map(functools.partial(_evaluate, store=store, conventions=study.conventions), work)
    known = dict(zip(distinct, metrics, strict=True))
    rows = []
    for cell in cells:
        index = cell.split_ref.dataset, cell.split_ref.split, cell.method.name
        values = known[cell.key, cell.method.name]
        rows += [(*index, metric, value, cell.key) for metric, value in values.items()]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value", "key"])


def measurements(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return seconds, memory and model size of cells; of some also seconds of a search, recall of neighbours.

    The seconds of a search that repetitions share are listed once. Nothing is known of cells from a pack.
    """
    rows, searched = [], set()
    for cell in cells:
        record, identifier = store.record(cell.key), (cell.key, cell.method.name)
        numbers = [record.get(name, math.nan) for name in (*MEASURED, RECALL)]
        search = math.nan if identifier in searched else record.get(_TUNE, math.nan)
        searched.add(identifier)
        rows.append((*cell.row, *numbers, search, record["alone"], cell.key))
    table = pd.DataFrame(rows, columns=["dataset", "split", "method", *MEASURED, RECALL, _TUNE, "alone", "key"])
    table["model_bytes"] = table["model_bytes"].astype("Int64")
    return table.drop(columns=[name for name in (RECALL, _TUNE) if table[name].isna().all()])


def unfinished(cells: Iterable[Cell], store: Store, written: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the cells without a result, with the reason and, if known, the seconds they took.

    ``written`` are the rows that the study has of them: a failure that came from a pack does not say its seconds.
    """
    rows, known = [], {} if written is None else written.set_index(CELL)["seconds"].to_dict()
    for cell in cells:
        if not store.has(cell.key):
            failure = store.failure(cell.key) or {"reason": "not run"}
            seconds = failure.get("seconds", known.get(cell.row, math.nan))
            rows.append((*cell.row, failure["reason"], round(seconds, 1), cell.key))
    return pd.DataFrame(rows, columns=[*CELL, "reason", "seconds", "key"])


def unchecked(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return of each class how many results were computed before its files changed, and how many of them are equal.

    Classes whose results were all recomputed since, and are equal, are left out.
    """
    by_key = {cell.key: cell for cell in cells}
    rows = [(one.group, one.equal) for one in changed_results(by_key, store, by_key.get)]
    table = pd.DataFrame(rows, columns=["class", "equal"]).groupby("class")["equal"].agg(results="size", equal="sum")
    return table[table["equal"] < table["results"]].reset_index()


def tuned(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return the arguments that the searches of tuned cells chose, a row per argument.

    A search shared by all repetitions is listed once. ``value`` is JSON, as in the ``trials.csv`` of the cell;
    ``metric`` and ``best`` are the optimised metric and its best mean over the inner folds.
    """
    rows, listed = [], set()
    for cell in cells:
        record, identifier = store.record(cell.key), (cell.key, cell.method.name)
        if "tuned" not in record or identifier in listed:
            continue
        listed.add(identifier)
        trials = pd.read_csv(store.path(cell.key) / "trials.csv", float_precision="round_trip")
        metric = str(trials.columns[-1])
        best = trials[metric].agg(METRICS[metric].direction)
        index = cell.split_ref.dataset, cell.split_ref.split, cell.method.name
        for name, value in sorted(record["tuned"].items()):
            rows.append((*index, name, json.dumps(value), metric, best))
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "parameter", "value", "metric", "best"])


def sampling_errors(
    study: Study, cells: Iterable[Cell], store: Store, published: PublishedTables | None = None
) -> pd.DataFrame:
    """Return the sampling errors of the means that published cells are compared with.

    The standard deviation of a bootstrap over the rows of the first test set (200 draws that all methods share),
    divided by the root of the number of test sets; only for datasets with fewer than :data:`FEW_TEST_SETS` of these.

    Returns
    -------
    DataFrame
        Columns dataset, split, method, metric, error.
    """
    cells = list(cells) if published else []
    parts: dict[str, set[str]] = {}
    for cell in cells:
        parts.setdefault(cell.split_ref.dataset, set()).add(cell.split_ref.digest)
    first = [cell for cell in cells if cell.split_ref.split == 0 and len(parts[cell.split_ref.dataset]) < FEW_TEST_SETS]
    wanted = functools.cache(published.compared) if published else lambda method, conventions: ()
    work = [(cell, names) for cell in first if (names := wanted(cell.method.name, study.conventions))]
    errors_of_cells = parallel_map(
        functools.partial(_sampling_errors, store=store, conventions=study.conventions), work
    )
    rows = []
    for (cell, _), errors in zip(work, errors_of_cells, strict=True):
        ref, root = cell.split_ref, len(parts[cell.split_ref.dataset]) ** 0.5
        rows += [(ref.dataset, ref.split, cell.method.name, name, error / root) for name, error in errors.items()]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "error"])


def _sampling_errors(work: tuple[Cell, tuple[str, ...]], store: Store, conventions: str) -> dict[str, float]:
    cell, names = work
    Y, arrays = labels_of(cell), store.arrays(cell.key)
    draws = np.random.default_rng(0).integers(0, len(Y), (_DRAWS, len(Y)))
    errors = {}
    for name in names:
        measure, _, preset = name.partition(".")
        metric = defined(measure)
        values = arrays.get(f"{metric.needs}.{measure}", arrays[metric.needs])
        drawn = [metric.function(Y[rows], values[rows], preset or conventions) for rows in draws]
        errors[name] = float(np.nanstd(drawn, ddof=1))
    return errors


def learned(cell: Cell, store: Store) -> dict[str, np.ndarray]:
    """Return what a cell's estimator learned (the attributes its YAML names under ``save_attributes``)."""
    arrays = store.arrays(cell.key)
    return {name.removeprefix("learned_"): a for name, a in arrays.items() if name.startswith("learned_")}
