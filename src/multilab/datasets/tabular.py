"""Readers of tables with named columns: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import warnings
from array import array
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from multilab.core.files import PathLike
from multilab.datasets.cell_coding import TEXT_HINT, are_labels, categories_of, coded_cells
from multilab.datasets.coded_table import CodedTable
from multilab.datasets.column_roles import LabelOptions, TableColumn
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import Limits, decode, plain_name, read_bytes, require_cells
from multilab.datasets.ignored_columns import dropped_note, positions_left
from multilab.datasets.number_parsing import dense_numbers

# The first record: quoted fields may hold delimiters and line breaks. Possessive, so that nothing backtracks.
_FIRST_RECORD = re.compile(r'(?:[^"\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*+"')


def read_csv(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
    text_columns: Collection[str] = (),
) -> CodedTable:
    """Read a CSV file whose first line names the columns.

    Parameters
    ----------
    path : path-like
        The file. Fields are separated by the one of comma, semicolon and tab that is most frequent in the first line
        outside of quotes; in a ``.tsv`` file by tabs, if the first line has one.
    options : LabelOptions or None
        Which columns are the labels; None: no column is.
    limits : Limits
        Upper bounds of sizes.
    drop : sequence of str
        Names of columns that are dropped.
    text : {"error", "one_hot", "keep"}
        Whether a feature of text is refused; otherwise it is nominal, however many different values it has. Text is
        a column most of whose different values are neither numbers nor ``true`` and ``false``; values are sorted.
    missing_labels : bool
        Whether a label may be missing.
    text_columns : collection of str
        Names of columns that are text, whatever their values.

    Returns
    -------
    CodedTable
        Dense. ``true`` and ``false`` are 1 and 0; an empty field, ``?``, ``NA``, ``N/A``, ``#N/A``, ``<NA>``, ``NaN``
        and ``null`` are missing values, all of them in any case. A first column without a name is the index that pandas
        and R write: it is left out, and ``notes`` says so.

    Raises
    ------
    DatasetError
        With the line: wrong number of fields, no or no finite number, missing or non-binary label, a column
        name that is empty or repeated, no row.
    """
    content = decode(read_bytes(path, limits))
    head = _first_record(content)
    delimiter = _delimiter(head, path)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    names = [name.strip() for name in _csv_row(reader, path) or []]
    if len(names) > limits.max_columns:
        raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
    index = len(names) > 1 and not names[0]
    notes = [_index_note("the first column has no name", path)] if index else []
    kept = [j for j in positions_left(names, drop, path) if j or not index]
    columns = _columns(names, kept, path)
    labels = choose_labels(options, columns, path)
    numeric = not text_columns or not {column.name for column in columns} & set(text_columns)
    table = None
    if numeric and reader.line_num == 1 and content.isascii() and (delimiter == "," or "," not in content[len(head) :]):
        table = dense_numbers(content[len(head) :].replace(delimiter, ",").encode("ascii"), len(names))
    if table is not None:
        table = table if len(kept) == len(names) else table[:, kept]
    if table is None or not np.isin(table[:, labels], (0.0, 1.0)).all():
        cells, lines, fault = _read_cells(reader, len(names), kept, path)
        require_cells(len(lines), len(columns), "the table", path, limits)
        table = _numbers_and_codes(cells, lines, columns, labels, text, path, missing_labels, text_columns)
        if fault is not None:
            raise fault
    require_cells(len(table), len(columns), "the table", path, limits)
    return CodedTable(table, columns, labels, path, limits, (*notes, *dropped_note(drop)))


def choose_labels(options: LabelOptions | None, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
    """Return the positions of the label columns; none without options."""
    return np.empty(0, dtype=np.intp) if options is None else options.choose(columns, path)


def _first_record(content: str) -> str:
    first = _FIRST_RECORD.match(content)
    head = first[0] if first else ""
    complete = content[len(head) : len(head) + 1] in ("", "\n")  # else a lone quote: the csv module decides
    return head if complete else content.partition("\n")[0]


def _delimiter(head: str, path: PathLike) -> str:
    """Return the delimiter of a line of names; quoted names are ignored."""
    bare = _QUOTED.sub("", head)
    if plain_name(path)[1] == ".tsv" and "\t" in bare:
        return "\t"
    return max(",;\t", key=bare.count)  # of equally frequent ones the first


def _columns(names: Sequence[str], kept: Sequence[int], path: PathLike) -> list[TableColumn]:
    seen: set[str] = set()
    for j in kept:
        name = names[j]
        if not name:
            raise DatasetError(f"column {j + 1} has no name", path, 1)
        if name in seen:
            raise DatasetError(f"column '{name[:60]}' occurs twice", path, 1)
        seen.add(name)
    return [TableColumn(names[j], None, 1) for j in kept]


def _index_note(reason: str, path: PathLike) -> str:
    """Warn of an index column that is left out, and return the note about it."""
    note = f"{reason}: read as an index and left out"
    warnings.warn(f"{os.fspath(path)}: {note}", DatasetWarning, stacklevel=5)
    return note


def _csv_row(reader: Any, path: PathLike) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise DatasetError(f"not readable as CSV ({error})", path, reader.line_num) from None


def _read_cells(
    reader: Any, width: int, kept: Sequence[int], path: PathLike
) -> tuple[list[list[str]], array[int], DatasetError | None]:
    """Return the cells of each column and the lines of the rows up to the first invalid one, and its error."""
    columns: list[list[str]] = [[] for _ in kept]
    lines = array("q")
    try:
        while (row := _csv_row(reader, path)) is not None:
            if not row:
                continue
            if len(row) != width:
                raise DatasetError(f"{len(row)} fields, expected {width}", path, reader.line_num)
            lines.append(reader.line_num)
            for j, cells in zip(kept, columns, strict=True):
                cells.append(row[j].strip())
    except DatasetError as error:
        return columns, lines, error
    if not lines:
        return columns, lines, DatasetError("no row follows the line of names", path, 1)
    return columns, lines, None


def _numbers_and_codes(
    cells: list[list[str]],
    lines: Sequence[int],
    columns: list[TableColumn],
    labels: np.ndarray,
    text: str,
    path: PathLike,
    missing_labels: bool,
    text_columns: Collection[str],
) -> np.ndarray:
    """Return the numbers of all columns, and the codes of text columns, which become nominal in ``columns``.

    Raises
    ------
    DatasetError
        Of the first row that has a wrong value.
    """
    is_label = np.isin(np.arange(len(columns)), labels)
    table = np.empty((len(lines), len(columns)))
    faults = list[tuple[int, str]]()
    for j, column in enumerate(columns):
        kind = "label" if is_label[j] else "text" if column.name in text_columns else "feature"
        columns[j], table[:, j], fault = coded_cells(cells[j], column.name, kind, text != "error", missing_labels)
        faults += [fault] if fault else []
    if faults:
        row, reason = min(faults, key=lambda one: one[0])
        raise DatasetError(reason, path, lines[row])
    return table


def read_parquet(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
) -> CodedTable:
    """Read a Parquet file of numeric and boolean columns.

    Parameters
    ----------
    path, options, limits, drop, text, missing_labels
        As for :func:`read_csv`; text columns are those of a string type.

    Returns
    -------
    CodedTable
        Dense. Null and NaN are missing values. The index columns that the file's own pandas metadata name are left
        out, and ``notes`` says so.

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
        schema = parquet.read_schema(BufferReader(content))
        strings = [field.name for field in schema if _is_string(field.type)]
        # Repeated text expands without bound unless it is read as codes.
        file = parquet.ParquetFile(BufferReader(content), read_dictionary=strings)
        rows, width = file.metadata.num_rows, file.metadata.num_columns
        require_cells(rows, width, "the table", path, limits)
        if not rows:
            raise DatasetError("the table has no row", path)
        if width > limits.max_columns:
            raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
        index = _index_names(schema)
        kept = [j for j in positions_left(schema.names, drop, path) if schema.names[j] not in index]
        columns = _columns(schema.names, kept, path)
        labels = choose_labels(options, columns, path)
        for j, position in enumerate(kept):
            _require_numbers(schema.field(position), path, text != "error" and j not in labels)
        table = file.read(columns=[column.name for column in columns])
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"not a readable Parquet file ({error})", path) from None
    values = np.empty((rows, len(columns)))
    for j, column in enumerate(columns):
        columns[j], values[:, j] = _parquet_column(table.column(column.name), column, path)
    _check_labels(values, columns, labels, path, missing_labels)
    notes = [_index_note(f"{name[:60]!r} is the index by the file's pandas metadata", path) for name in index]
    return CodedTable(values, columns, labels, path, limits, (*notes, *dropped_note(drop)))


def _is_string(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def _index_names(schema: Any) -> list[str]:
    """Return the columns of a Parquet file that are the index of its data frame."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = described.get("index_columns", [])
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []  # metadata that pandas did not write


def _require_numbers(field: Any, path: PathLike, text_allowed: bool) -> None:
    """Refuse a column of text before it is read."""
    from pyarrow import types

    kind = field.type
    if text_allowed and _is_string(kind):
        return
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        hint = TEXT_HINT if _is_string(kind) else "; leave it out (drop)"
        reason = f"column '{field.name[:60]}' is of type {str(kind)[:60]}, expected numbers or booleans"
        raise DatasetError(reason + hint, path)


def _parquet_column(data: Any, column: TableColumn, path: PathLike) -> tuple[TableColumn, np.ndarray]:
    """Return the column, nominal if it is text, and its numbers or codes, NaN if a value is missing."""
    from pyarrow import ArrowException, compute

    if _is_string(data.type):
        try:
            data.validate(full=True)  # a damaged file may hold invalid UTF-8
        except ArrowException as error:
            raise DatasetError(f"the text of column '{column.name[:60]}' is damaged ({error})", path) from None
        return _parquet_text(data, column.name)
    numbers = compute.cast(data, "float64", safe=False).to_numpy().astype(np.float64)
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0]) + 1
        raise DatasetError(f"row {row} of column '{column.name[:60]}' is not a finite number", path)
    return column, numbers


def _parquet_text(data: Any, name: str) -> tuple[TableColumn, np.ndarray]:
    from pyarrow import types

    coded = data if types.is_dictionary(data.type) else data.dictionary_encode()
    chunks = coded.unify_dictionaries().chunks
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy() for chunk in chunks]).astype(np.int64)
    present, codes = np.unique(codes, return_inverse=True)
    dictionary = chunks[0].dictionary
    texts = [(dictionary[k].as_py() or "").strip() if k >= 0 else "" for k in present.tolist()]
    column, meaning = categories_of(name, texts)
    return column, meaning[codes]


def _check_labels(
    values: np.ndarray, columns: list[TableColumn], labels: np.ndarray, path: PathLike, missing_labels: bool
) -> None:
    wrong = np.argwhere(~are_labels(values[:, labels], missing_labels))
    if len(wrong):
        row, k = wrong[0]
        name, value = columns[labels[k]].name[:60], values[row, labels[k]]
        if math.isnan(value):
            raise DatasetError(f"label '{name}' of row {row + 1} is missing", path)
        raise DatasetError(f"non-binary label: '{name}' of row {row + 1} is {value:g}, expected 0 or 1", path)
