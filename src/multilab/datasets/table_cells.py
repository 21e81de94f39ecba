"""Single cells of a table: numbers, missing values and texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.core.tables import is_absent
from multilab.core.tags import MISSING_CELLS
from multilab.core.text import excerpt
from multilab.datasets.columns import to_number
from multilab.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd

_TRUTH = {"true": 1.0, "false": 0.0}
MAX_CATEGORIES = 1000  # different texts of a column; more are free text or identifiers
MAX_CATEGORY = 100  # characters
COMMA_NUMBER = re.compile(r"[-+]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?")
"""Number with a decimal comma, where points may separate thousands: not in 0.001."""
POINT_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")
"""Number with a decimal point, where commas may separate thousands."""
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?: .*)?")


def number_in(cell: str) -> float | None:
    """Return the number in a cell, 1 and 0 for true and false, NaN if it is missing, None if it is anything else."""
    number = to_number(cell)
    if not math.isnan(number):
        return number
    lower = cell.lower() if len(cell) < 6 else cell
    return number if lower in MISSING_CELLS else _TRUTH.get(lower)


def cell_values(cells: Sequence[str]) -> list[float | None]:
    """Return `number_in` of each cell."""
    return list(map(number_in, cells))


def look_like_dates(values: Sequence[str]) -> bool:
    """Return whether all texts of a column look like dates."""
    return bool(values) and all(_DATE.fullmatch(value) for value in values)


def cell_numbers(cells: pd.Series, name: str) -> np.ndarray:
    """Return a column as float64, NaN where a value is missing.

    Texts are read as by :func:`multilab.datasets.csv_files.read_csv`: ``true`` is 1, an empty one is missing.

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


def is_token_list(cell: Any) -> bool:
    """Return whether a cell is a list of texts: words or tags, which are a text as JSON. Numbers may be a vector."""
    if not isinstance(cell, list | tuple | set | frozenset | np.ndarray):
        return False
    if isinstance(cell, np.ndarray) and cell.ndim != 1:
        return False
    return all(isinstance(one, str) for one in cell)


def refuse_nested(cells: pd.Series, path: PathLike | None = None) -> None:
    """Refuse a column with a cell that is a dictionary, or a list of anything but texts."""
    for row, cell in enumerate(cells.tolist(), 1):
        if isinstance(cell, list | tuple | dict | set | frozenset | np.ndarray) and not is_token_list(cell):
            raise DatasetError(
                f"column {str(cells.name)[:60]!r}, row {row}: the cell is a {type(cell).__name__}; make a "
                f"column of each element (for tags: sklearn.preprocessing.MultiLabelBinarizer), or leave it out "
                f"({option('drop')})",
                path,
            )
