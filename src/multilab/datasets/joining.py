"""Several tables as one: further rows for testing, columns of the same rows, vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option
from multilab.core.text import excerpt, listed
from multilab.datasets.columns import dropped_note, positions_left
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits
from multilab.datasets.frames import Rows, is_text, tidy
from multilab.datasets.options import Reading
from multilab.datasets.table_cells import cell_texts
from multilab.datasets.vectors import read_vectors, with_vectors

__all__ = ["joined_rows"]


def joined_rows(
    first: Rows,
    reading: Reading,
    name: PathLike,
    rows_of: Callable[[Any], Rows],
    limits: Limits | None = None,
) -> tuple[Rows, int | None]:
    """Return all rows of several tables with all columns, and the number of training rows.

    Parameters
    ----------
    first : Rows
        Of the first table, with the columns that are to be left out.
    reading : Reading
        With ``test``, ``join`` or ``vectors``: files, data frames or a matrix.
    name : path-like
        Of the first table, for messages.
    rows_of : callable
        Returns the rows of ``test`` or ``join``.
    limits : Limits, optional

    Raises
    ------
    DatasetError
        If the test table has other columns, the key is missing in a table or a row or occurs twice, a row has no
        labels, or both tables have a column of the same name.
    """
    frame, notes, train_rows, parts = _without(first.frame, reading.dropped), list[str](), None, [first]
    if reading.test is not None:
        parts.append(rows_of(reading.test))
        test, train_rows = _without(parts[-1].frame, reading.dropped), len(frame)
        _require_same_columns(frame, test, name, _name(reading.test, "test"))
        notes.append(f"split official: {train_rows} training rows, {len(test)} test rows")
        frame = _stacked(frame, test[list(frame.columns)])
    if reading.vectors is not None:
        is_file = isinstance(reading.vectors, str | os.PathLike)
        numbers = read_vectors(reading.vectors, limits) if is_file else np.asarray(reading.vectors, dtype=np.float64)
        frame = with_vectors(frame, numbers, reading.vectors if is_file else name)
    if reading.join is not None:
        parts.append(rows_of(reading.join))
        long, key = reading.item is not None, str(reading.on)
        names = (_name(name, "frame"), _name(reading.join, "join"))
        other = _without(parts[-1].frame, [one for one in reading.dropped if one != key])
        frame, rows, joined = _joined(frame, other, key, names, long)
        train_rows = train_rows and sum(row < train_rows for row in rows)
        frame = frame if key in (reading.item, reading.groups) else frame.drop(columns=key)
        notes += joined
    known = {column for part in parts for column in part.frame.columns}
    positions_left(sorted(known), reading.dropped, name)  # refuses a column that is in no table
    of_files = dict.fromkeys(note for part in parts for note in part.notes)
    grouped = tuple(one for part in parts for one in part.grouped if one in set(frame.columns))
    texts = {column for part in parts for column, cells in part.frame.items() if is_text(cells)}
    frame = tidy(frame, name, limits, reading.text_columns | texts)
    return Rows(frame, (*of_files, *notes, *dropped_note(reading.dropped)), grouped), train_rows


def _without(frame: pd.DataFrame, drop: Sequence[str]) -> pd.DataFrame:
    return frame.drop(columns=[name for name in drop if name in frame.columns])


def _name(table: Any, otherwise: str) -> str:
    return Path(table).name if isinstance(table, str | os.PathLike) else otherwise


def _stacked(first: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of both; numbers become texts, 1 and not 1.0, where the other table has texts."""
    for name in first.columns:
        of_numbers = [frame[name].dtype.kind in "biuf" for frame in (first, test)]
        if of_numbers == [True, False]:
            first = first.assign(**{name: cell_texts(first[name])})
        elif of_numbers == [False, True]:
            test = test.assign(**{name: cell_texts(test[name])})
    return pd.concat([first, test], ignore_index=True)


def _require_same_columns(first: pd.DataFrame, test: pd.DataFrame, name: PathLike, test_name: str) -> None:
    mine, theirs = list(first.columns), list(test.columns)
    absent, more = [one for one in mine if one not in theirs], [one for one in theirs if one not in mine]
    if absent:
        raise DatasetError(f"test: {test_name} lacks columns: {listed(repr(excerpt(one)) for one in absent)}", name)
    if more:
        raise DatasetError(
            f"test: {test_name} has more columns: {listed(repr(excerpt(one)) for one in more)}; "
            f"leave them out ({option('drop')})",
            name,
        )


def _joined(
    first: pd.DataFrame, other: pd.DataFrame, on: str, names: tuple[str, str], long: bool
) -> tuple[pd.DataFrame, list[int], list[str]]:
    """Return the first table with the columns of the other one, which row each was, and notes."""
    keys, theirs = _keys(first, on, names[0], unique=True), _keys(other, on, names[1], unique=not long)
    if both := [one for one in other.columns if one in first.columns and one != on]:
        raise DatasetError(
            f"join: both tables have a column {excerpt(both[0])!r}; rename one, or leave both out ({option('drop')})",
            names[1],
        )
    rows = dict[str, list[int]]()
    for row, key in enumerate(theirs):
        rows.setdefault(key, []).append(row)
    absent = [key for key in keys if key not in rows]
    if absent and (not long or len(absent) == len(keys)):
        raise DatasetError(
            f"join: {len(absent)} of {len(keys)} rows of {names[0]} are not in {names[1]}, the first with the key "
            f"{on}={excerpt(absent[0])!r}",
            names[1],
        )
    nothing = len(other)  # the position of a row without any value, for items without tags
    pairs = [(row, at) for row, key in enumerate(keys) for at in rows.get(key, [nothing])]
    left, right = map(list, zip(*pairs, strict=True))
    columns = other.drop(columns=on).reindex(range(nothing + 1 if absent else nothing)).iloc[right]
    merged = pd.concat([first.iloc[left].reset_index(drop=True), columns.reset_index(drop=True)], axis=1)
    unused = len(rows.keys() - set(keys))
    return merged, left, [f"join: {unused} keys of {names[1]} are in no row of {names[0]}"] if unused else []


def _keys(frame: pd.DataFrame, on: str, name: str, unique: bool) -> list[str]:
    """Return the keys of all rows as texts."""
    if on not in frame.columns:
        raise DatasetError(f"on: '{excerpt(on)}' is not a column{did_you_mean(on, list(frame.columns))}", name)
    keys, seen = cell_texts(frame[on]), dict[str, int]()
    for row, key in enumerate(keys):
        if key is None:
            raise DatasetError(f"the key '{excerpt(on)}' is missing in row {row + 1}", name)
        if seen.setdefault(key, row) != row and unique:
            twice = f"{excerpt(key)!r} is in rows {seen[key] + 1} and {row + 1}"
            raise DatasetError(f"the key '{excerpt(on)}' must be different in all rows: {twice}", name)
    return [str(key) for key in keys]
