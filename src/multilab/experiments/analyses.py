"""Analyses of a study beyond scores: their units with keys, how they are run, and their tables.

An analysis is a module: ``FILE`` is the stem of its table in ``reports/<study>/``, ``compute(unit, store)`` returns the
rows of one :class:`Unit`, ``finish(rows)`` the table. ``READS_CELL = True`` says that it reads the stored cell,
``MEASURES_TIME = True`` that its rows are measured times.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from multilab.cells.cell import SCHEMA, Cell, major_versions, split_refs
from multilab.cells.checks import check_met
from multilab.cells.engines import current
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import jobs, run_units_within, side_by_side
from multilab.cells.fit_costs import blas_libraries, one_thread
from multilab.cells.loaded_code import code_of, note_loaded
from multilab.cells.method import named_metrics, names_in
from multilab.cells.progress import recorded_warnings
from multilab.cells.running import run_cell
from multilab.cells.store import Store, is_storage_failure
from multilab.core import declared_versions, json_digest
from multilab.experiments.study import Study
from multilab.printed import Analysis

__all__ = ["Unit", "module_of", "run_units", "table_stem", "tables", "units_of"]

_OF_THE_CELL = (
    "method",
    "preprocessing",
    "dataset",
    "split",
    "seed",
    "seed_name",
    "reads",
    "own_files",
    "versions",
)


@dataclass(frozen=True)
class Unit:
    """One analysis of one dataset on one split.

    Attributes
    ----------
    module : str
        Dotted path of the module of the analysis.
    dataset : str
    split : int
        Split of the study's protocol; for simulated data the repetition.
    cell : Cell or None
        Cell whose method, rows and base scores are analysed; ``None`` for simulated data.
    generator : dict or None
        Generator of the dataset's card, for simulated data.
    settings : dict
        Settings of the analysis.
    seed : int
        Root of the seeds.
    """

    module: str
    dataset: str
    split: int
    cell: Cell | None = None
    generator: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def analysis(self) -> str:
        """Name of the analysis: the last part of its module's path."""
        return self.module.rpartition(".")[2]

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows, in clear."""
        identity: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": "analysis",
            "analysis": self.analysis,
            "settings": self.settings,
            "versions": major_versions({}),
        }
        steps = self._steps()
        if versions := self.cell.method.versions(steps) if self.cell else declared_versions(steps):
            identity["results_versions"] = versions
        if self.cell is None:
            return identity | {"generator": self.generator, "repetition": self.split, "seed": self.seed}
        if _reads_cell(self.module):
            return identity | {"cell": self.cell.key}
        of_cell = self.cell.identity
        return identity | {name: of_cell[name] for name in _OF_THE_CELL if name in of_cell}

    @functools.cached_property
    def key(self) -> str:
        """The name of the unit in the store: 64 hex digits."""
        return json_digest(self.identity)

    def _steps(self) -> list[Any]:
        return [module_of(self), *named_metrics({*names_in(self.settings)})]

    def code(self) -> list[Any]:
        """Return the module, the metrics and, of the cell, the classes and functions that compute the rows."""
        return [*self._steps(), *(self.cell.code() if self.cell else ())]

    @property
    def own_modules(self) -> frozenset[str]:
        """The names of the user's modules that compute the rows."""
        return self.cell.own_modules if self.cell else frozenset()

    @property
    def measures_time(self) -> bool:
        """Whether the rows are times, which no recomputation repeats."""
        return getattr(module_of(self), "MEASURES_TIME", False)

    @property
    def needs(self) -> tuple[Cell, ...]:
        """The cells that the analysis reads: those its cell reads, and the cell if it is read as it is stored."""
        if self.cell is None:
            return ()
        return (*self.cell.reads, *((self.cell,) if _reads_cell(self.module) else ()))

    @property
    def method(self) -> str:
        """Name of the method analysed, or nothing."""
        return self.cell.method.name if self.cell else ""

    @property
    def label(self) -> str:
        """Display name: ``sensitivity of mlwse_l1 on emotions, split 3``."""
        return f"{self.analysis}{' of ' + self.method if self.method else ''} on {self.dataset}, split {self.split}"


@functools.cache
def _reads_cell(module: str) -> bool:
    """Return whether an analysis reads the stored cell; importing the module would take longer than reading it."""
    spec = importlib.util.find_spec(module)
    return "\nREADS_CELL = True" in Path(str(spec.origin if spec else "")).read_text(encoding="utf-8")


def module_of(unit: Unit) -> ModuleType:
    """Return the module of a unit's analysis."""
    return importlib.import_module(unit.module)


def units_of(study: Study, analyses: Iterable[Analysis]) -> list[Unit]:
    """Return the units of analyses under the protocol and the settings of a study, in order.

    Raises
    ------
    ExperimentError
        If an analysis without methods names a dataset that is not simulated.
    """
    return [unit for analysis in analyses for unit in _units(study, analysis)]


def _units(study: Study, analysis: Analysis) -> list[Unit]:
    from multilab import datasets

    units = []
    for dataset in analysis.datasets:
        if not analysis.methods:
            generator = datasets.card(dataset).generator
            if generator is None:
                name = analysis.module.rpartition(".")[2]
                raise ExperimentError(f"study {study.name}: {name} is for simulated data, which {dataset} is not")
            repetitions = range(analysis.splits or 1)
            units += [
                Unit(analysis.module, dataset, i, None, generator, analysis.settings, study.seed) for i in repetitions
            ]
            continue
        for ref in split_refs(dataset, study.protocol_of(dataset))[: analysis.splits]:
            for method in analysis.methods:
                cell = Cell("train", ref, study.method(method, dataset), study.seed)
                units.append(Unit(analysis.module, dataset, ref.split, cell, None, analysis.settings, study.seed))
    return units


Show = Callable[[Iterable[Any], int], Iterable[Any]]


def run_units(
    units: Sequence[Unit], store: Store, n_jobs: int | None = None, progress: Show | None = None
) -> dict[str, str]:
    """Compute the units that are missing, in parallel, and return the reasons of those that failed, by label."""
    check_met([*units, *(cell for unit in units for cell in unit.needs)], store, _compute_within)
    missing = list({unit.key: unit for unit in units if not store.has(unit.key)}.values())
    if missing and not (engine := current()).is_local:
        from multilab.cells.dask_engine import finished

        done = finished(missing, store, engine, _compute)
    else:
        done = side_by_side(functools.partial(compute_unit, store=store), missing, n_jobs or jobs())
    shown = progress(done, len(missing)) if progress else done
    return {label: reason for label, reason in shown if reason is not None}


def _compute_within(items: Sequence[Unit | Cell], store: Store, seconds: float) -> None:
    store.sweep()
    run_units_within(items, store, seconds, None, None, _compute)


def _compute(item: Unit | Cell, store: Store) -> str | None:
    return run_cell(item, store) if isinstance(item, Cell) else compute_unit(item, store)[1]


def compute_unit(unit: Unit, store: Store) -> tuple[str, str | None]:
    """Compute and store one unit; return its label and, if it failed, why."""
    record: dict[str, Any] = {"key": unit.key, "label": unit.label, "parts": unit.identity}
    began = time.perf_counter()
    note_loaded(unit)
    try:
        with one_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            columns = module_of(unit).compute(unit, store)
        record |= {
            **recorded_warnings(caught),
            "status": "done",
            "blas": blas_libraries(),
            "code": code_of(unit, unit.needs, store),
            "fit_seconds": time.perf_counter() - began,
        }
        store.write(unit.key, columns, record, f"analysis: {unit.label}\n")
        return unit.label, None
    except Exception as error:
        if is_storage_failure(error):
            raise
        store.write_failure(unit.key, record | {"status": "failed", "traceback": traceback.format_exc()})
        return unit.label, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def table_stem(module: str) -> str:
    """Return the stem of the table of an analysis: see `multilab.statistics.result_files.table_file`."""
    return str(importlib.import_module(module).FILE)


def tables(units: Sequence[Unit], store: Store) -> Mapping[str, pd.DataFrame]:
    """Return the tables of finished units by the stem of their file."""
    rows: dict[ModuleType, list[pd.DataFrame]] = {}
    for unit in units:
        columns = {"method": unit.method, "dataset": unit.dataset, "split": unit.split, **store.arrays(unit.key)}
        rows.setdefault(module_of(unit), []).append(pd.DataFrame(columns))
    return {module.FILE: module.finish(pd.concat(parts, ignore_index=True)) for module, parts in rows.items()}
