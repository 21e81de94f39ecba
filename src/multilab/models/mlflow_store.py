"""The MLflow store: its address, its client, and what runs of studies and of models write alike.

MLflow is used through its public API only: its tables, and what its user interface stores, are its own.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from multilab.cells.conf import read_settings
from multilab.cells.errors import TrackingError
from multilab.core import experiment_dir, home_dir
from multilab.core.messages import pip_install
from multilab.core.shell import command
from multilab.core.text import excerpt

__all__ = [
    "experiment_id",
    "log_dataset",
    "log_values",
    "open_client",
    "readable_errors",
    "runs_address",
    "sqlite_path",
    "tracking",
    "ui_text",
    "without_password",
    "writer_lock",
]

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run or an experiment."""

PROBE_SECONDS = 3.0  # a server that does not answer by then must not delay the command
CREATION_SECONDS = 30.0  # longer than MLflow needs to create its tables on a busy machine
LOCK_SECONDS = 600.0  # longer than anything that holds the lock, so that a lock held longer is an error
_CREATING = re.compile("already exists|alembic|out-of-date database schema")  # in errors while another one creates them
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


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
        Values of the command line. They take precedence over ``MLFLOW_TRACKING_URI``, which takes precedence over
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


def runs_address(number: str, server: str = "http://127.0.0.1:5000") -> str:
    """Return the address of the runs of an experiment in the MLflow UI, which else opens it on its traces."""
    return f"{without_password(server).rstrip('/')}/#/experiments/{number}/runs?workflowType=machine_learning"


def ui_text(uri: str, number: str) -> str:
    """Return where the runs of the experiment with a number are seen, and how a file is served."""
    if uri.startswith("http"):
        return runs_address(number, uri)
    served = "make ui"
    if uri != tracking()["uri"] or not (Path("Makefile").is_file() and Path("dvc.yaml").is_file()):
        store = shlex.quote(uri) if without_password(uri) == uri else '"$MLFLOW_TRACKING_URI"'
        options = f"ui --backend-store-uri {store} --workers 1"
        served = f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command('mlflow')} {options}"
    return f"{runs_address(number)}\n         served by: {served}"


def open_client(uri: str) -> Any:
    """Return an ``MlflowClient`` of a store that answers; the tables of an empty database are created.

    Raises
    ------
    TrackingError
        If the store does not answer within three seconds, or cannot be opened.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # the default of 7 takes minutes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.pop("MLFLOW_RUN_ID", None)  # MLflow would write every run into this one
    for name in ("alembic", "mlflow", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    _probe(uri)
    with readable_errors(uri), writer_lock(uri):
        database = sqlite_path(uri)
        if database is not None and not (database.is_file() and database.stat().st_size):
            # In one step: MLflow cannot open a database whose creation was interrupted. Under a new name each time:
            # MLflow keeps the stores that a process has opened by their addresses.
            with TemporaryDirectory(prefix=f"{database.name}-", dir=database.resolve().parent) as folder:
                draft = Path(folder) / database.name
                _opened(f"sqlite:///{draft}")
                os.replace(draft, database)
        return _opened(uri)


def _opened(uri: str) -> Any:
    """Return a client of a store that has answered a question; MLflow creates the tables of a database, or migrates."""
    from mlflow import MlflowClient

    give_up = time.monotonic() + CREATION_SECONDS
    while True:
        try:
            client = MlflowClient(tracking_uri=uri)
            client.search_experiments(max_results=1)
            return client
        except Exception as error:  # of two machines that create the tables at once one fails
            locked = sqlite_path(uri) is not None
            if locked or not _CREATING.search(str(error)) or time.monotonic() > give_up:
                raise
            time.sleep(1.0)


@contextlib.contextmanager
def readable_errors(uri: str) -> Iterator[None]:
    """Convert errors of MLflow, SQLAlchemy and the operating system to one line that names the store."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        if getattr(error, "error_code", None) in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            reason = "it rejects the user; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        raise TrackingError(f"MLflow store {without_password(uri)}: {reason}") from error
    except ModuleNotFoundError as error:
        if not uri.startswith("postgresql"):
            raise
        advice = f"begin the address with postgresql+psycopg2:// and {pip_install('psycopg2-binary')}"
        raise TrackingError(f"MLflow store {without_password(uri)}: no module {error.name}; {advice}") from None


def writer_lock(uri: str) -> contextlib.AbstractContextManager[Any]:
    """Return the lock next to an SQLite database: two processes that create or migrate one at once both fail.

    Other stores have locks of their own.
    """
    from filelock import FileLock

    database = sqlite_path(uri)
    if database is None:
        return contextlib.nullcontext()
    database.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{database}.lock", timeout=LOCK_SECONDS)


def _probe(uri: str) -> None:
    """Ask a store on the network for one answer: the clients of MLflow and of databases ask again for minutes."""
    parts = urlsplit(uri)
    scheme = parts.scheme.partition("+")[0]
    if scheme not in _PORTS or not parts.hostname:
        return
    import requests

    try:
        if scheme in ("http", "https"):
            requests.get(f"{uri.rstrip('/')}/health", timeout=PROBE_SECONDS, stream=True).close()
        else:
            socket.create_connection((parts.hostname, parts.port or _PORTS[scheme]), PROBE_SECONDS).close()
    except OSError as error:  # the errors of requests are OSErrors too
        raise TrackingError(f"MLflow store {without_password(uri)} does not answer ({type(error).__name__})") from error


# What runs of studies and of models write alike


def experiment_id(client: Any, name: str, where: Mapping[str, str], note: str) -> str:
    """Return the number of an experiment; create or restore it if necessary. A description that is there stays."""
    from mlflow.exceptions import MlflowException

    entry = client.get_experiment_by_name(name)
    if entry is None:
        remote = where["uri"].startswith("http")  # a server has a folder of its own for artifacts
        location = None if remote else (Path(where["artifacts"]).resolve() / name).as_uri()
        try:
            return client.create_experiment(name, artifact_location=location, tags={NOTE: note})
        except MlflowException:  # another process created it a moment ago
            entry = client.get_experiment_by_name(name)
            if entry is None:
                raise
    if entry.lifecycle_stage == "deleted":
        client.restore_experiment(entry.experiment_id)
    if NOTE not in entry.tags:
        client.set_experiment_tag(entry.experiment_id, NOTE, note)
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
    """Log a dataset as input of a run, and return MLflow's entity of it.

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
    except MlflowException:  # another publisher entered the dataset a moment ago
        client.log_inputs(run_id, datasets=inputs, **more)
    return entry
