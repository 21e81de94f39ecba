"""MATLAB files (version 5 to 7): their variables, and the features and labels among them.

Every type, size and index is validated before use. ``scipy.io.loadmat`` is not used: its compiled code takes types and
indices from the file as they are, so that one changed byte makes it read or write memory that is not its own. Only
matrices of numbers are read here. The format is described in "MAT-File Format" of The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.columns import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, max_content, read_bytes, require_cells, too_large
from multilab.datasets.raw_data import RawData

_HEADER = 128  # bytes, fixed by the format of versions 5 to 7
_CHUNK = 1 << 24  # bytes decompressed at a time, so that the limit is noticed before the memory is full
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_OPAQUE_CLASS, _SPARSE_CLASS = 17, 5
_DENSE_CLASSES = range(6, 16)
_COMPLEX = 0x0800  # bit of the array flags


@dataclass(frozen=True)
class Variable:
    """Variable of a MATLAB file.

    Attributes
    ----------
    name : str
        Its name.
    shape : tuple of int
        Its declared shape.
    kind : {"dense", "sparse", "other"}
        Matrices of real numbers, and everything else.
    content : memoryview or None
        The bytes after the name; None for a variable that was not requested.
    order : {"<", ">"}
        Byte order.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    content: memoryview | None
    order: str

    def matrix(self) -> np.ndarray | sp.csc_array:
        """Return a dense or sparse matrix.

        Raises
        ------
        ValueError
            A type that is no number, a wrong number of values, or an index out of range.
        """
        assert self.content is not None
        if self.kind == "sparse":
            return self._sparse()
        values, _ = _numbers(self.content, 0, self.order)
        if len(values) != math.prod(self.shape):
            raise ValueError(f"{self.name} has {len(values)} values for the shape {self.shape}")
        return values.reshape(self.shape, order="F")

    def _sparse(self) -> sp.csc_array:
        assert self.content is not None
        rows, position = _numbers(self.content, 0, self.order)
        pointers, position = _numbers(self.content, position, self.order)
        if rows.dtype.kind not in "iu" or pointers.dtype.kind not in "iu":
            raise ValueError(f"the indices of {self.name} are not integers")
        n, columns = self.shape
        pointers = pointers.astype(np.int64)
        if len(pointers) != columns + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise ValueError(f"the column pointers of {self.name} are wrong")
        stored = int(pointers[-1])
        rows = rows[:stored].astype(np.int64)
        values = _numbers(self.content, position, self.order)[0][:stored] if stored else np.empty(0)
        if len(rows) != stored or len(values) != stored:
            raise ValueError(f"{self.name} has fewer entries than its column pointers")
        if stored and not 0 <= rows.min() <= rows.max() < n:
            raise ValueError(f"a row index of {self.name} is not among the {n} from 0 to {n - 1}")
        return sp.csc_array((values.astype(np.float64), rows, pointers), shape=self.shape)


def read_variables(
    content: bytes, requested: Collection[str], most: int, too_large: Callable[[], Exception]
) -> list[Variable]:
    """Return all variables of a file; only the requested ones have content.

    Parameters
    ----------
    content : bytes
        The file.
    requested : collection of str
        Names of the requested variables.
    most : int
        Maximum total size of the decompressed variables.
    too_large : callable
        Returns the exception for more.

    Raises
    ------
    NotImplementedError
        Version 7.3.
    ValueError
        No file of version 5 to 7, or a damaged one.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128], "")
    if content.startswith(b"\x89HDF") or (order and content[125 if order == "<" else 124] == 2):
        raise NotImplementedError("version 7.3")
    if not order:
        raise ValueError("no header of version 5 to 7")
    return [_variable(body, requested, order) for body in _bodies(memoryview(content), order, most, too_large)]


def _bodies(content: memoryview, order: str, most: int, too_large: Callable[[], Exception]) -> Iterator[memoryview]:
    """Yield the content of every matrix element, decompressed."""
    position = _HEADER
    while position + 8 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, position)
        body = content[position + 8 : position + 8 + size]
        if len(body) < size:
            raise ValueError("the file is truncated")
        position += 8 + size
        if kind == _COMPRESSED:
            inner = _decompressed(body, most, too_large)
            most -= len(inner)
            kind, size = struct.unpack_from(order + "II", inner) if len(inner) >= 8 else (0, 0)
            body = memoryview(inner)[8 : 8 + size]
        if kind == _MATRIX and size:
            if len(body) < size:
                raise ValueError("a variable is truncated")
            yield body
    if any(content[position:]):
        raise ValueError("the file is truncated")


def _decompressed(packed: memoryview, most: int, too_large: Callable[[], Exception]) -> bytes:
    stream, chunks, total = zlib.decompressobj(), list[bytes](), 0
    rest: bytes | memoryview = packed
    try:
        while len(rest) and not stream.eof:
            chunks.append(stream.decompress(rest, _CHUNK))
            rest = stream.unconsumed_tail
            total += len(chunks[-1])
            if total > most:
                raise too_large()
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not stream.eof:
        raise ValueError("a compressed variable is truncated")
    return b"".join(chunks)


def _variable(body: memoryview, requested: Collection[str], order: str) -> Variable:
    kind, flags, position = _element(body, 0, order)
    if kind != 6 or len(flags) != 8:
        raise ValueError("a variable has no array flags")
    bits = struct.unpack_from(order + "I", flags)[0]
    array_class = bits & 0xFF
    if array_class == _OPAQUE_CLASS:  # an object of a class: it has no dimensions
        return Variable(bytes(_element(body, position, order)[1]).decode("latin-1"), (), "other", None, order)
    kind, sizes, position = _element(body, position, order)
    if kind != 5 or len(sizes) < 8 or len(sizes) % 4:
        raise ValueError("a variable has no dimensions")
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    kind, name, position = _element(body, position, order)
    if kind not in (1, 2, 16) or min(shape) < 0:
        raise ValueError("a variable has no name or a negative size")
    known = "sparse" if array_class == _SPARSE_CLASS else "dense" if array_class in _DENSE_CLASSES else "other"
    text = bytes(name).decode("latin-1")
    content = body[position:] if text in requested else None
    return Variable(text, shape, "other" if bits & _COMPLEX else known, content, order)


def _element(data: memoryview, position: int, order: str) -> tuple[int, memoryview, int]:
    """Return type and content of the element at ``position``, and the position of the next one."""
    if position + 8 > len(data):
        raise ValueError("a variable is truncated")
    first, second = struct.unpack_from(order + "II", data, position)
    small = first >> 16  # the size of an element of up to four bytes, which are in the tag itself
    kind, size, start = (first & 0xFFFF, small, position + 4) if small else (first, second, position + 8)
    if small > 4 or start + size > len(data):
        raise ValueError("a variable is truncated")
    return kind, data[start : start + size], position + 8 if small else start + -(-size // 8) * 8


def _numbers(data: memoryview, position: int, order: str) -> tuple[np.ndarray, int]:
    kind, payload, after = _element(data, position, order)
    if kind not in _NUMBERS:
        raise ValueError(f"values of type {kind}, which are not numbers")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(payload) % dtype.itemsize:
        raise ValueError("values of a broken size")
    return np.frombuffer(payload, dtype), after


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
        No MATLAB file (or version 7.3, which is HDF5), a variable missing or no matrix, shapes that do not
        fit, a value that is not finite, or labels other than 0/1 and -1/+1.
    """
    limits = limits or Limits()
    names = _names(keys, path)
    variables = _variables(read_bytes(path, limits), list(names.values()), path, limits)
    orientation = (keys or {}).get("orientation")
    blocks, targets = [], []
    for data, target in _wanted(variables, names, path, limits):
        X = _features(_matrix(data, path), data.name, path)
        Y = _targets(_matrix(target, path), X.shape[0], target.name, orientation, path)
        blocks.append(X)
        targets.append(Y)
    if len({b.shape[1] for b in blocks}) > 1 or len({t.shape[1] for t in targets}) > 1:
        raise DatasetError("the training and the test set differ in their columns", path)
    Y = _binary(np.vstack(targets), path)
    X = sp.vstack(blocks) if any(map(sp.issparse, blocks)) else np.vstack(blocks)
    if X.shape[1] + Y.shape[1] > limits.max_columns:  # before the names are created
        raise DatasetError(f"{X.shape[1] + Y.shape[1]} columns, more than the limit of {limits.max_columns}", path)
    labels = list(label_names) if label_names is not None else [f"label{k}" for k in range(1, Y.shape[1] + 1)]
    if len(labels) != Y.shape[1]:
        raise DatasetError(f"expected {Y.shape[1]} label names, got {len(labels)}", path)
    return RawData(
        X=canonical_csr(X) if sp.issparse(X) else np.ascontiguousarray(X) + 0.0,
        Y=Y,
        feature_names=[f"f{j}" for j in range(1, X.shape[1] + 1)],
        label_names=labels,
        original_features=X.shape[1],
        missing_values=int(np.isnan(X.data if sp.issparse(X) else X).sum()),
        train_rows=blocks[0].shape[0] if len(blocks) == 2 else None,
    )


def _names(keys: Mapping[str, str] | None, path: PathLike) -> dict[str, str]:
    given = dict(keys or {})
    orientation = given.pop("orientation", None)
    if orientation is not None and orientation not in _ORIENTATIONS:
        raise DatasetError(f"orientation '{orientation}', expected one of {', '.join(_ORIENTATIONS)}", path)
    for role in given:
        if role not in _ROLES:
            raise DatasetError(f"unknown key '{role}', expected some of {', '.join(_ROLES)}, orientation", path)
    chosen = given or {role: role for role in _ROLES}
    if given and any(role not in given for pair in _PAIRS for role in pair if set(pair) & set(given)):
        raise DatasetError("keys name data without target or target without data", path)
    return chosen


def _wanted(
    variables: Sequence[Variable], names: Mapping[str, str], path: PathLike, limits: Limits
) -> list[tuple[Variable, Variable]]:
    """Return the pairs of data and target of the file, after a check of names and sizes."""
    by_name = {variable.name: variable for variable in variables}
    present = [pair for pair in _PAIRS if all(names.get(role) in by_name for role in pair)]
    missing = [name for role, name in names.items() if role != name and name not in by_name]
    if missing or not present:
        lacking = ", ".join(missing) or "data and target, or train_data, train_target, test_data and test_target"
        there = excerpt(", ".join(filter(None, by_name)), 200) or "none"
        raise DatasetError(f"no variable {lacking}; the file has {there}", path)
    if present[0] == _PAIRS[0] and len(present) > 1:
        raise DatasetError("the file has both data and train_data; choose in keys which to read", path)
    listed = [variable.name for variable in variables]
    for role in (role for pair in present for role in pair):
        if listed.count(names[role]) > 1:
            raise DatasetError(f"two variables are called {names[role]}", path)
        _check_variable(by_name[names[role]], "data" in role, path, limits)
    return [(by_name[names[data]], by_name[names[target]]) for data, target in present]


def _check_variable(variable: Variable, is_data: bool, path: PathLike, limits: Limits) -> None:
    """Refuse a variable that is not a matrix of real numbers, or too large."""
    what, shape = f"variable {variable.name}", variable.shape
    if variable.kind == "other":
        raise DatasetError(f"{what} is not a matrix of real numbers", path)
    if len(shape) != 2 or 0 in shape:
        raise DatasetError(f"{what} has the shape {shape}, expected a matrix", path)
    stays_sparse = is_data and variable.kind == "sparse"
    require_cells(shape[0], shape[1], what, path, limits, itemsize=0 if stays_sparse else 8)
    if stays_sparse:  # in memory: what the file stores, and a pointer per row
        require_cells(shape[0], 1, f"the row pointer of {what}", path, limits)


def _variables(content: bytes, wanted: Sequence[str], path: PathLike, limits: Limits) -> list[Variable]:
    most = max_content(len(content), limits)
    try:
        return read_variables(content, wanted, most, lambda: too_large(path, most, limits))
    except NotImplementedError:
        raise DatasetError("a MATLAB 7.3 (HDF5) file; save it with -v7", path) from None
    except DatasetError:
        raise
    except ValueError as error:
        raise DatasetError(f"not a readable MATLAB file ({error})", path) from None


def _matrix(variable: Variable, path: PathLike) -> Any:
    try:
        return variable.matrix()
    except ValueError as error:
        raise DatasetError(f"not a readable MATLAB file ({error})", path) from None


def _features(matrix: Any, name: str, path: PathLike) -> Any:
    if np.isinf(matrix.data if sp.issparse(matrix) else matrix).any():
        raise DatasetError(f"variable {name} has infinite values", path)
    return matrix.astype(np.float64)


def _targets(matrix: Any, rows: int, name: str, orientation: str | None, path: PathLike) -> np.ndarray:
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    if orientation is None and dense.shape == (rows, rows):
        raise DatasetError(
            f"{name} is square, so that labels and instances cannot be distinguished; set an orientation in keys "
            f"({' or '.join(_ORIENTATIONS)})",
            path,
        )
    transposed = dense.shape[0] != rows if orientation is None else orientation == _ORIENTATIONS[0]
    dense = dense.T if transposed else dense
    if dense.shape[0] != rows:
        raise DatasetError(f"{name} has the shape {matrix.shape}, which does not fit {rows} rows of data", path)
    return dense.astype(np.float64)


def _binary(targets: np.ndarray, path: PathLike) -> np.ndarray:
    if np.isnan(targets).any():
        row, label = np.argwhere(np.isnan(targets))[0]
        raise DatasetError(f"label {label + 1} of row {row + 1} is missing", path)
    low = -1.0 if (targets == -1).any() else 0.0
    wrong = np.argwhere((targets != 1) & (targets != low))
    if len(wrong):
        row, label = wrong[0]
        raise DatasetError(
            f"non-binary label: label {label + 1} of row {row + 1} is {targets[row, label]:g}, expected {low:g} or 1",
            path,
        )
    return np.ascontiguousarray(targets == 1, dtype=np.uint8)
