"""Finding of a study in up to three sentences, written from its numbers."""

from multilab.core.text import listed
from multilab.reports.data import ReportData, metric_title
from multilab.reports.tables.control import control_view
from multilab.reports.tables.entry import number, p_text
from multilab.reports.tables.shares import share_finding
from multilab.statistics import Comparison


def finding(report: ReportData) -> tuple[str, ...]:
    """Return who leads in the headline metric, by how much, and whether the difference is significant.

    In a study of decisions on the same scores: what gains most over the control, by metric. In a study that hides
    training labels: what is kept of the headline metric at which share.

    Empty where the methods are not ranked: fewer than two methods, or a metric without a direction.
    """
    view = control_view(report)
    if view:
        (title, method, text), *others = view.leaders
        rest = "; ".join(f"{name}: {best} {gain}" for name, best, gain in others)
        first = f"{method} gains most over {view.control} in {title}: {text}, mean of {view.comparisons} comparisons"
        return f"{first} of data set and variant, * significantly.", f"The largest gains by other metrics: {rest}."
    if shares := share_finding(report):
        return shares
    metric = report.primary[0] if report.primary else None
    comparison = report.comparisons.get(metric) if metric else None
    if metric is None or comparison is None or comparison.k < 2:
        return ()
    order = sorted(comparison.ranks, key=lambda method: (comparison.ranks[method], comparison.methods.index(method)))
    leaders = [method for method in order if comparison.ranks[method] == comparison.ranks[order[0]]]
    sentences = [_leader(report, metric, comparison, order, leaders), _by_dataset(report, comparison)]
    if len(leaders) < len(order) and comparison.cd_nemenyi is not None:
        second = order[len(leaders)]
        sentences.append(_significance(report, comparison, leaders[0], second, comparison.cd_nemenyi))
    return tuple(sentences)


def _leader(report: ReportData, metric: str, comparison: Comparison, order: list[str], leaders: list[str]) -> str:
    means = report.summaries[metric].mean[order].loc[list(comparison.datasets)].mean()
    sets = "1 dataset" if comparison.n == 1 else f"{comparison.n} datasets"

    def described(method: str) -> str:
        return f"average rank {comparison.ranks[method]:.2f}, mean {number(float(means[method]))}"

    names = listed(map(report.method_title, leaders), len(leaders))
    verb = "leads" if len(leaders) == 1 else "lead"
    text = f"{metric_title(metric)}: {names} {verb} {comparison.k} methods over {sets} ({described(leaders[0])})"
    if len(leaders) == len(order):
        return f"{text}; all have the same rank."
    second = order[len(leaders)]
    return f"{text}, followed by {report.method_title(second)} ({described(second)})."


def _by_dataset(report: ReportData, comparison: Comparison) -> str:
    """Return which method is the best on each dataset."""
    mean = report.summaries[comparison.metric].mean
    best = {}
    for dataset in comparison.datasets:
        ranks = comparison.dataset_ranks[dataset]
        top = [method for method in comparison.methods if ranks[method] == min(ranks.values())]
        value = float(mean.loc[dataset, top[0]])
        names = listed(map(report.method_title, top)) if len(top) <= 3 else f"{len(top)} methods"
        best[dataset] = (names, f"{dataset} ({number(value)})")
    different = sorted({name for name, _ in best.values()})
    if len(different) == 1:
        return f"The best is {different[0]} on {listed((where for _, where in best.values()), len(best))}."
    return f"The best is {listed((f'{name} on {where}' for name, where in best.values()), len(best))}."


def _significance(report: ReportData, comparison: Comparison, first: str, second: str, cd: float) -> str:
    difference = comparison.ranks[second] - comparison.ranks[first]
    larger = difference > cd
    text = (
        f"The difference of {number(difference)} ranks to {report.method_title(second)} is "
        f"{'significant: larger' if larger else 'not significant: smaller'} than Nemenyi\u2019s critical difference of "
        f"{number(cd)} (\u03b1 = {comparison.alpha:g})"
    )
    if comparison.p is None or larger:
        return f"{text}."
    verdict = "differ" if comparison.rejected else "are not shown to differ"
    return f"{text}; taken together, the methods {verdict} (Iman\u2013Davenport, {p_text(comparison.p)})."
