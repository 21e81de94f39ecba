"""Files: atomic writes, compression by name, checks of paths, JSON, and checksums.

Damage of a compressed file or of JSON is always a `ValueError`.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import re
import shutil
import signal
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from multilab.core import locks
from multilab.core.digests import sha256_digest
from multilab.core.errors import MultilabError

PathLike = str | os.PathLike[str]

CHECKSUMS = "SHA256SUMS"

_NO_FILES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def not_a_file(path: PathLike) -> str | None:
    """Describe a path that is not a file; return None for a file, a link to one, and a path that does not exist.

    Opening a pipe waits until another program writes to it, and reading a device may never end.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    return next((kind for is_kind, kind in _NO_FILES if is_kind(mode)), None)


def write_atomically(path: PathLike, content: bytes | str) -> None:
    """Write ``content`` to ``path`` so that a reader sees the complete old or new file.

    The bytes are written to a temporary file next to the target, flushed to disk, and renamed.
    """
    target = Path(path)
    payload = content.encode("utf-8") if isinstance(content, str) else content
    with scratch_folder(target) as scratch:
        temporary = scratch / target.name
        write_flushed(temporary, payload)
        os.replace(temporary, target)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with open(path, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def scratch_folder(target: PathLike) -> Iterator[Path]:
    """Give a new folder next to a path, on the same file system: what is made in it can be renamed to the path.

    The folder is removed at the end, also when SIGTERM or SIGHUP ends the process. What a killed process left of such
    folders in the same place is removed before.
    An `OSError` without a file name, such as that of a full disk, gets the path of the target.
    """
    target = Path(target)

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent.absolute())
        folder, handle = locks.new(target.with_name(f".{target.name[:50]}."), ".tmp")  # a name has at most 255 bytes
        with signals_unwind():
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                locks.release(handle)
    except OSError as error:
        if error.errno is None or (error.filename and not _LEFTOVER.search(str(error.filename))):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


@contextmanager
def signals_unwind() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `SystemExit`, so that what the code inside has opened is cleaned up.

    Without effect outside the main thread, and where the process has a handler of its own or ignores the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, _exit)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has one


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


_LEFTOVER = re.compile(r"\.[^/]*\.([^./]+-\d+-[0-9a-f]{8})\.tmp")


@functools.lru_cache(maxsize=4096)  # a folder is searched once by a process: a store may have 100,000 files
def _remove_leftovers(folder: Path) -> None:
    with suppress(PermissionError):  # a folder that may be written to, but not listed
        for name in os.listdir(folder):
            found = _LEFTOVER.fullmatch(name)
            handle = locks.take(folder / name, found[1]) if found else None
            if handle is not None:
                shutil.rmtree(folder / name, ignore_errors=True)
                locks.release(handle)


def read_content(path: PathLike) -> bytes:
    """Return the content of a file, decompressed where its name ends in ``.gz``.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it should be compressed and is not, or is damaged.
    """
    stored = Path(path).read_bytes()
    if Path(path).suffix != ".gz":
        return stored
    try:
        return gzip.decompress(stored)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"damaged gzip file: {error}") from None


def write_content(path: PathLike, content: bytes | str) -> None:
    """Write a file atomically, compressed where its name ends in ``.gz``.

    The bytes of a compressed file follow from its content and the version of zlib alone. A file that has the content
    already stays as it is, because another version of zlib would write other bytes.

    Examples
    --------
    >>> import tempfile
    >>> from multilab.core.files import read_content, write_content
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_content(f"{folder}/table.csv.gz", "a,b")
    ...     read_content(f"{folder}/table.csv.gz")
    b'a,b'
    """
    payload = content.encode("utf-8") if isinstance(content, str) else content
    if Path(path).suffix == ".gz":
        if _has_content(path, payload):
            return
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as stream:
            stream.write(payload)
        payload = buffer.getvalue()
    write_atomically(path, payload)


def _has_content(path: PathLike, content: bytes) -> bool:
    try:
        return read_content(path) == content
    except (OSError, ValueError):
        return False


def refuse_overwriting(output: PathLike, *inputs: PathLike) -> None:
    """Refuse an output file that is also an input file, even through links or in another case.

    Raises
    ------
    MultilabError
    """
    for path in inputs:
        if os.path.exists(path) and os.path.exists(output) and os.path.samefile(path, output):
            raise MultilabError(f"{os.fspath(output)} is read by this command: name another file to write")


def read_json(path: PathLike) -> Any:
    """Return the value of a JSON file, which is compressed where its name ends in ``.gz``.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not JSON, not UTF-8, nested too deeply, or damaged.
    """
    return parse_json(read_content(path))


def write_sealed(path: PathLike, value: Any) -> None:
    """Write a JSON value with its checksum for `read_sealed`: a file of a cache, which nobody edits."""
    write_atomically(path, json.dumps({"sha256": _seal(path, value), "content": value}))


def read_sealed(path: PathLike) -> Any:
    """Return the value that `write_sealed` wrote.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is damaged, or was written under another name.
    """
    stored = read_json(path)
    if not isinstance(stored, dict) or stored.get("sha256") != _seal(path, stored.get("content")):
        raise ValueError("not what was written")
    return stored["content"]


def _seal(path: PathLike, value: Any) -> str:
    return sha256_digest(json.dumps([Path(path).name, value]).encode())


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; any error in it is a `ValueError`."""
    try:
        return json.loads(text)
    except RecursionError:  # a text of 100,000 "["
        raise ValueError("nested too deeply") from None


def is_deep(value: Any, most: int = 100) -> bool:
    """Return whether a value of JSON has more levels than a function may take that calls itself for each.

    Examples
    --------
    >>> from multilab.core.files import is_deep
    >>> is_deep({"a": [1, [2]]}), is_deep({"a": [1, [2]]}, most=2)
    (False, True)
    """
    level = [value]
    for _ in range(most + 1):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


def record_checksums(folder: Path, names: Iterable[str]) -> None:
    """Record the sha256 of some files of a folder in its ``SHA256SUMS``, and drop those that do not exist.

    The format is that of the program ``sha256sum``. A file whose name ends in ``.gz`` has the sha256 of its content:
    versions of zlib compress the same content differently.
    """
    sums = _recorded_checksums(folder)
    for name in names:
        sums.pop(name, None)
        if (folder / name).is_file():
            sums[name] = _sha256(folder / name)
    write_atomically(folder / CHECKSUMS, "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def changed_files(folder: Path) -> list[str]:
    """Return the files of a folder that are missing or differ from what ``SHA256SUMS`` recorded."""
    sums = _recorded_checksums(folder)
    return [name for name, digest in sums.items() if not _has_digest(folder / name, digest)]


def _has_digest(path: Path, digest: str) -> bool:
    try:
        return _sha256(path) == digest
    except (OSError, ValueError):  # missing, or compressed and damaged
        return False


def _recorded_checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _sha256(path: Path) -> str:
    return sha256_digest(read_content(path))
