"""ARFF files of Mulan (labels named by an XML file) and MEKA (``-C n`` in the relation name)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import option
from multilab.datasets.arff_numbers import dense_numbers, sparse_numbers
from multilab.datasets.columns import TableColumn, dropped_note, positions_left, to_number
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, encoding_note, read_bytes, require_cells
from multilab.datasets.labels import choose_labels, missing_label_hint
from multilab.datasets.nominal import CodedTable
from multilab.datasets.options import LABELS, Reading

# Possessive quantifiers (*+): a hostile line cannot make the expressions backtrack.
QUOTED = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
_NAME = re.compile(rf"(?P<name>{QUOTED}|[^\s{{}}'\"][^\s{{}}]*+)\s*+(?P<kind>.*)$")
_VALUE = re.compile(rf"\s*+(?P<value>{QUOTED}|[^,{{}}'\"][^,{{}}]*+)\s*+(?P<end>[,}}])")
_NUMERIC = re.compile(r"(numeric|real|integer)\b\s*+(\[[^\]]*+\]\s*+)?(%.*)?$", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_MEKA_LABELS = re.compile(r"(?:^|[\s:])-C\s+(-?\d{1,9})(?!\d)")


@dataclass(frozen=True)
class Header:
    """Relation and attributes before the data.

    Attributes
    ----------
    relation : str
        The unquoted relation name.
    columns : list of TableColumn
        The attributes in the order of the file.
    rest : str
        The text after the ``@data`` line.
    first_line : int
        Line number of the first line of ``rest``.
    """

    relation: str
    columns: list[TableColumn]
    rest: str
    first_line: int

    @property
    def meka_labels(self) -> int | None:
        """The n of ``-C n`` in the relation name: the first n columns are labels, or the last -n."""
        match = _MEKA_LABELS.search(self.relation)
        return int(match[1]) if match else None


def unquote(text: str) -> str:
    r"""Return a name or value without its quotes and escapes (``'Swainson\'s'`` gives ``Swainson's``).

    ``\n``, ``\r``, ``\t`` and ``\uXXXX`` are the characters that they name; any other escaped character is
    itself. A text that does not begin with a quote is returned as it is.
    """
    if text[:1] not in ("'", '"'):
        return text
    inner = text[1:-1]
    return _ESCAPE.sub(_escaped, inner) if "\\" in inner else inner


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROLS.get(code, code)


def parse_header(text: str, path: PathLike, limits: Limits, drop: Sequence[str] = ()) -> Header:
    r"""Read an ARFF header.

    Parameters
    ----------
    text : str
        The full file, line ends ``\n``.
    path : path-like
        For error messages.
    limits : Limits
        ``max_columns`` bounds the number of attributes.
    drop : sequence of str
        Names of attributes that are left out and may have any type; they are declared as numeric.

    Raises
    ------
    DatasetError
        If a declaration cannot be read, an attribute is declared twice or is neither numeric nor nominal, or there is
        no ``@data``. The message has the line.
    """
    relation, columns, seen, left_out = "", [], dict[str, int](), frozenset(drop)
    start, line = 0, 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line, content, start = line + 1, text[start:end].strip(), end + 1
        if not content or content[0] == "%":
            continue
        keyword, _, rest = content.replace("\t", " ", 1).partition(" ") if content[0] == "@" else ("", "", "")
        match keyword.lower():
            case "@relation":
                relation = _relation(rest.strip())
            case "@attribute":
                column = _attribute(rest.strip(), path, line, left_out)
                if column.name in seen:
                    first = seen[column.name]
                    raise DatasetError(f"attribute '{column.name[:60]}' was declared on line {first}", path, line)
                seen[column.name] = line
                columns.append(column)
                if len(columns) > limits.max_columns:
                    raise DatasetError(f"more than the limit of {limits.max_columns} attributes", path, line)
            case "@data":
                if not columns:
                    raise DatasetError("@data before any @attribute", path, line)
                return Header(relation, columns, text[start:], line + 1)
            case _:
                raise DatasetError(f"expected @relation, @attribute or @data, found '{content[:40]}'", path, line)
    raise DatasetError("the file ends before @data", path, max(line, 1))


def _relation(text: str) -> str:
    quoted = re.match(QUOTED, text)
    return unquote(quoted[0]) if quoted else text.partition("%")[0].strip()


def _attribute(text: str, path: PathLike, line: int, drop: Collection[str]) -> TableColumn:
    match = _NAME.match(text)
    if match is None or not match["kind"]:
        raise DatasetError(f"cannot read the attribute declaration '{text[:60]}'", path, line)
    name, kind = unquote(match["name"]), match["kind"]
    if name in drop:
        return TableColumn(name, None, line)
    if kind[0] == "{":
        return TableColumn(name, _nominal_values(name, kind, path, line), line)
    if _NUMERIC.match(kind):
        return TableColumn(name, None, line)
    word = kind.split()[0]
    raise DatasetError(
        f"attribute '{name[:60]}' is of type '{word[:40]}'; only numeric and nominal attributes can be used; "
        f"leave it out ({option('drop')})",
        path,
        line,
    )


def _nominal_values(name: str, kind: str, path: PathLike, line: int) -> tuple[str, ...]:
    values: dict[str, None] = {}
    position, last = 1, ","
    while last == ",":
        match = _VALUE.match(kind, position)
        value = unquote(match["value"].rstrip()) if match else ""
        if match is None or (not value and match["value"][0] not in "'\""):
            raise DatasetError(f"cannot read the values of nominal attribute '{name[:60]}'", path, line)
        if value in values:
            raise DatasetError(f"nominal attribute '{name[:60]}' lists the value '{value[:40]}' twice", path, line)
        values[value] = None
        position, last = match.end(), match["end"]
    after = kind[position:].strip()
    if after and after[0] != "%":
        raise DatasetError(f"unexpected '{after[:40]}' after the values of '{name[:60]}'", path, line)
    return tuple(values)


_NOT_A_NUMBER = frozenset({"nan", "null"})  # what other programs write for a missing number
_FIELD = re.compile(rf"\s*+(?P<value>{QUOTED}|(?:[^,'\"%][^,%]*+)?)\s*+(?P<end>,|%.*+$|$)", re.DOTALL)
_ENTRY = re.compile(rf"\s*+(?P<index>\d++)\s++(?P<value>{QUOTED}|[^,}}\s'\"][^,}}\s]*+)\s*+(?P<end>[,}}])")


class _Values:
    """Converter of the text of one column's values to numbers or codes."""

    def __init__(self, column: TableColumn, is_label: bool, missing_labels: bool = False):
        self.column = column
        self.is_label = is_label
        self.required = is_label and not missing_labels
        self.codes = {v: float(k) for k, v in enumerate(column.values or ())}
        self.by_number = {x: float(k) for k, x in enumerate(column.numbers or ())}
        self.known: dict[str, float] = {}  # values converted before: labels and counts repeat

    def __call__(self, text: str) -> float:
        value = self.known.get(text)
        if value is None:
            value = self._convert(text)
            if len(self.known) < 64:
                self.known[text] = value
        return value

    def _convert(self, text: str) -> float:
        name = self.column.name
        if text == "?":
            return self._missing()
        plain = unquote(text)
        if self.column.values is not None:
            code = self.codes.get(plain)
            code = self.by_number.get(to_number(plain)) if code is None else code
            if code is None:
                raise ValueError(f"'{plain[:40]}' is not a value of nominal attribute '{name[:60]}'")
            return code
        number = to_number(plain)
        if math.isnan(number):
            if plain.lower() in _NOT_A_NUMBER:
                return self._missing()
            raise ValueError(f"'{plain[:40]}' of attribute '{name[:60]}' is not a finite number")
        if self.is_label and number not in (0.0, 1.0):
            raise ValueError(f"non-binary label: '{name[:60]}' is {plain[:40]}, expected 0 or 1")
        return number

    def _missing(self) -> float:
        if self.required:
            raise ValueError(f"label '{self.column.name[:60]}' is missing{missing_label_hint()}")
        return math.nan


def _ignored(_: str) -> float:
    return 0.0


def parse_rows(
    body: str,
    first_line: int,
    columns: Sequence[TableColumn],
    labels: np.ndarray,
    path: PathLike,
    limits: Limits,
    drop: Sequence[str] = (),
    missing_labels: bool = False,
) -> np.ndarray | sp.csr_array:
    """Read the rows after ``@data``, dense or sparse like the first row.

    Parameters
    ----------
    body : str
        The text after the ``@data`` line.
    first_line : int
        Line number of its first line.
    columns : sequence of TableColumn
        The attributes.
    labels : ndarray of int
        Positions of the labels, whose values must be 0 or 1.
    path, limits
        For error messages; ``max_cells`` bounds a dense table.
    drop : sequence of str
        Names of columns whose values are ignored; they are 0 in the table.
    missing_labels : bool
        Whether labels may be missing; they are NaN in the table.

    Returns
    -------
    ndarray or CSR of shape (n, m)
        Numbers, the positions of nominal values, NaN for missing values. An entry that a sparse row
        leaves out is 0: the number 0 or the first declared value, as ARFF defines it.

    Raises
    ------
    DatasetError
        If a row is truncated, has a wrong number of fields or an index that is repeated or out of range; if a value is
        unknown, is not a finite number or not a label; if dense and sparse rows are mixed; or if there is no row. The
        message has the line.
    """
    is_label = np.zeros(len(columns), dtype=bool)
    is_label[labels] = True
    left_out = set(drop)
    readers: list[Callable[[str], float]] = [
        _ignored if column.name in left_out else _Values(column, bool(mark), missing_labels)
        for column, mark in zip(columns, is_label, strict=True)
    ]
    rows = _rows(body, first_line)
    first = next(rows, None)
    if first is None:
        raise DatasetError("no row follows @data", path, first_line - 1)
    sparse = first[1][0] == "{"
    indices, values, pointers = list[int](), list[float](), [0]
    for line, text in chain([first], rows):
        try:
            if (text[0] == "{") != sparse:
                raise ValueError("dense and sparse rows are mixed")
            if sparse:
                _sparse_row(text, readers, indices, values)
                pointers.append(len(values))
            else:
                values += _dense_row(text, readers)
        except ValueError as error:
            raise DatasetError(str(error), path, line) from None
    if sparse:
        shape = (len(pointers) - 1, len(columns))
        table = sp.csr_array((np.array(values, dtype=float), np.array(indices, np.int64), pointers), shape=shape)
        table.sort_indices()
        return table
    require_cells(len(values) // len(columns), len(columns), "the table", path, limits)
    return np.array(values).reshape(-1, len(columns))


def _rows(body: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line that is neither blank nor a comment."""
    start, line = 0, first_line
    while start < len(body):
        end = body.find("\n", start)
        end = len(body) if end < 0 else end
        text = body[start:end].strip()
        if text and text[0] != "%":
            yield line, text
        start, line = end + 1, line + 1


def _dense_row(text: str, readers: Sequence[Callable[[str], float]]) -> list[float]:
    fields = _fields(text)
    if len(fields) != len(readers):
        raise ValueError(f"{len(fields)} fields, expected {len(readers)}")
    return [reader(field) for reader, field in zip(readers, fields, strict=True)]


def _fields(text: str) -> list[str]:
    if "'" not in text and '"' not in text and "%" not in text:
        return [field.strip() for field in text.split(",")]
    fields, position, last = [], 0, ","
    while last == ",":
        match = _FIELD.match(text, position)
        if match is None:
            raise ValueError(f"cannot read the row from '{text[position : position + 40]}'")
        fields.append(match["value"].strip())
        position, last = match.end(), match["end"]
    return fields


def _sparse_row(text: str, readers: Sequence[Callable[[str], float]], indices: list[int], values: list[float]) -> None:
    """Append the entries of ``{index value, ...}`` to ``indices`` and ``values``."""
    inner = text[1:].lstrip()
    seen: set[int] = set()
    position, last = 0, ","
    if inner[:1] == "}":
        position, last = 1, "}"
    while last == ",":
        match = _ENTRY.match(inner, position)
        if match is None:
            if "}" not in inner[position:]:
                raise ValueError("the sparse row is truncated: no closing brace")
            raise ValueError(f"cannot read the sparse row from '{inner[position : position + 40].strip()}'")
        # Over 10 digits is out of range anyway; Python's int() refuses thousands of them.
        index = int(match["index"]) if len(match["index"]) < 11 else len(readers)
        if index >= len(readers):
            raise ValueError(f"index {match['index'][:20]}, but the last attribute has the index {len(readers) - 1}")
        if index in seen:
            raise ValueError(f"index {index} is given twice")
        seen.add(index)
        indices.append(index)
        values.append(readers[index](match["value"]))
        position, last = match.end(), match["end"]
    after = inner[position:].strip()
    if after and after[0] != "%":
        raise ValueError(f"unexpected '{after[:40]}' after the row")


def read_arff(path: PathLike, reading: Reading, limits: Limits, labelled: bool = True) -> CodedTable:
    """Read an ARFF file, dense or sparse, compressed or not.

    Parameters
    ----------
    path : path-like
        The file.
    reading : Reading
        Which attributes are the labels. Without such an option, ``-C n`` in the relation name decides: the first n
        attributes are labels, or the last n for ``-C -n``. With an option, ``-C`` is ignored, because filters leave
        wrong ones. Attributes that are left out may have any type.
    limits : Limits
        Upper bounds of sizes.
    labelled : bool, default True
        If False, the rows have no labels and every attribute is a feature.

    Returns
    -------
    CodedTable
        CSR for a file of sparse rows, else dense. Labels are in the order of the file's columns,
        whatever the order of the XML. A label may be numeric, or nominal with the values 0 and 1, or true and false in
        any order and case.

    Raises
    ------
    DatasetError
        If a row cannot be read, see :func:`multilab.datasets.arff.parse_rows`, or a label attribute declares other
        values.
    """
    octets = read_bytes(path, limits)
    text = decode(octets, path, reading.encoding)
    header = parse_header(text, path, limits, reading.dropped)
    kept = positions_left([column.name for column in header.columns], reading.dropped, path)
    labels = _labels(header, reading, kept, path) if labelled else np.empty(0, dtype=np.intp)
    columns = list(header.columns)
    for j in labels.tolist():
        columns[j] = _binary_label(columns[j], path)
    table = _quick_table(header, labels)
    if table is None:
        missing = reading.keeps_missing_labels
        table = parse_rows(
            header.rest, header.first_line, header.columns, labels, path, limits, reading.dropped, missing
        )
    if len(kept) < len(columns):
        table, columns = table[:, kept], [columns[j] for j in kept]
        labels = np.searchsorted(kept, labels)
    notes = (*encoding_note(octets, reading.encoding), *dropped_note(reading.dropped))
    return CodedTable.split(table, columns, labels, path, limits, notes)


def _labels(header: Header, reading: Reading, kept: Sequence[int], path: PathLike) -> np.ndarray:
    """Return the positions of the labels: ``-C`` counts all attributes, other options those that are kept."""
    names = [header.columns[j].name for j in kept]
    if reading.given(LABELS):
        return np.asarray(kept)[choose_labels(reading, names, path)]
    chosen = np.intersect1d(choose_labels(_meka(header, path), [c.name for c in header.columns], path), kept)
    return np.asarray(kept)[choose_labels(Reading(label_names=[header.columns[j].name for j in chosen]), names, path)]


def _binary_label(column: TableColumn, path: PathLike) -> TableColumn:
    """Return a label attribute with its values as 0 and 1, in their order."""
    if column.values is None or column.binary:
        return column
    texts = tuple(value.lower() for value in column.values)
    if not set(texts) <= {"true", "false"} or len(set(texts)) < len(texts):
        shown = ",".join(column.values)[:60]
        raise DatasetError(
            f"non-binary label: '{column.name[:60]}' has the values {{{shown}}}, expected 0 and 1, or true and false",
            path,
            column.line,
        )
    return TableColumn(column.name, tuple("1" if text == "true" else "0" for text in texts), column.line)


def _meka(header: Header, path: PathLike) -> Reading:
    count = header.meka_labels
    if not count or "weka.filters" in header.relation:
        why = f"the -C {count} in the relation name is not reliable after a filter"
        if not count:
            why = "the label attributes are unknown (no -C in the relation name)"
        raise DatasetError(f"{why}; name the XML file, or the number of first or last columns", path)
    return Reading(labels_first=count) if count > 0 else Reading(labels_last=-count)


def _quick_table(header: Header, labels: np.ndarray) -> np.ndarray | sp.csr_array | None:
    """Return the rows as :func:`parse_rows` does, or None if only that can read them."""
    columns = header.columns
    if not header.rest.isascii() or any(c.values is not None and c.numbers is None for c in columns):
        return None
    body = header.rest.encode("ascii")
    sparse = re.match(rb"\s*+\{", body) is not None
    table = (sparse_numbers if sparse else dense_numbers)(body, len(columns))
    if table is None:
        return None
    known = _sparse_codes(table, columns) if sparse else _dense_codes(table, columns)
    numeric = np.array([c.values is None for c in columns])
    numeric_labels = labels[numeric[labels]]
    if not known or (len(numeric_labels) and not _binary(table[:, numeric_labels])):
        return None
    return table


def _binary(values: np.ndarray | sp.csr_array) -> bool:
    return bool(np.isin(values.data if sp.issparse(values) else values, (0.0, 1.0)).all())


def _dense_codes(table: np.ndarray, columns: Sequence[TableColumn]) -> bool:
    """Replace nominal values by their positions in index; return whether all were declared ones."""
    return all(column.values is None or _encode(table[:, j], column) for j, column in enumerate(columns))


def _sparse_codes(table: sp.csr_array, columns: Sequence[TableColumn]) -> bool:
    # All nominal {0,1} attributes at once: they are plain, their values are their positions.
    highest = np.array([np.inf if c.values is None else len(c.values) - 1 for c in columns])
    plain = np.array([c.plain for c in columns])
    nominal = np.isfinite(highest)
    entries = (plain & nominal)[table.indices]
    values = table.data[entries]
    if (values > highest[table.indices[entries]]).any() or not np.isin(values, (0.0, 1.0)).all():
        return False
    order = np.argsort(table.indices, kind="stable")
    bounds = np.searchsorted(table.indices[order], np.arange(len(columns) + 1))
    for j in np.flatnonzero(nominal & ~plain).tolist():
        of_column = order[bounds[j] : bounds[j + 1]]
        column_values = table.data[of_column]
        if not _encode(column_values, columns[j]):
            return False
        table.data[of_column] = column_values
    return True


def _encode(values: np.ndarray, column: TableColumn) -> bool:
    """Replace the numbers by their positions among the declared values; False if one is not among them."""
    declared = np.asarray(column.numbers)
    if column.plain:
        return bool(np.isin(values, declared).all())
    order = np.argsort(declared)
    index = np.minimum(np.searchsorted(declared[order], values), len(declared) - 1)
    if (declared[order][index] != values).any():
        return False
    values[:] = order[index]
    return True
