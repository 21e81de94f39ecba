"""Checks of rank tests: Friedman's statistic, Iman and Davenport's F, critical values, shares of wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from scipy import stats

from multilab.audit.numbers import PrintedNumber
from multilab.audit.ranks import grid_direction, method_rank_ranges, rank_ranges
from multilab.audit.registry import AuditFinding, audit_check
from multilab.audit.tables import AuditCell, AuditTable, Grid
from multilab.statistics import bonferroni_dunn_cd, nemenyi_cd
from multilab.statistics.posthoc import bonferroni_dunn_q, nemenyi_q

_ALPHAS = (0.05, 0.10, 0.01)
_nemenyi_cd, _nemenyi_q = cache(nemenyi_cd), cache(nemenyi_q)  # a quantile of the studentised range takes a while

_Difference = Callable[[int, int, float], float]
_Quantile = Callable[[int, float], float]


@dataclass(frozen=True, slots=True)
class _RankSums:
    """What the printed values leave open of Friedman's statistic.

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
        near = _chi2(
            sum(0 if low <= middle <= high else end[0] for (low, high), end in zip(box, ends, strict=True)), n, k
        )
        far = _chi2(sum(end[1] for end in ends), n, k)
        tied = _chi2(sum((r.by_rule["average"] - middle) ** 2 for r in ranges.values()), n, k)
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


def _chi2(squares: float, n: int, k: int) -> float:
    return 12 * n / (k * (k + 1)) * squares


def _f(chi2: float, n: int, k: int) -> float:
    rest = n * (k - 1) - chi2
    return math.inf if rest <= 1e-12 else (n - 1) * chi2 / rest


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
        if not bounds or any(number.holds(_f(v, b.n, b.k) if is_f else v) for b in bounds for v in b.likely):
            continue
        spans = [(_f(b.low, b.n, b.k), _f(b.high, b.n, b.k)) if is_f else (b.low, b.high) for b in bounds]
        first, (low, high) = bounds[0], spans[0]
        right = _f(first.tied, first.n, first.k) if is_f else first.tied
        other = first.tied if is_f else _f(first.tied, first.n, first.k)
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
        values = {alpha: float(stats.f.ppf(1 - alpha, k - 1, (k - 1) * (n - 1))) for alpha in _ALPHAS}
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
