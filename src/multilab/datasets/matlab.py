"""MATLAB files (version 5 to 7): plain matrices of features and targets under known names."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.datasets.columns import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.opening import Limits, max_content, read_bytes, require_cells, too_large
from multilab.datasets.raw import RawData
from multilab.ground.text import excerpt

__all__ = ["read_matlab"]

PathLike = str | os.PathLike[str]
_PARTS = (("data", "target"), ("train_data", "train_target"), ("test_data", "test_target"))
_ROLES = [role for part in _PARTS for role in part]
_NOT_MATRICES = frozenset({"cell", "struct", "object", "char", "function", "opaque", "unknown"})
_COMPRESSED = 15  # miCOMPRESSED of the format's description
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
        Which variable holds what: role to variable, the roles being ``data`` and ``target``, or
        ``train_data``, ``train_target``, ``test_data``, ``test_target``. Roles that are not named have the
        variable of that name where the file has one. ``orientation`` may be ``labels x instances`` or
        ``instances x labels``; it is needed only where a target matrix is square.
    label_names : sequence of str, optional
        Names of the labels, which the file does not hold; default ``label1``, ``label2``, ...
    limits : Limits, optional
        Bounds of what the file may ask for.

    Returns
    -------
    RawData
        The rows of ``data``, or those of the training part followed by the test part with ``train_rows``
        set. A dense matrix stays dense, a sparse one becomes CSR. Features are called ``f1``, ``f2``, ...

    Raises
    ------
    DatasetError
        No MATLAB file (or version 7.3, which is HDF5), a variable missing or no matrix, shapes that do not
        fit, a value that is not finite, or labels other than 0/1 and -1/+1.
    """
    limits = limits or Limits()
    content = read_bytes(path, limits)
    _refuse_bomb(content, path, limits)
    names = _names(keys, path)
    wanted = _wanted(content, names, path, limits)
    variables = _load(content, [names[role] for part in wanted for role in part], path)
    blocks, targets = [], []
    for data, target in wanted:
        X = _features(variables[names[data]], names[data], path)
        orientation = (keys or {}).get("orientation")
        Y = _targets(variables[names[target]], X.shape[0], names[target], orientation, path)
        blocks.append(X)
        targets.append(Y)
    if len({b.shape[1] for b in blocks}) > 1 or len({t.shape[1] for t in targets}) > 1:
        raise DatasetError("the training and the test part differ in their columns", path)
    Y = _binary(np.vstack(targets), path)
    X = sp.vstack(blocks) if any(map(sp.issparse, blocks)) else np.vstack(blocks)
    if X.shape[1] + Y.shape[1] > limits.max_columns:  # before a name is made for each
        raise DatasetError(f"{X.shape[1] + Y.shape[1]} columns, more than the limit of {limits.max_columns}", path)
    labels = list(label_names) if label_names is not None else [f"label{k}" for k in range(1, Y.shape[1] + 1)]
    if len(labels) != Y.shape[1]:
        raise DatasetError(f"{len(labels)} label names for {Y.shape[1]} labels", path)
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
    if given and any(role not in given for part in _PARTS for role in part if set(part) & set(given)):
        raise DatasetError("keys name data without target or target without data", path)
    return chosen


def _wanted(content: bytes, names: Mapping[str, str], path: PathLike, limits: Limits) -> list[tuple[str, str]]:
    """Return the pairs of roles that the file holds, after a look at names and sizes only."""
    listed = _scipy_io("whosmat", content, path)
    shapes = {name: shape for name, shape, _ in listed}
    kinds = {name: kind for name, _, kind in listed}
    present = [part for part in _PARTS if all(names.get(role) in shapes for role in part)]
    missing = [name for role, name in names.items() if role != name and name not in shapes]
    if missing or not present:
        lacking = ", ".join(missing) or "data and target, or train_data, train_target, test_data and test_target"
        raise DatasetError(f"no variable {lacking}; the file has {excerpt(', '.join(shapes), 200) or 'none'}", path)
    if present[0] == _PARTS[0] and len(present) > 1:
        raise DatasetError("the file has both data and train_data; say in keys which to read", path)
    listed_names = [name for name, _, _ in listed]
    for part in present:
        for role in part:
            if listed_names.count(names[role]) > 1:  # the sizes of one would be checked, and the other be read
                raise DatasetError(f"two variables are called {names[role]}", path)
            shape = shapes[names[role]]
            if len(shape) != 2 or 0 in shape:
                raise DatasetError(f"variable {names[role]} has the shape {shape}, expected a matrix", path)
            kind = kinds[names[role]]
            if kind in _NOT_MATRICES:
                raise DatasetError(f"variable {names[role]} is not a matrix of real numbers", path)
            _check_size(int(shape[0]), int(shape[1]), names[role], kind == "sparse" and "data" in role, path, limits)
    return present


def _check_size(rows: int, columns: int, name: str, stays_sparse: bool, path: PathLike, limits: Limits) -> None:
    what = f"variable {name}"
    require_cells(rows, columns, what, path, limits, itemsize=0 if stays_sparse else 8)
    if stays_sparse:  # in memory: what the file stores, and a pointer per row
        require_cells(rows, 1, f"the row pointer of {what}", path, limits, itemsize=8)


def _refuse_bomb(content: bytes, path: PathLike, limits: Limits) -> None:
    """Refuse a file whose variables, compressed inside it one by one, are too large together."""
    if content[126:128] not in (b"IM", b"MI"):
        return
    order = "<" if content[126:128] == b"IM" else ">"
    place, total, most = 128, 0, max_content(len(content), limits)
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, place)
        rest: bytes | memoryview = memoryview(content)[place + 8 : place + 8 + size]
        stream = zlib.decompressobj()
        while kind == _COMPRESSED and len(rest) and not stream.eof:
            try:
                total += len(stream.decompress(rest, 1 << 24))
            except zlib.error as error:
                raise DatasetError(f"not a readable MATLAB file ({error})", path) from None
            rest = stream.unconsumed_tail
            if total > most:
                raise too_large(path, most, limits)
        place += 8 + size


def _load(content: bytes, names: Sequence[str], path: PathLike) -> dict[str, Any]:
    """Return the variables with the structure of sparse ones verified.

    SciPy takes the row indices and column pointers of a sparse variable from the file as they are, and its compiled
    code writes wherever they point: they are checked before anything else touches them.
    """
    variables = _scipy_io("loadmat", content, path, variable_names=list(names))
    for name in names:
        if sp.issparse(variables[name]):
            try:
                variables[name] = _checked_sparse(variables[name])
            except ValueError as error:
                raise DatasetError(f"variable {name} is a damaged sparse matrix ({error})", path) from None
    return variables


def _checked_sparse(matrix: Any) -> Any:
    compressed = matrix.tocsc() if matrix.format == "coo" else matrix  # COO, of version 4, is checked by SciPy
    if (np.diff(compressed.indptr) < 0).any():  # the full check skips this where the last pointer is 0
        raise ValueError("indptr must be a non-decreasing sequence")
    compressed.check_format(full_check=True)
    return compressed


def _scipy_io(function: str, content: bytes, path: PathLike, **options: Any) -> Any:
    from scipy import io as scipy_io

    try:
        return getattr(scipy_io, function)(io.BytesIO(content), **options)
    except NotImplementedError:
        raise DatasetError("a MATLAB 7.3 (HDF5) file; save it with -v7", path) from None
    except Exception as error:  # a damaged file makes SciPy raise almost anything
        raise DatasetError(f"not a readable MATLAB file ({type(error).__name__}: {error})", path) from None


def _features(matrix: Any, name: str, path: PathLike) -> Any:
    values = matrix.data if sp.issparse(matrix) else np.asarray(matrix)
    if values.dtype.kind not in "buif":
        raise DatasetError(f"variable {name} is not a matrix of real numbers", path)
    if np.isinf(values).any():
        raise DatasetError(f"variable {name} has infinite values", path)
    return matrix.astype(np.float64)


def _targets(matrix: Any, rows: int, name: str, orientation: str | None, path: PathLike) -> np.ndarray:
    dense = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
    if dense.dtype.kind not in "buif":
        raise DatasetError(f"variable {name} is not a matrix of real numbers", path)
    if orientation is None and dense.shape == (rows, rows):
        raise DatasetError(
            f"{name} is square, so that labels and instances cannot be told apart; give keys an orientation "
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
