"""Profile of a table before it becomes a dataset: kinds of columns, duplicates, leaks and label counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.datasets.characteristics import looks_like_identifier
from multilab.datasets.raw_data import RawData
from multilab.datasets.table_cells import MAX_CATEGORIES, MAX_CATEGORY, look_like_dates

if TYPE_CHECKING:
    from multilab.datasets.dataset import Dataset

_MIN_TEXTS = 20  # of fewer rows, different texts are common
_MANY_PHRASES = 50  # of several words; a category with more of them may be free text


@dataclass(frozen=True)
class LabelCount:
    """Counts of a label: rows that have it, rows that lack it, rows where it was not observed."""

    name: str
    positive: int
    negative: int
    unobserved: int

    @property
    def constant(self) -> bool:
        """Whether the label is never set, or always."""
        return not self.positive or not self.negative


@dataclass(frozen=True)
class TableProfile:
    """Content of a table, and columns that should not be features.

    Attributes
    ----------
    rows, features : int
        Number of rows, and of feature columns before they are encoded.
    kinds : dict of str to int
        Number of feature columns per kind: ``numbers``, ``integers``, ``0/1``, ``text``, ``constant``, ``empty``.
    text : dict of str to int
        Text columns of few short values, with the number of their different values.
    free_text : dict of str to int
        Text columns that are mostly different from row to row, or have too many or too long values.
    dates : list of str
        The columns of free text that hold dates.
    phrases : dict of str to int
        Text columns with many different values of several words, and the number of these.
    missing : dict of str to int
        Features with missing values, and the number of them.
    empty, constant, identifiers : list of str
        Features without any value, features with one value only, and features that look like row identifiers: numbers,
        or one word that differs in every row.
    leaks : dict of str to str
        Features whose name or values repeat a label or sum up the labels of a row, with the reason.
    duplicates, conflicts : int
        Number of rows whose features equal those of an earlier row, and how many of these have other labels than the
        first such row.
    labels : list of LabelCount
        The labels, in the order of the file.
    """

    rows: int
    features: int
    kinds: dict[str, int] = field(default_factory=dict)
    text: dict[str, int] = field(default_factory=dict)
    free_text: dict[str, int] = field(default_factory=dict)
    dates: list[str] = field(default_factory=list)
    phrases: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    leaks: dict[str, str] = field(default_factory=dict)
    duplicates: int = 0
    conflicts: int = 0
    labels: list[LabelCount] = field(default_factory=list)


def profile_table(data: RawData | Dataset) -> TableProfile:
    r"""Return the profile of a table.

    Parameters
    ----------
    data : Dataset
        A dataset, see `multilab.datasets.read`, or the content of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import profile_table, read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,is_sad,happy,sad\n120,C,0,1,0\n,D,1,0,1\n120,C,0,1,1\n90,C,0,0,1\n")
    >>> profile = profile_table(read(path, labels_last=2))
    >>> profile.text, profile.missing, profile.duplicates, profile.conflicts
    ({'key': 2}, {'tempo': 1}, 1, 1)
    >>> profile.leaks
    {'is_sad': "its name holds that of the label 'sad'"}
    """
    kinds: dict[str, int] = {}
    table = _Frames(_frame(data.X, data.feature_names), _frame(data.Y, data.label_names))
    result = TableProfile(len(table.features), table.features.shape[1], kinds)
    for name, column in table.features.items():
        kind = _kind(str(name), column, result)
        kinds[kind] = kinds.get(kind, 0) + 1
    result.labels.extend(_label_counts(table.labels))
    result.leaks.update(_leaks(table))
    duplicates, conflicts = _duplicates(table)
    return TableProfile(**{**vars(result), "duplicates": duplicates, "conflicts": conflicts})


class _Frames(NamedTuple):
    """Features and labels as data frames."""

    features: pd.DataFrame
    labels: pd.DataFrame


def _frame(X: Any, names: Sequence[str]) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    if sp.issparse(X):
        return pd.DataFrame.sparse.from_spmatrix(X, columns=names)
    return pd.DataFrame(np.asarray(X), columns=names)


def _kind(name: str, column: pd.Series, result: TableProfile) -> str:
    """Return the kind of a feature, and note in ``result`` what is special about it."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _text_kind(name, column, result)
    if isinstance(column.dtype, pd.SparseDtype):
        values = np.asarray(column.array.sp_values, dtype=np.float64)
        if len(values) < len(column):
            values = np.append(values, 0.0)
    else:
        values = column.to_numpy(dtype=np.float64)
    absent = int(np.isnan(values).sum())
    if absent:
        result.missing[name] = absent
        values = values[~np.isnan(values)]
    if not len(values):
        result.empty.append(name)
        return "empty"
    low, high = float(values.min()), float(values.max())
    if low == high:
        result.constant.append(name)
        return "constant"
    if not (values == np.floor(values)).all():
        return "numbers"
    if low == 0 and high == 1:
        return "0/1"
    if len(values) == len(column) and looks_like_identifier(name, values):
        result.identifiers.append(name)
    return "integers"


def _text_kind(name: str, column: pd.Series, result: TableProfile) -> str:
    present = int(column.notna().sum())
    if present < len(column):
        result.missing[name] = len(column) - present
    categories = column.cat.remove_unused_categories().cat.categories
    count = len(categories)
    if not count:
        result.empty.append(name)
        return "empty"
    if count == 1:
        result.constant.append(name)
    longest = max(len(text) for text in categories)
    identifier, phrases = text_signs(list(categories), len(column))
    if phrases:
        result.phrases[name] = phrases
    if identifier:
        result.identifiers.append(name)
    mostly_different = present > _MIN_TEXTS and count > present / 2
    if mostly_different or count > MAX_CATEGORIES or longest > MAX_CATEGORY:
        result.free_text[name] = count
        if look_like_dates(list(categories)):
            result.dates.append(name)
    else:
        result.text[name] = count
    return "text"


def text_signs(texts: Sequence[str], n_rows: int) -> tuple[bool, int]:
    """Return whether a column's different texts look like row identifiers, and the number of phrases, 0 for few."""
    phrases = sum(" " in text.strip() for text in texts)
    identifier = not phrases and len(texts) == n_rows > _MIN_TEXTS and not look_like_dates(texts)
    return identifier, phrases if phrases > _MANY_PHRASES else 0


def _label_counts(labels: pd.DataFrame) -> list[LabelCount]:
    counts = []
    for name, column in labels.items():
        values = column.to_numpy()
        positive, unobserved = int((values == 1).sum()), int((values == -1).sum())
        counts.append(LabelCount(str(name), positive, len(values) - positive - unobserved, unobserved))
    return counts


def _leaks(table: _Frames) -> dict[str, str]:
    """Return the features whose name or values repeat a label."""
    by_pattern: dict[bytes, str] = {}
    for name, column in table.labels.items():
        values = column.to_numpy()
        if (values == 1).any() and (values == 0).any() and not (values == -1).any():
            for pattern in (values == 1, values == 0):
                by_pattern.setdefault(np.packbits(pattern).tobytes(), str(name))
    plain_labels = {_plain(str(name)): str(name) for name in table.labels}
    full_names = {label: name for label, name in plain_labels.items() if len(label) >= 3}
    longest = max((label.count("_") + 1 for label in full_names), default=0)
    leaks, summaries = dict[str, str](), _Summaries(table.labels)
    for name, column in table.features.items():
        feature = _plain(str(name))
        pattern = _two_valued(column)
        if pattern is not None and (label := by_pattern.get(pattern)) is not None:
            leaks[str(name)] = f"its values determine the label {label!r}"
        elif (reason := summaries.repeated_by(column)) is not None:
            leaks[str(name)] = reason
        elif feature in plain_labels:
            leaks[str(name)] = f"it has the name of the label {plain_labels[feature]!r}"
        elif (inside := next((part for part in _parts(feature, longest) if part in full_names), None)) is not None:
            leaks[str(name)] = f"its name holds that of the label {full_names[inside]!r}"
    return leaks


class _Summaries:
    """What the labels of a row sum up to: whether there is any, and how many."""

    def __init__(self, labels: pd.DataFrame) -> None:
        Y = labels.to_numpy()
        self.rows = (Y >= 0).all(axis=1)  # where all labels were observed
        self.counts = (Y[self.rows] == 1).sum(axis=1)

    def repeated_by(self, column: pd.Series) -> str | None:
        """Describe how a feature repeats the labels in all or nearly all rows; None if it does not."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.cat.codes.to_numpy().astype(float)
        else:
            values = np.asarray(column, dtype=float)
        values = values[self.rows]
        if not len(values) or np.isnan(values).any():
            return None
        low, high = values.min(), values.max()
        two = low < high and bool(((values == low) | (values == high)).all())
        if two and (share := _agreement(values == high, self.counts > 0)) is not None:
            return f"it says whether there is any label {share}"
        if (low, high) == (self.counts.min(), self.counts.max()):
            share = _agreement(values, self.counts)
            return None if share is None else f"it is the number of labels {share}"
        return None


def _agreement(values: np.ndarray, truth: np.ndarray) -> str | None:
    """Return in which rows two columns agree, None if these are fewer than nearly all.

    They disagree at most in a tenth of the rows that do not have the most frequent value, which a constant misses.
    """
    _, counts = np.unique(truth, return_counts=True)
    rare = len(truth) - int(counts.max())
    wrong = int((values != truth).sum())
    if truth.dtype == bool:
        wrong = min(wrong, len(truth) - wrong)
    if not rare or wrong > rare / 10:
        return None
    return f"in {1 - wrong / len(truth):.1%} of the rows" if wrong else "in every row"


def _parts(name: str, longest: int) -> Iterator[str]:
    """Yield up to ``longest`` parts of a name that follow each other, for every first part."""
    parts = name.split("_")
    for start in range(len(parts)):
        for stop in range(min(len(parts), start + longest), start, -1):
            yield "_".join(parts[start:stop])


def _plain(name: str) -> str:
    """Return a name in small letters, its parts separated by underscores."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def _two_valued(column: pd.Series) -> bytes | None:
    """Return which rows have the larger of a feature's two values, or None if it has not two."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.codes.to_numpy()
        values = values if (values >= 0).all() else None
    elif isinstance(column.dtype, pd.SparseDtype):
        values = np.asarray(column)
    else:
        values = column.to_numpy()
    if values is None or not len(values):
        return None
    low, high = values.min(), values.max()
    if not low < high or not ((values == low) | (values == high)).all():
        return None
    return np.packbits(values == high).tobytes()


def _duplicates(table: _Frames) -> tuple[int, int]:
    """Return how many rows repeat the features of an earlier row, and how many of them have other labels than that."""
    first: dict[int, Any] = {}
    if table.features.empty:
        return 0, 0
    keys = _row_hashes(table.features)
    labels = _row_hashes(table.labels)
    duplicates = conflicts = 0
    for key, label in zip(keys.tolist(), labels.tolist(), strict=True):
        if key not in first:
            first[key] = label
            continue
        duplicates += 1
        conflicts += label != first[key]
    return duplicates, conflicts


def _row_hashes(frame: pd.DataFrame) -> np.ndarray:
    """Return a 64-bit hash of every row."""
    total = np.zeros(len(frame), dtype=np.uint64)
    for column in frame:
        values = frame[column]
        if isinstance(values.dtype, pd.SparseDtype):
            values = values.sparse.to_dense()
        of_column = pd.util.hash_array(values.to_numpy() if values.dtype != "category" else values.cat.codes.to_numpy())
        total = total * np.uint64(6364136223846793005) + of_column
    return total
