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

from multilab.cells.cell import Cell
from multilab.cells.errors import ExperimentError
from multilab.cells.fit_costs import Meter, blas_libraries, one_thread
from multilab.cells.fitting import estimator_of, fit_on_rows, score_out_of_fold
from multilab.cells.learned import learned_file
from multilab.cells.loaded_code import code_of, note_loaded
from multilab.cells.method import Method
from multilab.cells.pipeline import MethodPipeline
from multilab.cells.progress import recorded_warnings
from multilab.cells.records import check_arguments
from multilab.cells.rows import Rows, base_score_rows, check_rows, inner_cells, inner_training_folds, rows_of
from multilab.cells.settings import Tuning
from multilab.cells.store import Store, is_storage_failure
from multilab.core import MultilabError
from multilab.methods.labels import check_learns_from_missing

__all__ = ["ensure", "estimator_of_cell", "gather", "give_up", "inner_rows", "run_cell", "scaled_rows"]


def gather(cell: Cell, store: Store) -> Rows:
    """Return the training and test rows of a cell's estimator; compute the cells that it reads if they are missing.

    Raises
    ------
    MethodError
        If labels are missing and the method cannot learn from partially observed labels.
    ExperimentError
        If the dataset was replaced after the key of the cell was computed.
    """
    check_rows(cell.split_ref)
    if cell.observed and cell.observed.hidden == "missing":  # before the cells it reads are computed
        check_learns_from_missing(estimator_of(cell.method))
    for read in cell.reads:
        ensure(read, store)
    if cell.kind == "train" and cell.reads:
        return base_score_rows(cell, [store.arrays(read.key)["scores"] for read in cell.reads])
    return rows_of(cell, store)


def scaled_rows(cell: Cell, store: Store) -> Rows:
    """Return `gather` with the columns and the scales of the method, learned from the training rows."""
    rows = gather(cell, store)
    steps, _ = estimator_of(cell.method, encoder=rows.encoder).label_free()
    for _, step in steps:
        X_train, X_test = step.fit(rows.X_train).transform(rows.X_train), step.transform(rows.X_test)
        rows = replace(rows, X_train=X_train, X_test=X_test)
    return rows


def estimator_of_cell(cell: Cell, method: Method | None = None, encoder: Any = None) -> MethodPipeline:
    """Return the estimator of a cell with its seeds; of another method, or one with other arguments, if given."""
    ref = cell.split_ref
    return estimator_of(method or cell.method, cell.seed, ref.dataset_digest, ref.digest, encoder=encoder)


def inner_rows(cell: Cell, tuning: Tuning, store: Store) -> list[Rows]:
    """Return the inner folds on which a search scores its trials, each gathered like a cell."""
    if tuning.members:
        if cell.tune is None:
            raise ExperimentError("tune.members: base methods are tuned in `multilab train` and in studies only")
        chosen = {read.method.name: _chosen(read, store) for read in cell.reads if read.kind == "train"}
        cell = replace(cell, method=replace(cell.method, member_params=chosen))
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
        record.update(measured, status="done", cell_seconds=time.perf_counter() - began)
        record |= {**recorded_warnings(caught), "blas": blas_libraries(), "code": code_of(cell, cell.reads, store)}
        store.write(cell.key, arrays, record, _config(cell, record), files)
        if cell.tune:
            # After the cell is stored: a run that is killed before that continues its search from the journal.
            store.drop_journals(cell.key)
        return None
    except Exception as error:
        # A full disk would fail every cell: the run ends instead.
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
    rows = gather(cell, store)
    method = cell.method
    files: dict[str, bytes] = {}
    tuned: dict[str, Any] = {}
    if cell.tune:
        meter, journal = Meter(), store.journal(cell.key)
        with meter:
            result = cell.tune.search(cell, inner_rows(cell, cell.tune, store), journal)
        files = {"journal.log": result.journal, "trials.csv": result.trials.encode()}
        method = method.with_params(result.best)
        tuned = {"tuned": result.best, "tune_seconds": meter.seconds}
    model = estimator_of_cell(cell, method, rows.encoder)
    fit = fit_on_rows(
        model, rows.X_train, rows.Y_train, rows.X_test, groups=rows.groups, attributes=method.save_attributes
    )
    read = [_fit_seconds(store.record(read.key)) for read in cell.reads]
    inputs = {} if None in read else {"input_seconds": sum(filter(None, read))}
    noted: dict[str, Any] = {}
    if cell.split_ref.split == 0 and cell.split_ref.inner is None:  # runs show what was learned on the first split
        more, noted = learned_file(fit.model, rows.X_train, rows.Y_train, method.save_attributes)
        files |= more
    return fit.arrays, fit.costs() | inputs | tuned | noted, files


def _fit_seconds(record: Mapping[str, Any]) -> float | None:
    """Return the seconds to fit a cell that another one reads, with its search and its own base scores.

    None of a cell from a pack, whose record does not say them.
    """
    if "fit_seconds" not in record:
        return None
    return sum(float(record.get(name, 0.0)) for name in ("tune_seconds", "input_seconds", "fit_seconds"))


def _scores(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Score every training row with a model that never saw it."""
    rows = gather(cell, store)
    # At most one: the train cell of a tuned base method, with the arguments that its search chose.
    for train in cell.reads:
        cell = replace(cell, method=cell.method.with_params(_chosen(train, store)))
    model = estimator_of_cell(cell, encoder=rows.encoder)
    scores, meter = score_out_of_fold(model, rows.X_train, rows.Y_train, inner_training_folds(cell, rows))
    measured = {"fit_seconds": meter.seconds, "peak_mb": meter.peak_mb, "memory_method": meter.method}
    return {"scores": scores}, measured, {}


def _environment(cell: Cell) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "started": time.time(),
        "alone": cell.alone,
        "dataset": cell.split_ref.dataset,
        "split": cell.split_ref.split,
        "inner_fold": cell.split_ref.inner_fold,
        "method": cell.method.name,
        "settings": cell.method.identity(),
    }


def _config(cell: Cell, record: Mapping[str, Any]) -> str:
    content = {"cell": record["label"], "protocol": json.loads(cell.split_ref.protocol), **cell.identity}
    content["method"] = record["settings"]
    return yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
