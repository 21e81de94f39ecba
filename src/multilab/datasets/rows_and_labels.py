"""Rows and labels as users pass them: a file or a data frame, and labels by the names of its columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.messages import did_you_mean, unknown_name
from multilab.core.tables import pandas_frame
from multilab.core.tags import tag_columns
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.frames import Rows, tidy
from multilab.datasets.labels import choose_labels
from multilab.datasets.options import Reading
from multilab.datasets.reading import read_rows
from multilab.datasets.table_cells import cell_texts
from multilab.datasets.tables import choose_kinds, table_of

__all__ = ["columns_named", "is_path", "labels_by_name", "names_columns", "rows_of"]

_ROW = "row number"


def is_path(value: Any) -> bool:
    """Return whether an argument is the path of a file."""
    return isinstance(value, str | os.PathLike)


def rows_of(X: Any, texts: Collection[Any] = (), columns: Mapping[str, str] | None = None) -> Any:
    """Return a file, or a data frame of polars or Arrow, as a data frame of pandas; a matrix as it is.

    Parameters
    ----------
    X : path-like, data frame or matrix of n rows
    texts : collection
        Names of columns of a file that are read as texts, such as those of tags; what is no text is ignored.
    columns : mapping of str to str, optional
        Kinds of columns of a file, see `multilab.datasets.kinds.Kind`.

    Raises
    ------
    DatasetError
        If the file cannot be read, or numbers in it can be read in several ways.
    """
    if is_path(X):
        kinds = {**(columns or {}), **{name: "text" for name in texts if isinstance(name, str)}}
        rows = read_rows(X, Reading(columns=kinds))
        doubtful = [name for name in rows.grouped if name not in kinds]
        choose_kinds(rows.frame[doubtful], rows.grouped, {}, X)
        return rows.frame
    X = pandas_frame(X)
    return X.rename(columns=lambda name: str(name).strip()) if isinstance(X, pd.DataFrame) else X


def columns_named(X: Any, **arguments: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """Return X without the columns that arguments name, the arguments with these columns, and the names.

    Raises
    ------
    DatasetError
        If an argument names a column that X does not have.
    """
    names = list[str]()
    for argument, column in arguments.items():
        if isinstance(column, str):
            column = column.strip()
            if not isinstance(X, pd.DataFrame):
                raise DatasetError(f"{argument}={column!r} names a column, so X must be a data frame or a file")
            if column not in X.columns:
                raise DatasetError(f"{argument}: {unknown_name('column', column, map(str, X.columns))}")
            arguments[argument] = X[column]
            names.append(column)
    return (X.drop(columns=names) if names else X), arguments, names


def names_columns(X: Any, y: Any) -> bool:
    """Return whether y is the name of a column of X, or a list of names; a text for each row is a list of tags."""
    if isinstance(y, str):
        return True
    if not isinstance(y, list | tuple) or not y or not all(isinstance(name, str) for name in y):
        return False
    return isinstance(X, pd.DataFrame) and (len(y) != len(X) or set(map(str.strip, y)) <= set(X.columns))


def labels_by_name(X: Any, y: Any, known: Collection[str] | None = None) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return a data frame without its columns of labels, the labels, and the column of tags.

    Parameters
    ----------
    X : DataFrame of shape (n, m)
    y : str or list of str
        The column of tags, as lists or as texts such as ``red|blue``; or the names of label columns, or patterns such
        as ``mood_*``, also one alone.
    known : collection of str, optional
        The labels of a model: the columns of the result. Other tags are left out, with one warning that counts them.

    Returns
    -------
    features : DataFrame
    labels : DataFrame of shape (n, q)
        0 and 1; NaN where a label was not observed.
    tags : str
        The column of tags, empty without one.

    Raises
    ------
    DatasetError
        If X is not a data frame, there is no such column, or its cells are not labels.
    """
    if not isinstance(X, pd.DataFrame):
        raise DatasetError(f"y={y!r} names a column, so X must be a data frame or a file, not {type(X).__name__}")
    columns = [str(name) for name in X.columns]
    if isinstance(y, str) and not any(mark in y for mark in "*?") and y.strip() not in (known or ()):
        name = y.strip()
        if name not in columns:
            raise DatasetError(f"'{excerpt(name)}' is not a column{did_you_mean(name, columns)}", "X")
        try:
            labels = tag_columns([text or "" for text in cell_texts(X[name])], known, name=f"tags of '{excerpt(name)}'")
        except ValueError as error:
            raise DatasetError(str(error), "X") from None
        return X.drop(columns=name), labels, name
    chosen = choose_labels(Reading(label_columns=[y] if isinstance(y, str) else list(y)), columns, "X")
    names = [columns[k] for k in chosen]
    rows = tidy(X[names].assign(**{_ROW: 0.0}), "X")
    table = table_of(Rows(rows), Reading(label_columns=names, missing_labels="keep"), "X")
    values = np.where(table.Y < 0, np.nan, table.Y) if (table.Y < 0).any() else table.Y
    labels = pd.DataFrame(values, columns=table.label_names)
    if known is not None:
        if absent := [name for name in known if name not in labels]:
            raise DatasetError(f"there is no column for the label '{excerpt(absent[0])}' of the model", "X")
        labels = labels[list(known)]
    return X.drop(columns=names), labels, ""
