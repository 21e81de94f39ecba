"""Runs made by hand: `multilab train` and `multilab tune` through Hydra."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

from multilab.experiments.errors import ExperimentError
from multilab.ground import canonical_json, json_digest, write_atomically
from multilab.stages.common import Progress, print_warnings
from multilab.stages.composition import cells_of, compose_and_run, metric_names, settings_of

__all__ = ["PublishAtEnd", "compose_and_run", "train", "tune"]


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
    print_warnings(cells, store)
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


class PublishAtEnd(Callback):
    """Publishes the runs of a job or sweep to the MLflow experiment ``runs``, once, from the launching process."""

    def on_run_end(self, config: Any, **kwargs: Any) -> None:
        """Publish a single run."""
        self._publish(Path(config.hydra.run.dir))

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Publish a sweep."""
        self._publish(Path(config.hydra.sweep.dir))

    def _publish(self, folder: Path) -> None:
        notes = [json.loads(path.read_text()) for path in sorted(folder.glob("**/job-*.json"))]
        notes = [note for note in notes if note["publish"]]
        if notes:
            counts = publish_notes(notes)
            print("MLflow experiment runs: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def publish_notes(notes: list[dict[str, Any]]) -> dict[str, int]:
    """Publish runs made by hand; a run with other settings stands beside the others."""
    import dataclasses

    import pandas as pd

    from multilab.experiments.environment import environment
    from multilab.experiments.receipts import tracking
    from multilab.experiments.results import evaluate_cell
    from multilab.experiments.store import Store
    from multilab.experiments.tracking import Tracker
    from multilab.stages.view import run_record

    store, where, about, records = Store(), tracking(), environment(), []
    for note in notes:
        cells = cells_of(note)
        rows = [
            (cell.part.split, metric, value)
            for cell in cells
            for metric, value in evaluate_cell(cell, store, note["conventions"]).items()
        ]
        scores = pd.DataFrame(rows, columns=["split", "metric", "value"])
        record = run_record("runs", cells, scores, store, about)
        variant = " ".join([record.method, *note["changed"]])
        title = " ".join([record.title, *note["changed"]])
        records.append(dataclasses.replace(record, method=variant, title=title))
    return Tracker(where["uri"], where["artifacts"]).publish("runs", records, prune=False)


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


def publish_tuning(cell: Any, plan: Any, best: dict[str, Any], trials: str) -> float:
    """Publish a search to the MLflow experiment ``tuning``; return the best value."""
    import csv
    import io

    from multilab.experiments.environment import environment
    from multilab.experiments.receipts import tracking
    from multilab.experiments.results import dataset_facts
    from multilab.experiments.tracking import RunRecord, Tracker
    from multilab.metrics import METRICS

    values = [float(row[plan.metric]) for row in csv.DictReader(io.StringIO(trials))]
    value = min(values) if METRICS[plan.metric].direction == "min" else max(values)
    about, where = environment(), tracking()
    record = RunRecord(
        study="tuning",
        method=f"{cell.method.name} {plan.metric} {plan.n_trials} {plan.sampler}",
        dataset=cell.part.dataset,
        title=cell.method.title,
        params={**cell.method.identity(), **best, **{f"tune.{k}": v for k, v in vars(plan).items()}},
        metrics={f"trial.{plan.metric}": values, f"best.{plan.metric}": [value]},
        measured={},
        facts=dataset_facts(cell.part.dataset),
        cells=[cell.key],
        tags={"commit": str(about["commit"]), "seed": str(cell.seed)},
        artifacts=lambda: {"trials.csv": trials.encode()},
    )
    Tracker(where["uri"], where["artifacts"]).publish("tuning", [record], prune=False)
    return value


def tune(argv: list[str]) -> int:
    """`multilab tune dataset=... method=... [tune.n_trials=50]`."""
    return compose_and_run(tune_job, argv, "multilab tune")
