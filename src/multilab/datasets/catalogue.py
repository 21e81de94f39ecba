"""Dataset cards: name, files and expected content of a dataset.

A card is one YAML file, ``conf/dataset/<name>.yaml``, ``data/own/<name>.yaml`` of the current folder, or a file in a
folder listed in ``MULTILAB_CARDS``, see :func:`card_folders`. Nothing heavy is imported here.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from multilab.core.files import not_a_file
from multilab.core.paths import conf_dir, data_dir
from multilab.core.text import excerpt
from multilab.datasets.card_checks import (
    check_count,
    check_generator,
    check_sha,
    check_split,
    check_type,
    checked_mapping,
    checked_reader,
    did_you_mean,
    stays_inside,
)
from multilab.datasets.card_yaml import parse_card_yaml, read_card_text
from multilab.datasets.errors import DatasetError

ROLES = ("full", "train", "test", "train+test", "labels-xml")  # a role that ends in -variant is not read
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_REPOSITORY = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+", re.ASCII)
_URL = re.compile(r"https://[!-~]+|http://(127\.0\.0\.1|localhost)(:\d+)?/[!-~]*", re.ASCII)


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

    instances: int | None = None
    features: int | None = None
    labels: int | None = None
    cardinality: float | None = None


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
        Of the decompressed content. Needed for everything that is downloaded.
    repository, commit, source : str or None
        The public address: a GitHub repository, the full commit, and the path in it.
    url : str or None
        Any other https address.
    member : str or None
        The download is a zip archive of at most ``archive_bytes``; this member of it is the file.
    archive_bytes : int or None
        See ``member``.
    """

    role: str
    path: str
    bytes: int | None = None
    sha256: str | None = None
    repository: str | None = None
    commit: str | None = None
    source: str | None = None
    url: str | None = None
    member: str | None = None
    archive_bytes: int | None = None

    @property
    def addressed(self) -> bool:
        """Whether the file can be downloaded."""
        return self.url is not None or self.repository is not None

    @property
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
        False for a set that cannot be obtained, and the reason.
    reader : dict
        Keyword arguments of :func:`multilab.datasets.read`.
    files : tuple of CardFile
        Empty for a generated set.
    generator : dict or None
        ``{name: ..., **arguments}`` of a set that :mod:`multilab.datasets.synthetic` generates.
    splits : dict
        Named splits in addition to ``official``: ``{meka: {first: 1891}}``.
    expected : Expected
        Counts to be checked.
    digest : str or None
        The pinned :func:`multilab.datasets.data_digest`.
    licence, citation, upstream, notes : str
        For display only.
    openml_id : int or None
        Number of the same set at OpenML.
    """

    name: str
    title: str
    location: Path
    available: bool = True
    reason: str = ""
    reader: dict[str, Any] = field(default_factory=dict)
    files: tuple[CardFile, ...] = ()
    generator: dict[str, Any] | None = None
    splits: dict[str, Any] = field(default_factory=dict)
    expected: Expected = Expected()
    digest: str | None = None
    licence: str = ""
    citation: str = ""
    upstream: str = ""
    openml_id: int | None = None
    notes: str = ""

    @property
    def label_files(self) -> dict[str, Path]:
        """Reader options whose value is a file of names in the card's folder, with the full path of each."""
        names = {key: self.reader.get(key) for key in ("label_columns", "label_names")}
        return {key: self.location.parent / value for key, value in names.items() if isinstance(value, str)}


def cards() -> list[str]:
    """Return the names of all cards, sorted; those of unavailable sets included.

    Examples
    --------
    >>> from multilab.datasets import cards
    >>> "emotions" in cards()
    True
    """
    return sorted({path.stem for folder in card_folders() for path in folder.glob("*.yaml")})


def card(name: str) -> Card:
    """Return the card of a dataset, or of a file that `multilab.datasets.register_file` registered.

    Raises
    ------
    DatasetError
        There is no such card (a similar name is suggested), two folders have one, or the card is malformed:
        the message names the file and the key.

    Notes
    -----
    A card is data. Everything in it is validated here: the text by
    :mod:`multilab.datasets.card_yaml`, then every key and the type of every value. Nothing in it is
    imported, called, interpolated or followed out of its folder.

    Examples
    --------
    >>> from multilab.datasets import card
    >>> card("emotions").expected.instances
    593
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DatasetError(f"{excerpt(repr(name))} is not a dataset name (small letters, digits, '.', '_' and '-')")
    possible = [folder / f"{name}.yaml" for folder in card_folders()]
    paths = [path for path in possible if path.is_file()]
    if not paths and (registered := files_dir() / f"{name}.yaml").is_file():
        paths = [registered]
    if not paths:
        for path in possible:
            if kind := not_a_file(path):
                raise DatasetError(f"it is {kind}, a card is a YAML file", path)
        hint = did_you_mean(name, cards()) or f" (searched: {', '.join(map(str, card_folders()))})"
        raise DatasetError(f"there is no dataset {name!r}{hint}")
    if len(paths) > 1:
        raise DatasetError(f"two cards are called {name!r}: {' and '.join(map(str, paths))}; rename one")
    return _parsed(read_card_text(paths[0]), paths[0])


def card_folders() -> list[Path]:
    """Return the folders that hold dataset cards, the only rule for where cards are.

    They are the folders of ``MULTILAB_CARDS``, ``data/own`` of the current folder (`own_dir`, where
    ``multilab datasets add`` writes), and the package's own cards. Their order decides nothing: a name that two of them
    have is an error. ``MULTILAB_CARDS`` lists folders, separated as in ``PATH``. Each holds the cards ``*.yaml`` itself
    or in a subfolder ``dataset/``; if ``dataset/`` has a card, only its cards count. A folder that does not exist is
    left out.

    Examples
    --------
    >>> from multilab.datasets import card_folders
    >>> card_folders()[-1].name
    'dataset'
    """
    listed = [Path(folder) for folder in os.environ.get("MULTILAB_CARDS", "").split(os.pathsep) if folder]
    own = [sub if any((sub := folder / "dataset").glob("*.yaml")) else folder for folder in listed]
    every = [*own, own_dir(), conf_dir() / "dataset"]
    return list(dict.fromkeys(folder.resolve() for folder in every if folder.is_dir()))


def files_dir() -> Path:
    """Return the folder of the cards of registered files, which are no part of the catalogue."""
    return data_dir() / "files"


def own_dir() -> Path:
    """Return the folder of the current project's own datasets: cards, and data files that git ignores.

    Examples
    --------
    >>> from multilab.datasets import own_dir
    >>> own_dir().as_posix()
    'data/own'
    """
    return Path("data", "own")


@functools.lru_cache(maxsize=256)
def _parsed(text: str, path: Path) -> Card:
    """Return the card in a text; a run needs the same card many times."""
    content = parse_card_yaml(text, path)
    known = [f.name for f in fields(Card) if f.name != "location"]
    values = checked_mapping(content, "the card", known, path)
    if values.get("name", path.stem) != path.stem:
        raise DatasetError(f"name is {excerpt(repr(values['name']))} but the file is called {path.name}", path)
    values["name"] = path.stem
    for key in ("title", "reason", "licence", "citation", "upstream", "notes"):
        check_type(values, key, str, path)
    check_type(values, "available", bool, path)
    check_type(values, "openml_id", int, path)
    for key in ("reader", "generator", "splits"):
        check_type(values, key, dict, path)
    if "title" not in values:
        raise DatasetError("title is missing", path)
    check_sha(values.get("digest"), "digest", path)
    check_type(values, "files", list, path)
    if "reader" in values:
        values["reader"] = checked_reader(values["reader"], path)
    if "generator" in values:
        check_generator(values["generator"], path)
    for split, rule in values.get("splits", {}).items():
        if not isinstance(split, str) or not _NAME.fullmatch(split):
            shown = excerpt(repr(split))
            raise DatasetError(f"splits: {shown} is not a name (small letters, digits, '.', '_', '-')", path)
        check_split(split, rule, path)
    values["expected"] = _expected(values.get("expected", {}), path)
    values["files"] = tuple(_file(entry, i, path) for i, entry in enumerate(values.get("files", [])))
    made = Card(location=path, **values)
    _check_sources(made)
    return made


def _expected(content: Any, path: Path) -> Expected:
    values = checked_mapping(content, "expected", [f.name for f in fields(Expected)], path)
    for key, value in values.items():
        check_count(value, f"expected.{key}", path, integer=key != "cardinality")
    return Expected(**values)


def _file(content: Any, position: int, path: Path) -> CardFile:
    where = f"files[{position}]"
    values = checked_mapping(content, where, [f.name for f in fields(CardFile)], path)
    for key in ("role", "path"):
        if not isinstance(values.get(key), str):
            raise DatasetError(f"{where}: {key} is missing", path)
    for key in ("repository", "commit", "source", "url", "member"):
        check_type(values, key, str, path, where)
    for key in ("bytes", "archive_bytes"):
        if key in values:
            check_count(values[key], f"{where}: {key}", path)
    check_sha(values.get("sha256"), f"{where}.sha256", path)
    made = CardFile(**values)
    if made.role not in ROLES and not made.is_variant:
        hint = did_you_mean(made.role, ROLES)
        raise DatasetError(f"{where}: role {excerpt(repr(made.role))} is none of {', '.join(ROLES)}{hint}", path)
    for key in ("path", "source", "member"):
        if (value := getattr(made, key)) is not None and not stays_inside(value):
            raise DatasetError(
                f"{where}: {key} {excerpt(repr(value))} must be relative and may not leave its folder", path
            )
    _check_address(made, where, path)
    return made


def _check_address(file: CardFile, where: str, path: Path) -> None:
    parts = (file.repository, file.commit, file.source)
    if any(parts) and (not all(parts) or file.url):
        raise DatasetError(f"{where}: an address is repository, commit and source together, or url alone", path)
    if file.commit and not re.fullmatch(r"[0-9a-f]{40}", file.commit):
        raise DatasetError(f"{where}: commit must be the full 40 hex digits, not {excerpt(repr(file.commit))}", path)
    if file.repository and not _REPOSITORY.fullmatch(file.repository):
        raise DatasetError(f"{where}: repository must be https://github.com/<owner>/<name>", path)
    if file.url and not _URL.fullmatch(file.url):
        raise DatasetError(f"{where}: url must begin with https:// and be plain ASCII without blanks", path)
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
        if roles:
            raise DatasetError("generator needs a name, and no files", card.location)
        return
    if not any(need <= set(roles) for need in ({"full"}, {"train+test"}, {"train", "test"})):
        raise DatasetError("no file role full, none train+test, and not both train and test", card.location)
    if ("train" in roles) != ("test" in roles):
        raise DatasetError("train and test come together", card.location)
