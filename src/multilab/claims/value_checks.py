"""Checks on values: paired tests, constants, and trends in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.statistics import signed_rank_p


@check(
    "By {metrics}, over {datasets}: each of {methods} is better than each of {against} by Wilcoxon's signed-rank test."
)
def beats(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds for two methods and a metric if the first is better over the datasets by Wilcoxon's signed-rank test.

    Where no difference is significant it is not testable.
    """
    numbers, signs = {}, []
    for method in methods:
        for other in against:
            for metric in metrics:
                gain = evidence.gain(metric, method, other, datasets).dropna().to_numpy()
                p = signed_rank_p(gain)
                sign = int(np.sign(gain.sum())) if p < evidence.alpha else 0
                signs.append(sign)
                summary = {
                    "median gain": round(float(np.median(gain)), 4),
                    "p": round(float(p), 4),
                    "datasets": len(gain),
                }
                numbers[f"{method} against {other}, {metric}"] = summary
    if any(signs):
        return Finding.of([sign > 0 for sign in signs], numbers)
    return Finding("not testable", numbers, f"no difference is significant at {evidence.alpha}")


@check("On each of {datasets}, in every repetition: {metric} of {methods} is {value}.")
def value_is(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    value: float,
    datasets: Sequence[str],
    tolerance: float = 1e-9,
) -> Finding:
    """Holds for a method and a dataset if a quantity has the value in every repetition."""
    counts = _repetitions_with(evidence, methods, metric, value, datasets, tolerance)
    return Finding.of([equal == runs for equal, runs in counts.values()], _counted(counts))


@check("On each of {datasets}, in at least one repetition: {metric} of {methods} is {value}.")
def value_in_some(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    value: float,
    datasets: Sequence[str],
    tolerance: float = 1e-9,
) -> Finding:
    """Holds for a method and a dataset if a quantity has the value in some repetition."""
    counts = _repetitions_with(evidence, methods, metric, value, datasets, tolerance)
    return Finding.of([equal > 0 for equal, _ in counts.values()], _counted(counts))


def _repetitions_with(
    evidence: Evidence, methods: Sequence[str], metric: str, value: float, datasets: Sequence[str], tolerance: float
) -> dict[str, tuple[int, int]]:
    """Return per dataset and method in how many repetitions, of how many, a quantity has a value."""
    counts = {}
    for dataset in datasets:
        runs = evidence.runs(metric, methods, [dataset])
        for method in methods:
            equal = (runs[method] - value).abs() <= tolerance
            counts[f"{method} on {dataset}"] = int(equal.sum()), len(equal)
    return counts


def _counted(counts: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    return {name: f"{equal} of {runs}" for name, (equal, runs) in counts.items()}


@check("On every dataset: {y} of {method} goes {direction} with {x} by Spearman's correlation.")
def monotone_in(
    evidence: Evidence,
    method: str | Sequence[str],
    table: str,
    x: str,
    y: str,
    direction: str = "up",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds for a dataset if ``y`` goes ``up`` (or ``down``) with ``x`` by Spearman's correlation."""
    numbers: dict[str, Any] = {}
    parts = []
    chosen = evidence.table(table, method=method, **(fixed or {}))
    for (dataset, who), rows in chosen.groupby(["dataset", "method"]):
        steady = rows[y].nunique() < 2 or rows[x].nunique() < 2
        rho = 0.0 if steady else float(spearmanr(rows[x], rows[y]).statistic)
        numbers[f"{who} on {dataset}"] = round(rho, 3)
        parts.append((rho if direction == "up" else -rho) > 0)
    return Finding.of(parts, numbers)
