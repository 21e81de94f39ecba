"""One reader for all file formats: finds the format, passes the options on, checks the result."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.digests import sha256_digest
from multilab.core.files import PathLike
from multilab.core.messages import as_argument, option, options_spelled_by, pip_install
from multilab.datasets.arff import read_arff
from multilab.datasets.characteristics import describe
from multilab.datasets.columns import LabelOptions, names_to_drop
from multilab.datasets.documents import read_excel, read_json
from multilab.datasets.embeddings import embedded_table
from multilab.datasets.encode import CodedTable, impute, kinds_of_columns, missing_error, one_hot_text, refuse_text
from multilab.datasets.errors import DatasetError, DatasetWarning
from multilab.datasets.file_access import (
    ENCODINGS,
    Limits,
    TextForm,
    name_memory_errors,
    plain_name,
    read_bytes,
    read_head,
    require_file,
)
from multilab.datasets.joining import FurtherTables
from multilab.datasets.labels import TagOptions, tagged
from multilab.datasets.matlab import read_matlab
from multilab.datasets.raw_data import RawData
from multilab.datasets.sparse import read_svmlight, read_xc
from multilab.datasets.table import delimiter_of, read_csv

Missing = Literal["error", "keep", "impute"]
MissingLabels = Literal["error", "keep"]
Text = Literal["error", "one_hot"]
Decimal = Literal[".", ","]
BadLines = Literal["error", "skip"]

FORMATS = {
    ".arff": "arff",
    ".mat": "mat",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".xlsx": "excel",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "xc",
}
"""Extension (without that of a compression) to format."""

TABLES = ("csv", "excel", "json", "parquet")
"""Formats of tables whose options name the labels, and whose cells may be text."""

_SNIFFED = 50
"""Lines by which the format of a file of an unknown extension is recognised."""

_ENTRY = re.compile(r"\d+:[-+.\deE]+")
"""Entry of a row of svmlight, ``12:0.5``."""


def find_format(path: PathLike) -> str:
    """Return the format of a file by its extension, without that of a compression.

    A ``.txt`` file is "xc" here; :func:`read` reads it as svmlight if its first line is a row of that.

    Raises
    ------
    DatasetError
        There is no such file, or its extension is unknown.
    """
    extension = plain_name(path)[1]
    if extension not in FORMATS:
        require_file(path)
        raise DatasetError(
            f"unknown extension '{extension}'; known: {' '.join(FORMATS)}; otherwise name the format "
            f"({option('format', 'csv')})",
            path,
        )
    return FORMATS[extension]


@name_memory_errors
def read(
    path: PathLike,
    *,
    format: str | None = None,
    labels_xml: PathLike | None = None,
    label_names: Sequence[str] | None = None,
    labels_first: int | None = None,
    labels_last: int | None = None,
    label_columns: Sequence[str] | PathLike | None = None,
    label_prefix: str | None = None,
    tags: str | None = None,
    item: str | None = None,
    tag: str | None = None,
    separator: str | None = None,
    min_count: int | None = None,
    keys: Mapping[str, str] | None = None,
    n_features: int | None = None,
    first_feature: int | None = None,
    first_label: int | None = None,
    drop: Sequence[str] | str | None = None,
    text: Text = "error",
    missing: Missing = "error",
    missing_labels: MissingLabels = "error",
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    decimal: Decimal | None = None,
    on_bad_lines: BadLines | None = None,
    test: PathLike | None = None,
    join: PathLike | None = None,
    on: str | None = None,
    vectors: PathLike | None = None,
    groups: str | None = None,
    limits: Limits | None = None,
) -> RawData:
    r"""Read one data file: ARFF, MATLAB, CSV, Parquet, svmlight or Extreme Classification text.

    Parameters
    ----------
    path : path-like
        The file, plain or compressed by gzip, bzip2 or xz.
    format : {"arff", "mat", "csv", "parquet", "svmlight", "xc"}, optional
        Default: by the extension; a ``.txt`` file is svmlight if its first line is a row of that.
    labels_xml, labels_first, labels_last, label_columns, label_prefix : optional
        For files with named columns, one of: Mulan's XML file; the number of first or of last columns; the
        names of the label columns, as a sequence, one text with commas, or a file with one name per line, where
        ``*`` and ``?`` match any text and any character (``tag_*``); or their prefix. Without any of these, ``-C n``
        in the relation name of an ARFF file is used.
    tags : str, optional
        Instead of these: the column of a table that holds the tags of each row, such as ``red|blue``, ``red, blue`` or
        ``['red', 'blue']``. Every tag is a label; a blank is a row without any.
    item, tag : str, optional
        Instead of these: the two columns of a table with a row for each item and tag.
    separator : str, optional
        What separates the tags of a cell; by default the one of ``|``, ``;`` and ``,`` that occurs, and nothing in a
        column ``tag``.
    min_count : int, optional
        Tags with fewer rows are left out.
    label_names : sequence of str, optional
        Names of the labels of a file that has none (``mat``, ``svmlight``, ``xc``); otherwise as
        ``label_columns``.
    keys : mapping, optional
        Names of the variables of a MATLAB file, see :func:`multilab.datasets.matlab.read_matlab`.
    n_features, first_feature, first_label : int, optional
        For svmlight, see :func:`multilab.datasets.sparse.read_svmlight`.
    drop : sequence of str, or text with commas, optional
        Names of columns of an ARFF, CSV or Parquet file that are left out, such as row identifiers. They are counted
        neither by ``labels_first`` nor by ``labels_last``. The index columns of pandas are always left out.
    text : {"error", "one_hot"}
        Whether text features of CSV and Parquet are refused, or become one 0/1 column per value, as nominal features of
        ARFF always do.
    missing : {"error", "keep", "impute"}
        Whether missing feature values are an error, stay as NaN and are counted, or are imputed from all rows of the
        file without using the labels, see :func:`multilab.datasets.encode.impute`.
    missing_labels : {"error", "keep"}
        Whether missing values in label columns of ARFF, CSV and Parquet are an error, or labels that were not observed.
    columns : mapping of str to str, optional
        Keep the table as it is, with this kind of each feature column: "number", "category", "text" or "date", see
        `multilab.datasets.kinds.Kind`. ``text`` and ``missing`` do not count then.
    encoding : str, optional
        Encoding of a file of text, one of :data:`multilab.datasets.file_access.ENCODINGS`. Default: UTF-8, or
        Windows-1252 for a file without any character of UTF-8 beyond ASCII.
    header : bool, optional
        Whether the first line of a CSV file names the columns; without names they are ``c1``, ``c2``, ... Default:
        it does, and a first line that looks like data is refused.
    decimal : {".", ","}, optional
        Decimal separator of the numbers of a CSV file, where the other one may separate thousands: with a comma
        ``1.234,5`` is 1234.5. Default: a point, and no separator of thousands.
    on_bad_lines : {"error", "skip"}, optional
        Whether lines of a CSV file that have another number of fields than the first line, or quotes inside of quotes,
        are refused (default) or left out. `RawData.notes` lists those that were.
    test : path-like, optional
        A second file with the same columns, whose rows are the test rows. All rows are read; ``train_rows`` says how
        many are of the first file.
    join, on : path-like and str, optional
        A file with further columns of the same rows, labels as a rule, and the column that both files have: the key,
        which is no feature. Its columns follow those of ``path``. With ``item`` and ``tag`` it may have any number of
        rows for a key.
    vectors : path-like, optional
        A ``.npy`` file of numbers for all rows, in their order, such as embeddings: columns ``vectors[0]``, ...
    groups : str, optional
        A column that says which rows belong together, such as a patient; it is no feature. No split has rows of one
        group on both sides.
    limits : Limits, optional
        Upper bounds of sizes.

    Returns
    -------
    RawData
        Labels are in the order of the file's columns. ``X`` is CSR for sparse formats and sparse ARFF rows,
        else dense.

    Raises
    ------
    DatasetError
        One line that names the file and, for text, the line in it.

    Warns
    -----
    DatasetWarning
        A column was left out without a request: the index of a pandas data frame.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,happy,sad\n120,1,0\n60,0,1\n")
    >>> raw = read(path, label_columns=["happy", "sad"])
    >>> raw.X.tolist(), raw.Y.tolist()
    ([[120.0], [60.0]], [[1, 0], [0, 1]])
    """
    for name, value, kinds in (("text", text, Text), ("missing", missing, Missing)):
        _check_choice(name, value, get_args(kinds), path)
    options = LabelOptions(labels_xml, label_names, labels_first, labels_last, label_columns, label_prefix)
    content = read_content(
        path,
        options,
        TagOptions(tags, item, tag, separator, min_count),
        format=format,
        keys=keys,
        n_features=n_features,
        first_feature=first_feature,
        first_label=first_label,
        drop=drop,
        text=text if columns is None else "keep",
        missing_labels=missing_labels,
        encoding=encoding,
        header=header,
        decimal=decimal,
        on_bad_lines=on_bad_lines,
        limits=limits,
        text_columns=[name for name, kind in (columns or {}).items() if kind != "number"],
        further=FurtherTables(test, join, on, vectors),
        groups=groups,
    )
    return encode_content(content, text, missing, path, columns)


def encode_content(
    content: CodedTable | RawData, text: str, missing: str, path: PathLike, columns: Mapping[str, str] | None = None
) -> RawData:
    """Encode the result of :func:`read_content` as matrices, by the options of :func:`read`."""
    if columns is not None:
        if not isinstance(content, CodedTable):
            raise DatasetError("kinds of columns are those of CSV, TSV, JSON, Excel and Parquet", path)
        content, kinds, _ = embedded_table(content, columns, path)
        return content.kept(kinds_of_columns(content, kinds, path))
    if isinstance(content, CodedTable):
        content = (one_hot_text(content) if text == "one_hot" else content).encode()
    if content.missing_values and missing == "error":
        raise missing_error(content, path)
    return impute(content, path) if missing == "impute" else content


def read_content(
    path: PathLike,
    options: LabelOptions | None,
    of_tags: TagOptions = TagOptions(),  # noqa: B008 (it is frozen)
    *,
    format: str | None = None,
    keys: Mapping[str, str] | None = None,
    n_features: int | None = None,
    first_feature: int | None = None,
    first_label: int | None = None,
    drop: Sequence[str] | str | None = None,
    text: str = "error",
    missing_labels: str = "error",
    encoding: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    on_bad_lines: str | None = None,
    known: Collection[str] | None = None,
    limits: Limits | None = None,
    text_columns: Collection[str] = (),
    further: FurtherTables = FurtherTables(),  # noqa: B008 (it is frozen)
    groups: str | None = None,
) -> CodedTable | RawData:
    """Return the table of a file before encoding; for formats without named columns, the matrices.

    Parameters are those of :func:`read`; ``options`` None means that no column is a label, ``text`` may be "keep" (text
    columns are nominal, however many different values they have), and ``text_columns`` of a table are text whatever
    their values. ``known`` is that of `multilab.datasets.file_access.TextForm`.
    """
    _check_choice("missing_labels", missing_labels, get_args(MissingLabels), path)
    if further.given() or groups is not None:
        written = {"format": format, "encoding": encoding, "header": header, "decimal": decimal, "limits": limits}
        written["on_bad_lines"] = on_bad_lines
        return _read_together(
            path,
            options,
            of_tags,
            further,
            written,
            {*text_columns, *of_tags.columns, *filter(None, (further.on, groups))},
            text,
            groups=groups,
            drop=names_to_drop(drop),
            missing_labels=missing_labels == "keep",
            limits=limits,
        )
    if of_tags.given():
        if options is not None and options.given():
            raise DatasetError("labels are either columns or the tags of a column: give one of the two", path)
        table = read_content(
            path,
            None,
            format=format,
            drop=drop,
            text="keep",
            encoding=encoding,
            header=header,
            decimal=decimal,
            on_bad_lines=on_bad_lines,
            limits=limits,
            text_columns={*text_columns, *of_tags.columns},
        )
        if not isinstance(table, CodedTable) or (format or file_format(path)) == "arff":
            raise DatasetError("tags are read from CSV, TSV, JSON, Excel and Parquet", path)
        table = tagged(table, of_tags)
        if text == "error":
            refuse_text(table)
        return table
    kind = file_format(path) if format is None else format
    require_file(path)
    limits = limits or Limits()
    dropped = names_to_drop(drop)
    if kind not in ("arff", *TABLES):
        hint = ""
        if format is None and kind == "xc":
            hint = f"; a .txt file that is a table of named columns is read with {option('format', 'csv')}"
        _refuse_columns(options, dropped, kind, path, hint=hint)
    if text == "one_hot" and kind not in TABLES:
        raise DatasetError(f"the format '{kind}' has no option {option('text')}", path)
    for name, value, formats in (
        ("encoding", encoding, ("arff", "csv", "json", "svmlight", "xc")),
        ("header", header, ("csv",)),
        ("decimal", decimal, ("csv",)),
        ("on_bad_lines", on_bad_lines, ("csv",)),
    ):
        if value is not None and kind not in formats:
            raise DatasetError(f"the format '{kind}' has no option {option(name)}", path)
    for name, choice, choices in (
        ("encoding", encoding, ENCODINGS),
        ("decimal", decimal, get_args(Decimal)),
        ("on_bad_lines", on_bad_lines, get_args(BadLines)),
    ):
        if choice is not None:
            _check_choice(name, choice, choices, path)
    unobserved = missing_labels == "keep"
    if unobserved and kind not in ("arff", *TABLES):
        raise DatasetError(f"the format '{kind}' has no option {option('missing_labels')}", path)
    label_names = None if options is None else options.label_names
    if kind == "arff":
        return read_arff(path, options, limits, dropped, unobserved, encoding)
    if kind == "csv":
        form = TextForm(encoding, header, decimal, on_bad_lines, known)
        return read_csv(path, options, limits, dropped, text, unobserved, text_columns, form)
    if kind == "parquet":
        try:
            from multilab.datasets.parquet import read_parquet
        except ImportError:
            raise DatasetError(f"Parquet needs pyarrow: {pip_install('pyarrow')}", path) from None
        return read_parquet(path, options, limits, dropped, text, unobserved, text_columns)
    if kind == "json":
        return read_json(path, options, limits, dropped, text, unobserved, text_columns, encoding)
    if kind == "excel":
        return read_excel(path, options, limits, dropped, text, unobserved, text_columns, known)
    if kind == "mat":
        return read_matlab(path, keys, label_names, limits)
    if kind == "svmlight":
        return read_svmlight(path, label_names, n_features, first_feature, first_label, limits, encoding)
    if kind == "xc":
        return read_xc(path, label_names, limits, encoding)
    raise DatasetError(f"unknown format '{kind}', expected one of {', '.join(sorted(set(FORMATS.values())))}")


def _read_together(
    path: PathLike,
    options: LabelOptions | None,
    of_tags: TagOptions,
    further: FurtherTables,
    form: Mapping[str, Any],
    text_columns: Collection[str],
    text: str,
    **others: Any,
) -> CodedTable:
    """Return the table of several files, or one whose rows have groups, see :func:`read_content`."""
    kind, parts = form["format"] or file_format(path), list[CodedTable]()
    if kind not in TABLES:
        what = " and ".join(map(option, ("test", "join") if further.given() else ("groups",)))
        raise DatasetError(f"the format '{kind}' has no option {what}: CSV, JSON, Excel and Parquet have", path)
    if of_tags.given() and options is not None and options.given():
        raise DatasetError("labels are either columns or the tags of a column: give one of the two", path)

    def frame_of(file: PathLike) -> pd.DataFrame:
        alike = file in (path, further.test) or file_format(file) == kind
        part = read_content(file, None, text="keep", text_columns=text_columns, **(form if alike else {}))
        if not isinstance(part, CodedTable):
            raise DatasetError("not a table: CSV, JSON, Excel and Parquet are", file)
        parts.append(part)
        return part.frames()[0]

    first = frame_of(path)
    table = further.table(first, path, frame_of, options, of_tags, text_columns=text_columns, **others)
    names = {column.name for column in table.columns}
    table = replace(
        table,
        notes=(*dict.fromkeys(note for part in parts for note in part.notes), *table.notes),
        grouped=[name for part in parts for name in part.grouped if name in names],
    )
    if text == "error":
        refuse_text(table)
    return table


class RawTable(NamedTuple):
    """Features and labels of a file as data frames, with notes of the reader."""

    features: pd.DataFrame
    labels: pd.DataFrame
    notes: tuple[str, ...]


@name_memory_errors
def read_frames(
    path: PathLike, *, labelled: bool = True, text_columns: Collection[str] = (), **options: Any
) -> RawTable:
    r"""Read one data file as data frames, before encoding.

    :func:`multilab.datasets.read` encodes the same table: text becomes one-hot columns and missing values are imputed,
    as its options ``text`` and ``missing`` say. Here text and missing values stay as they are; digits with leading
    zeros in a CSV file are text.

    Parameters
    ----------
    path : path-like
        The file, in any format of :func:`multilab.datasets.read`.
    labelled : bool, default True
        False for rows without label columns: no option may then choose labels, and every column is a feature.
    text_columns : collection of str
        Names of columns of a table that are read as text whatever they hold. Otherwise a column is text if most of
        its different values are neither numbers nor ``true`` and ``false``, which may differ from file to file.
    **options
        Options of :func:`multilab.datasets.read` other than ``text`` and ``missing``.

    Returns
    -------
    features : DataFrame of shape (n, number of features before one-hot coding)
        In the order of the file. A numeric feature is float64, NaN where a value is missing (sparse for sparse rows);
        a text or nominal feature is categorical, and its categories are the values in the order of the one-hot
        columns, which are called ``name=value``. A nominal feature with the values 0 and 1 is numeric.
    labels : DataFrame of shape (n, q)
        0 and 1 as uint8; int8 with -1 where labels were not observed.
    notes : tuple of str
        Actions of the reader, such as columns left out.

    Raises
    ------
    DatasetError
        As :func:`multilab.datasets.read`, but neither for text nor for missing feature values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import read_frames
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,key,happy,sad\n120,C,1,0\n,D,0,1\n")
    >>> table = read_frames(path, labels_last=2)
    >>> table.features["tempo"].tolist(), table.features["key"].tolist(), list(table.labels)
    ([120.0, nan], ['C', 'D'], ['happy', 'sad'])
    """
    chosen = {name: options.pop(name) for name in LabelOptions.__dataclass_fields__ if name in options}
    content = read_content(
        path, LabelOptions(**chosen) if labelled else None, text="keep", text_columns=text_columns, **options
    )
    return as_frames(content)


def as_frames(content: CodedTable | RawData) -> RawTable:
    """Convert the result of `multilab.datasets.reading.read_content` to data frames."""
    if isinstance(content, CodedTable):
        return RawTable(*content.frames(), tuple(content.notes))
    return RawTable(*_frames(content), content.notes)


def _frames(raw: RawData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the matrices of a format without named columns as data frames."""
    features, labels = (
        pd.DataFrame.sparse.from_spmatrix(matrix, columns=names)
        if sp.issparse(matrix)
        else pd.DataFrame(np.asarray(matrix), columns=names)
        for matrix, names in ((raw.X, raw.feature_names), (raw.Y, raw.label_names))
    )
    return features, labels


def _check_choice(name: str, value: str, allowed: Sequence[str], path: PathLike) -> None:
    if value not in allowed:
        raise DatasetError(f"{option(name)} must be one of {', '.join(allowed)}, not {value!r}", path)


def file_format(path: PathLike) -> str:
    """Return the format of a file by its extension; of a ``.txt`` file and of an unknown extension by the content.

    A ``.txt`` file may be svmlight, or a table whose names have tabs. With an unknown extension it is a Parquet, Excel,
    ARFF or JSON file, or a table whose first lines have equally many commas, semicolons or tabs.
    """
    if plain_name(path)[1] not in FORMATS:
        return _format_of_content(read_head(path)) or find_format(path)
    kind = find_format(path)
    if kind != "xc":
        return kind
    head = read_head(path).removeprefix(b"\xef\xbb\xbf").decode("latin-1")  # it may end within a character
    lines = (line.partition("#")[0].split() for line in head.splitlines())
    first = next(filter(None, lines), [])
    sizes = len(first) == 3 and all(token.isdigit() for token in first)  # of an xc file
    names = "\t" in head.partition("\n")[0] and not sizes and not any(map(_ENTRY.fullmatch, first))
    if names or head.startswith(("\xff\xfe", "\xfe\xff")):  # the beginning of UTF-16
        return "csv"
    return "svmlight" if any(":" in token for token in first) else "xc"


def _format_of_content(head: bytes) -> str | None:
    """Return the format of a file that begins with some bytes, None if it is not evident."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK") and b"xl/" in head:
        return "excel"
    utf_16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = head[: len(head) // 2 * 2].decode("utf-16", "replace") if utf_16 else head.decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines()[: _SNIFFED + 1] if line.strip()]
    if "\0" in text or len(lines) < 2:
        return None
    if text.lstrip()[0] in "[{":
        return "json"
    if any(line.lower().startswith("@relation") for line in lines):
        return "arff"
    delimiter = delimiter_of(lines[0])
    fields = {len(row) for row in csv.reader(lines[:-1], delimiter=delimiter)}  # the last line may be cut off
    return "csv" if len(fields) == 1 and fields != {1} else None


def _refuse_columns(
    options: LabelOptions | None, drop: Sequence[str], kind: str, path: PathLike, hint: str = ""
) -> None:
    given = [
        name for name, value in vars(options or LabelOptions()).items() if value is not None and name != "label_names"
    ]
    given += ["drop"] if drop else []
    if given:
        raise DatasetError(f"the format '{kind}' has no option {', '.join(map(option, given))}{hint}", path)


def check(path: PathLike, **options: Any) -> dict[str, Any]:
    r"""Return the characteristics of a file, and reasons to refuse it.

    Parameters
    ----------
    path : path-like
        The file. For an ARFF file without label options, ``<stem>.xml`` next to it (or the one without ``-train`` or
        ``-test``) names the labels, if it exists.
    **options
        As for :func:`read`; missing feature values are counted, not refused, unless ``missing`` says "impute".

    Returns
    -------
    dict
        ``path``, ``format``, ``bytes`` and ``sha256`` of the decompressed content, the entries of
        :func:`multilab.datasets.characteristics.describe`, ``label_names``, and ``refused``: why :func:`read` refuses
        the file with the same options, or None.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from multilab.datasets import check
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "songs.csv"
    >>> _ = path.write_text("tempo,happy,sad\n120,1,0\n,0,1\n")
    >>> result = check(path, labels_last=2)
    >>> result["instances"], result["missing_values"], result["refused"][:32]
    (2, 1, '1 feature values are missing, th')
    """
    options = {name: value for name, value in options.items() if value is not None}
    kind = options.get("format") or file_format(path)
    if not set(LabelOptions.__dataclass_fields__) & set(options) and (xml := labels_xml_of(path, kind)):
        options["labels_xml"] = xml
    missing = options.pop("missing", "error")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)  # it is among the notes
        raw = read(path, **options, missing="keep" if missing == "error" else missing)
    with options_spelled_by(as_argument):  # the result is data: the same whichever front end asks
        refused = missing_error(raw, path).reason if raw.missing_values and missing == "error" else None
    content = read_bytes(path)
    return {
        "path": os.fspath(path),
        "format": kind,
        "bytes": len(content),
        "sha256": sha256_digest(content),
        **describe(raw),
        "label_names": raw.label_names,
        "refused": refused,
    }


def labels_xml_of(path: PathLike, format: str | None = None) -> Path | None:
    """Return the XML file next to an ARFF file that names its labels, if there is one."""
    if (format or file_format(path)) != "arff":
        return None
    stem = plain_name(path)[0]
    stems = (stem, stem.removesuffix("-train").removesuffix("-test"))
    return next((xml for xml in (Path(path).with_name(s + ".xml") for s in stems) if xml.is_file()), None)
