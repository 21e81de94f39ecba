"""Reader of ARFF rows with quotes, comments and missing values, which reports the line of every fault."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.arff_header import QUOTED, unquote
from multilab.datasets.cell_coding import MISSING_LABEL_HINT
from multilab.datasets.column_roles import TableColumn
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.number_parsing import to_number

_NOT_A_NUMBER = frozenset({"nan", "null"})  # what other programs write for a missing number
_FIELD = re.compile(rf"\s*+(?P<value>{QUOTED}|(?:[^,'\"%][^,%]*+)?)\s*+(?P<end>,|%.*+$|$)", re.DOTALL)
_ENTRY = re.compile(rf"\s*+(?P<index>\d++)\s++(?P<value>{QUOTED}|[^,}}\s'\"][^,}}\s]*+)\s*+(?P<end>[,}}])")


class _Values:
    """Converter of the text of one column's values to numbers or codes."""

    def __init__(self, column: TableColumn, is_label: bool, missing_labels: bool = False):
        self.column = column
        self.is_label = is_label
        self.required = is_label and not missing_labels
        self.codes = {v: float(k) for k, v in enumerate(column.values or ())}
        self.by_number = {x: float(k) for k, x in enumerate(column.numbers or ())}
        self.known: dict[str, float] = {}  # values converted before: labels and counts repeat

    def __call__(self, text: str) -> float:
        value = self.known.get(text)
        if value is None:
            value = self._convert(text)
            if len(self.known) < 64:
                self.known[text] = value
        return value

    def _convert(self, text: str) -> float:
        name = self.column.name
        if text == "?":
            return self._missing()
        plain = unquote(text)
        if self.column.values is not None:
            code = self.codes.get(plain)
            code = self.by_number.get(to_number(plain)) if code is None else code
            if code is None:
                raise ValueError(f"'{plain[:40]}' is not a value of nominal attribute '{name[:60]}'")
            return code
        number = to_number(plain)
        if math.isnan(number):
            if plain.lower() in _NOT_A_NUMBER:
                return self._missing()
            raise ValueError(f"'{plain[:40]}' of attribute '{name[:60]}' is not a finite number")
        if self.is_label and number not in (0.0, 1.0):
            raise ValueError(f"non-binary label: '{name[:60]}' is {plain[:40]}, expected 0 or 1")
        return number

    def _missing(self) -> float:
        if self.required:
            raise ValueError(f"label '{self.column.name[:60]}' is missing{MISSING_LABEL_HINT}")
        return math.nan


def _ignored(_: str) -> float:
    return 0.0


def parse_rows(
    body: str,
    first_line: int,
    columns: Sequence[TableColumn],
    labels: np.ndarray,
    path: PathLike,
    limits: Limits,
    drop: Sequence[str] = (),
    missing_labels: bool = False,
) -> np.ndarray | sp.csr_array:
    """Read the rows after ``@data``, dense or sparse as the first row is.

    Parameters
    ----------
    body : str
        The text after the ``@data`` line.
    first_line : int
        Line number of its first line.
    columns : sequence of TableColumn
        The attributes.
    labels : ndarray of int
        Positions of the labels, whose values must be 0 or 1.
    path, limits
        For error messages; ``max_cells`` bounds a dense table.
    drop : sequence of str
        Names of columns whose values are ignored; they are 0 in the table.
    missing_labels : bool
        Whether labels may be missing; they are NaN in the table.

    Returns
    -------
    ndarray or CSR of shape (n, m)
        Numbers, the positions of nominal values, NaN for missing values. An entry that a sparse row
        leaves out is 0: the number 0 or the first declared value, as ARFF defines it.

    Raises
    ------
    DatasetError
        With the line: truncated row, wrong number of fields, unknown nominal value, no number, not finite,
        missing or non-binary label, index out of range or repeated, dense and sparse rows mixed, or no row
        at all.
    """
    is_label = np.zeros(len(columns), dtype=bool)
    is_label[labels] = True
    left_out = set(drop)
    readers: list[Callable[[str], float]] = [
        _ignored if column.name in left_out else _Values(column, bool(mark), missing_labels)
        for column, mark in zip(columns, is_label, strict=True)
    ]
    rows = _rows(body, first_line)
    first = next(rows, None)
    if first is None:
        raise DatasetError("no row follows @data", path, first_line - 1)
    sparse = first[1][0] == "{"
    indices, values, pointers = list[int](), list[float](), [0]
    for line, text in chain([first], rows):
        try:
            if (text[0] == "{") != sparse:
                raise ValueError("dense and sparse rows are mixed")
            if sparse:
                _sparse_row(text, readers, indices, values)
                pointers.append(len(values))
            else:
                values += _dense_row(text, readers)
        except ValueError as error:
            raise DatasetError(str(error), path, line) from None
    if sparse:
        shape = (len(pointers) - 1, len(columns))
        table = sp.csr_array((np.array(values, dtype=float), np.array(indices, np.int64), pointers), shape=shape)
        table.sort_indices()
        return table
    require_cells(len(values) // len(columns), len(columns), "the table", path, limits)
    return np.array(values).reshape(-1, len(columns))


def _rows(body: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line that is neither blank nor a comment."""
    start, line = 0, first_line
    while start < len(body):
        end = body.find("\n", start)
        end = len(body) if end < 0 else end
        text = body[start:end].strip()
        if text and text[0] != "%":
            yield line, text
        start, line = end + 1, line + 1


def _dense_row(text: str, readers: Sequence[Callable[[str], float]]) -> list[float]:
    fields = _fields(text)
    if len(fields) != len(readers):
        raise ValueError(f"{len(fields)} fields, expected {len(readers)}")
    return [reader(field) for reader, field in zip(readers, fields, strict=True)]


def _fields(text: str) -> list[str]:
    if "'" not in text and '"' not in text and "%" not in text:
        return [field.strip() for field in text.split(",")]
    fields, position, last = [], 0, ","
    while last == ",":
        match = _FIELD.match(text, position)
        if match is None:
            raise ValueError(f"cannot read the row from '{text[position : position + 40]}'")
        fields.append(match["value"].strip())
        position, last = match.end(), match["end"]
    return fields


def _sparse_row(text: str, readers: Sequence[Callable[[str], float]], indices: list[int], values: list[float]) -> None:
    """Append the entries of ``{index value, ...}`` to ``indices`` and ``values``."""
    inner = text[1:].lstrip()
    seen: set[int] = set()
    position, last = 0, ","
    if inner[:1] == "}":
        position, last = 1, "}"
    while last == ",":
        match = _ENTRY.match(inner, position)
        if match is None:
            if "}" not in inner[position:]:
                raise ValueError("the sparse row is truncated: no closing brace")
            raise ValueError(f"cannot read the sparse row from '{inner[position : position + 40].strip()}'")
        # Over 10 digits is out of range anyway; Python's int() refuses thousands of them.
        index = int(match["index"]) if len(match["index"]) < 11 else len(readers)
        if index >= len(readers):
            raise ValueError(f"index {match['index'][:20]}, but the last attribute has the index {len(readers) - 1}")
        if index in seen:
            raise ValueError(f"index {index} is given twice")
        seen.add(index)
        indices.append(index)
        values.append(readers[index](match["value"]))
        position, last = match.end(), match["end"]
    after = inner[position:].strip()
    if after and after[0] != "%":
        raise ValueError(f"unexpected '{after[:40]}' after the row")
