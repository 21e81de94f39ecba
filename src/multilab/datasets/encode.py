"""Encoding of a table as matrices: one-hot columns of text, imputed values, the same columns in all files of a set."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import option, unknown_name
from multilab.core.text import listed
from multilab.datasets.columns import TableColumn, canonical_csr
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.kinds import Kind
from multilab.datasets.raw_data import RawData
from multilab.datasets.table_cells import MAX_CATEGORIES, MAX_CATEGORY, looks_like_numbers, shown_examples, text_hint


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Table as read from a file: before one-hot coding and before imputation.

    Attributes
    ----------
    values : ndarray or CSR of shape (n, d)
        Features: numeric columns hold their numbers, nominal ones the position of the value in ``TableColumn.values``;
        missing values are NaN.
    label_values : ndarray or CSR of shape (n, q)
        Labels in the same form, checked to be 0, 1 or, if they may be missing, NaN.
    columns, label_columns : sequence of TableColumn
        The d features and the q labels.
    path, limits
        For the error when a matrix would be too large.
    notes : sequence of str
        Notes of the reader, see `RawData`.
    grouped : sequence of str
        Names of the columns of numbers whose points may separate thousands.
    train_rows, groups
        See `RawData`.
    """

    values: Any
    label_values: Any
    columns: Sequence[TableColumn]
    label_columns: Sequence[TableColumn]
    path: PathLike
    limits: Limits
    notes: Sequence[str] = ()
    grouped: Sequence[str] = ()
    train_rows: int | None = None
    groups: np.ndarray | None = None

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

    def encode(self) -> RawData:
        """Return the features, the nominal ones one-hot coded, and the labels as matrices.

        A nominal feature with the values 0 and 1 is one 0/1 column; any other nominal feature with values
        a, b, ... is one 0/1 column ``name=a``, ``name=b``, ... per value, at the position of the feature.
        """
        Y = self.label_codes()
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
            train_rows=self.train_rows,
            groups=self.groups,
        )

    def kept(self, kinds: Mapping[str, Kind]) -> RawData:
        """Return the table as it is, see `Dataset.columns`: numbers, and positions of texts; kinds by column.

        What turns its columns into numbers is learned from training rows, see `multilab.datasets.TableEncoder`.
        """
        values = self.values.toarray() if sp.issparse(self.values) else np.array(self.values, dtype=np.float64)
        columns = []
        for j, column in enumerate(self.columns):
            kind, texts = kinds.get(column.name, Kind("number")), column.values
            if column.binary and kind == Kind("number"):
                codes = values[:, j]
                absent = np.isnan(codes)
                values[:, j] = np.asarray(column.numbers)[np.where(absent, 0, codes).astype(np.intp)]
                values[absent, j], texts = np.nan, None
            columns.append(TableColumn(column.name, texts, kind=kind))
        return RawData(
            X=np.ascontiguousarray(values) + 0.0,
            Y=self.label_codes(),
            feature_names=[column.name for column in columns],
            label_names=[column.name for column in self.label_columns],
            original_features=len(columns),
            nominal_features=sum(column.values is not None for column in columns),
            missing_values=int(np.isnan(values).sum()),
            notes=(*self.notes, *_unreadable(values, columns)),
            columns=tuple(columns),
            train_rows=self.train_rows,
            groups=self.groups,
        )

    def label_codes(self) -> np.ndarray:
        """Return the labels of shape (n, q) as uint8, or as int8 with -1 where some were not observed."""
        rows, q = self.label_values.shape
        require_cells(rows, q, "the label matrix", self.path, self.limits, itemsize=1)
        Y, hidden = _codes(self.label_values)
        for k, column in enumerate(self.label_columns):
            if not column.plain:
                Y[:, k] = np.asarray(column.numbers)[Y[:, k]]
        if hidden is not None:
            Y = Y.astype(np.int8)
            Y[hidden] = -1
        return np.ascontiguousarray(Y)

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the features and the labels as data frames, see `multilab.datasets.read_frames`."""
        by_column = sp.csc_array(self.values) if sp.issparse(self.values) else self.values
        series = {column.name: _series(column, by_column[:, [j]]) for j, column in enumerate(self.columns)}
        names = [column.name for column in self.label_columns]
        return pd.DataFrame(series, copy=False), pd.DataFrame(self.label_codes(), columns=names)


def _unreadable(values: np.ndarray, columns: Sequence[TableColumn]) -> list[str]:
    """Return a note of the cells that are no number or date in a column of these."""
    counts = dict[str, int]()
    for j, column in enumerate(columns):
        if column.values is not None and column.kind is not None and column.kind.name in ("number", "date"):
            wrong = np.append(column.kind.numbers(column.values)[1], False)
            rows = wrong[np.where(np.isnan(values[:, j]), len(column.values), values[:, j]).astype(np.intp)]
            counts |= {column.name: int(rows.sum())} if rows.any() else {}
    if not counts:
        return []
    shown = listed(f"{name[:60]!r} ({count})" for name, count in counts.items())
    return [f"cells that cannot be read count as missing: {shown}"]


def kinds_of_columns(table: CodedTable, columns: Mapping[str, str], path: PathLike) -> dict[str, Kind]:
    """Return the kind of each column of a table.

    Raises
    ------
    DatasetError
        A kind is unknown, a column has none, or a kind is that of no column.
    """
    names = [column.name for column in table.columns]
    for name in columns:
        if name not in names:
            raise DatasetError(f"columns: {unknown_name('feature column', name, names)}", path)
    for name in names:
        if name not in columns:
            raise DatasetError(
                f"column '{name[:60]}' has no kind: the file is another one, or name it in {option('columns')}", path
            )
    return {name: Kind.parse(kind) for name, kind in columns.items()}


def _series(column: TableColumn, cells: Any) -> Any:
    """Return a feature: numbers (sparse ones of a sparse table), or a categorical of texts."""
    if column.plain and sp.issparse(cells):
        return pd.DataFrame.sparse.from_spmatrix(canonical_csr(cells))[0]
    codes = (cells.toarray() if sp.issparse(cells) else cells).ravel()
    if column.plain:
        return codes + 0.0
    absent = np.isnan(codes)
    positions = np.where(absent, 0, codes).astype(np.intp)
    if column.binary:
        return np.where(absent, np.nan, np.asarray(column.numbers)[positions])
    return pd.Categorical.from_codes(np.where(absent, -1, positions), list(column.values or ()))


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


def refuse_text(table: CodedTable) -> None:
    """Raise a `DatasetError` if a feature is text."""
    for column in table.columns:
        if column.values is not None and not column.binary:
            raise DatasetError(f"column '{column.name[:60]}' is text{text_hint()}", table.path)


def one_hot_text(table: CodedTable) -> CodedTable:
    """Return the table with a note about its text columns; refuse text that is unsuitable for one-hot columns."""
    columns = [column for column in table.columns if column.values is not None]
    if not columns:
        return table
    for column in columns:
        values = column.values or ()
        longest = max(map(len, values), default=0)
        if not values or len(values) > MAX_CATEGORIES or longest > MAX_CATEGORY:
            raise DatasetError(
                f"column '{column.name[:60]}' holds {len(values)} different texts of up to {longest} characters, "
                f"one-hot columns are for 1 to {MAX_CATEGORIES} texts of up to {MAX_CATEGORY} characters; leave it out "
                f"({option('drop')})",
                table.path,
            )
    width = sum(len(column.values or ()) for column in columns)
    require_cells(len(table.values), width, "the one-hot columns of the text", table.path, table.limits)
    shown = ", ".join(f"{c.name[:60]!r} ({len(c.values or ())} values)" for c in columns[:10])
    more = f" and {len(columns) - 10} more" if len(columns) > 10 else ""
    notes = [f"text became one-hot columns: {shown}{more}"]
    if disguised := [column for column in columns if looks_like_numbers(column.values or ())]:
        notes.append(f"numbers written as text became one-hot columns: {shown_examples(disguised)}")
        warnings.warn(f"{os.fspath(table.path)}: {notes[-1]}", DatasetWarning, stacklevel=3)
    return replace(table, notes=(*table.notes, *notes))


def missing_error(raw: RawData, path: PathLike | None = None) -> DatasetError:
    """Return the error with the number of missing feature values, the first of them, and what to do."""
    rows, columns = _positions(raw.X)
    name = _feature(raw, int(columns[0]))
    return DatasetError(
        f"{raw.missing_values} feature values are missing, the first in row {rows[0] + 1}, feature '{name[:60]}': fill "
        f"them in, leave the feature out ({option('drop')}), or set {option('missing')} to 'impute' (median or "
        "most frequent value)",
        path,
    )


def impute(raw: RawData, path: PathLike | None = None) -> RawData:
    """Impute the missing feature values.

    Parameters
    ----------
    raw : RawData
        The rows, with NaN where a feature value is missing.
    path : path-like, optional
        The file, for the error message.

    Returns
    -------
    RawData
        Without NaN. A missing value of a nominal feature, and of a feature that holds only 0 and 1, becomes the most
        frequent value (the first of equally frequent ones); of any other feature the median.

    Raises
    ------
    DatasetError
        A feature has no value at all.

    Notes
    -----
    The values are learned from all rows of ``raw``, later test rows included, but from no label. To impute from
    the training rows only, read with ``missing="keep"`` and put scikit-learn's ``SimpleImputer`` before the
    classifier in a ``Pipeline``.
    """
    if not raw.missing_values:
        return raw
    _, absent = _positions(raw.X)
    columns = np.unique(absent)
    fill = fill_values(raw, columns)
    lacking = columns[np.isnan(fill[columns])]
    if len(lacking):
        raise DatasetError(
            f"feature '{_feature(raw, lacking[0])[:60]}' has no value at all: leave it out ({option('drop')})", path
        )
    feature = {j: start for _, start, stop in raw.nominal for j in range(start, stop)}
    concerned = len({feature.get(j, j) for j in columns.tolist()})
    note = (
        f"missing values imputed from all rows: {raw.missing_values}, features concerned: {concerned} (median; most "
        "frequent value of a nominal or 0/1 feature)"
    )
    imputed = raw.imputed_values + raw.missing_values
    return replace(raw, X=_filled(raw.X, fill), missing_values=0, imputed_values=imputed, notes=(*raw.notes, note))


def fill_values(raw: RawData, columns: np.ndarray | None = None) -> np.ndarray:
    """Return the values that replace missing ones, shape (d,), see :func:`impute`; NaN in columns without any value.

    Parameters
    ----------
    raw : RawData
    columns : ndarray of int, optional
        The columns to compute, the others are 0; all of a nominal feature, or none. None: every column.
    """
    by_column = raw.X.tocsc() if sp.issparse(raw.X) else raw.X
    wide = {j: (start, stop) for _, start, stop in raw.nominal if stop - start > 1 for j in range(start, stop)}
    nominal = {start for _, start, _ in raw.nominal}
    fill = np.zeros(raw.X.shape[1])
    for j in range(raw.X.shape[1]) if columns is None else columns.tolist():
        values = _column(by_column, j)
        values = values[~np.isnan(values)]
        if not len(values):
            fill[j] = np.nan
        elif j in wide:
            start, stop = wide[j]
            if j == start:
                sums = [np.nansum(_column(by_column, k)) for k in range(start, stop)]
                fill[start + int(np.argmax(sums))] = 1.0
        elif j in nominal or np.isin(values, (0.0, 1.0)).all():
            fill[j] = float(values.mean() > 0.5)
        else:
            fill[j] = np.median(values) + 0.0
    return fill


def _positions(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the NaN entries, row by row."""
    if not sp.issparse(X):
        rows, columns = np.nonzero(np.isnan(X))
        return rows, columns
    entries = np.flatnonzero(np.isnan(X.data))
    return np.searchsorted(X.indptr, entries, side="right") - 1, X.indices[entries]


def _column(by_column: Any, j: int) -> np.ndarray:
    return by_column[:, [j]].toarray().ravel() if sp.issparse(by_column) else by_column[:, j]


def _filled(X: Any, fill: np.ndarray) -> Any:
    X = X.copy()
    if sp.issparse(X):
        absent = np.isnan(X.data)
        X.data[absent] = fill[X.indices[absent]]
        return canonical_csr(X)
    rows, columns = _positions(X)
    X[rows, columns] = fill[columns]
    return X


def _feature(raw: RawData, j: int) -> str:
    """Return the name of the feature that column ``j`` of ``X`` belongs to."""
    names = (name for name, start, stop in raw.nominal if start <= j < stop)
    return next(names, raw.feature_names[j])


def share_texts(files: Sequence[RawData]) -> list[RawData]:
    """Return the tables of one set with the same texts, so that a position means the same in each."""
    columns = [list(file.columns or ()) for file in files]
    tables = [file.X.copy() for file in files]
    for j, same in enumerate(zip(*columns, strict=False)):
        if all(column.values is None for column in same):
            continue
        texts = sorted({text for column in same for text in column.values or ()})
        position = {text: float(k) for k, text in enumerate(texts)}
        for of_file, column, X in zip(columns, same, tables, strict=True):
            here = column.values
            if here is None:  # numbers in this file, text in another
                raise DatasetError(
                    f"column '{column.name[:60]}' is of numbers in one file of the set, of text in another"
                )
            lookup = np.array([*(position[text] for text in here), np.nan])
            codes = np.where(np.isnan(X[:, j]), len(here), X[:, j]).astype(np.intp)
            X[:, j] = lookup[codes]
            of_file[j] = replace(column, values=tuple(texts))
    return [replace(file, X=X, columns=tuple(of)) for file, X, of in zip(files, tables, columns, strict=True)]


def share_categories(files: Sequence[RawData]) -> list[RawData]:
    """Return the files of one set with a 0/1 column for every text that occurs in any of them.

    Parameters
    ----------
    files : sequence of RawData
        Dense files, whose text became one-hot columns file by file.

    Returns
    -------
    list of RawData
        With the same columns, those of a text feature sorted; unchanged where the features themselves differ.
    """
    blocks = [_blocks(file) for file in files]
    if any(
        [(name, text) for name, text, *_ in one] != [(name, text) for name, text, *_ in blocks[0]] for one in blocks
    ):
        return list(files)
    names = list[list[str]]()
    for same in zip(*blocks, strict=True):
        of_files = [file.feature_names[start:stop] for file, (*_, start, stop) in zip(files, same, strict=True)]
        names.append(sorted(set().union(*of_files)) if same[0][1] else of_files[0])
    stops = np.cumsum([len(one) for one in names]).tolist()
    nominal = tuple(
        (name, stop - len(one), stop)
        for (name, text, *_), one, stop in zip(blocks[0], names, stops, strict=True)
        if text
    )
    flat = [name for one in names for name in one]
    return [
        replace(file, X=_spread(file, one, names), feature_names=flat, nominal=nominal)
        for file, one in zip(files, blocks, strict=True)
    ]


def _blocks(file: RawData) -> list[tuple[str, bool, int, int]]:
    """Return each feature: its name, whether it is text, its first column and one past its last."""
    nominal = {start: (name, stop) for name, start, stop in file.nominal}
    blocks, start = [], 0
    while start < len(file.feature_names):
        name, stop = nominal.get(start, (file.feature_names[start], start + 1))
        blocks.append((name, start in nominal, start, stop))
        start = stop
    return blocks


def _spread(file: RawData, blocks: Sequence[tuple[str, bool, int, int]], names: Sequence[Sequence[str]]) -> np.ndarray:
    """Return X with the columns ``names``: 0 where a text does not occur in this file, NaN where it is missing."""
    arrays = []
    for (_, _, start, stop), columns in zip(blocks, names, strict=True):
        block = np.zeros((len(file.X), len(columns)))
        position = {name: k for k, name in enumerate(columns)}
        block[:, [position[name] for name in file.feature_names[start:stop]]] = file.X[:, start:stop]
        block[np.isnan(file.X[:, start])] = np.nan
        arrays.append(block)
    return np.hstack(arrays)
