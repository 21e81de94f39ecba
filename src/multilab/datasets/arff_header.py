"""Headers of ARFF files: relation, attributes and their values, as Weka, Mulan and MEKA write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from multilab.core.files import PathLike
from multilab.datasets.column_roles import TableColumn
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits

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
        Names of attributes that are left out, so that they may have any type; they are declared as numeric.

    Raises
    ------
    DatasetError
        With its line: a declaration that cannot be read, an attribute declared twice, an attribute that is
        neither numeric nor nominal, or no ``@data``.
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
        "leave it out (drop)",
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
