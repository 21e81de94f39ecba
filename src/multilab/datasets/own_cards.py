"""Datasets of one's own: the reader options that suit a file, and its card in ``data/own``."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multilab.core.files import PathLike, write_atomically
from multilab.core.text import excerpt, visible
from multilab.datasets.catalogue import Card, card, cards, own_dir
from multilab.datasets.characteristics import describe
from multilab.datasets.column_roles import LabelOptions
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import decode, plain_name, read_bytes
from multilab.datasets.frame_reading import as_frames
from multilab.datasets.profiling import TableProfile, profile_table
from multilab.datasets.reading import encode_content, file_format, labels_xml_of, read_content

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_LABELS = ("labels_xml", "label_names", "labels_first", "labels_last", "label_columns", "label_prefix")


@dataclass(frozen=True)
class ReadingPlan:
    """How a file is read as a dataset, and what is in it.

    Attributes
    ----------
    path : Path
        The file.
    labels_xml : Path or None
        Mulan's XML file that names the labels of an ARFF file.
    reader : dict
        Options of `multilab.datasets.read` other than ``labels_xml``, as a card has them.
    profile : TableProfile
        What the table holds.
    content : dict
        The entries of `multilab.datasets.describe` after encoding.
    """

    path: Path
    labels_xml: Path | None
    reader: dict[str, Any]
    profile: TableProfile
    content: dict[str, Any]


def plan_reading(path: PathLike, *, text: str | None = None, missing: str | None = None, **options: Any) -> ReadingPlan:
    """Read a file and choose how its text and its missing values are treated.

    Parameters
    ----------
    path : path-like
        The file, in any format of `multilab.datasets.read`.
    text : {"one_hot", "error"}, optional
        Default: text columns become one-hot columns, and free text is refused: a column most of whose texts are
        different. With ``one_hot`` such a column is refused only if it has more than 1,000 or too long texts.
    missing : {"impute", "keep", "error"}, optional
        Default: missing values are imputed (median or most frequent value of all rows).
    **options
        Further options of `multilab.datasets.read`.

    Raises
    ------
    DatasetError
        One line with everything that has to be left out.
    """
    path = Path(path)
    if not path.is_file():
        raise DatasetError("it is a folder, not a data file" if path.is_dir() else "there is no such file", path)
    options = {key: value for key, value in options.items() if value is not None}
    if not set(_LABELS) & set(options) and (sibling := labels_xml_of(path, options.get("format"))):
        options["labels_xml"] = sibling
    for key in ("label_columns", "label_names"):
        if key in options:
            options[key] = _listed(options[key])
    if isinstance(options.get("drop"), str):
        options["drop"] = [name.strip() for name in options["drop"].split(",") if name.strip()]
    chosen = {key: options[key] for key in _LABELS if key in options}
    others = {key: value for key, value in options.items() if key not in _LABELS}
    content = read_content(path, LabelOptions(**chosen), text="keep", **others)
    profile = profile_table(as_frames(content))
    _refuse_columns(profile, text, others.get("drop", []), path)
    if all(label.constant for label in profile.labels):
        raise DatasetError("no label differs from row to row: every one is never set, or always", path)
    labels_xml = options.pop("labels_xml", None)
    reader = dict(options)
    if profile.text or profile.free_text:
        if text == "error":
            shown = ", ".join(repr(name[:60]) for name in [*profile.text, *profile.free_text][:10])
            raise DatasetError(f"text in {shown}: set text to 'one_hot', or leave the columns out (drop)", path)
        reader |= {"text": "one_hot"} if file_format(path) in ("csv", "parquet") else {}
    if profile.missing or missing:
        reader["missing"] = missing or "impute"
    raw = encode_content(content, reader.get("text", "error"), reader.get("missing", "error"), path)
    return ReadingPlan(path, labels_xml and Path(labels_xml), reader, profile, describe(raw))


def _listed(names: Any) -> list[str]:
    """Return names of labels as a list: from a sequence, a text with commas, or a file with one name per line."""
    if isinstance(names, str) and ("," in names or not os.path.isfile(names)):
        names = names.split(",")
    elif isinstance(names, str | os.PathLike):
        names = decode(read_bytes(names)).split("\n")
    return [name.strip() for name in names if name.strip()]


def _refuse_columns(profile: TableProfile, text: str | None, dropped: list[str], path: Path) -> None:
    """Refuse all columns at once that cannot be features, with the option that leaves them out."""
    free = {} if text == "one_hot" else profile.free_text
    reasons = [f"'{name[:60]}' is free text ({count} different values)" for name, count in free.items()]
    reasons += [f"'{name[:60]}' has no value" for name in profile.empty]
    if reasons:
        more = f" and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        drop = ",".join(dict.fromkeys([*dropped, *free, *profile.empty]))
        raise DatasetError(f"{', '.join(reasons[:5])}{more}: leave out by drop={excerpt(drop, 500)}", path)


@dataclass(frozen=True)
class OwnDataset:
    """A dataset that was added: its card, its data file, and the plan that they follow."""

    card: Card
    path: Path
    plan: ReadingPlan


def add_dataset(
    path: PathLike, *, name: str | None = None, reference: bool = False, force: bool = False, **options: Any
) -> OwnDataset:
    r"""Write the card of a data file, and copy the file next to it in ``data/own`` of the current folder.

    Parameters
    ----------
    path : path-like
        The file.
    name : str, optional
        Name of the dataset; default: that of the file in small letters.
    reference : bool, default False
        Leave the file where it is, and make a symbolic link to it.
    force : bool, default False
        Replace the dataset of this name in ``data/own``.
    **options
        See `plan_reading`.

    Raises
    ------
    DatasetError
        The file cannot be read as a dataset, or the name is taken.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from multilab.datasets import add_dataset, load
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "songs.csv").write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n90,C,0,0\n")
    >>> before = os.getcwd()
    >>> os.chdir(folder)
    >>> added = add_dataset("songs.csv", label_columns=["happy", "sad"])
    >>> added.card.reader["text"], added.card.reader["missing"], load("songs").feature_names
    ('one_hot', 'impute', ['tempo', 'key=C', 'key=D'])
    >>> os.chdir(before)
    """
    source = Path(path)
    name = _free_name(source, name, force)
    plan = plan_reading(source, **options)
    folder = own_dir()
    files = [("full", source)] + ([("labels-xml", plan.labels_xml)] if plan.labels_xml else [])
    entries, written = [], []
    for role, file in files:
        target = folder / f"{name}{_extensions(file)}"
        _transfer(file, target, reference)
        written.append(target)
        content = read_bytes(file)
        plain = f"{name}{plain_name(file)[1]}"
        entries.append(
            {"role": role, "path": plain, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        )
    location = folder / f"{name}.yaml"
    write_atomically(location, card_text(source.name, plan, entries))
    try:
        return OwnDataset(card(name), written[0], plan)
    except DatasetError:  # a column name that no card can hold
        location.unlink()
        raise


def _free_name(source: Path, name: str | None, force: bool) -> str:
    chosen = name or re.sub(r"[^a-z0-9._-]+", "-", plain_name(source)[0].lower()).strip("-._")
    if not _NAME.fullmatch(chosen) or len(chosen) > 100:
        raise DatasetError(
            f"{excerpt(repr(chosen))} is not a dataset name (small letters, digits, '.', '_' and '-'): give one (name)"
        )
    if chosen in cards():
        location = own_dir() / f"{chosen}.yaml"
        if not location.is_file():
            raise DatasetError(f"there is a dataset {chosen!r} already: give another name")
        if not force:
            raise DatasetError(
                f"there is a dataset {chosen!r} already: give another name, or replace it (force)", location
            )
    return chosen


def _extensions(file: Path) -> str:
    """Return the extension of a file, with that of a compression."""
    return file.name[len(plain_name(file)[0]) :].lower()


def _transfer(file: Path, target: Path, reference: bool) -> None:
    """Copy a file, or make a link to it; a file that is there already stays."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.samefile(file) and not (target.is_symlink() and not reference):
        return
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    if reference:
        temporary.symlink_to(file.resolve())
    else:
        shutil.copyfile(file, temporary)
    os.replace(temporary, target)


def card_text(title: str, plan: ReadingPlan, files: list[dict[str, Any]]) -> str:
    """Return the text of the card of a data file."""
    import yaml

    expected = {key: plan.content[key] for key in ("instances", "features", "labels")}
    expected["cardinality"] = round(plan.content["cardinality"], 4)
    values: Mapping[str, Any] = {
        "title": f"{visible(title)}: {expected['instances']} rows, {expected['labels']} labels",
        "reader": plan.reader,
        "files": files,
        "expected": expected,
        "notes": " ".join(f"{visible(note)}." for note in plan.content["notes"]) or None,
    }
    plain = {key: value for key, value in values.items() if value is not None}
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
