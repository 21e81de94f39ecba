"""The table that is audited: printed cells, sizes of test sets, what follows from other cells; and its CSV files."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from multilab.audit.findings import AuditError
from multilab.audit.numbers import PrintedNumber, parse_number
from multilab.audit.quantities import Quantity, quantity_of
from multilab.core.files import not_a_file
from multilab.core.messages import closest

DERIVED_KINDS = (
    "mean",
    "average_rank",
    "friedman_chi2",
    "iman_davenport",
    "f_critical",
    "nemenyi_cd",
    "bonferroni_dunn_cd",
    "critical_difference",
    "share_best",
)
"""Kinds of cells that follow from other cells."""

_RECOGNISED = [
    (r"critical\s+value", "f_critical"),
    (r"\b(average|avg\.?|mean)[\s_]+rank|^avg_?rank", "average_rank"),
    (r"\bnemenyi\b", "nemenyi_cd"),
    (r"\bbonferroni|\bdunn\b", "bonferroni_dunn_cd"),
    (r"\bcritical\s+difference\b|^cd$", "critical_difference"),
    (r"\biman|\bF_?F\b", "iman_davenport"),
    (r"\bfriedman|\bchi2?\b", "friedman_chi2"),
    (r"^\W*(average|avg\.?|mean)\b", "mean"),
]


@dataclass(frozen=True, slots=True)
class AuditCell:
    """One cell of a published table.

    Attributes
    ----------
    table, dataset, method, metric : str
        Names of the table, dataset, method and metric; ``table`` may be empty.
    mean, std : PrintedNumber or None
        Value and standard deviation.
    rank : PrintedNumber or None
        Rank of the method that is printed with the value.
    direction : {"min", "max", ""}
        Empty if neither the table nor the metric says which values are good.
    kind : str
        Empty for a result; one of ``DERIVED_KINDS`` for a cell that follows from others.
    sources : tuple of str
        Tables that a derived cell follows from. If empty, its own table, or all tables if its own has no results.
    """

    table: str
    dataset: str
    method: str
    metric: str
    mean: PrintedNumber | None
    std: PrintedNumber | None = None
    rank: PrintedNumber | None = None
    direction: str = ""
    kind: str = ""
    sources: tuple[str, ...] = ()

    @property
    def quantity(self) -> Quantity | None:
        """The metric, if it is a known one."""
        return quantity_of(self.metric)


@dataclass(frozen=True)
class TestSize:
    """Known sizes of the test set of a dataset.

    Attributes
    ----------
    n, q : int or None
        Rows of the test set, and labels.
    cardinality : float or None
        Mean number of labels per row.
    unlabelled : int
        Test rows without a label, which some conventions leave out.
    runs : int or None
        Results behind a mean: folds, splits or seeds. Without standard deviations one is assumed.
    """

    __test__ = False  # not a class of tests
    n: int | None = None
    q: int | None = None
    cardinality: float | None = None
    unlabelled: int = 0
    runs: int | None = None


def derived_kind(dataset: str, method: str = "") -> str:
    """Return the kind of a derived cell by its names (``Average``, ``avg. rank``, ``CD``, ``F_F``), else ``""``.

    A method may be called ``mean``; an average is recognised by the name that is where the dataset's would be.
    """
    for name in (dataset, method):
        for pattern, kind in _RECOGNISED:
            if (kind != "mean" or name is dataset) and re.search(pattern, name, re.IGNORECASE):
                return kind
    return ""


Grid = dict[str, dict[str, AuditCell]]
"""Cells of one metric: by dataset, then by method."""


@dataclass(frozen=True)
class AuditTable:
    """Published cells, and the sizes of the test sets.

    Attributes
    ----------
    cells : tuple of AuditCell
        All cells.
    sizes : mapping of str to TestSize
        Sizes by dataset; ``"*"`` stands for all datasets that are not named.
    percent : frozenset
        The (table, metric) pairs that are printed in percent.
    """

    cells: tuple[AuditCell, ...]
    sizes: Mapping[str, TestSize] = field(default_factory=dict)
    percent: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, cells: Iterable[AuditCell], sizes: Mapping[str, TestSize] | None = None) -> AuditTable:
        """Return the table of some cells: percentages become shares, known metrics get their direction."""
        cells = list(cells)
        percent = _percent_groups(cells)
        plain = []
        for cell in cells:
            quantity = cell.quantity
            if quantity and not cell.direction:
                cell = replace(cell, direction=quantity.direction)
            if (cell.table, cell.metric) in percent and cell.kind in ("", "mean"):
                numbers = {key: value.scaled(2) for key in ("mean", "std") if (value := getattr(cell, key))}
                cell = replace(cell, **numbers)
            plain.append(cell)
        return cls(tuple(plain), dict(sizes or {}), frozenset(percent))

    @cached_property
    def results(self) -> tuple[AuditCell, ...]:
        """The cells with a number that follow from no other."""
        return tuple(cell for cell in self.cells if not cell.kind and cell.mean)

    @cached_property
    def groups(self) -> dict[tuple[str, str], list[AuditCell]]:
        """The results by table and metric."""
        return _grouped(self.results, lambda cell: (cell.table, cell.metric))

    @cached_property
    def pages(self) -> dict[tuple[str, str], dict[str, AuditCell]]:
        """The results of a method on a dataset, by known metric, over all tables; the first cell of a metric counts."""
        pages: dict[tuple[str, str], dict[str, AuditCell]] = defaultdict(dict)
        for cell in self.results:
            if quantity := cell.quantity:
                pages[cell.dataset, cell.method].setdefault(quantity.name, cell)
        return dict(pages)

    def grid(self, metric: str, tables: Iterable[str] = ()) -> Grid:
        """Return the results of a metric in some tables (default: all) by dataset and method."""
        allowed = set(tables)
        grid: Grid = {}
        for cell in self.cells:
            if not cell.kind and cell.metric == metric and (not allowed or cell.table in allowed):
                grid.setdefault(cell.dataset, {})[cell.method] = cell
        return grid

    def sources_of(self, cell: AuditCell, metric: str | None = None) -> Grid:
        """Return the results that a derived cell follows from."""
        name = metric or cell.metric
        if cell.sources:
            return self.grid(name, cell.sources)
        return self.grid(name, [cell.table]) or ({} if cell.kind == "mean" else self.grid(name))

    def derived(self, *kinds: str) -> list[AuditCell]:
        """Return the derived cells of some kinds."""
        return [cell for cell in self.cells if cell.kind in kinds and cell.mean]

    def size_of(self, dataset: str) -> TestSize:
        """Return what is known of the test set of a dataset."""
        return self.sizes.get(dataset) or self.sizes.get("*") or TestSize()

    @cached_property
    def complements(self) -> frozenset[tuple[str, str]]:
        """The (table, method) pairs whose "accuracy" is 1 - Hamming loss: the two sum to 1 in most of their rows."""
        rows = defaultdict(list)
        for (_, method), page in self.pages.items():
            accuracy, loss = page.get("accuracy") or page.get("jaccard"), page.get("hamming_loss")
            if accuracy and loss:
                rows[method].append((accuracy.table, sums_to_one(accuracy, loss)))
        chosen = set()
        for method, sums in rows.items():
            if sum(right for _, right in sums) >= max(2, 0.5 * len(sums)):
                chosen |= {(table, method) for table, _ in sums}
        return frozenset(chosen)


def sums_to_one(accuracy: AuditCell, loss: AuditCell) -> bool:
    """Return whether two printed numbers can sum to 1."""
    if not (accuracy.mean and loss.mean):
        return False
    return abs(accuracy.mean.value + loss.mean.value - 1) <= accuracy.mean.half + loss.mean.half + 1e-9


def _grouped(cells: Iterable[AuditCell], key: Callable[[AuditCell], Any]) -> dict[Any, list[AuditCell]]:
    groups = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell)
    return dict(groups)


def _percent_groups(cells: Iterable[AuditCell]) -> set[tuple[str, str]]:
    """Return the (table, metric) pairs of a metric in [0, 1] whose values are mostly between 1 and 100."""
    values = defaultdict(list)
    for cell in cells:
        quantity = cell.quantity
        if quantity and quantity.high == 1 and cell.mean and not cell.kind:
            values[cell.table, cell.metric].append(cell.mean.value)
    return {
        key for key, group in values.items() if sum(1 < v <= 100 for v in group) > 0.5 * len(group) and max(group) > 2
    }


_NEEDED = ("dataset", "method", "metric", "mean")
_PARTS = ("mean", "std", "rank")
_MISSING = {"", "-", "--", "---", "/", "na", "n/a", "nan", "dnf", "dns", "none", "\N{EN DASH}", "\N{EM DASH}"}
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_LATEX = re.compile(r"\\(?:textbf|mathbf|underline)\s*\{([^{}]*)\}")
_RULES = (r"\begin", r"\end", r"\toprule", r"\midrule", r"\bottomrule", r"\hline", r"\cmidrule", r"\cline", "%")
_ROW_END = re.compile(r"\\\\(\[[^\]]*\])?\s*(\\hline\s*)*$")
_CELL = re.compile(r"([^±(+]+?)\s*(?:(?:±|\+/-|\+-|\\pm)\s*([\d.eE+-]+))?\s*(?:\(\s*([\d.]+)\s*\))?")


def read_audit_cells(path: Path, metric: str = "", table: str = "", dataset: str = "") -> list[AuditCell]:
    """Return the cells of a CSV file, which may be separated by semicolons or tabs, or of the rows of a LaTeX table.

    Parameters
    ----------
    path : Path
        Long form: columns ``dataset, method, metric, mean`` and, where there are any, ``std, rank, table, direction,
        kind, sources``. Wide forms have cells such as ``0.123``, ``0.123±0.004`` and ``0.123±0.004 (2)``: datasets x
        methods by one metric, or metrics x methods, or methods x metrics, on one dataset.
    metric : str
        The metric of a table of datasets and methods.
    table : str
        Name of the table, where the file has none.
    dataset : str
        The dataset of a table of metrics and methods; by default named like the file.

    Raises
    ------
    AuditError
        If the file cannot be read as a table. The message has the file and the line.
    """
    try:
        with _opened(path) as file:
            first = next((line for line in file if line.strip() and not line.lstrip().startswith(_RULES)), "")
            file.seek(0)
            mark = max(",;\t&", key=first.count)
            lines = _without_latex(file) if mark == "&" else file
            rows = [(n, row) for n, row in enumerate(csv.reader(lines, delimiter=mark), 1) if any(map(str.strip, row))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise AuditError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if len(rows) < 2:
        raise AuditError(f"{path}: expected a line of names and at least one line of numbers")
    if mark == ";":
        rows = [(n, [row[0], *(_DECIMAL_COMMA.sub(".", text) for text in row[1:])]) for n, row in rows]
    header = [name.strip() for name in rows[0][1]]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice:
        raise AuditError(f"{path}: line 1: two columns are called {twice!r}")
    lowered = [name.lower() for name in header]
    long_form = {"dataset", "method", "metric"} & set(lowered[1:]) or set(_NEEDED) <= set(lowered)
    if long_form:
        cells = _long(path, lowered, rows[1:], table)
    else:
        cells = _wide(path, header, rows[1:], metric, table, dataset or path.stem)
    _refuse_twins(path, cells)
    if not any(cell.mean for _, cell in cells):
        raise AuditError(f"{path}: there is no number in it")
    return [cell for _, cell in cells]


def _without_latex(lines: Iterable[str]) -> Iterator[str]:
    """Yield rows of a LaTeX table without the end of a row; a rule is an empty line, so that numbers of lines stay."""
    for line in lines:
        yield "" if line.lstrip().startswith(_RULES) else _ROW_END.sub("", line.strip()).replace(r"\_", "_")


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


def _wide(path: Path, header: list[str], rows: _Rows, metric: str, table: str, dataset: str) -> _Numbered:
    columns = header[1:]
    if not columns or not all(columns):
        raise AuditError(f"{path}: line 1: every column after the first needs a name")
    metric_rows = not metric and all(quantity_of(row[0]) for _, row in rows)
    if not metric and not metric_rows and not all(map(quantity_of, columns)):
        parts = [part for part in ([row[0].strip() for _, row in rows], columns) if any(map(quantity_of, part))]
        unknown = min(([one for one in part if not quantity_of(one)] for part in parts), key=len, default=[])
        raise AuditError(
            f"{path}: missing metric. Add `--metric NAME` for a table of datasets and methods"
            + (f". If it is one of metrics and methods: unknown {', '.join(map(repr, unknown))}" if unknown else "")
            + f". The long form has the columns {', '.join(_NEEDED)}"
        )
    cells = []
    for line, row in rows:
        if len(row) != len(header):
            raise AuditError(f"{path}: line {line}: {len(row)} fields where line 1 has {len(header)}")
        head = row[0].strip()
        for column, text in zip(columns, row[1:], strict=True):
            plain = _LATEX.sub(r"\1", text).replace("$", "").strip()
            match = None if plain.lower() in _MISSING else _CELL.fullmatch(plain)
            if match is None and plain.lower() not in _MISSING:
                raise AuditError(f"{path}: line {line}: {column}: {text!r} is not a number")
            where = f"{path}: line {line}: {column}"
            mean, std, rank = (_number((match[i] or "") if match else "", where) for i in (1, 2, 3))
            names = (
                (head, column, metric)
                if metric
                else (dataset, column, head)
                if metric_rows
                else (dataset, head, column)
            )
            quantity, kind = quantity_of(names[2]), derived_kind(head) if metric else derived_kind("", names[1])
            direction = quantity.direction if quantity else ""
            cells.append((line, AuditCell(table, *names, mean, std, rank, direction, kind)))
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
    """Return the datasets that have a size but no cell."""
    datasets = {cell.dataset for cell in cells}
    return [name for name in sizes if name != "*" and name not in datasets]
