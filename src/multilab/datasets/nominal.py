"""Nominal attributes of ARFF files: as 0/1 columns of a matrix, or as texts of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.columns import TableColumn, canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.frames import is_text
from multilab.datasets.raw_data import RawData
from multilab.datasets.tables import label_matrix


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Content of an ARFF file.

    Attributes
    ----------
    values : ndarray or CSR of shape (n, d)
        Features: numeric attributes hold their numbers, nominal ones the position of the value in
        ``TableColumn.values``; missing values are NaN.
    label_values : ndarray or CSR of shape (n, q)
        Labels in the same form, checked to be 0, 1 or, if they may be missing, NaN.
    columns, label_columns : sequence of TableColumn
        The d features and the q labels.
    path, limits
        For the error when a matrix would be too large.
    notes : sequence of str
        Notes of the reader, see `RawData`.
    """

    values: Any
    label_values: Any
    columns: Sequence[TableColumn]
    label_columns: Sequence[TableColumn]
    path: PathLike
    limits: Limits
    notes: Sequence[str] = ()

    @classmethod
    def split(
        cls,
        values: Any,
        columns: Sequence[TableColumn],
        labels: np.ndarray,
        path: PathLike,
        limits: Limits,
        notes: Sequence[str] = (),
    ) -> CodedTable:
        """Return a table with labels at the given positions; all other columns are features."""
        features = np.setdiff1d(np.arange(len(columns)), labels)
        parts = values[:, features], values[:, labels]
        return cls(*parts, [columns[j] for j in features], [columns[j] for j in labels], path, limits, notes)

    @property
    def is_table(self) -> bool:
        """Whether an encoder has something to learn: dense rows with nominal attributes or missing values."""
        if sp.issparse(self.values):
            return False
        return not all(column.plain or column.binary for column in self.columns) or bool(np.isnan(self.values).any())

    def encode(self) -> RawData:
        """Return the features, the nominal ones one-hot coded, and the labels as matrices.

        A nominal feature with the values 0 and 1 is one 0/1 column; any other nominal feature with values
        a, b, ... is one 0/1 column ``name=a``, ``name=b``, ... per value, at the position of the feature.
        """
        Y = self._labels()
        X, chosen = self.values, self.columns
        missing = int(np.isnan(X.data if sp.issparse(X) else X).sum())
        names = [c.name for c in chosen]
        if not all(c.plain for c in chosen):
            X, names = _coded(X, chosen, self.path, self.limits)
        if sp.issparse(X):
            X = canonical_csr(X)
        else:
            X = np.ascontiguousarray(X, dtype=np.float64)
            X += 0.0  # no -0.0
        return RawData(
            X=X,
            Y=Y,
            feature_names=names,
            label_names=[c.name for c in self.label_columns],
            original_features=len(chosen),
            nominal_features=sum(c.values is not None for c in chosen),
            missing_values=missing,
            nominal=_nominal(chosen),
            notes=tuple(self.notes),
        )

    def table(self) -> RawData:
        """Return the features as a data frame: the nominal ones as texts, those with the values 0 and 1 as numbers."""
        rows, width = self.values.shape
        require_cells(rows, width, "the table", self.path, self.limits)
        dense = self.values.toarray() if sp.issparse(self.values) else self.values
        features = pd.DataFrame({c.name: _cells(c, dense[:, j]) for j, c in enumerate(self.columns)}, copy=False)
        names = [column.name for column in self.label_columns]
        return RawData(
            X=features,
            Y=self._labels() if names else np.empty((len(features), 0), dtype=np.uint8),
            feature_names=list(features.columns),
            label_names=names,
            original_features=len(self.columns),
            nominal_features=sum(c.values is not None for c in self.columns),
            missing_values=int(np.isnan(dense).sum()),
            nominal=tuple((name, j, j + 1) for j, (name, cells) in enumerate(features.items()) if is_text(cells)),
            notes=tuple(self.notes),
        )

    def _labels(self) -> np.ndarray:
        Y = label_matrix(self.label_values, self.path, self.limits)
        for k, column in enumerate(self.label_columns):
            if not column.plain:  # the value 1 is declared before 0
                seen = Y[:, k] != -1 if Y.dtype == np.int8 else slice(None)
                Y[seen, k] = np.asarray(column.numbers)[Y[seen, k]]
        return Y


def _cells(column: TableColumn, codes: np.ndarray) -> Any:
    """Return a feature as numbers, or as a categorical of texts."""
    if column.values is None:
        return codes + 0.0
    absent = np.isnan(codes)
    places = np.where(absent, 0, codes).astype(np.intp)
    if column.binary:
        return np.where(absent, np.nan, np.asarray(column.numbers)[places])
    order = np.argsort(column.values)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return pd.Categorical.from_codes(np.where(absent, -1, rank[places]), [column.values[k] for k in order])


def _nominal(columns: Sequence[TableColumn]) -> tuple[tuple[str, int, int], ...]:
    """Return name, first and one past the last coded column of every nominal feature."""
    widths = [c.width for c in columns]
    stops = np.cumsum(widths).tolist()
    spans = zip(columns, widths, stops, strict=True)
    return tuple((c.name, stop - width, stop) for c, width, stop in spans if c.values is not None)


def _coded(values: Any, columns: Sequence[TableColumn], path: PathLike, limits: Limits) -> tuple[Any, list[str]]:
    """Return the features with every nominal column as 0/1 columns, and their names."""
    names: list[str] = []
    for column in columns:
        expands = not column.plain and not column.binary
        names += [f"{column.name}={value}" for value in column.values or ()] if expands else [column.name]
        if len(names) > limits.max_columns:
            raise DatasetError(f"more than {limits.max_columns} columns, nominal values counted", path, column.line)
    coded = _coded_sparse if sp.issparse(values) else _coded_dense
    return coded(values, columns, len(names), path, limits), names


def _coded_dense(
    values: np.ndarray, columns: Sequence[TableColumn], width: int, path: PathLike, limits: Limits
) -> np.ndarray:
    require_cells(len(values), width, "the table, one column per nominal value,", path, limits)
    X = np.zeros((len(values), width))
    start = 0
    for j, column in enumerate(columns):
        codes, stop = values[:, j], start + column.width
        if column.plain:
            X[:, start] = codes
        else:
            absent = np.isnan(codes)
            code = np.where(absent, 0, codes).astype(np.intp)
            if column.binary:
                X[:, start] = np.asarray(column.numbers)[code]
            else:
                X[np.arange(len(codes)), start + code] = 1.0
            X[absent, start:stop] = np.nan
        start = stop
    return X


def _coded_sparse(
    values: Any, columns: Sequence[TableColumn], width: int, path: PathLike, limits: Limits
) -> sp.csr_array:
    """Code the columns of a sparse table; an entry that a row lacks has the first value of its column."""
    n = values.shape[0]
    by_column = sp.csc_array(values)
    absent = np.add.reduceat(np.append(np.isnan(by_column.data), False), by_column.indptr[:-1], dtype=np.int64)
    absent[np.diff(by_column.indptr) == 0] = 0  # for an empty column, reduceat returns the next entry
    entries = sum(n + int(k) * c.width for k, c in zip(absent, columns, strict=True) if not c.plain)
    require_cells(entries, 1, "the coded table", path, limits, itemsize=24)
    rows, positions, data = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    start = 0
    for j, column in enumerate(columns):
        stored = slice(by_column.indptr[j], by_column.indptr[j + 1])
        if column.plain:
            row, position, value = by_column.indices[stored], np.array([start]), by_column.data[stored]
        else:
            codes = np.zeros(n)
            codes[by_column.indices[stored]] = by_column.data[stored]
            row, position, value = _entries(codes, column, start)
        rows.append(row)
        positions.append(np.broadcast_to(position, row.shape))
        data.append(value)
        start += column.width
    coordinates = np.concatenate(rows), np.concatenate(positions)
    return sp.coo_array((np.concatenate(data), coordinates), shape=(n, width)).tocsr()


def _entries(codes: np.ndarray, column: TableColumn, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values of one coded column; a missing code gives NaN in each of its columns."""
    absent = np.flatnonzero(np.isnan(codes))
    present = np.flatnonzero(~np.isnan(codes))
    code = codes[present].astype(np.intp)
    if column.binary:
        position, value = np.full(len(present), start), np.asarray(column.numbers)[code]
    else:
        position, value = start + code, np.ones(len(present))
    wide = column.width
    rows = np.concatenate([present, np.repeat(absent, wide)])
    positions = np.concatenate([position, np.tile(np.arange(start, start + wide), len(absent))])
    return rows, positions, np.concatenate([value, np.full(len(absent) * wide, np.nan)])
