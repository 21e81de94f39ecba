"""Checks of printed averages and deviations: of which rows, over which runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np

from multilab.audit.findings import AuditFinding, audit_check
from multilab.audit.numbers import TINY, PrintedNumber, one_slip_away, parse_number
from multilab.audit.printed_table import AuditCell, AuditTable
from multilab.statistics.summary import exact_mean

_Rows = Sequence[AuditCell]


def _sample(rows: _Rows) -> float:
    return float(np.std([r.mean.value for r in rows if r.mean], ddof=1))


def _population(rows: _Rows) -> float:
    return float(np.std([r.mean.value for r in rows if r.mean]))


def _mean_deviation(rows: _Rows) -> float:
    return float(np.mean([r.std.value for r in rows if r.std])) if all(r.std for r in rows) else math.nan


_DEVIATIONS: dict[str, Callable[[_Rows], float]] = {
    "sample deviation over the rows (n - 1)": _sample,
    "population deviation over the rows (n)": _population,
    "mean of the deviations of the rows": _mean_deviation,
}


def _slack(rows: _Rows) -> float:
    """Return how far the mean of the rows can be from that of the numbers that were rounded.

    The mean of their half units is not reached: each row would have been a tie, and all rounded the same way.
    """
    return float(np.mean([row.mean.half for row in rows if row.mean])) - 2 * TINY


@audit_check
def averages_of_rows(table: AuditTable) -> Iterator[AuditFinding]:
    """Check that an average is the mean of its rows, and its deviation that of the rows.

    Rows and average are rounded, so they may differ by less than half a unit of the average and the mean of half units
    of the rows. If a column does not fit, the rows are listed that would make it right by one slip: another digit, two
    digits exchanged, or the point moved. If most columns do not fit, the average is one of other rows, which is a note.
    The deviation is compared with the rule that fits most columns (sample, population, mean of the rows' deviations),
    which a note names.
    """
    groups: dict[tuple[str, str, str], list[AuditCell]] = defaultdict(list)
    for cell in table.derived("mean"):
        groups[cell.table, cell.dataset, cell.metric].append(cell)
    for (name, dataset, metric), averages in groups.items():
        columns = []
        for cell in averages:
            grid = table.sources_of(cell)
            rows = [row[cell.method] for row in grid.values() if cell.method in row and row[cell.method].mean]
            if len(rows) >= 2:
                columns.append((cell, rows))
        if not columns:
            continue
        wrong = [pair for pair in columns if not _fits(*pair)]
        if len(columns) >= 3 and len(wrong) > 0.6 * len(columns):
            why = f"{len(wrong)} of {len(columns)} averages are not the mean of the {len(columns[0][1])} rows above"
            yield AuditFinding("averages_of_rows", "note", name, dataset, "", metric, "average", "of other rows", why)
            continue
        rule, fitting = _deviation_rule(columns)
        for cell, rows in columns:
            finding = _column(cell, rows, rule)
            if finding:
                yield finding
        yield from _convention(columns, wrong, rule, fitting)


def _fits(cell: AuditCell, rows: _Rows) -> bool:
    assert cell.mean
    return cell.mean.holds(_mean(rows), _slack(rows))


def _mean(rows: _Rows) -> float:
    return exact_mean([row.mean.value for row in rows if row.mean])


def _deviation_fits(cell: AuditCell, rows: _Rows, rule: str) -> bool:
    """Return whether a printed deviation follows a rule; a deviation moves by at most that of the rounding errors."""
    value = _DEVIATIONS[rule](rows)
    if not cell.std or math.isnan(value):
        return False
    return cell.std.holds(value, _slack(rows) * math.sqrt(len(rows) / (len(rows) - 1)))


def _deviation_rule(columns: Sequence[tuple[AuditCell, _Rows]]) -> tuple[str, int]:
    with_std = [(cell, rows) for cell, rows in columns if cell.std]
    counts = {rule: sum(_deviation_fits(cell, rows, rule) for cell, rows in with_std) for rule in _DEVIATIONS}
    rule = max(counts, key=lambda key: counts[key])
    enough = len(with_std) >= 3 and counts[rule] >= 0.5 * len(with_std)
    return (rule, counts[rule]) if enough else ("", 0)


def _column(cell: AuditCell, rows: _Rows, rule: str) -> AuditFinding | None:
    assert cell.mean
    mean_fits = _fits(cell, rows)
    std_fits = not (cell.std and rule) or _deviation_fits(cell, rows, rule)
    if mean_fits and std_fits:
        return None
    right, why = cell.mean.like(_mean(rows)), f"mean of the {len(rows)} rows {_mean(rows):.{cell.mean.decimals + 2}f}"
    printed = cell.mean.text
    if cell.std and rule:
        value = _DEVIATIONS[rule](rows)
        printed, right = f"{printed} ± {cell.std.text}", f"{right} ± {cell.std.like(value)}"
        why += f", {rule} {value:.{cell.std.decimals + 2}f}"
    severity = "fault"
    if not mean_fits:
        if cell.mean.cut_off(_mean(rows)) and std_fits:
            severity, why = "note", f"{why}; cut off, not rounded"
        else:
            slips = _slips(cell, rows, rule)
            why += f"; would be right with {'; '.join(slips[:4])}" if slips else _needed(cell, rows, rule)
    return AuditFinding(
        "averages_of_rows", severity, cell.table, cell.dataset, cell.method, cell.metric, printed, right, why
    )


def _slips(cell: AuditCell, rows: _Rows, rule: str) -> list[str]:
    """Return the rows that would make the average right by one slip; with a deviation both have to be."""
    assert cell.mean
    total, slack, wanted = math.fsum(r.mean.value for r in rows if r.mean), _slack(rows), []
    scale = {True: 100.0, False: 1.0}
    for position, row in enumerate(rows):
        assert row.mean
        shift = scale[row.mean.text not in ("0",) and abs(float(row.mean.text) - row.mean.value * 100) < 1e-9]
        for text in one_slip_away(row.mean.text):
            other = parse_number(text)
            if other is None or not cell.mean.holds((total - row.mean.value + other.value / shift) / len(rows), slack):
                continue
            if cell.std and rule:
                changed = PrintedNumber(text, other.value / shift, row.mean.decimals)
                trial = [*rows[:position], _with_mean(row, changed), *rows[position + 1 :]]
                if not _deviation_fits(cell, trial, rule):
                    continue
            wanted.append((other.decimals != row.mean.decimals, f"{text} for {row.mean.text} ({row.dataset})"))
    return [text for _, text in sorted(wanted, key=lambda pair: pair[0])]


def _needed(cell: AuditCell, rows: _Rows, rule: str) -> str:
    """Return the number that one row would need for average and deviation, if there is such a row."""
    assert cell.mean
    text = "; no single slip of a row explains it"
    if not (cell.std and rule):
        return text
    needed = []
    for position, row in enumerate(rows):
        assert row.mean
        value = row.mean.value + len(rows) * (cell.mean.value - _mean(rows))
        trial = [*rows[:position], _with_mean(row, PrintedNumber("", value, row.mean.decimals)), *rows[position + 1 :]]
        if _deviation_fits(cell, trial, rule):
            needed.append(f"{row.mean.like(value)} for {row.mean.text} ({row.dataset})")
    return f"{text}; both would fit {' or '.join(needed[:3])}" if needed else text


def _with_mean(row: AuditCell, number: PrintedNumber) -> AuditCell:
    return AuditCell(row.table, row.dataset, row.method, row.metric, number, row.std)


def _convention(
    columns: Sequence[tuple[AuditCell, _Rows]], wrong: Sequence[object], rule: str, fitting: int
) -> Iterator[AuditFinding]:
    cell = columns[0][0]
    exact = sum(c.mean.holds(_mean(rows)) for c, rows in columns if c.mean)
    fits = len(columns) - len(wrong)
    if rule or exact < fits:
        texts = [f"mean of the rows as printed in {exact} of {len(columns)} columns"]
        if exact < fits:
            texts.append(f"of rows with more decimals in {fits - exact}")
        if rule:
            texts.append(f"{rule} in {fitting} of {sum(c.std is not None for c, _ in columns)}")
        right = rule or "mean of unrounded rows"
        yield AuditFinding(
            "averages_of_rows", "note", cell.table, cell.dataset, "", cell.metric, "average", right, "; ".join(texts)
        )


@audit_check
def deviation_too_large(table: AuditTable) -> Iterator[AuditFinding]:
    """Report standard deviations that values between the bounds of the metric cannot have.

    For values in [a, b] with mean m, (x - a)(b - x) >= 0 in each gives a variance of at most (b - m)(m - a) (Bhatia and
    Davis), times R / (R - 1) for the sample variance of R runs; R = 2, the least there can be, if it is not stated.
    """
    for cell in table.results:
        quantity = cell.quantity
        if not (quantity and cell.std and cell.mean) or cell.std.value < 0:
            continue
        size = table.size_of(cell.dataset)
        high = quantity.high if quantity.high < float("inf") else size.q
        low = quantity.low
        if not high or not low <= cell.mean.value <= high:
            continue
        runs = max(size.runs or 2, 2)
        worst = max(
            (min(max(value, low), high) - low) * (high - min(max(value, low), high))
            for value in (cell.mean.low, cell.mean.value, cell.mean.high)
        )
        most = math.sqrt(worst * runs / (runs - 1))
        if cell.std.low > most:
            why = (
                f"{runs if size.runs else 'two or more'} values in [{low:g}, {high:g}] with mean {cell.mean.text} "
                f"have a deviation of at most {most:.4f}"
            )
            exchanged = (high - cell.std.value) * (cell.std.value - low)
            if cell.std.value > cell.mean.value and cell.mean.value**2 <= 2 * max(exchanged, 0):
                why += "; mean and deviation may be exchanged"
            names = (cell.table, cell.dataset, cell.method, cell.metric)
            printed, right = f"{cell.mean.text} ± {cell.std.text}", f"deviation <= {cell.std.like(most)}"
            yield AuditFinding("deviation_too_large", "fault", *names, printed, right, why)


@audit_check
def deviation_unlike_its_row(table: AuditTable) -> Iterator[AuditFinding]:
    """Report deviations that are many times those of the other methods, where the mean is small in proportion.

    Mean and deviation exchanged: on a dataset the deviation is more than 5 times the largest of at least three other
    methods, and the mean less than 1/3 of the smallest.
    """
    rows = defaultdict(list)
    for cell in table.results:
        if cell.std:
            rows[cell.table, cell.dataset, cell.metric].append(cell)
    for (name, dataset, metric), cells in rows.items():
        if len(cells) < 4:
            continue
        for cell in cells:
            others = [other for other in cells if other is not cell]
            largest = max(other.std.value for other in others if other.std)
            smallest = min(other.mean.value for other in others if other.mean)
            assert cell.std
            assert cell.mean
            if cell.std.value > 5 * max(largest, cell.std.half) and cell.mean.value < smallest / 3:
                yield AuditFinding(
                    "deviation_unlike_its_row",
                    "fault",
                    name,
                    dataset,
                    cell.method,
                    metric,
                    f"{cell.mean.text} ± {cell.std.text}",
                    f"{cell.std.text} ± {cell.mean.text}",
                    f"the other methods have at least {smallest:g} with deviations of at most {largest:g}: exchanged",
                )


@audit_check
def deviation_zero(table: AuditTable) -> Iterator[AuditFinding]:
    """Report deviations of 0 among others.

    A column of zeros in at least 80 % of at least four cells, where two other methods have at most 20 %, is a note: its
    numbers do not come from the splits that the others come from, or the method is deterministic on fixed data. A
    single zero is a fault if at least 8 units were to be expected: the median of the other methods' deviations in the
    row times the median ratio of the method to the others in the other rows of the metric.
    """
    columns = defaultdict(list)
    rows = defaultdict(list)
    for cell in table.results:
        if cell.std and cell.mean and not _at_bound(cell):
            columns[cell.method].append(cell)
            rows[cell.table, cell.dataset, cell.metric].append(cell)
    zeros = {method: [c for c in cells if _is_zero(c)] for method, cells in columns.items()}
    live = [m for m, cells in columns.items() if len(cells) >= 4 and len(zeros[m]) <= 0.2 * len(cells)]
    for method, cells in columns.items():
        if len(zeros[method]) >= 4 and len(zeros[method]) >= 0.8 * len(cells):
            if len(live) >= 2:
                why = (
                    f"{len(zeros[method])} of {len(cells)} deviations are 0, of {', '.join(live[:3])} "
                    f"{sum(len(zeros[m]) for m in live[:3])} of {sum(len(columns[m]) for m in live[:3])}: not the "
                    "spread over the splits of the others"
                )
                tables = ", ".join(dict.fromkeys(c.table for c in zeros[method] if c.table))
                yield AuditFinding("deviation_zero", "note", tables, "", method, "", "0", "> 0", why)
            continue
        for cell in zeros[method]:
            ratios = []
            for other in cells:
                typical = _typical(other, rows)
                if other.metric == cell.metric and typical and other.std and not _is_zero(other):
                    ratios.append(other.std.value / typical)
            expected = (_typical(cell, rows) or 0.0) * median(ratios) if len(ratios) >= 4 else 0.0
            assert cell.std
            assert cell.mean
            if expected >= 16 * cell.std.half:
                names = (cell.table, cell.dataset, method, cell.metric)
                why = (
                    f"about {cell.std.like(expected)} by the deviations of the method and of the others on this dataset"
                )
                yield AuditFinding("deviation_zero", "fault", *names, f"{cell.mean.text} ± {cell.std.text}", "> 0", why)


def _is_zero(cell: AuditCell) -> bool:
    return cell.std is not None and cell.std.value == 0


def _at_bound(cell: AuditCell) -> bool:
    """Return whether a mean is at a bound of the metric, or an AUC that of a constant score, on every split alike."""
    if cell.mean is None:
        return True
    constant = 0.5 if cell.quantity and cell.quantity.name.endswith("_auc") else 1.0
    return any(abs(cell.mean.value - value) <= cell.mean.half for value in (0.0, 1.0, constant))


def _typical(cell: AuditCell, rows: dict[tuple[str, str, str], list[AuditCell]]) -> float | None:
    others = [
        c.std.value for c in rows[cell.table, cell.dataset, cell.metric] if c.std and c is not cell and not _is_zero(c)
    ]
    return median(others) if len(others) >= 2 else None


@audit_check
def deviation_of_counts(table: AuditTable) -> Iterator[AuditFinding]:
    """Check mean and deviation of R values k / n with integers k (n and R stated): GRIMMER for test sets.

    The sum S of the k is an integer near R n m. The sum of squares Q = (R - 1) n^2 s^2 + S^2 / R is an integer that is
    odd if and only if S is, since k^2 and k have the same parity, and R Q >= S^2. The pair is possible if some S and Q
    lie in the intervals that rounding leaves; population deviations (R for R - 1) are allowed too.
    """
    for cell in table.results:
        quantity, size = cell.quantity, table.size_of(cell.dataset)
        if not (quantity and quantity.grid and cell.std and cell.mean and size.n and size.runs) or size.unlabelled:
            continue
        if quantity.name.startswith("coverage") or (quantity.grid == "cells" and not size.q):
            continue
        n = size.n * (size.q or 1) if quantity.grid == "cells" else size.n
        if n * size.runs * 2 * cell.mean.half > 0.5:
            continue
        sums = range(math.ceil(n * size.runs * cell.mean.low), math.floor(n * size.runs * cell.mean.high) + 1)
        if any(_squares(s, n, size.runs, cell) for s in sums):
            continue
        names = (cell.table, cell.dataset, cell.method, cell.metric)
        why = f"no {size.runs} integers out of {n} have this mean" + (" and this deviation" if len(sums) else "")
        yield AuditFinding("deviation_of_counts", "fault", *names, f"{cell.mean.text} ± {cell.std.text}", "", why)


def _squares(total: int, n: int, runs: int, cell: AuditCell) -> bool:
    assert cell.std
    for divisor in {runs - 1, runs}:
        low = divisor * (n * max(cell.std.low, 0)) ** 2 + total**2 / runs
        high = divisor * (n * cell.std.high) ** 2 + total**2 / runs
        first = math.ceil(max(low, total**2 / runs) - 1e-6)
        last = math.floor(high + 1e-6)
        if first + (first - total) % 2 <= last:
            return True
    return False
