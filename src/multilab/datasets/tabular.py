"""Reader of CSV files: tables of text with named columns."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from array import array
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.cell_coding import COMMA_NUMBER, MISSING_CELLS, POINT_NUMBER, cell_value, coded_cells
from multilab.datasets.coded_table import CodedTable
from multilab.datasets.column_roles import LabelOptions, TableColumn
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import (
    Limits,
    TextForm,
    decode,
    encoding_note,
    plain_name,
    read_bytes,
    require_cells,
)
from multilab.datasets.ignored_columns import dropped_note, positions_left
from multilab.datasets.number_parsing import dense_numbers

# The first record: quoted fields may hold delimiters and line breaks. Possessive, so that nothing backtracks.
_FIRST_RECORD = re.compile(r'(?:[^"\n]++|"[^"]*+")*+')
_QUOTED = re.compile(r'"[^"]*+"')
_HEADER_HINT = "; if the first line is data, header=false calls the columns c1, c2, ..."
_GROUPED = re.compile(r"(?<![\d.,])[-+]?[1-9]\d{0,2}\.\d{3}(?![\d.,])")
_SMALL = re.compile(r"[-+]?\d{1,3}")
_DECIMAL = {",": COMMA_NUMBER, ".": POINT_NUMBER}


def read_csv(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
    text_columns: Collection[str] = (),
    form: TextForm = TextForm(),  # noqa: B008 (it is frozen)
) -> CodedTable:
    """Read a CSV file.

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
    form : TextForm
        Encoding, names in the first line, and decimal separator.

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
    octets = read_bytes(path, limits)
    if form.encoding is None and octets.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatasetError("the text is UTF-16, save it as UTF-8, or give encoding=utf-16", path)
    content = decode(octets, path, form.encoding)
    if "\0" in content:
        raise DatasetError("a binary file, no text", path)
    head = _first_record(content)
    delimiter = _delimiter(head, path, form.decimal)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    names = [name.strip() for name in _csv_row(reader, path) or []]
    if form.header is False:
        names = [f"c{j}" for j in range(1, len(names) + 1)]
        head, reader = "", csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    if len(names) > limits.max_columns:
        raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, 1)
    index = len(names) > 1 and not names[0]
    notes = [index_note("the first column has no name", path)] if index else []
    notes += encoding_note(octets, form.encoding)
    kept = [j for j in positions_left(names, drop, path) if j or not index]
    doubtful = _names_like_data(names[index:]) if form.header is None else []
    if all(doubtful) and doubtful:
        raise _header_error(names, path)
    columns = named_columns(names, kept, path, _HEADER_HINT if any(doubtful) else "")
    labels = choose_labels(options, columns, path)
    numeric = not text_columns or not {column.name for column in columns} & set(text_columns)
    table = None
    body = content[len(head) :]
    plain = delimiter == "," or not ("," in body or (form.decimal == "," and "." in body) or _GROUPED.search(body))
    if numeric and plain and reader.line_num <= 1 and content.isascii():
        table = dense_numbers(body.replace(delimiter, ",").encode("ascii"), len(names))
    if table is not None:
        table = table if len(kept) == len(names) else table[:, kept]
    grouped: list[str] = []
    if table is None or not np.isin(table[:, labels], (0.0, 1.0)).all():
        cells, lines, fault = _read_cells(reader, len(names), kept, path)
        require_cells(len(lines), len(columns), "the table", path, limits)
        named = zip(doubtful, names[index:], cells, strict=False)
        if any(doubtful) and not drop and all(like or name in column for like, name, column in named):
            raise _header_error(names, path)
        if form.decimal is None and delimiter != ",":
            grouped = [column.name for column, own in zip(columns, cells, strict=True) if _are_grouped(own)]
            notes += [_grouped_note(grouped)] if grouped else []
        table = _numbers_and_codes(
            cells, lines, columns, labels, text, path, missing_labels, text_columns, form.decimal
        )
        if fault is not None:
            raise fault
    require_cells(len(table), len(columns), "the table", path, limits)
    return CodedTable(table, columns, labels, path, limits, (*notes, *dropped_note(drop)), tuple(grouped))


def _names_like_data(names: Sequence[str]) -> list[bool]:
    """Return which names of columns are numbers or missing values; none where they number the columns."""
    like = [any(names) and cell_value(name) is not None for name in names]
    if all(like) and all(name.isascii() and name.isdecimal() and len(name) < 16 for name in names):
        numbers = [int(name) for name in names]
        if all(b - a == 1 for a, b in pairwise(numbers)):
            return [False] * len(names)
    return like


def _header_error(names: Sequence[str], path: PathLike) -> DatasetError:
    shown = ", ".join(excerpt(name, 20) for name in names[:5])
    return DatasetError(
        f"the first line is data, not names of columns: {shown}; header=false calls the "
        "columns c1, c2, ..., header=true takes these names",
        path,
        1,
    )


def _are_grouped(cells: Sequence[str]) -> bool:
    """Return whether the numbers of a column look like 800 and 9.600, where the point separates thousands.

    A program that writes decimals leaves out either the last zero of 9.600, or no point at all.
    """
    pointed = {cell for cell in cells if "." in cell}
    if not pointed or not any(cell.endswith("0") for cell in pointed):
        return False
    others = {cell for cell in cells if "." not in cell and cell.lower() not in MISSING_CELLS}
    return bool(others) and all(map(_GROUPED.fullmatch, pointed)) and all(map(_SMALL.fullmatch, others))


def _grouped_note(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:10])
    return f"points that may separate thousands were read as decimal points: {shown}; decimal=',' reads them"


def choose_labels(options: LabelOptions | None, columns: Sequence[TableColumn], path: PathLike) -> np.ndarray:
    """Return the positions of the label columns; none without options."""
    return np.empty(0, dtype=np.intp) if options is None else options.choose(columns, path)


def _first_record(content: str) -> str:
    first = _FIRST_RECORD.match(content)
    head = first[0] if first else ""
    complete = content[len(head) : len(head) + 1] in ("", "\n")  # else a lone quote: the csv module decides
    return head if complete else content.partition("\n")[0]


def _delimiter(head: str, path: PathLike, decimal: str | None) -> str:
    """Return the delimiter of the first line; what is quoted is ignored, and so are decimal commas."""
    bare = _QUOTED.sub("", head)
    if decimal == "," and (";" in bare or "\t" in bare):
        bare = bare.replace(",", "")
    if plain_name(path)[1] == ".tsv" and "\t" in bare:
        return "\t"
    return max(",;\t", key=bare.count)  # of equally frequent ones the first


def named_columns(names: Sequence[str], kept: Sequence[int], path: PathLike, hint: str = "") -> list[TableColumn]:
    """Return the columns of a table that are read; refuse names that are empty or occur twice."""
    seen: set[str] = set()
    for j in kept:
        name = names[j]
        if not name:
            raise DatasetError(f"column {j + 1} has no name{hint}", path, 1)
        if name in seen:
            raise DatasetError(f"column '{name[:60]}' occurs twice{hint}", path, 1)
        seen.add(name)
    return [TableColumn(names[j], None, 1) for j in kept]


def index_note(reason: str, path: PathLike) -> str:
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


def _plain_number(cell: str, decimal: str) -> str:
    """Return a number without separators of thousands and with a decimal point; another text as it is."""
    if not _DECIMAL[decimal].fullmatch(cell):
        return cell
    return cell.replace(".", "").replace(",", ".") if decimal == "," else cell.replace(",", "")


def _numbers_and_codes(
    cells: list[list[str]],
    lines: Sequence[int],
    columns: list[TableColumn],
    labels: np.ndarray,
    text: str,
    path: PathLike,
    missing_labels: bool,
    text_columns: Collection[str],
    decimal: str | None,
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
        own = [_plain_number(cell, decimal) for cell in cells[j]] if decimal and kind == "feature" else cells[j]
        coded, values, fault = coded_cells(own, column.name, kind, text != "error", missing_labels)
        if coded.values is not None and own is not cells[j]:  # text stays as it is
            coded, values, fault = coded_cells(cells[j], column.name, "text", True, missing_labels)
        columns[j], table[:, j] = coded, values
        faults += [fault] if fault else []
    if faults:
        row, reason = min(faults, key=lambda one: one[0])
        raise DatasetError(reason, path, lines[row])
    return table
