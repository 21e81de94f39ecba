"""Splits stored in the data folder, outside the prepared dataset, which DVC compares."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from multilab.core.digests import json_digest
from multilab.core.files import read_json, write_atomically
from multilab.core.paths import data_dir
from multilab.core.versions import files_digest
from multilab.datasets.dataset import Dataset
from multilab.datasets.errors import DatasetError
from multilab.datasets.prepared import Prepared, prepare, prepared_meta
from multilab.model_selection.protocol import normalise_protocol
from multilab.model_selection.train_test_splits import Split, make_splits


def splits(name: str, protocol: Mapping[str, Any]) -> list[Split]:
    """Return the splits of a dataset by a protocol; they are computed once and stored.

    Parameters
    ----------
    name : str
        Dataset name.
    protocol : mapping
        See :func:`multilab.model_selection.protocol.normalise_protocol`.

    Raises
    ------
    DatasetError
        See :func:`multilab.model_selection.make_splits` and :func:`multilab.datasets.prepare`.

    Examples
    --------
    >>> from multilab.model_selection import splits
    >>> folds = splits("genes-toy", {"kfold": 3, "stratify": 1})
    >>> [(split.name, len(split.test)) for split in folds]
    [('fold0', 100), ('fold1', 100), ('fold2', 100)]
    """
    plan = normalise_protocol(protocol)
    prepared = prepare(name)
    folder = _folder(name, prepared.key)
    stored = _read(folder, plan)
    if stored is None:
        stored = _compute(prepared, protocol)
        with contextlib.suppress(OSError):  # a store that is shared read-only: computed again next time
            _write(folder, plan, stored)
    return stored


def split_digests(name: str, protocol: Mapping[str, Any]) -> list[str] | None:
    """Return the digests of the splits of a protocol, or None if they are not stored yet.

    Examples
    --------
    >>> from multilab.model_selection import split_digests, splits
    >>> folds = splits("genes-toy", {"kfold": 3})
    >>> split_digests("genes-toy", {"kfold": 3}) == [split.digest for split in folds]
    True
    """
    plan = normalise_protocol(protocol)
    meta = prepared_meta(name)
    record = None if meta is None else _record(_folder(name, meta["key"]), plan)
    return None if record is None else [entry["digest"] for entry in record["splits"]]


def _compute(prepared: Prepared, protocol: Mapping[str, Any]) -> list[Split]:
    dataset = prepared.dataset()
    try:
        if within := protocol.get("within"):
            return _inner_splits(prepared.name, dataset, protocol, within)
        return make_splits(dataset.Y, protocol, dataset.splits, dataset.groups)
    except DatasetError as error:
        raise DatasetError(f"{prepared.name}: {error.reason}") from None


def _inner_splits(name: str, dataset: Dataset, protocol: Mapping[str, Any], within: Mapping[str, Any]) -> list[Split]:
    """Return folds of the training rows of a split."""
    if within["split"] < 0:
        rows = np.arange(dataset.Y.shape[0])
    else:
        outer = splits(name, within["protocol"])
        rows = outer[within["split"] % len(outer)].train
    own = {key: value for key, value in protocol.items() if key != "within"}
    groups = None if dataset.groups is None else dataset.groups[rows]
    return [
        Split(rows[one.train], rows[one.test], one.name) for one in make_splits(dataset.Y[rows], own, groups=groups)
    ]


def _folder(name: str, key: str) -> Path:
    return data_dir() / "splits" / f"{name}-{key[:16]}"


def _files(folder: Path, plan: dict[str, Any]) -> tuple[Path, Path]:
    # any edit computes the splits again: if their rows are the same, so are the keys of results
    stem = f"splits-{json_digest({'protocol': plan, 'files': files_digest('core', 'model_selection')})[:16]}"
    return folder / f"{stem}.json", folder / f"{stem}.npz"


def _record(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    text, arrays = _files(folder, plan)
    try:
        record = read_json(text)
        valid = record["protocol"] == plan and all(e["digest"] and e["name"] for e in record["splits"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if valid and record["splits"] and arrays.is_file() else None


def _read(folder: Path, plan: dict[str, Any]) -> list[Split] | None:
    """Return the stored splits if their row indices have the recorded digests, else None."""
    record = _record(folder, plan)
    if record is None:
        return None
    try:
        with np.load(_files(folder, plan)[1], allow_pickle=False) as arrays:
            stored = [
                Split(arrays[f"{i}/train"], arrays[f"{i}/test"], entry["name"])
                for i, entry in enumerate(record["splits"])
            ]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    unchanged = [split.digest for split in stored] == [entry["digest"] for entry in record["splits"]]
    return stored if unchanged else None


def _write(folder: Path, plan: dict[str, Any], computed: list[Split]) -> None:
    arrays = {f"{i}/{key}": getattr(s, key) for i, s in enumerate(computed) for key in ("train", "test")}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    text, binary = _files(folder, plan)
    record = {
        "protocol": plan,
        "splits": [{"name": s.name, "digest": s.digest, "train": len(s.train), "test": len(s.test)} for s in computed],
    }
    write_atomically(binary, buffer.getvalue())
    write_atomically(text, json.dumps(record, indent=1, sort_keys=True))
