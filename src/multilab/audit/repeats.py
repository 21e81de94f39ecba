"""Checks of columns and rows that repeat others under another name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.printed_table import AuditCell, AuditTable

_Key = tuple[str, str, str]


def _equal(a: AuditCell, b: AuditCell) -> bool:
    same_std = (a.std is None) == (b.std is None) and (a.std is None or b.std is None or a.std.value == b.std.value)
    return bool(a.mean and b.mean and a.mean.value == b.mean.value and same_std)


def _surprise(table: AuditTable, cell: AuditCell, others: Sequence[AuditCell]) -> float:
    """Return -log10 of the chance that another method has the same number.

    It is one step of the spread of the methods: a unit of the last decimal or, where it is known and larger, one test
    row.
    """
    assert cell.mean
    values = [c.mean.value for c in others if c.mean]
    quantity, size = cell.quantity, table.size_of(cell.dataset)
    step = 2 * cell.mean.half
    if quantity and quantity.grid == "rows" and size.n:
        step = max(step, 1 / (size.n * (size.runs or 1)))
    bits = math.log10(max((max(values) - min(values)) / step, 1.0))
    deviations = [c.std.value for c in others if c.std]
    if cell.std and deviations:
        bits += math.log10(max((max(deviations) - min(deviations)) / (2 * cell.std.half), 1.0))
    return bits


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two methods in one metric: their cells, which are equal, and how surprising each equality is."""

    cells: list[tuple[AuditCell, AuditCell]]
    bits: list[float]

    @property
    def equal(self) -> int:
        return len(self.bits)

    @property
    def share(self) -> float:
        return self.equal / len(self.cells)

    def evidence(self, compared: int, coincidences: float) -> float:
        """Return -log10 of the chance that this many cells of one of the pairs compared are equal."""
        usual = -math.log10(coincidences) if coincidences else math.inf
        ways = math.comb(len(self.cells), self.equal) * compared
        return sum(min(bits, usual) for bits in self.bits) - math.log10(ways)


@audit_check
def repeated_columns(table: AuditTable) -> Iterator[AuditFinding]:
    """Report methods with the numbers of another method.

    Two methods are compared metric by metric. It is a fault if three quarters of at least four cells are equal to the
    last digit, mean and deviation, and a note if half of them are, or nine of ten (at least six) to within one unit.
    Coincidence has to be ruled out: one number equals another by chance in one of as many cases as there are steps
    between the smallest and the largest method, but at least as often as other pairs of the metric are equal; all equal
    cells together, for some pair and some choice of cells, in less than 1 of 10^3.
    """
    rows: dict[_Key, list[AuditCell]] = defaultdict(list)
    for cell in table.results:
        if cell.direction:
            rows[cell.table, cell.dataset, cell.metric].append(cell)
    pairs: dict[str, dict[tuple[str, str], _Pair]] = defaultdict(dict)
    for key, cells in rows.items():
        if len(cells) < 3:
            continue
        surprise = {id(cell): _surprise(table, cell, cells) for cell in cells}
        for a, b in combinations(cells, 2):
            pair = pairs[key[2]].setdefault((a.method, b.method), _Pair([], []))
            pair.cells.append((a, b))
            if _equal(a, b):
                pair.bits.append(surprise[id(a)])
    compared = sum(map(len, pairs.values()))
    repeated: dict[tuple[str, str], dict[str, _Pair]] = defaultdict(dict)
    for metric, group in pairs.items():
        total, equal = sum(len(p.cells) for p in group.values()), sum(p.equal for p in group.values())
        for methods, pair in group.items():
            others = equal - pair.equal
            coincidences = others / max(total - len(pair.cells), 1) if others >= 3 else 0.0
            if len(pair.cells) >= 4 and pair.share >= 0.5 and pair.evidence(compared, coincidences) >= 3:
                repeated[methods][metric] = pair
    for (first, second), metrics in repeated.items():
        for severity in ("fault", "note"):
            chosen = {m: pair for m, pair in metrics.items() if (pair.share >= 0.75) == (severity == "fault")}
            if not chosen:
                continue
            example = next(a for pair in chosen.values() for a, b in pair.cells if _equal(a, b))
            yield AuditFinding(
                "repeated_columns",
                severity,
                ", ".join(dict.fromkeys(a.table for pair in chosen.values() for a, _ in pair.cells if a.table)),
                "",
                f"{first} = {second}",
                ", ".join(chosen),
                f"{_text(example)} ({example.dataset})",
                "the numbers of one of them, or one method under two names" if severity == "fault" else "",
                "equal in " + ", ".join(f"{m} {pair.equal} of {len(pair.cells)}" for m, pair in chosen.items()),
            )
    for metric, group in pairs.items():
        for methods, pair in group.items():
            close = [(a, b) for a, b in pair.cells if _close(a, b)]
            if metric in repeated.get(methods, ()) or len(pair.cells) < 6 or len(close) < 0.9 * len(pair.cells):
                continue
            bits = sum(_surprise(table, a, rows[a.table, a.dataset, metric]) - math.log10(3) for a, _ in close)
            if bits >= 8:
                why = f"equal to within one unit of the last decimal in {len(close)} of {len(pair.cells)} rows"
                yield AuditFinding(
                    "repeated_columns", "note", close[0][0].table, "", " ~ ".join(methods), metric, "",
                    "nearly the same predictions", why,
                )  # fmt: skip


def _text(cell: AuditCell) -> str:
    mean = cell.mean.text if cell.mean else ""
    return f"{mean} ± {cell.std.text}" if cell.std else mean


def _close(a: AuditCell, b: AuditCell) -> bool:
    return bool(a.mean and b.mean and abs(a.mean.value - b.mean.value) <= 2.01 * max(a.mean.half, b.mean.half))


@audit_check
def repeated_rows(table: AuditTable) -> Iterator[AuditFinding]:
    """Report datasets with the numbers of another dataset, and metrics with those of another metric.

    All methods (or datasets), at least four, have equal means and deviations. Coincidence has to be ruled out: given
    one of them, another is equal by chance in one of as many cases as there are units between the smallest and the
    largest value of the row; all together, for some pair of rows, in less than 1 of 10^3.
    """
    rows: dict[str, dict[tuple[str, str], dict[str, AuditCell]]] = defaultdict(lambda: defaultdict(dict))
    columns: dict[str, dict[tuple[str, str], dict[str, AuditCell]]] = defaultdict(lambda: defaultdict(dict))
    for cell in table.results:
        if cell.direction:
            rows[cell.table][cell.metric, cell.dataset][cell.method] = cell
            columns[""][cell.method, cell.metric][cell.dataset] = cell
    for name, group in rows.items():
        for (metric, first), (other, second) in combinations(group, 2):
            if metric == other and _same(group[metric, first], group[other, second], len(group)):
                why = f"all {len(group[metric, first])} methods have the same numbers on both"
                right = "the numbers of one of them"
                yield AuditFinding("repeated_rows", "fault", name, f"{first} = {second}", "", metric, "", right, why)
    for group in columns.values():
        for (method, first), (other, second) in combinations(group, 2):
            if method == other and _same(group[method, first], group[other, second], len(group)):
                why = f"the same numbers on all {len(group[method, first])} datasets"
                right = "one of them"
                yield AuditFinding("repeated_rows", "fault", "", "", method, f"{first} = {second}", "", right, why)


def _same(first: Mapping[str, AuditCell], second: Mapping[str, AuditCell], rows: int) -> bool:
    if set(first) != set(second) or len(first) < 4 or not all(_equal(first[key], second[key]) for key in first):
        return False
    cells = [cell for cell in first.values() if cell.mean]
    values = [cell.mean.value for cell in cells if cell.mean]
    units = (max(values) - min(values)) / max(2 * cell.mean.half for cell in cells if cell.mean)
    return (len(cells) - 1) * math.log10(max(units, 1.0)) - 2 * math.log10(rows) >= 3
