"""The receipt of a publication: which MLflow store it went to.

Light on purpose: the ``keys`` stage asks on every ``dvc repro`` whether the store is still the same one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from multilab.experiments.settings import plain
from multilab.experiments.tracking_store import VIEW, VIEW_KEY, sqlite_path, without_password
from multilab.ground import conf_dir, write_atomically

__all__ = ["drop_stale_receipt", "runs_link", "store_stamp", "tracking", "write_receipt"]


def tracking(uri: str | None = None, artifacts: str | None = None) -> dict[str, str]:
    """Return where to publish.

    Parameters
    ----------
    uri, artifacts : str, optional
        What the command line gives; it precedes ``MLFLOW_TRACKING_URI``, which precedes
        ``conf/tracking/default.yaml``.
    """
    from omegaconf import OmegaConf

    setting = plain(OmegaConf.load(conf_dir() / "tracking" / "default.yaml"))
    return {
        "uri": uri or os.environ.get("MLFLOW_TRACKING_URI") or setting["uri"] or "sqlite:///mlflow.db",
        "artifacts": artifacts or setting["artifacts"],
    }


def store_stamp(uri: str) -> str | None:
    """Return what tells one MLflow store from another, ``None`` if it is not there.

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
    import requests

    address = f"{server}/api/2.0/mlflow/experiments/get-by-name"
    try:
        reply = requests.get(address, params={"experiment_name": experiment}, timeout=3)
        return reply.json()["experiment"]["experiment_id"] if reply.ok else None
    except (requests.RequestException, ValueError, KeyError):
        return None


def _beside(receipt: Path) -> Path:
    return receipt.with_name("published-to.json")


def write_receipt(receipt: Path, content: str, uri: str) -> None:
    """Write what was published (the same on every machine, tracked by DVC) and, next to it, the store it went to."""
    write_atomically(_beside(receipt), json.dumps(_destination(uri), indent=1) + "\n")
    write_atomically(receipt, content)


def drop_stale_receipt(receipt: Path) -> bool:
    """Remove a receipt whose store is another one now, or gone, or of an older view, so that DVC publishes again."""
    if not receipt.is_file():
        return False
    try:
        published_to = json.loads(_beside(receipt).read_text())
    except (OSError, ValueError):
        published_to = {}
    current = _destination(tracking()["uri"])
    if published_to == current and current["stamp"]:
        return False
    receipt.unlink()
    return True


def _destination(uri: str) -> dict[str, str | None]:
    return {"uri": without_password(uri), "stamp": store_stamp(uri), "view": VIEW}
