"""Runs made by hand: `multilab train` and `multilab tune` through Hydra."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.ground import canonical_json, conf_dir, json_digest, write_atomically
from multilab.stages.common import Progress

__all__ = ["compose_and_run", "train", "tune"]


def compose_and_run(task: Any, argv: list[str], program: str) -> int:
    """Let Hydra compose the settings and run ``task(cfg)`` for each job."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    extra = [Path(p).resolve() for p in os.environ.get("MULTILAB_CARDS", "").split(os.pathsep) if p]
    groups = [f"file://{folder.parent}" for folder in extra if folder.name == "dataset"]
    words = [f"hydra.searchpath=[{','.join(groups)}]"] if groups else []
    sys.argv = [program, *argv, *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us as they are, and leave as one line
    try:
        hydra.main(config_path=str(conf_dir()), config_name="config", version_base="1.3")(task)()
    except (HydraException, OmegaConfBaseException) as error:
        told = " ".join(str(error).split()).split(" Config search path:")[0]
        raise ExperimentError(f"{told} (multilab train --cfg job shows all settings)") from None
    return 0


def settings_of(cfg: Any) -> dict[str, Any]:
    """Return what identifies a run by hand, as plain values."""
    from hydra.core.hydra_config import HydraConfig

    from multilab.experiments.settings import plain

    job = HydraConfig.get()
    changed = [
        w for w in job.overrides.task if not w.startswith(("dataset=", "method=", "publish=", "metrics=", "tracking"))
    ]
    return {
        "dataset": job.runtime.choices["dataset"],
        "method": job.runtime.choices["method"],
        "mapping": plain(cfg.method),
        "protocol": plain(cfg.protocol),
        "seed": cfg.seed,
        "tune": plain(cfg.tune) if cfg.tune.n_trials else None,
        "conventions": cfg.conventions,
        "publish": cfg.publish,
        "changed": sorted(changed),
    }


def cells_of(settings: dict[str, Any]) -> list[Any]:
    """Return the cells of a run by hand."""
    from multilab.experiments.cells import Cell, parts_of
    from multilab.experiments.settings import Method

    method = Method.from_mapping(settings["method"], settings["mapping"])
    tuned = tuple(sorted(settings["tune"].items())) if settings["tune"] else None
    parts = parts_of(settings["dataset"], settings["protocol"])
    return [Cell("train", part, method, settings["seed"], tuned) for part in parts]


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
    show(settings, found, list(cfg.metrics))
    note = Path(HydraConfig.get().runtime.output_dir) / f"job-{json_digest(settings)[:16]}.json"
    write_atomically(note, canonical_json(settings))
    return sum(row[cfg.metrics[0]] for row in found) / len(found)


def show(settings: dict[str, Any], found: list[dict[str, float]], metrics: list[str]) -> None:
    """Print mean and standard deviation over the splits."""
    import numpy as np

    words = "  ".join([f"{settings['method']} on {settings['dataset']}, {len(found)} splits", *settings["changed"]])
    print(words)
    for metric in metrics:
        values = [row[metric] for row in found]
        spread = f" +- {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
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
