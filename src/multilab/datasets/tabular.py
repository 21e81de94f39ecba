"""Tables with named columns: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import math
import os
from typing import Any

import numpy as np

from multilab.datasets.columns import Column, LabelOptions, assemble
from multilab.datasets.errors import DatasetError
from multilab.datasets.numbers import dense_numbers, to_number
from multilab.datasets.opening import Limits, decode, read_bytes, require_cells
from multilab.datasets.raw import RawData

__all__ = ["read_csv", "read_parquet"]

PathLike = str | os.PathLike[str]
_MISSING = frozenset({"", "?", "NA"})


def read_csv(path: PathLike, options: LabelOptions, limits: Limits) -> RawData:
    """Read a CSV file of numbers whose first line names the columns.

    Parameters
    ----------
    path : path-like
        The file. Fields are separated by commas or, where the first line has none, by semicolons or tabs.
    options : LabelOptions
        Which columns are the labels.
    limits : Limits
        Bounds of what the file may ask for.

    Returns
    -------
    RawData
        Dense. An empty field, ``?`` and ``NA`` are missing values.

    Raises
    ------
    DatasetError
        With the line: wrong number of fields, no or no finite number, missing or non-binary label, a column
        name that is empty or repeated, no row. A column of words is refused: code it as numbers first.
    """
    text = decode(read_bytes(path, limits))
    head = text.partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in head), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names = _csv_row(reader, path)
    columns = _columns([name.strip() for name in names or []], path, limits)
    labels = options.choose(columns, path)
    table = None
    if delimiter == "," and reader.line_num == 1 and text.isascii():
        table = dense_numbers(text[len(head) :].encode("ascii"), len(columns))
    if table is None or not np.isin(table[:, labels], (0.0, 1.0)).all():
        table = _careful_rows(reader, columns, labels, path)
    require_cells(len(table), len(columns), "the table", path, limits)
    return assemble(table, columns, labels, path, limits)


def _columns(names: list[str], path: PathLike, limits: Limits) -> list[Column]:
    if len(names) > limits.max_columns:
        raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
    seen: set[str] = set()
    for j, name in enumerate(names, 1):
        if not name:
            raise DatasetError(f"column {j} has no name", path, 1)
        if name in seen:
            raise DatasetError(f"column '{name}' is there twice", path, 1)
        seen.add(name)
    return [Column(name, None, 1) for name in names]


def _csv_row(reader: Any, path: PathLike) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise DatasetError(f"not readable as CSV ({error})", path, reader.line_num) from None


def _careful_rows(reader: Any, columns: list[Column], labels: np.ndarray, path: PathLike) -> np.ndarray:
    is_label = set(labels.tolist())
    values: list[float] = []
    while (row := _csv_row(reader, path)) is not None:
        if not row:
            continue
        try:
            if len(row) != len(columns):
                raise ValueError(f"{len(row)} fields, expected {len(columns)}")
            values += [
                _csv_value(text.strip(), column.name, j in is_label)
                for j, (text, column) in enumerate(zip(row, columns, strict=True))
            ]
        except ValueError as error:
            raise DatasetError(str(error), path, reader.line_num) from None
    if not values:
        raise DatasetError("no row follows the line of names", path, 1)
    return np.array(values).reshape(-1, len(columns))


def _csv_value(text: str, name: str, is_label: bool) -> float:
    if text in _MISSING:
        if is_label:
            raise ValueError(f"label '{name}' is missing")
        return math.nan
    number = to_number(text)
    if math.isnan(number):
        raise ValueError(f"'{text}' of column '{name}' is not a finite number")
    if is_label and number not in (0.0, 1.0):
        raise ValueError(f"non-binary label: '{name}' is {text}, expected 0 or 1")
    return number


def read_parquet(path: PathLike, options: LabelOptions, limits: Limits) -> RawData:
    """Read a Parquet file of numeric and boolean columns.

    Parameters
    ----------
    path, options, limits
        As for :func:`read_csv`.

    Returns
    -------
    RawData
        Dense. Null and NaN are missing values.

    Raises
    ------
    DatasetError
        pyarrow is not installed, no Parquet file, a column that is not numeric, infinite values, missing or
        non-binary labels (with the number of the row, counted from 1).
    """
    content = read_bytes(path, limits)
    try:
        from pyarrow import ArrowException, BufferReader, parquet
    except ImportError:
        raise DatasetError("Parquet needs pyarrow: pip install 'multilab[lab]'", path) from None
    try:
        file = parquet.ParquetFile(BufferReader(content))
        rows, width = file.metadata.num_rows, file.metadata.num_columns
        require_cells(rows, width, "the table", path, limits)
        if not rows:
            raise DatasetError("the table has no row", path)
        columns = _columns(list(file.schema_arrow.names), path, limits)
        for field in file.schema_arrow:
            _require_numbers(field, path)
        table = file.read()
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"not a readable Parquet file ({error})", path) from None
    labels = options.choose(columns, path)
    values = np.empty((rows, len(columns)))
    for j, column in enumerate(columns):
        values[:, j] = _parquet_column(table.column(j), column.name, path)
    _check_labels(values, columns, labels, path)
    return assemble(values, columns, labels, path, limits)


def _require_numbers(field: Any, path: PathLike) -> None:
    """Refuse a column of words before it is read: repeated text expands without bound."""
    from pyarrow import types

    kind = field.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise DatasetError(f"column '{field.name}' is of type {kind}, expected numbers or booleans", path)


def _parquet_column(data: Any, name: str, path: PathLike) -> np.ndarray:
    from pyarrow import compute

    found = compute.cast(data, "float64", safe=False).to_numpy().astype(np.float64)
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0]) + 1
        raise DatasetError(f"row {row} of column '{name}' is not a finite number", path)
    return found


def _check_labels(values: np.ndarray, columns: list[Column], labels: np.ndarray, path: PathLike) -> None:
    wrong = np.argwhere(~np.isin(values[:, labels], (0.0, 1.0)))
    if len(wrong):
        row, k = wrong[0]
        name, value = columns[labels[k]].name, values[row, labels[k]]
        if math.isnan(value):
            raise DatasetError(f"label '{name}' of row {row + 1} is missing", path)
        raise DatasetError(f"non-binary label: '{name}' of row {row + 1} is {value:g}, expected 0 or 1", path)
