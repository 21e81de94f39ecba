"""Running of analyses: unit by unit into the store, then table by table."""

from __future__ import annotations

import functools
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pandas as pd

from multilab.experiments.analysis_units import Unit, module_of
from multilab.experiments.execute import jobs, side_by_side
from multilab.experiments.store import Store, is_storage_failure
from multilab.experiments.threads import blas_libraries, one_thread

__all__ = ["run_units", "tables"]

Show = Callable[[Iterable[Any], int], Iterable[Any]]


def run_units(
    units: Sequence[Unit], store: Store, n_jobs: int | None = None, progress: Show | None = None
) -> dict[str, str]:
    """Compute the units that are missing, in parallel, and return the reasons of those that failed, by label."""
    missing = list({unit.key: unit for unit in units if not store.has(unit.key)}.values())
    done = side_by_side(functools.partial(_run, store=store), missing, n_jobs or jobs())
    shown = progress(done, len(missing)) if progress else done
    return {label: reason for label, reason in shown if reason is not None}


def _run(unit: Unit, store: Store) -> tuple[str, str | None]:
    """Compute and store one unit; return its label and, if it failed, why."""
    record: dict[str, Any] = {"key": unit.key, "label": unit.label, "parts": unit.identity}
    began = time.perf_counter()
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            columns = module_of(unit).compute(unit, store)
        messages = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
        record |= {
            "status": "done",
            "blas": blas_libraries(),
            "warnings": messages[:20],
            "fit_seconds": time.perf_counter() - began,
        }
        store.write(unit.key, columns, record, f"analysis: {unit.label}\n")
        return unit.label, None
    except Exception as error:
        if is_storage_failure(error):
            raise
        store.write_failure(unit.key, record | {"status": "failed", "traceback": traceback.format_exc()})
        return unit.label, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def tables(units: Sequence[Unit], store: Store) -> Mapping[str, pd.DataFrame]:
    """Return the tables of finished units by the stem of their file."""
    rows: dict[ModuleType, list[pd.DataFrame]] = {}
    for unit in units:
        columns = {"method": unit.method, "dataset": unit.dataset, "split": unit.split, **store.arrays(unit.key)}
        rows.setdefault(module_of(unit), []).append(pd.DataFrame(columns))
    return {module.FILE: module.finish(pd.concat(parts, ignore_index=True)) for module, parts in rows.items()}
