"""Publication of ad-hoc runs (`multilab train`, `multilab tune`) to MLflow.

Each job leaves a note in its Hydra folder; the launching process publishes the notes when all jobs are done, and
`multilab study publish --runs` publishes all notes of the store again.
"""

import csv
import dataclasses
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback

from multilab.commands.comparisons import study_ranks
from multilab.commands.composition import cells_of
from multilab.commands.progress import ProgressBar
from multilab.commands.receipts import published_to, write_receipt
from multilab.commands.run_records import run_record, tuning_record
from multilab.core import MultilabError, experiment_dir, json_digest, read_json, report_dir, write_atomically
from multilab.experiments.cells import study_cells
from multilab.experiments.environment import environment
from multilab.experiments.errors import TrackingError
from multilab.experiments.evaluation import evaluate_cell
from multilab.experiments.store import Store
from multilab.experiments.study import Study
from multilab.experiments.tracking_uri import record_destination, tracking
from multilab.statistics.result_files import read_scores


class PublishAtEnd(Callback):
    """Publishes the runs of a job or sweep to MLflow, once, from the launching process."""

    def on_run_end(self, config: Any, **kwargs: Any) -> None:
        """Publish a single run."""
        self._publish(Path(config.hydra.run.dir), config)

    def on_multirun_end(self, config: Any, **kwargs: Any) -> None:
        """Publish a sweep."""
        self._publish(Path(config.hydra.sweep.dir), config)

    def _publish(self, folder: Path, config: Any) -> None:
        runs, searches = read_notes([folder])
        if not runs and not searches:
            return
        try:
            publish_notes(runs, searches, tracking(config.tracking.uri, config.tracking.artifacts))
        except TrackingError as error:
            print(f"{error}; nothing is lost, publish later: multilab study publish --runs", file=sys.stderr)


def publish_all(where: dict[str, str]) -> int:
    """Publish all notes of the cell store whose cells are there."""
    root = Store().root
    runs, searches = read_notes([root / ".runs", root / ".sweeps"])
    if not runs and not searches:
        print(f"nothing to publish: no runs of `multilab train` or `multilab tune` in {root}")
        return 0
    publish_notes(runs, searches, where)
    return 0


def read_notes(folders: list[Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the notes of runs to be published, and those of searches, each once."""

    def read(pattern: str) -> list[dict[str, Any]]:
        paths = sorted(path for folder in folders for path in folder.glob(f"**/{pattern}"))
        return [read_json(path) for path in {path.name: path for path in paths}.values()]

    return [note for note in read("job-*.json") if note["publish"]], read("tuning-*.json")


def publish_notes(runs: list[dict[str, Any]], searches: list[dict[str, Any]], where: dict[str, str]) -> None:
    """Publish runs to the experiment ``runs`` and searches to ``tuning``, and print what that changed."""
    from multilab.experiments.tracking import Tracker

    tracker = Tracker(where["uri"], where["artifacts"])  # before the metrics are computed: it may not answer
    run_records = [record for note in runs if (record := _run_record(note)) is not None]
    published = {"runs": run_records, "tuning": [_search_record(note) for note in searches]}
    for experiment, records in published.items():
        if records:
            counts = tracker.publish(experiment, records, prune=False)
            print(f"MLflow experiment {experiment}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    if len(run_records) < len(runs):
        missing = len(runs) - len(run_records)
        print(f"{missing} of {len(runs)} runs left out: settings, code or data changed since; train them again")


def _run_record(note: dict[str, Any]) -> Any:
    """Return the run that a note describes, ``None`` if its cells are not in the store."""
    store = Store()
    try:
        cells = cells_of(note)
    except MultilabError:  # its dataset or protocol is gone
        return None
    if not all(store.has(cell.key) for cell in cells):
        return None
    rows = [
        (cell.split_ref.split, metric, value)
        for cell in cells
        for metric, value in evaluate_cell(cell, store, note["conventions"]).items()
    ]
    scores = pd.DataFrame(rows, columns=["split", "metric", "value"])
    record = run_record("runs", cells, scores, store, environment())
    variant = " ".join([record.method, *note["changed"]])
    title = " ".join([record.title, *note["changed"]])
    return dataclasses.replace(record, method=variant, title=title)


def publish_tuning(cell: Any, plan: Any, best: dict[str, Any], trials: str) -> float:
    """Leave the note of a search for the publication at the end of the job; return the best value.

    Parameters
    ----------
    cell : Cell
        What was tuned.
    plan : Tuning
    best : dict
        The best arguments.
    trials : str
        The trials as CSV; the column named like the metric holds their values.
    """
    values = [float(row[plan.metric]) for row in csv.DictReader(io.StringIO(trials))]
    record = tuning_record(cell, plan, best, values, environment())
    content = {f.name: getattr(record, f.name) for f in dataclasses.fields(record) if f.name != "artifacts"}
    content["params"] = {name: str(value) for name, value in record.params.items()}
    name = f"tuning-{json_digest([cell.key, trials])[:16]}.json"
    note = json.dumps({"record": content, "trials": trials})
    write_atomically(Path(HydraConfig.get().runtime.output_dir) / name, note)
    return record.curves[f"best.{plan.metric}"][0]


def _search_record(note: dict[str, Any]) -> Any:
    from multilab.experiments.tracking import RunRecord

    content = note["record"]
    files = {"trials.csv": note["trials"].encode()}
    return RunRecord(**{**content, "source": tuple(content["source"]), "artifacts": lambda: files})


def publish_study(study: Study, where: dict[str, str]) -> None:
    """Publish a study, share the view of its runs table, and leave a receipt if it went to the configured store.

    From the temporary copy of a DVC experiment only its own runs are published, next to those of the repository.
    """
    from multilab.experiments.tracking import Tracker

    tracker = Tracker(where["uri"], where["artifacts"])
    scores = study_scores(study)
    runs = list(ProgressBar("publishing to MLflow")(records(study, scores), len(study_pairs(study))))
    copy = experiment_dir()
    if copy is None:
        counts = tracker.publish(study.name, runs, ranks=study_ranks(study, scores))
    else:
        counts = tracker.publish_experiment(study.name, runs, os.environ.get("DVC_EXP_NAME") or copy.name)
    others = [metric for metric in study.metrics if metric != study.headline]
    columns = ["Dataset", f"rank/{study.headline}", study.headline, *others[:4], "fit_seconds"]
    tracker.share_view(study.name, columns, order_by=f"rank/{study.headline}")
    if where == tracking():  # DVC checks the configured store only
        record_destination(published_to(study), where["uri"])
        write_receipt(study, "publish")
    print(f"MLflow experiment {study.name}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def study_scores(study: Study) -> Any:
    """Return the rows of ``scores.csv``, without splits on which a metric is undefined for every method."""
    scores = read_scores(report_dir(study.name))
    defined = scores.groupby(["dataset", "split", "metric"], sort=False)["value"].transform("count")
    return scores[defined > 0]


def study_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the pairs (method, dataset) of a study."""
    return [(method, dataset) for method in study.all_methods for dataset in study.datasets_of(method)]


def records(study: Study, scores: Any) -> Iterator[Any]:
    """Yield one run per variant and dataset of a study, from its scores and the cell store.

    Cells that passed a limit have no scores; a pair without any has no run.
    """
    store, about = Store(), environment()
    values = dict(list(scores.groupby(["method", "dataset"], sort=False)))
    cells = {method: study_cells(study, method) for method in study.all_methods}
    for method, dataset in study_pairs(study):
        rows = values.get((method, dataset))
        if rows is None:
            continue
        finished = set(rows["split"])
        refs = ((cell, cell.split_ref) for cell in cells[method])
        chosen = [cell for cell, ref in refs if ref.dataset == dataset and ref.split in finished]
        yield run_record(study.name, chosen, rows, store, about)
