"""Tables: a data frame with its labels, groups and kinds of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option, unknown_name
from multilab.core.text import excerpt, listed
from multilab.datasets.columns import canonical_csr
from multilab.datasets.embeddings import embedded_frame
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, require_cells
from multilab.datasets.frames import Rows, text_names, texts_of_column
from multilab.datasets.kinds import Kind
from multilab.datasets.labels import choose_labels, label_values, meaning_notes, tags_of
from multilab.datasets.options import Reading
from multilab.datasets.raw_data import RawData

__all__ = ["table_of", "with_kinds"]


def table_of(
    rows: Rows, reading: Reading, path: PathLike, limits: Limits | None = None, train_rows: int | None = None
) -> RawData:
    """Return the rows of a file or a data frame with their labels and groups.

    Parameters
    ----------
    rows : Rows
        Without the columns that are left out.
    reading : Reading
        Which columns are labels, or hold tags; the column of groups.
    path : path-like
        For messages.
    limits : Limits, optional
    train_rows : int, optional
        Number of the first rows that are training rows.

    Raises
    ------
    DatasetError
        If a column does not exist, no feature or no label is left, a cell of a label column is not a label, or a group
        has rows in both the training and the test set.
    """
    limits, frame, notes = limits or Limits(), rows.frame, list(rows.notes)
    if reading.tags is not None or reading.tag is not None:
        features, labels, names, train_rows, further = tags_of(frame, reading, path, limits, train_rows)
        notes += further
    else:
        labels, names, further = _label_columns(rows, reading, path, train_rows)
        features = frame.drop(columns=names)
        notes = [*notes[: len(rows.notes)], *further]
    groups = None
    if reading.groups is not None:
        features, groups, note = _with_groups(features, reading.groups, names, train_rows, path)
        notes.append(note)
    sparse = bool(len(features.columns)) and all(isinstance(kind, pd.SparseDtype) for kind in features.dtypes)
    return RawData(
        X=canonical_csr(sp.csr_array(features.sparse.to_coo())) if sparse else features,
        Y=label_matrix(labels, path, limits),
        feature_names=list(features.columns),
        label_names=names,
        original_features=len(features.columns),
        nominal_features=len(text_names(features)),
        missing_values=0 if sparse else int(features.isna().to_numpy().sum()),
        notes=tuple(notes),
        train_rows=train_rows,
        groups=groups,
        grouped=tuple(name for name in rows.grouped if name in set(features.columns)),
    )


def label_matrix(values: Any, path: PathLike, limits: Limits) -> np.ndarray:
    """Return labels (0, 1 or NaN) of shape (n, q) as uint8, or as int8 with -1 where some were not observed."""
    rows, labels = values.shape
    require_cells(rows, labels, "the label matrix", path, limits, itemsize=1)
    if not np.isnan(values.data if sp.issparse(values) else values).any():
        codes = values.astype(np.uint8)
        return np.ascontiguousarray(codes.toarray() if sp.issparse(codes) else codes)
    dense = values.toarray() if sp.issparse(values) else values
    return np.ascontiguousarray(np.where(np.isnan(dense), -1, dense).astype(np.int8))


def with_kinds(raw: RawData, columns: Mapping[str, str], path: PathLike, *, complete: bool = False) -> RawData:
    """Return a table with the kinds of its columns, and numbers in the place of columns that are embedded.

    Parameters
    ----------
    raw : RawData
        A table.
    columns : mapping of str to str
        Kinds of columns. The other kinds are recognised, but nominal attributes of ARFF are categories.
    path : path-like
        For messages.
    complete : bool, default False
        Whether every column must be among ``columns``, as in a card.

    Raises
    ------
    DatasetError
        If a column does not exist, has no kind, or can be read in several ways.
    """
    X, given, embeddings = embedded_frame(raw.X, columns, path)
    if complete and (absent := [name for name in X.columns if name not in given and not _embedded(name, embeddings)]):
        raise DatasetError(
            f"column '{absent[0][:60]}' has no kind; name its kind in {option('columns')}, or check the file", path
        )
    declared = {name: "category" for name, *_ in raw.nominal if name in X}  # 1 and 2 among the values are no numbers
    kinds = choose_kinds(X, raw.grouped, {**declared, **given}, path)
    return replace(
        raw,
        X=X,
        feature_names=list(X.columns),
        original_features=len(X.columns),
        nominal=(),  # the kinds say it
        kinds=kinds,
        embeddings=embeddings,
        notes=(*raw.notes, *_unreadable(X, kinds)),
    )


def _embedded(name: str, embeddings: Mapping[str, str]) -> bool:
    return name.partition("[")[0] in embeddings


_DOUBTS = 3  # columns that a message names


def choose_kinds(
    frame: pd.DataFrame, grouped: tuple[str, ...], given: Mapping[str, str], path: PathLike
) -> dict[str, Kind]:
    """Return the kinds of the columns of a tidy frame.

    Parameters
    ----------
    frame : DataFrame
    grouped : tuple of str
        Columns of numbers whose points may separate thousands.
    given : mapping of str to str
        Kinds of columns by name, which are not looked at.
    path : path-like

    Raises
    ------
    DatasetError
        If several readings of a column remain, or most of its cells are numbers but too many are not.
    """
    names, number = list(frame.columns), Kind("number")
    kinds = dict.fromkeys(names, number)
    for name, kind in given.items():
        if name not in kinds:
            raise DatasetError(f"columns: {unknown_name('feature column', name, names)}", path)
        kinds[name] = Kind.parse(kind)
    of_texts = set(text_names(frame))
    looked_at = {*grouped, *of_texts} - set(given)
    doubtful = dict[str, tuple[str, tuple[Kind, ...]]]()
    for name in filter(looked_at.__contains__, names):
        if name not in of_texts:
            doubtful[name] = "numbers such as 800 and 9.600", (number, Kind("number", "comma"))
            continue
        texts, codes = texts_of_column(frame[name])
        counts = np.bincount(codes[codes >= 0], minlength=len(texts))
        found, why = Kind.recognised(texts, counts, codes)
        kinds[name] = found[0]
        if len(found) > 1:
            doubtful[name] = why, found
    if doubtful:
        shown = [
            f"{name!r} ({why}) by {option('columns', ' or '.join(f'{name}={kind}' for kind in readings))}"
            for name, (why, readings) in list(doubtful.items())[:_DOUBTS]
        ]
        more = f"; and {len(doubtful) - _DOUBTS} more" if len(doubtful) > _DOUBTS else ""
        raise DatasetError(f"columns that can be read in several ways: {'; '.join(shown)}{more}", path)
    return kinds


def _unreadable(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> list[str]:
    """Return a note of the cells that are no number or date in a column of these."""
    counts = dict[str, int]()
    for name in text_names(frame):
        if kinds[name].name in ("number", "date"):
            texts, codes = texts_of_column(frame[name])
            rows = np.append(kinds[name].numbers(texts)[1], False)[codes]
            counts |= {name: int(rows.sum())} if rows.any() else {}
    if not counts:
        return []
    return [
        f"cells that cannot be read count as missing: {listed(f'{name[:60]!r} ({n})' for name, n in counts.items())}"
    ]


def _label_columns(
    rows: Rows, reading: Reading, path: PathLike, train_rows: int | None
) -> tuple[Any, list[str], list[str]]:
    """Return the values of the label columns, their names, and notes on how they were read."""
    names = list(rows.frame.columns)
    chosen = [names[j] for j in choose_labels(reading, names, path)]
    meanings, values = dict[str, list[str]](), np.empty((len(rows.frame), len(chosen)), order="F")
    faults = list[tuple[int, str]]()
    for k, name in enumerate(chosen):
        cells = rows.frame[name]
        if isinstance(cells.dtype, pd.SparseDtype):
            cells = cells.sparse.to_dense()
        values[:, k], note, fault = label_values(cells, name, reading.keeps_missing_labels)
        faults += [fault] if fault else []
        if note:
            meanings.setdefault(note, []).append(name)
    if faults:
        row, reason = min(faults, key=lambda one: one[0])
        if rows.line_of is not None:
            raise DatasetError(reason, path, rows.line_of(row))
        of_test = train_rows is not None and row >= train_rows
        where = f"row {row - (train_rows or 0) + 1} of the test rows" if of_test else f"row {row + 1}"
        raise DatasetError(f"{where}: {reason}", path)
    return values, chosen, meaning_notes(meanings)


def _with_groups(
    features: pd.DataFrame, column: str, labels: list[str], train_rows: int | None, path: PathLike
) -> tuple[pd.DataFrame, np.ndarray, str]:
    """Return the features without the column of groups, the groups, and the note about them."""
    names = list(features.columns)
    if column not in names:
        if column in labels:
            raise DatasetError(f"groups: '{excerpt(column)}' is a label", path)
        raise DatasetError(f"groups: '{excerpt(column)}' is not a column{did_you_mean(column, names)}", path)
    if len(names) == 1:
        raise DatasetError("no feature is left besides the groups", path)
    texts, codes = texts_of_column(features[column])
    if absent := int((codes < 0).sum()):
        row = int(np.flatnonzero(codes < 0)[0]) + 1
        raise DatasetError(f"groups: '{excerpt(column)}' is missing in {absent} rows, the first is row {row}", path)
    groups = codes.astype(np.int64)
    if train_rows is not None:
        both = np.intersect1d(groups[:train_rows], groups[train_rows:])
        if len(both):
            raise DatasetError(
                f"groups: {len(both)} groups of '{excerpt(column)}' have rows in the training and in the test file, "
                f"the first is {excerpt(texts[both[0]])!r}",
                path,
            )
    note = f"rows of one '{excerpt(column)}' stay together: {len(np.unique(groups))} groups"
    return features.drop(columns=column), groups, note
