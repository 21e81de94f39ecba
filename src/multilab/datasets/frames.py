"""Data frames of cells as they come, and as tables have them: columns of float64, and categoricals of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import lt
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api import types

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.core.tables import is_absent, pandas_frame
from multilab.core.tags import MISSING_CELLS
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.table_cells import (
    cell_text,
    is_token_list,
    number_in,
    refuse_nested,
)
from multilab.datasets.vectors import with_numbers

__all__ = [
    "Rows",
    "as_pandas",
    "codes_of",
    "column_of_texts",
    "different",
    "is_data_frame",
    "is_text",
    "stripped",
    "text_names",
    "texts_of_column",
    "tidy",
    "with_columns",
]


_LONGEST = max(map(len, MISSING_CELLS))
LEADING_ZERO = re.compile(r"0\d+")
"""Text that is a code, such as 01234."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a file or a data frame, before the label columns are chosen.

    Attributes
    ----------
    frame : DataFrame of shape (n, m)
        A column of numbers is float64, NaN where one is missing; any other is a categorical of texts, whose categories
        are sorted. If all columns are sparse, they stay so.
    notes : tuple of str
        What the reader did.
    grouped : tuple of str
        Names of the columns of numbers whose points may separate thousands.
    line_of : callable or None
        Returns the line of a row in the file, for messages.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()
    line_of: Callable[[int], int] | None = None


def as_pandas(frame: Any, name: PathLike) -> pd.DataFrame:
    """Return a data frame of pandas, polars, Arrow or another library that narwhals knows as one of pandas.

    Raises
    ------
    DatasetError
        If it is not a data frame.
    """
    known = pandas_frame(frame)
    if not isinstance(known, pd.DataFrame):
        raise DatasetError(f"expected a data frame, got {type(frame).__name__}", name)
    return known


def is_data_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas, polars, Arrow or another library that narwhals knows."""
    return isinstance(value, pd.DataFrame) or isinstance(
        nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame
    )


def tidy(
    frame: Any,
    name: PathLike,
    limits: Limits | None = None,
    text_columns: Collection[str] = (),
    skip: Collection[str] = (),
) -> pd.DataFrame:
    """Return a data frame with columns of float64, and categoricals of texts.

    Parameters
    ----------
    frame : DataFrame of shape (n, m)
        Columns of numbers, booleans, text, categories, dates, vectors (lists of numbers), or lists of words, which are
        text; the index is left out.
    name : path-like
        For messages.
    limits : Limits, optional
    text_columns : collection of str
        Names of columns that are text, whatever their values.
    skip : collection of str
        Names of columns that are left out, and may hold anything.

    Raises
    ------
    DatasetError
        If the frame has no rows or equal column names, a column has another type, a cell is a dictionary or a list of
        lists, or a value is infinite.
    """
    frame = as_pandas(frame, name)
    if isinstance(frame.columns, pd.MultiIndex):
        raise DatasetError("columns have names of several levels; join them first", name)
    if not len(frame):
        raise DatasetError("the table has no row", name)
    frame = with_numbers(frame, name, {*text_columns, *skip})
    names = [str(column).strip() for column in frame.columns]
    if len(set(names)) < len(names):
        twice = next(column for column, count in Counter(names).items() if count > 1)
        raise DatasetError(f"column {twice[:60]!r} occurs twice", name)
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    if skip:
        frame = frame.drop(columns=[column for column in names if column in skip])
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    if kinds and all(isinstance(kind, pd.SparseDtype) and kind.fill_value == 0 for kind in kinds.values()):
        for column, cells in frame.items():
            rows = cells.array.sp_index.to_int_index().indices
            _refuse_infinite(np.asarray(cells.array.sp_values, dtype=float), column, name, rows)
        return frame
    require_cells(len(frame), len(kinds), "the table", name, limits or Limits())
    others = [
        column
        for column, kind in kinds.items()
        if not (isinstance(kind, np.dtype) and kind.kind in "biuf") or column in text_columns
    ]
    columns = {column: _column(frame[column], column, column in text_columns, name) for column in others}
    frame = with_columns(frame, columns)
    _refuse_infinite_numbers(frame.drop(columns=others), name)
    return frame


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with other cells in some columns; all others are numbers, and as float64 share their memory.

    One block of many columns of numbers is kept as such: pandas takes long for each block.
    """
    parts = list[pd.DataFrame]()
    for is_other, run in groupby(enumerate(frame.columns), lambda one: one[1] in columns):
        here = dict(run)
        if is_other:
            others = {column: columns[column] for column in here.values()}
            parts.append(pd.DataFrame(others, index=frame.index, copy=False))
        else:
            parts.append(frame.iloc[:, min(here) : max(here) + 1].astype(np.float64))
    return pd.concat(parts, axis=1) if len(parts) > 1 else parts[0] if parts else frame


def column_of_texts(texts: Sequence[str], codes: np.ndarray, as_text: bool = False) -> np.ndarray | pd.Categorical:
    """Return a column of texts: of numbers if all are numbers, truth values or missing, else as categories.

    Digits with a leading zero are a code: as a number it would be another one.

    Parameters
    ----------
    texts : sequence of str
        The different texts, without blanks around them.
    codes : ndarray of int, shape (n,)
        Position of each row's text among them; -1 of a missing cell.
    as_text : bool
        Whether numbers stay texts, too.
    """
    if not as_text and (values := _all_numbers(texts)) is not None and not any(map(LEADING_ZERO.fullmatch, texts)):
        return np.array([*values, np.nan])[codes]
    present = [text for text in texts if len(text) > _LONGEST or text.lower() not in MISSING_CELLS]
    if len(present) == len(texts) and all(map(lt, texts, islice(texts, 1, None))):  # sorted
        return pd.Categorical.from_codes(codes, texts)
    present = sorted(set(present))
    position = {text: k for k, text in enumerate(present)}
    places = np.array([*(position.get(text, -1) for text in texts), -1], dtype=np.intp)
    return pd.Categorical.from_codes(places[codes], present)


def is_text(column: pd.Series) -> bool:
    """Return whether a column of a tidy frame holds texts."""
    return isinstance(column.dtype, pd.CategoricalDtype)


def text_names(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns of a tidy frame that hold texts."""
    kinds = zip(frame.columns, frame.dtypes, strict=True)
    return [name for name, kind in kinds if isinstance(kind, pd.CategoricalDtype)]


def texts_of_column(column: pd.Series) -> tuple[list[str], np.ndarray]:
    """Return the texts of a tidy column, and the position of each row's among them, -1 where it is missing."""
    if not is_text(column):
        column = pd.Series(column_of_texts(*different(cell_text(cell) or "" for cell in column.tolist()), as_text=True))
    return column.cat.categories.tolist(), column.cat.codes.to_numpy().astype(np.intp)


def codes_of(frame: pd.DataFrame) -> np.ndarray:
    """Return numbers, and positions of texts among the categories, as a matrix; NaN where a value is missing.

    The matrix of numbers alone shares its memory with the frame, if that has one block.
    """
    codes = {name: frame[name].cat.codes.to_numpy() for name in text_names(frame)}
    numbers = {name: np.where(places < 0, np.nan, places) for name, places in codes.items()}
    return with_columns(frame, numbers).to_numpy(dtype=np.float64)


def _all_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return the numbers in texts, NaN where one is missing; None if one is anything else."""
    values = list[float]()
    for text in texts:
        value = number_in(text)
        if value is None:
            return None
        values.append(value)
    return values


def different(cells: Iterable[str]) -> tuple[list[str], np.ndarray]:
    """Return the different texts among cells, and the position of each cell's."""
    positions = dict[str, int]()
    codes = np.fromiter((positions.setdefault(cell, len(positions)) for cell in cells), dtype=np.intp)
    return list(positions), codes


def stripped(texts: Sequence[str], codes: np.ndarray) -> tuple[Sequence[str], np.ndarray]:
    """Return different texts without blanks around them, and the position of each row's; -1 stays -1."""
    without = [text.strip() for text in texts]
    if without == texts:
        return texts, codes
    found, places = different(without)
    return found, np.append(places, -1)[codes]


def _column(series: pd.Series, label: str, as_text: bool, name: PathLike) -> np.ndarray | pd.Categorical:
    """Return the cells of a column as numbers or as a categorical of texts."""
    kind = series.dtype.subtype if isinstance(series.dtype, pd.SparseDtype) else series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        series = series.cat.remove_unused_categories()  # which no row has
        known = series.cat.categories.tolist()
        texts = known if all(isinstance(text, str) for text in known) else [cell_text(value) or "" for value in known]
        return column_of_texts(*stripped(texts, series.cat.codes.to_numpy()), as_text)
    if types.is_string_dtype(kind) and not types.is_object_dtype(kind):
        codes, found = pd.factorize(series, sort=True)
        return column_of_texts(*stripped(found.tolist(), codes), as_text)
    of_numbers = types.is_bool_dtype(kind) or types.is_integer_dtype(kind) or types.is_float_dtype(kind)
    if of_numbers and not as_text:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        _refuse_infinite(values, label, name)
        return values
    if not (of_numbers or types.is_object_dtype(kind) or types.is_datetime64_any_dtype(kind)):
        raise DatasetError(
            f"column {label[:60]!r} is of type {series.dtype}, expected numbers, booleans or text; convert it "
            f"or leave it out ({option('drop')})",
            name,
        )
    if not as_text:
        refuse_nested(series, name)
    text_of = cell_text if as_text or not types.is_object_dtype(kind) else _plain_text
    return column_of_texts(*different(text_of(cell) or "" for cell in series.tolist()), as_text)


def _plain_text(cell: Any) -> str | None:
    """Return the text of a cell as it is printed: 1.0 among texts stays so."""
    if is_absent(cell) or is_token_list(cell):
        return cell_text(cell)
    return str(cell).strip()


def _refuse_infinite_numbers(frame: pd.DataFrame, name: PathLike) -> None:
    """Refuse a frame of float64 with an infinite value."""
    with np.errstate(over="ignore", invalid="ignore"):
        totals = frame.sum(skipna=False).to_numpy(dtype=np.float64)
    doubtful = frame.iloc[:, np.flatnonzero(~np.isfinite(totals))]  # a value is missing there, or infinite
    if np.isinf(doubtful.to_numpy()).any():
        for column, cells in doubtful.items():
            _refuse_infinite(cells.to_numpy(), column, name)


def _refuse_infinite(values: np.ndarray, column: str, name: PathLike, rows: np.ndarray | None = None) -> None:
    """Refuse a column with an infinite value; ``rows`` are the positions of the values, if they are not of all rows."""
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        row = infinite[0] if rows is None else rows[infinite[0]]
        raise DatasetError(f"column {column[:60]!r} has an infinite value in row {row + 1}", name)
