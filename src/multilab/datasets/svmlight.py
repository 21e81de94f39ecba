"""Reader of multi-label svmlight files: sparse rows ``label,label index:value index:value``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.datasets.column_roles import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, read_bytes, require_cells
from multilab.datasets.number_parsing import to_number
from multilab.datasets.raw_data import RawData

DENSE_LABELS = 2**24
"""Largest label matrix that the readers of sparse rows return dense: 16 MiB."""


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
        order = np.lexsort((j, self.feature_rows))
        repeated = (np.diff(j[order]) == 0) & (np.diff(self.feature_rows[order]) == 0)
        if repeated.any():
            entry = order[int(np.flatnonzero(repeated)[0])]
            line = self.lines[self.feature_rows[entry]]
            raise DatasetError(f"feature index {self.features[entry]} is given twice", self.path, line)
        Y = label_matrix(self.label_rows, k, (n, shape[1]))
        X = canonical_csr(sp.coo_array((self.values, (self.feature_rows, j)), shape=(n, shape[0])))
        names = [f"f{i}" for i in range(1, shape[0] + 1)]
        return RawData(X, Y, names, list(label_names), original_features=shape[0])

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


def parse_sparse_rows(lines: Iterable[tuple[int, str]], path: PathLike) -> SparseRows:
    """Read numbered lines of ``label,label index:value index:value``.

    A line that begins with a blank or with ``index:value`` is a row without labels.

    Raises
    ------
    DatasetError
        With the line: an index that is not an integer, a value that is not a finite number, a broken entry.
    """
    features, values, labels = list[int](), list[float](), list[int]()
    widths, label_widths, numbers, line = list[int](), list[int](), list[int](), 0
    try:
        for line, text in lines:
            before = len(features), len(labels)
            head, _, rest = text.partition(" ")
            if ":" in head:
                head, rest = "", text
            if head:
                labels += [_index(token, "label") for token in head.split(",")]
            for token in rest.split():
                index, colon, value = token.partition(":")
                if not colon:
                    raise ValueError(f"'{token[:40]}' is not of the form index:value")
                features.append(_index(index, "feature"))
                values.append(_finite(value))
            widths.append(len(features) - before[0])
            label_widths.append(len(labels) - before[1])
            numbers.append(line)
    except ValueError as error:
        raise DatasetError(str(error), path, line) from None
    rows = np.arange(len(numbers))
    return SparseRows(
        np.array(features, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(labels, dtype=np.int64),
        np.repeat(rows, widths),
        np.repeat(rows, label_widths),
        np.array(numbers, dtype=np.int64),
        path,
    )


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
        Names, and so the number, of the labels. Default: all up to the largest index, named by their indices.
    n_features : int, optional
        Number of features. Default: all up to the largest index. Needed for a file with a subset of the rows.
    first_feature, first_label : 0 or 1, optional
        Index of the first one. Default: 0 where a 0 occurs in the file, else 1.
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
        With its line: see :func:`parse_sparse_rows`; an index beyond the number of features or labels, or
        given twice. Further: no row, no label, or sizes beyond the limits.
    """
    limits = limits or Limits()
    text = decode(read_bytes(path, limits), path, encoding)
    lines = ((i, line.partition("#")[0].rstrip().replace("\t", " ")) for i, line in enumerate(text.split("\n"), 1))
    rows = parse_sparse_rows(((i, line) for i, line in lines if line.strip()), path)
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
