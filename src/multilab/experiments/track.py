"""Writer of runs to MLflow: creates, tags and deletes runs so that the store shows the result files.

An experiment per study, a run per method and dataset, which the tags ``method`` and ``dataset`` group. Under the plain
name of a metric a run shows the mean over the splits; the splits themselves are steps of ``split/<metric>`` for three
metrics, and columns of the artifact ``metrics.csv`` for all. Start and duration are those of the computation.

Publishing is idempotent: a run whose ``multilab.key`` is there already is kept. Runs of other settings, code or data
stay, with the tag ``superseded`` set to ``true``; the others carry ``false``. Only half-written runs and second copies
of a run are deleted: publishers do not wait for each other, and what two of them wrote at once is one run afterwards.
"""

from __future__ import annotations

import contextlib
import getpass
import itertools
import math
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import psutil
from mlflow.entities import Metric, RunTag
from mlflow.exceptions import MlflowException

from multilab.core import json_digest
from multilab.models.mlflow_store import NOTE, experiment_id, log_dataset, log_values, open_client, readable_errors

__all__ = ["RunRecord", "Tracker"]

VIEW = "5"
"""Version of what a run shows; runs of an older version are superseded."""

_ABANDONED_SECONDS = 3600.0  # longer than a writer needs for a run: an older unfinished run is removed
_DVC_EXPERIMENT = "dvc.experiment"

_COLUMNS = 20
"""Metrics that are columns of the runs table; with ranks, costs and splits the table stays below 30 columns."""


@dataclass(frozen=True)
class RunRecord:
    """One method on one dataset, as MLflow shows it.

    Attributes
    ----------
    study, method, dataset : str
    title : str
        Display name of the method.
    params : dict
        Settings of the method, flat.
    metrics, measured : dict of str to dict of int to float
        Values by split; if a split is NaN, there is no mean. Measurements (seconds, megabytes) are not part of the key.
    facts : dict
        Description of the dataset; ``digest`` among it.
    cells : list of str
        Keys of the cells behind the values.
    command : str
        The command that computes it.
    headline : tuple of str
        The first metrics of the table, at most three, whose splits are logged as steps.
    rank : float, optional
        Rank on this dataset among the methods that the tag ``ranked`` names.
    source : tuple of str
        Type and JSON of the dataset's source, in MLflow's terms.
    curves : dict of str to list of float
        Values logged as steps under their own name, without a mean.
    started, seconds : float, optional
        When the computation began (seconds since 1970) and how long it took in all.
    tags : dict
    artifacts : callable
        Returns files by name, only called when the run is new.
    """

    study: str
    method: str
    dataset: str
    title: str
    params: dict[str, Any]
    metrics: dict[str, dict[int, float]]
    measured: dict[str, dict[int, float]]
    facts: dict[str, Any]
    cells: list[str]
    command: str = ""
    headline: tuple[str, ...] = ()
    rank: float | None = None
    source: tuple[str, str] = ("code", '{"tags": {"mlflow.source.name": "multilab"}}')
    curves: dict[str, list[float]] = field(default_factory=dict)
    started: float | None = None
    seconds: float = 0.0
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: Callable[[], dict[str, bytes]] = dict

    @property
    def key(self) -> str:
        """Identity of the run: its settings, its cells and the numbers it shows; a rank depends on other methods."""
        values = {name: sorted(_finite(splits).items()) for name, splits in self.metrics.items()}
        curves = {name: [str(value) for value in curve] for name, curve in self.curves.items()}
        settings = [{k: str(v) for k, v in self.params.items()}, self.tags.get("seed")]
        content = [self.study, self.method, self.dataset, settings, self.cells, values, curves]
        return json_digest([VIEW, *content, self.headline, self.rank is None])


class Tracker:
    """Writer of runs to one MLflow store.

    Parameters
    ----------
    uri : str
        MLflow tracking URI.
    artifacts : str
        Folder of the artifacts; ignored for a server, which has its own.

    Attributes
    ----------
    number : str
        Number of the experiment that was published last.

    Raises
    ------
    TrackingError
        If the store does not answer or cannot be opened.
    """

    def __init__(self, uri: str, artifacts: str) -> None:
        self.client = open_client(uri)
        self.where = {"uri": uri, "artifacts": artifacts}

    def publish(
        self, experiment: str, records: Sequence[RunRecord], prune: bool = True, note: str = "", copy: str = ""
    ) -> dict[str, int]:
        """Make the current runs of an experiment equal to ``records``.

        Parameters
        ----------
        experiment : str
        records : sequence of RunRecord
        prune : bool
            Whether runs of other methods and datasets than those of ``records`` are superseded.
        note : str
            Description of the experiment, if it has none.
        copy : str
            Name of a DVC experiment, in whose copy of the repository the records were made: those that are not
            published yet are added under that name, and nothing is superseded.

        Returns
        -------
        dict
            Counts: ``created``, ``kept``, ``superseded``, ``deleted``.
        """
        with readable_errors(self.where["uri"]):
            self.number = experiment_id(self.client, experiment, self.where, note)
            self._counts = {"created": 0, "kept": 0, "superseded": 0, "deleted": 0}
            existing = self._existing()
            if copy:
                tags = [run.data.tags for run in itertools.chain.from_iterable(existing.values())]
                current = {tag.get("multilab.key") for tag in tags if tag.get("superseded") == "false"}
                records = [_of_copy(record, copy) for record in records if record.key not in current]
            for record in records:
                self._publish_run(record, existing.pop((record.method, record.dataset), []))
            if prune and not copy:
                for run in itertools.chain.from_iterable(existing.values()):
                    if _DVC_EXPERIMENT not in run.data.tags:  # of a copy, which is not the study of this folder
                        self._set_superseded(run, True)
            if self._counts["created"]:
                self._drop_doubles()
            return self._counts

    def _runs(self) -> list[Any]:
        runs, token = list[Any](), None
        while True:
            page = self.client.search_runs([self.number], max_results=1000, page_token=token)
            runs += page
            if not (token := page.token):
                return runs

    def _existing(self) -> dict[tuple[str, str], list[Any]]:
        """Return the published runs by method and dataset; delete what killed publications left."""
        existing: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for run in self._runs():
            tags = run.data.tags
            if "multilab.view" not in tags:  # not ours
                continue
            if run.info.status != "RUNNING":
                existing[tags.get("method", ""), tags.get("dataset", "")].append(run)
            elif _abandoned(tags.get("multilab.writer", "")):
                self._delete(run)
        return existing

    def _publish_run(self, record: RunRecord, known: list[Any]) -> None:
        """Publish one run, and supersede the other runs of this method and dataset."""
        same = next((run for run in known if run.data.tags.get("multilab.key") == record.key), None)
        if same is None:
            self._create(record)
        else:
            self._counts["kept"] += 1
            self._set_superseded(same, False)
            if record.rank is not None and same.data.metrics.get("rank") != record.rank:
                entries = [Metric("rank", record.rank, int(time.time() * 1000), 0)]
                tags = [RunTag("ranked", record.tags.get("ranked", ""))]
                self.client.log_batch(same.info.run_id, metrics=entries, tags=tags)
        for run in known:
            if run is not same:
                self._set_superseded(run, True)

    def _create(self, record: RunRecord) -> None:
        name = f"{record.title} on {record.dataset}"
        tags = {
            "mlflow.source.name": "multilab",
            "mlflow.user": _user(),
            NOTE: f"{name}: {len(set(record.cells))} results.\n\n    {record.command}",
            "command": record.command,
            "multilab.view": VIEW,
            "multilab.writer": f"{socket.gethostname()} {os.getpid()} {time.time():.0f}",
            "superseded": "false",
            "method": record.method,
            "dataset": record.dataset,
            **{name: str(value) for name, value in record.tags.items()},
            "multilab.key": record.key,
            "multilab.cells": " ".join(record.cells)[:4000],
        }
        start = int(1000 * (time.time() if record.started is None else record.started))
        run_id = self.client.create_run(self.number, run_name=name, tags=tags, start_time=start).info.run_id
        log_values(self.client, run_id, record.params, _metrics(record))
        log_dataset(self.client, run_id, record.dataset, record.facts, record.source)
        files = record.artifacts() | ({"metrics.csv": _table(record).encode()} if record.metrics else {})
        with TemporaryDirectory() as folder:
            for file, content in files.items():
                Path(folder, file).write_bytes(content)
            self.client.log_artifacts(run_id, folder)
        known = record.started is not None and math.isfinite(record.seconds)
        end = start + int(1000 * record.seconds) if known else None
        self.client.set_terminated(run_id, "FINISHED", end_time=end)
        self._counts["created"] += 1

    def _drop_doubles(self) -> None:
        """Delete all but the first of equal runs, which other publishers may have written meanwhile."""
        first: dict[tuple[str, ...], str] = {}
        for run in sorted(self._runs(), key=lambda run: run.info.run_id):
            identity = tuple(run.data.tags.get(name, "") for name in ("method", "dataset", "multilab.key"))
            if run.info.status == "RUNNING" or not identity[-1]:
                continue
            if first.setdefault(identity, run.info.run_id) != run.info.run_id:
                self._delete(run)

    def _set_superseded(self, run: Any, superseded: bool) -> None:
        text = str(superseded).lower()
        if run.data.tags.get("superseded") != text:
            with _deleted_meanwhile():
                self.client.set_tag(run.info.run_id, "superseded", text)
                self._counts["superseded"] += superseded

    def _delete(self, run: Any) -> None:
        with _deleted_meanwhile():
            self.client.delete_run(run.info.run_id)
            self._counts["deleted"] += 1


@contextlib.contextmanager
def _deleted_meanwhile() -> Iterator[None]:
    """Pass over a run that another publisher deleted."""
    try:
        yield
    except MlflowException as error:
        if error.error_code != "INVALID_PARAMETER_VALUE":
            raise


def _of_copy(record: RunRecord, name: str) -> RunRecord:
    """Return the run as that of a DVC experiment; its rank is among the methods of another folder."""
    tags = {k: v for k, v in record.tags.items() if k != "ranked"} | {_DVC_EXPERIMENT: name}
    title = f"{record.title} ({name})"
    return replace(record, method=f"{record.method} {name}", title=title, tags=tags, rank=None)


def _metrics(record: RunRecord) -> list[Metric]:
    """Return the columns of a run: means over the splits, costs, rank, and the splits of the headline as steps."""
    now = int(time.time() * 1000)
    plain = [name for name in record.metrics if "." not in name and not name.startswith("n_skipped_")]
    names = list(dict.fromkeys([*record.headline, *plain]))[:_COLUMNS]
    columns = {name: _mean(record.metrics.get(name, {})) for name in names}
    columns["seconds"] = _mean(record.measured.get("seconds", {}))
    columns["peak_mb"] = max(_finite(record.measured.get("peak_mb", {})).values(), default=None)
    columns["rank"] = record.rank
    entries = [(name, value, 0) for name, value in columns.items() if value is not None]
    for name in record.headline:
        steps = _finite(record.metrics.get(name, {}))
        entries += [(f"split/{name}", value, split) for split, value in steps.items()]
    for name, curve in record.curves.items():
        entries += [(name, value, step) for step, value in enumerate(curve) if math.isfinite(value)]
    return [Metric(name, value, now, step) for name, value, step in entries]


def _mean(splits: Mapping[int, float]) -> float | None:
    """Return the mean over the splits; over fewer splits than there are it would not be comparable."""
    finite = _finite(splits)
    return math.fsum(finite.values()) / len(finite) if finite and len(finite) == len(splits) else None


def _finite(values: Mapping[int, float]) -> dict[int, float]:
    return {int(split): float(value) for split, value in values.items() if math.isfinite(value)}


def _table(record: RunRecord) -> str:
    """Return all that was computed and measured, a row per metric: mean, standard deviation, and every split."""
    values = {**record.metrics, **record.measured}
    table = pd.DataFrame(values).T.sort_index(axis=1).replace([np.inf, -np.inf], np.nan)
    # Repetitions of a method without a seed of its own are one cell: they have no spread.
    spread = table.std(axis=1) if len(set(record.cells)) > 1 else np.nan
    table = table.add_prefix("split ")
    table.insert(0, "mean", [_mean(row) for row in values.values()])
    table.insert(1, "std", spread)
    return table.to_csv(index_label="metric", lineterminator="\n")


def _abandoned(writer: str) -> bool:
    """Return whether the writer of an unfinished run is surely gone; the tag says host, process and time."""
    host, pid, began = writer.split() if writer.count(" ") == 2 else ("", "0", "0")
    if host == socket.gethostname():  # this process has finished its own runs, or failed
        return int(pid) == os.getpid() or not psutil.pid_exists(int(pid))
    return time.time() - float(began) > _ABANDONED_SECONDS


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without an entry for its user
        return "unknown"
