"""`multilab train`: one method on one dataset, composed, planned, executed, evaluated and tracked."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multilab.cells.arguments import check_method
from multilab.cells.cell import Cell, split_refs
from multilab.cells.cell_metrics import cell_metrics
from multilab.cells.checks import refresh
from multilab.cells.engines import Engine, composed_engine, using
from multilab.cells.environment import code_version
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.method import Method
from multilab.cells.progress import ProgressBar, print_warnings
from multilab.cells.settings import ObservedShare, Tuning, with_optuna_names
from multilab.cells.store import Store
from multilab.core import MultilabError, json_digest, read_sealed, write_sealed
from multilab.datasets import prepared_meta
from multilab.experiments.compose import Jobs, cells_at_once, metric_names, planned_jobs, run_jobs, settings_of
from multilab.models.mlflow_store import tracking


@dataclass(frozen=True)
class Run:
    """One method with its settings on one dataset.

    Attributes
    ----------
    settings : dict
        What identifies it, see :func:`multilab.experiments.compose.settings_of`.
    cells : list of Cell
    scores : list of dict
        All metrics of each cell.
    metrics : list of str
        Those to print.
    where : dict
        The MLflow store, see :func:`multilab.models.mlflow_store.tracking`.
    """

    settings: dict[str, Any]
    cells: list[Cell]
    scores: list[dict[str, float]]
    metrics: list[str]
    where: dict[str, str]

    def record(self) -> Any:
        """Return the run for MLflow."""
        from multilab.experiments.publish import command_line, run_record  # imports MLflow

        splits = [cell.split_ref.split for cell in self.cells]
        values = {name: dict(zip(splits, (row[name] for row in self.scores), strict=True)) for name in self.scores[0]}
        record = run_record("runs", self.cells, values, code_version(), self.metrics)
        method, title = (" ".join([text, *self.settings["changed"]]) for text in (record.method, record.title))
        return replace(record, method=method, title=title, command=command_line("train", self.settings))

    def leave_note(self, store: Store) -> None:
        """Note what :func:`read_runs` reads."""
        content = {"settings": self.settings, "metrics": self.metrics}
        leave_note(store, self.settings, f"run-{json_digest(self.settings)[:16]}", content)


def train(overrides: Sequence[str], fresh: bool = False) -> Jobs:
    """`multilab train [-m] dataset=... method=...`: run the jobs, show them in MLflow.

    With ``fresh`` stored results are computed again, compared, and replaced where they differ.
    """
    # A fresh run computes in a store of its own, which does not have cells computed ahead.
    if not fresh:
        _compute_ahead(overrides)
    jobs = run_jobs(functools.partial(train_job, fresh=fresh), overrides, "multilab train")
    track(jobs.results)
    return jobs


def train_job(cfg: Any, fresh: bool = False) -> Run:
    """Compose, plan, execute and evaluate one run; `train` tracks it."""
    with using(composed_engine(cfg)):
        return _run(cfg, fresh)


def _run(cfg: Any, fresh: bool) -> Run:
    settings, store = settings_of(cfg), Store()
    cells = _planned(settings, store)
    progress = ProgressBar(f"{settings['method']} on {settings['dataset']}")
    compute = functools.partial(run_cells, cells, n_jobs=cells_at_once(), progress=progress)
    failed = refresh(cells, store, compute) if fresh else compute(store)
    if failed:
        label, reason = next(iter(failed.items()))
        raise ExperimentError(f"{len(failed)} of {len(cells)} cells failed, the first ({label}) with: {reason}")
    scores = [cell_metrics(cell, store, cfg.conventions) for cell in cells]
    where = tracking(cfg.tracking.uri, cfg.tracking.artifacts)
    run = Run(settings, cells, scores, metric_names(cfg), where)
    print(_text_of(run))
    chosen = [store.record(cell.key)["tuned"] for cell in cells if cell.tune]
    if chosen:
        print(f"  chosen: {_ranges(chosen)}", *near_bounds(cells[0].method.search, chosen), sep="\n")
    print_warnings(cells, store)
    run.leave_note(store)
    return run


def _compute_ahead(overrides: Sequence[str]) -> None:
    """Compute the cells of all jobs of a sweep together on an engine: one job after another would use few workers.

    The jobs find them in the store, and know which ones failed.
    """
    jobs = planned_jobs(lambda cfg: (composed_engine(cfg), cells_of(settings_of(cfg))), overrides, "multilab train")
    cells: dict[Engine, list[Cell]] = {}
    for engine, of_job in jobs:
        cells.setdefault(engine, []).extend(of_job)
    for engine, of_engine in cells.items():
        with using(engine):
            run_cells(of_engine, Store(), progress=ProgressBar(f"sweep of {len(jobs)} jobs"))


def track(results: Sequence[Any]) -> None:
    """Show runs, or searches, in MLflow, unless their settings say ``publish=false``."""
    if published := [result for result in results if result.settings["publish"]]:
        from multilab.experiments.publish import publish_now  # imports MLflow

        publish_now(published)


def leave_note(store: Store, settings: dict[str, Any], name: str, content: dict[str, Any]) -> None:
    """Leave a note next to the cells, so `study publish --runs` can publish them if MLflow did not answer."""
    if settings["publish"]:
        write_sealed(store.root / ".runs" / f"{name}.json", content)


def read_notes(store: Store, kind: str) -> dict[str, dict[str, Any]]:
    """Return the notes of a kind ("run", "search") in a store of cells by their names; a damaged one is empty."""
    notes = {}
    for path in sorted((store.root / ".runs").glob(f"{kind}-*.json")):
        try:
            notes[path.stem] = read_sealed(path)
        except (OSError, ValueError):
            notes[path.stem] = {}
    return notes


def _planned(settings: dict[str, Any], store: Store) -> list[Cell]:
    """Return the cells of a run; if one is missing, check the arguments of the method before any work starts."""
    cells = cells_of(settings) if prepared_meta(settings["dataset"]) else []
    if not cells or not all(store.has(cell.key) for cell in cells):
        check_method(Method.from_mapping(settings["method"], settings["mapping"]), bool(settings["tune"]))
    return cells or cells_of(settings)


def cells_of(settings: dict[str, Any]) -> list[Cell]:
    """Return the cells of a run; prepare the dataset if necessary."""
    method = Method.from_mapping(settings["method"], settings["mapping"])
    tuned = Tuning.from_mapping(with_optuna_names(settings["tune"])) if settings["tune"] else None
    if tuned and tuned.storage is not None:
        raise ExperimentError("tune.storage is for `multilab tune`; a tuned cell keeps its own journal of trials")
    observed = ObservedShare.from_setting(settings.get("observed"))
    refs = split_refs(settings["dataset"], settings["protocol"])
    return [Cell("train", ref, method, settings["seed"], tuned, observed=observed) for ref in refs]


def read_runs(store: Store, where: dict[str, str]) -> tuple[list[Run], int]:
    """Return the runs with notes in a store of cells, and the number of notes that are damaged or without cells."""
    runs, left_out = [], 0
    for note in read_notes(store, "run").values():
        try:
            cells = cells_of(note["settings"]) if note else []
        except MultilabError:  # its dataset or protocol is gone
            cells = []
        if cells and all(store.has(cell.key) for cell in cells):
            scores = [cell_metrics(cell, store, note["settings"]["conventions"]) for cell in cells]
            runs.append(Run(note["settings"], cells, scores, note["metrics"], where))
        else:
            left_out += 1
    return runs, left_out


def _ranges(chosen: Sequence[Mapping[str, Any]]) -> str:
    """Return what the searches of all splits chose: ``alpha 12 to 90, k 5``."""
    parts = []
    for name in chosen[0]:
        values = [arguments[name] for arguments in chosen]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        ends = [min(values), max(values)] if numeric else values
        joined = (" to " if numeric else " or ").join(dict.fromkeys(map(_short, ends)))
        parts.append(f"{name} {joined}")
    return ", ".join(parts)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def near_bounds(space: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line per argument of which a chosen value lies in the outer twentieth of its range.

    Examples
    --------
    >>> space = {"alpha": {"type": "float", "low": 0.01, "high": 100.0, "log": True}}
    >>> print(*near_bounds(space, [{"alpha": 85.7}, {"alpha": 1.0}]))
      near a bound of its range, 0.01 to 100: alpha = 85.7; a better value may lie outside
    """
    lines = []
    for name, setting in space.items():
        if "low" not in setting:
            continue
        scale = math.log if setting.get("log") else float
        low, width = scale(setting["low"]), scale(setting["high"]) - scale(setting["low"])
        shares = {
            arguments[name]: (scale(arguments[name]) - low) / (width or 1.0)
            for arguments in chosen
            if name in arguments
        }
        near = ", ".join(_short(value) for value, share in shares.items() if not _EDGE <= share <= 1 - _EDGE)
        if near:
            ends = " to ".join(_short(setting[end]) for end in ("low", "high"))
            lines.append(f"  near a bound of its range, {ends}: {name} = {near}; a better value may lie outside")
    return lines


_EDGE = 0.05


def _text_of(run: Run) -> str:
    """Return mean and standard deviation over the splits."""
    title = f"{run.settings['method']} on {run.settings['dataset']}, {len(run.scores)} splits"
    lines = ["  ".join([title, *run.settings["changed"]])]
    for metric in run.metrics:
        values = [row[metric] for row in run.scores]
        spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
        lines.append(f"  {metric:<20} {np.mean(values):.4f}{spread}")
    return "\n".join(lines)
