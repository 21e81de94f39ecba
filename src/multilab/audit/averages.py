"""Checks of printed averages: of which rows, with which deviation."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from multilab.audit.numbers import PrintedNumber, one_slip_away, parse_number
from multilab.audit.registry import AuditFinding, audit_check
from multilab.audit.tables import AuditCell, AuditTable

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
    """Return how far the mean of the rows can be from that of the numbers that were rounded."""
    return float(np.mean([row.mean.half for row in rows if row.mean]))


@audit_check
def averages_of_rows(table: AuditTable) -> Iterator[AuditFinding]:
    """Check that an average is the mean of its rows, and its deviation that of the rows.

    Rows and average are rounded, so they may differ by half a unit of the average and the mean of half units of the
    rows. If a column does not fit, the rows are listed that would make it right by one slip: another digit, two digits
    exchanged, or the point moved. If most columns do not fit, the average is one of other rows, which is a note. The
    deviation is compared with the rule that fits most columns (sample, population, mean of the rows' deviations), which
    a note names.
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
    return math.fsum(row.mean.value for row in rows if row.mean) / len(rows)


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
