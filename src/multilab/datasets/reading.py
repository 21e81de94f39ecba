"""One reader for all file formats: finds the format, passes the options on, checks the result."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import option, pip_install
from multilab.datasets.arff import read_arff
from multilab.datasets.csv_files import delimiter_of, read_csv
from multilab.datasets.documents import read_excel, read_json
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, name_memory_errors, plain_name, read_head, require_file
from multilab.datasets.frames import Rows
from multilab.datasets.joining import joined_rows
from multilab.datasets.labels import read_names
from multilab.datasets.matlab import read_matlab
from multilab.datasets.options import FORMATS, TABLES, Reading, check_format
from multilab.datasets.raw_data import RawData
from multilab.datasets.sparse import read_svmlight, read_xc
from multilab.datasets.tables import table_of, with_kinds

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
        If there is no such file, or its extension is unknown.
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
def read_content(path: PathLike, reading: Reading, limits: Limits | None = None) -> RawData:
    """Return the content of a data file as a card says.

    Parameters
    ----------
    path : path-like
        The file, plain or compressed by gzip, bzip2 or xz.
    reading : Reading
        Options of the card. ``columns`` must have the kind of every feature column of a table; without ``columns``,
        kinds are recognised, and an ARFF file is a matrix.
    limits : Limits, optional
        Upper bounds of sizes.

    Raises
    ------
    DatasetError
        If the file cannot be read, or a matrix has missing values. The message names the file and, for text, the line
        in it.
    """
    raw = raw_content(path, reading, limits, encode=reading.columns is None)
    if isinstance(raw.X, pd.DataFrame):
        return with_kinds(raw, reading.columns or {}, path, complete=reading.columns is not None)
    if raw.missing_values:
        raise missing_error(raw, path)
    return raw


@name_memory_errors
def raw_content(path: PathLike, reading: Reading, limits: Limits | None = None, *, encode: bool = False) -> RawData:
    """Return the content of a data file: of a table the data frame, before the kinds of its columns are chosen.

    With ``encode`` an ARFF file is a matrix. Otherwise it is a table if kinds of its columns are given, or there is
    something to learn from training rows: it is dense, and has nominal attributes or missing values.
    """
    limits, kind = limits or Limits(), reading.format or file_format(path)
    require_file(path)
    hint = ""
    if reading.format is None and kind == "xc":
        hint = f"; a .txt file that is a table of named columns is read with {option('format', 'csv')}"
    check_format(reading, kind, path, hint)
    if kind == "arff":
        table = read_arff(path, reading, limits)
        return table.table() if not encode and (table.is_table or reading.columns) else table.encode()
    if kind in TABLES:
        rows, train_rows = _all_rows(path, reading, limits)
        return table_of(rows, reading, path, limits, train_rows)
    names = None if reading.label_names is None else list(read_names(reading.label_names, path)[1])
    if kind == "mat":
        return read_matlab(path, reading.keys, names, limits)
    if kind == "svmlight":
        places = reading.n_features, reading.first_feature, reading.first_label
        return read_svmlight(path, names, *places, limits, reading.encoding)
    return read_xc(path, names, limits, reading.encoding)


@name_memory_errors
def read_rows(
    path: PathLike,
    reading: Reading,
    known: Collection[str] | None = None,
) -> Rows:
    """Return the rows of a table or an ARFF file with all columns, labels among them.

    Parameters
    ----------
    path : path-like
    reading : Reading
        Its options about labels do not count.
    known : collection of str, optional
        Names of all columns in training, see :func:`multilab.datasets.csv_files.read_csv`.
    """
    kind = reading.format or file_format(path)
    require_file(path)
    if kind == "arff":
        return Rows(read_arff(path, reading, Limits(), labelled=False).table().X)
    if kind not in TABLES:
        raw = raw_content(path, reading)
        names = [*raw.feature_names, *raw.label_names]
        return Rows(pd.DataFrame(np.hstack([_dense(raw.X), _dense(raw.Y)]).astype(np.float64), columns=names))
    return _rows(path, kind, reading, Limits(), known)


def _all_rows(path: PathLike, reading: Reading, limits: Limits) -> tuple[Rows, int | None]:
    """Return the rows of a table, of several files if the options say so, and the number of training rows."""
    kind = reading.format or file_format(path)
    if not reading.given(("test", "join", "vectors")):
        return _rows(path, kind, reading, limits), None
    whole = reading.without("drop")

    def rows_of(file: PathLike) -> Rows:
        other = file_format(file)
        alike = file == reading.test or other == kind
        if not alike and other not in TABLES:
            raise DatasetError("not a table: CSV, JSON, Excel, Parquet and Feather are", file)
        form = whole if alike else whole.without("encoding", "header", "decimal", "on_bad_lines", "format")
        return _rows(file, kind if alike else other, form, limits)

    return joined_rows(_rows(path, kind, whole, limits), reading, path, rows_of, limits)


def _rows(path: PathLike, kind: str, reading: Reading, limits: Limits, known: Collection[str] | None = None) -> Rows:
    """Return the rows of a table in one file."""
    text_columns = reading.text_columns
    if kind == "csv":
        return read_csv(path, reading, limits, text_columns, known)
    if kind == "json":
        return read_json(path, reading, limits, text_columns)
    if kind == "excel":
        return read_excel(path, reading, limits, text_columns, known)
    try:
        from multilab.datasets.parquet import read_parquet
    except ImportError:
        raise DatasetError(f"{kind.capitalize()} needs pyarrow: {pip_install('pyarrow')}", path) from None
    return read_parquet(path, reading, limits, text_columns, kind)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def missing_error(raw: RawData, path: PathLike) -> DatasetError:
    """Return the error with the number of missing feature values, the first of them, and what to do."""
    X = raw.X.tocoo() if sp.issparse(raw.X) else raw.X
    if sp.issparse(X):
        entries = np.flatnonzero(np.isnan(X.data))
        first = entries[np.lexsort((X.col[entries], X.row[entries]))[0]]
        row, j = int(X.row[first]), int(X.col[first])
    else:
        row, j = (int(k) for k in np.argwhere(np.isnan(X))[0])
    name = next((one for one, start, stop in raw.nominal if start <= j < stop), raw.feature_names[j])
    return DatasetError(
        f"{raw.missing_values} feature values are missing, the first in row {row + 1}, feature '{name[:60]}', but a "
        f"matrix can have none; fill them in, or leave the feature out ({option('drop')})",
        path,
    )


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
    if head.startswith(b"ARROW1"):
        return "feather"
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


def labels_xml_of(path: PathLike, format: str | None = None) -> Path | None:
    """Return the XML file next to an ARFF file that names its labels, if there is one."""
    if (format or file_format(path)) != "arff":
        return None
    stem = plain_name(path)[0]
    stems = (stem, stem.removesuffix("-train").removesuffix("-test"))
    return next((xml for xml in (Path(path).with_name(s + ".xml") for s in stems) if xml.is_file()), None)
