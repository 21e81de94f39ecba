"""Search of a method's hyperparameter space with Optuna, inside a training set.

The search sees the training rows only: every trial is scored on inner stratified folds of them. A method on base
scores gets other out-of-fold scores for each inner fold (cells like any other, shared by all trials and by all methods
on the same members), so that no validation label ever reaches a base model.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from multilab.cells.cell import Cell
from multilab.cells.errors import ExperimentError
from multilab.cells.fitting import fit_on_rows
from multilab.cells.method import Method, named_metrics
from multilab.cells.rows import Rows
from multilab.cells.running import estimator_of_cell
from multilab.cells.seeds import seed_for
from multilab.cells.settings import OPTUNA_IN_KEYS, Tuning
from multilab.core import declared_versions, json_digest, major_minor
from multilab.experiments.trials import ended_trials, open_database, open_journal
from multilab.metrics import METRICS, score_all
from multilab.metrics.registry import unknown_standard

__all__ = ["SearchResult", "default_trial", "distributions", "search", "search_name"]


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes
    ----------
    best : dict
        The best arguments.
    trials : str
        All finished trials as CSV.
    journal : bytes
        Content of Optuna's journal; empty if the trials are in a database.
    """

    best: dict[str, Any]
    trials: str
    journal: bytes


def distributions(method: Method) -> dict[str, Any]:
    """Return the search space of a method as Optuna distributions."""
    kinds = {"float": FloatDistribution, "int": IntDistribution, "categorical": CategoricalDistribution}
    space = {}
    for name, given in method.search.items():
        setting: dict[str, Any] = dict(given)
        try:
            space[name] = kinds[setting.pop("type")](**setting)
        except (KeyError, TypeError, ValueError) as error:
            raise ExperimentError(
                f"conf/method/{method.name}.yaml: search.{name} is not a search space: {error}"
            ) from None
    if not space:
        raise ExperimentError(f"conf/method/{method.name}.yaml: no `search` space, so there is nothing to tune")
    return space


def search(
    cell: Cell,
    tuning: Tuning,
    folds: Sequence[Rows],
    journal: Path,
    progress: Callable[[Iterable[int], int], Iterable[int]] | None = None,
    name: str | None = None,
) -> SearchResult:
    """Search the space of ``cell.method`` on inner folds of its training set.

    Parameters
    ----------
    cell : Cell
        The method, the training set and the seed root.
    tuning : Tuning
    folds : sequence of Rows
        The inner folds, see :func:`multilab.cells.running.inner_rows`.
    journal : Path
        Optuna's journal of the finished search. A search with more trials continues from it, one with fewer reads its
        first trials. While a search runs, it has its own journal next to it; a killed search is continued, a running
        one is left alone. The method's own values are trial 0.
    progress : callable, optional
        Wraps the iterable of trials.
    name : str, optional
        Name of the Optuna study; default: the digest of what decides the sequence of trials.
    """
    if tuning.metric not in METRICS:
        raise ExperimentError(f"tune.metric: {unknown_standard(tuning.metric)}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    method, name = cell.method, name or _study_name(cell, tuning)
    space = distributions(method)
    direction: Any = "minimize" if METRICS[tuning.metric].direction == "min" else "maximize"
    first = _first_points(tuning, method, space, cell)
    n_trials = min(tuning.n_trials, len(first)) if tuning.sampler == "GridSampler" else tuning.n_trials
    began = time.monotonic()
    with open_database(tuning.storage) if tuning.storage else open_journal(journal) as own:
        study = own.study(name, direction, n_trials)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([tuning.metric])
        study.pruner = getattr(optuna.pruners, tuning.pruner)()
        steps = range(len(ended_trials(study)), n_trials)
        for index in progress(steps, len(steps)) if progress else steps:
            timed_out = tuning.timeout and time.monotonic() - began >= tuning.timeout
            if timed_out and study.get_trials(states=[TrialState.COMPLETE]):
                break
            # One seed per trial: a search that was killed and resumed has the same trials as one that was not.
            study.sampler = _sampler(
                tuning, seed_for(cell.seed, cell.split_ref.digest, method.seed_name, f"trial {index}")
            )
            if index < len(first) and not study.get_trials(states=[TrialState.WAITING]):
                study.enqueue_trial(first[index])
            trial = study.ask(space)
            try:
                value = _trial_value(trial, method.with_params(trial.params), folds, cell, tuning)
                if np.isnan(value):
                    raise ExperimentError(f"{tuning.metric} is undefined on an inner fold")
            except optuna.TrialPruned:
                study.tell(trial, state=TrialState.PRUNED)
            except OSError:  # a full disk is no failure of the trial: the next run continues from here
                raise
            except Exception as error:  # a failed trial is recorded and the search continues
                trial.set_user_attr("error", f"{type(error).__name__}: {error}")
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, value)
        finished = study.get_trials(states=[TrialState.COMPLETE])
        ended = ended_trials(study)
        if not finished:
            own.discard()
            raise ExperimentError(
                f"{cell.label}: every trial of the search failed, the last with: {ended[-1].user_attrs['error']}"
            )
        trials = _as_csv(finished, list(space), tuning.metric)
        return SearchResult(dict(study.best_params), trials, own.finish(name, len(ended)))


def _study_name(cell: Cell, tuning: Tuning) -> str:
    """Return what identifies the sequence of trials, whatever its length."""
    if cell.tune:
        return cell.key
    return json_digest([cell.key, _sequence(cell, tuning)])


def _sequence(cell: Cell, tuning: Tuning) -> dict[str, Any]:
    """Return what decides the values of the trials besides the cell, but not their number: settings and versions."""
    # of settings from a file or command line only those that it names
    named = {name: value for name, value in vars(tuning).items() if name not in ("n_trials", "timeout", "storage")}
    settings = {name: OPTUNA_IN_KEYS.get(value, value) for name, value in named.items()}
    versions = declared_versions([search, *named_metrics([tuning.metric])])
    # A search over `preprocessing` once ignored what its trials chose: its journals are not continued.
    scaling = {"scaling": "of each trial"} if "preprocessing" in cell.method.search else {}
    return settings | scaling | {"versions": versions, "optuna": major_minor(optuna.__version__)}


def _trial_value(trial: Any, method: Method, folds: Sequence[Rows], cell: Cell, tuning: Tuning) -> float:
    """Return the mean over the inner folds; report the running mean after each and stop where the pruner decides so.

    The values of the folds become user attributes of the trial, which Optuna's dashboard shows.
    """
    values: list[float] = []
    for step, rows in enumerate(folds):
        values.append(_value(method, rows, cell, tuning))
        if not np.isnan(values[-1]):  # which is no valid JSON
            trial.set_user_attr(f"fold_{step}", float(values[-1]))
        if tuning.pruner != "NopPruner" and not np.isnan(values).any():
            trial.report(float(np.mean(values)), step)
            if step + 1 < len(folds) and trial.should_prune():
                raise optuna.TrialPruned()
    return float(np.mean(values))


def default_trial(study: Any, method: Method) -> Any:
    """Return the finished trial of the method's own values, ``None`` where they lie outside the search space."""
    for trial in study.trials:
        own = {name: _own(method.params, name) for name in trial.params}
        if "preprocessing" in own:
            own["preprocessing"] = method.preprocessing
        if trial.state.name == "COMPLETE" and trial.params == own:
            return trial
    return None


def _first_points(tuning: Tuning, method: Method, space: Mapping[str, Any], cell: Cell) -> list[dict[str, Any]]:
    """Return the points of the first trials: all of a grid or a quasi-random search, else the method's own values."""
    default = _default_point(method, space)
    if tuning.sampler == "GridSampler":
        return _grid(space)
    if tuning.sampler == "QMCSampler":
        seed = seed_for(cell.seed, cell.split_ref.digest, method.seed_name, "quasi-random trials")
        return _quasi_random(space, default, tuning.n_trials, seed)
    return [default]


def _quasi_random(space: Mapping[str, Any], default: dict[str, Any], n_trials: int, seed: int) -> list[dict[str, Any]]:
    """Return the default point, then a scrambled Sobol sequence; more trials go on from where fewer end.

    Optuna counts the points of the sequence in the study, and a search that is continued in a new journal would begin
    it again. Here they are drawn ahead, in a study of their own.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(sampler=optuna.samplers.QMCSampler(scramble=True, seed=seed))
    study.enqueue_trial(default)
    points = []
    for _ in range(n_trials):
        trial = study.ask(dict(space))
        points.append(trial.params)
        study.tell(trial, 0.0)
    return points


def _grid(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points of a space of choices, in the order of the file."""
    choices = [getattr(s, "choices", ()) for s in space.values()]
    if () in choices:
        raise ExperimentError("GridSampler needs a categorical `search` space (choices) for every argument")
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*choices)]


def _default_point(method: Method, space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the method's own values, as far as they lie in its search space: trial 0."""
    return {name: value for name, s in space.items() if _within(s, value := _own(method.params, name))}


def _own(params: Mapping[str, Any], name: str) -> Any:
    """Return the method's own value of an argument, ``estimator__C`` from the nested settings."""
    if name in params:
        return params[name]
    head, _, rest = name.partition("__")
    inner = params.get(head)
    return _own(inner, rest) if rest and isinstance(inner, Mapping) else None


def _within(space: Any, value: Any) -> bool:
    """Return whether a value lies in a search space; a string such as ``scale`` does not lie in a numeric one."""
    try:
        return value is not None and space._contains(space.to_internal_repr(value))
    except (TypeError, ValueError):
        return False


def _sampler(tuning: Tuning, seed: int) -> Any:
    # the points of a grid and of a quasi-random search are enqueued
    samplers = optuna.samplers
    return (samplers.TPESampler if tuning.sampler == "TPESampler" else samplers.RandomSampler)(seed=seed)


def _value(method: Method, rows: Rows, cell: Cell, tuning: Tuning) -> float:
    model = estimator_of_cell(cell, method, rows.encoder)
    fit = fit_on_rows(model, rows.X_train, rows.Y_train, rows.X_test, groups=rows.groups)
    values = score_all(rows.Y_test, fit.scores, fit.decisions, conventions=tuning.conventions, metrics=[tuning.metric])
    return values[tuning.metric]


def _as_csv(trials: list[Any], names: list[str], metric: str) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", *names, metric])
    for trial in trials:
        rows.writerow([trial.number, *(json.dumps(trial.params.get(name)) for name in names), repr(trial.value)])
    return text.getvalue()


def search_name(cell: Cell, tuning: Tuning) -> str:
    """Return the name of a search on all rows of a dataset: of its Optuna study and of its journal.

    It depends on what decides the values of the trials, not on their number, their time limit or where they
    are stored: a search for 15 trials continues one for 10.
    """
    digest = json_digest([cell.key, cell.method.search, _sequence(cell, tuning)])[:12]
    return f"{cell.split_ref.dataset}-{cell.method.name}-{tuning.metric}-{digest}"
