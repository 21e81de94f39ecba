"""Single cells of a table: numbers, missing values, and values of labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.core.messages import option
from multilab.core.text import excerpt, listed
from multilab.datasets.columns import TableColumn, to_numbers
from multilab.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

MISSING_CELLS = frozenset({"", "?", "na", "nan", "null", "n/a", "#n/a", "<na>"})
_TRUTH = {"true": 1.0, "false": 0.0}
_TRUTHS = frozenset({"0", "1", "0.0", "1.0", "true", "false"})
_YES = frozenset({"1", "1.0", "true", "yes", "y", "t", "on", "positive", "present"})
_NO = frozenset({"0", "0.0", "false", "no", "n", "f", "off", "negative", "absent"})
_PAIRS = ((_YES, _NO), (frozenset({"1", "1.0", "+1"}), frozenset({"-1", "-1.0"})))
_LABEL_VALUES = 3  # of numbers: yes, no, missing
_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
SEPARATORS = ("|", ";", ",")
"""Separators of tags that are recognised. A blank has to be asked for: tags such as "science fiction" hold it."""
MAX_CATEGORIES = 1000  # different texts of a column that become 0/1 columns; more are free text or identifiers
MAX_CATEGORY = 100  # characters
_NEARLY_ALL = 0.9  # of the texts of a column: single typing errors must not hide that it holds numbers
_UNITS = 3  # of one column: 90 min, 1 season, 2 seasons
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_DISGUISED = re.compile(
    r"[-+]?(?P<currency>[$€£¥])?\s?[-+]?(?P<number>\d+(?:[.,]\d+)*)\s?(?P<unit>[%$€£¥]|[^\W\d_]{1,12})?\.?"
)
COMMA_NUMBER = re.compile(r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?")
"""Number with a decimal comma, where points may separate thousands: not in 0.001."""
POINT_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
"""Number with a decimal point, where commas may separate thousands."""
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?: .*)?")


def missing_label_hint() -> str:
    """Return what to do about labels that are missing."""
    return f"; labels that were not observed: {option('missing_labels', 'keep')}"


def text_hint() -> str:
    """Return what to do about a column of text."""
    return f"; for text set {option('text')} to 'one_hot', or leave the column out ({option('drop')})"


def mixed_hint() -> str:
    """Return what to do about a column of numbers with some texts."""
    return f"; most of the column are numbers: correct the others, or leave the column out ({option('drop')})"


def coded_cells(
    texts: Sequence[str],
    codes: np.ndarray,
    name: str,
    kind: str,
    text: bool,
    missing_labels: bool,
    mixed: bool = False,
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
    mixed : bool
        Whether a feature with any text is nominal; otherwise one is that is mostly text.

    Returns
    -------
    column : TableColumn
    values : ndarray of shape (n,)
        NaN where a value is missing.
    fault : (row, reason) or None
        The first invalid cell.
    """
    is_label = kind == "label"
    if is_label and (known := label_meaning(texts)) is not None:
        meant, column = np.array(known[0]), TableColumn(name, None, 1)
        if missing_labels or not np.isnan(meant).any():
            return column, meant[codes], None
        absent = int(np.argmax(np.isnan(meant)[codes]))
        return column, meant[codes], (absent, f"label '{name[:60]}' is missing{missing_label_hint()}")
    values = cell_values(texts)
    if kind == "text" or (text and not is_label and (None in values if mixed else _is_text(values))):
        column, meaning = categories_of(name, texts)
        return column, meaning[codes], None
    meaning = np.array([math.nan if value is None else value for value in values])
    hint = mixed_hint() if text else text_hint()
    fault = _first_fault(texts, values, name, is_label, missing_labels, hint)
    column = TableColumn(name, None, 1)
    return column, meaning[codes], (int(np.argmax(codes == fault[0])), fault[1]) if fault else None


def recoded(texts: Iterable[str], codes: Any, change: Callable[[str], str]) -> tuple[list[str], np.ndarray]:
    """Return the different texts after a change of each, and the positions of the rows' texts among them."""
    positions: dict[str, int] = {}
    lookup = np.array([positions.setdefault(change(text), len(positions)) for text in texts], dtype=np.intp)
    return list(positions), lookup[codes]


def are_labels(values: np.ndarray, missing_labels: bool) -> np.ndarray:
    """Return which values are allowed in a label column."""
    valid = np.isin(values, (0.0, 1.0))
    return valid | np.isnan(values) if missing_labels else valid


def cell_values(cells: Sequence[str]) -> list[float | None]:
    """Return the number in each cell, NaN if it is missing, None if it is anything else."""
    values: list[float | None] = []
    for cell, number in zip(cells, to_numbers(cells), strict=True):
        lower = cell.lower() if len(cell) < 6 else cell
        is_number = not math.isnan(number) or lower in MISSING_CELLS
        values.append(number if is_number else _TRUTH.get(lower))
    return values


def _is_text(values: Sequence[float | None]) -> bool:
    """Whether most different values of a column are neither numbers nor missing."""
    others = sum(value is None for value in values)
    numbers = sum(value is not None and not math.isnan(value) for value in values)
    return others > 0 and others >= numbers


def looks_like_numbers(values: Sequence[str]) -> bool:
    """Return whether nearly all texts of a column are formatted numbers: 32,2 or 1,234 or 39% or $10.50 or 90 min."""
    units, disguised, numbers = set[str](), 0, 0
    for value, number in zip(values, cell_values(values), strict=True):
        if number is not None:
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
        if is_label and cell.lower() in _YES | _NO:
            continue
        if value is None and is_label:
            advice = _label_advice(name, list(texts))
            return code, f"non-binary label: '{name}' is {cell[:40]}, expected 0 or 1, true or false, yes or no{advice}"
        if value is None:
            advice = "" if cell.lower() in _INFINITE else hint
            return code, f"'{cell[:40]}' of column '{name}' is not a finite number{advice}"
        if is_label and math.isnan(value):
            if missing_labels:
                continue
            return code, f"label '{name}' is missing{missing_label_hint()}"
        if is_label and value not in (0.0, 1.0):
            advice = _label_advice(name, list(texts))
            return code, f"non-binary label: '{name}' is {cell[:40]}, expected 0 or 1{advice}"
    return None


def _label_advice(name: str, texts: Sequence[str]) -> str:
    """Return the option that reads a column of tags, where it is one."""
    present = [text for text in texts if text.lower() not in MISSING_CELLS]
    tags = any(mark in text for text in present for mark in SEPARATORS) or all(text.startswith("[") for text in present)
    return f"; if it holds tags: {option('tags', name)}" if tags else ""


def label_meaning(texts: Sequence[str]) -> tuple[list[float], str] | None:
    """Return the meaning of the distinct texts in a label column, and a note unless it is evident.

    Parameters
    ----------
    texts : sequence of str
        The different cells, without blanks around them.

    Returns
    -------
    values : list of float
        1, 0 or NaN (not observed) for each text.
    note : str
        Empty if the column holds 0 and 1 or true and false only.

    None if the column is no label: it holds a third value.
    """
    lower = [text.lower() for text in texts]
    present = {text for text in lower if text not in MISSING_CELLS}
    for pair in _PAIRS:
        yes, no = pair
        if present <= yes | no:
            has_no, has_yes = bool(present & no), bool(present & yes)
            blank = math.nan if has_no or not has_yes else 0.0
            values = [1.0 if text in yes else 0.0 if text in no else blank for text in lower]
            shown = [*sorted(present & yes), *sorted(present & no)]
            note = (
                "" if present <= _TRUTHS else f"{' and '.join(map(repr, shown))} read as {'1 and 0' if has_no else '1'}"
            )
            if len(present) < len(set(lower)) and blank == 0.0:
                note = f"{note + ', a' if note else 'a'} blank means no"
            return values, note
    if len(present) == 1 and len(set(lower)) > len(present):  # 'x' or nothing
        values = [0.0 if text not in present else 1.0 for text in lower]
        return values, f"{next(iter(present))[:20]!r} read as 1, a blank means no"
    return None


def label_note(texts: Sequence[str]) -> str:
    """Return the note of :func:`label_meaning`, empty if the column is not a label."""
    return (label_meaning(texts) or (None, ""))[1]


def read_label_numbers(values: np.ndarray) -> str:
    """Convert the numbers of a label column (NaN if missing) to label values in place; return the note."""
    different, codes = np.unique(values, return_inverse=True)
    if len(different) > _LABEL_VALUES:
        return ""
    known = label_meaning(["" if math.isnan(value) else f"{value:g}" for value in different.tolist()])
    if known is None:
        return ""
    values[:] = np.array(known[0])[codes]
    return known[1]


def meaning_notes(meanings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each way in which labels are written, with their names."""
    return [f"labels {listed(repr(name[:60]) for name in names)}: {note}" for note, names in meanings.items()]


def categories_of(name: str, texts: Sequence[str]) -> tuple[TableColumn, np.ndarray]:
    """Return a nominal column of the sorted texts and the code of each text, NaN of a missing one."""
    values = sorted({cell for cell in texts if cell.lower() not in MISSING_CELLS})
    position = {value: float(k) for k, value in enumerate(values)}
    return TableColumn(name, tuple(values), 1), np.array([position.get(cell, math.nan) for cell in texts])


def shown_examples(columns: Sequence[TableColumn]) -> str:
    """Return the names of columns of text, each with two of its values."""
    shown = (f"{c.name[:60]} ({', '.join(repr(value[:20]) for value in (c.values or ())[:2])})" for c in columns[:5])
    return ", ".join(shown) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")


def cell_numbers(cells: pd.Series, name: str) -> np.ndarray:
    """Return a column as float64, NaN where a value is missing.

    Texts are read as by :func:`multilab.datasets.table.read_csv`: ``true`` is 1, an empty one is missing.

    Raises
    ------
    DatasetError
        A cell is no finite number; with the column and the row.
    """
    if cells.dtype.kind in "biuf":
        numbers = cells.to_numpy(dtype=np.float64, copy=True)
    else:
        known: dict[Any, float | None] = {}
        numbers = np.empty(len(cells))
        for row, cell in enumerate(cells.tolist()):
            key = (type(cell), cell) if isinstance(cell, str | int | float) else id(cell)
            if key not in known:
                known[key] = _number(cell)
            value = known[key]
            if value is None:
                raise DatasetError(
                    f"column {name[:60]!r}, row {row + 1}: {excerpt(repr(cell))} is not a finite number; training had "
                    "numbers in this column"
                )
            numbers[row] = value
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0]) + 1
        raise DatasetError(f"column {name[:60]!r}, row {row}: not a finite number")
    return numbers


def _number(cell: Any) -> float | None:
    """Return the number in a cell, NaN if it is missing, None if it is anything else."""
    if isinstance(cell, str):
        return cell_values([cell.strip()])[0]
    if is_absent(cell):
        return math.nan
    try:
        return float(cell) if isinstance(cell, bool | int | float | np.number | np.bool_) else None
    except OverflowError:  # an integer of more than 308 digits
        return math.inf


def cell_texts(cells: pd.Series) -> list[str | None]:
    """Return a column as texts, None where a value is missing; whole numbers without decimals, lists as JSON."""
    return [cell_text(cell) for cell in cells.tolist()]


def cell_text(cell: Any) -> str | None:
    """Return the text of one cell, see :func:`cell_texts`."""
    if isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        items = [one.item() if isinstance(one, np.generic) else one for one in cell]
        items = sorted(items, key=str) if isinstance(cell, set | frozenset) else items
        return json.dumps(items, ensure_ascii=False, default=str)
    if is_absent(cell):
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell).strip()
    return None if text.lower() in MISSING_CELLS else text


def is_absent(cell: Any) -> bool:
    """Return whether a cell of a data frame is missing: None, NaN, or pandas' NA and NaT."""
    if cell is None:
        return True
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    return type(cell).__name__ in ("NAType", "NaTType")


def is_token_list(cell: Any) -> bool:
    """Return whether a cell is a list of texts: words or tags, which are a text as JSON. Numbers may be a vector."""
    if not isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        return False
    if isinstance(cell, np.ndarray) and cell.ndim != 1:
        return False
    return all(isinstance(one, str) for one in cell)


def refuse_nested(cells: pd.Series, where: str = "") -> None:
    """Refuse a column with a cell that is a dictionary, or a list of anything but texts."""
    for row, cell in enumerate(cells.tolist(), 1):
        if isinstance(cell, list | tuple | dict | set | frozenset | np.ndarray) and not is_token_list(cell):
            raise DatasetError(
                f"{where}column {str(cells.name)[:60]!r}, row {row}: the cell is a {type(cell).__name__}; make a "
                f"column of each element (for tags: sklearn.preprocessing.MultiLabelBinarizer), or leave it out "
                f"({option('drop')})"
            )
