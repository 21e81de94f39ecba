"""Publication to MLflow: of studies, and of the runs and searches of `multilab train` and `multilab tune`.

These leave a note in the store of cells, from which `multilab study publish --runs` publishes them again.
"""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from multilab.commands.comparisons import dataset_ranks
from multilab.commands.progress import ProgressBar
from multilab.commands.receipts import published_to, write_receipt
from multilab.commands.train import Run, cells_of
from multilab.commands.tuning import Search
from multilab.core import MultilabError, experiment_dir, read_json, report_dir
from multilab.datasets import card
from multilab.experiments.cell_metrics import cell_metrics
from multilab.experiments.cells import Cell, study_cells
from multilab.experiments.environment import environment
from multilab.experiments.errors import TrackingError
from multilab.experiments.evaluation import MEASURED, dataset_facts, learned
from multilab.experiments.measuring import RECALL
from multilab.experiments.method import Method
from multilab.experiments.mlflow_store import record_destination, tracking
from multilab.experiments.store import Store
from multilab.experiments.study import Study, Tuning
from multilab.experiments.track import RunRecord, Tracker
from multilab.metrics import METRICS
from multilab.reports.figures import heatmap
from multilab.reports.figures.style import new_axes, png_bytes, styled
from multilab.statistics.result_files import read_scores


def publish_all(where: dict[str, str]) -> int:
    """Publish all runs and searches that the store of cells has a note of."""
    root = Store().root
    if not any((root / ".runs").glob("*.json")):
        print(f"nothing to publish: no runs of `multilab train` or `multilab tune` in {root}")
        return 0
    runs, left_out = read_runs(root, where)
    _publish(runs, read_searches(root, where), where)
    if left_out:
        total = len(runs) + left_out
        print(f"{left_out} of {total} runs left out: settings, code or data changed since; train them again")
    return 0


def publish_later(runs: Sequence[Run], searches: Sequence[Search], where: dict[str, str]) -> None:
    """Publish runs and searches that ended just now; where the store does not answer, say how to do it later."""
    try:
        _publish(runs, searches, where)
    except TrackingError as error:
        print(f"{error}; nothing is lost, publish later: multilab study publish --runs", file=sys.stderr)


def _publish(runs: Sequence[Run], searches: Sequence[Search], where: dict[str, str]) -> None:
    """Publish runs to the experiment ``runs`` and searches to ``tuning``, and print what that changed."""
    tracker = Tracker(where["uri"], where["artifacts"])  # before anything is read: it may not answer
    published = {"runs": [_of_run(run) for run in runs], "tuning": [_of_search(found) for found in searches]}
    columns = {
        "runs": [metric for run in runs[-1:] for metric in (run.metrics[0], "seconds", "peak_mb", *run.metrics[1:3])],
        "tuning": [f"best.{found.plan.metric}" for found in searches[-1:]],
    }
    for experiment, entries in published.items():
        if entries:
            counts = tracker.publish(experiment, entries, prune=False)
            tracker.share_view(experiment, columns[experiment])
            print(f"MLflow experiment {experiment}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def read_runs(root: Path, where: dict[str, str]) -> tuple[list[Run], int]:
    """Return the runs that a store of cells has notes of, and how many there are whose cells are gone."""
    store = Store(root)
    runs, left_out = [], 0
    for note in _notes(root, "run-*.json"):
        settings = note["settings"]
        try:
            cells = cells_of(settings)
        except MultilabError:  # its dataset or protocol is gone
            cells = []
        if cells and all(store.has(cell.key) for cell in cells):
            scores = [cell_metrics(cell, store, settings["conventions"]) for cell in cells]
            runs.append(Run(settings, cells, scores, note["metrics"], where))
        else:
            left_out += 1
    return runs, left_out


def read_searches(root: Path, where: dict[str, str]) -> list[Search]:
    """Return the searches that a store of cells has notes of."""
    notes = _notes(root, "search-*.json")
    return [Search(**{**note, "plan": Tuning(**note["plan"]), "where": where}) for note in notes]


def _notes(root: Path, pattern: str) -> list[Any]:
    return [read_json(path) for path in sorted((root / ".runs").glob(pattern))]


def _of_run(run: Run) -> RunRecord:
    scores = {cell.split_ref.split: row for cell, row in zip(run.cells, run.scores, strict=True)}
    values = {name: {split: row[name] for split, row in scores.items()} for name in run.scores[0]}
    record = run_record("runs", run.cells, values, environment(), run.metrics)
    changed = run.settings["changed"]
    return replace(record, method=" ".join([record.method, *changed]), title=" ".join([record.title, *changed]))


def _of_search(found: Search) -> RunRecord:
    """Return the run of a search: the value of each trial as a step, the best value, and the best arguments."""
    cell, plan = found.cell, found.plan
    trials = [float(row[plan.metric]) for row in csv.DictReader(io.StringIO(found.trials))]
    finite = [value for value in trials if math.isfinite(value)]
    best = min(finite) if METRICS[plan.metric].direction == "min" else max(finite)
    tuning = {f"tune.{name}": value for name, value in vars(plan).items()}
    return RunRecord(
        study="tuning",
        method=f"{cell.method.name} {plan.metric} {plan.n_trials} {plan.sampler}",
        dataset=cell.split_ref.dataset,
        title=cell.method.title,
        params={**flat_params(cell.method), **_observed(cell), **found.best, **tuning},
        metrics={},
        measured={},
        facts=dataset_facts(cell.split_ref.dataset),
        cells=[cell.key],
        source=dataset_source(cell.split_ref.dataset),
        curves={f"trial.{plan.metric}": trials, f"best.{plan.metric}": [best]},
        tags=run_tags(environment(), cell.seed),
        artifacts=lambda: {"trials.csv": found.trials.encode()},
    )


def publish_study(study: Study, where: dict[str, str]) -> None:
    """Publish a study, share the view of its runs table, and leave a receipt if it went to the configured store.

    From the temporary copy of a DVC experiment only its own runs are published, next to those of the repository.
    """
    tracker = Tracker(where["uri"], where["artifacts"])
    runs = list(ProgressBar("publishing to MLflow")(records(study, study_scores(study)), len(study_pairs(study))))
    copy = experiment_dir()
    if copy is None:
        counts = tracker.publish(study.name, runs)
    else:
        counts = tracker.publish_experiment(study.name, runs, os.environ.get("DVC_EXP_NAME") or copy.name)
    first, *others = _headline(study)
    tracker.share_view(study.name, ["rank", first, "seconds", "peak_mb", *others], order_by="rank")
    if where == tracking():  # DVC checks the configured store only
        record_destination(published_to(study), where["uri"])
        write_receipt(study, "publish")
    print(f"MLflow experiment {study.name}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))


def _headline(study: Study) -> tuple[str, ...]:
    """Return the first metrics of the runs table of a study."""
    return tuple(dict.fromkeys([study.headline, *study.metrics]))[:3]


def study_scores(study: Study) -> Any:
    """Return the rows of ``scores.csv``, without splits on which a metric is undefined for every method."""
    scores = read_scores(report_dir(study.name))
    defined = scores.groupby(["dataset", "split", "metric"], sort=False)["value"].transform("count")
    return scores[defined > 0]


def study_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the pairs (method, dataset) of a study."""
    return [(method, dataset) for method in study.all_methods for dataset in study.datasets_of(method)]


def records(study: Study, scores: Any) -> Iterator[RunRecord]:
    """Yield one run per variant and dataset of a study, from its scores and the cell store.

    Cells that passed a limit have no scores; a pair without any has no run.
    """
    about, ranks, among = environment(), *dataset_ranks(study, scores)
    groups = dict(list(scores.groupby(["method", "dataset"], sort=False)))
    cells = {method: study_cells(study, method) for method in study.all_methods}
    for method, dataset in study_pairs(study):
        rows = groups.get((method, dataset))
        if rows is None:
            continue
        finished = set(rows["split"])
        refs = ((cell, cell.split_ref) for cell in cells[method])
        chosen = [cell for cell, ref in refs if ref.dataset == dataset and ref.split in finished]
        values = {
            str(metric): {int(s): float(v) for s, v in zip(part["split"], part["value"], strict=True)}
            for metric, part in rows.groupby("metric", sort=False)
        }
        record = run_record(study.name, chosen, values, about, _headline(study))
        rank = ranks.get((method, dataset))
        yield record if rank is None else replace(record, rank=rank, tags={**record.tags, "ranked": among})


def run_record(
    study: str,
    cells: Sequence[Cell],
    values: Mapping[str, Mapping[int, float]],
    about: Mapping[str, Any],
    headline: Sequence[str],
) -> RunRecord:
    """Return the run of one method on one dataset.

    Parameters
    ----------
    study : str
        Experiment name.
    cells : sequence of Cell
        Its cells, in split order.
    values : mapping
        Metric to split to value.
    about : mapping
        The environment.
    headline : sequence of str
        The first metrics of the runs table; three of them show their splits as steps.
    """
    first, store = cells[0], Store()
    distinct = {cell.key: store.record(cell.key) for cell in cells}
    recall = [RECALL] if any(RECALL in record for record in distinct.values()) else []
    by_split = {cell.split_ref.split: distinct[cell.key] for cell in cells}
    measured = {name: {s: _measured(record, name) for s, record in by_split.items()} for name in (*MEASURED, *recall)}
    counts = {name for name in values if name.startswith("n_skipped_")}  # rows or labels that a mean leaves out
    return RunRecord(
        study=study,
        method=first.method.name,
        dataset=first.split_ref.dataset,
        title=first.method.title,
        params={
            **flat_params(first.method),
            **_observed(first),
            "protocol": first.split_ref.protocol,
            **_tuned(cells, distinct),
        },
        metrics={name: dict(row) for name, row in values.items() if name not in counts or any(row.values())},
        measured={"seconds": {split: _seconds(record) for split, record in by_split.items()}, **measured},
        facts=dataset_facts(first.split_ref.dataset),
        cells=[cell.key for cell in cells],
        headline=tuple(headline[:3]),
        source=dataset_source(first.split_ref.dataset),
        started=min((r["started"] for r in distinct.values() if "started" in r), default=None),
        seconds=sum(_seconds(record) for record in distinct.values()),
        tags={**run_tags(about, first.seed), "study": study},
        artifacts=lambda: _artifacts(first, store),
    )


def run_tags(about: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Return the tags of a run: commit, seed, Python version."""
    commit = about["commit"]
    git = {"mlflow.source.git.commit": commit.rstrip("+")} if commit else {}
    return {"commit": str(commit), "seed": str(seed), "python": str(about["python"]), **git}


def _observed(cell: Cell) -> dict[str, Any]:
    """Return the setting ``observed`` as a parameter, if it is set."""
    return {"observed": str(cell.observed)} if cell.observed else {}


def flat_params(method: Method) -> dict[str, Any]:
    """Return the settings of a method under flat names, so that MLflow can filter by each of them.

    An argument of a nested estimator is called as in ``set_params``: ``estimator__C``, and of a pipeline's step
    ``classify__k``.
    """
    own: dict[str, Any] = {"preprocessing": method.preprocessing}
    if method.base_scores:
        own |= {"base_scores": ", ".join(method.base_scores), "inner_cv": method.inner_cv}
    flat: dict[str, Any] = {"_target_": method.target}
    for name, value in {**method.params, **own}.items():
        flat |= _flat(name, value)
    return flat


def _flat(name: str, value: Any) -> dict[str, Any]:
    """Return one argument, or those of the estimator or the named steps in it."""
    if isinstance(value, dict):
        flat = {name: value["_target_"]} if "_target_" in value else {}
        for key, item in value.items():
            flat |= {} if key == "_target_" else _flat(f"{name}__{key}", item)
        return flat
    steps = isinstance(value, list | tuple) and value
    if steps and all(isinstance(v, list | tuple) and len(v) == 2 and isinstance(v[0], str) for v in value):
        prefix = name.rpartition("__")[0]
        flat = {}
        for step, item in value:
            flat |= _flat(f"{prefix}__{step}" if prefix else step, item)
        return flat
    return {name: value}


def _tuned(cells: Sequence[Cell], records: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return what the searches of tuned cells chose: per argument the values in split order."""
    chosen = [records[cell.key].get("tuned", {}) for cell in cells]
    names = dict.fromkeys(name for best in chosen for name in best)
    return {f"tuned.{name}": ", ".join(str(best.get(name, "")) for best in chosen) for name in names}


def _measured(record: dict[str, Any], name: str) -> float:
    """Return what was measured of a cell, NaN if it was not; a rise in memory of 0 is below what can be measured."""
    value = float(record.get(name, math.nan))
    return math.nan if name == "peak_mb" and value == 0 else value


def _seconds(record: dict[str, Any]) -> float:
    """Return the seconds of search, fit and prediction; ``cell_seconds`` would add imports and reading."""
    return sum(float(record.get(name, 0.0)) for name in ("tune_seconds", "fit_seconds", "predict_seconds"))


def dataset_source(name: str) -> tuple[str, str]:
    """Return where a dataset comes from as MLflow's type and JSON: a public address, a file, or the generator."""
    entry = card(name)
    files = [file for file in entry.files if not file.is_variant]
    for file in files:
        if file.url is not None:
            return "http", json.dumps({"url": file.url})
        if file.repository is not None:
            return "http", json.dumps({"url": f"{file.repository}/raw/{file.commit}/{file.source}"})
    if files:
        return "local", json.dumps({"uri": str(entry.location.parent / files[0].path)})
    generator = {k: str(v) for k, v in (entry.generator or {"name": name}).items()}
    return "code", json.dumps({"tags": {"mlflow.source.name": "multilab.datasets", **generator}})


def _artifacts(cell: Cell, store: Store) -> dict[str, bytes]:
    """Return the learned arrays of the first split and a figure of each matrix among them."""
    arrays = learned(cell, store)
    if not arrays:
        return {}
    buffer = io.BytesIO()
    content: dict[str, Any] = dict(arrays)
    np.savez_compressed(buffer, **content)
    figures = {f"{n}.png": _matrix_png(a, n) for n, a in arrays.items() if a.ndim == 2 and min(a.shape) > 1}
    return {"learned.npz": buffer.getvalue(), **figures}


def _matrix_png(matrix: np.ndarray, name: str) -> bytes:
    with styled():
        canvas, axes = new_axes(5, 5, layout=None)
        canvas.colorbar(heatmap(matrix, axes[0, 0], title=name), ax=axes[0, 0], shrink=0.8)
        return png_bytes(canvas, dpi=110)
