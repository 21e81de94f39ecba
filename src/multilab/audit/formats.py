"""Checks of the form of numbers: decimals and ranges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from multilab.audit.numbers import PrintedNumber, one_slip_away, parse_number
from multilab.audit.registry import AuditFinding, audit_check
from multilab.audit.tables import AuditCell, AuditTable


@audit_check
def other_number_of_decimals(table: AuditTable) -> Iterator[AuditFinding]:
    """Report numbers with another number of decimals than their column.

    The column are all results of a table and a metric, at least five, of which 80 % agree. More decimals are a fault.
    Fewer are one if the column keeps its trailing zeros, and a note if it has none, as in an exported spreadsheet.
    """
    for part in ("mean", "std"):
        columns: dict[tuple[str, str, str], list[tuple[AuditCell, PrintedNumber]]] = defaultdict(list)
        for cell in table.cells:
            number = getattr(cell, part)
            if number and cell.kind in ("", "mean", "average_rank"):
                columns[cell.table, cell.metric, cell.kind].append((cell, number))
        for (name, metric, _), column in columns.items():
            usual, count = Counter(number.decimals for _, number in column).most_common(1)[0]
            if len(column) < 5 or count < 0.8 * len(column):
                continue
            keeps_zeros = any(n.decimals == usual and n.text.endswith("0") for _, n in column)
            for cell, number in column:
                if number.decimals == usual:
                    continue
                plain = number.value in (0, 1) or not keeps_zeros
                yield AuditFinding(
                    "other_number_of_decimals",
                    "note" if number.decimals < usual and plain else "fault",
                    name,
                    cell.dataset,
                    cell.method,
                    metric,
                    number.text + (" (standard deviation)" if part == "std" else ""),
                    f"{_printed_decimals(usual, name, metric, table)} decimals",
                    f"{_printed_decimals(number.decimals, name, metric, table)} decimals where {count} of "
                    f"{len(column)} numbers have {_printed_decimals(usual, name, metric, table)}",
                )


def _printed_decimals(decimals: int, name: str, metric: str, table: AuditTable) -> int:
    return decimals - 2 if (name, metric) in table.percent else decimals


@audit_check
def out_of_range(table: AuditTable) -> Iterator[AuditFinding]:
    """Report values that the metric cannot take, and standard deviations and ranks that cannot be.

    Shares are in [0, 1]. The coverage of q labels is at most q - 1, or q where it is counted from 1, since no rank is
    larger than q.
    """
    for cell in table.cells:
        if cell.kind not in ("", "mean"):
            continue
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        if cell.std and cell.std.value < 0:
            yield AuditFinding("out_of_range", "fault", *names, cell.std.text, ">= 0", "a standard deviation")
        quantity = cell.quantity
        if not quantity or not cell.mean:
            continue
        low, high = quantity.low, quantity.high
        q = table.size_of(cell.dataset).q if not cell.kind else None
        if high == float("inf") and q:
            high = q
        if low <= cell.mean.value <= high + 1e-9:
            continue
        why = f"{quantity.name} is in [{low:g}, {high:g}]"
        if near := _slips_into(cell.mean, low, high):
            why += f"; one slip away: {near}"
        yield AuditFinding("out_of_range", "fault", *names, cell.mean.text, f"in [{low:g}, {high:g}]", why)


def _slips_into(number: PrintedNumber, low: float, high: float) -> str:
    """Return a number in the range with the point of ``number`` moved."""
    digits = number.text.replace(".", "")
    for text in one_slip_away(number.text):
        other = parse_number(text)
        if other and text.replace(".", "") == digits and low <= other.value <= high:
            return f"0{text}" if text.startswith(".") else text
    return ""
