"""Search a method's hyperparameters on one dataset."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

from multilab.stages.common import Progress
from multilab.stages.composition import compose_and_run, settings_of

__all__ = ["main", "tune_job", "with_best"]

_HELP = """multilab tune: search a method's hyperparameters with Optuna on all rows of one dataset.

  multilab tune dataset=emotions method=mlknn                        20 trials
  multilab tune dataset=emotions method=mlknn tune.n_trials=50       goes on from the finished trials to 50
  multilab tune dataset=emotions method=mlknn tune.timeout=600       no new trial starts after 10 minutes
  multilab tune dataset=emotions method=mlknn method.scale=minmax    with other fixed arguments
  multilab tune -m dataset=emotions,scene method=mlknn,mlkelm        several searches, one after another

Trial 0 are the method's own values. The result is what changed, the best value against the default one, and the
command that trains with it. The search space is `search:` in the YAML of the method (multilab methods show NAME).

settings (name=value):
  dataset=NAME          multilab datasets list
  method=NAME           multilab methods list
  method.ARG=VALUE      a fixed argument of the method
  tune.n_trials=20      finished trials in all; only those that are missing are run
  tune.metric=NAME      what is optimised (ranking_loss); its direction is known
  tune.folds=3          inner stratified folds; tune.order=1: of labels, 2: of pairs of labels
  tune.sampler=tpe      tpe, random, or grid (the choices of every argument)
  tune.timeout=SECONDS  no new trial starts after that; at least one is finished
  tune.pruner=none      median: stop a trial that is worse than the median of earlier ones after an inner fold
  tune.storage=URL      Optuna storage such as sqlite:///trials.db; default: a journal in the store of cells
  seed=0                root of all seeds
  publish=true          show the search in the MLflow experiment "tuning"

To tune inside every training part of a cross-validation instead: multilab train tune.n_trials=20 ..."""


def main(argv: list[str]) -> int:
    """`multilab tune dataset=NAME method=NAME [tune.n_trials=20 tune.metric=ranking_loss]`."""
    if any(word in ("-h", "--help") for word in argv):
        print(_HELP)
        return 0
    return compose_and_run(tune_job, argv, "multilab tune")


def tune_job(cfg: Any) -> float:
    """Search a method's space on a whole dataset; print the result and return the best value."""
    from dataclasses import replace

    from multilab.experiments.cells import Cell, Part, parts_of
    from multilab.experiments.databases import load_search
    from multilab.experiments.search import search, search_name
    from multilab.experiments.settings import Method
    from multilab.experiments.store import Store
    from multilab.stages.publication import publish_tuning

    plan = _plan(cfg)
    settings, store = settings_of(cfg), Store()
    method = Method.from_mapping(settings["method"], settings["mapping"])
    known = parts_of(settings["dataset"], settings["protocol"])[0]
    cell = Cell("train", Part(known.dataset, known.dataset_digest, known.protocol, -1, "all rows"), method, cfg.seed)
    name = search_name(cell, plan)
    journal = store.root / ".journals" / f"{name}.log"
    began = time.time()
    _, trials = search(cell, plan, store, journal, Progress(f"tuning {method.name} on {known.dataset}"), name)
    study = load_search(plan.storage, journal, name)
    best = study.best_params  # of a longer search that was run before, where there is one
    if settings["publish"]:
        publish_tuning(cell, replace(plan, storage=None), best, trials)
    new = sum(t.datetime_start is not None and t.datetime_start.timestamp() >= began for t in study.trials)
    lines = [
        _headline(study, cell, plan, new),
        *_changes(settings["mapping"], best),
        *_history(study),
        *_where(plan, journal, name),
        f"train with it: {_command(settings, best)}",
    ]
    print("\n".join(lines))
    return study.best_value


def _plan(cfg: Any) -> Any:
    """Return the plan of the search; without ``tune.n_trials=`` on the command line it has the default number."""
    from hydra.core.hydra_config import HydraConfig

    from multilab.experiments.search import SearchPlan
    from multilab.experiments.settings import plain

    block = plain(cfg.tune)
    if not any(word.startswith("tune.n_trials=") for word in HydraConfig.get().overrides.task):
        block["n_trials"] = block["n_trials"] or SearchPlan.n_trials
    return SearchPlan.from_mapping(block)


def _headline(study: Any, cell: Any, plan: Any, new: int) -> str:
    """Return the best value, the default one, and the number of trials."""
    from multilab.experiments.search import default_trial

    text = f"{cell.method.title} on {cell.part.dataset}: best {plan.metric} {study.best_value:.4f}"
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
    if plan.timeout and len(states) < plan.n_trials and plan.sampler != "grid":
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
    import optuna

    finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    if len(finished) < 5 or len({trial.value for trial in finished}) < 2 or len(finished[0].params) < 2:
        return {}
    try:
        return optuna.importance.get_param_importances(study, evaluator=optuna.importance.PedAnovaImportanceEvaluator())
    except (ValueError, RuntimeError):  # e.g. trials that share no argument
        return {}


def _where(plan: Any, journal: Path, name: str) -> list[str]:
    """Return where the Optuna study is stored and how to open it."""
    from multilab.experiments.databases import safe_url

    place = safe_url(plan.storage) if plan.storage else _short_path(journal)
    opened = f"optuna-dashboard {shlex.quote(place)}"
    return [f"study: {name} in {place}", f"  open it with: {opened} (pip install optuna-dashboard)"]


def _short_path(path: Path) -> str:
    """Return a path relative to the current folder where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _command(settings: dict[str, Any], best: dict[str, Any]) -> str:
    """Return the command line that trains with the best arguments."""
    before, after = _flat(settings["mapping"]), _flat(with_best(settings["mapping"], best))
    fixed = [word for word in settings["changed"] if word.lstrip("+").startswith("method.")]
    fixed = [word for word in fixed if word.lstrip("+").removeprefix("method.").partition("=")[0] not in _dotted(best)]
    changed = [
        f"{'' if name in before else '+'}method.{name}={json.dumps(value)}"
        for name, value in after.items()
        if name not in before or value != before[name]
    ]
    words = [f"dataset={settings['dataset']}", f"method={settings['method']}", *fixed, *changed]
    return " ".join(["multilab train", *map(shlex.quote, words)])


def _dotted(best: dict[str, Any]) -> set[str]:
    return {name.replace("__", ".") for name in best} | set(best)


def with_best(mapping: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a method's YAML with found arguments in it, ``estimator__C`` in its nested place."""
    found = json.loads(json.dumps(mapping))
    for name, value in best.items():
        at, *rest = name.split("__")
        if rest and at not in found:  # a step of a pipeline: its arguments may stand beside the steps
            at, rest = name, []
        place = found
        while rest:
            place, at, rest = place[at], rest[0], rest[1:]
        place[at] = value
    return found
