"""Access to an MLflow store: one probe, one creation of the database, one writer at a time."""

import contextlib
import hashlib
import logging
import os
import socket
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import requests
from filelock import FileLock, Timeout
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from multilab.core import write_atomically
from multilab.experiments.errors import TrackingError
from multilab.experiments.tracking_uri import sqlite_path, without_password

__all__ = ["open_client", "readable_errors", "writer_lock"]

PROBE_SECONDS = 3.0
LOCK_SECONDS = 600.0
_SCHEMA_LOCK = 6_817_302_544
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def open_client(uri: str) -> Any:
    """Return an ``MlflowClient`` of a store that answers; an SQLite database that is missing is created.

    Raises
    ------
    TrackingError
        If the store does not answer within three seconds, or cannot be opened.
    """
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
    try:
        engine = create_engine(uri, poolclass=NullPool)
    except ModuleNotFoundError as error:
        advice = 'begin the address with postgresql+psycopg2:// and pip install "multilab[postgres]"'
        raise TrackingError(f"MLflow store {without_password(uri)}: no module {error.name}; {advice}") from None
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _SCHEMA_LOCK})
        yield  # closing the connection releases the lock


@contextlib.contextmanager
def readable_errors(uri: str) -> Iterator[None]:
    """Turn what MLflow, SQLAlchemy and the operating system raise into one line that names the store."""
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
    database = sqlite_path(uri)
    if database is not None:
        path = database.with_name(f"{database.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        user = os.getuid() if hasattr(os, "getuid") else 0
        digest = hashlib.sha256(uri.encode()).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"multilab-mlflow-{user}-{digest}.lock"
    lock = FileLock(path)
    try:
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

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    if reasons:
        raise TrackingError(f"MLflow store {without_password(uri)} does not answer ({reasons[0]})")


def _cause(error: BaseException) -> str:
    """Return the innermost reason: ``requests`` wraps it three times."""
    text = str(error)
    for known in ("Connection refused", "Name or service not known", "Network is unreachable", "No route to host"):
        if known in text:
            return known
    return "no answer within 3 s" if "timed out" in text else " ".join(text.split())[:100]


def _make_database(path: Path) -> None:
    """Create the SQLite database in one step: MLflow cannot open one whose creation was interrupted."""
    if path.is_file() and path.stat().st_size:
        return

    with TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        MlflowClient(tracking_uri=f"sqlite:///{draft}").search_experiments(max_results=1)
        with contextlib.closing(sqlite3.connect(draft)) as database:
            content = database.serialize()
    write_atomically(path, content)
