"""Variables of a MATLAB file of version 5 to 7, with every type, size and index checked before it is used.

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

__all__ = ["Variable", "read_variables"]

_HEADER = 128
_CHUNK = 1 << 24
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_OPAQUE_CLASS, _SPARSE_CLASS = 17, 5
_DENSE_CLASSES = range(6, 16)
_COMPLEX = 0x0800


@dataclass(frozen=True)
class Variable:
    """One variable of a file.

    Attributes
    ----------
    name : str
        Its name.
    shape : tuple of int
        Its shape as the file announces it.
    kind : {"dense", "sparse", "other"}
        Matrices of real numbers, and everything else.
    content : memoryview or None
        What follows the name; None for a variable that was not wanted.
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
        rows, place = _numbers(self.content, 0, self.order)
        pointers, place = _numbers(self.content, place, self.order)
        if rows.dtype.kind not in "iu" or pointers.dtype.kind not in "iu":
            raise ValueError(f"the indices of {self.name} are no integers")
        n, columns = self.shape
        pointers = pointers.astype(np.int64)
        if len(pointers) != columns + 1 or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise ValueError(f"the column pointers of {self.name} are wrong")
        stored = int(pointers[-1])
        rows = rows[:stored].astype(np.int64)
        values = _numbers(self.content, place, self.order)[0][:stored] if stored else np.empty(0)
        if len(rows) != stored or len(values) != stored:
            raise ValueError(f"{self.name} has fewer entries than its column pointers say")
        if stored and not 0 <= rows.min() <= rows.max() < n:
            raise ValueError(f"a row index of {self.name} is not among the {n} from 0 to {n - 1}")
        return sp.csc_array((values.astype(np.float64), rows, pointers), shape=self.shape)


def read_variables(
    content: bytes, wanted: Collection[str], most: int, too_large: Callable[[], Exception]
) -> list[Variable]:
    """Return all variables of a file, those whose names are wanted with their content.

    Parameters
    ----------
    content : bytes
        The file.
    wanted : collection of str
        Names of the variables that will be used.
    most : int
        Bytes that the compressed variables may have together.
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
    return [_variable(body, wanted, order) for body in _bodies(memoryview(content), order, most, too_large)]


def _bodies(content: memoryview, order: str, most: int, too_large: Callable[[], Exception]) -> Iterator[memoryview]:
    """Yield the content of every matrix element, decompressed."""
    place = _HEADER
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, place)
        body = content[place + 8 : place + 8 + size]
        if len(body) < size:
            raise ValueError("the file is truncated")
        place += 8 + size
        if kind == _COMPRESSED:
            inner = _decompressed(body, most, too_large)
            most -= len(inner)
            kind, size = struct.unpack_from(order + "II", inner) if len(inner) >= 8 else (0, 0)
            body = memoryview(inner)[8 : 8 + size]
        if kind == _MATRIX and size:
            if len(body) < size:
                raise ValueError("a variable is truncated")
            yield body
    if any(content[place:]):
        raise ValueError("the file is truncated")


def _decompressed(packed: memoryview, most: int, too_large: Callable[[], Exception]) -> bytes:
    stream, parts, total = zlib.decompressobj(), list[bytes](), 0
    rest: bytes | memoryview = packed
    try:
        while len(rest) and not stream.eof:
            parts.append(stream.decompress(rest, _CHUNK))
            rest = stream.unconsumed_tail
            total += len(parts[-1])
            if total > most:
                raise too_large()
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not stream.eof:
        raise ValueError("a compressed variable is truncated")
    return b"".join(parts)


def _variable(body: memoryview, wanted: Collection[str], order: str) -> Variable:
    kind, flags, place = _element(body, 0, order)
    if kind != 6 or len(flags) != 8:
        raise ValueError("a variable has no array flags")
    word = struct.unpack_from(order + "I", flags)[0]
    array_class = word & 0xFF
    if array_class == _OPAQUE_CLASS:  # an object of a class: it has no dimensions
        return Variable(bytes(_element(body, place, order)[1]).decode("latin-1"), (), "other", None, order)
    kind, sizes, place = _element(body, place, order)
    if kind != 5 or len(sizes) < 8 or len(sizes) % 4:
        raise ValueError("a variable has no dimensions")
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    kind, name, place = _element(body, place, order)
    if kind not in (1, 2, 16) or min(shape) < 0:
        raise ValueError("a variable has no name or a negative size")
    known = "sparse" if array_class == _SPARSE_CLASS else "dense" if array_class in _DENSE_CLASSES else "other"
    text = bytes(name).decode("latin-1")
    content = body[place:] if text in wanted else None
    return Variable(text, shape, "other" if word & _COMPLEX else known, content, order)


def _element(data: memoryview, place: int, order: str) -> tuple[int, memoryview, int]:
    """Return type and content of the element at ``place``, and where the next one begins."""
    if place + 8 > len(data):
        raise ValueError("a variable is truncated")
    first, second = struct.unpack_from(order + "II", data, place)
    small = first >> 16  # the size of an element of up to four bytes, which are in the tag itself
    kind, size, start = (first & 0xFFFF, small, place + 4) if small else (first, second, place + 8)
    if small > 4 or start + size > len(data):
        raise ValueError("a variable is truncated")
    return kind, data[start : start + size], place + 8 if small else start + -(-size // 8) * 8


def _numbers(data: memoryview, place: int, order: str) -> tuple[np.ndarray, int]:
    kind, payload, after = _element(data, place, order)
    if kind not in _NUMBERS:
        raise ValueError(f"values of type {kind}, which are no numbers")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(payload) % dtype.itemsize:
        raise ValueError("values of a broken size")
    return np.frombuffer(payload, dtype), after
