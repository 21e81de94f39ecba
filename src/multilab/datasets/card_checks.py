"""Checks of what a card says, key by key, with messages for the person who wrote it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.datasets.errors import DatasetError

__all__ = ["check_sha", "check_type", "checked_mapping", "did_you_mean", "stays_inside"]

_SHA = re.compile(r"[0-9a-f]{64}")
_KINDS = {str: "text", int: "a whole number", bool: "true or false", dict: "a mapping", list: "a list"}


def checked_mapping(content: Any, where: str, allowed: Iterable[str], path: Path) -> dict[str, Any]:
    """Return a mapping without its empty entries; every key must be an allowed one."""
    known = list(allowed)
    if not isinstance(content, Mapping):
        raise DatasetError(f"{where} must be a mapping of keys to values", path)
    for key in content:
        if key not in known:
            raise DatasetError(f"{where}: unknown key {key!r}{did_you_mean(str(key), known)}", path)
    return {key: value for key, value in content.items() if value is not None}


def check_type(values: Mapping[str, Any], key: str, kind: type, path: Path, where: str = "") -> None:
    """Refuse a value of another type than ``kind``; a missing one is fine."""
    value = values.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        prefix = f"{where}: " if where else ""
        raise DatasetError(f"{prefix}{key} must be {_KINDS[kind]}, not {value!r}", path)


def check_sha(value: Any, where: str, path: Path) -> None:
    """Refuse what is not a sha256; YAML reads one of digits only as a number unless it is quoted."""
    if value is not None and not (isinstance(value, str) and _SHA.fullmatch(value)):
        raise DatasetError(f"{where} must be 64 hex digits in quotes, not {value!r}", path)


def stays_inside(path: str) -> bool:
    """Whether a path is relative and cannot leave its folder on any system."""
    plain = bool(path) and "\\" not in path and ":" not in path and "\0" not in path
    return plain and all(part not in ("", ".", "..") for part in path.split("/"))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at similar names, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""
