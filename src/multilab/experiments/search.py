"""Search a method's hyperparameter space with Optuna, inside a training part.

The search sees the training rows only: every trial is scored on inner stratified folds of them. A method on base
scores gets out-of-fold scores made anew for each inner fold (cells like any other, shared by all trials and by all
methods on the same members), so that no validation label ever reaches a base model.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from multilab.experiments.cells import Cell, Part
from multilab.experiments.errors import ExperimentError
from multilab.experiments.fitting import Inputs, indices, inner_folds, predict_both, seeded_estimator
from multilab.experiments.journals import open_journal
from multilab.experiments.running import gather
from multilab.experiments.seeds import seed_for
from multilab.experiments.settings import Method
from multilab.experiments.store import Store
from multilab.experiments.threads import one_thread
from multilab.ground import json_digest

__all__ = ["SearchPlan", "distributions", "search", "search_cell"]


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
    """

    n_trials: int = 20
    folds: int = 3
    order: int = 1
    metric: str = "ranking_loss"
    conventions: str = "default"
    sampler: str = "tpe"


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
    cell: Cell, plan: SearchPlan, store: Store, journal: Path, progress: Any = None
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

    Returns
    -------
    best : dict
        The arguments found.
    trials : str
        All finished trials as CSV.
    """
    return _search(cell, plan, store, journal, progress)[:2]


def _search(
    cell: Cell, plan: SearchPlan, store: Store, journal: Path, progress: Any = None
) -> tuple[dict[str, Any], str, bytes]:
    import optuna
    from optuna.trial import TrialState

    from multilab.metrics import METRICS

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    method, name = cell.method, _study_name(cell, plan)
    space = distributions(method)
    direction: Any = "minimize" if METRICS[plan.metric].direction == "min" else "maximize"
    first = _grid(space) if plan.sampler == "grid" else [_papers(method, space)]
    n_trials = min(plan.n_trials, len(first)) if plan.sampler == "grid" else plan.n_trials
    folds = _inner_inputs(cell, plan, store)
    with open_journal(journal) as own:
        study = own.study(name, direction, n_trials)
        steps = range(len(study.trials), n_trials)
        for index in progress(steps, len(steps)) if progress else steps:
            # One seed per trial: a search that was killed and resumed walks the same way as one that was not.
            study.sampler = _sampler(plan, seed_for(cell.seed, cell.part.digest, method.target, f"trial {index}"))
            if index < len(first):
                study.enqueue_trial(first[index])
            trial = study.ask(space)
            try:
                value = float(np.mean([_value(method.with_params(trial.params), f, cell, plan) for f in folds]))
                if np.isnan(value):
                    raise ExperimentError(f"{plan.metric} is undefined on an inner fold")
            except OSError:  # a full disk says nothing of the trial: the next run goes on from here
                raise
            except Exception as error:  # a failed trial is recorded and the search goes on
                trial.set_user_attr("error", f"{type(error).__name__}: {error}")
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, value)
        finished = study.get_trials(states=[TrialState.COMPLETE])
        if not finished:
            errors = [t.user_attrs["error"] for t in study.trials]
            own.discard()
            raise ExperimentError(f"{cell.label}: every trial of the search failed, the last with: {errors[-1]}")
        return dict(study.best_params), _as_csv(finished, list(space), plan.metric), own.finish(name, n_trials)


def _study_name(cell: Cell, plan: SearchPlan) -> str:
    """Return what identifies the sequence of trials, however many there are of it."""
    if cell.tune:
        return cell.key
    steps = {key: value for key, value in vars(plan).items() if key != "n_trials"}
    return replace(cell, tune=tuple(sorted(steps.items()))).key


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


def search_name(method: Method, dataset: str, plan: SearchPlan) -> str:
    """Return a short stable name for a search on a whole dataset, used for its journal; more trials go on in it."""
    steps = {key: value for key, value in vars(plan).items() if key != "n_trials"}
    return f"{dataset}-{method.name}-{json_digest([method.identity(), method.search, steps])[:12]}"
