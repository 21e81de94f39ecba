"""Reading of published tables: long and wide CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from multilab.audit.errors import AuditError
from multilab.audit.numbers import PrintedNumber, parse_number
from multilab.audit.quantities import quantity_of
from multilab.audit.tables import DERIVED_KINDS, AuditCell, TestSize, derived_kind
from multilab.core.files import not_a_file
from multilab.core.messages import closest

_NEEDED = ("dataset", "method", "metric", "mean")
_PARTS = ("mean", "std", "rank")
_MISSING = {"", "-", "--", "---", "/", "na", "n/a", "nan", "dnf", "dns", "none", "\N{EN DASH}", "\N{EM DASH}"}
_CELL = re.compile(r"([^±(+]+?)\s*(?:(?:±|\+/-|\+-|\\pm)\s*([\d.eE+-]+))?\s*(?:\(\s*([\d.]+)\s*\))?")


def read_audit_cells(path: Path, metric: str = "", table: str = "") -> list[AuditCell]:
    """Return the cells of a CSV file.

    Parameters
    ----------
    path : Path
        Long form: columns ``dataset, method, metric, mean`` and, where there are any, ``std, rank, table, direction,
        kind, sources``. Wide form: a column of datasets, then one column per method; cells such as ``0.123``,
        ``0.123±0.004`` and ``0.123±0.004 (2)``.
    metric : str
        The metric of a wide table.
    table : str
        Name of the table, where the file has none.

    Raises
    ------
    AuditError
        Naming the file, the line and what is wrong.
    """
    try:
        with _opened(path) as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(map(str.strip, row))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise AuditError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if len(rows) < 2:
        raise AuditError(f"{path}: expected a line of names and at least one line of numbers")
    header = [name.strip() for name in rows[0][1]]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice:
        raise AuditError(f"{path}: line 1: two columns are called {twice!r}")
    lowered = [name.lower() for name in header]
    long_form = {"dataset", "method", "metric"} & set(lowered[1:]) or set(_NEEDED) <= set(lowered)
    cells = _long(path, lowered, rows[1:], table) if long_form else _wide(path, header, rows[1:], metric, table)
    _refuse_twins(path, cells)
    if not any(cell.mean for _, cell in cells):
        raise AuditError(f"{path}: there is no number in it")
    return [cell for _, cell in cells]


def _opened(path: Path) -> TextIO:
    if kind := not_a_file(path):
        raise AuditError(f"{path}: it is {kind}, not a CSV file")
    return path.open(newline="", encoding="utf-8-sig")


_Rows = Sequence[tuple[int, list[str]]]
_Numbered = list[tuple[int, AuditCell]]


def _long(path: Path, header: list[str], rows: _Rows, table: str) -> _Numbered:
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise AuditError(f"{path}: column {missing[0]!r} is missing; needed are {', '.join(_NEEDED)}")
    cells = []
    for line, row in rows:
        if len(row) > len(header):
            raise AuditError(f"{path}: line {line}: {len(row)} fields where line 1 has {len(header)}")
        entry = dict(zip(header, (*map(str.strip, row), *[""] * (len(header) - len(row))), strict=True))
        mean, std, rank = (_number(entry.get(name, ""), f"{path}: line {line}: {name}") for name in _PARTS)
        for name in ("dataset", "method", "metric"):
            if not entry[name]:
                raise AuditError(f"{path}: line {line}: {name} is empty")
        direction, kind = entry.get("direction", ""), entry.get("kind", "")
        if direction not in ("", "min", "max"):
            raise AuditError(f"{path}: line {line}: direction is min or max, not {direction!r}")
        if kind not in ("", "result", *DERIVED_KINDS):
            near = closest(kind, DERIVED_KINDS)
            raise AuditError(f"{path}: line {line}: kind {kind!r}: {f'did you mean {near!r}?' if near else 'unknown'}")
        names = entry["dataset"], entry["method"], entry["metric"]
        kind = "" if kind == "result" else kind or derived_kind(entry["dataset"], entry["method"])
        sources = tuple(entry.get("sources", "").split())
        cells.append(
            (
                line,
                AuditCell(entry.get("table", "") or table, *names, mean, std, rank, direction, kind, sources),
            )
        )
    return cells


def _wide(path: Path, header: list[str], rows: _Rows, metric: str, table: str) -> _Numbered:
    if not metric:
        raise AuditError(
            f"{path}: not the long form (columns {', '.join(_NEEDED)}); of a table of datasets and methods, "
            "`--metric` names the metric"
        )
    methods = header[1:]
    if not methods or not all(methods):
        raise AuditError(f"{path}: line 1: expected a column of datasets and the names of the methods")
    quantity = quantity_of(metric)
    cells = []
    for line, row in rows:
        if len(row) != len(header):
            raise AuditError(f"{path}: line {line}: {len(row)} fields where line 1 has {len(header)}")
        for method, text in zip(methods, row[1:], strict=True):
            match = None if text.strip().lower() in _MISSING else _CELL.fullmatch(text.strip())
            if match is None and text.strip().lower() not in _MISSING:
                raise AuditError(f"{path}: line {line}: {method}: {text!r} is not a number")
            where = f"{path}: line {line}: {method}"
            mean, std, rank = (_number((match[i] or "") if match else "", where) for i in (1, 2, 3))
            kind = derived_kind(row[0])
            direction = quantity.direction if quantity else ""
            cells.append((line, AuditCell(table, row[0].strip(), method, metric, mean, std, rank, direction, kind)))
    return cells


def _number(text: str, where: str) -> PrintedNumber | None:
    if text.strip().lower() in _MISSING:
        return None
    number = parse_number(text)
    if number is None:
        raise AuditError(f"{where}: {text!r} is not a number")
    return number


def _refuse_twins(path: Path, cells: _Numbered) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for line, cell in cells:
        key = (cell.table, cell.dataset, cell.method, cell.metric)
        if seen.setdefault(key, line) != line:
            raise AuditError(
                f"{path}: line {line}: the cell {', '.join(filter(None, key))} is also in line {seen[key]}"
            )


def read_sizes(path: Path) -> dict[str, TestSize]:
    """Return the test sizes of a CSV file with the columns ``dataset, n, q, cardinality, unlabelled, runs``.

    Only ``dataset`` is needed; ``*`` is every dataset that is not named.
    """
    with _opened(path) as file:
        entries = list(csv.DictReader(file))
    sizes = {}
    for line, entry in enumerate(entries, 2):
        if not (entry.get("dataset") or "").strip():
            raise AuditError(f"{path}: line {line}: column 'dataset' is missing or empty")
        sizes[entry["dataset"].strip()] = size_from({k: v for k, v in entry.items() if k}, f"{path}: line {line}")
    return sizes


def size_from(entry: Mapping[str, object], where: str) -> TestSize:
    """Return the test size of texts or numbers.

    Raises
    ------
    AuditError
        If one of them cannot be a size.
    """
    values: dict[str, float] = {}
    for name in ("n", "q", "unlabelled", "runs", "cardinality"):
        text = str(entry.get(name) or "").strip()
        if not text:
            continue
        number = parse_number(text)
        smallest = {"cardinality": 0, "unlabelled": 0}.get(name, 1)
        if number is None or number.value < smallest or (name != "cardinality" and number.value % 1):
            what = "a number" if name == "cardinality" else "an integer"
            raise AuditError(f"{where}: `{name}` must be {what} of at least {smallest}, got {text!r}")
        values[name] = number.value if name == "cardinality" else int(number.value)
    return TestSize(**values)  # type: ignore[arg-type]


def unused_sizes(sizes: Iterable[str], cells: Iterable[AuditCell]) -> list[str]:
    """Return the datasets that a size is given for and that are in no cell."""
    datasets = {cell.dataset for cell in cells}
    return [name for name in sizes if name != "*" and name not in datasets]
