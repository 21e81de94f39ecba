"""Cells of a table column as numbers or texts, by the rules of the readers of files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.core.text import excerpt
from multilab.datasets.cell_coding import MISSING_CELLS, cell_value
from multilab.datasets.errors import DatasetError

if TYPE_CHECKING:
    import pandas as pd


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
    """Return the number of a cell, NaN if it is missing, None if it is something else."""
    if isinstance(cell, str):
        return cell_value(cell.strip())
    if is_absent(cell):
        return math.nan
    try:
        return float(cell) if isinstance(cell, bool | int | float | np.number | np.bool_) else None
    except OverflowError:  # an integer of more than 308 digits
        return math.inf


def cell_texts(cells: pd.Series) -> list[str | None]:
    """Return a column as texts, None where a value is missing; whole numbers without decimals."""
    return [_text(cell) for cell in cells.tolist()]


def _text(cell: Any) -> str | None:
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


def refuse_nested(cells: pd.Series, where: str = "") -> None:
    """Refuse a column with a cell that is a list, a dictionary or an array."""
    for row, cell in enumerate(cells.tolist(), 1):
        if isinstance(cell, list | tuple | dict | set | frozenset | np.ndarray):
            raise DatasetError(
                f"{where}column {str(cells.name)[:60]!r}, row {row}: the cell is a {type(cell).__name__}; make a "
                "column of each element (for tags: sklearn.preprocessing.MultiLabelBinarizer), or leave it out (drop)"
            )
