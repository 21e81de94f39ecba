"""Checks of single numbers: their decimals, their range, and the grid of counts divided by the size of the test set."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.numbers import PrintedNumber, one_slip_away, parse_number
from multilab.audit.printed_table import AuditCell, AuditTable, TestSize


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
    """Report values that the metric cannot take, and impossible standard deviations and ranks.

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


_POWER = 0.5
"""A grid is looked at only if a random number hits it with at most this probability."""


def on_grid(number: PrintedNumber, size: int) -> bool:
    """Return whether a multiple of 1 / size is rounded to the printed number.

    Examples
    --------
    >>> from multilab.audit import on_grid, parse_number
    >>> on_grid(parse_number("6.4913"), 918), on_grid(parse_number("6.4913"), 917)
    (True, False)
    """
    return math.floor(number.high * size) >= math.ceil(number.low * size)


@dataclass(frozen=True, slots=True)
class _Entry:
    cell: AuditCell
    number: PrintedNumber
    factors: tuple[int, ...]  # the size of the grid divided by the number of rows
    by_rows: bool

    def hit(self, n: int, unlabelled: int) -> bool:
        rows = range(max(1, n - unlabelled), n + 1) if self.by_rows else (n,)
        return any(on_grid(self.number, k * factor) for k in rows for factor in self.factors)

    def chance(self, n: int, unlabelled: int) -> float:
        """Return how likely a random number is on the grid."""
        ways = (1 + (unlabelled if self.by_rows else 0)) * sum(self.factors) * n
        return min(1.0, ways * 2 * self.number.half)


def _entries(table: AuditTable, dataset_cells: Sequence[AuditCell], size: TestSize) -> list[_Entry]:
    entries = []
    for cell in dataset_cells:
        quantity = cell.quantity
        if not quantity or not cell.mean:
            continue
        grid = (
            "cells" if (cell.table, cell.method) in table.complements and quantity.name == "accuracy" else quantity.grid
        )
        runs = size.runs or (1 if cell.std is None else 0)
        if not runs or not grid or (grid == "cells" and not size.q):
            continue
        factors: tuple[int, ...] = (runs * (size.q or 1),) if grid == "cells" else (runs,)
        if quantity.name == "coverage" and cell.mean.value <= 1 and size.q and _all_shares(table, cell):
            factors = (runs, runs * size.q, runs * (size.q - 1))
        if quantity.name == "coverage_normalised" and size.q:
            factors = (runs * size.q, runs * (size.q - 1))
        entries.append(_Entry(cell, cell.mean, tuple(f for f in factors if f), grid == "rows"))
    return entries


def _all_shares(table: AuditTable, cell: AuditCell) -> bool:
    return all(c.mean is None or c.mean.value <= 1 for c in table.groups[cell.table, cell.metric])


def _by_dataset(table: AuditTable) -> dict[str, list[AuditCell]]:
    cells = defaultdict(list)
    for cell in table.results:
        cells[cell.dataset].append(cell)
    return cells


@audit_check
def multiples_of_one_row(table: AuditTable) -> Iterator[AuditFinding]:
    """Compare values with the grid of the stated test set, and infer its size where they do not fit.

    On n rows and q labels a Hamming loss is k / (n q), a one-error, a subset accuracy and a coverage k / n (k an
    integer); the mean over R runs on test sets of n rows is k / (R n q) and k / (R n). A number with d decimals says
    something if the grid is coarser than 2 units of its last decimal. If most numbers of a dataset are on the grid, the
    others are faults. If the numbers are on the grid of another size near n, and that by chance with a probability
    below .05, the size is the fault. Standard deviations without a number of runs are left out: the mean over folds of
    different sizes is on no grid.
    """
    for dataset, cells in _by_dataset(table).items():
        size = table.size_of(dataset)
        if not size.n:
            continue
        n = size.n
        entries = [e for e in _entries(table, cells, size) if e.chance(n, size.unlabelled) <= _POWER]
        misses = [e for e in entries if not e.hit(n, size.unlabelled)]
        if not misses:
            continue
        other = _other_size(entries, n, size.unlabelled, len(misses))
        if other:
            rest = [e for e in entries if not e.hit(other, size.unlabelled)]
            yield AuditFinding(
                "multiples_of_one_row",
                "fault",
                misses[0].cell.table if len({e.cell.table for e in misses}) == 1 else "",
                dataset,
                metric=", ".join(dict.fromkeys(e.cell.metric for e in misses)),
                printed=f"{n} test rows",
                right=f"{other} test rows",
                why=f"{len(entries) - len(rest)} of {len(entries)} numbers are multiples of {_unit(entries, other)} "
                f"({_examples(misses)}); {len(misses)} are none of {_unit(entries, n)}",
            )
            misses = rest
        if len(misses) <= max(1, len(entries) / 3):
            for entry in misses:
                yield _off_grid(entry, other or n, dataset)
        elif misses and not other:
            yield AuditFinding(
                "multiples_of_one_row",
                "note",
                dataset=dataset,
                metric=", ".join(dict.fromkeys(e.cell.metric for e in misses)),
                printed=_examples(misses),
                right=f"multiples of {_unit(entries, n)}",
                why=f"{len(misses)} of {len(entries)} numbers are none, and no size near {n} explains them: not one "
                "test set of that size, or a mean over several",
            )


def _other_size(entries: Sequence[_Entry], n: int, unlabelled: int, missed: int) -> int | None:
    width = max(5, round(0.02 * n))
    sizes = sorted((k for k in range(max(2, n - width), n + width + 1) if k != n), key=lambda k: abs(k - n))
    by_misses = [(sum(not e.hit(k, unlabelled) for e in entries), k) for k in sizes]
    fewest, best = min(by_misses, key=lambda pair: pair[0])
    if missed < 2 or fewest > 0.2 * len(entries) or fewest > missed / 3:
        return None
    hits = [e.chance(best, unlabelled) for e in entries if e.hit(best, unlabelled)]
    by_chance = len(sizes) * math.comb(len(entries), fewest) * math.prod(hits)
    return best if by_chance < 0.05 else None


def _unit(entries: Sequence[_Entry], n: int) -> str:
    units = dict.fromkeys(f"1/{n}" + (f"/{f}" if f > 1 else "") for e in entries for f in e.factors[:1])
    return ", ".join(units)


def _examples(entries: Sequence[_Entry], most: int = 6) -> str:
    texts = [e.number.text for e in entries[:most]]
    return " ".join(texts) + (" ..." if len(entries) > most else "")


def _off_grid(entry: _Entry, n: int, dataset: str) -> AuditFinding:
    size = n * entry.factors[0]
    count = entry.number.value * size
    near = [entry.number.like(k / size) for k in (math.floor(count), math.ceil(count))]
    cell = entry.cell
    return AuditFinding(
        "multiples_of_one_row",
        "fault",
        cell.table,
        dataset,
        cell.method,
        cell.metric,
        entry.number.text,
        " or ".join(dict.fromkeys(near)),
        f"no multiple of 1/{size}: {entry.number.text} x {size} = {count:.2f}",
    )


@audit_check
def smallest_size(table: AuditTable) -> Iterator[AuditFinding]:
    """Infer the number of test rows where none is stated: the smallest of which all values are multiples.

    Reported for at least four values of one metric without a standard deviation, if that many random numbers would be
    multiples with a probability below .01 (all sizes tried counted).
    """
    groups = defaultdict(list)
    for cell in table.results:
        quantity = cell.quantity
        by_rows = quantity and (quantity.grid == "rows" or quantity.name == "accuracy")
        if by_rows and cell.std is None and not table.size_of(cell.dataset).n:
            groups[cell.table, cell.dataset, cell.metric].append(cell.mean)
    for (name, dataset, metric), numbers in groups.items():
        different = {number.text: number for number in numbers if number and number.value not in (0, 1)}
        if len(different) < 4:
            continue
        decimals = min(number.decimals for number in different.values())
        for n in range(10, int(0.2 * 10**decimals)):
            if all(on_grid(number, n) for number in different.values()):
                chance = n * math.prod(min(1.0, n * 2 * number.half) for number in different.values())
                if chance < 0.01:
                    why = f"all {len(different)} values are multiples of 1/{n}, by chance with probability {chance:.0e}"
                    right = f"k / {n}"
                    yield AuditFinding(
                        "smallest_size", "note", name, dataset, "", metric, " ".join(different), right, why
                    )
                break


@audit_check
def frequencies_of_counts(table: AuditTable) -> Iterator[AuditFinding]:
    """Compare frequencies with counts over one total: metrics ``x_count`` and ``x_frequency`` of the same rows.

    The total that fits most rows is taken; of the others, those that fit when further decimals are cut off are notes.
    """
    for (name, metric), counts in table.groups.items():
        if not metric.endswith("_count"):
            continue
        shares = {
            (c.dataset, c.method): c for c in table.groups.get((name, metric.removesuffix("_count") + "_frequency"), ())
        }
        pairs = [(c, shares[c.dataset, c.method]) for c in counts if (c.dataset, c.method) in shares]
        pairs = [(c, s) for c, s in pairs if c.mean and s.mean and s.mean.value > 0]
        if len(pairs) < 3:
            continue
        rows = {table.size_of(share.dataset).n for _, share in pairs}
        total = (rows.pop() if len(rows) == 1 else None) or _total(pairs)
        for count, share in pairs:
            assert count.mean
            assert share.mean
            ratio = count.mean.value / total
            if share.mean.holds(ratio):
                continue
            cut = share.mean.cut_off(ratio)
            yield AuditFinding(
                "frequencies_of_counts",
                "note" if cut else "fault",
                name,
                share.dataset,
                share.method,
                share.metric,
                share.mean.text,
                share.mean.like(ratio),
                f"{count.mean.text} / {total} = {ratio:.5f}" + ("; cut off, not rounded" if cut else ""),
            )


def _total(pairs: Sequence[tuple[AuditCell, AuditCell]]) -> int:
    """Return the total that explains most frequencies, as rounded or as cut off, and of these most as rounded."""
    rounded, cut = [], []
    for count, share in pairs:
        assert count.mean
        assert share.mean
        unit, value = 2 * share.mean.half, share.mean.value
        rounded.append((count.mean.value / share.mean.high, count.mean.value / max(share.mean.low, 1e-12)))
        cut.append((count.mean.value / (value + unit), count.mean.value / value))
    candidates = {math.ceil(low) for low, _ in rounded + cut} | {math.floor(high) for _, high in rounded + cut}

    def score(total: int) -> tuple[int, int]:
        first = [low <= total <= high for low, high in rounded]
        second = [low < total <= high for low, high in cut]
        return sum(a or b for a, b in zip(first, second, strict=True)), sum(first)

    most = max(map(score, candidates))
    best = sorted(total for total in candidates if score(total) == most)
    return best[len(best) // 2]
