"""Proposal of reader options for a data file: label columns, kinds of columns, columns that cannot be features."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.digests import sha256_digest
from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.core.tags import SEPARATORS
from multilab.core.text import first_few
from multilab.datasets.characteristics import describe
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import plain_name, read_bytes, require_file
from multilab.datasets.frames import is_text, texts_of_column
from multilab.datasets.kinds import kind_of
from multilab.datasets.labels import label_meaning, read_names
from multilab.datasets.options import FILES, FORMATS, LABELS, TABLES, TAGS, Reading, reading_of, takes_reading
from multilab.datasets.profiling import TableProfile, profile_table
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import file_format, labels_xml_of, missing_error, raw_content, read_rows
from multilab.datasets.tables import with_kinds

_MAX_ADVICE = 90  # characters: longer texts are cut in messages


@dataclass(frozen=True)
class ReadingPlan:
    """Plan for reading a file as a dataset, and its content.

    Attributes
    ----------
    path : Path
        The file.
    labels_xml : Path or None
        Mulan's XML file that names the labels of an ARFF file.
    test, join, vectors : Path or None
        The files of the test rows, of the labels and of vectors, see `multilab.datasets.read`.
    reader : dict
        Options of `Reading` other than these files, as in a card.
    profile : TableProfile
        Profile of the table.
    content : dict
        The entries of `multilab.datasets.describe` after encoding.
    """

    path: Path
    labels_xml: Path | None
    reader: dict[str, Any]
    profile: TableProfile
    content: dict[str, Any]
    test: Path | None = None
    join: Path | None = None
    vectors: Path | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The files by their role in a card."""
        roles = {"train" if self.test else "full": self.path}
        return roles | {role: getattr(self, option) for option, role in FILES.items() if getattr(self, option)}


@takes_reading
def plan_reading(path: PathLike, **options: Any) -> ReadingPlan:
    r"""Read a file and choose its labels and the kinds of its columns.

    Parameters
    ----------
    path : path-like
        The file, in any format of `multilab.datasets.read`.
    **options
        Options of `multilab.datasets.options.Reading`. A table is kept as it is, since the encoder of its columns is
        learned from training rows. A column without any value is left out.

    Raises
    ------
    DatasetError
        If the user has to decide something. The message lists all of it in one line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import plan_reading
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n90,C,0,0\n")
    >>> plan = plan_reading(path, labels_last=2)
    >>> plan.reader["columns"], plan.profile.missing
    ({'tempo': 'number', 'key': 'category'}, {'tempo': 1})
    """
    path = require_file(path)
    reading = reading_of(with_labels_xml(path, options), path)
    kind: Any = reading.format or file_format(path)
    if plain_name(path)[1] not in FORMATS:
        reading = replace(reading, format=kind)  # the card says it
    if kind in TABLES and not reading.given((*LABELS, *TAGS)):
        raise DatasetError(f"which columns are labels?{_proposal(path, reading)}", path)
    counted = reading
    if kind in TABLES and not reading.given(TAGS) and reading.missing_labels is None:
        counted = replace(reading, missing_labels="keep")  # the profile counts them
    raw, left_out, profile = profiled(raw_content(path, counted), path)
    if isinstance(raw.X, pd.DataFrame):
        raw = with_kinds(raw, reading.columns or {}, path)
        own = {name: str(kind) for name, kind in (raw.kinds or {}).items()}
        written = {name: kind for name, kind in own.items() if name.partition("[")[0] not in raw.embeddings}
        reading = replace(reading, columns=written | dict(raw.embeddings))
    if raw.Y.dtype == np.int8 and (raw.Y < 0).any():
        reading = replace(reading, missing_labels="keep")
    reading = replace(reading, drop=[*reading.dropped, *left_out] or None)
    reader = named_labels(reading, path).given()  # only here: a fault in a file of names has the line in that file
    files = {key: require_file(reader.pop(key)) for key in FILES if key in reader}
    return ReadingPlan(path, files.pop("labels_xml", None), reader, profile, describe(raw), **files)


def profiled(raw: RawData, path: PathLike) -> tuple[RawData, list[str], TableProfile]:
    """Return the content of a file without columns that have no value, their names, and the profile.

    Raises
    ------
    DatasetError
        No feature is left, or no label differs from row to row.
    """
    profile = profile_table(raw)
    if all(label.constant for label in profile.labels):
        raise DatasetError("no label differs from row to row; each one is never set, or always", path)
    empty = profile.empty
    if not empty or not isinstance(raw.X, pd.DataFrame):
        return raw, [], profile
    if len(empty) == profile.features:
        raise DatasetError("no feature is left: every column is a label, is left out, or has no value", path)
    X = raw.X.drop(columns=empty)
    note = f"columns without any value, left out: {first_few((repr(name[:60]) for name in empty), 10)}"
    missing = raw.missing_values - len(empty) * len(X)
    raw = replace(
        raw,
        X=X,
        feature_names=list(X.columns),
        original_features=X.shape[1],
        nominal_features=sum(is_text(cells) for _, cells in X.items()),
        missing_values=missing,
        notes=(*raw.notes, note),
    )
    return raw, empty, replace(profile_table(raw), empty=empty)


def named_labels(reading: Reading, path: PathLike) -> Reading:
    """Return the options with the names that a text or a file of label names has."""
    names: dict[str, Any] = {
        key: list(read_names(value, path)[1]) for key, value in reading.given(("label_columns", "label_names")).items()
    }
    return replace(reading, **names) if names else reading


def _proposal(path: Path, reading: Reading) -> str:
    """Return the option that names the labels a table seems to have; it is the user who decides."""
    table = read_rows(path, reading.without(*FILES)).frame
    binary, tags, prefixes = list[str](), list[str](), Counter[str]()
    for name, cells in table.items():
        of_text = is_text(cells)
        different = texts_of_column(cells)[0] if of_text else [f"{value:g}" for value in cells.dropna().unique()]
        blank = [""] if cells.hasnans else []
        if different and label_meaning([*different, *blank]):
            binary.append(name)
            head, mark, _ = name.partition("_")
            prefixes.update([head + mark] if mark else [])
        elif of_text and kind_of(different, [1] * len(different))[0].name not in ("number", "date"):
            texts = [text for text in different if len(text) < _MAX_ADVICE]
            if any(sum(mark in text for text in texts) > len(texts) / 4 for mark in SEPARATORS) or any(
                text.startswith("[") for text in texts
            ):
                tags.append(name)
    advice = [
        f"{option('label_prefix', prefix)} ({count} columns)" for prefix, count in prefixes.most_common(1) if count > 1
    ]
    advice += [option("label_columns", ",".join(binary))] if binary and len(",".join(binary)) < _MAX_ADVICE else []
    advice += [option("tags", name) for name in tags]
    if advice:
        return f" Perhaps {' or '.join(advice)}"
    return f" Name them with {option('label_columns')}, or give {option('tags', 'COLUMN')}"


def with_labels_xml(path: PathLike, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a reader, with the XML file next to an ARFF file if no option chooses labels."""
    given = {name: value for name, value in options.items() if value is not None}
    xml = None if {*LABELS, *TAGS} & set(given) else labels_xml_of(path, given.get("format"))
    return {**given, "labels_xml": xml} if xml else given


@takes_reading
def check(path: PathLike, **options: Any) -> dict[str, Any]:
    r"""Return the characteristics of a file.

    Parameters
    ----------
    path : path-like
        The file. For an ARFF file without label options, ``<stem>.xml`` next to it (or the one without ``-train`` or
        ``-test``) names the labels, if it exists.
    **options
        See :func:`plan_reading`.

    Returns
    -------
    dict
        ``path``, ``format``, ``bytes`` and ``sha256`` of the decompressed content, the entries of
        :func:`multilab.datasets.characteristics.describe`, and ``label_names``.

    Raises
    ------
    DatasetError
        If the file cannot be read as a dataset.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import check
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,happy,sad\n120,1,0\n,0,1\n")
    >>> result = check(path, labels_last=2)
    >>> result["instances"], result["missing_values"]
    (2, 1)
    """
    reading = reading_of(with_labels_xml(path, options), path)
    raw = raw_content(path, reading)
    if isinstance(raw.X, pd.DataFrame):
        raw = with_kinds(raw, reading.columns or {}, path)
    elif raw.missing_values:
        raise missing_error(raw, path)
    content = read_bytes(path)
    return {
        "path": os.fspath(path),
        "format": reading.format or file_format(path),
        "bytes": len(content),
        "sha256": sha256_digest(content),
        **describe(raw),
        "label_names": raw.label_names,
    }
