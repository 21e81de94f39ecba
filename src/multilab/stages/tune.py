"""Search a method's hyperparameters on one dataset."""

from __future__ import annotations

import json
from typing import Any

from multilab.stages.adhoc import compose_and_run, publish_tuning, settings_of
from multilab.stages.common import Progress

__all__ = ["main", "tune_job", "with_best"]


def main(argv: list[str]) -> int:
    """`multilab tune dataset=NAME method=NAME [tune.n_trials=20 tune.metric=ranking_loss]`."""
    return compose_and_run(tune_job, argv, "multilab tune")


def tune_job(cfg: Any) -> float:
    """Search a method's space on a whole dataset and print a YAML to keep."""
    from omegaconf import OmegaConf

    from multilab.experiments.cells import Cell, Part, parts_of
    from multilab.experiments.search import SearchPlan, search, search_name
    from multilab.experiments.settings import Method, plain
    from multilab.experiments.store import Store

    settings, store = settings_of(cfg), Store()
    method = Method.from_mapping(settings["method"], settings["mapping"])
    asked = plain(cfg.tune)
    plan = SearchPlan(**{**asked, "n_trials": asked["n_trials"] or SearchPlan.n_trials})
    known = parts_of(settings["dataset"], settings["protocol"])[0]
    whole = Part(known.dataset, known.dataset_digest, known.protocol, -1, "all rows")
    cell = Cell("train", whole, method, settings["seed"])
    journal = store.root / ".journals" / f"{search_name(method, known.dataset, plan)}.log"
    bar = Progress(f"tuning {method.name} on {known.dataset}")
    best, trials = search(cell, plan, store, journal, bar)
    value = publish_tuning(cell, plan, best, trials)
    print(f"# {method.title} on {known.dataset}: {plan.metric} {value:.4f} over {plan.folds} inner folds")
    print(OmegaConf.to_yaml(OmegaConf.create(with_best(settings["mapping"], best))), end="")
    return value


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
