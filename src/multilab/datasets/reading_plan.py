"""Proposal of reader options for a data file: label columns, treatment of text and of missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import option, unknown_name
from multilab.core.text import excerpt, first_few
from multilab.datasets.characteristics import describe
from multilab.datasets.columns import LabelOptions, names_to_drop, read_names
from multilab.datasets.embeddings import embedded_table
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import plain_name, require_file
from multilab.datasets.joining import FurtherTables
from multilab.datasets.kinds import Kind, kind_of
from multilab.datasets.labels import TagOptions
from multilab.datasets.profiling import TableProfile, profile_table
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import (
    FORMATS,
    TABLES,
    as_frames,
    encode_content,
    file_format,
    labels_xml_of,
    read_content,
)
from multilab.datasets.table_cells import (
    COMMA_NUMBER,
    POINT_NUMBER,
    SEPARATORS,
    cell_values,
    label_meaning,
    looks_like_numbers,
    mixed_hint,
    shown_examples,
)

_LABELS = tuple(LabelOptions.__dataclass_fields__)
_TAGS = tuple(TagOptions.__dataclass_fields__)
FILES = {"test": "test", "join": "labels", "vectors": "vectors", "labels_xml": "labels-xml"}
"""Options of `multilab.datasets.read` that are further files, and the roles of these files in a card."""

_TEXT = ("one_hot", "drop", "error")
_MISSING = ("impute", "keep", "error")
_DOUBTS = 3  # columns that a message names
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
        Options of `multilab.datasets.read` other than these files, as a card has them.
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
    test: Path | None = None
    join: Path | None = None
    vectors: Path | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The files by their role in a card."""
        roles = {"train" if self.test else "full": self.path}
        return roles | {role: getattr(self, option) for option, role in FILES.items() if getattr(self, option)}


def plan_reading(
    path: PathLike,
    *,
    columns: Mapping[str, str] | None = None,
    text: str | None = None,
    missing: str | None = None,
    **options: Any,
) -> ReadingPlan:
    r"""Read a file and choose the treatment of its text and missing values.

    Parameters
    ----------
    path : path-like
        The file, in any format of `multilab.datasets.read`.
    columns : mapping of str to str, optional
        Kinds of columns of a table that are not to be recognised, see :func:`choose_kinds`. A table is kept as it is;
        what turns its columns into numbers is learned from training rows. A column without any value is left out.
    text : {"one_hot", "drop", "error"}, optional
        Make a matrix of all rows instead: text columns become one-hot columns (refused if one has more than 1,000 or
        too long texts), are left out, or are refused.
    missing : {"impute", "keep", "error"}, optional
        Make a matrix of all rows instead: missing values are imputed (median or most frequent value), kept or refused.
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
    >>> plan.reader["columns"], plan.profile.missing
    ({'tempo': 'number', 'key': 'category'}, {'tempo': 1})
    """
    path = require_file(path)
    options = with_labels_xml(path, {key: value for key, value in options.items() if value is not None})
    for key in ("label_columns", "label_names"):
        if key in options:
            options[key] = list(read_names(options[key], path)[1])
    dropped = list(names_to_drop(options.pop("drop", None)))
    chosen = {key: options[key] for key in _LABELS if key in options}
    of_tags = TagOptions(**{key: options[key] for key in _TAGS if key in options})
    further = {key: options.pop(key) for key in ("test", "join", "vectors") if key in options}
    tables = FurtherTables(**further, on=options.get("on"))
    others = {key: value for key, value in options.items() if key not in (*_LABELS, *_TAGS, "on")} | {"further": tables}
    kind = options.get("format") or file_format(path)
    if plain_name(path)[1] not in FORMATS:
        options["format"] = others["format"] = kind  # the card says it
    if kind in TABLES and not of_tags.given():
        if not chosen:
            raise DatasetError(f"which columns are labels?{_proposal(path, others)}", path)
        others.setdefault("missing_labels", "keep")  # the profile counts them

    def read_without(drop: list[str]) -> CodedTable | RawData:
        labels = None if of_tags.given() else LabelOptions(**chosen)
        as_text = [name for name, kind in (columns or {}).items() if kind != "number"]
        return read_content(path, labels, of_tags, text="keep", drop=drop, text_columns=as_text, **others)

    dropped, profile, encoding, raw = choose_encoding(read_without, dropped, text, missing, path, kind, columns)
    labels_xml = options.pop("labels_xml", None)
    if kind not in TABLES:
        encoding.pop("text", None)  # nominal features of ARFF are declared
    elif (np.asarray(raw.Y) < 0).any():
        options = {**options, "missing_labels": "keep"}
    reader = {**options, **({"drop": dropped} if dropped else {}), **encoding}
    files = {key: require_file(file) for key, file in further.items()}
    return ReadingPlan(path, labels_xml and Path(labels_xml), reader, profile, describe(raw), **files)


def choose_encoding(
    read_without: Callable[[list[str]], CodedTable | RawData],
    dropped: list[str],
    text: str | None,
    missing: str | None,
    path: PathLike,
    kind: str = "frame",
    columns: Mapping[str, str] | None = None,
) -> tuple[list[str], TableProfile, dict[str, Any], RawData]:
    """Choose the kinds of the columns of a table, or how it becomes a matrix, see :func:`plan_reading`.

    Parameters
    ----------
    read_without : callable
        Returns the table without the columns of these names, its text as it is.
    dropped : list of str
        Names of the columns that are left out in any case.
    text, missing, path, columns
        As for :func:`plan_reading`.
    kind : str
        Format of the file, or "frame".

    Returns
    -------
    dropped : list of str
        Also with the columns that cannot be features.
    profile : TableProfile
    options : dict
        ``columns``, or ``text`` where the table has text, and ``missing``.
    raw : RawData
        The table, or the matrix.
    """
    for name, value, allowed in (("text", text, _TEXT), ("missing", missing, _MISSING)):
        if value not in (None, *allowed):
            raise DatasetError(f"{option(name)} must be one of {', '.join(allowed)}, not {value!r}", path)
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
    if all(label.constant for label in profile.labels):
        raise DatasetError("no label differs from row to row: every one is never set, or always", path)
    is_table = text is None and missing is None and kind in (*TABLES, "frame")
    if is_table and isinstance(content, CodedTable) and not sp.issparse(content.values):
        content, given, embeddings = embedded_table(content, columns, path)
        kinds = choose_kinds(content, given, path)
        written = {name: str(one) for name, one in kinds.items() if name.partition("[")[0] not in embeddings}
        return dropped, profile, {"columns": written | embeddings}, content.kept(kinds)
    if columns:
        raise DatasetError(
            f"kinds of columns are those of a table that is kept as it is: neither {option('text')} nor "
            f"{option('missing')}",
            path,
        )
    if isinstance(content, CodedTable):
        _refuse_mixed(content, path)
    if text == "error" and of_text:
        raise DatasetError(
            f"text in {_shown(of_text)}: 0/1 columns by {option('text', 'one_hot')}, or leave the columns out "
            f"({option('drop')})",
            path,
        )
    if text is None and kind != "arff" and isinstance(content, CodedTable):
        _refuse_disguised(content, kind, path)
    if text is None and profile.free_text:
        what = "dates" if set(profile.dates) == set(profile.free_text) else "free text"
        counts = (f"{name} ({count} different values)" for name, count in profile.free_text.items())
        drop = ",".join(dict.fromkeys([*dropped, *profile.free_text]))
        advice = f"{option('drop', drop)}, or " if len(drop) < _MAX_ADVICE else ""
        advice += f"{option('text', 'drop')} (all text columns)"
        raise DatasetError(f"{what} in {_shown(counts)}: leave it out by {advice}", path)
    options = {"text": "one_hot"} if of_text else {}
    options["missing"] = missing or "impute"  # also without a missing value: new rows may have one
    raw = encode_content(content, options.get("text", "error"), options["missing"], path)
    return dropped, profile, options, raw


def choose_kinds(table: CodedTable, given: Mapping[str, str], path: PathLike) -> dict[str, Kind]:
    """Return the kinds of the feature columns of a table.

    Parameters
    ----------
    table : CodedTable
        With its texts as they are.
    given : mapping of str to str
        Kinds of columns by name, which are not looked at.
    path : path-like

    Raises
    ------
    DatasetError
        Several readings of a column remain, or most of its cells are numbers but too many are not.
    """
    names = [column.name for column in table.columns]
    for name in given:
        if name not in names:
            raise DatasetError(f"columns: {unknown_name('feature column', name, names)}", path)
    kinds = {name: Kind.parse(kind) for name, kind in given.items()}
    doubtful = dict[str, tuple[str, Sequence[Kind]]]()
    for j, column in enumerate(table.columns):
        if column.name in given:
            continue
        if column.values is None or column.binary:
            kinds[column.name] = Kind("number")
            if column.name in table.grouped:
                doubtful[column.name] = "numbers such as 800 and 9.600", [Kind("number"), Kind("number", "comma")]
            continue
        codes = table.values[:, j]
        counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(column.values))
        found = kind_of(column.values, counts.tolist())
        kinds[column.name] = found[0]
        values = cell_values(column.values)
        numbers = counts[[value is not None for value in values]].sum()
        if len(found) > 1:
            doubtful[column.name] = ", ".join(repr(excerpt(text)) for text in column.values[:2]), found
        elif found[0].name in ("category", "text") and None in values and numbers > counts.sum() / 2:
            row, wrong = _first_text(codes, column.values)
            why = f"mostly numbers, but {excerpt(wrong)!r} in row {row + 1}"
            doubtful[column.name] = why, [Kind("number"), Kind("category")]
    if doubtful:
        shown = [
            f"{name!r} ({why}) by {option('columns', ' or '.join(f'{name}={kind}' for kind in readings))}"
            for name, (why, readings) in list(doubtful.items())[:_DOUBTS]
        ]
        more = f"; and {len(doubtful) - _DOUBTS} more" if len(doubtful) > _DOUBTS else ""
        raise DatasetError(f"columns that can be read in several ways: {'; '.join(shown)}{more}", path)
    return {name: kinds[name] for name in names}


def _refuse_mixed(table: CodedTable, path: PathLike) -> None:
    """Refuse a column of numbers among which there are texts."""
    for j, column in enumerate(table.columns):
        values = cell_values(column.values or ())
        if None in values and values.count(None) < len(values) / 2:
            codes = table.values[:, [j]].toarray().ravel() if sp.issparse(table.values) else table.values[:, j]
            row, text = _first_text(codes, column.values or ())
            raise DatasetError(
                f"row {row + 1}: '{excerpt(text)}' of column '{column.name[:60]}' is not a finite number{mixed_hint()}",
                path,
            )


def _first_text(codes: np.ndarray, texts: Sequence[str]) -> tuple[int, str]:
    """Return the first cell that is neither a number nor missing: its row and what it is."""
    wrong = np.array([value is None for value in cell_values(texts)] + [False])
    row = int(wrong[np.where(np.isnan(codes), len(texts), codes).astype(np.intp)].argmax())
    return row, texts[int(codes[row])]


def _refuse_disguised(content: CodedTable, kind: str, path: PathLike) -> None:
    """Refuse numbers that would become text, and points that may separate thousands."""
    disguised = [column for column in content.columns if looks_like_numbers(column.values or ())]
    if disguised:
        advice = ""
        if kind == "csv":
            texts = [text for column in disguised for text in column.values or ()]
            if any(COMMA_NUMBER.fullmatch(text) for text in texts):
                advice += f", read decimal commas by {option('decimal', repr(','))}"
            if any("," in text and POINT_NUMBER.fullmatch(text) for text in texts):
                advice += f", read commas between thousands by {option('decimal', repr('.'))}"
        raise DatasetError(
            f"numbers written as text in {shown_examples(disguised)}: make them plain numbers{advice}, leave the "
            f"columns out ({option('drop')}), or take them as text by {option('text', 'one_hot')}",
            path,
        )
    if content.grouped:
        raise DatasetError(
            f"numbers such as 800 and 9.600 in {_shown(content.grouped)}: {option('decimal', repr('.'))} if the point "
            f"is a decimal point, {option('decimal', repr(','))} if it separates thousands",
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
    return f" Name them by {option('label_columns')}, or give {option('tags', 'COLUMN')}"


def with_labels_xml(path: PathLike, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a reader, with the XML file next to an ARFF file if no option chooses labels."""
    xml = None if {*_LABELS, *_TAGS} & set(options) else labels_xml_of(path, options.get("format"))
    return {**options, "labels_xml": xml} if xml else options
