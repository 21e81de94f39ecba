"""Checks of ranks, average ranks and rank tests: Friedman, Iman and Davenport, critical differences, shares of wins."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from scipy.stats import rankdata

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.numbers import PrintedNumber
from multilab.audit.printed_table import AuditCell, AuditTable, Grid
from multilab.statistics import bonferroni_dunn_cd, nemenyi_cd
from multilab.statistics.omnibus import f_critical, friedman_chi2, iman_davenport_f
from multilab.statistics.posthoc import bonferroni_dunn_q, nemenyi_q

_TIES: dict[str, Literal["average", "min", "max", "dense"]] = {
    "average": "average",
    "best": "min",
    "worst": "max",
    "dense": "dense",
}
TIE_RULES = tuple(_TIES)
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
    values = [sign * number.value for number in numbered.values()]
    by_rule = {rule: dict(zip(numbered, rankdata(values, method), strict=True)) for rule, method in _TIES.items()}
    for method, number in row.items():
        if number is None:
            low, high = len(numbered) + 1.0, float(len(row))
            ranges[method] = RankRange(
                low, high, {**dict.fromkeys(TIE_RULES, low), "average": (low + high) / 2, "worst": high}
            )
            continue
        better = worse = 0
        for other in numbered.values():
            gap = sign * (other.value - number.value)
            if other.decimals == number.decimals or abs(gap) >= other.half + number.half:
                better += gap < 0
                worse += gap > 0
        rules = {rule: float(ranks[method]) for rule, ranks in by_rule.items()}
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


_ALPHAS = (0.05, 0.10, 0.01)
_nemenyi_cd, _nemenyi_q = cache(nemenyi_cd), cache(nemenyi_q)  # a quantile of the studentised range takes a while

_Difference = Callable[[int, int, float], float]
_Quantile = Callable[[int, float], float]


@dataclass(frozen=True, slots=True)
class _RankSums:
    """Range of Friedman's statistic that the printed values leave open.

    Attributes
    ----------
    n, k : int
        Datasets and methods.
    low, high : float
        Bounds of chi squared.
    tied : float
        Chi squared with the printed ties averaged, without correction.
    likely : list of float
        Values with ties averaged, with and without correction, and, if the ranks are known, with these ranks, corrected
        for none up to all of the ties in the printed values.
    exact : bool
        Whether each average rank is known.
    """

    n: int
    k: int
    low: float
    high: float
    tied: float
    likely: list[float]
    exact: bool


def _rank_sums(table: AuditTable, cell: AuditCell) -> list[_RankSums]:
    """Return the bounds of a statistic, per way to count missing methods.

    A printed average rank narrows the range of the rows: the sum of ranks over n rows is a multiple of 1/2.
    """
    grid = table.sources_of(cell)
    direction = grid_direction(grid)
    printed = {c.method: c.mean for c in table.derived("average_rank") if c.metric == cell.metric and c.mean}
    if len(grid) < 2 or not direction:
        return []
    missing = any(c.mean is None for row in grid.values() for c in row.values())
    missing = missing or len({frozenset(row) for row in grid.values()}) > 1
    bounds = []
    for missing_last in (True, False) if missing else (True,):
        ranges, n = method_rank_ranges(grid, direction, missing_last)
        k = len(ranges)
        if n < 2 or k < 2:
            continue
        box = [_narrowed(r.low, r.high, n, printed.get(m)) for m, r in ranges.items()]
        middle = (k + 1) / 2
        ends = [sorted(((low - middle) ** 2, (high - middle) ** 2)) for low, high in box]
        near = friedman_chi2(
            sum(0 if low <= middle <= high else end[0] for (low, high), end in zip(box, ends, strict=True)), n, k
        )
        far = friedman_chi2(sum(end[1] for end in ends), n, k)
        tied = friedman_chi2(sum((r.by_rule["average"] - middle) ** 2 for r in ranges.values()), n, k)
        exact = all(low == high for low, high in box)
        steps = _ties(grid, direction) // 6
        every = _corrected(tied, n, k, steps)
        likely = [every[0], every[-1], *(_corrected(near, n, k, steps) if exact else [])]
        most = min(far / max(1 - 6 * steps / (n * k * (k * k - 1)), 1e-9), n * (k - 1.0))
        bounds.append(_RankSums(n, k, near, most, tied, likely, exact))
    return bounds


def _narrowed(low: float, high: float, n: int, printed: PrintedNumber | None) -> tuple[float, float]:
    if printed is None or low == high:
        return low, high
    first, last = math.ceil(max(low, printed.low) * 2 * n - 1e-9), math.floor(min(high, printed.high) * 2 * n + 1e-9)
    return (first / (2 * n), last / (2 * n)) if first <= last else (low, high)


def _ties(grid: Grid, direction: str) -> int:
    """Return the sum of t^3 - t over the ties of t printed values."""
    ties = 0
    for row in grid.values():
        ranks = [r.by_rule["average"] for r in rank_ranges({m: c.mean for m, c in row.items()}, direction).values()]
        ties += sum(count**3 - count for count in (ranks.count(rank) for rank in set(ranks)))
    return ties


def _corrected(chi2: float, n: int, k: int, steps: int) -> list[float]:
    """Return chi squared as corrected for none up to all of the ties; t^3 - t is a multiple of 6."""
    return [chi2 / (1 - 6 * m / (n * k * (k * k - 1))) for m in range(steps + 1) if 6 * m < n * k * (k * k - 1)]


def _unchanged(chi2: float, n: int, k: int) -> float:
    return chi2


@audit_check
def friedman_of_ranks(table: AuditTable) -> Iterator[AuditFinding]:
    """Check Friedman's chi squared, and Iman and Davenport's F_F, by the ranks of the rows.

    chi2 = 12 N / (k (k + 1)) sum (R_j - (k + 1)/2)^2 rises with the distance of each average rank from the middle, and
    F_F with chi2. Ties in the printed values leave a range for each R_j, narrowed by printed average ranks; the sum
    over the nearest and the farthest ends bounds chi2, the upper bound divided by the correction for ties. A value
    outside is a fault, and so is one that none of the corrections gives where all ranks are known. Inside, a value that
    does not follow with ties averaged is a note.
    """
    for cell in table.derived("friedman_chi2", "iman_davenport"):
        assert cell.mean
        number = cell.mean
        is_f = cell.kind == "iman_davenport"
        bounds = _rank_sums(table, cell)
        statistic = iman_davenport_f if is_f else _unchanged
        if not bounds or any(number.holds(statistic(v, b.n, b.k)) for b in bounds for v in b.likely):
            continue
        spans = [(statistic(b.low, b.n, b.k), statistic(b.high, b.n, b.k)) for b in bounds]
        first, (low, high) = bounds[0], spans[0]
        right = statistic(first.tied, first.n, first.k)
        other = first.tied if is_f else iman_davenport_f(first.tied, first.n, first.k)
        open_ = any(
            not b.exact and number.high >= span[0] and number.low <= span[1]
            for b, span in zip(bounds, spans, strict=True)
        )
        name = "F_F" if is_f else "chi2"
        why = f"{name} of the ranks of {first.k} methods on {first.n} datasets is {right:.3f}"
        if not first.exact:
            why += f", between {low:.3f} and {high:.3f} as ties are broken"
        if number.holds(other):
            why += f"; the printed value is {'chi2' if is_f else 'F_F'}"
        cut = number.cut_off(right)
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        severity = "note" if open_ or cut else "fault"
        why += "; cut off, not rounded" if cut else ""
        yield AuditFinding("friedman_of_ranks", severity, *names, number.text, number.like(right), why)


def _shape(table: AuditTable, cell: AuditCell) -> tuple[int, int]:
    """Return the numbers of methods and datasets that a test over average ranks is about."""
    metrics = dict.fromkeys(c.metric for c in table.results if _is_ranked(c))
    grids = [table.sources_of(cell)] if cell.metric in metrics else [table.sources_of(cell, m) for m in metrics]
    shapes = [(len({m for row in grid.values() for m in row}), len(grid)) for grid in grids if grid]
    return max(shapes, key=shapes.count) if shapes else (0, 0)


def _is_ranked(cell: AuditCell) -> bool:
    """Return whether methods are ranked by a cell: its direction is known."""
    return bool(cell.direction)


@audit_check
def critical_difference_of_sizes(table: AuditTable) -> Iterator[AuditFinding]:
    """Check critical differences by the numbers of methods k and datasets N: q sqrt(k (k + 1) / (6 N)).

    Nemenyi's q compares all pairs, Bonferroni and Dunn's those with a control; levels .05, .10 and .01. Tables of q
    have three decimals. If the number is q itself, or fits one method or dataset more or less, that is named.
    """
    tests: dict[str, dict[str, tuple[_Difference, _Quantile]]] = {
        "nemenyi_cd": {"Nemenyi": (_nemenyi_cd, _nemenyi_q)},
        "bonferroni_dunn_cd": {"Bonferroni-Dunn": (bonferroni_dunn_cd, bonferroni_dunn_q)},
    }
    tests["critical_difference"] = {**tests["nemenyi_cd"], **tests["bonferroni_dunn_cd"]}
    for cell in table.derived(*tests):
        assert cell.mean
        k, n = _shape(table, cell)
        if k < 2 or n < 2:
            continue
        slack = 0.0005 * math.sqrt(k * (k + 1) / (6 * n))
        values = {
            (name, alpha): difference(k, n, alpha)
            for name, (difference, _) in tests[cell.kind].items()
            for alpha in _ALPHAS
        }
        if any(cell.mean.holds(value, slack) for value in values.values()):
            continue
        printed = cell.mean.value
        right = min(values.values(), key=lambda value: abs(value - printed))
        why = f"k = {k}, N = {n}: " + ", ".join(f"{m} {value:.3f} at {a:g}" for (m, a), value in values.items())
        hints: list[str] = []
        for label, (difference, quantile) in tests[cell.kind].items():
            for level in _ALPHAS:
                if cell.mean.holds(quantile(k, level), 0.0005):
                    right = difference(k, n, level)
                    why = (
                        f"{cell.mean.text} is q of {label} at {level:g}; times sqrt({k} {k + 1} / (6 {n})): {right:.3f}"
                    )
                    hints = []
                    break
                for dk, dn in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    if k + dk >= 2 and n + dn >= 1 and cell.mean.holds(difference(k + dk, n + dn, level)):
                        hints.append(f"; it fits k = {k + dk}, N = {n + dn} at {level:g}")
        why += "".join(hints)
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        yield AuditFinding("critical_difference_of_sizes", "fault", *names, cell.mean.text, cell.mean.like(right), why)


@audit_check
def critical_value_of_f(table: AuditTable) -> Iterator[AuditFinding]:
    """Check the critical value of F_F: that of F with k - 1 and (k - 1)(N - 1) degrees of freedom."""
    for cell in table.derived("f_critical"):
        assert cell.mean
        k, n = _shape(table, cell)
        if k < 2 or n < 2:
            continue
        values = {alpha: f_critical(n, k, alpha) for alpha in _ALPHAS}
        if any(cell.mean.holds(value) for value in values.values()):
            continue
        why = f"F({k - 1}, {(k - 1) * (n - 1)}): " + ", ".join(f"{value:.3f} at {a:g}" for a, value in values.items())
        for name, difference in (("Nemenyi", _nemenyi_cd), ("Bonferroni-Dunn", bonferroni_dunn_cd)):
            for alpha in _ALPHAS:
                if cell.mean.holds(difference(k, n, alpha), 0.001):
                    why += f"; the printed value is {name}'s critical difference at {alpha:g}"
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        right = cell.mean.like(values[0.05])
        yield AuditFinding("critical_value_of_f", "fault", *names, cell.mean.text, right, why)


@audit_check
def share_of_wins(table: AuditTable) -> Iterator[AuditFinding]:
    """Check the percentage of cells in which a method is best.

    Of all (dataset, metric) pairs with a direction in the tables the percentage is about, a method is best alone in
    some and ties in others; a share outside of the two counts is a fault.
    """
    for cell in table.derived("share_best"):
        assert cell.mean
        alone = tied = total = 0
        for metric in dict.fromkeys(c.metric for c in table.results if c.direction):
            grid = table.grid(metric, cell.sources)
            direction = grid_direction(grid)
            for row in grid.values():
                ranges = rank_ranges({m: c.mean for m, c in row.items()}, direction)
                if cell.method not in ranges:
                    continue
                total += 1
                alone += ranges[cell.method].high == 1
                tied += ranges[cell.method].by_rule["best"] == 1 and ranges[cell.method].high > 1
        shares = [100 * count / total for count in range(alone, alone + tied + 1)] if total else []
        if not shares or any(cell.mean.holds(share) or cell.mean.cut_off(share) for share in shares):
            continue
        why = f"best alone in {alone} and tied in {tied} of {total} cells"
        right = " to ".join(dict.fromkeys(cell.mean.like(share) for share in (shares[0], shares[-1])))
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        yield AuditFinding("share_of_wins", "fault", *names, cell.mean.text, right, why)
