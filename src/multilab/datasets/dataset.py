"""Dataset in canonical form, built from the files of a card."""

from __future__ import annotations

import warnings
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.datasets.characteristics import describe
from multilab.datasets.columns import LabelOptions, TableColumn, canonical_csr, names_to_drop
from multilab.datasets.embeddings import check_named
from multilab.datasets.encode import impute, share_categories, share_texts
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.frames import table_of_frame
from multilab.datasets.joining import FurtherTables, with_groups
from multilab.datasets.labels import TagOptions
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import read
from multilab.datasets.reading_plan import FILES, choose_encoding
from multilab.datasets.synthetic import generate

Indices = tuple[np.ndarray, np.ndarray]
NamedSplits = dict[str, Indices]
_OF_TABLES = {"columns", "tags", "item", "groups"}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Multi-label dataset in canonical form.

    Attributes
    ----------
    name : str
        Name of the card.
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float64; or DataFrame of shape (n, m)
        Features; dense and C-contiguous, or CSR with sorted indices. For a user's table, they are as read: numbers, and
        texts as categories, NaN where a value is missing (see ``columns``).
    Y : ndarray of shape (n, q), uint8, C-contiguous; or scipy.sparse.csr_array, uint8
        Labels, 0 or 1; int8 with -1 for unobserved labels, if there are any. Sparse for many labels: see
        `multilab.datasets.sparse.label_matrix`.
    feature_names, label_names : list of str
        Names of the columns of ``X`` and of ``Y``; one-hot columns of a nominal feature are
        ``feature=value``.
    splits : dict of str to (train, test)
        The splits that come with the dataset, as int64 row indices: ``official``, ``meka``; may be empty.
    digest : str
        sha256 of matrices and names.
    features : int
        Number of features before one-hot coding.
    columns : tuple of TableColumn or None
        The columns of a user's table with their kinds; their encoding is learned from training rows
        (`TableEncoder.learn`, `FrameEncoder`). None: ``X`` is a matrix.
    groups : ndarray of int64, shape (n,), or None
        Group of each row, such as a patient: no split has rows of one group on both sides. For your own splitters:
        ``IterativeStratifiedGroupKFold().split(data.X, data.Y, data.groups)``.

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
    digest: str = ""
    features: int = 0
    columns: tuple[TableColumn, ...] | None = None
    groups: np.ndarray | None = None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        labels: Sequence[str] | str | None = None,
        *,
        tags: str | None = None,
        item: str | None = None,
        tag: str | None = None,
        separator: str | None = None,
        min_count: int | None = None,
        name: str = "frame",
        drop: Sequence[str] | str = (),
        columns: Mapping[str, str] | None = None,
        text: str | None = None,
        missing: str | None = None,
        missing_labels: str = "error",
        test: pd.DataFrame | None = None,
        join: pd.DataFrame | None = None,
        on: str | None = None,
        vectors: np.ndarray | None = None,
        groups: str | None = None,
    ) -> Dataset:
        """Return a data frame as a dataset: the features as they are, the labels as a matrix.

        What turns the columns into numbers is the first step of a model, learned from its training rows: put
        `FrameEncoder` before the estimator in a pipeline. A frame of sparse columns becomes a sparse matrix.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (n, m)
            Columns of numbers, booleans, text, categories or dates. The index is left out.
        labels : sequence of str, or text with commas
            Names of the label columns, or patterns: ``tag_*``. Their cells are 0 and 1, true and false, yes and no,
            or 1 and blank.
        tags : str
            Instead of ``labels``: the column that holds the tags of each row, as a list or as text (``red|blue``).
        item, tag : str
            Instead of ``labels``: the two columns of a frame with a row for each item and tag.
        separator : str, optional
            What separates tags in a text; by default the one of ``|``, ``;`` and ``,`` that occurs.
        min_count : int, optional
            Tags with fewer rows are left out.
        name : str, default "frame"
            Name of the dataset.
        drop : sequence of str, or text with commas
            Names of columns that are left out.
        columns : mapping of str to str, optional
            Kinds of columns that are not to be recognised, see `multilab.datasets.kinds.Kind`.
        text, missing : str, optional
            Make a matrix of all rows instead, see `multilab.datasets.plan_reading`: ``text="one_hot"``,
            ``missing="impute"``.
        missing_labels : {"error", "keep"}
            Whether missing labels are an error, or labels that were not observed (-1 in ``Y``).
        test : pandas.DataFrame, optional
            Further rows with the same columns: the test rows of the split "official".
        join, on : pandas.DataFrame and str, optional
            A frame with further columns of the same rows, labels as a rule, and the column that both frames have.
        vectors : ndarray of shape (n, d), optional
            Numbers for all rows, in their order, such as embeddings. A column of lists will do, too.
        groups : str, optional
            A column that says which rows belong together, such as a patient. It is no feature; see `groups`.

        Raises
        ------
        DatasetError
            One line: what cannot be a feature or a label, and what to do.

        Examples
        --------
        >>> import pandas as pd
        >>> from multilab.datasets import Dataset
        >>> rows = [[120, "C", 1, 0], [None, "D", 0, 1], [90, "C", 0, 1]]
        >>> songs = pd.DataFrame(rows, columns=["tempo", "key", "happy", "sad"])
        >>> data = Dataset.from_frame(songs, labels=["happy", "sad"])
        >>> [(column.name, str(column.kind)) for column in data.columns]
        [('tempo', 'number'), ('key', 'category')]
        >>> data.X["tempo"].tolist(), data.Y.tolist()
        ([120.0, nan, 90.0], [[1, 0], [0, 1], [0, 1]])
        >>> songs = pd.DataFrame({"tempo": [120, 60, 90], "moods": [["happy"], ["sad", "calm"], []]})
        >>> data = Dataset.from_frame(songs, tags="moods")
        >>> data.label_names, data.Y.tolist()
        (['calm', 'happy', 'sad'], [[0, 1, 0], [1, 0, 1], [0, 0, 0]])
        """
        if missing_labels not in ("error", "keep"):
            raise DatasetError(f"{name}: missing_labels must be one of error, keep, not {missing_labels!r}")

        of_tags = TagOptions(tags, item, tag, separator, min_count)
        if of_tags.given() == (labels is not None):
            raise DatasetError(
                f"{name}: give labels, the names of the label columns, or tags, the column that holds them"
            )
        wanted = labels.split(",") if isinstance(labels, str) else labels or ()
        chosen = LabelOptions(label_columns=[str(one).strip() for one in wanted])
        further = FurtherTables(test, join, on, vectors)

        def table(dropped: list[str]) -> Any:
            unobserved = missing_labels == "keep"
            if not further.given():
                labelled = of_tags if of_tags.given() else chosen
                as_text = [groups] if groups else []
                made = table_of_frame(frame, labelled, dropped, unobserved, name, text_columns=as_text)
                return with_groups(made, groups)
            return further.table(
                frame,
                name,
                lambda other: other,
                chosen,
                of_tags,
                groups=groups,
                drop=dropped,
                missing_labels=unobserved,
            )

        *_, raw = choose_encoding(table, list(names_to_drop(drop)), text, missing, name, columns=columns)
        splits = {} if raw.train_rows is None else {"official": _first(raw.train_rows, raw.Y.shape[0])}
        return cls._from_raw(name, raw, splits, describe(raw))

    @classmethod
    def _from_raw(cls, name: str, raw: RawData, splits: NamedSplits, description: Mapping[str, Any]) -> Dataset:
        """Return the dataset of matrices and names; warn of features that look like identifiers."""
        for feature in description["id_like"]:
            warnings.warn(
                f"{name}: feature {feature[:60]!r} looks like a row identifier; leave it out by 'drop'",
                DatasetWarning,
                stacklevel=3,
            )
        names = {"feature_names": list(raw.feature_names), "label_names": list(raw.label_names)}
        return cls(
            name,
            raw.X if raw.columns is None else table_frame(raw.X, raw.columns),
            raw.Y,
            **names,
            splits=splits,
            digest=description["digest"],
            features=raw.original_features,
            columns=raw.columns,
            groups=raw.groups,
        )

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.X) else "dense" if self.columns is None else "table"
        n, d = self.X.shape
        return f"Dataset({self.name}: {n} x {d} {kind}, {self.Y.shape[1]} labels, {self.digest[:12]})"


def table_frame(codes: np.ndarray, columns: Sequence[TableColumn]) -> pd.DataFrame:
    """Return numbers, and positions of texts, as a data frame: texts are categories, missing values NaN."""
    series = {}
    for cells, column in zip(codes.T, columns, strict=True):
        at = np.where(np.isnan(cells), -1, cells).astype(np.int64) if column.values is not None else None
        series[column.name] = cells if at is None else pd.Categorical.from_codes(at, list(column.values or ()))
    return pd.DataFrame(series, copy=False)


def table_codes(frame: pd.DataFrame) -> np.ndarray:
    """Undo :func:`table_frame`."""
    codes = np.empty(frame.shape)
    for j, (_, cells) in enumerate(frame.items()):
        if isinstance(cells.dtype, pd.CategoricalDtype):
            codes[:, j] = np.where(cells.cat.codes < 0, np.nan, cells.cat.codes)
        else:
            codes[:, j] = cells
    return codes


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
        Verified files. The rows are those of ``full``, else of ``train+test``, else of ``train`` followed
        by ``test``.
    reader : mapping
        Keyword arguments of :func:`multilab.datasets.reading.read`. With ``missing: impute`` values are imputed
        once, from all rows of the set.
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
        Also when ``train`` and ``test`` are not rows of ``full``.
    """
    raw, official = (generate(generator), None) if generator is not None else _from_files(paths, reader)
    if reader.get("missing") == "impute":
        raw = impute(raw, name)
    named: NamedSplits = {} if official is None else {"official": official}
    for split, rule in (splits or {}).items():
        if split in named:
            raise DatasetError(f"{name}: the split {split} is defined by the files and by the card")
        named[split] = _by_rule(name, split, rule, raw.Y.shape[0])
    description = describe(raw)
    return Dataset._from_raw(name, raw, named, description), description


def _from_files(paths: Mapping[str, Path], reader: Mapping[str, Any]) -> tuple[RawData, Indices | None]:
    """Return all rows and, if the files define it, the official split."""
    if "train+test" in paths and "full" not in paths:
        raw = _read(paths, "train+test", reader)
        if raw.train_rows is None:
            raise DatasetError("has no training and test set", paths["train+test"])
        return raw, _first(raw.train_rows, raw.Y.shape[0])
    if "full" not in paths and ({"labels", "vectors"} & set(paths) or _OF_TABLES & set(reader)):
        raw = _read(paths, "train", {**reader, "test": paths["test"]})  # tags and kinds are those of all rows
        return raw, _first(int(raw.train_rows or 0), raw.Y.shape[0])
    roles = [role for role in ("full", "train", "test") if role in paths]
    files = [_read(paths, role, reader) for role in roles]
    if reader.get("text") == "one_hot":
        files = share_categories(files)
    elif "columns" in reader:
        files = share_texts(files)
    if "full" in paths:
        if len(files) == 1:
            return files[0], None
        train, test = _matched(files[0], files[1:], [paths["train"], paths["test"]])
        return files[0], (train, test)
    head, tail = files
    _require_same_columns(head, tail, paths["test"])
    raw = _stacked(head, tail)
    return raw, _first(head.Y.shape[0], raw.Y.shape[0])


def _read(paths: Mapping[str, Path], role: str, reader: Mapping[str, Any]) -> RawData:
    if reader.get("missing") == "impute":  # later, and from all rows of the set
        reader = {**reader, "missing": "keep"}
    check_named(reader.get("columns"))
    further: dict[str, Any] = {option: paths.get(role) for option, role in FILES.items() if option != "test"}
    return read(paths[role], **further, **reader)


def _first(rows: int, n: int) -> Indices:
    rows_in_order = np.arange(n, dtype=np.int64)
    return rows_in_order[:rows], rows_in_order[rows:]


def _by_rule(name: str, split: str, rule: Any, n: int) -> Indices:
    rows = rule.get("first") if isinstance(rule, Mapping) and set(rule) == {"first"} else None
    if not isinstance(rows, int) or isinstance(rows, bool) or not 0 < rows < n:
        raise DatasetError(f"{name}: split {split} must be {{first: m}} with 0 < m < {n}, not {rule!r}")
    return _first(rows, n)


def _stacked(head: RawData, tail: RawData) -> RawData:
    sparse = sp.issparse(head.X)
    X = canonical_csr(sp.vstack([head.X, tail.X])) if sparse else np.vstack([head.X, tail.X])
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
    if not sp.issparse(raw.X):
        return [row.tobytes() + y for row, y in zip(np.ascontiguousarray(raw.X), labels, strict=True)]
    bounds = raw.X.indptr
    indices = raw.X.indices.astype(np.int64)
    return [
        indices[a:b].tobytes() + b"|" + raw.X.data[a:b].tobytes() + b"|" + y
        for a, b, y in zip(bounds[:-1], bounds[1:], labels, strict=True)
    ]
