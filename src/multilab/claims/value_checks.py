"""Checks on values of single methods, paired over splits or datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.claims.rank_checks import direction_of
from multilab.statistics import signed_rank_p

__all__ = ["at_least_best_of", "beats", "value_is"]


@check
def beats(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if every method is better than every other over the datasets by Wilcoxon's signed-rank test, per metric.

    Fails if one is significantly worse; otherwise inconclusive.
    """
    numbers, signs = {}, []
    for method in methods:
        for other in against:
            for metric in metrics:
                table = evidence.means(metric, [method, other], datasets).dropna()
                gain = (table[method] - table[other]).to_numpy() * (1 if direction_of(metric) == "max" else -1)
                p = signed_rank_p(gain)
                sign = int(np.sign(gain.sum())) if p < evidence.alpha else 0
                signs.append(sign)
                told = {"median gain": round(float(np.median(gain)), 4), "p": round(float(p), 4), "datasets": len(gain)}
                numbers[f"{method} against {other}, {metric}"] = told
    if all(sign > 0 for sign in signs):
        return Finding("holds", numbers)
    if any(sign < 0 for sign in signs):
        return Finding("fails", numbers)
    return Finding("inconclusive", numbers, f"not every difference is significant at {evidence.alpha}")


@check
def at_least_best_of(
    evidence: Evidence,
    methods: Sequence[str],
    others: Sequence[str],
    metric: str,
    datasets: Sequence[str],
) -> Finding:
    """Holds if on every dataset each method's mean reaches that of the best of the others.

    The best of the others is the one with the best mean over the repetitions. Fails if on some dataset a method's
    paired difference to it is significantly below 0 (one-sided 2.5 % normal bound on the mean, which a single
    repetition does not have); otherwise inconclusive.
    """
    sign = 1 if direction_of(metric) == "max" else -1
    numbers, reached, below = {}, True, False
    for dataset in datasets:
        runs = evidence.runs(metric, [*methods, *others], [dataset]) * sign
        best = str(runs[list(others)].mean().idxmax())
        for method in methods:
            gain = runs[method] - runs[best]
            mean, error = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))  # NaN of a single one
            told = f"{mean:+.4f}" + (f" (standard error {error:.4f})" if len(gain) > 1 else "")
            numbers[f"{method} against {best} on {dataset}"] = told
            reached &= mean >= -1e-12
            below |= mean + 1.96 * error < -1e-12
    if reached or below:
        return Finding.of(reached, numbers)
    return Finding("inconclusive", numbers, "below the best single one, but not significantly")


@check
def value_is(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    value: float,
    datasets: Sequence[str],
    tolerance: float = 1e-9,
) -> Finding:
    """Holds if a quantity has the value in every repetition on every dataset."""
    numbers, holds = {}, True
    for dataset in datasets:
        runs = evidence.runs(metric, methods, [dataset])
        for method in methods:
            right = (runs[method] - value).abs() <= tolerance
            numbers[f"{method} on {dataset}"] = f"{int(right.sum())} of {len(right)}"
            holds &= bool(right.all())
    return Finding.of(holds, numbers)
