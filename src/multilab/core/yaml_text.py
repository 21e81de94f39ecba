"""YAML whose damage is always a `yaml.YAMLError`; apart from `core.files`, whose importers do not all need PyYAML."""

from __future__ import annotations

from typing import Any

import yaml
from yaml import YAMLError

__all__ = ["YAMLError", "check_yaml_depth", "parse_yaml"]

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C library is quicker, where it is there

_MAX_YAML_DEPTH = 200


def parse_yaml(text: str, loader: Any = None) -> Any:
    """Return the value of a YAML text, by PyYAML's safe loader or another one.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML, holds a value that cannot be (2020-99-99), or is nested more than 200 levels.
    """
    check_yaml_depth(text)
    try:
        return yaml.load(text, loader or _Loader)
    except ValueError as error:
        raise YAMLError(str(error)) from None


def check_yaml_depth(text: str) -> None:
    """Refuse a YAML text that is nested more than 200 levels: libyaml's loader crashes the process on 100,000.

    Raises
    ------
    yaml.YAMLError
    """
    # Each level takes a bracket or indentation, so that only few texts need the second look, at the parser's events.
    indented = max((len(line) - len(line.lstrip(" -?")) for line in text.splitlines()), default=0)
    if text.count("[") + text.count("{") + 2 * indented <= _MAX_YAML_DEPTH:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_YAML_DEPTH:
            raise YAMLError(f"nested more than {_MAX_YAML_DEPTH} levels, at line {event.start_mark.line + 1}")
