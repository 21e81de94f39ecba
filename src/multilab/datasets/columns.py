"""From a table to features and labels: which columns are labels, and how nominal ones are coded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.datasets.errors import DatasetError
from multilab.datasets.labels_xml import read_label_names
from multilab.datasets.numbers import to_number
from multilab.datasets.opening import Limits, decode, read_bytes, require_cells
from multilab.datasets.raw import RawData

__all__ = ["Column", "LabelOptions", "assemble", "canonical_csr"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Column:
    """One column: its name, its nominal values in order of declaration (None: numeric), its line."""

    name: str
    values: tuple[str, ...] | None = None
    line: int | None = None

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The nominal values as distinct numbers, or None where one of them is not a number."""
        found = tuple(map(to_number, self.values or ()))
        return found if found and not np.isnan(found).any() and len(set(found)) == len(found) else None

    @property
    def binary(self) -> bool:
        """Whether the column is nominal and its values are 0 and 1 (or one of them)."""
        return self.values is not None and self.numbers is not None and set(self.numbers) <= {0.0, 1.0}

    @property
    def plain(self) -> bool:
        """Whether the code of a value is the number that it stands for, so that nothing needs recoding."""
        return self.values is None or (self.binary and self.numbers in ((0.0, 1.0), (0.0,)))


@dataclass(frozen=True)
class LabelOptions:
    """How the caller says which columns are the labels, by at most one of the ways.

    They are those of :func:`multilab.datasets.reading.read`.
    """

    labels_xml: PathLike | None = None
    label_names: Sequence[str] | None = None
    labels_first: int | None = None
    labels_last: int | None = None
    label_columns: Sequence[str] | PathLike | None = None
    label_prefix: str | None = None

    def given(self) -> bool:
        """Whether any way was named."""
        return any(value is not None for value in self.__dict__.values())

    def choose(self, columns: Sequence[Column], path: PathLike) -> np.ndarray:
        """Return the positions of the label columns in the order of the file.

        Raises
        ------
        DatasetError
            No way or several ways given, a name that is no column, or no feature or no label left.
        """
        ways = [name for name, value in self.__dict__.items() if value is not None]
        if len(ways) != 1:
            said = " and ".join(ways) if ways else "nothing"
            raise DatasetError(
                f"{said} says which columns are the labels; give one of labels_xml, labels_first, "
                "labels_last, label_columns, label_prefix",
                path,
            )
        chosen = self._mask(columns, path)
        if not chosen.any():
            raise DatasetError(f"no column is a label by {ways[0]}", path)
        if chosen.all():
            raise DatasetError(f"every column is a label by {ways[0]}: no feature is left", path)
        return np.flatnonzero(chosen)

    def _mask(self, columns: Sequence[Column], path: PathLike) -> np.ndarray:
        m = len(columns)
        if self.label_prefix is not None:
            return np.array([c.name.startswith(self.label_prefix) for c in columns])
        count = self.labels_first if self.labels_first is not None else self.labels_last
        if count is not None:
            if not 0 < count < m:
                raise DatasetError(f"{count} label columns asked for, the file has {m} columns", path)
            position = np.arange(m)
            return position < count if self.labels_first is not None else position >= m - count
        source, wanted = self._wanted(path)
        known = {c.name for c in columns}
        for name, line in wanted.items():
            if name not in known:
                raise DatasetError(f"label '{name}' is not a column of {Path(path).name}", source, line)
        return np.array([c.name in wanted for c in columns])

    def _wanted(self, path: PathLike) -> tuple[PathLike, dict[str, int | None]]:
        """Return the label names with their lines, and the file that they are written in."""
        if self.labels_xml is not None:
            return self.labels_xml, dict(read_label_names(self.labels_xml))
        names = self.label_columns if self.label_columns is not None else self.label_names
        assert names is not None
        if isinstance(names, str) and ("," in names or not Path(names).is_file()):
            return path, {name.strip(): None for name in names.split(",") if name.strip()}
        if isinstance(names, str | os.PathLike):
            lines = decode(read_bytes(names)).split("\n")
            return names, {text.strip(): i for i, text in enumerate(lines, 1) if text.strip()}
        return path, dict.fromkeys(names)


def canonical_csr(matrix: Any) -> sp.csr_array:
    """Return float64 CSR with sorted 32-bit indices (64 where needed), no duplicates, no stored zeros."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if max(*csr.shape, csr.nnz) < 2**31:  # scikit-learn's liblinear and libsvm take 32-bit indices only
        csr.indices = csr.indices.astype(np.int32, copy=False)
        csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def assemble(
    table: Any,
    columns: Sequence[Column],
    labels: np.ndarray,
    path: PathLike,
    limits: Limits,
    notes: Sequence[str] = (),
) -> RawData:
    """Split a table into features and labels and code the nominal features.

    Parameters
    ----------
    table : ndarray or CSR of shape (n, m)
        Numeric columns hold their numbers, nominal ones the position of the value in ``Column.values``;
        missing feature values are NaN. Label values have been checked to be 0 or 1.
    columns : sequence of Column
        The m columns.
    labels : ndarray of int
        Positions of the label columns.
    path, limits
        For the error when the label matrix would be too large.
    notes : sequence of str
        What the reader has done, see `RawData`.

    Returns
    -------
    RawData
        A nominal feature with the values 0 and 1 is one 0/1 column; any other nominal feature with values
        a, b, ... is one 0/1 column ``name=a``, ``name=b``, ... per value, at the place of the feature.
    """
    require_cells(table.shape[0], len(labels), "the label matrix", path, limits)
    features = np.setdiff1d(np.arange(len(columns)), labels)
    Y = table[:, labels]
    Y = Y.toarray() if sp.issparse(Y) else Y
    flipped = [k for k, j in enumerate(labels) if not columns[j].plain]
    for k in flipped:
        Y[:, k] = np.asarray(columns[labels[k]].numbers)[Y[:, k].astype(np.intp)]
    values = table[:, features]
    missing = int(np.isnan(values.data if sp.issparse(values) else values).sum())
    chosen = [columns[j] for j in features]
    X, names = (values, [c.name for c in chosen]) if all(c.plain for c in chosen) else _coded(values, chosen)
    X = canonical_csr(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64) + 0.0  # no -0.0
    return RawData(
        X=X,
        Y=np.ascontiguousarray(Y, dtype=np.uint8),
        feature_names=names,
        label_names=[columns[j].name for j in labels],
        original_features=len(chosen),
        nominal_features=sum(c.values is not None for c in chosen),
        missing_values=missing,
        nominal=_nominal(chosen),
        notes=tuple(notes),
    )


def _nominal(columns: Sequence[Column]) -> tuple[tuple[str, int, int], ...]:
    """Return name, first and one past the last coded column of every nominal feature."""
    widths = [1 if c.plain or c.binary else len(c.values or ()) for c in columns]
    stops = np.cumsum(widths).tolist()
    spans = zip(columns, widths, stops, strict=True)
    return tuple((c.name, stop - width, stop) for c, width, stop in spans if c.values is not None)


def _coded(values: Any, columns: Sequence[Column]) -> tuple[Any, list[str]]:
    """Return the features with every nominal column as 0/1 columns, and their names."""
    sparse = sp.issparse(values)
    by_column = values.tocsc() if sparse else values
    blocks, names = [], []
    for j, column in enumerate(columns):
        block = by_column[:, [j]]
        if column.plain:
            names.append(column.name)
        else:
            codes = block.toarray().ravel() if sparse else block.ravel()
            if column.binary:
                names.append(column.name)
                block = _looked_up(codes, np.asarray(column.numbers))
            else:
                names += [f"{column.name}={value}" for value in column.values or ()]
                block = _looked_up(codes, np.eye(len(column.values or ())))
            block = sp.csc_array(block) if sparse else block
        blocks.append(block)
    return (sp.hstack(blocks, format="csr") if sparse else np.hstack(blocks)), names


def _looked_up(codes: np.ndarray, meaning: np.ndarray) -> np.ndarray:
    """Return one row of ``meaning`` per code; a missing code gives NaN throughout."""
    absent = np.isnan(codes)
    found = meaning.reshape(len(meaning), -1)[np.where(absent, 0, codes).astype(np.intp)]
    found[absent] = np.nan
    return found
