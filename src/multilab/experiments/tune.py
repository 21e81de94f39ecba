"""`multilab tune`: a search on all rows of one dataset, and the text that reports it."""

import contextlib
import csv
import functools
import io
import json
import math
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import optuna

from multilab.cells.arguments import check_method
from multilab.cells.cell import Cell, split_refs
from multilab.cells.conf import plain
from multilab.cells.engines import Engine, composed_engine, using
from multilab.cells.environment import code_version
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method
from multilab.cells.progress import ProgressBar
from multilab.cells.running import inner_rows
from multilab.cells.settings import ObservedShare, Tuning, with_optuna_names
from multilab.cells.store import Store
from multilab.core import MultilabError, json_digest
from multilab.core.shell import short_path
from multilab.experiments.compose import planned_jobs, run_jobs, settings_of, task_overrides
from multilab.experiments.search import default_trial, search, search_name
from multilab.experiments.train import leave_note, near_bounds, read_notes, track
from multilab.experiments.trials import finished_trials, load_search, open_journal, safe_url
from multilab.metrics import METRICS
from multilab.models.mlflow_store import tracking


@dataclass(frozen=True)
class Search:
    """A search on all rows of a dataset.

    Attributes
    ----------
    settings : dict
        See :func:`multilab.experiments.compose.settings_of`.
    plan : Tuning
    best : dict
        The best arguments.
    trials : str
        The trials as CSV; the column named like the metric holds their values.
    where : dict
        The MLflow store, see :func:`multilab.models.mlflow_store.tracking`.
    """

    settings: dict[str, Any]
    plan: Tuning
    best: dict[str, Any]
    trials: str
    where: dict[str, str]

    @functools.cached_property
    def cell(self) -> Cell:
        """The tuned cell."""
        return cell_of(self.settings)

    def record(self) -> Any:
        """Return the run for MLflow: the value of each trial as a step, the best value, and the best arguments."""
        from multilab.datasets.prepared import dataset_facts
        from multilab.experiments.publish import command_line, dataset_source, flat_params, observed_param, run_tags
        from multilab.experiments.track import RunRecord  # imports MLflow

        cell, plan = self.cell, self.plan
        trials = [float(row[plan.metric]) for row in csv.DictReader(io.StringIO(self.trials))]
        finite = [value for value in trials if math.isfinite(value)]
        best = min(finite) if METRICS[plan.metric].direction == "min" else max(finite)
        tuning = {f"tune.{name}": value for name, value in vars(plan).items()}
        return RunRecord(
            study="tuning",
            method=f"{cell.method.name} {plan.metric} {plan.n_trials} {plan.identity()['sampler']}",
            dataset=cell.split_ref.dataset,
            title=cell.method.title,
            params={**flat_params(cell.method), **observed_param(cell), **self.best, **tuning},
            metrics={},
            measured={},
            facts=dataset_facts(cell.split_ref.dataset),
            cells=[cell.key],
            command=command_line("tune", self.settings),
            source=dataset_source(cell.split_ref.dataset),
            curves={f"trial.{plan.metric}": trials, f"best.{plan.metric}": [best]},
            tags=run_tags(code_version(), cell.seed),
            artifacts=lambda: {"trials.csv": self.trials.encode()},
        )


def tune(overrides: Sequence[str]) -> int:
    """`multilab tune [-m] dataset=... method=...`: run the searches and show them in MLflow."""
    _search_ahead(overrides)
    jobs = run_jobs(tune_job, overrides, "multilab tune")
    track(jobs.results)
    jobs.raise_failure()
    return 0


def tune_job(cfg: Any) -> Search:
    """Compose, plan, execute and evaluate one search; `tune` tracks it."""
    with using(composed_engine(cfg)) as engine:
        return _run(cfg, engine)


def _run(cfg: Any, engine: Engine) -> Search:
    settings, plan, store = settings_of(cfg), _plan_of(cfg), Store()
    cell = cell_of(settings)
    check_method(cell.method, tuned=True)
    name = search_name(cell, plan)
    journal, progress = store.journal(name), ProgressBar(f"tuning {cell.method.name} on {settings['dataset']}")
    began = time.time()
    if engine.is_local:
        trials = search(cell, plan, inner_rows(cell, plan, store), journal, progress, name).trials
    else:
        _search_on(engine, [_Unit(cell, plan)])
        trials = _found(engine, _Unit(cell, plan))
    study = load_search(plan.storage, journal, name)
    best = study.best_params  # of a longer search that was run before, where there is one
    where = tracking(cfg.tracking.uri, cfg.tracking.artifacts)
    result = Search(settings, replace(plan, storage=None), best, trials, where)
    new = sum(t.datetime_start is not None and t.datetime_start.timestamp() >= began for t in study.trials)
    lines = [
        _headline(study, cell, plan, new),
        *_changes(settings["mapping"], best),
        *near_bounds(cell.method.search, [best]),
        *_history(study),
        *_where(plan, journal, name),
        f"train with it: {_command(settings, best)}",
    ]
    print("\n".join(lines))
    note = {"settings": settings, "plan": result.plan.identity(), "best": best, "trials": trials}
    leave_note(store, settings, _note_name(result), note)
    return result


@dataclass(frozen=True)
class _Unit:
    """A search on all rows as a unit of work for an engine; it continues ``journal``."""

    cell: Cell
    plan: Tuning
    journal: bytes = b""

    needs: ClassVar[tuple[Cell, ...]] = ()

    @functools.cached_property
    def name(self) -> str:
        return search_name(self.cell, self.plan)

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        return {**self.cell.identity, "kind": "analysis", "search": self.name, "tune": asdict(self.plan)}

    @functools.cached_property
    def key(self) -> str:
        return json_digest(self.identity)

    @property
    def label(self) -> str:
        return f"search of {self.cell.label}"


_ahead: dict[str, str] = {}
"""Trials of searches that ran on an engine, by key of their unit."""


def _search_ahead(overrides: Sequence[str]) -> None:
    """Search for all jobs of a sweep at the same time on an engine; the jobs report what was found."""
    planned: dict[Engine, list[_Unit]] = {}
    for engine, unit in planned_jobs(
        lambda cfg: (composed_engine(cfg), _Unit(cell_of(settings_of(cfg)), _plan_of(cfg))), overrides, "multilab tune"
    ):
        planned.setdefault(engine, []).append(unit)
    for engine, units in planned.items():
        _search_on(engine, units)


def _search_on(engine: Engine, units: Iterable[_Unit]) -> None:
    """Search on the workers of an engine; keep trials and journals."""
    from multilab.cells.dask_engine import finished

    journals = {unit.key: Store().journal(unit.name) for unit in units}
    sent = {
        unit.key: replace(unit, journal=path.read_bytes() if (path := journals[unit.key]).is_file() else b"")
        for unit in units
        if unit.key not in _ahead
    }
    with TemporaryDirectory(prefix="multilab-search-") as folder:
        store, bar = Store(folder), ProgressBar(f"{len(sent)} searches")
        for _ in bar(finished(list(sent.values()), store, engine, _searched) if sent else (), len(sent)):
            for key in filter(store.has, sent.keys() - _ahead.keys()):
                _ahead[key] = (store.path(key) / "trials.csv").read_text()
                _keep_journal(sent[key].name, journals[key], (store.path(key) / "journal.log").read_bytes())


def _keep_journal(name: str, journal: Path, content: bytes) -> None:
    """Keep the journal of a search unless a longer one is there; it is empty if the trials are in a database."""
    if content:
        with open_journal(journal) as running:
            running.path.write_bytes(content)
            running.finish(name, len(finished_trials(running.path, name)))


def _found(engine: Engine, unit: _Unit) -> str:
    """Return the trials of a search on an engine."""
    if unit.key not in _ahead:
        raise ExperimentError(engine.failed[unit.key])
    return _ahead[unit.key]


def _searched(unit: _Unit, store: Store) -> str | None:
    """Search, on a worker; store the trials and the journal. Return why there are none."""
    journal = store.journal(unit.name)
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_bytes(unit.journal)
    try:
        result = search(unit.cell, unit.plan, inner_rows(unit.cell, unit.plan, store), journal, name=unit.name)
    except MultilabError as error:
        return str(error)
    files = {"trials.csv": result.trials.encode(), "journal.log": result.journal}
    store.write(unit.key, {}, {"label": unit.label, "parts": unit.identity, "status": "done"}, "search\n", files)
    return None


def _plan_of(cfg: Any) -> Tuning:
    """Return the plan of the search; without ``tune.n_trials=`` on the command line it has the default number."""
    block = plain(cfg.tune)
    if not any(word.startswith("tune.n_trials=") for word in task_overrides()):
        block["n_trials"] = block["n_trials"] or Tuning.n_trials
    return Tuning.from_mapping(block)


def cell_of(settings: dict[str, Any]) -> Cell:
    """Return the cell that a search tunes: a method on all rows of a dataset."""
    first = split_refs(settings["dataset"], settings["protocol"])[0]
    every_row = replace(first, split=-1, digest="all rows")
    method = Method.from_mapping(settings["method"], settings["mapping"])
    return Cell("train", every_row, method, settings["seed"], observed=ObservedShare.from_setting(settings["observed"]))


def read_searches(store: Store, where: dict[str, str]) -> tuple[list[Search], int]:
    """Return the searches with notes in a store of cells, and the number of notes that are damaged or out of date."""
    searches = []
    notes = read_notes(store, "search")
    for name, note in notes.items():
        with contextlib.suppress(MultilabError):  # its dataset or protocol is gone
            plan = Tuning(**with_optuna_names(note["plan"])) if note else None
            result = plan and Search(**{**note, "plan": plan, "where": where})
            if result and _note_name(result) == name:
                searches.append(result)
    return searches, len(notes) - len(searches)


def _note_name(found: Search) -> str:
    """Return the name of the note of a search: another one when data, code or the formula of the metric change."""
    return f"search-{json_digest([search_name(found.cell, found.plan), found.trials])[:16]}"


def _headline(study: Any, cell: Any, plan: Any, new: int) -> str:
    """Return the best value, the default one, and the number of trials."""
    text = f"{cell.method.title} on {cell.split_ref.dataset}: best {plan.metric} {study.best_value:.4f}"
    default = default_trial(study, cell.method)
    if default is None:
        text += " (the default values lie outside the search space)"
    elif default.value == study.best_value:
        text += f", the default has {default.value:.4f}: no trial is better"
    else:
        gain = abs(study.best_value - default.value)
        share = f", {100 * gain / abs(default.value):.1f} % better" if default.value else ""
        text += f", default {default.value:.4f}{share}"
    states = [trial.state.name.lower() for trial in study.trials]
    counts = [f"{states.count(state)} {state}" for state in ("complete", "pruned", "fail") if state in states]
    text += f"; {len(states)} trials ({', '.join(counts)}; {new} run now), {plan.folds} inner folds"
    if plan.timeout and len(states) < plan.n_trials and plan.sampler != "GridSampler":
        text += f"; stopped by tune.timeout={plan.timeout:g} before trial {plan.n_trials}"
    return text


def _changes(mapping: dict[str, Any], best: dict[str, Any]) -> list[str]:
    """Return a line per argument that differs from the method's settings."""
    before, after = _flat(mapping), _flat(with_best(mapping, best))
    changed = [name for name in after if name not in before or after[name] != before[name]]
    lines = [f"  {name}: {_text(before.get(name))} -> {_text(after[name])}" for name in changed]
    return ["changed:", *lines] if lines else ["changed: nothing"]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value)


def _flat(mapping: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted name."""
    flat: dict[str, Any] = {}
    for name, value in mapping.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _history(study: Any) -> list[str]:
    """Return the trials that improved the best value, and the importance of each argument if it can be computed."""
    sign = 1 if study.direction.name == "MINIMIZE" else -1
    steps: list[Any] = []
    for trial in study.trials:
        if trial.state.name == "COMPLETE" and (not steps or sign * trial.value < sign * steps[-1].value):
            steps.append(trial)
    lines = ["history: " + ", ".join(f"trial {trial.number} {trial.value:.4f}" for trial in steps[-6:])]
    importances = _importances(study)
    if importances:
        lines.append("importance: " + ", ".join(f"{name} {share:.2f}" for name, share in importances.items()))
    return lines


def _importances(study: Any) -> dict[str, float]:
    """Return the share of each argument in the variance of the value, empty where there is too little to go by."""
    finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    if len(finished) < 5 or len({trial.value for trial in finished}) < 2 or len(finished[0].params) < 2:
        return {}
    try:
        return optuna.importance.get_param_importances(study, evaluator=optuna.importance.PedAnovaImportanceEvaluator())
    except (ValueError, RuntimeError):  # e.g. trials that share no argument
        return {}


def _where(plan: Any, journal: Path, name: str) -> list[str]:
    """Return where the Optuna study is stored and how to open it."""
    location = safe_url(plan.storage) if plan.storage else short_path(journal)
    opened = f"optuna-dashboard {shlex.quote(location)}"
    return [f"study: {name} in {location}", f"  open it with: {opened} (pip install optuna-dashboard)"]


def _command(settings: dict[str, Any], best: dict[str, Any]) -> str:
    """Return the command line that trains with the best arguments."""
    before, after = _flat(settings["mapping"]), _flat(with_best(settings["mapping"], best))
    searched = {name.replace("__", ".") for name in best} | set(best)
    fixed = [word for word in settings["changed"] if word.lstrip("+").startswith("method.")]
    fixed = [word for word in fixed if word.lstrip("+").removeprefix("method.").partition("=")[0] not in searched]
    changed = [
        f"{'' if name in before else '+'}method.{name}={json.dumps(value)}"
        for name, value in after.items()
        if name not in before or value != before[name]
    ]
    observed = [word for word in settings["changed"] if word.startswith("observed")]
    arguments = [f"dataset={settings['dataset']}", f"method={settings['method']}", *observed, *fixed, *changed]
    return " ".join(["multilab train", *map(shlex.quote, arguments)])


def with_best(mapping: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a method's YAML with tuned arguments in it, ``estimator__C`` in its nested mapping."""
    tuned = json.loads(json.dumps(mapping))
    for name, value in best.items():
        at, *rest = name.split("__")
        if rest and at not in tuned:  # a step of a pipeline: its arguments may be next to the steps
            at, rest = name, []
        target = tuned
        while rest:
            target, at, rest = target[at], rest[0], rest[1:]
        target[at] = value
    return tuned
