"""Atomic writes of files, paths that are no files or are read, and JSON whose damage is always a `ValueError`."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from multilab.core.errors import MultilabError

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


def refuse_overwriting(output: PathLike, *inputs: PathLike) -> None:
    """Refuse an output file that is an input file under any name: through links, and in another case where that counts.

    Raises
    ------
    MultilabError
    """
    for path in inputs:
        if os.path.exists(path) and os.path.exists(output) and os.path.samefile(path, output):
            raise MultilabError(f"{os.fspath(output)} is read by this command: name another file to write")


def read_json(path: PathLike) -> Any:
    """Return the value of a JSON file.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not JSON, not UTF-8, or nested too deeply.
    """
    return parse_json(Path(path).read_bytes())


def parse_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; whatever is wrong with it is a `ValueError`."""
    try:
        return json.loads(text)
    except RecursionError:  # a text of 100,000 "["
        raise ValueError("nested too deeply") from None
