"""Checksums of the files of a folder, in the format of the program ``sha256sum``.

That of a file whose name ends in ``.gz`` is of its content: versions of zlib compress the same content differently.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from multilab.core.digests import sha256_digest
from multilab.core.files import read_content, write_atomically

CHECKSUMS = "SHA256SUMS"


def record_checksums(folder: Path, names: Iterable[str]) -> None:
    """Record the sha256 of some files of a folder in its ``SHA256SUMS``, and drop those that do not exist."""
    sums = _recorded(folder)
    for name in names:
        sums.pop(name, None)
        if (folder / name).is_file():
            sums[name] = _sha256(folder / name)
    write_atomically(folder / CHECKSUMS, "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def changed_files(folder: Path) -> list[str]:
    """Return the files of a folder that are missing or differ from what ``SHA256SUMS`` recorded."""
    sums = _recorded(folder)
    return [name for name, digest in sums.items() if not _has_digest(folder / name, digest)]


def _has_digest(path: Path, digest: str) -> bool:
    try:
        return _sha256(path) == digest
    except (OSError, ValueError):  # missing, or compressed and damaged
        return False


def _recorded(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    lines = path.read_text().splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _sha256(path: Path) -> str:
    return sha256_digest(read_content(path))
