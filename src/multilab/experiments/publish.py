"""Publication to MLflow: the runs of studies, `multilab train` and `multilab tune`, and their content."""

import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multilab.cells.cell import Cell, base_methods
from multilab.cells.environment import code_version
from multilab.cells.errors import TrackingError
from multilab.cells.fit_costs import RECALL
from multilab.cells.inventory import spent_seconds
from multilab.cells.method import Method
from multilab.cells.progress import ProgressBar
from multilab.cells.store import Store
from multilab.core import experiment_dir, report_dir
from multilab.datasets import card
from multilab.datasets.prepared import dataset_facts
from multilab.experiments.evaluate import MEASURED, learned
from multilab.experiments.plan import study_cells
from multilab.experiments.receipts import published_to, write_receipt
from multilab.experiments.study import Study
from multilab.experiments.track import RunRecord, Tracker
from multilab.models.mlflow_store import record_destination, runs_text, tracking


def publish_now(results: Sequence[Any]) -> None:
    """Publish runs or searches that just ended; if the store does not answer, explain how to do it later."""
    try:
        publish_results(results, results[0].where)
    except TrackingError as error:
        print(f"{error}; nothing is lost, publish later: multilab study publish --runs", file=sys.stderr)


def publish_results(results: Sequence[Any], where: dict[str, str]) -> None:
    """Publish runs of `multilab train` and searches of `multilab tune`, and print the changes."""
    tracker = Tracker(where["uri"], where["artifacts"])  # before anything is read: it may not answer
    published = [(result.record(), result.columns) for result in results]
    for experiment in dict.fromkeys(record.study for record, _ in published):
        entries = [(record, columns) for record, columns in published if record.study == experiment]
        counts = tracker.publish(experiment, [record for record, _ in entries], prune=False)
        tracker.share_view(experiment, entries[-1][1])
        print(f"MLflow experiment {experiment}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
        print(f"runs:    {runs_text(where['uri'], experiment)}")


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
    """Return the scores of a study, without splits on which a metric is undefined for every method."""
    from multilab.statistics.result_files import read_scores

    scores = read_scores(report_dir(study.name))
    defined = scores.groupby(["dataset", "split", "metric"], sort=False)["value"].transform("count")
    return scores[defined > 0]


def study_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the pairs (method, dataset) of a study."""
    return [(method, dataset) for method in study.all_methods for dataset in study.datasets_of(method)]


def records(study: Study, scores: Any) -> Iterator[RunRecord]:
    """Yield one run per variant and dataset of a study, from its scores and the cell store.

    Cells that exceeded a limit have no scores; a pair without scores has no run.
    """
    from multilab.experiments.comparisons import dataset_ranks  # takes a second, which `multilab train` is spared

    about, ranks, among = code_version(), *dataset_ranks(study, scores)
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
        Commit and version of Python.
    headline : sequence of str
        The first metrics of the runs table; three of them show their splits as steps.
    """
    first, store = cells[0], Store()
    # Repetitions without a seed of their own are one cell, whose seconds count once.
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
            **observed_param(first),
            "protocol": first.split_ref.protocol,
            **_tuned(cells, distinct),
        },
        metrics={name: dict(row) for name, row in values.items() if name not in counts or any(row.values())},
        measured={"seconds": {split: spent_seconds(record) for split, record in by_split.items()}, **measured},
        facts=dataset_facts(first.split_ref.dataset),
        cells=[cell.key for cell in cells],
        headline=tuple(headline[:3]),
        source=dataset_source(first.split_ref.dataset),
        started=min((r["started"] for r in distinct.values() if "started" in r), default=None),
        seconds=sum(spent_seconds(record) for record in distinct.values()),
        tags={**run_tags(about, first.seed), "study": study},
        artifacts=lambda: _artifacts(first, store),
    )


def run_tags(about: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Return the tags of a run: commit, seed, Python version."""
    commit = about["commit"]
    git = {"mlflow.source.git.commit": commit.rstrip("+")} if commit else {}
    return {"commit": str(commit), "seed": str(seed), "python": str(about["python"]), **git}


def observed_param(cell: Cell) -> dict[str, Any]:
    """Return the setting ``observed`` as a parameter, if it is set."""
    return {"observed": str(cell.observed)} if cell.observed else {}


def flat_params(method: Method) -> dict[str, Any]:
    """Return the settings of a method under flat names, so that MLflow can filter by each of them.

    An argument of a nested estimator is called as in ``set_params``: ``estimator__C``, and of a pipeline's step
    ``classify__k``. An argument of a method whose scores it reads is called ``base__mlknn__k``.
    """
    input_settings: dict[str, Any] = {"preprocessing": method.preprocessing}
    if method.base_scores:
        input_settings |= {"base_scores": ", ".join(method.base_scores), "inner_cv": method.inner_cv}
    flat: dict[str, Any] = {"_target_": method.target}
    for name, value in {**method.params, **input_settings}.items():
        flat |= _flat(name, value)
    for base in base_methods(method):
        settings, prefix = flat_params(base), f"base__{base.name}"
        flat |= {prefix: settings.pop("_target_")} | {f"{prefix}__{name}": value for name, value in settings.items()}
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


def dataset_source(name: str) -> tuple[str, str]:
    """Return the source of a dataset as MLflow's type and JSON: a public address, a file, or the generator."""
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
    from matplotlib.figure import Figure

    canvas, buffer = Figure(figsize=(5, 5), layout="constrained"), io.BytesIO()
    axes = canvas.subplots()
    low, high = min(0.0, float(matrix.min())), float(np.abs(matrix).max()) or 1.0
    colours: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -high} if low < 0 else {"cmap": "Blues", "vmin": 0.0}
    canvas.colorbar(axes.imshow(matrix, vmax=high, **colours), ax=axes, shrink=0.8)
    axes.set_title(name)
    canvas.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
