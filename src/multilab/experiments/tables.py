"""Inputs of cells on user tables: the encoding of the columns is learned from the training rows."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from multilab import datasets
from multilab.core import array_digest, canonical_json, json_digest, parse_json, write_atomically
from multilab.datasets.table_encoder import TableEncoder, with_grams
from multilab.experiments.cells import encoder_files, library_versions
from multilab.experiments.errors import ExperimentError
from multilab.experiments.fitting import CellInputs, fitted_scaler, indices
from multilab.experiments.groups import outer_ref
from multilab.experiments.method import Method, build
from multilab.methods.mixed_scaler import MixedScaler

if TYPE_CHECKING:
    from multilab.datasets import Dataset
    from multilab.experiments.cells import Cell, SplitRef
    from multilab.experiments.store import Store

__all__ = [
    "columns_of",
    "encoded_rows",
    "has_grams",
    "makes_dense",
    "outdated_tables",
    "ref_with_grams",
    "table_inputs",
    "table_scaler",
    "tables_without_rows",
]

_GRAMS = "chars"
_FOLDER = ".encoded"
_SEAL = 32  # bytes of a checksum


def table_inputs(cell: Cell, store: Store) -> CellInputs:
    """Return the scaled features and the labels of a cell's rows.

    The encoder is that of the outer training set, also for inner folds: it reads no label.
    """
    train, test = indices(cell.split_ref)
    encoder, X = encoded_rows(cell.split_ref, store)
    columns = columns_of(cell.method, encoder)
    X = X if columns is None else X[:, columns]
    X_train, X_test = X[train], X[test]
    scaler = table_scaler(cell.method.preprocessing, X_train, encoder, columns)
    if scaler is not None:
        X_train = scaler.transform(X_train)
        X_test = scaler.transform(X_test) if len(test) else X_test
    Y = _table(cell.split_ref.dataset, cell.split_ref.dataset_digest).Y
    return CellInputs(X_train, Y[train], X_test, Y[test])


def table_scaler(preprocessing: str, X: Any, encoder: TableEncoder, columns: np.ndarray | None = None) -> Any | None:
    """Return the scaler of a method's preprocessing: `MixedScaler` beside words of free text, else `fitted_scaler`.

    X has some columns of the encoder, by default all.
    """
    words = np.flatnonzero(np.isin(np.arange(encoder.width) if columns is None else columns, encoder.unscaled))
    if preprocessing == "none" or not len(words):
        return fitted_scaler(preprocessing, X)
    return MixedScaler(words, preprocessing).fit(X)


def columns_of(method: Method, encoder: TableEncoder) -> np.ndarray | None:
    """Return the columns that a method gets: only frequent words of a text if it makes its features dense.

    None: all columns. 5,000 rows of 50,000 words take 2 GB when they are dense.
    """
    columns = encoder.dense_columns
    return columns if columns is not None and makes_dense(method) else None


@functools.lru_cache(maxsize=64)
def _makes_dense(target: str, params: str) -> bool:
    estimator = build(Method("dense", target, json.loads(params)))
    parts = [estimator, *(value for value in estimator.get_params().values() if hasattr(value, "fit"))]
    return any(getattr(part, "_makes_dense", False) for part in parts)


def makes_dense(method: Method) -> bool:
    """Return whether the estimator of a method, or one that it wraps, makes sparse features dense."""
    return _makes_dense(method.target, json.dumps(method.params, sort_keys=True, default=str))


def encoded_rows(ref: SplitRef, store: Store) -> tuple[TableEncoder, Any]:
    """Return the encoder learned from the training rows of a split, and all rows of the table encoded by it.

    Of an inner fold it is that of the outer training rows. The matrix is written next to the cells once, and read by
    all others of the split.
    """
    outer = outer_ref(ref) if ref.groups else replace(ref, inner=None, digest="")
    rows, _ = indices(outer)
    return _encoded(ref.dataset, ref.dataset_digest, ref.encoder, rows.astype(np.int64).tobytes(), store.root)


def ref_with_grams(ref: SplitRef) -> SplitRef:
    """Return a split of a table whose texts are encoded with character n-grams in addition to words."""
    return replace(ref, encoder=_GRAMS)


def has_grams(ref: SplitRef) -> bool:
    """Return whether a split is one of `ref_with_grams`."""
    return ref.encoder == _GRAMS


@functools.lru_cache(maxsize=2)
def _encoded(dataset: str, digest: str, kind: str, training_rows: bytes, root: Path) -> tuple[TableEncoder, Any]:
    """Return the encoder learned from some rows of a table (their numbers as int64), and the encoded table."""
    rows = np.frombuffer(training_rows, np.int64)
    # The rows themselves: the same split of the same protocol has others when the table is cut elsewhere.
    made_by = json_digest([digest, kind, array_digest(rows), library_versions()])
    path = root / _FOLDER / encoder_files() / made_by
    try:
        return _read(path)
    except (OSError, ValueError):  # not there, or damaged
        data = _table(dataset, digest)
        columns = with_grams(data.columns or ()) if kind == _GRAMS else data.columns or ()
        encoder = TableEncoder.learn(data.X.iloc[rows], columns, data.label_names)
        X = encoder.encode(data.X).X
        with contextlib.suppress(OSError):  # a store that may only be read
            write_atomically(path, _bytes(path, encoder, X))
        return encoder, X


def outdated_tables(store: Store) -> list[Path]:
    """Return the encoded tables that other code made, which are not read any more."""
    return [path for path in sorted(store.root.glob(f"{_FOLDER}/*")) if path.name != encoder_files()]


def tables_without_rows(store: Store) -> list[Path]:
    """Return the encoded tables of a time when their names did not depend on the training rows."""
    return sorted(store.root.glob(f"{_FOLDER}/*.npz"))


@functools.lru_cache(maxsize=2)
def _table(name: str, digest: str) -> Dataset:
    data = datasets.load(name)
    if data.digest != digest:
        raise ExperimentError(f"{name} has changed since this command began; run it again")
    return data


def _bytes(path: Path, encoder: TableEncoder, X: Any) -> bytes:
    """Return the content of a file: a checksum, and a .npz archive."""
    buffer, text = io.BytesIO(bytes(_SEAL)), np.array(canonical_json(encoder.to_json()))
    buffer.seek(_SEAL)
    if sp.issparse(X):
        shape = np.array(X.shape)
        np.savez(buffer, encoder=text, data=X.data, indices=X.indices, indptr=X.indptr, shape=shape)
    else:
        np.savez(buffer, encoder=text, dense=X)
    seal = _seal(path)
    with buffer.getbuffer() as content:
        seal.update(content[_SEAL:])
        content[:_SEAL] = seal.digest()
    return buffer.getvalue()


def _seal(path: Path) -> Any:
    """Return the beginning of a checksum: it covers the name of a file, which says what made the table in it."""
    return hashlib.sha256(path.name.encode())


def _read(path: Path) -> tuple[TableEncoder, Any]:
    with path.open("rb") as stored:
        seal = stored.read(_SEAL)
        if seal != hashlib.file_digest(stored, lambda: _seal(path)).digest():
            raise ValueError("not what was written")
        stored.seek(_SEAL)
        arrays = np.load(stored, allow_pickle=False)
        encoder = TableEncoder.from_json(parse_json(str(arrays["encoder"])))
        if "dense" in arrays:
            return encoder, arrays["dense"]
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        return encoder, sp.csr_array(parts, shape=tuple(arrays["shape"]))
