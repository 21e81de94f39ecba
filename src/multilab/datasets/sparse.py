"""Readers of sparse rows ``label,label index:value index:value``: svmlight, and Extreme Classification."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.datasets.columns import canonical_csr, to_number
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, read_bytes, require_cells
from multilab.datasets.raw_data import RawData

DENSE_LABELS = 2**24
"""Largest label matrix that the readers of sparse rows return dense: 16 MiB."""


# An index of 15 digits is beyond any limit; what float() takes further, such as 1_0 and nan, is no value.
_ENTRIES = re.compile(r"(?:\d{1,15}+:[-+.\deE]++(?:\n|\Z))*+", re.ASCII)
_LABELS = re.compile(r"(?:\d{1,15}+(?:,\d{1,15}+)*+)?", re.ASCII)


def label_matrix(rows: np.ndarray, labels: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return the uint8 label matrix of the given entries, dense up to `DENSE_LABELS` entries, else canonical CSR."""
    if shape[0] * shape[1] <= DENSE_LABELS:
        Y = np.zeros(shape, dtype=np.uint8)
        Y[rows, labels] = 1
        return Y
    sparse = sp.csr_array((np.ones(len(rows), dtype=np.uint8), (rows, labels)), shape=shape)
    sparse.data[:] = 1  # a label that is given twice is given
    return sparse


@dataclass(frozen=True)
class SparseRows:
    """Rows of a file before indices are shifted and sizes are checked.

    Attributes
    ----------
    features, values : ndarray
        Feature indices and values, row after row.
    labels : ndarray
        Label indices, row after row.
    feature_rows, label_rows : ndarray
        Row of each entry of ``features`` and of ``labels``.
    lines : ndarray
        Line number of each row.
    path : path-like
        The file, for error messages.
    """

    features: np.ndarray
    values: np.ndarray
    labels: np.ndarray
    feature_rows: np.ndarray
    label_rows: np.ndarray
    lines: np.ndarray
    path: PathLike

    def to_raw(self, shape: tuple[int, int], first: tuple[int, int], label_names: Sequence[str]) -> RawData:
        """Return the rows as matrices, whose sizes the caller has checked.

        Parameters
        ----------
        shape : (int, int)
            Number of features and of labels.
        first : (int, int)
            Index of the first feature and of the first label, 0 or 1.
        label_names : sequence of str
            One name per label.
        """
        n = len(self.lines)
        j = self._within(self.features - first[0], shape[0], self.feature_rows, "feature", first[0])
        k = self._within(self.labels - first[1], shape[1], self.label_rows, "label", first[1])
        Y = label_matrix(self.label_rows, k, (n, shape[1]))
        X = sp.coo_array((self.values, (self.feature_rows, j)), shape=(n, shape[0])).tocsr()
        if X.nnz < len(j):  # tocsr has added two values up
            order = np.lexsort((j, self.feature_rows))
            repeated = (np.diff(j[order]) == 0) & (np.diff(self.feature_rows[order]) == 0)
            entry = order[int(np.flatnonzero(repeated)[0])]
            line = self.lines[self.feature_rows[entry]]
            raise DatasetError(f"feature index {self.features[entry]} is given twice", self.path, line)
        names = [f"f{i}" for i in range(1, shape[0] + 1)]
        return RawData(canonical_csr(X), Y, names, list(label_names), original_features=shape[0])

    def _within(self, index: np.ndarray, count: int, rows: np.ndarray, what: str, first: int) -> np.ndarray:
        wrong = np.flatnonzero((index < 0) | (index >= count))
        if len(wrong):
            line, shown = self.lines[rows[wrong[0]]], index[wrong[0]] + first
            raise DatasetError(
                f"{what} index {shown} is not among the {count} from {first} to {count - 1 + first}", self.path, line
            )
        return index


def require_labels(rows: int, labels: int, path: PathLike, limits: Limits) -> None:
    """Refuse a label matrix that is out of proportion to its file, and a dense one beyond ``max_cells``."""
    if rows * labels > DENSE_LABELS:
        limits = replace(limits, max_cells=rows * labels)
    require_cells(rows, labels, "the label matrix", path, limits, itemsize=1)


def parse_sparse_rows(lines: Sequence[str], numbers: Sequence[int], path: PathLike) -> SparseRows:
    """Read lines ``label,label index:value index:value`` with the given line numbers.

    A line that begins with a blank or with ``index:value`` is a row without labels.

    Raises
    ------
    DatasetError
        If an index is not an integer, a value is not a finite number, or an entry is broken. The message has the line.

    Notes
    -----
    ``sklearn.datasets.load_svmlight_file`` takes twice as long as this, refuses rows whose indices are not in ascending
    order, and accepts labels such as 1.5 and 1_0 and infinite values.
    """
    heads, rests = list[str](), list[str]()
    for text in lines:
        head, _, rest = text.partition(" ")
        heads.append("" if ":" in head else head)
        rests.append(text if ":" in head else rest)
    parsed = _plain_entries(heads, rests) or _careful_entries(heads, rests, numbers, path)
    rows = np.arange(len(numbers))
    widths = [rest.count(":") for rest in rests]
    label_widths = [head.count(",") + 1 if head else 0 for head in heads]
    return SparseRows(*parsed, np.repeat(rows, widths), np.repeat(rows, label_widths), np.array(numbers), path)


def _plain_entries(heads: Sequence[str], rests: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return indices, values and labels of rows as pandas reads them, or None if an entry is not plain."""
    entries = "\n".join(" ".join(rests).split())
    labels = ",".join(filter(None, heads))
    if not _ENTRIES.fullmatch(entries) or not _LABELS.fullmatch(labels) or not entries:
        return None
    kinds = {0: np.int64, 1: np.float64}
    try:
        table = pd.read_csv(
            io.BytesIO(entries.encode()), sep=":", header=None, names=[0, 1], dtype=kinds, na_filter=False
        )
    except ValueError:  # a value such as 1e
        return None
    values = table[1].to_numpy()
    if not np.isfinite(values).all():
        return None
    return table[0].to_numpy(), values, np.array(list(map(int, labels.split(","))) if labels else [], dtype=np.int64)


def _careful_entries(
    heads: Sequence[str], rests: Sequence[str], numbers: Sequence[int], path: PathLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return indices, values and labels of rows; refuse the first line that has another entry."""
    features, values, labels, line = list[int](), list[float](), list[int](), 0
    try:
        for head, rest, line in zip(heads, rests, numbers, strict=True):  # noqa: B007 (for the error)
            labels += [_index(token, "label") for token in head.split(",")] if head else []
            for token in rest.split():
                index, colon, value = token.partition(":")
                if not colon:
                    raise ValueError(f"'{token[:40]}' is not of the form index:value")
                features.append(_index(index, "feature"))
                values.append(_finite(value))
    except ValueError as error:
        raise DatasetError(str(error), path, line) from None
    return np.array(features, dtype=np.int64), np.array(values), np.array(labels, dtype=np.int64)


def _index(token: str, what: str) -> int:
    if not (token.isascii() and token.isdecimal()):
        raise ValueError(f"'{token[:40]}' is not a {what} index")
    if len(token) > 15:
        raise ValueError(f"{what} index {token[:40]} is beyond any limit")
    return int(token)


def _finite(token: str) -> float:
    value = to_number(token)
    if math.isnan(value):
        raise ValueError(f"'{token[:40]}' is not a finite number")
    return value


def read_svmlight(
    path: PathLike,
    label_names: Sequence[str] | None = None,
    n_features: int | None = None,
    first_feature: int | None = None,
    first_label: int | None = None,
    limits: Limits | None = None,
    encoding: str | None = None,
) -> RawData:
    """Read a multi-label svmlight (LIBSVM) file.

    Parameters
    ----------
    path : path-like
        The file. ``#`` begins a comment; blank lines are skipped.
    label_names : sequence of str, optional
        Names, and thereby the number, of the labels. By default, all labels up to the largest index, named by their
        indices.
    n_features : int, optional
        Number of features; by default the largest index decides. Needed for a file with a subset of the rows.
    first_feature, first_label : 0 or 1, optional
        Index of the first feature and of the first label; by default 0 if the file contains a 0, otherwise 1.
    limits : Limits, optional
        Upper bounds of sizes.
    encoding : str, optional
        See :func:`multilab.datasets.file_access.decode`.

    Returns
    -------
    RawData
        ``X`` is CSR, and ``Y`` too where it has more than 2^24 entries; features are called ``f1``, ``f2``, ...

    Raises
    ------
    DatasetError
        If a row cannot be read, see :func:`parse_sparse_rows`; if an index is given twice or beyond the number of
        features or labels (the message has the line); or if there is no row, no label, or sizes exceed the limits.
    """
    limits = limits or Limits()
    text = decode(read_bytes(path, limits), path, encoding)
    lines = [line.partition("#")[0].rstrip().replace("\t", " ") for line in text.split("\n")]
    numbers = [i for i, line in enumerate(lines, 1) if line.strip()]
    rows = parse_sparse_rows([lines[i - 1] for i in numbers], numbers, path)
    if not len(rows.lines):
        raise DatasetError("the file has no row", path)
    if not len(rows.labels) and label_names is None:
        raise DatasetError("no row has a label", path)
    first = (_first(rows.features, first_feature), _first(rows.labels, first_label))
    d = _count(rows.features, first[0]) if n_features is None else n_features
    q = _count(rows.labels, first[1]) if label_names is None else len(label_names)
    if d < 1:
        raise DatasetError("no row has a feature", path)
    if d + q > limits.max_columns:  # before the names are created
        raise DatasetError(f"{d + q} columns, more than the limit of {limits.max_columns}", path)
    require_labels(len(rows.lines), q, path, limits)
    names = label_names if label_names is not None else [str(k + first[1]) for k in range(q)]
    return rows.to_raw((d, q), first, names)


def _first(indices: np.ndarray, given: int | None) -> int:
    return given if given is not None else int(len(indices) > 0 and indices.min() > 0)


def _count(indices: np.ndarray, first: int) -> int:
    return int(indices.max()) + 1 - first if len(indices) else 0


def read_xc(
    path: PathLike,
    label_names: Sequence[str] | None = None,
    limits: Limits | None = None,
    encoding: str | None = None,
) -> RawData:
    """Read a file ``n d q`` followed by n lines ``label,label feature:value feature:value ...``.

    Parameters
    ----------
    path : path-like
        The file. Labels and features count from 0; a row may have no label or nothing at all (an empty line).
    label_names : sequence of str, optional
        Names of the q labels, default ``0``, ``1``, ...
    limits : Limits, optional
        Upper bounds of sizes; ``max_columns`` also bounds the labels, ``max_cells`` a dense label matrix only.
    encoding : str, optional
        See :func:`multilab.datasets.file_access.decode`.

    Returns
    -------
    RawData
        ``X`` is CSR, and ``Y`` too where it has more than 2^24 entries; features are called ``f1``, ``f2``, ...

    Raises
    ------
    DatasetError
        If the sizes are missing or absurd, there are fewer or more rows than declared, or a row cannot be read, see
        :func:`parse_sparse_rows`. The message has the line.
    """
    limits = limits or Limits()
    lines = decode(read_bytes(path, limits), path, encoding).split("\n")
    sizes = lines[0].split()
    if len(sizes) != 3 or not all(s.isascii() and s.isdecimal() and len(s) < 16 for s in sizes):
        table = (
            f"; a table of named columns is read with {option('format', 'csv')}" if set(lines[0]) & set("\t,;") else ""
        )
        raise DatasetError(f"expected the numbers of rows, features and labels{table}", path, 1)
    n, d, q = map(int, sizes)
    if min(n, d, q) < 1:
        raise DatasetError(f"the header declares {n} rows, {d} features and {q} labels; all must be positive", path, 1)
    if d + q > limits.max_columns:
        raise DatasetError(f"the header declares {d + q} columns; the limit is {limits.max_columns}", path, 1)
    if not lines[-1]:
        lines.pop()  # the end of the last line; further empty lines are rows, as far as n goes
    while len(lines) > n + 1 and not lines[-1].strip():
        lines.pop()
    if len(lines) != n + 1:
        raise DatasetError(f"the header declares {n} rows; the file has {len(lines) - 1}", path, 1)
    require_labels(n, q, path, limits)
    names = [str(k) for k in range(q)] if label_names is None else label_names
    if len(names) != q:
        raise DatasetError(f"expected {q} label names, got {len(names)}", path, 1)
    rows = parse_sparse_rows([line.rstrip() for line in lines[1:]], range(2, n + 2), path)
    return rows.to_raw((d, q), (0, 0), names)
