"""Settings from YAML files: read, checked against a dataclass, and described as a JSON Schema.

A kind of settings is a dataclass; the annotations of its fields say what a file may contain
(``Annotated[int, Meta(ge=1)]``, ``Literal["minmax", "standard"]``). msgspec converts and checks the values. This module
adds what its messages lack: the file, the path inside it, the value, and the nearest name for an unknown key.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Never, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import yaml
from yaml import YAMLError

from multilab.core.errors import MultilabError
from multilab.core.messages import did_you_mean, printable
from multilab.core.text import docstring, excerpt

__all__ = [
    "IN_KEY_AS",
    "NOT_IN_FILE",
    "NOT_IN_KEY",
    "OMITTED_AT_DEFAULT",
    "SettingsError",
    "TextLoader",
    "YAMLError",
    "check_yaml_depth",
    "convert",
    "identity",
    "parse_yaml",
    "read",
    "schema",
]

NOT_IN_FILE = {"in_file": False}
"""Mark of a field that the reader fills in, such as the name of the file."""

NOT_IN_KEY = {"in_key": False}
"""Mark of a field that decides no result, so that no key depends on it."""

IN_KEY_AS = "in_key_as"
"""Mark of a field whose texts have other spellings in keys: a mapping of these."""

OMITTED_AT_DEFAULT = {"omitted_at_default": True}
"""Mark of a field that :func:`identity` omits at its default: it was added later, and older keys must stay."""

_MAX_YAML_DEPTH = 200  # far beyond any settings, far below the depth at which libyaml crashes the process


class SettingsError(MultilabError):
    """A file of settings that cannot be used: the message names the file and the place in it."""


class HydraLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Hydra reads it, ten times as fast: ``1e-3`` is a number, a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = Counter(key.value for key, _ in node.value if key.tag == "tag:yaml.org,2002:str")
        for name, count in names.items():
            if count > 1:
                raise yaml.constructor.ConstructorError(None, None, f"found duplicate key {name}", node.start_mark)
        return dict(super().construct_mapping(node, deep))


def _without(tag: str, resolvers: Mapping[str, Any]) -> dict[str, Any]:
    kept = {first: [(name, pattern) for name, pattern in rules if name != tag] for first, rules in resolvers.items()}
    return {first: rules for first, rules in kept.items() if rules}


HydraLoader.yaml_implicit_resolvers = _without("tag:yaml.org,2002:timestamp", HydraLoader.yaml_implicit_resolvers)
HydraLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


class TextLoader(HydraLoader):
    """The same, but ``on``, ``off``, ``yes`` and ``no`` are text: ``on`` is a key of the checks of a paper."""


TextLoader.yaml_implicit_resolvers = _without("tag:yaml.org,2002:bool", HydraLoader.yaml_implicit_resolvers)
TextLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(true|false)$", re.IGNORECASE), list("tTfF"))


def parse_yaml(text: str, loader: Any = HydraLoader) -> Any:
    """Return the value of a YAML text.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML, holds a value that cannot be (2020-99-99), or is nested more than 200 levels.
    """
    check_yaml_depth(text)
    try:
        return yaml.load(text, loader)
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
    for event in yaml.parse(text, Loader=HydraLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_YAML_DEPTH:
            raise YAMLError(f"nested more than {_MAX_YAML_DEPTH} levels, at line {event.start_mark.line + 1}")


def read(
    path: Path, where: str = "", loader: Any = HydraLoader, error: Callable[[str], Exception] = SettingsError
) -> Any:
    """Return the content of a YAML file; ``where`` is what messages call it (default: its path).

    Raises
    ------
    SettingsError
        Or another ``error``: if it is not valid YAML in UTF-8.
    """
    try:
        return parse_yaml(path.read_bytes().decode(), loader)
    except (YAMLError, UnicodeDecodeError) as problem:
        raise error(f"{where or path}: not valid YAML: {printable(str(problem))}") from None


def convert(
    value: Any,
    kind: Any,
    where: str = "",
    at: str = "",
    error: Callable[[str], Exception] = SettingsError,
    **given: Any,
) -> Any:
    """Return settings as an instance of their dataclass.

    Parameters
    ----------
    value : mapping
        The settings.
    kind : type
        Their dataclass.
    where, at : str
        The file and the place in it, for messages.
    error : callable
        Makes the exception of a message.
    **given
        Fields with the mark :data:`NOT_IN_FILE`.

    Raises
    ------
    SettingsError
        Or another ``error``, in one line: an unknown key, with the nearest one, or a value of the wrong type.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from multilab.core.settings import convert
    >>> @dataclass
    ... class Search:
    ...     n_trials: int = 20
    >>> convert({"n_trails": 5}, Search, "study.yaml")
    Traceback (most recent call last):
    ...
    multilab.core.settings.SettingsError: study.yaml: unknown key 'n_trails'; did you mean 'n_trials'?
    """

    def fail(path: str, problem: str, link: str = " ") -> Never:
        sentence = f"{path}{link}{problem}" if path else problem
        raise error(printable(f"{where}: {sentence}" if where else sentence))

    return _converted(value, kind, at, fail, given)


def identity(settings: Any) -> dict[str, Any]:
    """Return settings as plain values, without those that a key must not depend on.

    Fields marked :data:`NOT_IN_KEY` are left out, and those marked :data:`OMITTED_AT_DEFAULT` at their defaults; texts
    of those marked :data:`IN_KEY_AS` have the spelling of keys.
    """
    plain = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        omitted = field.metadata.get("omitted_at_default") and value == field.default
        if field.metadata.get("in_key", True) and not omitted:
            spelling = field.metadata.get(IN_KEY_AS)
            plain[field.name] = spelling.get(value, value) if spelling else _plain(value)
    return plain


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return identity(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return type(value)(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def schema(kind: Any, title: str, **changed: Any) -> dict[str, Any]:
    """Return the JSON Schema of a kind of settings, which editors read to complete and check files.

    Parameters
    ----------
    kind : type
        The dataclass.
    title : str
        What the file is.
    **changed
        Entries of the schema that replace those of the dataclass; of ``properties`` those that are named, and those
        that are None are left out.
    """
    made = msgspec.json.schema(kind, schema_hook=lambda _: {"type": "string"})
    parts = made["$defs"]
    for own in _kinds_in(kind):
        part, hidden = parts[own.__name__], _hidden(own)
        part["properties"] = {key: value for key, value in part["properties"].items() if key not in hidden}
        part["required"] = [key for key in part["required"] if key not in hidden]
        part["additionalProperties"] = False
        part["description"], texts = _documented(own)
        for key in part["properties"].keys() & texts.keys():
            part["properties"][key] = {**part["properties"][key], "description": texts[key]}
    whole = parts.pop(kind.__name__)
    properties = whole["properties"] | changed.pop("properties", {})
    whole |= {"title": title, "properties": {key: value for key, value in properties.items() if value is not None}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, **changed, "$defs": parts}


def _documented(kind: Any) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what its section of attributes says of each."""
    summary, _, attributes = docstring(kind).partition("\nAttributes\n----------\n")
    texts: dict[str, str] = {}
    for names, text in re.findall(r"^(\w[\w, ]*) :.*\n((?: +.*\n?)*)", attributes, re.MULTILINE):
        texts |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return summary.strip().replace("\n", " "), {name: text for name, text in texts.items() if text}


def _kinds_in(hint: Any) -> list[Any]:
    """Return the dataclasses in an annotation, and in their fields."""
    if _is_settings(hint):
        return [hint, *(kind for inner in _hints(hint).values() for kind in _kinds_in(inner))]
    return [kind for inner in get_args(hint) for kind in _kinds_in(inner)]


def _is_settings(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or is_typeddict(hint)


def _hidden(kind: Any) -> list[str]:
    """Return the fields that a file must not have."""
    own = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return [field.name for field in own if not field.metadata.get("in_file", True)]


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


Fail = Callable[..., Never]


def _converted(
    value: Any, kind: Any, path: str, fail: Fail, given: Mapping[str, Any] = types.MappingProxyType({})
) -> Any:
    """Check the settings inside these first, so that a message names the innermost place, then convert these."""
    hints = _hints(kind)
    known = [name for name in hints if name not in _hidden(kind)]
    if not isinstance(value, Mapping):
        fail(path, f"must be a mapping of {', '.join(known)}, got {_shown(value)}")
    for key, item in value.items():
        if key not in known:
            fail(path, f"unknown key {_shown(key)}{_nearest(key, known)}", ": ")
        _check_inner(item, hints[key], f"{path}.{key}".lstrip("."), fail)
    try:
        return msgspec.convert({**value, **given}, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`")
        if missing := re.fullmatch("Object missing required field `(.*)`", message):
            fail(f"{path + place}.{missing[1]}".lstrip("."), "is missing")
        steps = re.findall(r"\.(\w+)|\[(\d+)\]", place.partition("[...]")[0])  # msgspec hides the keys of mappings
        found: Any = {**value, **given}
        for name, index in steps:
            found = found[name] if name else found[int(index)]
        hint = hints.get(steps[0][0]) if len(steps) == 1 else None
        fail((path + place).lstrip("."), f"{_expected(message, hint)}, got {_shown(found)}{_choice(found, hint)}")


def _check_inner(value: Any, hint: Any, path: str, fail: Fail) -> None:
    """Check the settings in a value; the types of other values are checked with the dataclass that has them."""
    if _is_settings(hint):
        if isinstance(value, Mapping):
            _converted(value, hint, path, fail)
        return
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for option in inner:
            _check_inner(value, option, path, fail)
    elif origin is Annotated:
        _check_inner(value, inner[0], path, fail)
    elif origin in (list, tuple) and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_inner(item, inner[0], f"{path}[{index}]", fail)
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():  # one by one: msgspec does not name the key
            _check_plain(key, inner[0], path, fail, is_key=True)
            _check_inner(item, inner[1], f"{path}.{key}", fail)
            _check_plain(item, inner[1], f"{path}.{key}", fail)


def _check_plain(value: Any, hint: Any, path: str, fail: Fail, is_key: bool = False) -> None:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        expected = _expected(str(error).partition(" - at ")[0], hint)
        if is_key:
            fail(path, f"the key {_shown(value)} {expected}", ": ")
        fail(path, f"{expected}, got {_shown(value)}")


_TYPES = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}


def _expected(message: str, hint: Any) -> str:
    """Return what msgspec expected, in the words of a person who writes YAML."""
    described = [part.description for part in _parts(hint) if isinstance(part, msgspec.Meta) and part.description]
    choices = [str(option) for option in _choices(hint)]
    if described:
        return f"must be {described[0]}"
    if choices and message.startswith("Invalid enum value"):
        return f"must be {', '.join(choices[:-1])} or {choices[-1]}"
    wanted = re.fullmatch("Expected `(.*?)`(.*?)(, got .*)?", message)
    if not wanted:
        return f"is refused ({message})"
    names = [_TYPES.get(name, name) for name in wanted[1].split(" | ")]
    return f"must be {' or '.join(dict.fromkeys(names))}{wanted[2]}"


def _parts(hint: Any) -> list[Any]:
    return [hint, *(part for inner in get_args(hint) for part in _parts(inner))] if hint is not None else []


def _choices(hint: Any) -> list[Any]:
    return [option for part in _parts(hint) if get_origin(part) is Literal for option in get_args(part)]


def _choice(value: Any, hint: Any) -> str:
    return _nearest(value, _choices(hint), listed=False) if isinstance(value, str) else ""


def _nearest(name: Any, known: Collection[Any], listed: bool = True) -> str:
    return did_you_mean(str(name), map(str, known)) or (f"; the keys are {', '.join(known)}" if listed else "")


def _shown(value: Any) -> str:
    return excerpt(repr(value), 80)
