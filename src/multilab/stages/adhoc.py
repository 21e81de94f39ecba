"""Runs made by hand: `multilab train` and `multilab tune` through Hydra."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.ground import canonical_json, json_digest, write_atomically
from multilab.stages.common import Progress
from multilab.stages.composition import cells_of, compose_and_run, metric_names, settings_of

__all__ = ["compose_and_run", "train", "tune"]


def run_job(cfg: Any) -> float:
    """Run the cells of one Hydra job, print their metrics and leave a note for the publication at the end."""
    from hydra.core.hydra_config import HydraConfig

    from multilab.experiments.results import evaluate_cell
    from multilab.experiments.store import Store
    from multilab.experiments.workers import run_cells

    settings = settings_of(cfg)
    cells, store = cells_of(settings), Store()
    failed = run_cells(cells, store, progress=Progress(f"{settings['method']} on {settings['dataset']}"))
    if failed:
        label, reason = next(iter(failed.items()))
        raise ExperimentError(f"{len(failed)} of {len(cells)} cells failed, the first ({label}) with: {reason}")
    found = [evaluate_cell(cell, store, cfg.conventions) for cell in cells]
    metrics = metric_names(cfg)
    show(settings, found, metrics)
    note = Path(HydraConfig.get().runtime.output_dir) / f"job-{json_digest(settings)[:16]}.json"
    write_atomically(note, canonical_json(settings))
    return sum(row[metrics[0]] for row in found) / len(found)


def show(settings: dict[str, Any], found: list[dict[str, float]], metrics: list[str]) -> None:
    """Print mean and standard deviation over the splits."""
    import numpy as np

    words = "  ".join([f"{settings['method']} on {settings['dataset']}, {len(found)} splits", *settings["changed"]])
    print(words)
    for metric in metrics:
        values = [row[metric] for row in found]
        spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
        print(f"  {metric:<20} {np.mean(values):.4f}{spread}")


def train(argv: list[str]) -> int:
    """`multilab train [-m] dataset=... method=...`."""
    return compose_and_run(run_job, argv, "multilab train")


def tune_job(cfg: Any) -> float:
    """Search a method's space on a whole dataset and print a YAML to keep."""
    from omegaconf import OmegaConf

    from multilab.experiments.cells import Cell, Part, parts_of
    from multilab.experiments.search import SearchPlan, search, search_name
    from multilab.experiments.settings import Method, plain
    from multilab.experiments.store import Store
    from multilab.stages.publication import publish_tuning

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


def tune(argv: list[str]) -> int:
    """`multilab tune dataset=... method=... [tune.n_trials=50]`."""
    return compose_and_run(tune_job, argv, "multilab tune")
