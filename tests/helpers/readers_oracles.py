"""Values of data files as other libraries read them, to compare with those of the readers.

A file that the other library cannot read is not compared, with two exceptions: text that is no CSV to the strict form
of the csv module, or whose records have different numbers of fields, must not have been read at all.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

Table = tuple[list[str], list[list[Any]]]
"""Names of the columns, and the cells of each row."""

MISSING = {"", "?", "na", "nan", "null", "n/a", "#n/a", "<na>"}
TRUTH = {"true": 1.0, "false": 0.0}
INDEX = "__index_level_"
NEARLY_EMPTY = 20  # a column at the end without a name may be left out if one of so many cells is filled


class Unreadable(Exception):
    """The other library cannot read the file."""


class Malformed(Exception):
    """Nobody should read the file."""


def unpacked(path: str) -> bytes:
    """Return the content of a file without its compression."""
    content = Path(path).read_bytes()
    for start, module in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\x00", lzma)):
        if content.startswith(start):
            return module.decompress(content)
    return content


def text_of(path: str, encoding: str = "utf-8-sig") -> str:
    """Return a file whose encoding is beyond doubt, with one form of line ends."""
    content = unpacked(path)
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else encoding
    try:
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable from error


# ---- tables ----


def csv_tables(path: str, header: bool = True, encoding: str = "utf-8-sig", skip: bool = False) -> list[Table]:
    """Return the tables that the csv module reads with each delimiter; ``skip`` leaves out records that do not fit."""
    tables, text = [], text_of(path, encoding)
    if skip and '"' in text:  # more may be left out, so that no fragment is taken for a record
        raise Unreadable
    for delimiter in ",;\t":
        try:
            records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        width = len(records[0]) if records else 0
        names = [name.strip() for name in records[0]] if header and width else [f"c{j + 1}" for j in range(width)]
        rows = [row for row in records[header:] if row and not (len(row) == 1 < width and not row[0].strip())]
        fitting = [row for row in rows if len(row) == width]
        if skip or len(fitting) == len(rows):
            tables.append((names, fitting))
    if not tables:
        raise Malformed("read, but it is no CSV with any delimiter")
    return tables


def json_tables(path: str) -> list[Table]:
    text = text_of(path)
    lines = [text] if text.lstrip().startswith("[") else [line for line in text.split("\n") if line.strip()]
    values = [json.loads(line, object_pairs_hook=list) for line in lines]
    rows = values[0] if text.lstrip().startswith("[") else values
    for row in rows:
        if len(dict(row)) < len(row):
            raise Malformed("read, but a name occurs twice in an object")
    names = list(dict.fromkeys(name for row in rows for name, _ in row))
    return [([name.strip() for name in names], [[dict(row).get(name) for name in names] for row in rows])]


def excel_tables(path: str) -> list[Table]:
    from openpyxl import load_workbook

    sheet = load_workbook(io.BytesIO(unpacked(path)), data_only=True).worksheets[0]
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    while all(row[-1] is None for row in rows):
        rows = [row[:-1] for row in rows]
    return [(["" if name is None else str(name).strip() for name in rows[0]], rows[1:])]


def arrow_tables(path: str) -> list[Table]:
    from pyarrow import feather, parquet

    content = io.BytesIO(unpacked(path))
    table = parquet.read_table(content) if ".parquet" in path else feather.read_table(content)
    names, columns = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = column.to_pylist()
        if cells and isinstance(next((cell for cell in cells if cell), None), list) and name == "place":
            width = max(len(cell) for cell in cells if cell is not None)
            names += [f"{name}[{k}]" for k in range(width)]
            columns += [[cell[k] if cell else None for cell in cells] for k in range(width)]
        else:
            names.append(name.strip())
            columns.append(cells)
    return [(names, [list(row) for row in zip(*columns, strict=True)])]


QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(
    rf"@attribute\s+({QUOTED}|[^\s'\"{{}}%]+)\s+(?:{{(.*)}}|(?:numeric|real|integer)(?:\s*\[.*\])?)", re.I
)


def arff_tables(path: str) -> list[Table]:
    """Return the table of an ARFF file without anything unusual."""
    head, mark, body = text_of(path).partition("\n@data\n")
    if not mark:
        raise Unreadable
    attributes = []
    for line in head.split("\n"):
        if line and line.partition(" ")[0].lower() != "@relation" and not line.startswith("%"):
            match = ATTRIBUTE.fullmatch(line.partition(" %")[0])
            if match is None:
                raise Unreadable
            attributes.append(match)
    names = [_unquoted(match[1]) for match in attributes]
    first = [0.0 if match[2] is None else _fields(match[2])[0] for match in attributes]
    rows = []
    for line in body.split("\n"):
        if not line or line.startswith("%"):
            continue
        if not line.startswith("{"):
            rows.append(_fields(line))
            continue
        row = list(first)
        for entry in filter(None, line[1:-1].split(",")):
            index, value = entry.split(" ")
            row[int(index)] = value
        rows.append(row)
    return [(names, rows)]


def _fields(line: str) -> list[str]:
    if '"' in line:
        raise Unreadable
    return [field.rstrip() for field in next(csv.reader([line], quotechar="'", skipinitialspace=True, strict=True))]


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name


def same(ours: Any, cell: Any, comma: bool = False) -> bool:
    """Return whether a cell of a frame, a number or a text or NaN, has the value of the other library."""
    absent = ours is None or (isinstance(ours, float) and ours != ours)
    if cell is None or (isinstance(cell, float) and cell != cell):
        return absent
    if isinstance(cell, str) and cell.strip().lower() in MISSING:
        return absent
    if absent:
        return False
    if isinstance(ours, str):
        forms = {str(cell).strip()}
        forms |= {str(int(cell))} if isinstance(cell, float) and cell.is_integer() else set()
        forms |= {json.dumps(cell, ensure_ascii=False)} if isinstance(cell, list) else set()
        forms |= {f"{cell:%Y-%m-%d}"} if hasattr(cell, "strftime") and not str(cell)[10:].strip(" 0:") else set()
        return ours in forms
    if isinstance(cell, str):
        cell = TRUTH.get(cell.strip().lower(), cell.strip())
        if comma and isinstance(cell, str) and re.fullmatch(r"[-+]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?", cell):
            cell = cell.replace(".", "").replace(",", ".")
    try:
        return float(cell) == ours
    except (ValueError, TypeError, OverflowError):
        return False


def differs(frame: Any, table: Table, comma: bool = False) -> str:
    """Return what a frame has that differs from a table of another library, or nothing."""
    names, rows = list(table[0]), table[1]
    if len(frame) != len(rows):
        return f"{len(frame)} rows, expected {len(rows)}"
    last = max((j for j, name in enumerate(names) if name), default=-1)
    left_out = {j for j, name in enumerate(names) if name.startswith(INDEX)}
    left_out |= {0} if len(names) > 1 and not names[0] else set()
    for j in range(last + 1, len(names)):
        names[j] = f"c{j + 1}"
        filled = sum(row[j] is not None and bool(str(row[j]).strip()) for row in rows)
        if names[j] not in frame and filled * NEARLY_EMPTY <= len(rows):
            left_out.add(j)
    kept = [j for j in range(len(names)) if j not in left_out]
    if list(frame) != [names[j] for j in kept]:
        return f"columns {list(frame)}, expected {[names[j] for j in kept]}"
    for j in kept:
        for i, (ours, row) in enumerate(zip(frame[names[j]].tolist(), rows, strict=True)):
            if not same(ours, row[j], comma):
                return f"column {names[j]!r}, row {i + 1}: {ours!r}, expected {row[j]!r}"
    return ""


# ---- matrices ----


def svmlight_matrices(path: str) -> tuple[Any, list[set[int]]]:
    lines = text_of(path).split("\n")
    return _sparse_rows([line for line in lines if line.partition("#")[0].strip()], "auto")


def xc_matrices(path: str) -> tuple[Any, list[set[int]]]:
    head, *lines = text_of(path).split("\n")
    rows, features, _ = map(int, head.split())
    X, labels = _sparse_rows(lines[:rows], True)
    X.resize(rows, features)
    return X, labels


def _sparse_rows(lines: Sequence[str], zero_based: Any) -> tuple[Any, list[set[int]]]:
    from sklearn.datasets import load_svmlight_file

    none = 999_999_999  # scikit-learn takes no row without a label
    unlabelled = [not line[:1].strip() or ":" in line.split()[0] for line in lines]
    lines = [f"{none} {line}" if without else line for line, without in zip(lines, unlabelled, strict=True)]
    try:
        X, labels = load_svmlight_file(io.BytesIO("\n".join(lines).encode()), multilabel=True, zero_based=zero_based)
    except ValueError as error:  # such as indices that are not in ascending order
        raise Unreadable from error
    return X, [{int(label) for label in row} - {none} for row in labels]


def matlab_matrices(path: str) -> tuple[Any, list[set[int]]]:
    from scipy.io import loadmat

    content = loadmat(io.BytesIO(unpacked(path)))
    X, Y = content["data"], content["target"]
    X, Y = X if sp.issparse(X) else sp.csr_array(X), Y.toarray() if sp.issparse(Y) else Y
    Y = Y if Y.shape[0] == X.shape[0] else Y.T
    return X, [set((np.flatnonzero(row == 1) + 1).tolist()) for row in Y]


def differ(data: Any, matrices: tuple[Any, list[set[int]]]) -> str:
    """Return what a data set has that differs from matrices of another library, or nothing."""
    X, labels = matrices
    ours = data.X if sp.issparse(data.X) else sp.csr_array(data.X)
    if ours.shape != X.shape or not np.array_equal(ours.toarray(), X.toarray()):
        return f"features {ours.toarray().tolist()}, expected {X.toarray().tolist()}"[:300]
    names = [int(name.removeprefix("label")) for name in data.label_names]
    Y = data.Y.toarray() if sp.issparse(data.Y) else data.Y
    found = [{names[k] for k in np.flatnonzero(row)} for row in Y]
    return "" if found == labels else f"labels {found}, expected {labels}"[:300]


def label_names(path: str) -> list[str]:
    """Return the names of labels in Mulan's XML."""
    return [
        one.attrib["name"].strip() for one in ElementTree.fromstring(unpacked(path)).iter() if one.tag.endswith("label")
    ]


TABLES: dict[str, Callable[[str], list[Table]]] = {
    "arff": arff_tables,
    "csv": csv_tables,
    "json": json_tables,
    "excel": excel_tables,
    "parquet": arrow_tables,
    "feather": arrow_tables,
}
MATRICES: dict[str, Callable[[str], tuple[Any, list[set[int]]]]] = {
    "svmlight": svmlight_matrices,
    "xc": xc_matrices,
    "mat": matlab_matrices,
}


def other_values(path: str, options: dict[str, Any]) -> str | None:
    """Return how the content of a file that was read differs from what another library reads.

    Nothing if it does not, and None if that library cannot read the file, or reads it otherwise by request.
    """
    from multilab.datasets import read
    from multilab.datasets.options import reading_of
    from multilab.datasets.reading import file_format, read_rows

    options = {name: value for name, value in options.items() if name != "plan"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "labels_xml" in options:
                names = label_names(options["labels_xml"])
                found = read(path, **options).label_names
                return "" if set(found) == set(names) else f"labels {found}, expected {names}"
            kind = file_format(path)
            if kind in MATRICES:
                return differ(read(path, **options), MATRICES[kind](path))
            frame, comma = read_rows(path, reading_of(options, path)).frame, options.get("decimal") == ","
            if kind != "csv":
                tables = TABLES[kind](path)
            else:
                form = options.get("header", True), options.get("encoding", "utf-8-sig"), "on_bad_lines" in options
                tables = csv_tables(path, *form)
            found = [differs(frame, table, comma) for table in tables]
            return min(found, key=lambda text: (text != "", "columns" in text))
    except Malformed as error:
        return str(error)
    except Exception:  # whatever the other library raises for what it cannot read
        return None
