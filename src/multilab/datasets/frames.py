"""Data frames as tables, and the tables of files as data frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api import types

from multilab.core.files import PathLike
from multilab.datasets.cells import MISSING_LABEL_HINT, are_labels, coded_cells, recoded, refuse_nested
from multilab.datasets.columns import LabelOptions, TableColumn, canonical_csr, dropped_note, positions_left
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, name_memory_errors, require_cells
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import read_content


def table_of_frame(
    frame: pd.DataFrame, labels: Sequence[str] | str, drop: Sequence[str], missing_labels: bool, name: str
) -> CodedTable:
    """Return a data frame as the readers of files return a table.

    Parameters
    ----------
    frame : DataFrame of shape (n, m)
        Columns of numbers, booleans, text or categories; the index is left out. If all are sparse, so is the table.
    labels : sequence of str, or text with commas
        Names of the label columns, or patterns.
    drop : sequence of str
        Names of columns that are left out.
    missing_labels : bool
        Whether a label may be missing.
    name : str
        For messages.

    Raises
    ------
    DatasetError
        Not a data frame with rows and different column names, a column of another type, a list as a cell, an
        infinite value, or a value of a label other than 0 and 1.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DatasetError(f"{name}: expected a pandas.DataFrame, got {type(frame).__name__}")
    if isinstance(frame.columns, pd.MultiIndex):
        raise DatasetError(f"{name}: columns have names of several levels: join them first")
    if not len(frame):
        raise DatasetError(f"{name}: the table has no row")
    names = [str(column).strip() for column in frame.columns]
    if len(set(names)) < len(names):
        twice = next(column for column, count in Counter(names).items() if count > 1)
        raise DatasetError(f"{name}: column {twice[:60]!r} occurs twice")
    kept = positions_left(names, drop, name)
    columns = [TableColumn(names[j], None, 1) for j in kept]
    wanted = labels.split(",") if isinstance(labels, str) else labels
    chosen = LabelOptions(label_columns=[str(one).strip() for one in wanted]).choose(columns, name)
    is_label = set(chosen.tolist())
    series = [frame.iloc[:, j] for j in kept]
    limits = Limits()
    if all(isinstance(column.dtype, pd.SparseDtype) and column.dtype.fill_value == 0 for column in series):
        values: Any = canonical_csr(sp.csr_array(frame.iloc[:, kept].sparse.to_coo()))
        for k, column in enumerate(series):
            _check_numbers(np.asarray(column.array.sp_values, dtype=float), names[kept[k]], k in is_label, False, name)
    else:
        require_cells(len(frame), len(kept), "the table", name, limits)
        values = np.empty((len(frame), len(kept)))
        for k, column in enumerate(series):
            columns[k], values[:, k] = _column(column, columns[k], k in is_label, missing_labels, name)
    return CodedTable.split(values, columns, chosen, name, limits, dropped_note(drop))


def _column(
    series: pd.Series, column: TableColumn, is_label: bool, missing_labels: bool, name: str
) -> tuple[TableColumn, np.ndarray]:
    """Return a column, nominal if it holds text, and its numbers or codes, NaN where a value is missing."""
    kind = series.dtype.subtype if isinstance(series.dtype, pd.SparseDtype) else series.dtype
    if isinstance(kind, pd.CategoricalDtype) or types.is_object_dtype(kind) or types.is_string_dtype(kind):
        refuse_nested(series, f"{name}: ")
        cells = ["" if absent else str(cell).strip() for cell, absent in zip(series, series.isna(), strict=True)]
        kind_of_column = "label" if is_label else "feature"
        texts, codes = recoded(cells, slice(None), str)
        column, values, fault = coded_cells(texts, codes, column.name, kind_of_column, True, missing_labels)
        if fault:
            raise DatasetError(f"{name}, row {fault[0] + 1}: {fault[1]}")
        return column, values
    if not (types.is_bool_dtype(kind) or types.is_integer_dtype(kind) or types.is_float_dtype(kind)):
        raise DatasetError(
            f"{name}: column {column.name[:60]!r} is of type {series.dtype}, expected numbers, booleans or text; "
            "convert it or leave it out (drop)"
        )
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_numbers(values, column.name, is_label, missing_labels, name)
    return column, values


def _check_numbers(values: np.ndarray, column: str, is_label: bool, missing_labels: bool, name: str) -> None:
    if np.isinf(values).any():
        raise DatasetError(f"{name}: column {column[:60]!r} has an infinite value")
    if is_label and not (valid := are_labels(values, missing_labels)).all():
        wrong = values[~valid][0]
        what = (
            f"is missing in some rows{MISSING_LABEL_HINT}"
            if np.isnan(wrong)
            else f"is {wrong:g} in some rows, expected 0 or 1"
        )
        raise DatasetError(f"{name}: label {column[:60]!r} {what}")


class RawTable(NamedTuple):
    """Features and labels of a file as data frames, and what the reader did."""

    features: pd.DataFrame
    labels: pd.DataFrame
    notes: tuple[str, ...]


@name_memory_errors
def read_frames(
    path: PathLike, *, labelled: bool = True, text_columns: Collection[str] = (), **options: Any
) -> RawTable:
    r"""Read one data file as data frames, before encoding.

    :func:`multilab.datasets.read` encodes the same table: text becomes one-hot columns and missing values are imputed,
    as its options ``text`` and ``missing`` say. Here text and missing values stay as they are.

    Parameters
    ----------
    path : path-like
        The file, in any format of :func:`multilab.datasets.read`.
    labelled : bool, default True
        False for rows without label columns: no option may then choose labels, and every column is a feature.
    text_columns : collection of str
        Names of columns of a CSV file that are read as text whatever they hold. Otherwise a column is text if most of
        its different values are neither numbers nor ``true`` and ``false``, which may differ from file to file.
    **options
        Options of :func:`multilab.datasets.read` other than ``text`` and ``missing``.

    Returns
    -------
    features : DataFrame of shape (n, number of features before one-hot coding)
        In the order of the file. A numeric feature is float64, NaN where a value is missing (sparse for sparse rows);
        a text or nominal feature is categorical, and its categories are the values in the order of the one-hot
        columns, which are called ``name=value``. A nominal feature with the values 0 and 1 is numeric.
    labels : DataFrame of shape (n, q)
        0 and 1 as uint8; int8 with -1 where labels were not observed.
    notes : tuple of str
        Actions of the reader, such as columns left out.

    Raises
    ------
    DatasetError
        As :func:`multilab.datasets.read`, but neither for text nor for missing feature values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read_frames
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n")
    >>> table = read_frames(path, labels_last=2)
    >>> table.features["tempo"].tolist(), table.features["key"].tolist(), list(table.labels)
    ([120.0, nan], ['C', 'D'], ['happy', 'sad'])
    """
    chosen = {name: options.pop(name) for name in LabelOptions.__dataclass_fields__ if name in options}
    content = read_content(
        path, LabelOptions(**chosen) if labelled else None, text="keep", text_columns=text_columns, **options
    )
    return as_frames(content)


def as_frames(content: CodedTable | RawData) -> RawTable:
    """Return what `multilab.datasets.reading.read_content` returns as data frames."""
    if isinstance(content, CodedTable):
        return RawTable(*content.frames(), tuple(content.notes))
    return RawTable(*_frames(content), content.notes)


def _frames(raw: RawData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the matrices of a format without named columns as data frames."""
    features, labels = (
        pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)
        if sp.issparse(matrix)
        else pd.DataFrame(np.asarray(matrix), columns=names)
        for matrix, names in ((raw.X, raw.feature_names), (raw.Y, raw.label_names))
    )
    return features, labels
