"""Inputs of cells of a table of one's own: what turns its columns into numbers is learned from the training rows."""

from __future__ import annotations

import functools
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from multilab import datasets
from multilab.core import canonical_json, json_digest, write_atomically
from multilab.core.files import parse_json
from multilab.datasets.errors import DatasetError
from multilab.datasets.table_encoder import TableEncoder
from multilab.experiments.cells import library_versions
from multilab.experiments.fitting import CellInputs, fitted_scaler, indices
from multilab.experiments.groups import outer_ref

if TYPE_CHECKING:
    from multilab.datasets import Dataset
    from multilab.experiments.cells import Cell, SplitRef
    from multilab.experiments.store import Store

__all__ = ["encoded_rows", "matrix_columns", "table_inputs", "table_scaler"]


def table_inputs(cell: Cell, store: Store) -> CellInputs:
    """Return the scaled features and the labels of a cell's rows.

    The encoder is that of the outer training set, also for inner folds: it reads no label.
    """
    train, test = indices(cell.split_ref)
    encoder, X = encoded_rows(cell.split_ref, store)
    X_train, X_test = X[train], X[test]
    scaler = table_scaler(cell.method.preprocessing, X_train, encoder)
    if scaler is not None:
        X_train = scaler.transform(X_train)
        X_test = scaler.transform(X_test) if len(test) else X_test
    Y = _table(cell.split_ref.dataset, cell.split_ref.dataset_digest).Y
    return CellInputs(X_train, Y[train], X_test, Y[test])


def table_scaler(preprocessing: str, X: Any, encoder: TableEncoder) -> Any | None:
    """Return `fitted_scaler` of a method's preprocessing, but for words of free text, which stay as they are."""
    scaler = fitted_scaler(preprocessing, X)
    if scaler is not None and len(encoder.unscaled):  # then X is sparse, and the scaler divides only
        scaler.scale_[encoder.unscaled] = 1.0
    return scaler


def encoded_rows(ref: SplitRef, store: Store) -> tuple[TableEncoder, Any]:
    """Return the encoder that the training rows of a split teach, and all rows of the table as it encodes them.

    Of an inner fold it is that of the outer training rows. The matrix is written next to the cells once, and read by
    all others of the split.
    """
    return _encoded(outer_ref(ref) if ref.groups else replace(ref, inner=None, digest=""), store)


@functools.lru_cache(maxsize=2)
def _encoded(ref: SplitRef, store: Store) -> tuple[TableEncoder, Any]:
    folder = store.root / ".encoded"
    made_by = [ref.dataset_digest, ref.protocol, ref.split, ref.encoder, library_versions()]
    path = folder / f"{json_digest(made_by)}.npz"
    try:
        return _read(path)
    except (OSError, ValueError, KeyError, DatasetError):  # not there, or damaged
        data = _table(ref.dataset, ref.dataset_digest)
        frame, (rows, _) = data.X, indices(ref)
        encoder = TableEncoder.learn(frame.iloc[rows], data.columns or (), data.label_names)
        X = encoder.encode(frame).X
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _bytes(encoder, X))
        return encoder, X


def matrix_columns(data: Dataset) -> int:
    """Return the number of columns that a method sees of a dataset; of a table those that all rows teach."""
    if data.columns is None:
        return int(data.X.shape[1])
    return TableEncoder.learn(data.X, data.columns).width


@functools.lru_cache(maxsize=2)
def _table(name: str, digest: str) -> Dataset:
    return datasets.load(name)


def _bytes(encoder: TableEncoder, X: Any) -> bytes:
    buffer, text = io.BytesIO(), np.array(canonical_json(encoder.to_json()))
    if sp.issparse(X):
        shape = np.array(X.shape)
        np.savez(buffer, encoder=text, data=X.data, indices=X.indices, indptr=X.indptr, shape=shape)
    else:
        np.savez(buffer, encoder=text, dense=X)
    return buffer.getvalue()


def _read(path: Path) -> tuple[TableEncoder, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        encoder = TableEncoder.from_json(parse_json(str(arrays["encoder"])))
        if "dense" in arrays:
            return encoder, arrays["dense"]
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        return encoder, sp.csr_array(parts, shape=tuple(arrays["shape"]))
