"""Serialisation of a dataset to the bytes of a few files, and atomic writes of a folder."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import scratch_folder, write_flushed
from multilab.datasets.dataset import Dataset
from multilab.datasets.frames import codes_of, text_names, with_columns
from multilab.datasets.kinds import Kind

_ATTEMPTS = 20  # several processes may replace the same folder at the same time


def to_bytes(dataset: Dataset) -> dict[str, bytes]:
    """Return the files of a store, by name: ``X.npy`` or ``X.npz`` (CSR), so for ``Y``, ``named_splits.npz``.

    Of a table ``texts.json`` has the texts of its columns; ``groups.npy`` has the groups of the rows, if they have any.
    """
    content = {}
    X: Any = dataset.X if dataset.kinds is None else np.ascontiguousarray(codes_of(dataset.X))
    for name, matrix in (("X", X), ("Y", dataset.Y)):
        if sp.issparse(matrix):
            shape = np.array(matrix.shape, dtype=np.int64)
            arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
            content[f"{name}.npz"] = _saved(np.savez, **arrays, shape=shape)
        else:
            content[f"{name}.npy"] = _saved(np.save, matrix)
    indices = {f"{name}/train": train for name, (train, _) in dataset.splits.items()}
    indices |= {f"{name}/test": test for name, (_, test) in dataset.splits.items()}
    content["named_splits.npz"] = _saved(np.savez, **indices)
    if dataset.groups is not None:
        content["groups.npy"] = _saved(np.save, dataset.groups)
    if dataset.kinds is not None:
        known = {name: list(dataset.X[name].cat.categories) for name in text_names(dataset.X)}
        texts = [known.get(name) for name in dataset.X.columns]
        content["texts.json"] = json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return content


def from_bytes(name: str, meta: Mapping[str, Any], content: Mapping[str, bytes]) -> Dataset:
    """Return the dataset of a store: the inverse of :func:`to_bytes`, with names and digest from ``meta``."""
    named = _loaded(content["named_splits.npz"])
    X = _matrix(content, "X")
    is_table = "texts.json" in content
    dataset = Dataset(
        name=name,
        X=_table(X, meta["feature_names"], content["texts.json"]) if is_table else X,
        Y=_matrix(content, "Y"),
        feature_names=meta["feature_names"],
        label_names=meta["label_names"],
        splits={split: (named[f"{split}/train"], named[f"{split}/test"]) for split in meta["splits"]},
        features=meta["features"],
        kinds={name: Kind.parse(meta["kinds"][name]) for name in meta["feature_names"]} if is_table else None,
        groups=_loaded(content["groups.npy"]) if "groups.npy" in content else None,
    )
    vars(dataset)["digest"] = meta["digest"]  # it need not be computed again
    return dataset


def _table(codes: np.ndarray, names: Sequence[str], content: bytes) -> pd.DataFrame:
    """Return numbers, and positions of texts, as a data frame: the inverse of `multilab.datasets.frames.codes_of`."""
    columns = dict[str, Any]()
    for name, cells, texts in zip(names, codes.T, json.loads(content.decode("utf-8", "surrogatepass")), strict=True):
        if texts is not None:
            columns[name] = pd.Categorical.from_codes(np.where(np.isnan(cells), -1, cells).astype(np.int64), texts)
    return with_columns(pd.DataFrame(codes, columns=names, copy=False), columns)


def _matrix(content: Mapping[str, bytes], name: str) -> Any:
    if f"{name}.npy" in content:
        return _loaded(content[f"{name}.npy"])
    arrays = _loaded(content[f"{name}.npz"])
    matrix = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    matrix.has_sorted_indices = True
    return matrix


def write_folder(folder: Path, content: Mapping[str, bytes], is_valid: Callable[[], bool]) -> None:
    """Write a folder under a temporary name and rename it.

    Parameters
    ----------
    folder : Path
        Final path.
    content : mapping of file name to bytes
    is_valid : callable
        Returns whether the existing folder is valid: then another process was faster, and its work is kept. An
        invalid folder is replaced.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    with scratch_folder(folder) as scratch:
        new = scratch / "new"
        new.mkdir()
        for name, data in content.items():
            write_flushed(new / name, data)
        for attempt in range(_ATTEMPTS):
            try:
                os.replace(new, folder)
                return
            except OSError:
                if is_valid():
                    return
                if attempt == _ATTEMPTS - 1:
                    raise
            with contextlib.suppress(FileNotFoundError):
                os.replace(folder, scratch / f"old{attempt}")


def _saved(save: Callable[..., None], *arrays: Any, **named: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)
    return buffer.getvalue()


def _loaded(content: bytes) -> Any:
    return np.load(io.BytesIO(content), allow_pickle=False)
