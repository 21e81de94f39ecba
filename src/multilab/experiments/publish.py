"""Publication to MLflow: the runs of studies, `multilab train` and `multilab tune`, and their content."""

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from multilab.cells.cell import Cell, base_methods
from multilab.cells.environment import code_version
from multilab.cells.errors import TrackingError
from multilab.cells.fit_costs import RECALL
from multilab.cells.inventory import spent_seconds
from multilab.cells.learned import LEFT_OUT
from multilab.cells.method import Method
from multilab.cells.progress import ProgressBar
from multilab.cells.store import Store
from multilab.core import experiment_dir, read_json, report_dir
from multilab.datasets import card
from multilab.datasets.prepared import dataset_facts
from multilab.experiments.evaluate import MEASURED
from multilab.experiments.learned_files import learned_files
from multilab.experiments.plan import study_cells
from multilab.experiments.stages import unpack
from multilab.experiments.study import Study
from multilab.experiments.track import RunRecord, Tracker
from multilab.models.mlflow_store import ui_text

_NOTES = {
    "runs": "One method on one dataset per run, made by `multilab train` and `multilab compare --publish`.",
    "tuning": "Searches of `multilab tune` on all rows of a dataset; their trials are steps of a metric.",
}


def publish_now(results: Sequence[Any]) -> None:
    """Publish runs or searches that just ended; if the store does not answer, explain how to do it later."""
    try:
        publish_results(results, results[0].where)
    except TrackingError as error:
        print(f"{error}; nothing is lost, publish later: multilab study publish --runs", file=sys.stderr)


def publish_results(results: Sequence[Any], where: dict[str, str]) -> None:
    """Publish runs of `multilab train` and searches of `multilab tune`, and print the changes."""
    tracker = Tracker(where["uri"], where["artifacts"])  # before anything is read: it may not answer
    records = [result.record() for result in results]
    for experiment in dict.fromkeys(record.study for record in records):
        of_experiment = [record for record in records if record.study == experiment]
        _report(experiment, tracker, tracker.publish(experiment, of_experiment, False, _NOTES[experiment]))


def publish_study(study: Study, where: dict[str, str]) -> None:
    """Publish a study; results that only its packs have are unpacked first.

    From the temporary copy of a DVC experiment only its own runs are published, next to those of the repository.
    """
    tracker = Tracker(where["uri"], where["artifacts"])
    unpack(study, Store())
    runs = list(ProgressBar("publishing to MLflow")(records(study, study_scores(study)), len(study_pairs(study))))
    note = (
        f"{study.title or study.name}. The current runs are those with `tags.superseded = 'false'`; `rank` is the rank "
        f"on a dataset by {study.headline}.\n\n    multilab study run --study {study.name}"
    )
    folder = experiment_dir()
    copy = (os.environ.get("DVC_EXP_NAME") or folder.name) if folder else ""
    _report(study.name, tracker, tracker.publish(study.name, runs, note=note, copy=copy))


def _report(experiment: str, tracker: Tracker, counts: Mapping[str, int]) -> None:
    print(f"MLflow experiment {experiment}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    print(f"runs:    {ui_text(tracker.where['uri'], tracker.number)}")


def command_line(verb: str, settings: Mapping[str, Any]) -> str:
    """Return the command of a run of `multilab train` or `multilab tune` with some settings."""
    words = [f"dataset={settings['dataset']}", f"method={settings['method']}", *settings["changed"]]
    return shlex.join(["multilab", verb, *words])


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

    Cells that exceeded a limit have no scores; a pair without scores has no run. Costs of results that came from a pack
    are those that the report has.
    """
    from multilab.experiments.comparisons import dataset_ranks  # takes a second, which `multilab train` is spared

    store, now, then = Store(), code_version(), _committed_environment(study)
    headline = tuple(dict.fromkeys([study.headline, *study.metrics]))[:3]
    costs, (ranks, among) = _committed_costs(study), dataset_ranks(study, scores)
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
        about = now if any("started" in store.record(cell.key) for cell in chosen) else then
        record = run_record(study.name, chosen, values, about, headline, costs)
        command = f"multilab study train --study {study.name} --method {method} --dataset {dataset}"
        rank = ranks.get((method, dataset))
        tags = record.tags if rank is None else record.tags | {"ranked": among}
        yield replace(record, rank=rank, tags=tags, command=command)


def _committed_costs(study: Study) -> dict[tuple[str, int, str], dict[str, float]]:
    """Return what ``measured.csv`` says of each cell, by dataset, split and method."""
    from multilab.statistics.result_files import CELL, read_measured

    table = read_measured(report_dir(study.name))
    if table is None:
        return {}
    names = [name for name in (*MEASURED, RECALL, "tune_seconds") if name in table]
    rows = zip(table[CELL].itertuples(index=False, name=None), table[names].to_dict("records"), strict=True)
    return {cell: {name: value for name, value in row.items() if value == value} for cell, row in rows}


def _committed_environment(study: Study) -> dict[str, Any]:
    """Return commit, version of Python and time that ``environment.json`` says; of the present without the file."""
    path = report_dir(study.name) / "environment.json"
    if not path.is_file():
        return code_version()
    about = read_json(path)
    created = datetime.strptime(about["created"], "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    return {**about, "started": created.timestamp()}


def run_record(
    study: str,
    cells: Sequence[Cell],
    values: Mapping[str, Mapping[int, float]],
    about: Mapping[str, Any],
    headline: Sequence[str],
    costs: Mapping[tuple[str, int, str], Mapping[str, float]] | None = None,
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
        Commit and version of Python; ``started``, if records do not say when they were computed.
    headline : sequence of str
        The first metrics of the runs table; three of them show their splits as steps.
    costs : mapping, optional
        Costs of cells by dataset, split and method, for records without.
    """
    first, store, distinct = cells[0], Store(), dict[str, dict[str, Any]]()
    for cell in cells:  # repetitions without a seed of their own are one cell, whose seconds count once
        known = (costs or {}).get(cell.row, {})
        distinct.setdefault(cell.key, {**known, **store.record(cell.key)})
    recall = [RECALL] if any(RECALL in record for record in distinct.values()) else []
    by_split = {cell.split_ref.split: distinct[cell.key] for cell in cells}
    measured = {name: {s: _measured(record, name) for s, record in by_split.items()} for name in (*MEASURED, *recall)}
    left_out = {LEFT_OUT: json.dumps(distinct[first.key][LEFT_OUT])} if LEFT_OUT in distinct[first.key] else {}
    seconds = {split: spent_seconds(record) for split, record in by_split.items()}
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
        measured={"seconds": seconds, **measured},
        facts=dataset_facts(first.split_ref.dataset),
        cells=[cell.key for cell in cells],
        headline=tuple(headline[:3]),
        source=dataset_source(first.split_ref.dataset),
        started=min((r["started"] for r in distinct.values() if "started" in r), default=about.get("started")),
        seconds=sum(spent_seconds(record) for record in distinct.values()),
        tags={**run_tags(about, first.seed), **left_out, "study": study},
        artifacts=lambda: learned_files(first, store),
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
