"""Atomic writes of files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PathLike = str | os.PathLike[str]


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
