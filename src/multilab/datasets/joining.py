"""Tables in several files: labels in a second one, joined by a key, and the test rows of the official split."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option
from multilab.core.text import excerpt, listed
from multilab.datasets.columns import LabelOptions, dropped_note
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits
from multilab.datasets.frames import table_of_frame
from multilab.datasets.labels import TagOptions, tagged
from multilab.datasets.table_cells import cell_texts
from multilab.datasets.vectors import read_vectors, with_vectors

__all__ = ["FurtherTables", "with_groups"]


@dataclass(frozen=True)
class FurtherTables:
    """Tables that belong to a first one: files, or data frames.

    Attributes
    ----------
    test : path-like, DataFrame or None
        Rows with the same columns: the test rows of the split "official".
    join : path-like, DataFrame or None
        Columns of the same rows, labels as a rule.
    on : str or None
        Name of the column that joins them, in both tables; it is no feature.
    vectors : path-like, ndarray of shape (n, d), or None
        A ``.npy`` file of numbers for all rows, in their order: d columns ``vectors[0]``, ``vectors[1]``, ...
    """

    test: Any = None
    join: Any = None
    on: str | None = None
    vectors: Any = None

    def given(self) -> bool:
        """Return whether there is any.

        Raises
        ------
        DatasetError
            There is a table to join and no key, or a key and no table.
        """
        if (self.join is None) != (self.on is None):
            raise DatasetError(
                f"{option('join')} and {option('on')} belong together: the file of the labels, and the column "
                "that both files have"
            )
        return self.test is not None or self.join is not None or self.vectors is not None

    def table(
        self,
        first: pd.DataFrame,
        name: PathLike,
        frame_of: Callable[[Any], pd.DataFrame],
        labels: LabelOptions | None,
        of_tags: TagOptions,
        *,
        groups: str | None = None,
        drop: Sequence[str] = (),
        missing_labels: bool = False,
        text_columns: Collection[str] = (),
        limits: Limits | None = None,
    ) -> CodedTable:
        """Return all rows with all columns, and their labels and groups.

        Parameters
        ----------
        first : DataFrame
            The rows of the first table.
        name : path-like
            Its file, for messages.
        frame_of : callable
            Returns the data frame of ``test`` or ``join``.
        labels, of_tags, drop, missing_labels, text_columns, limits
            As for `multilab.datasets.frames.table_of_frame`.
        groups : str, optional
            See :func:`with_groups`.

        Raises
        ------
        DatasetError
            The test table has other columns; the key is missing in a table or a row, or occurs twice; a row has no
            labels; both tables have a column of one name.
        """
        long = of_tags.item is not None
        if long and self.on is not None and of_tags.item != self.on:
            raise DatasetError(
                f"{option('item')} must be the key, {self.on!r}, if the tags are in the joined table", name
            )
        frame, notes, train_rows = _without(first, drop), list[str](), None
        known = {str(column).strip() for column in first.columns}
        if self.test is not None:
            test, train_rows = frame_of(self.test), len(frame)
            known |= {str(column).strip() for column in test.columns}
            test = _without(test, drop)
            _require_same_columns(frame, test, name, _name(self.test, "test"))
            notes.append(f"split official: {train_rows} training rows, {len(test)} test rows")
            frame = _stacked(frame, test[list(frame.columns)])
        if self.vectors is not None:
            is_file = isinstance(self.vectors, str | os.PathLike)
            numbers = read_vectors(self.vectors, limits) if is_file else np.asarray(self.vectors, dtype=np.float64)
            frame = with_vectors(frame, numbers, self.vectors if is_file else name)
        if self.join is not None:
            other, key = frame_of(self.join), str(self.on)
            known |= {str(column).strip() for column in other.columns}
            other = _without(other, [one for one in drop if one != key])
            frame, rows, joined = _joined(frame, other, key, (_name(name, "frame"), _name(self.join, "join")), long)
            train_rows = train_rows and sum(row < train_rows for row in rows)
            frame = frame if key in (of_tags.item, groups) else frame.drop(columns=key)
            notes += joined
        own = {*text_columns, *of_tags.columns, *([groups] if groups else [])}
        absent = [one for one in drop if one not in known]
        chosen = None if of_tags.given() else labels
        table = table_of_frame(frame, chosen, absent, missing_labels, name, limits, own)
        table = replace(table, train_rows=train_rows, notes=(*notes, *table.notes, *dropped_note(drop)))
        return with_groups(tagged(table, of_tags) if of_tags.given() else table, groups)


def with_groups(table: CodedTable, column: str | None) -> CodedTable:
    """Return a table whose rows have groups, given by a column that is then not a feature.

    Raises
    ------
    DatasetError
        The column does not exist, is a label, or misses values; no feature is left; a group has rows in the training
        and the test set.
    """
    if column is None:
        return table
    names = [one.name for one in table.columns]
    if column not in names:
        if column in [one.name for one in table.label_columns]:
            raise DatasetError(f"groups: '{excerpt(column)}' is a label", table.path)
        raise DatasetError(f"groups: '{excerpt(column)}' is not a column{did_you_mean(column, names)}", table.path)
    if len(names) == 1:
        raise DatasetError("no feature is left besides the groups", table.path)
    j = names.index(column)
    codes, texts = np.asarray(table.values[:, [j]]).ravel(), table.columns[j].values or ()
    if absent := int(np.isnan(codes).sum()):
        row = int(np.flatnonzero(np.isnan(codes))[0]) + 1
        raise DatasetError(
            f"groups: '{excerpt(column)}' is missing in {absent} rows, the first is row {row}", table.path
        )
    groups = codes.astype(np.int64)
    if table.train_rows is not None:
        both = np.intersect1d(groups[: table.train_rows], groups[table.train_rows :])
        if len(both):
            raise DatasetError(
                f"groups: {len(both)} groups of '{excerpt(column)}' have rows in the training and in the test file, "
                f"the first is {excerpt(texts[both[0]])!r}",
                table.path,
            )
    left = [k for k in range(len(names)) if k != j]
    return replace(
        table,
        values=np.ascontiguousarray(table.values[:, left]),
        columns=[table.columns[k] for k in left],
        notes=(*table.notes, f"rows of one '{excerpt(column)}' stay together: {len(np.unique(groups))} groups"),
        groups=groups,
    )


def _name(table: Any, otherwise: str) -> str:
    return Path(table).name if isinstance(table, str | os.PathLike) else otherwise


def _without(frame: pd.DataFrame, drop: Sequence[str]) -> pd.DataFrame:
    frame = frame.rename(columns=lambda name: str(name).strip()).reset_index(drop=True)
    return frame.drop(columns=[name for name in drop if name in frame.columns])


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
            f"join: both tables have a column {excerpt(both[0])!r}: rename one, or leave both out ({option('drop')})",
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
