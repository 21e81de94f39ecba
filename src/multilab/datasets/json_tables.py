"""Reader of JSON tables: an array of objects, or an object on each line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from multilab.core.files import PathLike, parse_json
from multilab.core.text import excerpt
from multilab.datasets.columns import LabelOptions
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, encoding_note, read_bytes, require_cells
from multilab.datasets.frames import table_of_frame

__all__ = ["read_json"]


def read_json(
    path: PathLike,
    options: LabelOptions | None,
    limits: Limits,
    drop: Sequence[str] = (),
    text: str = "error",
    missing_labels: bool = False,
    text_columns: Collection[str] = (),
    encoding: str | None = None,
) -> CodedTable:
    """Read a JSON file of flat objects, one per row.

    Parameters
    ----------
    path, options, limits, drop, text, missing_labels, text_columns
        As for :func:`multilab.datasets.table.read_csv`. A cell of a column of ``text_columns`` may be a list.
    encoding : str, optional
        See :func:`multilab.datasets.file_access.decode`.

    Returns
    -------
    CodedTable
        Dense. The columns are the keys in the order of their first objects; a key that an object lacks, and null, are
        missing values.

    Raises
    ------
    DatasetError
        With the line, or the number of the object: no JSON, no object, a nested object, or a cell that
        :func:`multilab.datasets.frames.table_of_frame` refuses.
    """
    content = read_bytes(path, limits)
    rows, where = _objects(decode(content, path, encoding), path)
    names = dict[str, None]()
    for row, line in zip(rows, where, strict=True):
        if not isinstance(row, dict):
            raise DatasetError(f"expected an object, got {excerpt(repr(row), 40)}", path, line)
        for name, cell in row.items():
            if isinstance(cell, dict):
                raise DatasetError(f"'{excerpt(name)}' is an object: flatten it, or remove it", path, line)
        names |= dict.fromkeys(row)
        if len(names) > limits.max_columns:
            raise DatasetError(f"more than the limit of {limits.max_columns} columns", path, line)
    require_cells(len(rows), len(names), "the table", path, limits)
    try:
        frame = pd.DataFrame({name: _cells(rows, name) for name in names})
    except (OverflowError, ValueError) as error:
        raise DatasetError(f"not a table of numbers and texts ({excerpt(str(error))})", path) from None
    table = table_of_frame(frame, options, drop, missing_labels, path, limits, text_columns)
    if text == "error" and (of_text := [c for c in table.columns if c.values is not None and not c.binary]):
        raise DatasetError(f"column '{excerpt(of_text[0].name)}' is text; set text to 'one_hot', or drop it", path)
    return CodedTable(**{**vars(table), "notes": (*encoding_note(content, encoding), *table.notes)})


def _objects(text: str, path: PathLike) -> tuple[list[Any], Sequence[int]]:
    """Return the objects, and the line of each; of an array their numbers."""
    try:
        if text.lstrip()[:1] == "[":
            rows = parse_json(text)
            return rows, range(1, len(rows) + 1)
    except ValueError as error:
        raise DatasetError(f"not readable as JSON ({error})", path) from None
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(parse_json(line))
            except ValueError as error:
                raise DatasetError(f"not readable as JSON, one object per line ({error})", path, number) from None
            lines.append(number)
    if not rows:
        raise DatasetError("the table has no row", path)
    return rows, lines


def _cells(rows: Sequence[dict[str, Any]], name: str) -> pd.Series:
    """Return a column: of numbers where all present cells are numbers or truth values, else of objects."""
    cells = [row.get(name) for row in rows]
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, bool | int | float) for cell in present):
        return pd.Series([None if cell is None else float(cell) for cell in cells], dtype="float64")
    return pd.Series(cells, dtype=object)
