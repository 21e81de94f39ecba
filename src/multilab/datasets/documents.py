"""Readers of tables in JSON (an array of objects, or an object on each line) and Excel."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.parsers import expat

import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import pip_install
from multilab.core.text import excerpt
from multilab.datasets.columns import dropped_note, positions_left
from multilab.datasets.csv_files import named_last, unnamed_last
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import (
    Limits,
    decode,
    encoding_note,
    max_content,
    read_bytes,
    require_cells,
    too_large,
)
from multilab.datasets.frames import Rows, tidy
from multilab.datasets.options import Reading

__all__ = ["read_excel", "read_json"]


_MOST_ROWS = 2**20  # the limit of Excel itself


def read_json(path: PathLike, reading: Reading, limits: Limits, text_columns: Collection[str] = ()) -> Rows:
    """Read a JSON file of flat objects, one per row.

    Parameters
    ----------
    path, reading, limits, text_columns
        See :func:`multilab.datasets.csv_files.read_csv`. A cell of a column of ``text_columns`` may be a list.

    Returns
    -------
    Rows
        The columns are the keys in the order of their first objects; a key that an object lacks, and null, are missing
        values.

    Raises
    ------
    DatasetError
        If the file is not JSON, has no object or a nested object, or :func:`multilab.datasets.frames.tidy` refuses a
        cell. The message has the line, or the number of the object.
    """
    content = read_bytes(path, limits)
    text_of_file = decode(content, path, reading.encoding)
    rows, where = _objects(text_of_file, path)
    escaped = "\\ud" in text_of_file.lower()
    names = dict[str, None]()
    for row, line in zip(rows, where, strict=True):
        if not isinstance(row, dict):
            raise DatasetError(f"expected an object, got {excerpt(repr(row), 40)}", path, line)
        if escaped:
            _refuse_half_characters(row, path, line)
        for name, cell in row.items():
            if not name.strip():
                raise DatasetError("an entry has no name: name it, or remove it", path, line)
            if isinstance(cell, dict):
                raise DatasetError(f"'{excerpt(name)}' is an object; flatten or remove it", path, line)
        names |= dict.fromkeys(row)
        if len(names) > limits.max_columns:
            raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, line)
    require_cells(len(rows), len(names), "the table", path, limits)
    frame = _frame({name: [row.get(name) for row in rows] for name in names}, path, reading, limits, text_columns)
    return Rows(frame, (*encoding_note(content, reading.encoding), *dropped_note(reading.dropped, list(names))))


def read_excel(
    path: PathLike,
    reading: Reading,
    limits: Limits,
    text_columns: Collection[str] = (),
    known: Collection[str] | None = None,
) -> Rows:
    """Read the first sheet of an Excel file (``.xlsx``), whose first row names the columns.

    Parameters and result are as in :func:`multilab.datasets.csv_files.read_csv`. A formula has the value that Excel
    saved; dates are texts.

    Raises
    ------
    DatasetError
        If openpyxl is not installed, the file is not an Excel file or its parts are out of proportion to it, a column
        has no name, or :func:`multilab.datasets.frames.tidy` refuses a cell.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DatasetError(f"Excel needs openpyxl: {pip_install('openpyxl')}", path) from None
    content = read_bytes(path, limits)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            most = max_content(len(content), limits)
            if sum(part.file_size for part in archive.infolist()) > most:
                raise too_large(path, most, limits)
            for part in archive.infolist():
                with archive.open(part) as stream:
                    _check_xml(stream.read(part.file_size + 1), path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles, and of dates that no calendar has, which are "#VALUE!"
            rows = _sheet_rows(load_workbook(io.BytesIO(content), read_only=True, data_only=True), path, limits)
    except DatasetError:
        raise
    except Exception as error:  # openpyxl raises whatever a damaged part happens to cause
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DatasetError(f"not a readable Excel file ({excerpt(reason)})", path) from None
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if len(rows) < 2:
        raise DatasetError("the table has no row", path)
    names = ["" if name is None else str(name).strip() for name in rows[0]]
    width = max(map(len, rows))
    require_cells(len(rows), width, "the table", path, limits)
    names += [""] * (width - len(names))
    body = [[*row, *[None] * (width - len(row))] for row in rows[1:]]
    filled = {j: sum(row[j] is not None for row in body) for j in unnamed_last(names)}
    names, blank, notes = named_last(
        names, {j: n for j, n in filled.items() if n or known is not None}, len(body), known
    )
    columns = dict[str, list[Any]]()
    for j, name in enumerate(names):
        column = [row[j] for row in body]
        if j in blank or (not name and all(cell is None for cell in column)):
            continue
        if not name:
            raise DatasetError(f"column {j + 1} has no name", path, 1)
        if name in columns:
            raise DatasetError(f"column '{excerpt(name)}' occurs twice", path, 1)
        columns[name] = column
    frame = _frame(columns, path, reading, limits, text_columns)
    return Rows(frame, (*notes, *dropped_note(reading.dropped, list(columns))))


def _sheet_rows(workbook: Any, path: PathLike, limits: Limits) -> list[list[Any]]:
    """Return the cells of the first sheet."""
    sheet = workbook.worksheets[0]
    sheet.reset_dimensions()  # what the file declares may be anything
    cells, checked, rows = 0, 0, list[list[Any]]()
    for row in sheet.iter_rows(values_only=True):
        cells += len(row) + 1
        if cells > checked:  # a single cell far to the right makes a row wide
            require_cells(cells, 1, "the table", path, limits)
            checked = 2 * cells
        if len(rows) == _MOST_ROWS:  # a row with a wrong number: openpyxl fills the gap before it
            raise DatasetError(f"a row has a number above {_MOST_ROWS:,}, the limit of Excel", path)
        rows.append(list(row))
    return rows


def _frame(
    columns: Mapping[str, Sequence[Any]],
    path: PathLike,
    reading: Reading,
    limits: Limits,
    text_columns: Collection[str],
) -> pd.DataFrame:
    """Return the table of some columns of cells."""
    names = list(columns)
    kept = [names[j] for j in positions_left(names, reading.dropped, path)]
    try:
        frame = pd.DataFrame({name: _cells(columns[name], name.strip() in text_columns) for name in kept})
    except (OverflowError, ValueError) as error:
        raise DatasetError(f"not a table of numbers and texts ({excerpt(str(error))})", path) from None
    return tidy(frame, path, limits, text_columns)


def _objects(text: str, path: PathLike) -> tuple[list[Any], Sequence[int]]:
    """Return the objects, and the line of each; of an array their numbers."""
    try:
        if text.lstrip()[:1] == "[":
            rows = _parsed(text)
            return rows, range(1, len(rows) + 1)
    except ValueError as error:
        raise DatasetError(f"not readable as JSON ({error})", path) from None
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(_parsed(line))
            except ValueError as error:
                raise DatasetError(f"not readable as JSON, one object per line ({error})", path, number) from None
            lines.append(number)
    if not rows:
        raise DatasetError("the table has no row", path)
    return rows, lines


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:  # a text of 100,000 "["
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name '{excerpt(name)}' occurs twice in an object")
    return row


def _refuse_half_characters(row: dict[str, Any], path: PathLike, line: int) -> None:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start].encode("ascii", "backslashreplace").decode()
        raise DatasetError(f"{half} is half of a character; write both halves, or remove it", path, line) from None


def _cells(cells: Sequence[Any], as_text: bool) -> pd.Series:
    """Return a column: of numbers where all present cells are numbers or truth values, else of objects."""
    present = [cell for cell in cells if cell is not None]
    if not present or not all(isinstance(cell, bool | int | float) for cell in present):
        return pd.Series(list(cells), dtype=object)
    if as_text:  # a float would change identifiers of more than 15 digits
        return pd.Series([int(cell) if isinstance(cell, bool) else cell for cell in cells], dtype=object)
    return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")


def _check_xml(content: bytes, path: PathLike) -> None:
    """Refuse XML with a document type, in any encoding, before an entity is expanded; let pass what is no XML.

    Of a sheet refuse rows and cells that are not in order: openpyxl would leave them out.
    """
    from openpyxl.utils.cell import coordinate_to_tuple

    parser, kinds, row, column = expat.ParserCreate(), set[str](), 0, 0

    def refuse(*_: object) -> None:
        raise DatasetError("a document type is refused", path)

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        kind, before = name.rpartition(":")[2], (row, column)
        kinds.add(kind)
        if "worksheet" not in kinds or row > _MOST_ROWS:
            raise StopIteration  # a document type comes before the root; `_sheet_rows` refuses such a row
        if kind == "row":
            row, column = int(float(attributes.get("r", row + 1))), 0
        elif kind == "c":
            place = attributes.get("r")
            row, column = coordinate_to_tuple(place) if place else (row, column + 1)
        if (kind == "row" and row <= before[0]) or (kind == "c" and (row != before[0] or column <= before[1])):
            raise DatasetError(f"row {row} of a sheet is out of order; save the file again in Excel", path)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except DatasetError:
        raise
    except (StopIteration, expat.ExpatError, LookupError, ValueError):  # of ValueError an encoding unknown to Python
        pass
