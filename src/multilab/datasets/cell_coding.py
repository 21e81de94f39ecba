"""Cells of a table that are text: which are numbers, which are missing, and which columns hold text."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from multilab.datasets.coded_table import CodedTable
from multilab.datasets.column_roles import TableColumn
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import require_cells
from multilab.datasets.number_parsing import to_number

MISSING_CELLS = frozenset({"", "?", "na", "nan", "null", "n/a", "#n/a", "<na>"})
_TRUTH = {"true": 1.0, "false": 0.0}
_YES = frozenset({"yes", "y", "on", "positive", "present", "t", "1"})
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
MAX_CATEGORIES = 1000
MAX_CATEGORY = 100  # characters
_NEARLY_ALL = 0.9
_UNITS = 3  # of one column: 90 min, 1 season, 2 seasons
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_DISGUISED = re.compile(
    r"[-+]?(?P<currency>[$€£¥])?\s?[-+]?(?P<number>\d+(?:[.,]\d+)*)\s?(?P<unit>[%$€£¥]|[^\W\d_]{1,12})?\.?"
)
COMMA_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?")
"""Number with a decimal comma, where points may separate thousands."""
POINT_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
"""Number with a decimal point, where commas may separate thousands."""
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?: .*)?")
MISSING_LABEL_HINT = "; labels that were not observed: missing_labels=keep"
TEXT_HINT = "; for text set text to 'one_hot', or leave the column out (drop)"
_MIXED_HINT = "; most of the column are numbers: correct the others, or leave the column out (drop)"


def coded_cells(
    texts: Sequence[str], codes: np.ndarray, name: str, kind: str, text: bool, missing_labels: bool
) -> tuple[TableColumn, np.ndarray, tuple[int, str] | None]:
    """Return a column of texts as numbers, or as codes of a nominal column.

    Parameters
    ----------
    texts : sequence of str
        The different texts, without blanks around them, in the order of their first rows.
    codes : ndarray of int, shape (n,)
        Position of each row's text among them.
    name : str
        Name of the column.
    kind : {"feature", "label", "text"}
        A feature is nominal if it is text and ``text`` is True, and a column of kind "text" always.
    text : bool
        Whether text features are allowed.
    missing_labels : bool
        Whether a label may be missing.

    Returns
    -------
    column : TableColumn
    values : ndarray of shape (n,)
        NaN where a value is missing.
    fault : (row, reason) or None
        The first invalid cell.
    """
    is_label = kind == "label"
    values = [cell_value(cell) for cell in texts]
    if kind == "text" or (text and not is_label and _is_text(values)):
        column, meaning = categories_of(name, texts)
        return column, meaning[codes], None
    meaning = np.array([math.nan if value is None else value for value in values])
    hint = _MIXED_HINT if text else TEXT_HINT
    fault = _first_fault(texts, values, name, is_label, missing_labels, hint)
    column = TableColumn(name, None, 1)
    return column, meaning[codes], (int(np.argmax(codes == fault[0])), fault[1]) if fault else None


def recoded(texts: Iterable[str], codes: Any, change: Callable[[str], str]) -> tuple[list[str], np.ndarray]:
    """Return the different texts after a change of each, and the positions of the rows' texts among them."""
    positions: dict[str, int] = {}
    lookup = np.array([positions.setdefault(change(text), len(positions)) for text in texts], dtype=np.intp)
    return list(positions), lookup[codes]


def are_labels(values: np.ndarray, missing_labels: bool) -> np.ndarray:
    """Return which values a label may have."""
    valid = np.isin(values, (0.0, 1.0))
    return valid | np.isnan(values) if missing_labels else valid


def cell_value(cell: str) -> float | None:
    """Return the number of a cell, NaN if it is missing, None if it is something else."""
    number = to_number(cell)
    if not math.isnan(number):
        return number
    lower = cell.lower() if len(cell) < 6 else cell
    return math.nan if lower in MISSING_CELLS else _TRUTH.get(lower)


def _is_text(values: Sequence[float | None]) -> bool:
    """Whether most different values of a column are neither numbers nor missing."""
    others = sum(value is None for value in values)
    numbers = sum(value is not None and not math.isnan(value) for value in values)
    return others > 0 and others >= numbers


def looks_like_numbers(values: Sequence[str]) -> bool:
    """Return whether nearly all texts of a column are numbers in disguise: 32,2 or 1,234 or 39% or $10.50 or 90 min."""
    units, disguised, numbers = set[str](), 0, 0
    for value in values:
        if cell_value(value) is not None:
            numbers += 1
            continue
        match = _DISGUISED.fullmatch(value)
        if match is None:
            continue
        if match["currency"] or match["unit"]:
            units.add((match["unit"] or "").lower())
        elif not (COMMA_NUMBER.fullmatch(value) or POINT_NUMBER.fullmatch(value)):
            continue
        disguised += 1
    few_units = len(units) <= _UNITS and not units & _ORDINALS
    return few_units and disguised > max(1, numbers) and disguised + numbers >= _NEARLY_ALL * len(values)


def look_like_dates(values: Sequence[str]) -> bool:
    """Return whether all texts of a column look like dates."""
    return bool(values) and all(_DATE.fullmatch(value) for value in values)


def _first_fault(
    texts: Iterable[str], values: Sequence[float | None], name: str, is_label: bool, missing_labels: bool, hint: str
) -> tuple[int, str] | None:
    """Return the position of the first text that a column cannot hold and the reason."""
    if not is_label and None not in values:
        return None
    name = name[:60]
    for code, (cell, value) in enumerate(zip(texts, values, strict=True)):
        if value is None and is_label:
            advice = _label_advice(name, list(texts))
            return code, f"non-binary label: '{name}' is {cell[:40]}, expected 0 or 1, true or false{advice}"
        if value is None:
            advice = "" if cell.lower() in _INFINITE else hint
            return code, f"'{cell[:40]}' of column '{name}' is not a finite number{advice}"
        if is_label and math.isnan(value):
            if missing_labels:
                continue
            return code, f"label '{name}' is missing{MISSING_LABEL_HINT}"
        if is_label and value not in (0.0, 1.0):
            advice = _label_advice(name, list(texts))
            return code, f"non-binary label: '{name}' is {cell[:40]}, expected 0 or 1{advice}"
    return None


def _label_advice(name: str, texts: Sequence[str]) -> str:
    """Return how pandas converts a column of tags, or of two other values than 0 and 1, where it is one of these."""
    present = [text for text in texts if text.lower() not in MISSING_CELLS]
    column = f"frame[{name!r}]"
    for mark in ("|", ";", ","):
        if any(mark in text for text in present):
            if all(text.startswith("[") and text.endswith("]") for text in present):  # a list of Python
                column, mark = f"{column}.str.strip('[]').str.replace(\"'\", '')", ", "
            return f"; a column per tag, in pandas: {column}.str.get_dummies({mark!r})"
    if len(present) == 2:
        yes = next((text for text in present if text.lower() in _YES), max(present))
        value = yes if cell_value(yes) is not None else repr(yes)
        return f"; in pandas: ({column} == {value}).astype(int)"
    return ""


def categories_of(name: str, texts: Sequence[str]) -> tuple[TableColumn, np.ndarray]:
    """Return a nominal column of the sorted texts and the code of each text, NaN of a missing one."""
    values = sorted({cell for cell in texts if cell.lower() not in MISSING_CELLS})
    position = {value: float(k) for k, value in enumerate(values)}
    return TableColumn(name, tuple(values), 1), np.array([position.get(cell, math.nan) for cell in texts])


def one_hot_text(table: CodedTable) -> CodedTable:
    """Return the table with a note about its text columns; refuse text that one-hot columns are not for."""
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
                "(drop)",
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


def shown_examples(columns: Sequence[TableColumn]) -> str:
    """Return the names of columns of text, each with two of its values."""
    shown = (f"{c.name[:60]} ({', '.join(repr(value[:20]) for value in (c.values or ())[:2])})" for c in columns[:5])
    return ", ".join(shown) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
