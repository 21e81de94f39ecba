"""MATLAB files (versions 5 to 7): features and labels from the matrices of numbers among their variables.

``scipy.io.loadmat`` is not used: its compiled code trusts the types and indices in the file, so that a changed byte
makes it access foreign memory. Checking all of them is most of the work of a reader (decision 24 has measurements). The
digest in a card is no reason to trust a file, because anyone can write a card. "MAT-File Format" by The MathWorks
describes the format.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.columns import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, max_content, read_bytes, require_cells, too_large
from multilab.datasets.raw_data import RawData

_HEADER = 128  # bytes, fixed by the format
_MATRIX, _COMPRESSED = 14, 15  # types of the elements of a file: a variable, plain or deflated
_INTEGERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 12: "i8", 13: "u8"}
_NUMBERS = _INTEGERS | {7: "f4", 9: "f8"}
_NAMES = {1: "i1", 2: "u1", 16: "u1"}
_DENSE_CLASSES, _SPARSE_CLASS, _OPAQUE_CLASS = range(6, 16), 5, 17
_COMPLEX = 0x0800  # bit of the array flags
_MAX_VARIABLES = 10_000  # a small compressed file may hold millions, each of which takes microseconds
_MAX_LENGTH = 2048  # of names and shapes, which are cut: those of matrices are shorter, those of a bomb fill the memory

_PAIRS = (("data", "target"), ("train_data", "train_target"), ("test_data", "test_target"))
_ROLES = [role for pair in _PAIRS for role in pair]
_ORIENTATIONS = ("labels x instances", "instances x labels")


def read_matlab(
    path: PathLike,
    keys: Mapping[str, str] | None = None,
    label_names: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> RawData:
    """Read features and labels from a ``.mat`` file.

    Parameters
    ----------
    path : path-like
        The file.
    keys : mapping, optional
        Variable of each role; the roles are ``data`` and ``target``, or ``train_data``, ``train_target``,
        ``test_data`` and ``test_target``. The default is the variable with the name of the role. ``orientation`` may be
        ``labels x instances`` or ``instances x labels``; it is needed only if a target matrix is square.
    label_names : sequence of str, optional
        Names of the labels, which the file does not hold; default ``label1``, ``label2``, ...
    limits : Limits, optional
        Upper bounds of sizes.

    Returns
    -------
    RawData
        The rows of ``data``, or those of the training set followed by the test set, with ``train_rows``.
        A dense matrix stays dense, a sparse one becomes CSR. Features are called ``f1``, ``f2``, ...

    Raises
    ------
    DatasetError
        If the file is not a MATLAB file of versions 5 to 7 (version 7.3 is HDF5; ``save -v7`` writes version 7), is
        damaged, or grows beyond the limits; if a variable is missing, occurs twice, or is not a matrix of real numbers;
        if shapes do not fit, a value is not finite, or labels are neither 0/1 nor -1/+1. Cells, structures, texts,
        objects, functions, complex numbers and arrays that do not have two dimensions are skipped unless ``keys`` names
        them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, scipy.io
    >>> from multilab.datasets.matlab import read_matlab
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.mat"
    >>> scipy.io.savemat(path, {"tempo": np.array([[120.0], [60.0]]), "moods": np.array([[1, -1], [-1, 1], [1, 1]])})
    >>> raw = read_matlab(path, {"data": "tempo", "target": "moods"})
    >>> raw.X.tolist(), raw.Y.tolist()
    ([[120.0], [60.0]], [[1, 0, 1], [0, 1, 1]])
    """
    limits = limits or Limits()
    content = read_bytes(path, limits)
    names = _names(keys, path)
    try:
        found, in_file = _variables(content, names.values(), path, limits)
        pairs = _wanted(found, in_file, names, path, limits)
        matrices = {variable.name: variable.matrix() for pair in pairs for variable in pair}
    except DatasetError:
        raise
    except (ValueError, zlib.error) as error:
        raise DatasetError(f"not a readable MATLAB file ({error})", path) from None
    blocks = [matrices[data.name] for data, _ in pairs]
    targets = [
        _targets(matrices[target.name], X.shape[0], target.name, (keys or {}).get("orientation"), path)
        for X, (_, target) in zip(blocks, pairs, strict=True)
    ]
    d, q = blocks[0].shape[1], targets[0].shape[1]
    if any(X.shape[1] != d for X in blocks) or any(Y.shape[1] != q for Y in targets):
        raise DatasetError("the training and the test set differ in their columns", path)
    if d + q > limits.max_columns:  # before the names are created
        raise DatasetError(f"{d + q} columns, more than the limit of {limits.max_columns}", path)
    labels = list(label_names) if label_names is not None else [f"label{k}" for k in range(1, q + 1)]
    if len(labels) != q:
        raise DatasetError(f"expected {q} label names, got {len(labels)}", path)
    is_sparse = any(map(sp.issparse, blocks))
    if is_sparse:
        X = canonical_csr(sp.vstack(blocks))
    else:
        X = np.concatenate(blocks, out=np.empty((sum(map(len, blocks)), d)))
        X += 0.0  # without -0.0
    values = X.data if is_sparse else X
    if np.isinf(values).any():
        raise DatasetError(f"variable {' or '.join(data.name for data, _ in pairs)} has infinite values", path)
    return RawData(
        X=X,
        Y=_binary(np.vstack(targets), path),
        feature_names=[f"f{j}" for j in range(1, d + 1)],
        label_names=labels,
        original_features=d,
        missing_values=int(np.isnan(values).sum()),
        train_rows=blocks[0].shape[0] if len(blocks) == 2 else None,
    )


@dataclass(frozen=True)
class _Variable:
    """Variable of a file: its name, its shape, and the elements that describe it."""

    name: str
    shape: tuple[int, ...]
    kind: str  # "dense" and "sparse" matrices of real numbers, and "other"
    body: memoryview
    order: str

    def matrix(self) -> Any:
        """Return the matrix, after a check of every size and index."""
        parts = islice(_elements(self.body, self.order), 3, None)
        if self.kind == "dense":
            values = _array(parts, self.order, _NUMBERS)
            self._require_end(parts)
            return values.reshape(self.shape, order="F")
        rows = _array(parts, self.order, _INTEGERS).astype(np.int64)
        starts = _array(parts, self.order, _INTEGERS).astype(np.int64)
        values = _array(parts, self.order, _NUMBERS).astype(np.float64)
        self._require_end(parts)
        # SciPy's own check accepts decreasing starts if the last one is 0, or if their differences overflow.
        if not len(starts) or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
            raise ValueError(f"the column pointers of {self.name} are wrong")
        matrix = sp.csc_array((values[: starts[-1]], rows[: starts[-1]], starts), shape=self.shape)
        matrix.check_format(full_check=True)
        return matrix

    def _require_end(self, parts: Iterator[tuple[int, memoryview]]) -> None:
        if next(parts, None) is not None:  # such as an imaginary part, which the flags deny
            raise ValueError(f"{self.name} has more parts than a matrix of real numbers")


def _variables(
    content: bytes, wanted: Collection[str], path: PathLike, limits: Limits
) -> tuple[dict[str, _Variable], list[str]]:
    """Return the wanted variables of a file by name, and the names of all."""
    if content.startswith((b"\x89HDF", b"MATLAB 7.3")):
        raise DatasetError("this is a MATLAB 7.3 (HDF5) file; save it with -v7", path)
    order = {b"IM": "<", b"MI": ">"}.get(content[_HEADER - 2 : _HEADER])
    if order is None:
        raise ValueError("no header of version 5 to 7")
    found, names, most = dict[str, _Variable](), list[str](), max_content(len(content), limits)
    left = most  # of the bytes that all compressed variables together may have
    for kind, body in _elements(memoryview(content)[_HEADER:], order):
        if kind == _COMPRESSED:
            stream = zlib.decompressobj()
            inner = memoryview(stream.decompress(body, left + 1))
            left -= len(inner)
            if left < 0:
                raise too_large(path, most, limits)
            if not stream.eof:
                raise ValueError("a compressed variable is truncated")
            inside = list(islice(_elements(inner, order), 2))
            if len(inside) != 1:
                raise ValueError("a compressed element does not hold one variable")
            kind, body = inside[0]
        if kind != _MATRIX:
            raise ValueError(f"an element of type {kind} in place of a variable")
        if len(names) == _MAX_VARIABLES:
            raise ValueError(f"more than {_MAX_VARIABLES} variables")
        variable = _variable(body, order)
        if variable.name in found:
            raise DatasetError(f"two variables are called {variable.name}", path)
        if variable.name in wanted:
            found[variable.name] = variable
        names.append(variable.name)
    return found, names


def _variable(body: memoryview, order: str) -> _Variable:
    parts = _elements(body, order)
    flags = _array(parts, order, {6: "u4"})
    if len(flags) != 2:
        raise ValueError("a variable without array flags")
    array_class = int(flags[0]) & 0xFF
    kind = "sparse" if array_class == _SPARSE_CLASS else "dense" if array_class in _DENSE_CLASSES else "other"
    shape = () if array_class == _OPAQUE_CLASS else _array(parts, order, {5: "i4"})[:_MAX_LENGTH].tolist()
    name = _array(parts, order, _NAMES)[:_MAX_LENGTH].tobytes().decode("latin-1")
    return _Variable(name, tuple(shape), "other" if flags[0] & _COMPLEX else kind, body, order)


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield type and content of each element, one after the other."""
    position = 0
    while position + 8 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, position)
        start, small = position + 8, kind >> 16
        if small:  # the size of an element of up to four bytes, which are in the tag itself
            kind, size, start = kind & 0xFFFF, small, position + 4
        if small > 4 or start + size > len(content):
            raise ValueError("an element is truncated")
        yield kind, content[start : start + size]
        position = start + size
        if kind not in (_MATRIX, _COMPRESSED):
            position += -position % 8
    if any(content[position:]):
        raise ValueError("an element is truncated")


def _array(parts: Iterator[tuple[int, memoryview]], order: str, types: Mapping[int, str]) -> np.ndarray:
    """Return the next element as an array; refuse one of other types."""
    kind, content = next(parts, (0, b""))
    if kind not in types:
        raise ValueError(f"a variable is incomplete, or has an element of type {kind} in the wrong place")
    return np.frombuffer(content, order + types[kind])


def _names(keys: Mapping[str, str] | None, path: PathLike) -> dict[str, str]:
    """Return the name of the variable of each role."""
    given = dict(keys or {})
    orientation = given.pop("orientation", None)
    if orientation is not None and orientation not in _ORIENTATIONS:
        raise DatasetError(f"orientation '{orientation}', expected one of {', '.join(_ORIENTATIONS)}", path)
    for role in given:
        if role not in _ROLES:
            raise DatasetError(f"unknown key '{role}', expected some of {', '.join(_ROLES)}, orientation", path)
    if any((data in given) != (target in given) for data, target in _PAIRS):
        raise DatasetError("keys name data without target, or target without data", path)
    return given or {role: role for role in _ROLES}


def _wanted(
    found: Mapping[str, _Variable], in_file: Sequence[str], names: Mapping[str, str], path: PathLike, limits: Limits
) -> list[tuple[_Variable, _Variable]]:
    """Return the pairs of data and target of the file, after a check of names, kinds and sizes."""
    present = [pair for pair in _PAIRS if all(names.get(role) in found for role in pair)]
    missing = [name for role, name in names.items() if role != name and name not in found]
    if missing or not present:
        lacking = ", ".join(missing) or "data and target, or train_data, train_target, test_data and test_target"
        there = excerpt(", ".join(filter(None, in_file)), 200) or "none"
        raise DatasetError(f"no variable {lacking}; the file has {there}", path)
    if present[0] == _PAIRS[0] and len(present) > 1:
        raise DatasetError("the file has both data and train_data; choose in keys which to read", path)
    for role in (role for pair in present for role in pair):
        variable = found[names[role]]
        what, shape = f"variable {variable.name}", variable.shape
        if variable.kind == "other":
            raise DatasetError(f"{what} is not a matrix of real numbers", path)
        if len(shape) != 2 or min(shape) < 1:
            raise DatasetError(f"{what} has the shape {shape}, expected a matrix", path)
        if variable.kind == "sparse" and role.endswith("data"):  # stays sparse, with a pointer for each row
            require_cells(shape[0], 1, f"the row pointer of {what}", path, limits)
        else:
            require_cells(shape[0], shape[1], what, path, limits)
    return [(found[names[data]], found[names[target]]) for data, target in present]


def _targets(matrix: Any, rows: int, name: str, orientation: str | None, path: PathLike) -> np.ndarray:
    """Return the labels of a target matrix with a row per instance."""
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    if orientation is None and dense.shape == (rows, rows):
        raise DatasetError(
            f"{name} is square, so that labels and instances cannot be distinguished; set an orientation in keys "
            f"({' or '.join(_ORIENTATIONS)})",
            path,
        )
    if dense.shape[0] != rows if orientation is None else orientation == _ORIENTATIONS[0]:
        dense = dense.T
    if dense.shape[0] != rows:
        raise DatasetError(f"{name} has the shape {matrix.shape}, which does not fit {rows} rows of data", path)
    return dense.astype(np.float64)


def _binary(targets: np.ndarray, path: PathLike) -> np.ndarray:
    low = -1.0 if (targets == -1).any() else 0.0
    wrong = np.argwhere((targets != 1) & (targets != low))
    if len(wrong):
        row, label = wrong[0]
        raise DatasetError(
            f"non-binary label: label {label + 1} of row {row + 1} is {targets[row, label]:g}, expected {low:g} or 1",
            path,
        )
    return np.ascontiguousarray(targets == 1, dtype=np.uint8)
