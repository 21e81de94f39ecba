"""Checks of files of NumPy arrays that another machine wrote, before any array is allocated."""

from __future__ import annotations

import io
import math
import os
import zipfile
from typing import Any

from numpy.lib import format as npy

__all__ = ["check_npy", "check_npz", "unpacked_room"]

# A compressed file may have some bytes of arrays, and so many per byte of it: a table of zeros is compressed a lot.
_ROOM, _ROOM_PER_BYTE = 2**28, 50
_EMPTY_CELLS = 2**24  # of an array that holds no data


def unpacked_room(size: int) -> int:
    """Return how many bytes the arrays of a file of some size may have: never more than half of the memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # of another operating system
        memory = 2**34
    return min(_ROOM + _ROOM_PER_BYTE * size, memory // 2)


def check_npy(stream: Any, size: int) -> tuple[tuple[int, ...], Any]:
    """Return shape and type of an array from its header.

    Parameters
    ----------
    stream : file object
        At the beginning of the array.
    size : int
        Bytes of the file.

    Raises
    ------
    ValueError
        The array holds Python objects, which only pickle could read, or its shape is not that of its bytes.
    """
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, _, kind = readers[npy.read_magic(stream)](stream)
    if kind.hasobject:
        raise ValueError("an array holds Python objects")
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != size - stream.tell():
        raise ValueError("an array has another shape than its bytes")
    if (0 in shape or not kind.itemsize) and math.prod(filter(None, shape)) > _EMPTY_CELLS:
        raise ValueError("an array has too many cells without data")
    return shape, kind


def check_npz(content: bytes, room: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shapes and types of the arrays of a file that `numpy.savez` or `numpy.savez_compressed` wrote.

    Parameters
    ----------
    content : bytes
    room : int
        Bytes that all arrays together may have.

    Raises
    ------
    ValueError
        Two arrays have one name, there are more bytes, or see `check_npy`.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > room:
            raise ValueError("its arrays have too many bytes")
        if len({entry.filename for entry in entries}) < len(entries):
            raise ValueError("two of its arrays have one name")
        arrays = {}
        for entry in entries:
            with archive.open(entry) as stream:
                arrays[entry.filename.removesuffix(".npy")] = check_npy(stream, entry.file_size)
    return arrays
