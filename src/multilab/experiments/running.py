"""One cell from beginning to end: gather its inputs, fit, score, measure, store its record."""

from __future__ import annotations

import json
import platform
import socket
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from multilab.core import MultilabError
from multilab.experiments import fitting, groups
from multilab.experiments.cells import Cell, SplitRef
from multilab.experiments.errors import ExperimentError
from multilab.experiments.fit_costs import RECALL, Meter, blas_libraries, model_bytes, neighbour_recall, one_thread
from multilab.experiments.fitting import (
    CellInputs,
    base_score_inputs,
    feature_inputs,
    fit_and_score,
    indices,
    inner_cells,
    out_of_fold,
)
from multilab.experiments.groups import with_grouped_decisions
from multilab.experiments.hidden_labels import hide
from multilab.experiments.loaded_code import code_of, note_loaded
from multilab.experiments.method import build
from multilab.experiments.records import check_arguments
from multilab.experiments.store import Store, is_storage_failure
from multilab.experiments.study import Tuning
from multilab.experiments.tables import table_inputs
from multilab.methods.labels import check_learns_from_missing, has_unobserved
from multilab.model_selection import indices_digest

__all__ = ["ensure", "gather", "give_up", "inner_inputs", "run_cell"]


def gather(cell: Cell, store: Store) -> CellInputs:
    """Return the training and test set of a cell's estimator; compute its input cells if they are missing.

    Raises
    ------
    MethodError
        If labels are missing and the method cannot learn from partially observed labels.
    ExperimentError
        If the dataset was replaced after the key of the cell was computed.
    """
    _check_rows(cell.split_ref)
    if cell.observed and cell.observed.hidden == "missing":
        check_learns_from_missing(build(cell.method))
    for read in cell.reads:
        ensure(read, store)
    if cell.kind == "train" and cell.reads:
        inputs = base_score_inputs(cell, [store.arrays(read.key)["scores"] for read in cell.reads])
    elif cell.split_ref.encoder:
        inputs = table_inputs(cell, store)
    else:
        inputs = feature_inputs(cell)
    if has_unobserved(inputs.Y_train):  # an estimator of another package would take -1 for a class
        check_learns_from_missing(build(cell.method))
    return hide(inputs, *indices(cell.split_ref), cell) if cell.observed else inputs


def _check_rows(ref: SplitRef) -> None:
    """Refuse data and rows that are not those of the key: another command may replace a table meanwhile."""
    other_data = not ref.encoder and fitting._dataset(ref.dataset).digest != ref.dataset_digest
    if other_data or (ref.split >= 0 and indices_digest(*indices(ref)) != ref.digest):
        raise ExperimentError(f"{ref.dataset} has changed since this command began; run it again")


def inner_inputs(cell: Cell, tuning: Tuning, store: Store) -> list[CellInputs]:
    """Return the inner folds on which a search scores its trials, each gathered like a cell."""
    if tuning.members:
        if cell.tune is None:
            raise ExperimentError("tune.members: base methods are tuned in `multilab train` and in studies only")
        chosen = {read.method.name: _chosen(read, store) for read in cell.reads if read.kind == "train"}
        cell = replace(cell, method=replace(cell.method, member_params=chosen))
    if cell.split_ref.groups:
        return [gather(inner, store) for inner in groups.inner_cells(cell, tuning)]
    return [gather(inner, store) for inner in inner_cells(cell, tuning)]


def _chosen(cell: Cell, store: Store) -> dict[str, Any]:
    """Return the arguments that a tuned train cell has chosen; compute it if it is missing."""
    ensure(cell, store)
    chosen: dict[str, Any] = store.record(cell.key)["tuned"]
    check_arguments(chosen, cell.method.search)
    return chosen


def ensure(cell: Cell, store: Store) -> None:
    """Compute a cell if it is not in the store; raise if it fails."""
    if not store.has(cell.key):
        outcome = run_cell(cell, store)
        if outcome is not None:
            raise ExperimentError(f"{cell.label} failed: {outcome}")


def run_cell(cell: Cell, store: Store) -> str | None:
    """Run one cell and store it; return ``None``, or the one-line reason of its failure (stored as a record)."""
    if store.has(cell.key):
        return None
    record: dict[str, Any] = {"key": cell.key, "label": cell.label, "parts": cell.identity, **_environment(cell)}
    began = time.perf_counter()
    note_loaded(cell)
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            arrays, measured, files = _scores(cell, store) if cell.kind == "scores" else _train(cell, store)
        messages = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
        record.update(measured, status="done", warnings=messages[:20], cell_seconds=time.perf_counter() - began)
        record |= {"blas": blas_libraries(), "code": code_of(cell, cell.reads, store)}
        store.write(cell.key, arrays, record, _config(cell), files)
        if cell.tune:
            store.drop_journals(cell.key)
        return None
    except Exception as error:
        if is_storage_failure(error):
            raise
        reason = " ".join(str(error).split())[:300]
        reason = reason if isinstance(error, MultilabError) else f"{type(error).__name__}: {reason}"
        record.update(status="failed", reason=reason, traceback=traceback.format_exc())
        store.write_failure(cell.key, record)
        return reason


def give_up(cell: Cell, store: Store, reason: str, **more: Any) -> str:
    """Store the failure of a cell for a reason outside its computation; return the reason.

    ``more`` is added to its record.
    """
    record = {"key": cell.key, "label": cell.label, "parts": cell.identity, **_environment(cell), **more}
    store.write_failure(cell.key, {**record, "status": "failed", "reason": reason, "traceback": reason})
    return reason


def _train(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Fit on the training rows, score the test rows."""
    inputs = gather(cell, store)
    method = cell.method
    files: dict[str, bytes] = {}
    tuned: dict[str, Any] = {}
    if cell.tune:
        from multilab.experiments.search import search  # of all cells only the tuned ones need Optuna

        meter, journal = Meter(), store.journal(cell.key)
        with meter:
            result = search(cell, cell.tune, inner_inputs(cell, cell.tune, store), journal)
        files = {"journal.log": result.journal, "trials.csv": result.trials.encode()}
        method = method.with_params(result.best)
        tuned = {"tuned": result.best, "tune_seconds": meter.seconds}
    if cell.split_ref.groups:
        method = with_grouped_decisions(cell, method)
    fit, predict = Meter(), Meter()
    estimator, arrays = fit_and_score(cell, method, inputs, fit, predict)
    measured = {
        "fit_seconds": fit.seconds,
        "predict_seconds": predict.seconds,
        "peak_mb": max(fit.peak_mb, predict.peak_mb),
        "memory_method": fit.method,
        "model_bytes": model_bytes(estimator),
        "input_seconds": sum(_fit_seconds(store.record(read.key)) for read in cell.reads),
        **tuned,
    }
    recall = neighbour_recall(estimator)
    return arrays, measured | ({} if recall is None else {RECALL: recall}), files


def _fit_seconds(record: Mapping[str, Any]) -> float:
    """Return the seconds to fit a cell that another one reads, with its search and its own base scores."""
    return sum(float(record.get(name, 0.0)) for name in ("tune_seconds", "input_seconds", "fit_seconds"))


def _scores(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Score every training row with a model that never saw it."""
    inputs = gather(cell, store)
    for train in cell.reads:
        cell = replace(cell, method=cell.method.with_params(_chosen(train, store)))
    fit = Meter()
    if cell.split_ref.groups:
        scores = groups.out_of_fold(cell, inputs, fit)
    else:
        scores = out_of_fold(cell, inputs, fit)
    measured = {"fit_seconds": fit.seconds, "peak_mb": fit.peak_mb, "memory_method": fit.method}
    return {"scores": scores}, measured, {}


def _environment(cell: Cell) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "started": time.time(),
        "alone": cell.alone,
        "dataset": cell.split_ref.dataset,
        "split": cell.split_ref.split,
        "method": cell.method.name,
        "settings": cell.method.identity(),
    }


def _config(cell: Cell) -> str:
    content = {"cell": cell.label, "protocol": json.loads(cell.split_ref.protocol), **cell.identity}
    content["method"] = cell.method.identity()
    return yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
