"""Data files as datasets without a card of one's own: ``dataset=./my.csv labels='tag_*'``.

A file is registered under a name that its content and the options of its reader decide, not its folder. Its card is in
``<data_dir>/files``, next to a link to the file; it is no part of the catalogue (`multilab.datasets.cards`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from multilab.core.digests import json_digest, sha256_digest
from multilab.core.files import PathLike
from multilab.datasets.catalogue import files_dir, own_dir
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import plain_name, read_bytes, require_file
from multilab.datasets.own_cards import file_stem, transfer, write_dataset
from multilab.datasets.reading_plan import ReadingPlan, plan_reading, with_labels_xml


class RegisteredFile(NamedTuple):
    """The dataset of a file: its name, and how it is read if that was decided just now."""

    name: str
    plan: ReadingPlan | None


def register_file(path: PathLike, **options: Any) -> RegisteredFile:
    r"""Return the dataset of a data file, so that every function that takes the name of a dataset takes it.

    Parameters
    ----------
    path : path-like
        The file.
    **options
        See `multilab.datasets.plan_reading`. Without any, a file of the content of a dataset in ``data/own``, or of the
        only registered file with that content, is that dataset.

    Raises
    ------
    DatasetError
        The file cannot be read as a dataset, or what its labels are is not known.

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
    options = {key: value for key, value in options.items() if value is not None}
    checksum = sha256_digest(read_bytes(source))
    if not options:
        known = list(_cards_of(own_dir(), checksum)) or list(_cards_of(files_dir(), checksum))
        if len(known) == 1:
            return RegisteredFile(known[0], None)
        if len(known) > 1:
            raise DatasetError(f"it is read in several ways ({', '.join(known)}): name the label columns", source)
    xml = with_labels_xml(source, options).get("labels_xml")
    described = {**options, "extension": plain_name(source)[1], "sha256": checksum}
    described["labels_xml"] = xml and sha256_digest(read_bytes(xml))
    name = f"{file_stem(source)[:40] or 'file'}-{json_digest(described)[:8]}"
    if not (files_dir() / f"{name}.yaml").is_file():
        plan = plan_reading(source, **options)
        write_dataset(files_dir(), name, plan, reference=True)
        return RegisteredFile(name, plan)
    for file in filter(None, (source, xml)):  # it may have another path than last time
        transfer(Path(file), files_dir(), name, reference=True)
    return RegisteredFile(name, None)


def _cards_of(folder: Path, checksum: str) -> Iterator[str]:
    """Yield the names of the cards in a folder whose data file has a checksum."""
    for location in sorted(folder.glob("*.yaml")):
        if checksum in location.read_text("utf-8", errors="replace"):
            yield location.stem
