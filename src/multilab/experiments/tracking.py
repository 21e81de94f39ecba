"""MLflow as a view of the result files: one writer, rebuilt at will, never the record itself.

Experiment per study, parent run per method, child run per dataset with fold values as steps. Publishing is idempotent:
a child whose ``multilab.key`` is there already is left alone, a changed one replaces the old, and what a killed
publication left ``RUNNING`` is deleted first.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from multilab.ground import json_digest, write_atomically

__all__ = ["RunRecord", "Tracker"]


@dataclass(frozen=True)
class RunRecord:
    """One method on one dataset, as MLflow shall show it.

    Attributes
    ----------
    study, method, dataset : str
    title : str
        Name of the method as printed.
    params : dict
        Settings of the estimator.
    metrics, measured : dict of str to list of float
        Values over the splits, in order. What was measured (seconds, megabytes) is shown but is no part of the key.
    facts : dict
        What is known of the dataset; ``digest`` among it.
    tags : dict
    cells : list of str
        Keys of the cells behind the values.
    artifacts : callable
        Returns files by name, only called when the run is new.
    """

    study: str
    method: str
    dataset: str
    title: str
    params: dict[str, Any]
    metrics: dict[str, list[float]]
    measured: dict[str, list[float]]
    facts: dict[str, Any]
    cells: list[str]
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: Callable[[], dict[str, bytes]] = dict

    @property
    def key(self) -> str:
        """Identity of the run: the cells and the numbers it shows."""
        return json_digest([self.study, self.method, self.dataset, self.cells, _finite(self.metrics)])


class Tracker:
    """Writes runs to one MLflow store, which is made first if it is not there.

    Parameters
    ----------
    uri : str
        MLflow tracking URI.
    artifacts : str
        Folder of the artifacts; ignored for a server, which has its own.
    """

    def __init__(self, uri: str, artifacts: str) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.pop("MLFLOW_RUN_ID", None)  # an exported run id would adopt every run
        import logging

        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        from mlflow import MlflowClient

        if uri.startswith("sqlite:///"):
            _make_database(Path(uri.removeprefix("sqlite:///")))
        self.client = MlflowClient(tracking_uri=uri)
        self.artifacts = None if uri.startswith("http") else Path(artifacts).resolve()
        self.client.search_experiments(max_results=1)  # migrates the database, if need be, in this one process

    def publish(self, experiment: str, records: Sequence[RunRecord], prune: bool = True) -> dict[str, int]:
        """Make the runs of an experiment equal to ``records``.

        Returns
        -------
        dict
            Counts: ``created``, ``kept``, ``deleted``.
        """
        self._experiment = self._get_experiment(experiment)
        counts = {"created": 0, "kept": 0, "deleted": 0}
        parents, children = self._existing(counts)
        by_method: dict[str, list[RunRecord]] = defaultdict(list)
        for record in records:
            by_method[record.method].append(record)
        for method, group in by_method.items():
            parent = parents.pop(method, None) or self._create(group[0].title, {"multilab.method": method})
            for record in group:
                self._publish_child(parent, record, children.pop((method, record.dataset), None), counts)
            self._finish_parent(parent, method, group)
        if prune:
            for run_id in [*parents.values(), *(run_id for run_id, _ in children.values())]:
                self.client.delete_run(run_id)
                counts["deleted"] += 1
        return counts

    def _get_experiment(self, name: str) -> str:
        found = self.client.get_experiment_by_name(name)
        if found is not None:
            if found.lifecycle_stage == "deleted":
                self.client.restore_experiment(found.experiment_id)
            return found.experiment_id
        location = (self.artifacts / name).as_uri() if self.artifacts else None
        return self.client.create_experiment(name, artifact_location=location)

    def _existing(self, counts: dict[str, int]) -> tuple[dict[str, str], dict[tuple[str, str], tuple[str, str]]]:
        parents: dict[str, str] = {}
        children: dict[tuple[str, str], tuple[str, str]] = {}
        token = None
        while True:
            page = self.client.search_runs([self._experiment], max_results=1000, page_token=token)
            for run in page:
                tags = run.data.tags
                method, dataset = tags.get("multilab.method"), tags.get("multilab.dataset")
                twice = (method, dataset) in children if dataset else method in parents
                if method and (run.info.status == "RUNNING" or twice):
                    self.client.delete_run(run.info.run_id)
                    counts["deleted"] += 1
                elif method and dataset:
                    children[method, dataset] = (run.info.run_id, tags.get("multilab.key", ""))
                elif method:
                    parents[method] = run.info.run_id
            token = page.token
            if not token:
                return parents, children

    def _create(self, name: str, tags: dict[str, str]) -> str:
        run = self.client.create_run(self._experiment, run_name=name, tags={"mlflow.source.name": "multilab", **tags})
        return run.info.run_id

    def _publish_child(
        self, parent: str, record: RunRecord, known: tuple[str, str] | None, counts: dict[str, int]
    ) -> None:
        if known and known[1] == record.key:
            run = self.client.get_run(known[0])
            if run.data.tags.get("mlflow.parentRunId") != parent:
                self.client.set_tag(known[0], "mlflow.parentRunId", parent)
            counts["kept"] += 1
            return
        from mlflow.entities import Param, RunTag

        tags = {"mlflow.parentRunId": parent, "multilab.method": record.method, "multilab.dataset": record.dataset}
        run_id = self._create(f"{record.title} on {record.dataset}", tags)
        params = [Param(k, _short(v, 6000)) for k, v in record.params.items()]
        told = {**record.tags, "multilab.key": record.key, "multilab.cells": _short(" ".join(record.cells), 4000)}
        self.client.log_batch(run_id, params=params, tags=[RunTag(k, str(v)) for k, v in told.items()])
        self._log_metrics(run_id, {**record.metrics, **record.measured})
        self._log_dataset(run_id, record)
        with TemporaryDirectory() as folder:
            for name, content in record.artifacts().items():
                path = Path(folder) / name
                path.write_bytes(content)
                self.client.log_artifact(run_id, str(path))
        self.client.set_terminated(run_id, "FINISHED")
        counts["created"] += 1
        if known:
            self.client.delete_run(known[0])
            counts["deleted"] += 1

    def _log_metrics(self, run_id: str, metrics: dict[str, list[float]]) -> None:
        """Log each split as a step, and the mean over the splits as ``<metric>.mean``."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        entries = []
        for name, values in _finite(metrics).items():
            entries += [Metric(name, value, now, step) for step, value in enumerate(values)]
            if values:
                entries.append(Metric(f"{name}.mean", sum(values) / len(values), now, 0))
        for start in range(0, len(entries), 1000):
            self.client.log_batch(run_id, metrics=entries[start : start + 1000])

    def _log_dataset(self, run_id: str, record: RunRecord) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        digest = str(record.facts.get("digest", ""))[:36]
        profile = _short({k: record.facts.get(k) for k in ("instances", "features", "labels", "cardinality")}, 16000)
        entry = Dataset(record.dataset, digest, "multilab", record.dataset, profile=profile)
        self.client.log_inputs(run_id, datasets=[DatasetInput(entry, [InputTag("mlflow.data.context", "evaluation")])])

    def _finish_parent(self, parent: str, method: str, group: list[RunRecord]) -> None:
        """Give the parent the mean over its datasets, unless it shows these numbers already."""
        key = json_digest([record.key for record in group])
        run = self.client.get_run(parent)
        if run.data.tags.get("multilab.key") == key and run.info.status == "FINISHED":
            return
        from mlflow.entities import Metric, RunTag

        now, sums = int(time.time() * 1000), defaultdict(list)
        for record in group:
            for name, values in _finite({**record.metrics, **record.measured}).items():
                if values:
                    sums[name].append(sum(values) / len(values))
        entries = [Metric(f"{name}.mean", sum(v) / len(v), now, 0) for name, v in sums.items() if len(v) == len(group)]
        tags = [RunTag("multilab.key", key), *(RunTag(k, str(v)) for k, v in group[0].tags.items())]
        self.client.log_batch(parent, metrics=entries[:1000], tags=tags)
        self.client.set_terminated(parent, "FINISHED")


def _make_database(path: Path) -> None:
    """Create the SQLite database in one step: one whose making was killed half-way, MLflow never opens again."""
    if path.is_file() and path.stat().st_size:
        return
    from mlflow import MlflowClient

    with TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        MlflowClient(tracking_uri=f"sqlite:///{draft}").search_experiments(max_results=1)
        with contextlib.closing(sqlite3.connect(draft)) as database:
            whole = database.serialize()
    if not (path.is_file() and path.stat().st_size):  # another process may have been faster
        write_atomically(path, whole)


def _finite(metrics: dict[str, list[float]]) -> dict[str, list[float]]:
    """Drop what MLflow stores badly: NaN and infinity."""
    return {k: [float(v) for v in values if abs(v) < float("inf")] for k, values in metrics.items()}


def _short(value: Any, limit: int) -> str:
    text = str(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
