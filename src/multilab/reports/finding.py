"""Finding of a study in up to three sentences: the numbers that a template, ``finding.md.j2``, has blanks for."""

from typing import Any

from multilab.reports.data import ReportData, metric_title
from multilab.reports.page import template
from multilab.reports.tables.control import control_view
from multilab.reports.tables.shares import kept_shares


def finding(report: ReportData) -> tuple[str, ...]:
    """Return who leads in the headline metric, by how much, and whether the difference is significant.

    In a study of decisions on the same scores: what gains most over the control, by metric. In a study that hides
    training labels: what is kept of the headline metric at which share.

    Empty where the methods are not ranked: fewer than two methods, or a metric without a direction.
    """
    lines = template("finding.md.j2").render(finding_numbers(report)).splitlines()
    return tuple(filter(None, map(str.strip, lines)))


def finding_numbers(report: ReportData) -> dict[str, Any]:
    """Return the variables of the template: ``control``, ``shares`` and ``ranks``, ``None`` where there are none."""
    control, shares = _control(report), kept_shares(report)
    return {"control": control, "shares": shares, "ranks": None if control or shares else _ranks(report)}


def _control(report: ReportData) -> dict[str, Any] | None:
    view = control_view(report)
    if view is None:
        return None
    first, *others = [{"metric": title, "method": method, "gain": text} for title, method, text in view.leaders]
    return {"name": view.control, "comparisons": view.comparisons, "first": first, "others": others}


def _ranks(report: ReportData) -> dict[str, Any] | None:
    """Return the leaders by average rank, who follows, the best on each dataset, and the test of the difference."""
    metric = report.primary[0] if report.primary else None
    comparison = report.comparisons.get(metric) if metric else None
    if metric is None or comparison is None or comparison.k < 2:
        return None
    ranks, means = comparison.ranks, report.summaries[metric].mean.loc[list(comparison.datasets)]
    order = sorted(ranks, key=lambda method: (ranks[method], comparison.methods.index(method)))
    leaders = [method for method in order if ranks[method] == ranks[order[0]]]
    second = order[len(leaders)] if len(leaders) < len(order) else None
    best = []
    for dataset in comparison.datasets:
        own = comparison.dataset_ranks[dataset]
        top = [method for method in comparison.methods if own[method] == min(own.values())]
        value, titles = float(means.loc[dataset, top[0]]), [report.method_title(method) for method in top]
        best.append({"dataset": dataset, "methods": titles, "value": value})
    found: dict[str, Any] = {
        "metric": metric_title(metric),
        "methods": comparison.k,
        "leaders": [report.method_title(method) for method in leaders],
        "rank": ranks[leaders[0]],
        "mean": float(means[leaders[0]].mean()),
        "best": best,
        "second": None,
        "test": None,
    }
    if second is not None:
        title, mean = report.method_title(second), float(means[second].mean())
        found["second"] = {"title": title, "rank": ranks[second], "mean": mean}
        if (cd := comparison.cd_nemenyi) is not None:
            gap = ranks[second] - ranks[leaders[0]]
            verdict = {"p": comparison.p, "rejected": comparison.rejected, "alpha": comparison.alpha}
            found["test"] = {"difference": gap, "cd": cd, "significant": gap > cd, **verdict}
    return found
