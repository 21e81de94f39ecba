"""Publication of ad-hoc runs (`multilab train`, `multilab tune`) to MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

__all__ = ["PublishAtEnd", "publish_notes", "publish_tuning"]


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
    from multilab.stages.adhoc import cells_of
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
