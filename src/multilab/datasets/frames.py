"""Data frames as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api import types

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.datasets.columns import LabelOptions, TableColumn, canonical_csr, dropped_note, positions_left
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.labels import TagOptions, tagged
from multilab.datasets.table_cells import (
    are_labels,
    categories_of,
    cell_text,
    coded_cells,
    is_token_list,
    label_note,
    meaning_notes,
    missing_label_hint,
    read_label_numbers,
    recoded,
    refuse_nested,
)
from multilab.datasets.vectors import with_numbers


def table_of_frame(
    frame: pd.DataFrame,
    labels: LabelOptions | TagOptions | None,
    drop: Sequence[str],
    missing_labels: bool,
    name: PathLike,
    limits: Limits | None = None,
    text_columns: Collection[str] = (),
) -> CodedTable:
    """Return a data frame as the readers of files return a table.

    Parameters
    ----------
    frame : DataFrame of shape (n, m)
        Columns of numbers, booleans, text, categories, dates, vectors (lists of numbers), or lists of words, which are
        text; the index is left out. If all are sparse, so is the table.
    labels : LabelOptions, TagOptions or None
        Which columns are the labels, or which hold tags; None: no column is a label.
    drop : sequence of str
        Names of columns that are left out.
    missing_labels : bool
        Whether a label may be missing.
    name : path-like
        For messages.
    limits : Limits, optional
    text_columns : collection of str
        Names of columns that are text, whatever their values.

    Raises
    ------
    DatasetError
        Not a data frame with rows and different column names, a column of another type, a dictionary or a list
        of lists as a cell, an infinite value, or a value of a label other than 0 and 1.
    """
    if not isinstance(frame, pd.DataFrame):
        raise DatasetError(f"{name}: expected a pandas.DataFrame, got {type(frame).__name__}")
    if isinstance(frame.columns, pd.MultiIndex):
        raise DatasetError(f"{name}: columns have names of several levels: join them first")
    if not len(frame):
        raise DatasetError(f"{name}: the table has no row")
    tags = labels.columns if isinstance(labels, TagOptions) else ()
    frame = with_numbers(frame, name, {*text_columns, *tags, *drop})
    names = [str(column).strip() for column in frame.columns]
    if len(set(names)) < len(names):
        twice = next(column for column, count in Counter(names).items() if count > 1)
        raise DatasetError(f"{name}: column {twice[:60]!r} occurs twice")
    kept = positions_left(names, drop, name)
    columns = [TableColumn(names[j], None, 1) for j in kept]
    of_tags = labels if isinstance(labels, TagOptions) else TagOptions()
    chosen = labels.choose(columns, name) if isinstance(labels, LabelOptions) else np.empty(0, dtype=np.intp)
    is_label, as_text = set(chosen.tolist()), {*text_columns, *of_tags.columns}
    series = [frame.iloc[:, j] for j in kept]
    limits, meanings = limits or Limits(), dict[str, list[str]]()
    if all(isinstance(column.dtype, pd.SparseDtype) and column.dtype.fill_value == 0 for column in series):
        values: Any = canonical_csr(sp.csr_array(frame.iloc[:, kept].sparse.to_coo()))
        for k, column in enumerate(series):
            check_numbers(np.asarray(column.array.sp_values, dtype=float), names[kept[k]], k in is_label, False, name)
    else:
        require_cells(len(frame), len(kept), "the table", name, limits)
        values = np.empty((len(frame), len(kept)))
        for k, column in enumerate(series):
            if columns[k].name in as_text:
                texts, codes = recoded((cell_text(cell) or "" for cell in column), slice(None), str)
                columns[k], meaning = categories_of(columns[k].name, texts)
                values[:, k] = meaning[codes]
            else:
                columns[k], values[:, k], note = _column(column, columns[k], k in is_label, missing_labels, name)
                if note:
                    meanings.setdefault(note, []).append(columns[k].name)
    notes = [*meaning_notes(meanings), *dropped_note(drop, names)]
    table = CodedTable.split(values, columns, chosen, name, limits, notes)
    return tagged(table, of_tags) if of_tags.columns else table


def _column(
    series: pd.Series, column: TableColumn, is_label: bool, missing_labels: bool, name: PathLike
) -> tuple[TableColumn, np.ndarray, str]:
    """Return a column, nominal if it holds text, its numbers or codes, and how labels were read if that is not evident.

    A missing value is NaN.
    """
    kind = series.dtype.subtype if isinstance(series.dtype, pd.SparseDtype) else series.dtype
    if types.is_datetime64_any_dtype(kind) and not is_label:
        series = pd.Series([cell_text(cell) for cell in series], dtype=object)
        kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype) or types.is_object_dtype(kind) or types.is_string_dtype(kind):
        refuse_nested(series, f"{name}: ")
        if any(map(is_token_list, series)):
            series = pd.Series([cell_text(cell) if is_token_list(cell) else cell for cell in series], dtype=object)
        cells = ["" if absent else str(cell).strip() for cell, absent in zip(series, series.isna(), strict=True)]
        kind_of_column = "label" if is_label else "feature"
        texts, codes = recoded(cells, slice(None), str)
        column, values, fault = coded_cells(texts, codes, column.name, kind_of_column, True, missing_labels, True)
        if fault:
            raise DatasetError(f"{name}, row {fault[0] + 1}: {fault[1]}")
        return column, values, label_note(texts) if is_label else ""
    if not (types.is_bool_dtype(kind) or types.is_integer_dtype(kind) or types.is_float_dtype(kind)):
        raise DatasetError(
            f"{name}: column {column.name[:60]!r} is of type {series.dtype}, expected numbers, booleans or text; "
            f"convert it or leave it out ({option('drop')})"
        )
    values = series.to_numpy(dtype=np.float64, na_value=np.nan, copy=is_label)  # labels are changed in place
    note = read_label_numbers(values) if is_label else ""
    check_numbers(values, column.name, is_label, missing_labels, name)
    return column, values, note


def check_numbers(values: np.ndarray, column: str, is_label: bool, missing_labels: bool, name: PathLike) -> None:
    """Refuse infinite values, and values of a label other than 0 and 1."""
    if np.isinf(values).any():
        raise DatasetError(f"{name}: column {column[:60]!r} has an infinite value")
    if is_label and not (valid := are_labels(values, missing_labels)).all():
        wrong = values[~valid][0]
        what = (
            f"is missing in some rows{missing_label_hint()}"
            if np.isnan(wrong)
            else f"is {wrong:g} in some rows, expected 0 or 1"
        )
        raise DatasetError(f"{name}: label {column[:60]!r} {what}")
