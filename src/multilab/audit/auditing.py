"""The audit: all checks on one table, and its report as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from multilab.audit import averages, conventions, granularity, inequalities, ranks, repeats
from multilab.audit.findings import AUDIT_CHECKS, AuditError, AuditFinding
from multilab.audit.printed_table import AuditTable
from multilab.core.messages import unknown_name

# The checks register themselves when their files are imported.
CHECK_FILES = (granularity, conventions, inequalities, averages, ranks, repeats)


def audit_table(table: AuditTable, checks: Iterable[str] = ()) -> list[AuditFinding]:
    """Return the findings of all checks (or of some) on a table: faults first, in the order of the checks.

    Raises
    ------
    AuditError
        If a name is not that of a check.
    """
    chosen = set(checks) or set(AUDIT_CHECKS)
    for name in sorted(chosen - set(AUDIT_CHECKS)):
        raise AuditError(unknown_name("audit check", name, list(AUDIT_CHECKS)))
    findings = [finding for name, check in AUDIT_CHECKS.items() if name in chosen for finding in check(table)]
    return sorted(findings, key=lambda finding: finding.severity != "fault")


def report_lines(findings: Sequence[AuditFinding], width: int = 120) -> list[str]:
    """Return the findings as a table for the terminal."""
    widths = [6, max(24, width // 4), max(16, width // 8), max(16, width // 8)]
    widths.append(max(24, width - sum(widths) - 2 * len(widths)))
    lines = []
    if findings:
        lines = [_line(("", "where", "printed", "right", "why"), widths), _line(["-" * w for w in widths], widths)]
    for finding in findings:
        texts = (finding.severity, finding.where, finding.printed, finding.right, f"{finding.why} [{finding.check}]")
        columns = [textwrap.wrap(text, w) or [""] for text, w in zip(texts, widths, strict=True)]
        height = max(map(len, columns))
        rows = zip(*(column + [""] * (height - len(column)) for column in columns), strict=True)
        lines += [_line(row, widths) for row in rows]
    return lines


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True)).rstrip()


def summary_line(findings: Sequence[AuditFinding], table: AuditTable) -> str:
    """Return one line: how many faults and notes in how many numbers."""
    faults = sum(finding.severity == "fault" for finding in findings)
    numbers = sum(bool(cell.mean) + bool(cell.std) + bool(cell.rank) for cell in table.cells)
    return f"{_count(faults, 'fault')}, {_count(len(findings) - faults, 'note')} in {_count(numbers, 'number')}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def as_json(findings: Sequence[AuditFinding], table: AuditTable) -> dict[str, Any]:
    """Return the audit as a mapping for JSON."""
    return {
        "numbers": sum(bool(cell.mean) + bool(cell.std) + bool(cell.rank) for cell in table.cells),
        "faults": sum(finding.severity == "fault" for finding in findings),
        "notes": sum(finding.severity == "note" for finding in findings),
        "findings": [finding.as_dict() for finding in findings],
    }
