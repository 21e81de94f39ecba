"""Columns of vectors, such as embeddings: each component becomes a column of numbers."""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.tables import is_absent
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, read_bytes, require_cells

_LOOKED_AT = 100  # cells

__all__ = ["read_vectors", "vector_columns", "with_numbers", "with_vectors"]


def with_numbers(
    frame: pd.DataFrame, name: PathLike, skip: Collection[str] = (), known: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Replace a column ``x`` of lists of numbers by columns ``x[0]``, ``x[1]``, ...

    Parameters
    ----------
    frame : DataFrame of shape (n, m)
        A column holds vectors if its first 100 cells are lists or arrays of numbers, one of them with a decimal point.
        Lists of only whole numbers may be tags.
    name : path-like
        For messages.
    skip : collection of str
        Columns that stay as they are.
    known : mapping of str to int, optional
        The vectors of a model and their lengths. Only these are replaced, and a missing vector becomes missing numbers.

    Raises
    ------
    DatasetError
        If a vector is missing or has another length than the first one, or a cell is not a vector.
    """
    if np.dtype(object) not in set(frame.dtypes):
        return frame
    parts, found = list[pd.DataFrame](), False
    for position, column in enumerate(frame.columns):
        cells = frame.iloc[:, position]
        label = str(column).strip()
        asked = label in known if known is not None else label not in skip and _holds_vectors(cells)
        if not asked or cells.dtype != object:
            parts.append(frame.iloc[:, [position]])
            continue
        found, rows = True, _matrix(cells.tolist(), label, name, None if known is None else known[label])
        names = [f"{label}[{k}]" for k in range(rows.shape[1])]
        parts.append(pd.DataFrame(rows, columns=names, index=frame.index))
    return pd.concat(parts, axis=1) if found else frame


def vector_columns(names: Sequence[str]) -> dict[str, int]:
    """Return the vectors, with their lengths, whose components are among these column names.

    Examples
    --------
    >>> from multilab.datasets.vectors import vector_columns
    >>> vector_columns(["tempo", "voice[0]", "voice[1]"])
    {'voice': 2}
    """
    lengths, given = dict[str, int](), set(names)
    for name in names:
        if name.endswith("[0]"):
            base, length = name[:-3], 1
            while f"{base}[{length}]" in given:
                length += 1
            lengths[base] = length
    return {base: length for base, length in lengths.items() if base not in given}


def read_vectors(path: PathLike, limits: Limits | None = None) -> np.ndarray:
    """Return the matrix of a ``.npy`` file as float64, a row per row of the table.

    Raises
    ------
    DatasetError
        If the file is not a ``.npy`` file with a matrix of finite numbers, or exceeds the limits.
    """
    limits = limits or Limits()
    try:
        stored = np.lib.format.open_memmap(path, mode="r")
        shape, kind = stored.shape, stored.dtype
        del stored
    except MemoryError:
        raise
    except Exception as error:  # NumPy parses the header as Python: whatever a damaged one happens to cause
        raise DatasetError(f"not a .npy file of numbers ({excerpt(str(error))})", path) from None
    if len(shape) != 2 or kind.kind not in "biuf":
        raise DatasetError(
            f"expected a matrix of numbers, a row per row of the table, got {kind} of shape {shape}", path
        )
    require_cells(*shape, "the matrix", path, limits)
    rows = np.load(io.BytesIO(read_bytes(path, limits)), allow_pickle=False).astype(np.float64)
    if not np.isfinite(rows).all():
        raise DatasetError("a number is missing or infinite", path)
    return rows


def with_vectors(frame: pd.DataFrame, rows: np.ndarray, path: PathLike | None = None) -> pd.DataFrame:
    """Return a data frame with the columns ``vectors[0]``, ``vectors[1]``, ... of a matrix.

    Raises
    ------
    DatasetError
        If the matrix has another number of rows.
    """
    if rows.ndim != 2 or len(rows) != len(frame):
        raise DatasetError(f"vectors: {len(frame)} rows need as many rows of numbers, got the shape {rows.shape}", path)
    names = [f"vectors[{k}]" for k in range(rows.shape[1])]
    return pd.concat([frame, pd.DataFrame(rows, columns=names, index=frame.index)], axis=1)


def _holds_vectors(cells: pd.Series) -> bool:
    if cells.dtype != object:
        return False
    some = list(itertools.islice((cell for cell in cells.tolist() if not is_absent(cell)), _LOOKED_AT))
    if not some or not all(isinstance(cell, list | tuple | np.ndarray) and all(map(_is_number, cell)) for cell in some):
        return False
    return any(isinstance(one, float | np.floating) for cell in some for one in cell)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _matrix(cells: Sequence[Any], column: str, name: PathLike, length: int | None) -> np.ndarray:
    lenient = length is not None
    first = length
    for row, cell in enumerate(cells, 1):
        if is_absent(cell):
            if lenient:
                continue
            raise DatasetError(
                f"row {row}: the vector '{excerpt(column)}' is missing; leave out the row or the column", name
            )
        if not isinstance(cell, list | tuple | np.ndarray) or not all(map(_is_number, cell)):
            raise DatasetError(f"row {row}: '{excerpt(column)}' is not a list of numbers as in other rows", name)
        if first is None:
            first = len(cell)
        if len(cell) != first:
            where = "of training" if lenient else "in the rows before"
            raise DatasetError(
                f"row {row}: the vector '{excerpt(column)}' has {len(cell)} numbers, but those {where} have {first}",
                name,
            )
    rows = np.full((len(cells), first or 0), np.nan)
    for row, cell in enumerate(cells):
        try:
            if not is_absent(cell):
                rows[row] = cell
        except OverflowError:  # an integer of more than 308 digits
            raise DatasetError(f"row {row + 1}: '{excerpt(column)}' has a number that is not finite", name) from None
    return rows
