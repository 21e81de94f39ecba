"""Values and column names of data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

NUMBERED_TAGS = "for tags that are numbers pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"


def pandas_frame(table: Any) -> Any:
    """Return a data frame of polars, Arrow or another library that narwhals knows as one of pandas.

    Anything else is returned as it is.
    """
    if table is None or isinstance(table, np.ndarray | list | tuple) or hasattr(table, "toarray"):
        return table
    if type(table).__module__.partition(".")[0] == "pandas":
        return table
    import narwhals as nw  # only here: what takes arrays needs no data frame

    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame.to_pandas() if isinstance(frame, nw.DataFrame) else table


def table_values(table: Any) -> Any:
    """Return the values of a table as an array of one number type where they are numbers.

    Parameters
    ----------
    table : array-like
        A data frame or series of any type (nullable, Arrow, category), an array, or a list. Sparse matrices and arrays
        of numbers are returned as they are.

    Returns
    -------
    ndarray or sparse matrix
        Bool, integer or float; float with NaN if a value is missing (NaN, None, ``pandas.NA``). What holds anything but
        numbers and booleans stays as it is, of type object or text.

    Raises
    ------
    ValueError
        If rows are of unequal length, or cells are lists.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.core.tables import table_values
    >>> table_values(pd.DataFrame({"a": [1, 0]}, dtype="Int8")).dtype
    dtype('int8')
    >>> table_values(pd.DataFrame({"a": [True, None]}, dtype="boolean"))
    array([[ 1.],
           [nan]])
    """
    if hasattr(table, "toarray"):
        return table
    try:
        values = np.asarray(table)
    except ValueError:
        raise ValueError(f"rows of unequal length; {NUMBERED_TAGS}") from None
    if values.dtype == object and values.ndim == 1 and any(isinstance(cell, list | tuple | set) for cell in values):
        raise ValueError(f"the cells are lists; {NUMBERED_TAGS}")
    if values.dtype != object or not values.size or not values.ndim:  # of None or a text, no dimension
        return values
    import pandas as pd  # only here: half a second at the import of every method otherwise

    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(values.reshape(len(values), -1))
    if isinstance(table, pd.Series):
        frame = table.to_frame()
    types = [_number_type(frame.iloc[:, column], pd.api.types.infer_dtype) for column in range(frame.shape[1])]
    known = [kind for kind in types if kind is not None]
    if len(known) < len(types):
        return values
    missing = frame.isna().to_numpy().reshape(values.shape)
    if not missing.any():
        return values.astype(np.result_type(*known))
    numbers = np.full(values.shape, np.nan)
    numbers[~missing] = values[~missing].astype(np.float64)
    return numbers


def _number_type(column: Any, infer_type: Callable[..., str]) -> np.dtype[Any] | None:
    """Return the NumPy type of a column of a frame, or None if it holds anything but numbers and booleans."""
    dtype = column.dtype
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    dtype = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))  # nullable and Arrow; sparse
    if dtype.kind == "O":
        kinds = {"boolean": bool, "integer": int, "floating": float, "mixed-integer-float": float, "empty": float}
        kind = kinds.get(infer_type(column, skipna=True))
        dtype = None if kind is None else np.dtype(kind)
    return np.dtype(dtype) if dtype is not None and dtype.kind in "biuf" else None


def is_absent(cell: Any) -> bool:
    """Return whether a cell of a data frame is missing: None, NaN, or pandas' NA and NaT."""
    if cell is None:
        return True
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    return type(cell).__name__ in ("NAType", "NaTType")


def in_another_order(first: Iterable[Any] | None, second: Iterable[Any] | None) -> bool:
    """Return whether two lists hold the same column names in another order; False if one of them is None.

    Examples
    --------
    >>> from multilab.core.tables import in_another_order
    >>> in_another_order(["a", "b"], ["b", "a"])
    True
    """
    if first is None or second is None:
        return False
    names = list(first), list(second)
    return names[0] != names[1] and sorted(map(str, names[0])) == sorted(map(str, names[1]))
