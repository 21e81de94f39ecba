"""Manual runs: `multilab train` through Hydra, and what `multilab tune` shares with it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

from multilab.experiments.errors import ExperimentError
from multilab.ground import canonical_json, conf_dir, json_digest, write_atomically
from multilab.stages.common import Progress

__all__ = ["PublishAtEnd", "compose_and_run", "settings_of", "train"]


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
    changed = [w for w in job.overrides.task if not w.startswith(("dataset=", "method=", "publish=", "metrics="))]
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
    from multilab.experiments.search import tune_block
    from multilab.experiments.settings import Method

    method = Method.from_mapping(settings["method"], settings["mapping"])
    tuned = tuple(sorted(tune_block(settings["tune"]).items())) if settings["tune"] else None
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
