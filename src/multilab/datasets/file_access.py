"""Access to plain and compressed data files, with limits that make hostile files harmless."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from multilab.core.files import PathLike
from multilab.datasets.errors import DatasetError

MAX_NAMES_BYTES = 16 * 2**20
"""Limit for a file that only names labels."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CHUNK = 1 << 22
_FREE_TEXT = 1 << 24  # a small file may always become this large when decompressed
_FREE_MATRIX = 1 << 27  # and a matrix made from it this large
_COMPRESSIONS = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Limits:
    """Upper bounds of sizes, beyond which a reader raises a :class:`DatasetError`.

    Attributes
    ----------
    max_bytes : int
        Size of the decompressed content (default 4 GiB).
    max_columns : int
        Features plus labels (default two million).
    max_cells : int
        Entries of one dense matrix, that is rows times columns (default 2**30: 8 GiB as float64).
    max_ratio : int
        Bytes of decompressed content per byte of the file, beyond the first 16 MiB (default 300; the benchmark
        files have less than 10).
    max_expansion : int
        Bytes of a matrix per byte of the file, beyond the first 128 MiB (default 512). It bounds what grows faster
        than the file: a dense label matrix of sparse rows, and one 0/1 column per nominal value.
    """

    max_bytes: int = 4 * 2**30
    max_columns: int = 2_000_000
    max_cells: int = 2**30
    max_ratio: int = 300
    max_expansion: int = 512


def plain_name(path: PathLike) -> tuple[str, str]:
    """Return the stem and the lower-case extension of a file name without its compression.

    ``scene-train.arff.xz`` gives ``("scene-train", ".arff")``.
    """
    name = Path(path).name
    if Path(name).suffix.lower() in _COMPRESSIONS:
        name = Path(name).stem
    return Path(name).stem, Path(name).suffix.lower()


def read_bytes(path: PathLike, limits: Limits | None = None) -> bytes:
    """Return the content of a file, decompressed if its first bytes are those of gzip, bzip2 or xz.

    Parameters
    ----------
    path : path-like
        The file. Its name does not matter: the compression is recognised by the content.
    limits : Limits, optional
        Reading stops beyond ``limits.max_bytes`` bytes, or ``limits.max_ratio`` times the size of the file.

    Raises
    ------
    DatasetError
        No such file, unreadable, empty, damaged or truncated compression, or too large.
    """
    limits = limits or Limits()
    chunks, size = [], 0
    try:
        with open(path, "rb") as raw, _decompressed(raw) as stream:
            most = max_content(os.fstat(raw.fileno()).st_size, limits)
            while chunk := stream.read(min(_CHUNK, most - size + 1)):
                size += len(chunk)
                if size > most:
                    raise too_large(path, most, limits)
                chunks.append(chunk)
    except FileNotFoundError:
        raise DatasetError("no such file", path) from None
    except (EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
        raise DatasetError(f"the compressed file is damaged ({error})", path) from None
    except OSError as error:  # gzip and bz2 report damage this way, too
        raise DatasetError(f"cannot be read ({error.strerror or error})", path) from None
    if size == 0:
        raise DatasetError("the file is empty", path)
    return b"".join(chunks) if len(chunks) > 1 else chunks[0]


def max_content(file_size: int, limits: Limits) -> int:
    """Return the maximum size of the content of a compressed file of ``file_size`` bytes."""
    return min(limits.max_bytes, _FREE_TEXT + limits.max_ratio * file_size)


def too_large(path: PathLike, most: int, limits: Limits) -> DatasetError:
    """Return the error for content of more than ``most`` bytes."""
    if most == limits.max_bytes:
        return DatasetError(f"the content is larger than the limit of {most} bytes", path)
    return DatasetError(f"the compressed content is out of proportion: more than {most} bytes; decompress it", path)


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(raw, "rb")  # type: ignore[return-value]
    if start.startswith(b"BZh"):
        return bz2.open(raw, "rb")
    if start == b"\xfd7zXZ\x00":
        return lzma.open(raw, "rb")
    return io.BufferedReader(raw)  # type: ignore[type-var]


def name_memory_errors(reader: Callable[_P, _T]) -> Callable[_P, _T]:
    """Convert a MemoryError of a reader, whose first argument is the path, to a :class:`DatasetError`."""

    @functools.wraps(reader)
    def wrapped(*args: _P.args, **options: _P.kwargs) -> _T:
        try:
            return reader(*args, **options)
        except MemoryError:
            path: Any = args[0] if args else options.get("path")
        raise DatasetError("there is not enough memory to read it", path)

    return wrapped


def read_head(path: PathLike, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, decompressed, or nothing if it cannot be read."""
    try:
        with open(path, "rb") as raw, _decompressed(raw) as stream:
            return stream.read(size)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError):
        return b""


def decode(content: bytes) -> str:
    r"""Return text as UTF-8 (with or without a byte order mark) or, if it is not UTF-8, as Latin-1.

    Line ends become ``\n``, so that line numbers are the same whatever system wrote the file.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_utf8(content: bytes) -> bool:
    """Return whether text is UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def require_cells(rows: int, columns: int, what: str, path: PathLike, limits: Limits, itemsize: int = 8) -> None:
    """Refuse a dense matrix that is beyond the limits or out of proportion to its file.

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix.
    what : str
        Name of the matrix, for the error message.
    path : path-like
        The file from which it is built. A path that does not exist has no size to compare with.
    limits : Limits
        ``max_cells`` bounds the number of entries, ``max_expansion`` their bytes relative to the file.
    itemsize : int
        Bytes of one entry: 8 for features, 1 for labels.
    """
    if rows * columns > limits.max_cells:
        raise DatasetError(
            f"{what} would have {rows} x {columns} entries, more than the limit of {limits.max_cells}", path
        )
    try:
        size = os.path.getsize(path)
    except (OSError, ValueError):
        return
    if rows * columns * itemsize > _FREE_MATRIX + limits.max_expansion * size:
        raise DatasetError(
            f"{what} would have {rows} x {columns} entries, out of proportion to a file of {size} bytes "
            "(Limits.max_expansion)",
            path,
        )
