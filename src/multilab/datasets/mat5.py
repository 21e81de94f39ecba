"""Variables of MATLAB files of version 5 to 7; every type, size and index is validated before use.

``scipy.io.loadmat`` is not used: its compiled code takes types and indices from the file as they are, so that one
changed byte makes it read or write memory that is not its own. Only matrices of numbers are read here. The format is
described in "MAT-File Format" of The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

_HEADER = 128
_CHUNK = 1 << 24
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_OPAQUE_CLASS, _SPARSE_CLASS = 17, 5
_DENSE_CLASSES = range(6, 16)
_COMPLEX = 0x0800


@dataclass(frozen=True)
class Variable:
    """Variable of a MATLAB file.

    Attributes
    ----------
    name : str
        Its name.
    shape : tuple of int
        Its announced shape.
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
            raise ValueError(f"the indices of {self.name} are no integers")
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
        raise ValueError(f"values of type {kind}, which are no numbers")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(payload) % dtype.itemsize:
        raise ValueError("values of a broken size")
    return np.frombuffer(payload, dtype), after
