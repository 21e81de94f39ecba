"""Search a method's hyperparameter space with Optuna, inside a training part.

The search sees the training rows only: every trial is scored on inner stratified folds of them. A method on base
scores gets out-of-fold scores made anew for each inner fold (cells like any other, shared by all trials and by all
methods on the same members), so that no validation label ever reaches a base model.
"""

from __future__ import annotations

import io
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from multilab.experiments.cells import Cell, Part
from multilab.experiments.databases import open_database
from multilab.experiments.errors import ExperimentError
from multilab.experiments.fitting import Inputs, indices, inner_folds, predict_both, seeded_estimator
from multilab.experiments.journals import ended_trials, open_journal
from multilab.experiments.running import gather
from multilab.experiments.seeds import seed_for
from multilab.experiments.settings import Method
from multilab.experiments.store import Store
from multilab.experiments.threads import one_thread
from multilab.ground import json_digest
from multilab.ground.messages import unknown_name

__all__ = [
    "SearchPlan",
    "default_trial",
    "distributions",
    "search",
    "search_cell",
    "search_name",
    "tune_block",
]


@dataclass(frozen=True)
class SearchPlan:
    """How to search.

    Attributes
    ----------
    n_trials : int
        Finished trials in all; a resumed search makes up what is missing.
    folds, order : int
        Inner stratified folds of the training part.
    metric : str
        Key of `multilab.metrics.score_all`; its direction is looked up.
    conventions : str
        Preset of the metrics.
    sampler : {"tpe", "random", "grid"}
        ``grid`` walks the printed grid: the ``choices`` of every space.
    timeout : float, optional
        Seconds after which no new trial starts; at least one trial is finished.
    pruner : {"none", "median"}
        ``median`` stops a trial whose running mean over the inner folds is worse than the median of earlier trials.
    storage : str, optional
        Optuna storage URL (``sqlite:///trials.db``); default: a journal file in the store of cells.
    """

    n_trials: int = 20
    folds: int = 3
    order: int = 1
    metric: str = "ranking_loss"
    conventions: str = "default"
    sampler: str = "tpe"
    timeout: float | None = None
    pruner: str = "none"
    storage: str | None = None

    def __post_init__(self) -> None:
        from multilab.metrics import METRICS

        for name, least in (("n_trials", 1), ("folds", 2), ("order", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ExperimentError(f"tune.{name} must be an integer >= {least}, got {value!r}")
        for name, allowed in (("metric", METRICS), ("sampler", _SAMPLERS), ("pruner", ("none", "median"))):
            value = getattr(self, name)
            if value not in allowed:
                raise ExperimentError(f"tune.{name}: {unknown_name(name, value, allowed)}")
        timeout = self.timeout
        if timeout is not None and (isinstance(timeout, bool | str) or not timeout > 0):
            raise ExperimentError(f"tune.timeout must be a number of seconds > 0, got {timeout!r}")

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> SearchPlan:
        """Build a plan from a `tune` block; an unknown field is refused."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise ExperimentError(f"tune.{name}: {unknown_name('setting of a search', name, known)}")
        return cls(**settings)


_SAMPLERS = ("tpe", "random", "grid")


def tune_block(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `tune` block of a tuned cell, validated, without later fields that are at their defaults.

    The block is part of the cell's key. A field that is added to `SearchPlan` must not change the keys of cells that
    do not use it.
    """
    plan = SearchPlan.from_mapping(settings)
    if plan.storage is not None:
        raise ExperimentError("tune.storage is for `multilab tune`; a tuned cell keeps its own journal of trials")
    added = {f.name: f.default for f in fields(SearchPlan) if f.name in ("timeout", "pruner", "storage")}
    return {name: value for name, value in settings.items() if name not in added or value != added[name]}


def distributions(method: Method) -> dict[str, Any]:
    """Return the search space of a method as Optuna distributions."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    kinds = {"float": FloatDistribution, "int": IntDistribution, "categorical": CategoricalDistribution}
    space = {}
    for name, setting in method.search.items():
        setting = dict(setting)
        try:
            space[name] = kinds[setting.pop("type")](**setting)
        except (KeyError, TypeError, ValueError) as error:
            raise ExperimentError(
                f"conf/method/{method.name}.yaml: search.{name} is no search space: {error}"
            ) from None
    if not space:
        raise ExperimentError(f"conf/method/{method.name}.yaml: no `search` space, so there is nothing to tune")
    return space


def journal_of(cell: Cell, store: Store) -> Path:
    """Return where the journal of a tuned cell's search lies until the cell is stored."""
    return store.root / ".journals" / f"{cell.key}.log"


def search_cell(cell: Cell, store: Store) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Search inside the training part of a cell; return the best parameters and the files to keep with the cell."""
    plan = SearchPlan(**dict(cell.tune or ()))
    best, trials, journal = _search(cell, plan, store, journal_of(cell, store))
    return best, {"journal.log": journal, "trials.csv": trials.encode()}


def search(
    cell: Cell, plan: SearchPlan, store: Store, journal: Path, progress: Any = None, name: str | None = None
) -> tuple[dict[str, Any], str]:
    """Search the space of ``cell.method`` on inner folds of its training part.

    Parameters
    ----------
    cell : Cell
        The method, the training part and the seed root.
    plan : SearchPlan
    store : Store
        Where the base scores of inner folds are kept.
    journal : Path
        Where Optuna's journal lies when the search is finished. A search with more trials goes on from it, one with
        fewer reads its first trials. While a search runs, it has a journal of its own beside it; a killed search is
        continued, a running one is left alone. The paper's own values are trial 0.
    progress : callable, optional
        Wraps the iterable of trials.
    name : str, optional
        Name of the Optuna study; default: what identifies the sequence of trials.

    Returns
    -------
    best : dict
        The arguments found.
    trials : str
        All finished trials as CSV.
    """
    return _search(cell, plan, store, journal, progress, name)[:2]


def _search(
    cell: Cell, plan: SearchPlan, store: Store, journal: Path, progress: Any = None, name: str | None = None
) -> tuple[dict[str, Any], str, bytes]:
    import optuna
    from optuna.trial import TrialState

    from multilab.metrics import METRICS

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    method, name = cell.method, name or _study_name(cell, plan)
    space = distributions(method)
    direction: Any = "minimize" if METRICS[plan.metric].direction == "min" else "maximize"
    first = _grid(space) if plan.sampler == "grid" else [_papers(method, space)]
    n_trials = min(plan.n_trials, len(first)) if plan.sampler == "grid" else plan.n_trials
    folds = _inner_inputs(cell, plan, store)
    began = time.monotonic()
    with open_database(plan.storage) if plan.storage else open_journal(journal) as own:
        study = own.study(name, direction, n_trials)
        study.pruner = optuna.pruners.MedianPruner() if plan.pruner == "median" else optuna.pruners.NopPruner()
        steps = range(len(ended_trials(study)), n_trials)
        for index in progress(steps, len(steps)) if progress else steps:
            late = plan.timeout and time.monotonic() - began >= plan.timeout
            if late and study.get_trials(states=[TrialState.COMPLETE]):
                break
            # One seed per trial: a search that was killed and resumed walks the same way as one that was not.
            study.sampler = _sampler(plan, seed_for(cell.seed, cell.part.digest, method.target, f"trial {index}"))
            if index < len(first) and not study.get_trials(states=[TrialState.WAITING]):
                study.enqueue_trial(first[index])
            trial = study.ask(space)
            try:
                value = _trial_value(trial, method.with_params(trial.params), folds, cell, plan)
                if np.isnan(value):
                    raise ExperimentError(f"{plan.metric} is undefined on an inner fold")
            except optuna.TrialPruned:
                study.tell(trial, state=TrialState.PRUNED)
            except OSError:  # a full disk says nothing of the trial: the next run goes on from here
                raise
            except Exception as error:  # a failed trial is recorded and the search goes on
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
        return dict(study.best_params), _as_csv(finished, list(space), plan.metric), own.finish(name, len(ended))


def _study_name(cell: Cell, plan: SearchPlan) -> str:
    """Return what identifies the sequence of trials, however many there are of it."""
    if cell.tune:
        return cell.key
    decides = {key: value for key, value in vars(plan).items() if key not in ("n_trials", "timeout", "storage")}
    return replace(cell, tune=tuple(sorted(decides.items()))).key


def _trial_value(trial: Any, method: Method, folds: list[Inputs], cell: Cell, plan: SearchPlan) -> float:
    """Return the mean over the inner folds; report the running mean after each and stop where the pruner says so."""
    import optuna

    values: list[float] = []
    for step, inputs in enumerate(folds):
        values.append(_value(method, inputs, cell, plan))
        if plan.pruner != "none" and not np.isnan(values).any():
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


def _grid(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points of a space of choices, in the order they are written."""
    choices = [getattr(s, "choices", ()) for s in space.values()]
    if () in choices:
        raise ExperimentError("sampler grid needs a categorical `search` space (choices) for every argument")
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*choices)]


def _papers(method: Method, space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values a method comes with, as far as they lie in its space: trial 0."""
    return {name: value for name, s in space.items() if _within(s, value := _own(method.params, name))}


def _own(params: Mapping[str, Any], name: str) -> Any:
    """Return the method's own value of an argument, ``estimator__C`` from the nested settings."""
    if name in params:
        return params[name]
    head, _, rest = name.partition("__")
    inner = params.get(head)
    return _own(inner, rest) if rest and isinstance(inner, Mapping) else None


def _within(space: Any, value: Any) -> bool:
    """Tell whether a value lies in a search space; a word such as ``gamma: scale`` does not lie in a numeric one."""
    try:
        return value is not None and space._contains(space.to_internal_repr(value))
    except (TypeError, ValueError):
        return False


def _sampler(plan: SearchPlan, seed: int) -> Any:
    import optuna

    random = optuna.samplers.RandomSampler
    samplers = {"tpe": optuna.samplers.TPESampler, "random": random, "grid": random}  # a grid is enqueued
    if plan.sampler not in samplers:
        raise ExperimentError(f"sampler {plan.sampler!r} is not tpe, random or grid")
    return samplers[plan.sampler](seed=seed)


def _inner_inputs(cell: Cell, plan: SearchPlan, store: Store) -> list[Inputs]:
    """Return the inner folds of the cell's training part, each gathered as a cell of its own would be."""
    from multilab.datasets import indices_digest, load

    train, _ = indices(cell.part)
    seed = seed_for(cell.seed, cell.part.dataset_digest, cell.part.digest, "search folds")
    found = []
    for index, (fit, ask) in enumerate(inner_folds(load(cell.part.dataset).Y[train], plan.folds, plan.order, seed)):
        digest = indices_digest(train[fit], train[ask])
        part: Part = replace(cell.part, digest=digest, inner=(plan.folds, plan.order, seed, index))
        found.append(gather(replace(cell, part=part, tune=None, alone=False), store))
    return found


def _value(method: Method, inputs: Inputs, cell: Cell, plan: SearchPlan) -> float:
    from multilab.metrics import score_all

    estimator = seeded_estimator(method, cell)
    with one_thread():
        estimator.fit(inputs.X_train, inputs.Y_train)
        scores, decisions = predict_both(estimator, inputs.X_test, inputs.Y_train.shape[1])
    return score_all(inputs.Y_test, scores, decisions, conventions=plan.conventions)[plan.metric]


def _as_csv(trials: list[Any], names: list[str], metric: str) -> str:
    import csv

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", *names, metric])
    for trial in trials:
        rows.writerow([trial.number, *(json.dumps(trial.params.get(name)) for name in names), repr(trial.value)])
    return text.getvalue()


def search_name(cell: Cell, plan: SearchPlan) -> str:
    """Return the name of a search on all rows of a dataset: of its Optuna study and of its journal.

    It depends on what decides the values of the trials, not on how many there are, on their time limit or on where
    they are kept: a search for 15 trials continues one for 10.
    """
    decides = {k: v for k, v in vars(plan).items() if k not in ("n_trials", "timeout", "storage")}
    digest = json_digest([cell.key, cell.method.search, decides])[:12]
    return f"{cell.part.dataset}-{cell.method.name}-{plan.metric}-{digest}"
