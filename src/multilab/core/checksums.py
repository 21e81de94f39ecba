"""Checksums of the files of a folder, in the format of the program ``sha256sum``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from multilab.core.files import write_atomically

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
    return [name for name, digest in sums.items() if not (folder / name).is_file() or _sha256(folder / name) != digest]


def _recorded(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    lines = path.read_text().splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
