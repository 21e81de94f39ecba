"""Bounded reader of the YAML of a dataset card.

A card is written by anyone, so only a small part of YAML is read: one document of mappings, lists and plain values.
The events of the parser are checked first, because building the values calls itself once per level of nesting.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError

MAX_BYTES = 2**18
MAX_DEPTH = 12
MAX_ENTRIES = 20_000

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t#]*@[ \t]*package\b", re.MULTILINE | re.IGNORECASE)
_LONG_NUMBER = re.compile(r"[-+.0-9a-fA-F_:xX]{65,}")  # 64 is the length of a sha256


def read_card_text(path: Path) -> str:
    """Return the text of a card's file, which `parse_card_yaml` takes.

    Raises
    ------
    DatasetError
        The file cannot be read, is larger than 256 KiB or is not UTF-8; it has a control character or ``# @package``.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DatasetError(f"the card cannot be read ({error.strerror or error})", path) from None
    if len(content) > MAX_BYTES:
        raise DatasetError(f"the card is larger than {MAX_BYTES} bytes", path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DatasetError("not valid YAML: the file is not UTF-8", path, line) from None
    lines = text.replace("\r\n", "\n")
    if wrong := next((i for i, c in enumerate(lines) if ord(c) > 126 and _is_control(c)), None):
        raise DatasetError("control characters are refused", path, lines.count("\n", 0, wrong) + 1)
    if directive := _DIRECTIVE.search(text):
        line = text.count("\n", 0, directive.start()) + 1
        raise DatasetError("a card is data: '# @package' is refused", path, line)
    return text


def parse_card_yaml(text: str, path: Path) -> Any:
    """Return the content of a card's text; messages name its file.

    Raises
    ------
    DatasetError
        With the line where there is one: not YAML; more than 12 levels or 20,000 entries; an anchor, alias, tag or
        merge key; a key given twice or that begins with an underscore (``_target_``); ``${...}``, a control character
        or a number of more than 64 characters.
    """
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml.parse(text, Loader=loader), path)
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise DatasetError(f"not valid YAML: {problem}", path, mark.line + 1 if mark else None) from None
    except DatasetError:
        raise
    except ValueError as error:  # a number of thousands of digits, a date such as 2020-99-99
        raise DatasetError(f"not valid YAML: {error}", path) from None


def _check_events(events: Any, path: Path) -> None:
    """Refuse what a card does not need; the parser itself does not recurse."""
    open_nodes: list[set[str] | None] = []  # per level the keys of a mapping, None for a list
    waits_for_value: list[bool] = []
    for count, event in enumerate(events):
        line = event.start_mark.line + 1
        if count > MAX_ENTRIES:
            raise DatasetError(f"the card has more than {MAX_ENTRIES} entries", path, line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise DatasetError("a card is data: anchors and aliases (& and *) are refused", path, line)
        if getattr(event, "tag", None):
            raise DatasetError(f"a card is data: the tag {excerpt(event.tag)!r} is refused", path, line)
        if isinstance(event, yaml.CollectionEndEvent):
            open_nodes.pop()
            waits_for_value.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        keys = open_nodes[-1] if open_nodes else None
        is_key = keys is not None and not waits_for_value[-1]
        if keys is not None:
            waits_for_value[-1] = is_key
        if isinstance(event, yaml.ScalarEvent):
            _check_text(event.value, event.style or "", path, line)
            if is_key and keys is not None:
                _add_key(event.value, keys, path, line)
        elif is_key:
            raise DatasetError("a key must be plain text", path, line)
        else:
            open_nodes.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
            waits_for_value.append(False)
            if len(open_nodes) > MAX_DEPTH:
                raise DatasetError(f"the card is nested more than {MAX_DEPTH} levels deep", path, line)


def _check_text(value: str, style: str, path: Path, line: int) -> None:
    if "${" in value:
        raise DatasetError("a card is data: interpolations such as ${...} are refused", path, line)
    if not value.isprintable() and any(_is_control(c) for c in value):
        raise DatasetError(f"control characters are refused: '{excerpt(value)}'", path, line)
    if not style and _LONG_NUMBER.fullmatch(value):
        raise DatasetError(f"'{excerpt(value)}' is too long for a number; put text in quotes", path, line)


def _is_control(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")


def _add_key(key: str, keys: set[str], path: Path, line: int) -> None:
    if key.startswith("_"):
        raise DatasetError(f"a card is data: the key '{excerpt(key)}' is refused", path, line)
    if key == "<<":
        raise DatasetError("a card is data: merge keys (<<) are refused", path, line)
    if key in keys:
        raise DatasetError(f"the key '{excerpt(key)}' is given twice", path, line)
    keys.add(key)
