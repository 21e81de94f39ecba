"""Dataset cards by name, and the folders of the cards.

A card is one YAML file, ``conf/dataset/<name>.yaml``, ``data/own/<name>.yaml`` of the current folder, or a file in a
folder listed in ``MULTILAB_CARDS``, see :func:`card_folders`. Nothing heavy is imported here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from multilab.core.files import not_a_file
from multilab.core.messages import did_you_mean
from multilab.core.paths import conf_dir, data_dir
from multilab.core.text import excerpt
from multilab.datasets.card_file import Card, read_card
from multilab.datasets.errors import DatasetError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


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
        If there is no such card (a similar name is suggested), two folders have one, or the card is malformed (the
        message names the file and the key).

    Notes
    -----
    A card is data: see :mod:`multilab.datasets.card_file` for what is read and how it is checked.

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
    return read_card(paths[0])


def card_folders() -> list[Path]:
    """Return the folders of dataset cards: the only rule for their location.

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
    """Return the folder of the cards of registered files, which are not part of the catalogue."""
    return data_dir() / "files"


def own_dir() -> Path:
    """Return the folder of the current project's datasets: cards, and data files that git ignores.

    Examples
    --------
    >>> from multilab.datasets import own_dir
    >>> own_dir().as_posix()
    'data/own'
    """
    return Path("data", "own")
