"""Opening a data file of any compression, and the limits that keep a hostile file harmless."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from multilab.datasets.errors import DatasetError

__all__ = ["Limits", "decode", "plain_name", "read_bytes", "read_head", "require_cells"]

_CHUNK = 1 << 24
_COMPRESSIONS = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Limits:
    """What a file may ask for at most; beyond it a reader stops with a :class:`DatasetError`.

    Attributes
    ----------
    max_bytes : int
        Size of the decompressed content (default 4 GiB).
    max_columns : int
        Features plus labels (default two million).
    max_cells : int
        Entries of one dense matrix, that is rows times columns (default 2**30: 8 GiB as float64).
    """

    max_bytes: int = 4 * 2**30
    max_columns: int = 2_000_000
    max_cells: int = 2**30


def plain_name(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the stem and the lower-case extension of a file name without its compression.

    ``scene-train.arff.xz`` gives ``("scene-train", ".arff")``.
    """
    name = Path(path).name
    if Path(name).suffix.lower() in _COMPRESSIONS:
        name = Path(name).stem
    return Path(name).stem, Path(name).suffix.lower()


def read_bytes(path: str | os.PathLike[str], limits: Limits | None = None) -> bytes:
    """Return the content of a file, decompressed when its first bytes say gzip, bzip2 or xz.

    Parameters
    ----------
    path : path-like
        The file. Its name does not matter: the compression is recognised by the content.
    limits : Limits, optional
        Reading stops as soon as more than ``limits.max_bytes`` have come out.

    Raises
    ------
    DatasetError
        No such file, unreadable, empty, damaged or truncated compression, or too large.
    """
    most = (limits or Limits()).max_bytes
    parts, size = [], 0
    try:
        with open(path, "rb") as raw, _decompressed(raw) as stream:
            while chunk := stream.read(min(_CHUNK, most - size + 1)):
                size += len(chunk)
                if size > most:
                    raise DatasetError(f"the content is larger than the limit of {most} bytes", path)
                parts.append(chunk)
    except FileNotFoundError:
        raise DatasetError("no such file", path) from None
    except (EOFError, zlib.error, lzma.LZMAError, MemoryError) as error:
        raise DatasetError(f"the compressed file is damaged ({error})", path) from None
    except OSError as error:  # gzip and bz2 report damage this way, too
        raise DatasetError(f"cannot be read ({error.strerror or error})", path) from None
    if size == 0:
        raise DatasetError("the file is empty", path)
    return b"".join(parts) if len(parts) > 1 else parts[0]


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


def read_head(path: str | os.PathLike[str], size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, decompressed, or nothing where it cannot be read."""
    try:
        with open(path, "rb") as raw, _decompressed(raw) as stream:
            return stream.read(size)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError):
        return b""


def decode(content: bytes) -> str:
    r"""Return text as UTF-8 (with or without a byte order mark) or, where it is not UTF-8, as Latin-1.

    Line ends become ``\n``, so that line numbers are the same whatever system wrote the file.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def require_cells(rows: int, columns: int, what: str, path: str | os.PathLike[str], limits: Limits) -> None:
    """Refuse a dense matrix of ``rows`` times ``columns`` entries that is beyond ``limits.max_cells``."""
    if rows * columns > limits.max_cells:
        raise DatasetError(
            f"{what} would have {rows} x {columns} entries, more than the limit of {limits.max_cells}", path
        )
