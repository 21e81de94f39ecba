"""MLflow as a view of the result files: rebuilt at any time, one writer, never the record itself.

Experiment per study, parent run per method (average ranks), child run per dataset. Of every metric a child shows the
mean over the splits under the plain name, ``<metric>.std``, and the splits as steps of ``fold/<metric>``. Start and
duration are those of the computation. Publishing is idempotent: a run whose ``multilab.key`` is there already is kept.
A run of other settings stays, with the tag ``superseded`` set to ``true``; the others carry ``false``.
"""

import contextlib
import getpass
import itertools
import json
import math
import os
import re
import socket
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param
from mlflow.exceptions import MlflowException

from multilab.core import json_digest
from multilab.experiments.tracking_store import open_client, readable_errors, writer_lock
from multilab.experiments.tracking_uri import VIEW, VIEW_KEY, sqlite_path

__all__ = ["RunRecord", "Tracker"]

_ABANDONED_SECONDS = 3600.0
_DVC_EXPERIMENT = "dvc.experiment"


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
    source: tuple[str, str] = ("code", '{"tags": {"mlflow.source.name": "multilab"}}')
    curves: dict[str, list[float]] = field(default_factory=dict)
    started: float | None = None
    seconds: float = 0.0
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: Callable[[], dict[str, bytes]] = dict

    @property
    def key(self) -> str:
        """Identity of the run: its settings, its cells and the numbers it shows."""
        values = {name: sorted(_finite(splits).items()) for name, splits in self.metrics.items()}
        curves = {name: [str(value) for value in curve] for name, curve in self.curves.items()}
        content = [self.study, self.method, self.dataset, self.settings, self.cells, values, curves]
        return json_digest([VIEW, *content])

    @property
    def settings(self) -> str:
        """Digest of the settings: runs that differ in it are variants of each other."""
        return json_digest([{k: str(v) for k, v in self.params.items()}, self.tags.get("seed")])


_Published = dict[tuple[str, str], list[Any]]
"""The runs of an experiment that this module published, by method and dataset; a parent has no dataset."""


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
        self.uri = uri
        self.artifacts = None if uri.startswith("http") else Path(artifacts).resolve()

    def publish(
        self,
        experiment: str,
        records: Sequence[RunRecord],
        prune: bool = True,
        ranks: Mapping[str, Mapping[str, float]] | None = None,
    ) -> dict[str, int]:
        """Make the current runs of an experiment equal to ``records``.

        Parameters
        ----------
        experiment : str
        records : sequence of RunRecord
        prune : bool
            Whether runs that are not among ``records`` are superseded.
        ranks : mapping, optional
            Average ranks by method and metric; parents show them with two decimals.

        Returns
        -------
        dict
            Counts: ``created``, ``kept``, ``superseded``, ``deleted``.
        """
        with readable_errors(self.uri), writer_lock(self.uri):
            self._experiment = self._get_experiment(experiment)
            self._counts = {"created": 0, "kept": 0, "superseded": 0, "deleted": 0}
            existing = self._existing()
            by_method: dict[str, list[RunRecord]] = defaultdict(list)
            for record in records:
                by_method[record.method].append(record)
            for method, group in by_method.items():
                shown = {name: round(rank, 2) for name, rank in (ranks or {}).get(method, {}).items()}
                self._publish_method(group, existing, shown, stable=not prune)
            if prune:
                self._supersede_rest(existing)
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
            self._experiment = self._get_experiment(experiment)
            current = [run.data.tags for run in self._runs() if run.data.tags.get("superseded") == "false"]
            known = {tags.get("multilab.key") for tags in current}
        new = [
            replace(
                record,
                method=f"{record.method} {name}",
                title=f"{record.title} ({name})",
                tags={**record.tags, _DVC_EXPERIMENT: name},
            )
            for record in records
            if record.key not in known
        ]
        return self.publish(experiment, new, prune=False)

    def share_view(self, experiment: str, columns: Sequence[str], order_by: str) -> None:
        """Store which columns the runs table shows to those who open it by the link of ``runs_link``.

        Parameters
        ----------
        experiment : str
        columns : sequence of str
            ``Dataset``, and names of metrics.
        order_by : str
            Name of a metric; small values first.
        """
        state = {
            "searchFilter": "tags.superseded = 'false'",
            "orderByKey": f"metrics.`{order_by}`",
            "orderByAsc": True,
            "selectedColumns": [
                f"attributes.`{name}`" if name == "Dataset" else f"metrics.`{name}`" for name in columns
            ],
        }
        with readable_errors(self.uri):
            entry = self.client.get_experiment_by_name(experiment)
            tag, text = f"mlflow.sharedViewState.{VIEW_KEY}", json.dumps(state)
            if entry.tags.get(tag) != text:
                self.client.set_experiment_tag(entry.experiment_id, tag, text)

    def _get_experiment(self, name: str) -> str:
        entry = self.client.get_experiment_by_name(name)
        if entry is None:
            location = (self.artifacts / name).as_uri() if self.artifacts else None
            try:
                return self.client.create_experiment(name, artifact_location=location)
            except MlflowException:  # another machine created it a moment ago
                entry = self.client.get_experiment_by_name(name)
                if entry is None:
                    raise
        if entry.lifecycle_stage == "deleted":
            self.client.restore_experiment(entry.experiment_id)
        return entry.experiment_id

    def _runs(self) -> Iterator[Any]:
        token = None
        while True:
            page = self.client.search_runs([self._experiment], max_results=1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _existing(self) -> _Published:
        """Return the published runs by method and dataset; delete what killed publications left."""
        existing: _Published = defaultdict(list)
        for run in list(self._runs()):
            tags = run.data.tags
            method = tags.get("multilab.method")
            if method and run.info.status != "RUNNING":
                existing[method, tags.get("multilab.dataset", "")].append(run)
            elif method and (sqlite_path(self.uri) is not None or _abandoned(tags.get("multilab.writer", ""))):
                self._delete(run)
        return existing

    def _publish_method(
        self, group: list[RunRecord], existing: _Published, ranks: dict[str, float], stable: bool
    ) -> None:
        """Publish one parent and its children; a ``stable`` parent is kept whatever its children are."""
        method = group[0].method
        key = json_digest([VIEW, method, group[0].title, None if stable else [ranks, [r.key for r in group]]])
        parents = existing.pop((method, ""), [])
        parent = next((run for run in parents if run.data.tags.get("multilab.key") == key), None)
        parent_id = self._create_parent(group, key, ranks) if parent is None else parent.info.run_id
        for record in group:
            self._publish_child(parent_id, record, existing.pop((method, record.dataset), []))
        for run in (run for (other, _), runs in existing.items() if other == method for run in runs):
            self._set_parent(run, parent_id)
        if parent is None:
            self.client.set_terminated(parent_id, "FINISHED", end_time=_end(group))
        else:
            self._set_superseded(parent, False)
        for run in parents:
            if run.info.run_id != parent_id:
                self._delete(run)

    def _create_parent(self, group: list[RunRecord], key: str, ranks: dict[str, float]) -> str:
        starts = [record.started for record in group if record.started is not None]
        tags = {**group[0].tags, "multilab.method": group[0].method, "multilab.key": key}
        run_id = self._create(group[0].title, tags, min(starts) if starts else None)
        now = int(time.time() * 1000)
        entries = [Metric(f"rank/{name}", value, now, 0) for name, value in ranks.items() if math.isfinite(value)]
        self.client.log_batch(run_id, metrics=entries[:1000])
        return run_id

    def _create(self, name: str, tags: Mapping[str, str], started: float | None) -> str:
        own = {
            "mlflow.source.name": "multilab",
            "mlflow.user": _user(),
            "multilab.view": VIEW,
            "multilab.writer": f"{socket.gethostname()} {os.getpid()} {time.time():.0f}",
            "superseded": "false",
        }
        start = int(1000 * (time.time() if started is None else started))
        run = self.client.create_run(self._experiment, run_name=name, tags={**own, **tags}, start_time=start)
        return run.info.run_id

    def _publish_child(self, parent: str, record: RunRecord, known: list[Any]) -> None:
        """Publish one run; of the known runs of this method and dataset keep those of other settings."""
        same = [run for run in known if run.data.tags.get("multilab.key") == record.key]
        if same:
            self._set_parent(same[0], parent)
            self._set_superseded(same[0], False)
            self._counts["kept"] += 1
        else:
            self._create_child(parent, record)
        for run in known:
            if same and run is same[0]:
                continue
            settings = run.data.tags.get("multilab.settings")
            if run in same or settings in (None, record.settings) or run.data.tags.get("multilab.view") != VIEW:
                self._delete(run)
            else:
                self._set_parent(run, parent)
                self._set_superseded(run, True)

    def _create_child(self, parent: str, record: RunRecord) -> None:
        tags = {
            "mlflow.parentRunId": parent,
            "multilab.method": record.method,
            "multilab.dataset": record.dataset,
            **{name: str(value) for name, value in record.tags.items()},
            "multilab.key": record.key,
            "multilab.settings": record.settings,
            "multilab.cells": _short(" ".join(record.cells), 4000),
        }
        run_id = self._create(f"{record.title} on {record.dataset}", tags, record.started)
        params = [Param(_name(k), _short(v, 6000)) for k, v in record.params.items()]
        metrics = _metrics(record)
        while params or metrics:  # a request takes 100 parameters and 1000 entries
            self.client.log_batch(run_id, metrics=metrics[:900], params=params[:100])
            params, metrics = params[100:], metrics[900:]
        self._log_dataset(run_id, record)
        with TemporaryDirectory() as folder:
            for name, content in record.artifacts().items():
                path = Path(folder) / name
                path.write_bytes(content)
                self.client.log_artifact(run_id, str(path))
        self.client.set_terminated(run_id, "FINISHED", end_time=_end([record]))
        self._counts["created"] += 1

    def _log_dataset(self, run_id: str, record: RunRecord) -> None:
        digest = str(record.facts.get("digest", ""))[:36]
        profile = {k: record.facts.get(k) for k in ("instances", "features", "labels", "cardinality")}
        entry = Dataset(record.dataset, digest, *record.source, profile=json.dumps(profile))
        inputs = [DatasetInput(entry, [InputTag("mlflow.data.context", "evaluation")])]
        try:
            self.client.log_inputs(run_id, datasets=inputs)
        except MlflowException:  # a publisher on another machine entered the dataset a moment ago
            self.client.log_inputs(run_id, datasets=inputs)

    def _supersede_rest(self, existing: _Published) -> None:
        """Supersede what is no longer part of the study: variants may share its experiment."""
        for run in itertools.chain.from_iterable(existing.values()):
            if _DVC_EXPERIMENT in run.data.tags:  # of a temporary copy, which is not the study of this folder
                continue
            if run.data.tags.get("multilab.view") == VIEW:
                self._set_superseded(run, True)
            else:
                self._delete(run)

    def _drop_doubles(self) -> None:
        """Delete the second of two equal runs: publishers on two machines do not share a lock."""
        first: dict[tuple[str, ...], str] = {}
        finished = [run for run in self._runs() if run.info.status != "RUNNING"]
        for run in sorted(finished, key=lambda run: run.info.run_id):
            tags = run.data.tags
            identity = tuple(tags.get(f"multilab.{name}", "") for name in ("method", "dataset", "key"))
            if tags.get("multilab.key") and first.setdefault(identity, run.info.run_id) != run.info.run_id:
                self._delete(run)

    def _set_parent(self, run: Any, parent: str) -> None:
        if run.data.tags.get("mlflow.parentRunId") != parent:
            self.client.set_tag(run.info.run_id, "mlflow.parentRunId", parent)

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
    """Return the mean over the splits, the standard deviation, and each split as a step."""
    now = int(time.time() * 1000)
    entries = []
    for name, values in {**record.metrics, **record.measured}.items():
        finite = _finite(values)
        entries += [Metric(f"fold/{name}", value, now, split) for split, value in finite.items()]
        if not finite or len(finite) < len(values):  # a mean over fewer splits would not be comparable
            continue
        entries.append(Metric(name, math.fsum(finite.values()) / len(finite), now, 0))
        if len(finite) > 1 and len(set(record.cells)) > 1:
            entries.append(Metric(f"{name}.std", statistics.stdev(finite.values()), now, 0))
    for name, curve in record.curves.items():
        entries += [Metric(name, value, now, step) for step, value in enumerate(curve) if math.isfinite(value)]
    return entries


def _abandoned(writer: str) -> bool:
    """Return whether the writer (``host pid time``) of an unfinished run on a server is surely gone."""
    host, _, rest = writer.partition(" ")
    pid, _, began = rest.partition(" ")
    if not (pid.isdigit() and began.isdigit()) or time.time() - int(began) > _ABANDONED_SECONDS:
        return True
    # Publishers of one machine and user take turns, so an unfinished run of this machine has lost its writer.
    return host == socket.gethostname() and int(pid) != os.getpid() and not Path(f"/proc/{pid}").exists()


def _end(group: Sequence[RunRecord]) -> int:
    """Return the end of some runs in milliseconds: their first start plus the seconds of all."""
    starts = [record.started for record in group if record.started is not None]
    if not starts:
        return int(time.time() * 1000)
    return int(1000 * (min(starts) + sum(record.seconds for record in group)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without an entry for its user
        return "unknown"


def _finite(values: Mapping[int, float]) -> dict[int, float]:
    return {int(split): float(value) for split, value in values.items() if math.isfinite(value)}


def _name(text: str) -> str:
    """Return a parameter name that MLflow accepts."""
    return re.sub(r"[^\w\-. :/]", "_", text)[:250]


def _short(value: Any, limit: int) -> str:
    text = str(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
