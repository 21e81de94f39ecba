"""Checks of ranks and average ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from multilab.audit.numbers import PrintedNumber
from multilab.audit.registry import AuditFinding, audit_check
from multilab.audit.tables import AuditCell, AuditTable, Grid

TIE_RULES = ("average", "best", "worst", "dense")
"""Rank of tied methods: the mean of their ranks, the smallest, the largest, or ranks without gaps."""


@dataclass(frozen=True, slots=True)
class RankRange:
    """Ranks that a method can have on a dataset.

    Attributes
    ----------
    low, high : float
        Smallest and largest rank, as hidden decimals break the ties.
    by_rule : mapping of str to float
        The rank by each of ``TIE_RULES`` from the printed values.
    """

    low: float
    high: float
    by_rule: Mapping[str, float]


def rank_ranges(row: Mapping[str, PrintedNumber | None], direction: str) -> dict[str, RankRange]:
    """Return the ranks of the methods of a row; a method without a number is behind all others.

    Two values of different printed numbers are in their order, for rounding is monotone; with different decimals only
    if the intervals do not overlap.
    """
    sign = 1.0 if direction == "min" else -1.0
    ranges = {}
    numbered = {method: number for method, number in row.items() if number}
    different = sorted({sign * number.value for number in numbered.values()})
    for method, number in row.items():
        if number is None:
            low, high = len(numbered) + 1.0, float(len(row))
            ranges[method] = RankRange(
                low, high, {**dict.fromkeys(TIE_RULES, low), "average": (low + high) / 2, "worst": high}
            )
            continue
        better = worse = equal = 0
        for other in numbered.values():
            if other is number:
                continue
            gap = sign * (other.value - number.value)
            equal += gap == 0
            if other.decimals != number.decimals and abs(gap) < other.half + number.half:
                continue
            better += gap < 0
            worse += gap > 0
        rules = {
            "average": 1.0 + sum(sign * o.value < sign * number.value for o in numbered.values()) + equal / 2,
            "best": 1.0 + sum(sign * o.value < sign * number.value for o in numbered.values()),
            "worst": 1.0 + sum(sign * o.value < sign * number.value for o in numbered.values()) + equal,
            "dense": 1.0 + different.index(sign * number.value),
        }
        ranges[method] = RankRange(1.0 + better, float(len(numbered) - worse), rules)
    return ranges


def method_rank_ranges(grid: Grid, direction: str, missing_last: bool = True) -> tuple[dict[str, RankRange], int]:
    """Return the average ranks of the methods over the datasets of a grid, and the number of datasets.

    Parameters
    ----------
    grid : mapping
        Results by dataset and method.
    direction : {"min", "max"}
        Which values are good.
    missing_last : bool
        Whether a method without a number is last; otherwise its dataset is left out.
    """
    methods = list(dict.fromkeys(method for row in grid.values() for method in row))
    rows = []
    for row in grid.values():
        numbers = {method: row[method].mean if method in row else None for method in methods}
        if missing_last or all(numbers.values()):
            rows.append(rank_ranges(numbers, direction))
    n = len(rows)
    if not n:
        return {}, 0
    averaged = {}
    for method in methods:
        ranges = [row[method] for row in rows]
        rules = {rule: math.fsum(r.by_rule[rule] for r in ranges) / n for rule in TIE_RULES}
        averaged[method] = RankRange(sum(r.low for r in ranges) / n, sum(r.high for r in ranges) / n, rules)
    return averaged, n


def possible_average(number: PrintedNumber, ranks: RankRange, n: int) -> bool:
    """Return whether an average over n datasets can be printed so: a sum of ranks is a multiple of 1/2."""
    first = math.ceil(max(ranks.low, number.low) * 2 * n - 1e-6)
    return first <= math.floor(min(ranks.high, number.high) * 2 * n + 1e-6)


def grid_direction(grid: Grid) -> str:
    """Return the direction of a grid, empty if it is not known."""
    return next((cell.direction for row in grid.values() for cell in row.values() if cell.direction), "")


def _rank_groups(table: AuditTable) -> dict[tuple[str, str, str], list[AuditCell]]:
    groups: dict[tuple[str, str, str], list[AuditCell]] = defaultdict(list)
    for cell in table.derived("average_rank"):
        groups[cell.table, cell.dataset, cell.metric].append(cell)
    return groups


@audit_check
def average_ranks_of_rows(table: AuditTable) -> Iterator[AuditFinding]:
    """Compare average ranks with the ranks of the rows, and their sum with k (k + 1) / 2.

    Methods with different printed values are ranked in their order. Equal ones may differ in decimals that are not
    printed, so each rank has a smallest and a largest value, and so has the average; an average outside is a fault, and
    so is one that is no multiple of 1/(2 N) over N rows (ties of two). If
    all are inside but do not sum to k (k + 1) / 2, the rule for ties is named that gives them (best or worst rank of a
    tie, ranks without gaps); if none does, one of them is wrong.
    """
    for (name, dataset, metric), cells in _rank_groups(table).items():
        grid = table.sources_of(cells[0])
        printed = {cell.method: cell.mean for cell in cells if cell.mean}
        direction = grid_direction(grid)
        if len(grid) >= 2 and direction:
            ranges, n = _fitting_ranges(grid, direction, printed)
        else:
            ranges, n = {}, 0
        outside = []
        for cell in cells:
            r = ranges.get(cell.method)
            assert cell.mean
            if r and not possible_average(cell.mean, r, n):
                right = r.by_rule["average"]
                if r.low == r.high and cell.mean.cut_off(right):
                    yield _rank_finding("note", cell, cell.mean.like(right), f"{right:.4f}; cut off, not rounded")
                    continue
                outside.append(cell)
                span = f" (between {r.low:.3f} and {r.high:.3f}, as ties are broken)" if r.low < r.high else ""
                yield _rank_finding(
                    "fault", cell, cell.mean.like(right), f"average of the ranks in {n} rows {right:.4f}{span}"
                )
        yield from _sum_of_ranks(name, dataset, metric, printed, ranges, bool(outside))


def _fitting_ranges(
    grid: Grid, direction: str, printed: Mapping[str, PrintedNumber]
) -> tuple[dict[str, RankRange], int]:
    """Return the average ranks: of all methods or those with an average, missing ones last or their rows left out.

    Of several ways the one that fits most averages is taken, the first one if they fit alike.
    """
    own = {d: {m: cell for m, cell in row.items() if m in printed} for d, row in grid.items()}
    grids = [grid] if own == grid else [grid, {d: row for d, row in own.items() if row}]
    choices = [method_rank_ranges(one, direction, last) for one in grids for last in (True, False)]

    def misfits(choice: tuple[dict[str, RankRange], int]) -> int:
        ranges, n = choice
        if n < 2:
            return len(printed) + 1
        return sum(m not in ranges or not possible_average(x, ranges[m], n) for m, x in printed.items())

    return min(choices, key=misfits)


def _rank_finding(severity: str, cell: AuditCell, right: str, why: str) -> AuditFinding:
    assert cell.mean
    names = (cell.table, cell.dataset, cell.method, cell.metric)
    return AuditFinding("average_ranks_of_rows", severity, *names, cell.mean.text, right, why)


def _sum_of_ranks(
    name: str,
    dataset: str,
    metric: str,
    printed: Mapping[str, PrintedNumber],
    ranges: Mapping[str, RankRange],
    explained: bool,
) -> Iterator[AuditFinding]:
    k = len(printed)
    if k < 2 or (ranges and set(ranges) != set(printed)):
        return
    total, right = math.fsum(x.value for x in printed.values()), k * (k + 1) / 2
    wrong = abs(total - right) > math.fsum(x.half for x in printed.values()) + 1e-9
    rules = [rule for rule in TIE_RULES if ranges and all(x.holds(ranges[m].by_rule[rule]) for m, x in printed.items())]
    text = f"sum {total:g}"
    if wrong and not explained:
        rule = next((rule for rule in rules if rule != "average"), "")
        why = f"the ranks of {k} methods sum to {k} x {k + 1} / 2 = {right:g}, these to {total:g}"
        if rule:
            why += f"; they are those of the rows if tied methods get the {rule} rank"
        cut = all(0 <= (right - total) < 2 * k * x.half for x in printed.values()) and not rule
        severity = "note" if rule or cut else "fault"
        yield AuditFinding(
            "average_ranks_of_rows",
            severity,
            name,
            dataset,
            "",
            metric,
            text,
            f"sum {right:g}",
            why + ("; cut off" if cut else ""),
        )
    elif not explained and ranges and "average" not in rules and any(r.low < r.high for r in ranges.values()):
        why = "the ranks of the rows with ties broken by decimals that are not printed; not those of tied rows"
        yield AuditFinding(
            "average_ranks_of_rows", "note", name, dataset, "", metric, text, "ranks of unrounded rows", why
        )


@audit_check
def ranks_of_values(table: AuditTable) -> Iterator[AuditFinding]:
    """Compare the ranks that are printed with the values of a row with the order of the values.

    Tied values may have any rank of the tie, by any rule; if all ranks of a row are printed, two that are exchanged are
    two faults. Equal values with different integer ranks are a note.
    """
    rows: dict[tuple[str, str, str], dict[str, AuditCell]] = defaultdict(dict)
    for cell in table.cells:
        if not cell.kind:
            rows[cell.table, cell.dataset, cell.metric][cell.method] = cell
    for row in rows.values():
        direction = next((c.direction for c in row.values() if c.direction), "")
        if not direction or not any(cell.rank for cell in row.values()):
            continue
        ranges = rank_ranges({method: cell.mean for method, cell in row.items()}, direction)
        for method, cell in row.items():
            if not (cell.rank and cell.mean):
                continue
            r = ranges[method]
            allowed = {*r.by_rule.values()}
            names = (cell.table, cell.dataset, method, cell.metric)
            printed = f"{cell.mean.text} ({cell.rank.text})"
            right = f"{r.by_rule['average']:g}"
            if cell.rank.value not in allowed and not r.low <= cell.rank.value <= r.high:
                why = f"{r.low - 1:g} of {len(row)} values are better than {cell.mean.text}"
                yield AuditFinding("ranks_of_values", "fault", *names, printed, right, why)
            elif r.low < r.high and cell.rank.value not in allowed:
                why = (
                    "tied values with different ranks: the order comes from decimals that are not printed, or is wrong"
                )
                yield AuditFinding("ranks_of_values", "note", *names, printed, right, why)


@audit_check
def tied_ranks_differ(table: AuditTable) -> Iterator[AuditFinding]:
    """Report equal values of a row with different printed ranks: a note per tie."""
    rows = defaultdict(list)
    for cell in table.results:
        if cell.rank:
            rows[cell.table, cell.dataset, cell.metric].append(cell)
    for (name, dataset, metric), cells in rows.items():
        ties = defaultdict(list)
        for cell in cells:
            assert cell.mean
            ties[cell.mean.value].append(cell)
        for tie in ties.values():
            ranks = [cell.rank.value for cell in tie if cell.rank]
            if len(set(ranks)) > 1:
                methods = ", ".join(cell.method for cell in tie)
                texts = ", ".join(cell.rank.text for cell in tie if cell.rank)
                why = f"equal values, {tie[0].mean.text if tie[0].mean else ''}, unless hidden decimals differ"
                right = f"both {math.fsum(ranks) / len(ranks):g}"
                yield AuditFinding("tied_ranks_differ", "note", name, dataset, methods, metric, texts, right, why)
