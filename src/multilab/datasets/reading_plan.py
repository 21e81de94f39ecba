"""Proposal of reader options for a data file: label columns, treatment of text and of missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.text import excerpt, first_few
from multilab.datasets.cells import (
    COMMA_NUMBER,
    POINT_NUMBER,
    SEPARATORS,
    label_meaning,
    looks_like_numbers,
    shown_examples,
)
from multilab.datasets.characteristics import describe
from multilab.datasets.columns import LabelOptions, named_columns, names_to_drop
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import require_file
from multilab.datasets.labels import TagOptions
from multilab.datasets.profiling import TableProfile, profile_table
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import TABLES, as_frames, encode_content, file_format, labels_xml_of, read_content

_LABELS = tuple(LabelOptions.__dataclass_fields__)
_TAGS = tuple(TagOptions.__dataclass_fields__)
_TEXT = ("one_hot", "drop", "error")
_MISSING = ("impute", "keep", "error")
_MAX_ADVICE = 90  # characters: longer texts are cut in messages


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
    r"""Read a file and choose how its text and its missing values are treated.

    Parameters
    ----------
    path : path-like
        The file, in any format of `multilab.datasets.read`.
    text : {"one_hot", "drop", "error"}, optional
        Default: text columns become one-hot columns, and free text is refused: a column most of whose texts are
        different. With ``one_hot`` such a column is refused only if it has more than 1,000 or too long texts; with
        ``drop`` all text columns are left out.
    missing : {"impute", "keep", "error"}, optional
        Default: missing values are imputed (median or most frequent value of all rows). A column without any value is
        left out.
    **options
        Further options of `multilab.datasets.read`.

    Raises
    ------
    DatasetError
        One line with everything that has to be left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import plan_reading
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n90,C,0,0\n")
    >>> plan = plan_reading(path, labels_last=2)
    >>> plan.reader["text"], plan.reader["missing"], plan.profile.missing
    ('one_hot', 'impute', {'tempo': 1})
    """
    path = require_file(path)
    options = with_labels_xml(path, {key: value for key, value in options.items() if value is not None})
    for key in ("label_columns", "label_names"):
        if key in options:
            options[key] = list(named_columns(options[key], path)[1])
    dropped = list(names_to_drop(options.pop("drop", None)))
    chosen = {key: options[key] for key in _LABELS if key in options}
    of_tags = TagOptions(**{key: options[key] for key in _TAGS if key in options})
    others = {key: value for key, value in options.items() if key not in (*_LABELS, *_TAGS)}
    kind = options.get("format") or file_format(path)
    if kind in TABLES and not of_tags.given():
        if not chosen:
            raise DatasetError(f"which columns are labels?{_proposal(path, others)}", path)
        others.setdefault("missing_labels", "keep")  # the profile counts them

    def read_without(drop: list[str]) -> CodedTable | RawData:
        labels = None if of_tags.given() else LabelOptions(**chosen)
        return read_content(path, labels, of_tags, text="keep", drop=drop, **others)

    dropped, profile, encoding, raw = choose_encoding(read_without, dropped, text, missing, path, kind)
    labels_xml = options.pop("labels_xml", None)
    if kind not in TABLES:
        encoding.pop("text", None)  # nominal features of ARFF are declared
    elif (np.asarray(raw.Y) < 0).any():
        options = {**options, "missing_labels": "keep"}
    reader = {**options, **({"drop": dropped} if dropped else {}), **encoding}
    return ReadingPlan(path, labels_xml and Path(labels_xml), reader, profile, describe(raw))


def choose_encoding(
    read_without: Callable[[list[str]], CodedTable | RawData],
    dropped: list[str],
    text: str | None,
    missing: str | None,
    path: PathLike,
    kind: str = "frame",
) -> tuple[list[str], TableProfile, dict[str, str], RawData]:
    """Choose how the text and the missing values of a table become numbers, see :func:`plan_reading`.

    Parameters
    ----------
    read_without : callable
        Returns the table without the columns of these names, its text as it is.
    dropped : list of str
        Names of the columns that are left out in any case.
    text, missing, path
        As for :func:`plan_reading`.
    kind : str
        Format of the file, or "frame".

    Returns
    -------
    dropped : list of str
        Also with the columns that cannot be features.
    profile : TableProfile
    options : dict
        ``text`` where the table has text, and ``missing``.
    raw : RawData
        The table after encoding.
    """
    for name, value, allowed in (("text", text, _TEXT), ("missing", missing, _MISSING)):
        if value not in (None, *allowed):
            raise DatasetError(f"{name} must be one of {', '.join(allowed)}, not {value!r}", path)
    content = read_without(dropped)
    profile = profile_table(as_frames(content))
    of_text = [*profile.text, *profile.free_text]
    left_out = [*profile.empty, *(of_text if text == "drop" else [])]
    if left_out:
        if len(left_out) == profile.features:
            raise DatasetError("no feature is left: every column is a label, is left out, or has no value", path)
        dropped = [*dropped, *left_out]
        content = read_without(dropped)
        profile, of_text = replace(profile_table(as_frames(content)), empty=profile.empty), of_text * (text != "drop")
    if text == "error" and of_text:
        raise DatasetError(
            f"text in {_shown(of_text)}: 0/1 columns by text=one_hot, or leave the columns out (drop)", path
        )
    if text is None and kind != "arff" and isinstance(content, CodedTable):
        _refuse_disguised(content, kind, path)
    if text is None and profile.free_text:
        what = "dates" if set(profile.dates) == set(profile.free_text) else "free text"
        counts = (f"{name} ({count} different values)" for name, count in profile.free_text.items())
        drop = ",".join(dict.fromkeys([*dropped, *profile.free_text]))
        advice = f"drop={drop}, or " if len(drop) < _MAX_ADVICE else ""
        raise DatasetError(f"{what} in {_shown(counts)}: leave it out by {advice}text=drop (all text columns)", path)
    if all(label.constant for label in profile.labels):
        raise DatasetError("no label differs from row to row: every one is never set, or always", path)
    options = {"text": "one_hot"} if of_text else {}
    options["missing"] = missing or "impute"  # also without a missing value: new rows may have one
    raw = encode_content(content, options.get("text", "error"), options["missing"], path)
    return dropped, profile, options, raw


def _refuse_disguised(content: CodedTable, kind: str, path: PathLike) -> None:
    """Refuse numbers that would become text, and points that may separate thousands."""
    disguised = [column for column in content.columns if looks_like_numbers(column.values or ())]
    if disguised:
        advice = ""
        if kind == "csv":
            texts = [text for column in disguised for text in column.values or ()]
            if any(COMMA_NUMBER.fullmatch(text) for text in texts):
                advice += ", read decimal commas by decimal=','"
            if any("," in text and POINT_NUMBER.fullmatch(text) for text in texts):
                advice += ", read commas between thousands by decimal='.'"
        raise DatasetError(
            f"numbers written as text in {shown_examples(disguised)}: make them plain numbers{advice}, leave the "
            "columns out (drop), or take them as text by text=one_hot",
            path,
        )
    if content.grouped:
        raise DatasetError(
            f"numbers such as 800 and 9.600 in {_shown(content.grouped)}: decimal='.' if the point is a decimal point, "
            "decimal=',' if it separates thousands",
            path,
        )


def _shown(names: Iterable[str]) -> str:
    return first_few((excerpt(name, 80) for name in names), 5)


def _proposal(path: Path, options: dict[str, Any]) -> str:
    """Return the option that names the labels a table seems to have; it is the user who decides."""
    table = as_frames(read_content(path, None, text="keep", **options)).features
    binary, tags, prefixes = list[str](), list[str](), Counter[str]()
    for name in table.columns:
        cells = table[name]
        of_text = isinstance(cells.dtype, pd.CategoricalDtype)
        different = list(cells.cat.categories) if of_text else [f"{value:g}" for value in cells.dropna().unique()]
        blank = [""] if cells.hasnans else []
        if different and label_meaning([*different, *blank]):
            binary.append(name)
            head, mark, _ = name.partition("_")
            prefixes.update([head + mark] if mark else [])
        elif of_text:
            texts = [text for text in different if len(text) < _MAX_ADVICE]
            if any(sum(mark in text for text in texts) > len(texts) / 4 for mark in SEPARATORS) or any(
                text.startswith("[") for text in texts
            ):
                tags.append(name)
    advice = [f"label_prefix={prefix} ({count} columns)" for prefix, count in prefixes.most_common(1) if count > 1]
    advice += [f"label_columns={','.join(binary)}"] if binary and len(",".join(binary)) < _MAX_ADVICE else []
    advice += [f"tags={name}" for name in tags]
    return f" Perhaps {' or '.join(advice)}" if advice else " Name them by label_columns, or give tags=COLUMN"


def with_labels_xml(path: PathLike, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a reader, with the XML file next to an ARFF file if no option chooses labels."""
    xml = None if {*_LABELS, *_TAGS} & set(options) else labels_xml_of(path, options.get("format"))
    return {**options, "labels_xml": xml} if xml else options
