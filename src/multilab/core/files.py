"""Atomic writes of files, and paths that are no files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

PathLike = str | os.PathLike[str]

_NO_FILES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def not_a_file(path: PathLike) -> str | None:
    """Return what a path is that is not a file, or None: for a file, a link to one, and a path where nothing is.

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
    target.parent.mkdir(parents=True, exist_ok=True)
    payload = content.encode("utf-8") if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(payload)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
