"""User datasets: cards of data files in ``data/own``, and files used by their path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from multilab.core.digests import json_digest, sha256_digest
from multilab.core.files import PathLike, scratch_folder, write_atomically
from multilab.core.messages import option
from multilab.core.paths import data_dir
from multilab.core.text import excerpt, visible
from multilab.datasets.card_file import Card, read_card_yaml
from multilab.datasets.catalogue import card, cards, files_dir, own_dir
from multilab.datasets.corrections import ROLE, Correction, corrected, corrections_text, merged, read_corrections
from multilab.datasets.errors import DatasetError
from multilab.datasets.fetching import FoundFile, find_files
from multilab.datasets.file_access import plain_name, read_bytes, require_file
from multilab.datasets.labels import read_names
from multilab.datasets.options import FILES, reading_of, takes_reading
from multilab.datasets.prepared import load
from multilab.datasets.reading_plan import ReadingPlan, named_labels, plan_reading, with_labels_xml

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_CORRECTED = re.compile(r"; \d+ label values corrected, \d+ not observed$")
_SUFFIXES = {"test": "-test", "labels": "-labels", "vectors": "-vectors"}  # of the copies of further files


@dataclass(frozen=True)
class OwnDataset:
    """A dataset that was added: its card, its data files (the first has the rows), and the reading plan.

    ``unchanged`` is True if the dataset existed already, with the same files and options.
    """

    card: Card
    paths: tuple[Path, ...]
    plan: ReadingPlan
    unchanged: bool = False

    @property
    def path(self) -> Path:
        """The data file, or the first of several."""
        return self.paths[0]


@takes_reading
def add_dataset(
    path: PathLike, *, name: str | None = None, reference: bool = False, force: bool = False, **options: Any
) -> OwnDataset:
    r"""Write the card of a data file, and copy the file next to it in ``data/own`` of the current folder.

    Parameters
    ----------
    path : path-like
        The file.
    name : str, optional
        Name of the dataset; default: the name of the file in small letters.
    reference : bool, default False
        Whether to leave the file where it is and make a symbolic link to it.
    force : bool, default False
        Whether to replace the dataset of this name in ``data/own``. The same file with the same options needs no
        ``force``, as nothing is written.
    **options
        See `plan_reading`.

    Raises
    ------
    DatasetError
        If the file cannot be read as a dataset, or the name is taken.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from multilab.datasets import add_dataset, load
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "songs.csv").write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n90,C,0,0\n")
    >>> before = os.getcwd()
    >>> os.chdir(folder)
    >>> added = add_dataset("songs.csv", label_columns=["happy", "sad"])
    >>> added.card.reader.columns, load("songs").feature_names
    ({'tempo': 'number', 'key': 'category'}, ['tempo', 'key'])
    >>> os.chdir(before)
    """
    source = require_file(path)
    chosen = _valid_name(name or file_stem(source))
    location = own_dir() / f"{chosen}.yaml"
    taken = chosen in cards() and not (force and location.is_file())
    if taken and not location.is_file():
        raise DatasetError(f"a dataset {chosen!r} exists already; give another name")
    another = DatasetError(
        f"a dataset {chosen!r} exists already; give another name, or replace it ({option('force')})", location
    )
    if taken and sha256_digest(read_bytes(source)) not in location.read_text("utf-8", errors="replace"):
        raise another
    plan = plan_reading(source, **options)
    if taken:
        paths = tuple(own_dir() / f"{called}{_extensions(file)}" for called, file in _named_files(chosen, plan))
        there = all(path.is_file() and path.is_symlink() == reference for path in paths)
        if not there or location.read_text("utf-8", errors="replace") != _card_text(chosen, plan):
            raise another
        return OwnDataset(card(chosen), paths, plan, unchanged=True)
    written = write_dataset(own_dir(), chosen, plan, reference)
    try:
        return OwnDataset(card(chosen), written, plan)
    except DatasetError:  # a column name that no card can hold
        (own_dir() / f"{chosen}.yaml").unlink()
        raise


def write_dataset(folder: Path, name: str, plan: ReadingPlan, reference: bool) -> tuple[Path, ...]:
    """Write the card of data files to a folder, and copy or link the files next to it; return their paths."""
    paths = tuple(transfer(file, folder, called, reference) for called, file in _named_files(name, plan))
    write_atomically(folder / f"{name}.yaml", _card_text(name, plan))
    return paths


def _named_files(name: str, plan: ReadingPlan) -> list[tuple[str, Path]]:
    """Return the name that each file of a dataset has in its folder, without extensions, and the file."""
    return [(f"{name}{_SUFFIXES.get(role, '')}", file) for role, file in plan.files.items()]


def file_stem(path: Path) -> str:
    """Return the name of a file as the name of a dataset: small letters, without extensions."""
    return re.sub(r"[^a-z0-9._-]+", "-", plain_name(path)[0].lower()).strip("-._")


def _valid_name(chosen: str) -> str:
    if not _NAME.fullmatch(chosen) or len(chosen) > 100:
        raise DatasetError(
            f"{excerpt(repr(chosen))} is not a dataset name (small letters, digits, '.', '_' and '-'): give one "
            f"({option('name')})"
        )
    return chosen


def _extensions(file: Path) -> str:
    """Return the extension of a file, with that of a compression."""
    return file.name[len(plain_name(file)[0]) :].lower()


def transfer(file: Path, folder: Path, name: str, reference: bool) -> Path:
    """Copy or link a file to a folder under a new name with its own extensions; return the path."""
    target = folder / f"{name}{_extensions(file)}"
    folder.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.samefile(file) and (reference or not target.is_symlink()):
        return target  # it is the file itself, or a link to it already
    with scratch_folder(target) as scratch:
        made = scratch / target.name
        if reference:
            made.symlink_to(file.resolve())
        else:
            made.write_bytes(file.read_bytes())
        os.replace(made, target)
    return target


def _card_text(name: str, plan: ReadingPlan) -> str:
    files = list[dict[str, Any]]()
    for role, (called, file) in zip(plan.files, _named_files(name, plan), strict=True):
        content = read_bytes(file)
        checksum = sha256_digest(content)
        files.append(
            {"role": role, "path": f"{called}{plain_name(file)[1]}", "bytes": len(content), "sha256": checksum}
        )
    expected = {key: plan.content[key] for key in ("instances", "features", "labels")}
    expected["cardinality"] = round(plan.content["cardinality"], 4)
    values = {
        "title": f"{visible(plan.path.name)}: {expected['instances']} rows, {expected['labels']} labels",
        "reader": plan.reader,
        "files": files,
        "expected": expected,
        "notes": " ".join(f"{visible(note)}." for note in plan.content["notes"]) or None,
    }
    plain = {key: value for key, value in values.items() if value is not None}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)


def add_corrected(
    dataset: str, corrections: PathLike | Iterable[Correction], *, name: str | None = None, force: bool = False
) -> tuple[Card, Path]:
    r"""Write the card of a dataset with corrected labels to ``data/own``, next to the table of the corrections.

    The data files stay as they are. Corrections of a dataset that is corrected already are added to the earlier ones.

    Parameters
    ----------
    dataset : str
        Name of the dataset whose labels are corrected.
    corrections : path-like, or iterable of Correction
        A CSV file, see :func:`read_corrections`, or corrections.
    name : str, optional
        Name of the new dataset; default: ``<dataset>-corrected``.
    force : bool, default False
        Whether to replace the dataset of this name in ``data/own``.

    Returns
    -------
    card : Card
        The card of the new dataset.
    path : Path
        The table of the corrections.

    Raises
    ------
    DatasetError
        If the corrections do not fit the dataset, there are none, or the name is taken.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from multilab.datasets import add_corrected, load
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> _ = pathlib.Path("right.csv").write_text("row,label,given,corrected\n1,ribosome,0,?\n2,division,0,1\n")
    >>> load("genes-toy").Y[:2, :2].tolist()
    [[1, 0], [0, 0]]
    >>> card, _ = add_corrected("genes-toy", "right.csv", name="genes-right")
    >>> load(card.name).Y[:2, :2].tolist()
    [[1, -1], [1, 0]]
    >>> os.chdir(before)
    """
    if isinstance(corrections, str | os.PathLike):
        source, chosen = Path(corrections), read_corrections(corrections)
    else:
        source, chosen = None, dict.fromkeys(corrections, 0)
    origin, target = card(dataset), _valid_name(name or f"{dataset}-corrected")
    location, table = own_dir() / f"{target}.yaml", own_dir() / f"{target}-{ROLE}.csv"
    if target in cards() and not (force and location.is_file() and target != dataset):
        raise DatasetError(
            f"a dataset {target!r} exists already; give another name ({option('name')}), or replace it "
            f"({option('force')})"
        )
    data = load(dataset)
    corrected(data.Y, data.label_names, chosen, source)  # refuses what does not fit
    found = {one.file.role: one for one in find_files(origin)}
    changes = merged(read_corrections(found.pop(ROLE).path) if ROLE in found else (), chosen)
    if not changes:
        raise DatasetError("the table corrects no label value, so there is no dataset to add", source)
    content = corrections_text(changes).encode()
    own = {"role": ROLE, "path": table.name, "bytes": len(content), "sha256": sha256_digest(content)}
    written = {key: value for key, value in read_card_yaml(origin.location).items() if key not in ("name", "digest")}
    written["files"] = [*_moved(origin, target, written.get("files") or [], found), own]
    written["expected"] = {key: value for key, value in (written.get("expected") or {}).items() if key != "cardinality"}
    written["reader"] = {**(written.get("reader") or {})} | {
        key: list(read_names(path, path)[1]) for key, path in origin.label_files.items()
    }
    unobserved = sum(one.corrected < 0 for one in changes)
    counts = f"{len(changes) - unobserved} label values corrected, {unobserved} not observed"
    written["title"] = f"{_CORRECTED.sub('', origin.title)}; {counts}"
    write_atomically(table, content)
    plain = {key: value for key, value in written.items() if value not in (None, {})}
    write_atomically(location, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120))
    return card(target), table


def _moved(
    origin: Card, target: str, entries: Iterable[dict[str, Any]], found: Mapping[str, FoundFile]
) -> list[dict[str, Any]]:
    """Return the files of a card for a card in `own_dir`, which finds them by links; editions are left out."""
    moved = []
    for entry in entries:
        if (one := found.get(entry["role"])) is None:
            continue
        stem, ending = plain_name(entry["path"])
        if one.file.addressed:
            transfer(one.path, data_dir() / "raw" / target, stem, reference=True)
        elif origin.location.parent.resolve() != own_dir().resolve():
            transfer(one.path, own_dir(), f"{target}-{stem}", reference=True)
            entry = {**entry, "path": f"{target}-{stem}{ending}"}
        moved.append(entry)
    return moved


class RegisteredFile(NamedTuple):
    """The dataset of a file: its name, and the reading plan if the file was registered just now."""

    name: str
    plan: ReadingPlan | None


@takes_reading
def register_file(path: PathLike, **options: Any) -> RegisteredFile:
    r"""Register a data file, so that every function that takes the name of a dataset accepts it.

    Parameters
    ----------
    path : path-like
        The file.
    **options
        See `multilab.datasets.plan_reading`. Without options, a file with the content of a dataset in ``data/own``, or
        of the only registered file with that content, is that dataset.

    Raises
    ------
    DatasetError
        If the file cannot be read as a dataset, or its labels are not known.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from multilab.datasets import load, register_file
    >>> folder, before = pathlib.Path(tempfile.mkdtemp()), os.getcwd()
    >>> os.chdir(folder)
    >>> _ = pathlib.Path("songs.csv").write_text("tempo,happy,sad\n120,1,0\n60,0,1\n")
    >>> name = register_file("songs.csv", label_columns=["happy", "sad"]).name
    >>> name, load(name).label_names
    ('songs-70941f27', ['happy', 'sad'])
    >>> register_file("songs.csv").name == name
    True
    >>> os.chdir(before)
    """
    source = require_file(path)
    reading = reading_of(options, source)
    options = reading.given()
    checksum = sha256_digest(read_bytes(source))
    if not options:
        known = list(_cards_of(own_dir(), checksum)) or list(_cards_of(files_dir(), checksum))
        if len(known) == 1:
            return RegisteredFile(known[0], None)
        if len(known) > 1:
            raise DatasetError(f"registered in several ways ({', '.join(known)}); name the label columns", source)
    xml = with_labels_xml(source, options).get("labels_xml")
    described = {**named_labels(reading, source).given(), "extension": plain_name(source)[1], "sha256": checksum}
    described["labels_xml"] = xml and sha256_digest(read_bytes(xml))
    further = {role: options[key] for key, role in FILES.items() if key in options and key != "labels_xml"}
    described |= {key: sha256_digest(read_bytes(options[key])) for key, role in FILES.items() if role in further}
    name = f"{file_stem(source)[:40] or 'file'}-{json_digest(described)[:8]}"
    if not (files_dir() / f"{name}.yaml").is_file():
        plan = plan_reading(source, **options)
        write_dataset(files_dir(), name, plan, reference=True)
        return RegisteredFile(name, plan)
    for role, file in {"": source, "labels-xml": xml, **further}.items():  # it may have another path than last time
        if file:
            transfer(Path(file), files_dir(), f"{name}{_SUFFIXES.get(role, '')}", reference=True)
    return RegisteredFile(name, None)


def _cards_of(folder: Path, checksum: str) -> Iterator[str]:
    """Yield the names of the cards in a folder whose data file has a checksum."""
    for location in sorted(folder.glob("*.yaml")):
        if checksum in location.read_text("utf-8", errors="replace"):
            yield location.stem
