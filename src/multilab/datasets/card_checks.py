"""Validation of a card, key by key, with messages for its author."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError

_SHA = re.compile(r"[0-9a-f]{64}")
_FORMATS = ("arff", "csv", "mat", "parquet", "svmlight", "xc")
_READER_KINDS: dict[str, type] = {
    "format": str,
    "labels_first": int,
    "labels_last": int,
    "label_prefix": str,
    "keys": dict,
    "n_features": int,
    "first_feature": int,
    "first_label": int,
    "encoding": str,
    "header": bool,
    "decimal": str,
}
_NAMES = ("label_columns", "label_names")  # a list of names, or a text
READER_OPTIONS = (*_READER_KINDS, *_NAMES, "drop", "text", "missing", "missing_labels")
_MAX_SIZE = 10**7  # of an argument of a generator, such as the number of rows
_SCALARS = (str, int, float, bool)
_KINDS = {str: "text", int: "an integer", bool: "true or false", dict: "a mapping", list: "a list"}


def checked_mapping(content: Any, where: str, allowed: Iterable[str], path: Path) -> dict[str, Any]:
    """Return a mapping without its empty entries; refuse a key that is not allowed."""
    known = list(allowed)
    if not isinstance(content, Mapping):
        raise DatasetError(f"{where} must be a mapping of keys to values", path)
    for key in content:
        if key not in known:
            raise DatasetError(f"{where}: unknown key {_shown(key)}{did_you_mean(str(key), known)}", path)
    return {key: value for key, value in content.items() if value is not None}


def check_type(values: Mapping[str, Any], key: str, kind: type, path: Path, where: str = "") -> None:
    """Refuse a value of another type than ``kind``; it may be missing."""
    value = values.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        prefix = f"{where}: " if where else ""
        raise DatasetError(f"{prefix}{key} must be {_KINDS[kind]}, not {_shown(value)}", path)


def check_sha(value: Any, where: str, path: Path) -> None:
    """Refuse a value that is not a sha256 (YAML reads one of digits only as a number unless it is quoted)."""
    if value is not None and not (isinstance(value, str) and _SHA.fullmatch(value)):
        raise DatasetError(f"{where} must be 64 hex digits in quotes, not {excerpt(repr(value), 80)}", path)


def check_count(value: Any, where: str, path: Path, integer: bool = True) -> None:
    """Refuse a value that is not a number >= 0, or not an integer unless ``integer`` is False."""
    is_number = isinstance(value, int if integer else int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        kind = "an integer >= 0" if integer else "a number >= 0"
        raise DatasetError(f"{where} must be {kind}, not {_shown(value)}", path)


def check_split(name: str, rule: Any, path: Path) -> None:
    """Refuse a named split other than ``{first: m}`` with at least one training row."""
    rows = rule.get("first") if isinstance(rule, Mapping) and set(rule) == {"first"} else None
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise DatasetError(f"split {name} must be {{first: m}} with m >= 1, not {_shown(rule)}", path)


def check_generator(generator: Mapping[str, Any], path: Path) -> None:
    """Refuse a generator without a name, and arguments that are not plain values."""
    if not isinstance(generator.get("name"), str):
        raise DatasetError("generator needs a name, and no files", path)
    for key, value in generator.items():
        if not isinstance(key, str) or not key.isidentifier():
            raise DatasetError(f"generator: {_shown(key)} is not the name of an argument", path)
        if not _is_plain(value):
            raise DatasetError(f"generator: {key} must be a plain value or a list of them, not {_shown(value)}", path)
        if key != "seed" and isinstance(value, int) and value > _MAX_SIZE:
            raise DatasetError(f"generator: {key} is {_shown(value)}, more than the limit of {_MAX_SIZE}", path)


def checked_reader(content: Any, path: Path) -> dict[str, Any]:
    """Return the reader options of a card; names written as one text become a list.

    A text of ``label_columns`` or ``label_names`` without a comma may name a file, one name per line. It has to lie
    in the folder of the card, symbolic links followed, and then stays a text.
    """
    values = checked_mapping(content, "reader", READER_OPTIONS, path)
    for key, value in values.items():
        if key in _READER_KINDS:
            check_type(values, key, _READER_KINDS[key], path, "reader")
        if key in _NAMES:
            values[key] = _names(value, f"reader: {key}", path)
        elif not _is_plain(value) and not (isinstance(value, Mapping) and all(map(_is_plain, value.values()))):
            raise DatasetError(f"reader: {key} must be a plain value, not {_shown(value)}", path)
        elif isinstance(value, int):
            check_count(int(value), f"reader: {key}", path)
    for key, value in (values.get("keys") or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise DatasetError(f"reader: keys must map text to text, not {_shown({key: value})}", path)
    if values.get("format", "arff") not in _FORMATS:
        hint = did_you_mean(values["format"], _FORMATS)
        shown = f"{_shown(values['format'])} is none of {', '.join(_FORMATS)}{hint}"
        raise DatasetError(f"reader: format {shown}", path)
    return values


def _names(value: Any, where: str, path: Path) -> list[str] | str:
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return value
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"{where} must be text or a list of texts, not {_shown(value)}", path)
    if "," in value:
        return [name.strip() for name in value.split(",") if name.strip()]
    if ("/" in value or "\\" in value) and not stays_inside(value):
        raise DatasetError(f"{where} {_shown(value)} must name columns, or a file in the card's folder", path)
    folder = path.parent.resolve()
    target = Path(os.path.realpath(folder / value)) if stays_inside(value) else folder
    if not os.path.isfile(target):
        return [value.strip()]
    if not target.is_relative_to(folder):
        raise DatasetError(f"{where} {_shown(value)} is a link that leaves the card's folder", path)
    return value


def _is_plain(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return all(isinstance(one, _SCALARS) for one in values)


def _shown(value: Any) -> str:
    return excerpt(repr(value))


def stays_inside(path: str) -> bool:
    """Whether a path is relative and cannot leave its folder on any system."""
    plain = bool(path) and "\\" not in path and ":" not in path and "\0" not in path
    return plain and all(part not in ("", ".", "..") for part in path.split("/"))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at similar names, or nothing."""
    close = difflib.get_close_matches(name[:100], list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""
