"""The MLflow store: its address, its locks, its client, and whether results were published to it.

Light on purpose: the ``keys`` stage checks on every ``dvc repro`` whether the store is still the same one, and MLflow
takes two seconds to import.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import socket
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from multilab.cells.conf import read_settings
from multilab.cells.errors import TrackingError
from multilab.core import experiment_dir, home_dir, read_json, write_atomically
from multilab.core.digests import sha256_digest
from multilab.core.messages import pip_install
from multilab.core.shell import command
from multilab.core.text import excerpt

__all__ = [
    "VIEW",
    "experiment_id",
    "is_destination",
    "log_dataset",
    "log_values",
    "open_client",
    "readable_errors",
    "record_destination",
    "runs_address",
    "runs_link",
    "runs_text",
    "share_view",
    "sqlite_path",
    "store_stamp",
    "tracking",
    "without_password",
    "writer_lock",
]

VIEW = "4"
"""Version of what a run shows; runs of an older version are superseded."""

VIEW_KEY = "multilab"
"""Name of the shared view of an experiment's runs table."""


def sqlite_path(uri: str) -> Path | None:
    """Return the database file of a ``sqlite:///`` address, ``None`` for any other store."""
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def without_password(uri: str) -> str:
    """Return an address without user name and password."""
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if "@" in parts.netloc else uri


def tracking(uri: str | None = None, artifacts: str | None = None) -> dict[str, str]:
    """Return the MLflow store to publish to.

    Parameters
    ----------
    uri, artifacts : str, optional
        What the command line gives; it precedes ``MLFLOW_TRACKING_URI``, which precedes
        ``conf/tracking/default.yaml``.

    Notes
    -----
    In the temporary copy of a DVC experiment a relative address starts from the copied repository, see
    :func:`multilab.core.home_dir`.
    """
    setting = read_settings("tracking", "default")
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or setting["uri"] or "sqlite:///mlflow.db"
    artifacts = artifacts or setting["artifacts"]
    database = sqlite_path(uri)
    if experiment_dir() is not None:  # relative paths start from the repository that DVC copied
        uri = uri if database is None else f"sqlite:///{home_dir() / database}"
        artifacts = str(home_dir() / artifacts)
    return {"uri": uri, "artifacts": artifacts}


def store_stamp(uri: str) -> str | None:
    """Return a stamp that distinguishes MLflow stores, ``None`` if there is no store.

    For SQLite the creation time of the default experiment is read from the file; of other stores only the address is
    known without a connection.
    """
    path = sqlite_path(uri)
    if path is None:
        return without_password(uri)
    created = _query(path, "SELECT MIN(creation_time) FROM experiments")
    return None if created is None else f"{path.resolve()}#{created}"


def runs_link(uri: str, experiment: str, server: str = "http://127.0.0.1:5000") -> str | None:
    """Return the address of an experiment's runs table in the MLflow UI, with the columns of its shared view ticked.

    MLflow 3 opens an experiment on its traces; this address opens the runs. Columns cannot be part of it, only the name
    of a shared view, which :func:`share_view` stores with the experiment.

    Parameters
    ----------
    uri : str
        MLflow tracking URI.
    experiment : str
        Name of the experiment.
    server : str
        Address of the UI of a local store; a tracking server has its own.

    Returns
    -------
    str or None
        ``None`` if the store has no such experiment, or does not answer within three seconds.
    """
    path = sqlite_path(uri)
    number: Any = None
    if path is not None:
        number = _query(path, "SELECT experiment_id FROM experiments WHERE name = ?", experiment)
    elif uri.startswith("http"):
        server = uri.rstrip("/")
        number = _experiment_of_server(server, experiment)
    if number is None:
        return None
    return runs_address(number, without_password(server))


def runs_text(uri: str, experiment: str) -> str:
    """Return the address of an experiment's runs and, of a local store on a second line, the command that serves it."""
    if uri.startswith("http"):
        return runs_link(uri, experiment) or without_password(uri)
    link = runs_link(uri, experiment) or "http://127.0.0.1:5000, Training runs"
    return f"{link}\n         served by: {_ui_command(uri)}"


def _ui_command(uri: str) -> str:
    """Return the command that serves a store in the MLflow UI, for a new shell."""
    if uri == tracking()["uri"] and Path("Makefile").is_file() and Path("dvc.yaml").is_file():
        return "make ui"
    store = shlex.quote(uri) if without_password(uri) == uri else '"$MLFLOW_TRACKING_URI"'
    options = f"ui --backend-store-uri {store} --workers 1"
    return f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command('mlflow')} {options}"


def runs_address(number: str, server: str) -> str:
    """Return the address of the runs table of an experiment by its number."""
    return f"{server}/#/experiments/{number}/runs?workflowType=machine_learning&viewStateShareKey={VIEW_KEY}"


def _query(path: Path, statement: str, *values: str) -> Any:
    """Return the one value of an SQL query on a database that is only read, ``None`` if there is none."""
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path.resolve()}?mode=ro", uri=True)) as database:
            row = database.execute(statement, values).fetchone()
    except sqlite3.Error:  # a file that is no MLflow database counts as no store
        return None
    return row[0] if row else None


def _experiment_of_server(server: str, experiment: str) -> str | None:
    import requests  # takes a tenth of a second, and most stores are files

    address = f"{server}/api/2.0/mlflow/experiments/get-by-name"
    try:
        reply = requests.get(address, params={"experiment_name": experiment}, timeout=3)
        return reply.json()["experiment"]["experiment_id"] if reply.ok else None
    except (requests.RequestException, ValueError, KeyError):
        return None


def record_destination(path: Path, uri: str) -> None:
    """Write which MLflow store results were published to."""
    write_atomically(path, json.dumps(_destination(uri), indent=1) + "\n")


def is_destination(path: Path) -> bool:
    """Return whether the configured MLflow store exists and is the store that a file names, with the current view."""
    try:
        recorded = read_json(path)
    except (OSError, ValueError):  # without a readable record the results are published again
        return False
    current = _destination(tracking()["uri"])
    return recorded == current and current["stamp"] is not None


def _destination(uri: str) -> dict[str, str | None]:
    return {"uri": without_password(uri), "stamp": store_stamp(uri), "view": VIEW}


# Access

PROBE_SECONDS = 3.0  # a server that does not answer by then must not delay the command
LOCK_SECONDS = 600.0  # longer than a publication takes, so that a lock held longer is an error
_SCHEMA_LOCK = 6_817_302_544  # an arbitrary number, the same in all processes
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def open_client(uri: str) -> Any:
    """Return an ``MlflowClient`` of a store that answers; an SQLite database that is missing is created.

    Raises
    ------
    TrackingError
        If the store does not answer within three seconds, or cannot be opened.
    """
    from mlflow import MlflowClient

    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # the default of 7 takes minutes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.pop("MLFLOW_RUN_ID", None)  # MLflow would write every run into this one
    _probe(uri)
    with readable_errors(uri):
        for name in ("alembic", "mlflow", "mlflow.store.db.utils"):
            logging.getLogger(name).setLevel(logging.WARNING)
        database = sqlite_path(uri)
        if database is None:
            with _schema_lock(uri):
                client = MlflowClient(tracking_uri=uri)
                client.search_experiments(max_results=1)
            return client
        with writer_lock(uri):
            _make_database(database)
            client = MlflowClient(tracking_uri=uri)
            client.search_experiments(max_results=1)  # migrates the database if it is older than this MLflow
        return client


@contextlib.contextmanager
def _schema_lock(uri: str) -> Iterator[None]:
    """Hold the lock of a PostgreSQL database while MLflow creates its tables: two that do so at once both fail."""
    if not urlsplit(uri).scheme.startswith("postgresql"):
        yield
        return
    from sqlalchemy import create_engine, text
    from sqlalchemy.pool import NullPool

    try:
        engine = create_engine(uri, poolclass=NullPool)
    except ModuleNotFoundError as error:
        advice = f"begin the address with postgresql+psycopg2:// and {pip_install('psycopg2-binary')}"
        raise TrackingError(f"MLflow store {without_password(uri)}: no module {error.name}; {advice}") from None
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _SCHEMA_LOCK})
        yield  # closing the connection releases the lock


@contextlib.contextmanager
def readable_errors(uri: str) -> Iterator[None]:
    """Convert errors of MLflow, SQLAlchemy and the operating system to one line that names the store."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except TrackingError:
        raise
    except Exception as error:
        if not isinstance(error, MlflowException | SQLAlchemyError | OSError | sqlite3.Error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise TrackingError(f"MLflow store {without_password(uri)}: {reason}") from error


@contextlib.contextmanager
def writer_lock(uri: str) -> Iterator[None]:
    """Hold the store's lock: next to an SQLite database, for other stores one per machine and address.

    Raises
    ------
    TrackingError
        If another process holds the lock for ten minutes.
    """
    from filelock import FileLock, Timeout

    database = sqlite_path(uri)
    if database is not None:
        path = database.with_name(f"{database.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        user = os.getuid() if hasattr(os, "getuid") else 0
        digest = sha256_digest(uri.encode())[:16]
        path = Path(tempfile.gettempdir()) / f"multilab-mlflow-{user}-{digest}.lock"
    lock = FileLock(path)
    try:
        # first without waiting, so that a message appears only if there is a wait
        lock.acquire(timeout=0)
    except Timeout:
        print("another publication is running; waiting for it", file=sys.stderr, flush=True)
        try:
            lock.acquire(timeout=LOCK_SECONDS)
        except Timeout:
            raise TrackingError(f"{path}: another process has held the lock for ten minutes; try again later") from None
    try:
        yield
    finally:
        lock.release()


def _probe(uri: str) -> None:
    """Ask a store on the network for one answer; three seconds, name resolution included."""
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    if scheme not in _PORTS or not parts.hostname:
        return
    import requests

    reasons: list[str] = ["no answer within 3 s"]

    def ask() -> None:
        try:
            if scheme in ("http", "https"):
                requests.get(f"{uri.rstrip('/')}/health", timeout=PROBE_SECONDS, stream=True).close()
            else:
                address = (parts.hostname, parts.port or _PORTS[scheme])
                socket.create_connection(address, timeout=PROBE_SECONDS).close()
            reasons.clear()
        except OSError as error:  # the errors of requests are OSErrors too
            reasons[0] = _cause(error)

    # a thread, because the timeouts of sockets do not cover the resolution of names
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    if reasons:
        raise TrackingError(f"MLflow store {without_password(uri)} does not answer ({reasons[0]})")


def _cause(error: BaseException) -> str:
    """Return the innermost reason: ``requests`` wraps it three times."""
    text = str(error)
    for reason in ("Connection refused", "Name or service not known", "Network is unreachable", "No route to host"):
        if reason in text:
            return reason
    return "no answer within 3 s" if "timed out" in text else " ".join(text.split())[:100]


def _make_database(path: Path) -> None:
    """Create the SQLite database in one step: MLflow cannot open one whose creation was interrupted."""
    if path.is_file() and path.stat().st_size:
        return

    from mlflow import MlflowClient

    with TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        MlflowClient(tracking_uri=f"sqlite:///{draft}").search_experiments(max_results=1)
        with contextlib.closing(sqlite3.connect(draft)) as database:
            content = database.serialize()
    write_atomically(path, content)


# What runs of studies and of models write alike


def experiment_id(client: Any, name: str, where: Mapping[str, str]) -> str:
    """Return the number of an experiment; create or restore it if necessary."""
    from mlflow.exceptions import MlflowException

    entry = client.get_experiment_by_name(name)
    if entry is None:
        remote = where["uri"].startswith("http")  # a server has a folder of its own for artifacts
        location = None if remote else (Path(where["artifacts"]).resolve() / name).as_uri()
        try:
            return client.create_experiment(name, artifact_location=location)
        except MlflowException:  # another machine created it a moment ago
            entry = client.get_experiment_by_name(name)
            if entry is None:
                raise
    if entry.lifecycle_stage == "deleted":
        client.restore_experiment(entry.experiment_id)
    return entry.experiment_id


def log_values(client: Any, run_id: str, params: Mapping[str, Any], metrics: Sequence[Any]) -> None:
    """Log parameters and metrics of a run, in one request unless there are too many for MLflow."""
    from mlflow.entities import Param

    names = {re.sub(r"[^\w\-. :/]", "_", str(name))[:250]: excerpt(str(value), 6000) for name, value in params.items()}
    entries = [Param(name, value) for name, value in names.items()]
    while entries or metrics:  # MLflow accepts at most 1000 metrics and 100 parameters in a request
        client.log_batch(run_id, metrics=metrics[:900], params=entries[:100])
        entries, metrics = entries[100:], metrics[900:]


def log_dataset(
    client: Any, run_id: str, name: str, facts: Mapping[str, Any], source: tuple[str, str], models: Sequence[Any] = ()
) -> Any:
    """Log a data set as input of a run, and return MLflow's entity of it.

    Parameters
    ----------
    client : MlflowClient
    run_id : str
    name : str
    facts : mapping
        Its ``digest``, ``instances``, ``features``, ``labels`` and ``cardinality``.
    source : tuple of str
        Type and JSON of its source, in MLflow's terms.
    models : sequence of LoggedModelInput
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    profile = {key: facts.get(key) for key in ("instances", "features", "labels", "cardinality")}
    entry = Dataset(name, str(facts.get("digest", ""))[:36], *source, profile=json.dumps(profile))
    inputs = [DatasetInput(entry, [InputTag("mlflow.data.context", "evaluation")])]
    more = {"models": list(models)} if models else {}
    try:
        client.log_inputs(run_id, datasets=inputs, **more)
    except MlflowException:  # a publisher on another machine entered the dataset a moment ago
        client.log_inputs(run_id, datasets=inputs, **more)
    return entry


def share_view(
    client: Any, experiment: str, metrics: Sequence[str], order_by: str | None = None, search: str = ""
) -> None:
    """Store which columns the runs table shows to those who open it by the link of :func:`runs_link`.

    Parameters
    ----------
    client : MlflowClient
    experiment : str
        Number of the experiment.
    metrics : sequence of str
        Shown next to the data set.
    order_by : str, optional
        Name of a metric, small values first; default is the newest run first.
    search : str, optional
        Which runs are shown.
    """
    columns = [f"metrics.`{name}`" for name in metrics]
    # A window of 1400 pixels leaves 770 for the table: method, data set and the first four numbers fit.
    widths = {"attributes.`Run Name`": 150, "runDateAndNestInfo": 105, "attributes.`Dataset`": 110}
    numbers = {name: 60 if name == "metrics.`rank`" else 75 if name in _NARROW else 105 for name in columns}
    state: dict[str, Any] = {
        "searchFilter": search,
        "selectedColumns": ["attributes.`Dataset`", *columns],
        "columnOrder": [*widths, *columns, "duration"],
        "columnWidths": {**widths, **numbers},
    }
    if order_by:
        state |= {"orderByKey": f"metrics.`{order_by}`", "orderByAsc": True}
    tag, text = f"mlflow.sharedViewState.{VIEW_KEY}", json.dumps(state)
    if client.get_experiment(experiment).tags.get(tag) != text:
        client.set_experiment_tag(experiment, tag, text)


_NARROW = ("metrics.`seconds`", "metrics.`peak_mb`")
