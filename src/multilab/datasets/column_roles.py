"""Features and labels of a table: which columns are labels, and how nominal columns are coded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import MAX_NAMES_BYTES, Limits, decode, read_bytes, require_cells
from multilab.datasets.labels_xml import read_label_names
from multilab.datasets.number_parsing import to_number
from multilab.datasets.raw_data import RawData


@dataclass(frozen=True)
class TableColumn:
    """TableColumn of a table: name, nominal values in order of declaration (None: numeric), and line."""

    name: str
    values: tuple[str, ...] | None = None
    line: int | None = None

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The nominal values as distinct numbers, or None if one of them is not a number."""
        numbers = tuple(map(to_number, self.values or ()))
        return numbers if numbers and not np.isnan(numbers).any() and len(set(numbers)) == len(numbers) else None

    @property
    def binary(self) -> bool:
        """Whether the column is nominal and its values are 0 and 1 (or one of them)."""
        return self.values is not None and self.numbers is not None and set(self.numbers) <= {0.0, 1.0}

    @property
    def plain(self) -> bool:
        """Whether the code of a value is its number, so that nothing has to be recoded."""
        return self.values is None or (self.binary and self.numbers in ((0.0, 1.0), (0.0,)))

    @property
    def width(self) -> int:
        """Number of columns it is coded in: one per value unless it holds numbers only, or 0 and 1."""
        return 1 if self.plain or self.binary else len(self.values or ())


@dataclass(frozen=True)
class LabelOptions:
    """Options that choose the label columns, of which at most one is set.

    See :func:`multilab.datasets.reading.read`.
    """

    labels_xml: PathLike | None = None
    label_names: Sequence[str] | None = None
    labels_first: int | None = None
    labels_last: int | None = None
    label_columns: Sequence[str] | PathLike | None = None
    label_prefix: str | None = None

    def given(self) -> bool:
        """Return whether any option is set."""
        return any(value is not None for value in self.__dict__.values())

    def choose(self, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
        """Return the positions of the label columns in the order of the file.

        Raises
        ------
        DatasetError
            No option or several options are set, a name is no column, or no feature or no label is left.
        """
        options = [name for name, value in self.__dict__.items() if value is not None]
        if len(options) != 1:
            shown = " and ".join(options) if options else "no option"
            raise DatasetError(
                f"{shown} given to choose the label columns; give one of labels_xml, labels_first, "
                "labels_last, label_columns, label_prefix",
                path,
            )
        chosen = self._mask(columns, path)
        if not chosen.any():
            raise DatasetError(f"no column is a label by {options[0]}", path)
        if chosen.all():
            raise DatasetError(f"every column is a label by {options[0]}: no feature is left", path)
        return np.flatnonzero(chosen)

    def _mask(self, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
        m = len(columns)
        if self.label_prefix is not None:
            return np.array([c.name.startswith(self.label_prefix) for c in columns])
        count = self.labels_first if self.labels_first is not None else self.labels_last
        if count is not None:
            if not 0 < count < m:
                raise DatasetError(f"{count} label columns requested, the file has {m} columns", path)
            position = np.arange(m)
            return position < count if self.labels_first is not None else position >= m - count
        source, wanted = self._wanted(path)
        known = {c.name for c in columns}
        for name, line in wanted.items():
            if name not in known:
                is_list_file = line is not None and self.labels_xml is None  # it may be any file: not quoted
                shown = "the name on this line" if is_list_file else f"label '{excerpt(name)}'"
                raise DatasetError(f"{shown} is not a column of {Path(path).name}", source, line)
        return np.array([c.name in wanted for c in columns])

    def _wanted(self, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
        """Return the file of the label names, and the names with their lines."""
        if self.labels_xml is not None:
            return self.labels_xml, dict(read_label_names(self.labels_xml))
        names = self.label_columns if self.label_columns is not None else self.label_names
        assert names is not None
        if isinstance(names, str) and ("," in names or not os.path.isfile(names)):
            return path, {name.strip(): None for name in names.split(",") if name.strip()}
        if isinstance(names, str | os.PathLike):
            lines = decode(read_bytes(names, Limits(max_bytes=MAX_NAMES_BYTES))).split("\n")
            return names, {text.strip(): i for i, text in enumerate(lines, 1) if text.strip()}
        return path, dict.fromkeys(names)


def canonical_csr(matrix: Any) -> sp.csr_array:
    """Return float64 CSR with sorted 32-bit indices (64 where needed), no duplicates, no stored zeros."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if max(*csr.shape, csr.nnz) < 2**31:  # scikit-learn's liblinear and libsvm take 32-bit indices only
        csr.indices = csr.indices.astype(np.int32, copy=False)
        csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def features_and_labels(
    table: Any,
    columns: Sequence[TableColumn],
    labels: np.ndarray,
    path: PathLike,
    limits: Limits,
    notes: Sequence[str] = (),
) -> RawData:
    """Split a table into features and labels and code the nominal features.

    Parameters
    ----------
    table : ndarray or CSR of shape (n, m)
        Numeric columns hold their numbers, nominal ones the position of the value in ``TableColumn.values``;
        missing values are NaN. Label values have been checked to be 0, 1 or, if they may be missing, NaN.
    columns : sequence of TableColumn
        The m columns.
    labels : ndarray of int
        Positions of the label columns.
    path, limits
        For the error when the label matrix would be too large.
    notes : sequence of str
        Notes of the reader, see `RawData`.

    Returns
    -------
    RawData
        A nominal feature with the values 0 and 1 is one 0/1 column; any other nominal feature with values
        a, b, ... is one 0/1 column ``name=a``, ``name=b``, ... per value, at the position of the feature.
    """
    require_cells(table.shape[0], len(labels), "the label matrix", path, limits, itemsize=1)
    features = np.setdiff1d(np.arange(len(columns)), labels)
    Y, hidden = _codes(table[:, labels])
    flipped = [k for k, j in enumerate(labels) if not columns[j].plain]
    for k in flipped:
        Y[:, k] = np.asarray(columns[labels[k]].numbers)[Y[:, k]]
    if hidden is not None:
        Y = Y.astype(np.int8)
        Y[hidden] = -1
    values = table[:, features]
    missing = int(np.isnan(values.data if sp.issparse(values) else values).sum())
    chosen = [columns[j] for j in features]
    if all(c.plain for c in chosen):
        X, names = values, [c.name for c in chosen]
    else:
        X, names = _coded(values, chosen, path, limits)
    X = canonical_csr(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64) + 0.0  # no -0.0
    return RawData(
        X=X,
        Y=np.ascontiguousarray(Y),
        feature_names=names,
        label_names=[columns[j].name for j in labels],
        original_features=len(chosen),
        nominal_features=sum(c.values is not None for c in chosen),
        missing_values=missing,
        nominal=_nominal(chosen),
        notes=tuple(notes),
    )


def _codes(labels: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the codes of the labels, 0 or 1, and where they are missing, or None if none is."""
    values = labels.data if sp.issparse(labels) else labels
    if not np.isnan(values).any():
        codes = labels.astype(np.uint8)
        return codes.toarray() if sp.issparse(codes) else codes, None
    dense = labels.toarray() if sp.issparse(labels) else labels
    hidden = np.isnan(dense)
    return np.where(hidden, 0, dense).astype(np.uint8), hidden


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
