"""Where results are published: the address of the MLflow store.

Light on purpose: the ``keys`` stage checks on every ``dvc repro`` whether the store is still the same one.
"""

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from multilab.core import experiment_dir, home_dir, read_json, write_atomically
from multilab.experiments.conf import read_settings

__all__ = [
    "VIEW",
    "VIEW_KEY",
    "is_destination",
    "record_destination",
    "runs_link",
    "sqlite_path",
    "store_stamp",
    "tracking",
    "without_password",
]

VIEW = "2"
"""Version of what a run shows; runs of an older version are replaced."""

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
    """Return where to publish.

    Parameters
    ----------
    uri, artifacts : str, optional
        What the command line gives; it precedes ``MLFLOW_TRACKING_URI``, which precedes
        ``conf/tracking/default.yaml``.

    Notes
    -----
    In the temporary copy of a DVC experiment a relative address is that of the repository it is a copy of, see
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
    """Return what distinguishes one MLflow store from another, ``None`` if there is no store.

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
    of a shared view, which :meth:`multilab.experiments.tracking.Tracker.share_view` stores with the experiment.

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
    query = f"workflowType=machine_learning&viewStateShareKey={VIEW_KEY}"
    return f"{without_password(server)}/#/experiments/{number}/runs?{query}"


def _query(path: Path, statement: str, *values: str) -> Any:
    """Return the one value of an SQL query on a database that is only read, ``None`` if there is none."""
    if not path.is_file():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path.resolve()}?mode=ro", uri=True)) as database:
            row = database.execute(statement, values).fetchone()
    except sqlite3.Error:
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
    """Return whether the configured MLflow store is there, and is the one that a file names, with the current view."""
    try:
        recorded = read_json(path)
    except (OSError, ValueError):
        return False
    current = _destination(tracking()["uri"])
    return recorded == current and current["stamp"] is not None


def _destination(uri: str) -> dict[str, str | None]:
    return {"uri": without_password(uri), "stamp": store_stamp(uri), "view": VIEW}
