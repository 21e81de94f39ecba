"""The receipt of a publication: which MLflow store it went to.

Light on purpose: the ``keys`` stage asks on every ``dvc repro`` whether the store is still the same one.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from multilab.experiments.settings import plain
from multilab.ground import conf_dir, write_atomically

__all__ = ["drop_stale_receipt", "store_stamp", "tracking", "write_receipt"]


def tracking() -> dict[str, str]:
    """Return where to publish: ``MLFLOW_TRACKING_URI`` if set, else ``conf/tracking/default.yaml``."""
    from omegaconf import OmegaConf

    setting = plain(OmegaConf.load(conf_dir() / "tracking" / "default.yaml"))
    return {**setting, "uri": os.environ.get("MLFLOW_TRACKING_URI") or setting["uri"]}


def store_stamp(uri: str) -> str | None:
    """Return what tells one MLflow store from another, ``None`` if it is not there.

    For SQLite the creation time of the default experiment is read from the file; of other stores only the address is
    known without a connection.
    """
    if not uri.startswith("sqlite:///"):
        return uri
    path = Path(uri.removeprefix("sqlite:///"))
    if not path.is_file():
        return None
    try:
        with sqlite3.connect(f"file:{path.resolve()}?mode=ro", uri=True) as database:
            rows = database.execute("SELECT MIN(creation_time) FROM experiments").fetchone()
    except sqlite3.Error:
        return None
    return f"{path.resolve()}#{rows[0]}" if rows and rows[0] is not None else None


def _beside(receipt: Path) -> Path:
    return receipt.with_name("published-to.json")


def write_receipt(receipt: Path, content: str, uri: str) -> None:
    """Write what was published (the same on every machine, tracked by DVC) and, beside it, the store it went to."""
    write_atomically(_beside(receipt), json.dumps({"uri": uri, "stamp": store_stamp(uri)}, indent=1) + "\n")
    write_atomically(receipt, content)


def drop_stale_receipt(receipt: Path) -> bool:
    """Remove a receipt whose store is another one now, or gone, so that DVC publishes again."""
    if not receipt.is_file():
        return False
    uri = tracking()["uri"]
    try:
        said = json.loads(_beside(receipt).read_text())
    except (OSError, ValueError):
        said = {}
    if said.get("uri") == uri and said.get("stamp") == store_stamp(uri) and said.get("stamp"):
        return False
    receipt.unlink()
    return True
