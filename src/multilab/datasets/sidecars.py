"""Splits that are drawn once and kept beside the prepared data set.

Importing this module, and :func:`split_digests`, need neither NumPy nor SciPy.
"""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab.datasets.errors import DatasetError
from multilab.datasets.prepared import load, prepare, prepared_folder
from multilab.datasets.protocol import normalise_protocol
from multilab.ground.digests import code_digest, json_digest
from multilab.ground.files import write_atomically

if TYPE_CHECKING:
    from multilab.datasets.folds import Split

__all__ = ["split_digests", "splits"]


def splits(name: str, protocol: Mapping[str, Any]) -> list[Split]:
    """Return the splits of a data set by a protocol, drawn once and then read.

    Parameters
    ----------
    name : str
        Dataset name.
    protocol : mapping
        See :func:`multilab.datasets.protocol.normalise_protocol`.

    Raises
    ------
    DatasetError
        See :func:`multilab.datasets.folds.make_splits` and :func:`multilab.datasets.prepare`.
    """
    plan = normalise_protocol(protocol)
    folder = prepare(name).path
    kept = _read(folder, plan)
    if kept is None:
        kept = _draw(name, protocol)
        with contextlib.suppress(OSError):  # a store that is shared read-only: drawn again next time
            _write(folder, plan, kept)
    return kept


def split_digests(name: str, protocol: Mapping[str, Any]) -> list[str] | None:
    """Return the digests of the splits of a protocol, or None when they have not been drawn yet.

    Reads text only, so that the keys of cells can be computed in milliseconds.
    """
    plan = normalise_protocol(protocol)
    folder = prepared_folder(name)
    record = None if folder is None else _record(folder, plan)
    return None if record is None else [entry["digest"] for entry in record["splits"]]


def _draw(name: str, protocol: Mapping[str, Any]) -> list[Split]:
    from multilab.datasets.folds import make_splits

    dataset = load(name)
    try:
        return make_splits(dataset.Y, protocol, dataset.splits)
    except DatasetError as error:
        raise DatasetError(f"{name}: {error.reason}") from None


def _files(folder: Path, plan: dict[str, Any]) -> tuple[Path, Path]:
    code = code_digest("multilab.datasets.folds", within="multilab.datasets")
    stem = f"splits-{json_digest({'protocol': plan, 'code': code})[:16]}"
    return folder / f"{stem}.json", folder / f"{stem}.npz"


def _record(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    text, arrays = _files(folder, plan)
    try:
        record = json.loads(text.read_text("utf-8"))
        whole = record["protocol"] == plan and all(e["digest"] and e["name"] for e in record["splits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if whole and record["splits"] and arrays.is_file() else None


def _read(folder: Path, plan: dict[str, Any]) -> list[Split] | None:
    """Return the kept splits when their row numbers have the recorded digests, else None."""
    import numpy as np

    from multilab.datasets.folds import Split

    record = _record(folder, plan)
    if record is None:
        return None
    try:
        with np.load(_files(folder, plan)[1], allow_pickle=False) as arrays:
            kept = [
                Split(arrays[f"{i}/train"], arrays[f"{i}/test"], entry["name"])
                for i, entry in enumerate(record["splits"])
            ]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    right = [split.digest for split in kept] == [entry["digest"] for entry in record["splits"]]
    return kept if right else None


def _write(folder: Path, plan: dict[str, Any], drawn: list[Split]) -> None:
    import numpy as np

    arrays = {f"{i}/{part}": getattr(s, part) for i, s in enumerate(drawn) for part in ("train", "test")}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    text, binary = _files(folder, plan)
    record = {
        "protocol": plan,
        "splits": [{"name": s.name, "digest": s.digest, "train": len(s.train), "test": len(s.test)} for s in drawn],
    }
    write_atomically(binary, buffer.getvalue())
    write_atomically(text, json.dumps(record, indent=1, sort_keys=True))
