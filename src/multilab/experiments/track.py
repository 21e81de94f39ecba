"""Writer of runs to MLflow: creates, changes, tags and deletes runs so that the store shows the result files.

An experiment per study, a run per method and data set, which the tags ``method`` and ``dataset`` group. Under the plain
name of a metric a run shows the mean over the splits; the splits themselves are steps of ``split/<metric>`` for three
metrics, and columns of the artifact ``metrics.csv`` for all. Start and duration are those of the computation.
Publishing is idempotent: a run whose ``multilab.key`` is there already is kept. Runs of other settings, code or data
stay, with the tag ``superseded`` set to ``true``; the others carry ``false``. Only half-written runs and second copies
of a run are deleted.
"""

from __future__ import annotations

import contextlib
import csv
import getpass
import io
import itertools
import math
import os
import socket
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow.entities import Metric, RunTag
from mlflow.exceptions import MlflowException

from multilab.core import json_digest
from multilab.models.mlflow_store import (
    VIEW,
    experiment_id,
    log_dataset,
    log_values,
    open_client,
    readable_errors,
    share_view,
    sqlite_path,
    writer_lock,
)

__all__ = ["RunRecord", "Tracker"]

_ABANDONED_SECONDS = 3600.0  # longer than a writer needs for a run: an older unfinished run is removed
_DVC_EXPERIMENT = "dvc.experiment"

_COLUMNS = 20
"""Metrics that are columns of the runs table; with ranks, costs and splits the table stays below 30 columns."""

_COSTS = ("seconds", "peak_mb")
"""Measurements that are columns of the runs table: the mean of the seconds, and the largest peak."""


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
        Values by split; a split that is NaN leaves the mean out. What was measured (seconds, megabytes) is no part of
        the key.
    facts : dict
        Description of the dataset; ``digest`` among it.
    cells : list of str
        Keys of the cells behind the values.
    headline : tuple of str
        The first metrics of the table, at most three, whose splits are logged as steps.
    rank : float, optional
        Rank on this data set among the methods that the tag ``ranked`` names.
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

    Raises
    ------
    TrackingError
        If the store does not answer or cannot be opened.
    """

    def __init__(self, uri: str, artifacts: str) -> None:
        self.client = open_client(uri)
        self.uri, self.artifacts = uri, artifacts

    def publish(self, experiment: str, records: Sequence[RunRecord], prune: bool = True) -> dict[str, int]:
        """Make the current runs of an experiment equal to ``records``.

        Parameters
        ----------
        experiment : str
        records : sequence of RunRecord
        prune : bool
            Whether runs of other methods and data sets than those of ``records`` are superseded.

        Returns
        -------
        dict
            Counts: ``created``, ``kept``, ``superseded``, ``deleted``.
        """
        with readable_errors(self.uri), writer_lock(self.uri):
            self._experiment = experiment_id(self.client, experiment, {"uri": self.uri, "artifacts": self.artifacts})
            self._counts = {"created": 0, "kept": 0, "superseded": 0, "deleted": 0}
            existing = self._existing()
            for record in records:
                self._publish_run(record, existing.pop((record.method, record.dataset), []))
            if prune:
                self._supersede(itertools.chain.from_iterable(existing.values()))
            # A database file has one writer at a time; a server may have writers on other machines.
            if sqlite_path(self.uri) is None:
                self._drop_doubles()
            return self._counts

    def publish_experiment(self, experiment: str, records: Sequence[RunRecord], name: str) -> dict[str, int]:
        """Add the runs of a DVC experiment that are not published yet; the current ones stay current.

        Parameters
        ----------
        experiment : str
        records : sequence of RunRecord
        name : str
            Name of the DVC experiment; the runs carry it in their title and as the tag ``dvc.experiment``.

        Returns
        -------
        dict
            Counts, as from :meth:`publish`.
        """
        with readable_errors(self.uri), writer_lock(self.uri):
            self._experiment = experiment_id(self.client, experiment, {"uri": self.uri, "artifacts": self.artifacts})
            current = [run.data.tags for run in self._runs() if run.data.tags.get("superseded") == "false"]
            keys = {tags.get("multilab.key") for tags in current}
        new = [
            replace(
                record,
                method=f"{record.method} {name}",
                title=f"{record.title} ({name})",
                tags={k: v for k, v in record.tags.items() if k != "ranked"} | {_DVC_EXPERIMENT: name},
                rank=None,
            )
            for record in records
            if record.key not in keys
        ]
        return self.publish(experiment, new, prune=False)

    def share_view(self, experiment: str, metrics: Sequence[str], order_by: str | None = None) -> None:
        """Store which columns the runs table shows, see :func:`multilab.models.mlflow_store.share_view`."""
        with readable_errors(self.uri):
            number = self.client.get_experiment_by_name(experiment).experiment_id
            share_view(self.client, number, metrics, order_by, "tags.superseded = 'false'")

    def _runs(self) -> Iterator[Any]:
        token = None
        while True:
            page = self.client.search_runs([self._experiment], max_results=1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _existing(self) -> dict[tuple[str, str], list[Any]]:
        """Return the published runs by method and data set; delete what killed publications left."""
        existing: dict[tuple[str, str], list[Any]] = defaultdict(list)
        # All pages are read before a run is deleted, which could move the runs of the next page.
        for run in list(self._runs()):
            tags = run.data.tags
            if "multilab.view" not in tags:  # not ours
                continue
            if run.info.status == "RUNNING":
                # This process holds the lock of the database, so another writer of an unfinished run in it is gone.
                if sqlite_path(self.uri) is not None or _abandoned(tags.get("multilab.writer", "")):
                    self._delete(run)
            else:
                existing[tags.get("method", ""), tags.get("dataset", "")].append(run)
        return existing

    def _publish_run(self, record: RunRecord, known: list[Any]) -> None:
        """Publish one run, and supersede the other runs of this method and data set."""
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
        tags = {
            "mlflow.source.name": "multilab",
            "mlflow.user": _user(),
            "multilab.view": VIEW,
            "multilab.writer": _writer(),
            "superseded": "false",
            "method": record.method,
            "dataset": record.dataset,
            **{name: str(value) for name, value in record.tags.items()},
            "multilab.key": record.key,
            "multilab.cells": " ".join(record.cells)[:4000],
        }
        start = int(1000 * (time.time() if record.started is None else record.started))
        name = f"{record.title} on {record.dataset}"
        run = self.client.create_run(self._experiment, run_name=name, tags=tags, start_time=start)
        run_id = run.info.run_id
        log_values(self.client, run_id, record.params, _metrics(record))
        log_dataset(self.client, run_id, record.dataset, record.facts, record.source)
        files = record.artifacts() | ({"metrics.csv": _table(record).encode()} if record.metrics else {})
        if files:
            with TemporaryDirectory() as folder:
                for file, content in files.items():
                    Path(folder, file).write_bytes(content)
                self.client.log_artifacts(run_id, folder)
        end = None if record.started is None else int(1000 * (record.started + record.seconds))
        self.client.set_terminated(run_id, "FINISHED", end_time=end)
        self._counts["created"] += 1

    def _supersede(self, runs: Iterator[Any]) -> None:
        """Supersede what is no longer part of the study: variants may share its experiment."""
        for run in runs:
            if _DVC_EXPERIMENT not in run.data.tags:  # of a temporary copy, which is not the study of this folder
                self._set_superseded(run, True)

    def _drop_doubles(self) -> None:
        """Delete the second of two equal runs: publishers on two machines do not share a lock."""
        first: dict[tuple[str, ...], str] = {}
        finished = [run for run in self._runs() if run.info.status != "RUNNING"]
        for run in sorted(finished, key=lambda run: run.info.run_id):
            tags = run.data.tags
            identity = tuple(tags.get(name, "") for name in ("method", "dataset", "multilab.key"))
            if tags.get("multilab.key") and first.setdefault(identity, run.info.run_id) != run.info.run_id:
                self._delete(run)

    def _set_superseded(self, run: Any, superseded: bool) -> None:
        text = str(superseded).lower()
        if run.data.tags.get("superseded") != text:
            self.client.set_tag(run.info.run_id, "superseded", text)
            self._counts["superseded"] += superseded

    def _delete(self, run: Any) -> None:
        with contextlib.suppress(MlflowException):  # deleted by a publisher on another machine
            self.client.delete_run(run.info.run_id)
            self._counts["deleted"] += 1


def _metrics(record: RunRecord) -> list[Metric]:
    """Return the columns of a run: means over the splits, costs, rank, and the splits of the headline as steps."""
    now = int(time.time() * 1000)
    plain = [name for name in record.metrics if "." not in name and not name.startswith("n_skipped_")]
    names = list(dict.fromkeys([*record.headline, *plain]))[:_COLUMNS]
    columns = {name: _mean(record.metrics.get(name, {})) for name in names}
    seconds, peaks = (record.measured.get(name, {}) for name in _COSTS)
    columns |= {"seconds": _mean(seconds), "peak_mb": max(_finite(peaks).values(), default=None)}
    entries = [Metric(name, value, now, 0) for name, value in columns.items() if value is not None]
    if record.rank is not None:
        entries.append(Metric("rank", record.rank, now, 0))
    for name in record.headline:
        steps = _finite(record.metrics.get(name, {}))
        entries += [Metric(f"split/{name}", value, now, split) for split, value in steps.items()]
    for name, curve in record.curves.items():
        entries += [Metric(name, value, now, step) for step, value in enumerate(curve) if math.isfinite(value)]
    return entries


def _mean(splits: Mapping[int, float]) -> float | None:
    """Return the mean over the splits; over fewer splits than there are it would not be comparable."""
    finite = _finite(splits)
    return math.fsum(finite.values()) / len(finite) if finite and len(finite) == len(splits) else None


def _table(record: RunRecord) -> str:
    """Return all that was computed and measured, a row per metric: mean, standard deviation, and every split."""
    values = {**record.metrics, **record.measured}
    splits = sorted({split for row in values.values() for split in row})
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["metric", "mean", "std", *(f"split {split}" for split in splits)])
    for name, row in values.items():
        finite = list(_finite(row).values())
        # Repetitions of a method without a seed of its own are one cell: they have no spread.
        spread = statistics.stdev(finite) if len(finite) > 1 and len(set(record.cells)) > 1 else ""
        mean = _mean(row)
        writer.writerow([name, "" if mean is None else mean, spread, *(row.get(split, "") for split in splits)])
    return table.getvalue()


def _writer() -> str:
    """Return the tag that names who writes a run: host, process and time."""
    return f"{socket.gethostname()} {os.getpid()} {time.time():.0f}"


def _abandoned(writer: str) -> bool:
    """Return whether the writer (:func:`_writer`) of an unfinished run on a server is surely gone."""
    host, _, rest = writer.partition(" ")
    pid, _, began = rest.partition(" ")
    if not (pid.isdigit() and began.isdigit()) or time.time() - int(began) > _ABANDONED_SECONDS:
        return True
    # Publishers of one machine and user take turns, so an unfinished run of this machine has lost its writer.
    return host == socket.gethostname() and int(pid) != os.getpid() and not Path(f"/proc/{pid}").exists()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without an entry for its user
        return "unknown"


def _finite(values: Mapping[int, float]) -> dict[int, float]:
    return {int(split): float(value) for split, value in values.items() if math.isfinite(value)}
