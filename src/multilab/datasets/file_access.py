"""Access to plain and compressed data files, with limits that make hostile files harmless."""

from __future__ import annotations

import bz2
import codecs
import functools
import gzip
import lzma
import os
import re
import shlex
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from multilab.core.files import PathLike, not_a_file
from multilab.core.messages import option
from multilab.core.shell import command, short_path
from multilab.core.text import first_few
from multilab.datasets.errors import DatasetError, TooLargeError

ENCODINGS = (
    *("utf-8", "utf-8-replace", "cp1252", "latin-1", "utf-16"),
    *("cp1250", "cp1251", "gb18030", "big5", "shift_jis", "euc_kr"),
)
"""Encodings that a reader accepts as its option ``encoding``."""
MAX_NAMES_BYTES = 16 * 2**20
"""Limit for a file that only names labels."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CHUNK = 1 << 22  # bytes decompressed at a time, so that the limit is noticed before the memory is full
_FREE_TEXT = 1 << 24  # a small file may always become this large when decompressed
_FREE_MATRIX = 1 << 27  # and a matrix made from it this large
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
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


@dataclass(frozen=True)
class TextForm:
    """Format of a text file.

    Attributes
    ----------
    encoding : str or None
        See `decode`.
    header : bool or None
        Whether the first line of a table names the columns; otherwise they are called ``c1``, ``c2``, ... If None, it
        names them, and a first line that looks like data is refused.
    decimal : {".", ","} or None
        The decimal separator of a table; the other one may separate thousands. If None, the separator is a point, and
        nothing separates thousands.
    on_bad_lines : {"error", "skip"} or None
        Whether lines that do not fit the header of a table are refused (also if None), or left out.
    known : collection of str or None
        Names of all columns in training. Trailing columns without a name that are not among them are left out. If None,
        nearly empty ones are left out.
    """

    encoding: str | None = None
    header: bool | None = None
    decimal: str | None = None
    on_bad_lines: str | None = None
    known: Collection[str] | None = None


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
        If there is no such file, or it is a pipe or a device, unreadable, empty, too large, or damaged.
    """
    limits = limits or Limits()
    chunks, size = [], 0
    try:
        with open(require_file(path), "rb") as raw, _decompressed(raw) as stream:
            file_size = os.fstat(raw.fileno()).st_size
            most, step = max_content(file_size, limits), max(_CHUNK, file_size + 1)  # a plain file is one chunk
            while chunk := stream.read(min(step, most - size + 1)):
                size += len(chunk)
                if size > most:
                    raise too_large(path, most, limits)
                chunks.append(chunk)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise DatasetError(f"the compressed file is damaged ({error})", path) from None
    except MemoryError:  # also where a damaged xz file asks for much
        raise DatasetError("there is not enough memory to read it", path) from None
    except OSError as error:  # gzip and bz2 report damage this way, too
        raise DatasetError(f"cannot be read ({error.strerror or error})", path) from None
    if size == 0:
        raise DatasetError("the file is empty", path)
    return b"".join(chunks) if len(chunks) > 1 else chunks[0]


def require_file(path: PathLike) -> Path:
    """Return the path of a data file; refuse a folder, a pipe, a device, and a path that does not exist."""
    if kind := not_a_file(path):
        hint = "; only fit and predict read a folder, if it holds Parquet files" if Path(path).is_dir() else ""
        raise DatasetError(f"it is {kind}, not a data file{hint}", path)
    if not Path(path).is_file():
        raise DatasetError(f"there is no such file or folder; {how_to_fetch(path) or 'check the path'}", path)
    return Path(path)


def how_to_fetch(path: PathLike) -> str:
    """Return the command that fetches a missing file that DVC versions, empty if it does not."""
    pointer = Path(f"{os.fspath(path)}.dvc")
    return f"`{command('dvc')} pull {shlex.quote(short_path(pointer))}` fetches it" if pointer.is_file() else ""


def max_content(file_size: int, limits: Limits) -> int:
    """Return the maximum size of the content of a compressed file of ``file_size`` bytes."""
    return min(limits.max_bytes, _FREE_TEXT + limits.max_ratio * file_size)


def too_large(path: PathLike, most: int, limits: Limits) -> DatasetError:
    """Return the error for content of more than ``most`` bytes."""
    if most == limits.max_bytes:
        return TooLargeError(f"the content is larger than the limit of {most} bytes", path)
    return DatasetError(f"the compressed content is out of proportion: more than {most} bytes; decompress it", path)


def _decompressed(raw: IO[bytes]) -> Any:
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(raw, "rb")
    if start.startswith(b"BZh"):
        return bz2.open(raw, "rb")
    if start == b"\xfd7zXZ\x00":
        return lzma.open(raw, "rb")
    return raw


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
        with open(require_file(path), "rb") as raw, _decompressed(raw) as stream:
            return stream.read(size)
    except (DatasetError, OSError, EOFError, zlib.error, lzma.LZMAError, MemoryError):
        return b""


def decode(content: bytes, path: PathLike | None = None, encoding: str | None = None) -> str:
    r"""Return the text of a file, with ``\n`` for every line end, so that line numbers do not depend on the system.

    Parameters
    ----------
    content : bytes
        The file.
    path : path-like, optional
        For error messages.
    encoding : str, optional
        One of `ENCODINGS`; "utf-8-replace" turns each byte that is not UTF-8 into a replacement character. By default,
        the text is UTF-8 with or without a byte order mark. Bytes that are not UTF-8 become replacement characters if
        more characters beyond ASCII are UTF-8; if none is, the text is Windows-1252.

    Raises
    ------
    DatasetError
        If a byte does not fit the encoding. The message has the line of the first one.
    """
    try:
        if encoding == "utf-8-replace":
            text = content.decode("utf-8-sig", "replace")
        else:
            text = content.decode("utf-8-sig" if encoding in (None, "utf-8") else str(encoding))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        if encoding is not None:
            raise DatasetError(f"byte 0x{content[error.start]:02x} is not {encoding}", path, line) from None
        text = _decode_windows(content, path, line, content[error.start])
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_utf_8(content: bytes) -> bool:
    """Return whether bytes are UTF-8; they are looked at in blocks, which take little memory."""
    if content.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _CHUNK):
            decoder.decode(content[start : start + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decode_windows(content: bytes, path: PathLike | None, line: int, wrong: int) -> str:
    """Return text as Windows-1252; refuse text that is UTF-8 except for some bytes, and what neither of the two is."""
    text, undefined = "", None
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError as error:
        undefined = error.start
    if damaged_lines(content):
        return content.decode("utf-8-sig", "replace")
    known, single = len(_SEQUENCE.findall(content)), "cp1252" if undefined is None else "latin-1"
    if known or content.startswith(b"\xef\xbb\xbf"):
        raise DatasetError(
            f"byte 0x{wrong:02x} is not UTF-8, but {known} other characters are; correct it, read it as an unknown "
            f"character with {option('encoding', 'utf-8-replace')}, or every byte as a character with "
            f"{option('encoding', single)}",
            path,
            line,
        )
    if undefined is None:
        return text
    line = content.count(b"\n", 0, undefined) + 1
    advice = f"name the encoding by {option('encoding', '|'.join(ENCODINGS))}"
    raise DatasetError(f"byte 0x{content[undefined]:02x} is neither UTF-8 nor Windows-1252: {advice}", path, line)


def damaged_lines(content: bytes) -> list[int]:
    """Return the lines with bytes that are not UTF-8, of a text with more characters beyond ASCII that are."""
    damaged = content.decode("utf-8", "replace").count("\ufffd") - content.count("\ufffd".encode())
    if not 0 < damaged < len(_SEQUENCE.findall(content)):
        return []
    lines = content.split(b"\n")
    return [number for number, line in enumerate(lines, 1) if line.decode("utf-8", "ignore").encode() != line]


def encoding_note(content: bytes, encoding: str | None) -> list[str]:
    """Return a note if `decode` read the text as Windows-1252, or if single bytes are not UTF-8."""
    try:
        if not encoding and not content.isascii():
            content.decode("utf-8")
    except UnicodeDecodeError:
        if lines := damaged_lines(content):
            where = f"line{'s' if len(lines) > 1 else ''} {first_few(map(str, lines), 5)}"
            return [f"bytes that are not UTF-8 were read as an unknown character: {where}"]
        return ["the text is not UTF-8: read as Windows-1252 (cp1252)"]
    return []


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
