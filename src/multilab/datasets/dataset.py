"""Dataset in canonical form, built from the files of a card."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.messages import option
from multilab.datasets.characteristics import content_digest, describe, id_like
from multilab.datasets.columns import canonical_csr, dropped_note, positions_left
from multilab.datasets.corrections import ROLE, corrected, read_corrections
from multilab.datasets.embeddings import check_named
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import Limits, plain_name, require_file
from multilab.datasets.frames import Rows, as_pandas, is_text, tidy
from multilab.datasets.joining import joined_rows
from multilab.datasets.kinds import Kind
from multilab.datasets.options import FILES, LABELS, TABLES, TAGS, check_format, reading_of, takes_reading
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import file_format, missing_error, raw_content, read_content
from multilab.datasets.reading_plan import with_labels_xml
from multilab.datasets.synthetic import generate
from multilab.datasets.tables import table_of, with_kinds

Indices = tuple[np.ndarray, np.ndarray]
NamedSplits = dict[str, Indices]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Multi-label dataset in canonical form.

    Attributes
    ----------
    name : str
        Name of the card.
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float64; or DataFrame of shape (n, m)
        Features; dense and C-contiguous, or CSR with sorted indices. A user's table stays as it was read: numbers, and
        texts as categories, NaN where a value is missing (see ``kinds``).
    Y : ndarray of shape (n, q), uint8, C-contiguous; or scipy.sparse.csr_array, uint8
        Labels, 0 or 1; int8 with -1 for unobserved labels, if there are any. Large label matrices are sparse, see
        `multilab.datasets.sparse.label_matrix`.
    feature_names, label_names : list of str
        Names of the columns of ``X`` and of ``Y``; one-hot columns of a nominal feature are
        ``feature=value``.
    splits : dict of str to (train, test)
        The splits that come with the dataset, as int64 row indices: ``official``, ``meka``; may be empty.
    features : int
        Number of features before one-hot coding.
    kinds : dict of str to Kind, or None
        The kinds of the columns of a table, whose encoding is learned from training rows (`FrameEncoder`). None if
        ``X`` is a matrix.
    groups : ndarray of int64, shape (n,), or None
        Group of each row, such as a patient; no split has rows of one group on both sides. To split the rows yourself,
        use ``IterativeStratifiedGroupKFold().split(data.X, data.Y, data.groups)``.

    Examples
    --------
    >>> from multilab.datasets import load
    >>> load("genes-toy")
    Dataset(genes-toy: 300 x 20 dense, 7 labels, d75ff18e76fe)
    """

    name: str
    X: Any
    Y: Any
    feature_names: list[str]
    label_names: list[str]
    splits: NamedSplits = field(default_factory=dict)
    features: int = 0
    kinds: dict[str, Kind] | None = None
    groups: np.ndarray | None = None

    @classmethod
    def from_frame(
        cls, frame: Any, labels: Sequence[str] | str | None = None, *, name: str = "frame", **options: Any
    ) -> Dataset:
        """Return a data frame as a dataset, see :func:`multilab.datasets.read`.

        Parameters
        ----------
        frame : data frame of pandas, polars or Arrow, of shape (n, m)
        labels : sequence of str, or text with commas
            Names of the label columns, or patterns such as ``tag_*``. The same as the option ``label_columns``.
        name : str, default "frame"
            Name of the dataset.
        **options
            Options of `multilab.datasets.options.Reading`: ``tags``, ``drop``, ``columns`` and others. Here, ``test``
            and ``join`` are data frames, and ``vectors`` is a matrix.

        Raises
        ------
        DatasetError
            If a column cannot be a feature or a label. The message says what to do.

        Examples
        --------
        >>> import pandas as pd
        >>> from multilab.datasets import Dataset
        >>> rows = [[120, "C", 1, 0], [None, "D", 0, 1], [90, "C", 0, 1]]
        >>> songs = pd.DataFrame(rows, columns=["tempo", "key", "happy", "sad"])
        >>> data = Dataset.from_frame(songs, labels=["happy", "sad"])
        >>> {name: str(kind) for name, kind in data.kinds.items()}
        {'tempo': 'number', 'key': 'category'}
        >>> data.X["tempo"].tolist(), data.Y.tolist()
        ([120.0, nan, 90.0], [[1, 0], [0, 1], [0, 1]])
        >>> songs = pd.DataFrame({"tempo": [120, 60, 90], "moods": [["happy"], ["sad", "calm"], []]})
        >>> data = Dataset.from_frame(songs, tags="moods")
        >>> data.label_names, data.Y.tolist()
        (['calm', 'happy', 'sad'], [[0, 1, 0], [1, 0, 1], [0, 0, 0]])
        """
        named: dict[str, Any] = {} if labels is None else {"label_columns": labels}
        return read(frame, name=name, **named, **options)

    @cached_property
    def digest(self) -> str:
        """The sha256 of matrices and names, computed when it is first asked for."""
        return content_digest(self)

    @classmethod
    def _from_raw(cls, name: str, raw: RawData, splits: NamedSplits, id_like: Sequence[str]) -> Dataset:
        """Return the dataset of matrices and names; warn of features that look like identifiers."""
        for feature in id_like:
            warnings.warn(
                f"{name}: feature {feature[:60]!r} looks like a row identifier; leave it out with 'drop'",
                DatasetWarning,
                stacklevel=3,
            )
        names = {"feature_names": list(raw.feature_names), "label_names": list(raw.label_names)}
        return cls(
            name,
            raw.X,
            raw.Y,
            **names,
            splits=splits,
            features=raw.original_features,
            kinds=raw.kinds,
            groups=raw.groups,
        )

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.X) else "dense" if self.kinds is None else "table"
        n, d = self.X.shape
        return f"Dataset({self.name}: {n} x {d} {kind}, {self.Y.shape[1]} labels, {self.digest[:12]})"


@takes_reading
def read(source: Any, *, name: str | None = None, limits: Limits | None = None, **options: Any) -> Dataset:
    r"""Read a data file, or a data frame, as a dataset.

    Parameters
    ----------
    source : path-like, or data frame of pandas, polars or Arrow
        A data frame, or a file in the format ARFF, MATLAB, CSV, Excel, JSON, Parquet, Feather, svmlight or Extreme
        Classification, plain or compressed by gzip, bzip2 or xz.
    name : str, optional
        Name of the dataset; default: the name of the file.
    limits : Limits, optional
        Upper bounds of sizes.
    **options
        Options of `multilab.datasets.options.Reading`: which columns are labels, which are left out, and how the file
        is written. For a data frame, ``test`` and ``join`` are data frames, too, and ``vectors`` is a matrix.

    Returns
    -------
    Dataset
        Labels are in the order of the file's columns. A table stays a data frame with numbers as float64 and texts as
        categories. The first step of a model turns its columns into numbers, and is learned from the training rows
        (`FrameEncoder`). An ARFF file with nominal attributes or missing values is a table, too. Other files, and
        frames whose columns are all sparse, become matrices.

    Raises
    ------
    DatasetError
        If the source cannot be read as a dataset. The message names the file and, for text, the line in it.

    Warns
    -----
    DatasetWarning
        If a column was left out that ``drop`` does not name: the index of a pandas data frame.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n")
    >>> data = read(path, label_columns=["happy", "sad"])
    >>> data.X["tempo"].tolist(), data.X["key"].tolist(), data.Y.tolist()
    ([120.0, nan], ['C', 'D'], [[1, 0], [0, 1]])
    """
    raw, called = raw_source(source, name, limits, options)
    where = source if isinstance(source, str | os.PathLike) else called
    if isinstance(raw.X, pd.DataFrame):
        raw = with_kinds(raw, options.get("columns") or {}, where)
    elif raw.missing_values:
        raise missing_error(raw, where)
    splits = {} if raw.train_rows is None else {"official": _first(raw.train_rows, raw.Y.shape[0])}
    return Dataset._from_raw(str(called), raw, splits, id_like(raw))


def raw_source(source: Any, name: str | None, limits: Limits | None, options: Mapping[str, Any]) -> tuple[RawData, str]:
    """Return the content of a file or a data frame before the kinds of columns are chosen, and its name."""
    if isinstance(source, str | os.PathLike):
        path = require_file(source)
        reading = reading_of(with_labels_xml(path, dict(options)), path)
        return raw_content(path, reading, limits), name or plain_name(path)[0]
    called = name or "frame"
    reading = reading_of(options, called)
    if not reading.given((*LABELS, *TAGS)):
        raise DatasetError(
            f"{called}: give {option('label_columns')}, the names of the label columns, or {option('tags')}, the "
            "column that holds them"
        )
    check_format(reading, "frame", called)

    def rows_of(frame: Any, drop: Sequence[str] = ()) -> Rows:
        frame = as_pandas(frame, called)
        names = [str(column).strip() for column in frame.columns]
        left_out = set(names) - {names[j] for j in positions_left(names, drop, called)}
        return Rows(tidy(frame, called, limits, reading.text_columns, left_out), tuple(dropped_note(drop, names)))

    if not reading.given(("test", "join", "vectors")):
        return table_of(rows_of(source, reading.dropped), reading, called, limits), called
    rows, train_rows = joined_rows(rows_of(source), reading, called, rows_of, limits)
    return table_of(rows, reading, called, limits, train_rows), called


def build_dataset(
    name: str,
    paths: Mapping[str, Path],
    reader: Mapping[str, Any],
    generator: Mapping[str, Any] | None = None,
    splits: Mapping[str, Any] | None = None,
) -> tuple[Dataset, dict[str, Any]]:
    """Return a dataset from its files or its generator, with its named splits.

    Parameters
    ----------
    name : str
        Name of the set.
    paths : mapping of role to path
        Verified files. The rows are those of ``full``, otherwise of ``train+test``, otherwise of ``train`` followed by
        ``test``. Labels in ``corrections`` replace the labels of these files.
    reader : mapping
        Options of `multilab.datasets.options.Reading`.
    generator : mapping, optional
        Argument of :func:`multilab.datasets.synthetic.generate`, instead of files.
    splits : mapping, optional
        Splits in addition to ``official``: name to ``{first: m}``.

    Returns
    -------
    dataset : Dataset
    description : dict
        See :func:`multilab.datasets.characteristics.describe`.

    Raises
    ------
    DatasetError
        If a file cannot be read, or ``train`` and ``test`` are not rows of ``full``.
    """
    raw, official = (generate(generator), None) if generator is not None else _from_files(paths, reader)
    if (table := paths.get(ROLE)) is not None:
        raw = replace(raw, Y=corrected(raw.Y, raw.label_names, read_corrections(table), table))
    named: NamedSplits = {} if official is None else {"official": official}
    for split, rule in (splits or {}).items():
        if split in named:
            raise DatasetError(f"{name}: the split {split} is defined by the files and by the card")
        named[split] = _by_rule(name, split, rule, raw.Y.shape[0])
    description = describe(raw)
    return Dataset._from_raw(name, raw, named, description["id_like"]), description


def _from_files(paths: Mapping[str, Path], reader: Mapping[str, Any]) -> tuple[RawData, Indices | None]:
    """Return all rows and, if the files define it, the official split."""
    if "train+test" in paths and "full" not in paths:
        raw = _read(paths, "train+test", reader)
        if raw.train_rows is None:
            raise DatasetError("the file has no training and test set", paths["train+test"])
        return raw, _first(raw.train_rows, raw.Y.shape[0])
    if "full" not in paths and (reader.get("format") or file_format(paths["train"])) in TABLES:
        raw = _read(paths, "train", {**reader, "test": paths["test"]})  # tags and kinds are those of all rows
        return raw, _first(int(raw.train_rows or 0), raw.Y.shape[0])
    if "full" in paths:
        full = _read(paths, "full", reader)
        if "train" not in paths:
            return full, None
        if full.kinds is not None and "columns" not in reader:  # a part alone may be read in several ways
            reader = {**reader, "columns": {name: str(kind) for name, kind in full.kinds.items()}}
        parts = [_read(paths, role, reader) for role in ("train", "test")]
        train, test = _matched(full, parts, [paths["train"], paths["test"]])
        return full, (train, test)
    head, tail = (_read(paths, role, reader) for role in ("train", "test"))
    _require_same_columns(head, tail, paths["test"])
    raw = _stacked(head, tail, paths["test"])
    return raw, _first(head.Y.shape[0], raw.Y.shape[0])


def _read(paths: Mapping[str, Path], role: str, reader: Mapping[str, Any]) -> RawData:
    check_named(reader.get("columns"))
    further: dict[str, Any] = {option: paths.get(role) for option, role in FILES.items() if option != "test"}
    return read_content(paths[role], reading_of({**further, **reader}, paths[role]))


def _first(rows: int, n: int) -> Indices:
    rows_in_order = np.arange(n, dtype=np.int64)
    return rows_in_order[:rows], rows_in_order[rows:]


def _by_rule(name: str, split: str, rule: Any, n: int) -> Indices:
    rows = rule.get("first") if isinstance(rule, Mapping) and set(rule) == {"first"} else None
    if not isinstance(rows, int) or isinstance(rows, bool) or not 0 < rows < n:
        raise DatasetError(f"{name}: split {split} must be {{first: m}} with 0 < m < {n}, not {rule!r}")
    return _first(rows, n)


def _stacked(head: RawData, tail: RawData, path: Path) -> RawData:
    if isinstance(head.X, pd.DataFrame):
        texts = [name for name, cells in head.X.items() if is_text(cells)]
        X: Any = tidy(pd.concat([head.X, tail.X], ignore_index=True), path, text_columns=texts)
    else:
        X = canonical_csr(sp.vstack([head.X, tail.X])) if sp.issparse(head.X) else np.vstack([head.X, tail.X])
    missing = head.missing_values + tail.missing_values
    notes = tuple(dict.fromkeys([*head.notes, *tail.notes]))
    return replace(head, X=X, Y=_stacked_labels(head.Y, tail.Y), missing_values=missing, notes=notes)


def _stacked_labels(head: Any, tail: Any) -> Any:
    """Return the labels of both files; CSR if those of one are, int8 if some of one were not observed."""
    if sp.issparse(head) or sp.issparse(tail):
        return sp.csr_array(sp.vstack([sp.csr_array(head), sp.csr_array(tail)]))
    kind = np.int8 if np.int8 in (head.dtype, tail.dtype) else np.uint8
    return np.vstack([head.astype(kind, copy=False), tail.astype(kind, copy=False)])


def _require_same_columns(one: RawData, other: RawData, path: Path) -> None:
    for what in ("feature_names", "label_names"):
        mine, theirs = list(getattr(one, what)), list(getattr(other, what))
        if mine != theirs:
            k = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            pair = (len(theirs), len(mine)) if k is None else (repr(theirs[k]), repr(mine[k]))
            differ = f"{pair[0]} instead of {pair[1]}"
            raise DatasetError(f"{what} differ from those of the set's other file: {differ}", path)
    if sp.issparse(one.X) != sp.issparse(other.X):
        raise DatasetError("one file of the set has sparse rows and another dense ones", path)
    for name, cells in one.X.items() if isinstance(one.X, pd.DataFrame) else ():
        theirs = other.X[name]
        if is_text(cells) != is_text(theirs) and cells.notna().any() and theirs.notna().any():
            raise DatasetError(f"column '{name[:60]}' has numbers in one file of the set and text in another", path)


def _matched(full: RawData, files: list[RawData], paths: list[Path]) -> list[np.ndarray]:
    """Return the row indices in ``full`` of each file; equal rows in order of appearance."""
    waiting: dict[bytes, deque[int]] = defaultdict(deque)
    for row, key in enumerate(_row_keys(full)):
        waiting[key].append(row)
    matched = []
    for file, path in zip(files, paths, strict=True):
        _require_same_columns(full, file, path)
        rows = np.empty(file.Y.shape[0], dtype=np.int64)
        for i, key in enumerate(_row_keys(file)):
            if not waiting[key]:
                raise DatasetError(f"row {i + 1} is missing, or occurs less often, in the full file", path)
            rows[i] = waiting[key].popleft()
        matched.append(rows)
    return matched


def _row_keys(raw: RawData) -> list[bytes]:
    """Return every row's features and labels as bytes: equal bytes are equal rows."""
    Y = sp.csr_array(raw.Y)  # one file of a set may have sparse labels and another dense ones
    cells = np.column_stack([Y.indices.astype(np.int64), Y.data.astype(np.int64)])
    labels = [cells[a:b].tobytes() for a, b in pairwise(Y.indptr)]
    if isinstance(raw.X, pd.DataFrame):
        columns = (cells if is_text(cells) else cells + 0.0 for _, cells in raw.X.items())  # no -0.0
        rows = zip(*(cells.astype(object).where(cells.notna(), None) for cells in columns), strict=True)
        return [repr(row).encode("utf-8", "surrogatepass") + y for row, y in zip(rows, labels, strict=True)]
    if not sp.issparse(raw.X):
        return [row.tobytes() + y for row, y in zip(np.ascontiguousarray(raw.X), labels, strict=True)]
    bounds = raw.X.indptr
    indices = raw.X.indices.astype(np.int64)
    return [
        indices[a:b].tobytes() + b"|" + raw.X.data[a:b].tobytes() + b"|" + y
        for a, b, y in zip(bounds[:-1], bounds[1:], labels, strict=True)
    ]
