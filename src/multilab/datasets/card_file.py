"""Dataset cards as files: allowed keys, reading and checks.

A card is written by anyone, so that nothing in it is trusted: only a small part of YAML is read (one document of
mappings, lists and plain values), every key and every type is checked, and nothing is imported, called, interpolated or
followed out of the card's folder.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import yaml
from msgspec import Meta

from multilab.core.messages import did_you_mean
from multilab.core.settings import NOT_IN_FILE, convert
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.options import Count, Reading

ROLES = (
    "full",
    "train",
    "test",
    "train+test",
    "labels",
    "labels-xml",
    "vectors",
    "corrections",
)  # a role that ends in -variant is not read

_END = r"$(?!\n)"  # in Python, $ alone also matches before a line break at the end
Name = Annotated[
    str, Meta(pattern="^[a-z0-9][a-z0-9._-]*" + _END, description="small letters, digits, '.', '_' and '-'")
]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}" + _END, description="64 hex digits in quotes")]
Commit = Annotated[str, Meta(pattern="^[0-9a-f]{40}" + _END, description="the full 40 hex digits")]
Repository = Annotated[
    str,
    Meta(
        pattern=r"^https://github\.com/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+" + _END,
        description="https://github.com/<owner>/<name>",
    ),
]
Url = Annotated[
    str,
    Meta(
        pattern=r"^(https://[!-~]+|http://(127\.0\.0\.1|localhost)(:[0-9]+)?/[!-~]*)" + _END,
        description="an https:// address in plain ASCII without blanks",
    ),
]
Plain = str | int | float | bool
_MAX_SIZE = 10**7  # of an argument of a generator, such as the number of rows


class FirstRows(TypedDict):
    """Rule of a named split: its first rows are the training rows."""

    first: Annotated[int, Meta(ge=1)]


@dataclass(frozen=True)
class Expected:
    """Expected counts of a card; None is not checked.

    Attributes
    ----------
    instances, features, labels : int or None
        Rows, features before one-hot coding, labels.
    cardinality : float or None
        Mean number of labels of a row, rounded to four decimals.
    """

    instances: Count | None = None
    features: Count | None = None
    labels: Count | None = None
    cardinality: Annotated[float, Meta(ge=0, le=sys.float_info.max, description="a number >= 0")] | None = None


@dataclass(frozen=True)
class CardFile:
    """One file of a dataset.

    Attributes
    ----------
    role : str
        One of :data:`ROLES`, or a name ending in ``-variant`` for a file that is addressed but not read.
    path : str
        Path in a mirror, or relative to the card for your own data; without the extension of a compression.
    bytes, sha256 : int and str, or None
        Size and digest of the decompressed content; required for downloads.
    repository, commit, source : str or None
        Public address: a GitHub repository, the full commit, and the path in it.
    url : str or None
        Any other https address.
    member : str or None
        Member of the downloaded zip archive (of at most ``archive_bytes``) that is the file.
    archive_bytes : int or None
        See ``member``.
    """

    role: str
    path: str
    bytes: Count | None = None
    sha256: Sha256 | None = None
    repository: Repository | None = None
    commit: Commit | None = None
    source: str | None = None
    url: Url | None = None
    member: str | None = None
    archive_bytes: Count | None = None

    @functools.cached_property
    def addressed(self) -> bool:
        """Whether the file can be downloaded."""
        return self.url is not None or self.repository is not None

    @functools.cached_property
    def is_variant(self) -> bool:
        """Whether the file is another edition, kept for comparison and never read as the dataset."""
        return self.role.endswith("-variant")


@dataclass(frozen=True)
class Card:
    """Description of a dataset before it is read.

    Attributes
    ----------
    name, title : str
        File stem, and display name.
    location : Path
        The card's own file.
    available, reason : bool and str
        Whether the set can be obtained, and the reason if not.
    reader : Reading
        How its files are read.
    files : tuple of CardFile
        Empty for a generated set.
    generator : dict or None
        ``{name: ..., **arguments}`` of a set that :mod:`multilab.datasets.synthetic` generates.
    splits : dict
        Named splits in addition to ``official``: ``{meka: {first: 1891}}``.
    expected : Expected
        Expected counts, which are checked.
    digest : str or None
        The pinned :func:`multilab.datasets.data_digest`.
    licence, citation, upstream, notes : str
        For display only.
    openml_id : int or None
        Number of the same set at OpenML.
    private : bool
        Whether its rows may not leave this machine: DVC neither caches nor pushes files made from them.
    """

    name: str
    title: str
    location: Path = field(metadata=NOT_IN_FILE)
    available: bool = True
    reason: str = ""
    reader: Reading = field(default_factory=Reading)
    files: tuple[CardFile, ...] = ()
    generator: dict[str, Plain | list[Plain]] | None = None
    splits: dict[Name, FirstRows] = field(default_factory=dict)
    expected: Expected = Expected()
    digest: Sha256 | None = None
    licence: str = ""
    citation: str = ""
    upstream: str = ""
    openml_id: int | None = None
    notes: str = ""
    private: bool = False

    @functools.cached_property
    def label_files(self) -> dict[str, Path]:
        """Reader options whose value is a file of names in the card's folder, with the full path of each."""
        names = self.reader.given(("label_columns", "label_names"))
        return {key: self.location.parent / value for key, value in names.items() if isinstance(value, str)}

    @property
    def reader_options(self) -> dict[str, Any]:
        """The options for its files, with the full paths of files of names."""
        return {**self.reader.given(), **self.label_files}


def read_card(path: Path) -> Card:
    """Return the card in a file.

    Raises
    ------
    DatasetError
        If the card is malformed. The message names the file and the key, see :func:`read_card_yaml` and :class:`Card`.
    """
    return _parsed(_text(path), path)


@functools.lru_cache(maxsize=256)
def _parsed(text: str, path: Path) -> Card:
    """Return the card in a text; a run needs the same card many times."""
    content = _content(text, path)

    def refuse(problem: str) -> DatasetError:
        return DatasetError(problem, path)

    values = _without_empty(content)
    if isinstance(values, dict):
        if values.setdefault("name", path.stem) != path.stem:
            raise refuse(f"name is {excerpt(repr(values['name']))} but the file is called {path.name}")
        for key in ("reader", "expected"):
            if key in values:
                values[key] = _without_empty(values[key])
        if isinstance(values.get("files"), list):
            values["files"] = [_without_empty(entry) for entry in values["files"]]
    made: Card = convert(values, Card, error=refuse, location=path)
    for key in ("label_columns", "label_names"):
        if (names := getattr(made.reader, key)) is not None:
            chosen: dict[str, Any] = {key: _names(names, f"reader.{key}", path)}
            made = replace(made, reader=replace(made.reader, **chosen))
    if made.generator is not None:
        _check_generator(made.generator, path)
    for position, file in enumerate(made.files):
        _check_file(file, f"files[{position}]", path)
    _check_sources(made)
    return made


def _without_empty(content: Any) -> Any:
    """Return a mapping without its empty entries."""
    return {key: value for key, value in content.items() if value is not None} if isinstance(content, dict) else content


def _check_generator(generator: Mapping[str, Any], path: Path) -> None:
    """Refuse a generator without a name, and arguments that are not plain values."""
    if not isinstance(generator.get("name"), str):
        raise DatasetError("generator needs a name, and no files", path)
    for key, value in generator.items():
        if not key.isidentifier():
            raise DatasetError(f"generator: {excerpt(repr(key))} is not the name of an argument", path)
        if key != "seed" and isinstance(value, int) and value > _MAX_SIZE:
            shown = excerpt(repr(value))
            raise DatasetError(f"generator: {key} is {shown}, more than the limit of {_MAX_SIZE}", path)


def _check_file(file: CardFile, where: str, path: Path) -> None:
    if file.role not in ROLES and not file.is_variant:
        hint = did_you_mean(file.role, ROLES)
        raise DatasetError(f"{where}: role {excerpt(repr(file.role))} is none of {', '.join(ROLES)}{hint}", path)
    for key in ("path", "source", "member"):
        if (value := getattr(file, key)) is not None and not stays_inside(value):
            raise DatasetError(
                f"{where}: {key} {excerpt(repr(value))} must be relative and may not leave its folder", path
            )
    _check_address(file, where, path)


def _names(value: list[str] | str, where: str, path: Path) -> list[str] | str:
    """Return names; a text with commas is a list of them.

    A text without a comma may name a file, one name per line. It has to lie in the folder of the card, symbolic links
    followed, and then stays a text.
    """
    if isinstance(value, list) and value:
        return value
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"{where} must be text or a list of texts, got {excerpt(repr(value))}", path)
    if "," in value:
        return [name.strip() for name in value.split(",") if name.strip()]
    if ("/" in value or "\\" in value) and not stays_inside(value):
        raise DatasetError(f"{where} {excerpt(repr(value))} must name columns, or a file in the card's folder", path)
    folder = path.parent.resolve()
    target = Path(os.path.realpath(folder / value)) if stays_inside(value) else folder
    if not os.path.isfile(target):
        return [value.strip()]
    if not target.is_relative_to(folder):
        raise DatasetError(f"{where} {excerpt(repr(value))} is a link that leaves the card's folder", path)
    return value


def _check_address(file: CardFile, where: str, path: Path) -> None:
    parts = (file.repository, file.commit, file.source)
    if any(parts) and (not all(parts) or file.url):
        raise DatasetError(f"{where}: an address is repository, commit and source together, or url alone", path)
    if file.addressed and (file.sha256 is None or file.bytes is None):
        raise DatasetError(f"{where}: a file with an address needs bytes and sha256 of its content", path)
    if file.member and (not file.addressed or file.archive_bytes is None):
        raise DatasetError(f"{where}: member needs an address of the archive and archive_bytes, its size", path)


def _check_sources(card: Card) -> None:
    if not card.available:
        if not card.reason:
            raise DatasetError("available: false needs a reason", card.location)
        return
    roles = [file.role for file in card.files if not file.is_variant]
    twice = sorted({role for role in roles if roles.count(role) > 1})
    if twice:
        raise DatasetError(f"two files have the role {twice[0]}", card.location)
    names = [Path(file.path).name for file in card.files]
    if len(set(names)) != len(names):
        raise DatasetError("two files have the same name", card.location)
    if card.generator is not None:
        if set(roles) - {"corrections"}:
            raise DatasetError("generator needs a name, and no files but corrections", card.location)
        return
    if not any(need <= set(roles) for need in ({"full"}, {"train+test"}, {"train", "test"})):
        raise DatasetError("no file role full, none train+test, and not both train and test", card.location)
    if ("train" in roles) != ("test" in roles):
        raise DatasetError("train and test come together", card.location)


def stays_inside(path: str) -> bool:
    """Whether a path is relative and cannot leave its folder on any system."""
    plain = bool(path) and "\\" not in path and ":" not in path and "\0" not in path
    return plain and all(part not in ("", ".", "..") for part in path.split("/"))


MAX_BYTES = 2**18  # a card is written by people: the limits keep hostile files from taking time or memory
MAX_DEPTH = 12  # levels of nesting, far beyond any real card
MAX_ENTRIES = 20_000

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t#]*@[ \t]*package\b", re.MULTILINE | re.IGNORECASE)
_LONG_NUMBER = re.compile(r"[-+.0-9a-fA-F_:xX]{65,}")  # 64 is the length of a sha256


def read_card_yaml(path: Path) -> Any:
    """Return the content of a card's file.

    Parameters
    ----------
    path : Path
        The YAML file.

    Raises
    ------
    DatasetError
        If the file cannot be read, is larger than 256 KiB, or is not UTF-8 or not YAML; if it has more than 12 levels
        or 20,000 entries; or if it contains an anchor, an alias, a tag, a merge key, a key that is given twice or
        begins with an underscore (``_target_``), ``# @package``, ``${...}``, a control character, or a number of more
        than 64 characters. The message has the line, if there is one.
    """
    return _content(_text(path), path)


def _content(text: str, path: Path) -> Any:
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


def _text(path: Path) -> str:
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
    if key.startswith("_") and key.endswith("_"):  # Hydra's; a column may be called _id
        raise DatasetError(f"a card is data: the key '{excerpt(key)}' is refused", path, line)
    if key == "<<":
        raise DatasetError("a card is data: merge keys (<<) are refused", path, line)
    if key in keys:
        raise DatasetError(f"the key '{excerpt(key)}' is given twice", path, line)
    keys.add(key)
