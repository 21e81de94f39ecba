"""Finding of a study in a sentence or two: the numbers that a template, ``finding.md.j2``, has blanks for."""

from typing import Any

from multilab.reports.data import ReportData, metric_title
from multilab.reports.page import template
from multilab.reports.tables.control import control_view
from multilab.reports.tables.leaders import not_told_apart
from multilab.reports.tables.shares import kept_shares


def finding(report: ReportData) -> tuple[str, ...]:
    """Return whether one method wins by the headline metric, or how many the tests do not tell apart from the first.

    In a study of decisions on the same scores: what gains most over the control. In a study that hides training
    labels: what is kept of the headline metric.

    Empty where the methods are not ranked: fewer than two methods, or a metric without a direction.
    """
    lines = template("finding.md.j2").render(finding_numbers(report)).splitlines()
    return tuple(filter(None, map(str.strip, lines)))


def finding_numbers(report: ReportData) -> dict[str, Any]:
    """Return the variables of the template: ``control``, ``shares`` and ``ranks``, ``None`` where there are none."""
    control, shares = control_view(report), kept_shares(report)
    return {"control": control, "shares": shares, "ranks": None if control or shares else _ranks(report)}


def _ranks(report: ReportData) -> dict[str, Any] | None:
    """Return the best by average rank, and how many are not told apart from it."""
    metric = report.primary[0] if report.primary else None
    comparison = report.comparisons.get(metric) if metric else None
    if metric is None or comparison is None or comparison.k < 2:
        return None
    first = min(comparison.ranks, key=lambda method: (comparison.ranks[method], comparison.methods.index(method)))
    level = not_told_apart(comparison)
    return {
        "metric": metric_title(metric),
        "methods": comparison.k,
        "first": report.method_title(first),
        "level": len(level) if level is not None else None,
    }
