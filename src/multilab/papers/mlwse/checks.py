"""Checks of the MLWSE claims: sensitivity, convergence, learned weights, and the best single classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding, sign_of
from multilab.methods.stacking._affinity import cosine_affinity
from multilab.statistics import signed_rank_p


@check(
    "On every dataset: the best {metric} of {method} with {parameter} above {limit} is worse by at least "
    "{margin} than the best up to it."
)
def worse_beyond(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    limit: float,
    margin: float = 0.01,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if on every dataset the best value beyond the limit is worse than the best up to it by the margin."""
    numbers: dict[str, Any] = {}
    holds = True
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        beyond, within = rows[rows[parameter] > limit], rows[rows[parameter] <= limit]
        if beyond.empty or within.empty:
            return Finding("not testable", numbers, f"{table}.csv has {parameter} on one side of {limit} only")
        best, late = rows.loc[within["gain"].idxmax()], rows.loc[beyond["gain"].idxmax()]
        numbers[str(dataset)] = {"best up to": round(best["value"], 4), "best beyond": round(late["value"], 4)}
        holds &= bool(best["gain"] - late["gain"] >= margin)
    return Finding.of(holds, {**numbers, "limit": limit})


@check(
    "On every dataset: {metric} of {method} is best inside the range of {parameter}, by at least {margin} "
    "better than at both ends{fixed: (%s)}."
)
def rises_then_falls(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    margin: float = 0.01,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if on every dataset the best value lies inside the parameter's range, better than both ends by the margin.

    Where other parameters vary, each value of ``parameter`` represents the mean over them.
    """
    numbers: dict[str, Any] = {}
    holds = True
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        curve = rows.groupby(parameter)["gain"].mean()
        values = rows.groupby(parameter)["value"].mean()
        shown = {"first": values.iloc[0], "best": values[curve.idxmax()], "last": values.iloc[-1]}
        numbers[str(dataset)] = {**{k: round(float(v), 4) for k, v in shown.items()}, "best at": float(curve.idxmax())}
        holds &= bool(curve.max() - max(curve.iloc[0], curve.iloc[-1]) >= margin)
    return Finding.of(holds, numbers)


@check("On every dataset: at each value of {by}, {metric} of {method} ranges over at most {tolerance}{fixed: (%s)}.")
def flat_in(
    evidence: Evidence,
    method: str,
    metric: str,
    by: Sequence[str],
    tolerance: float = 0.02,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if the range of the values is at most the tolerance at every combination of the parameters in ``by``."""
    rows = _grid(evidence, table, method, metric, fixed)
    spread = rows.groupby(["dataset", *by])["value"].agg(lambda v: v.max() - v.min())
    worst = spread.groupby("dataset").max()
    numbers = {str(dataset): round(float(value), 4) for dataset, value in worst.items()}
    return Finding.of(bool((spread <= tolerance).all()), {**numbers, "tolerance": tolerance})


@check("On every dataset: {y} is below {limit} for good from this {x} on: {at}.")
def below_by(
    evidence: Evidence,
    at: Mapping[str, int],
    limit: float,
    table: str = "convergence",
    x: str = "iteration",
    y: str = "gap",
) -> Finding:
    """Holds if every method's ``y`` is below the limit from ``x = at[method]`` on, on every dataset."""
    numbers: dict[str, Any] = {}
    holds = True
    for method, bound in at.items():
        for dataset, rows in evidence.table(table, method=method).groupby("dataset"):
            late = rows[rows[x] >= bound]
            if late.empty:
                return Finding("not testable", numbers, f"{table}.csv stops before {x} {bound} for {method}")
            numbers[f"{method} on {dataset}"] = float(f"{late[y].max():.3g}")
            holds &= bool((late[y] < limit).all())
    return Finding.of(holds, {**numbers, "limit": limit})


def _grid(evidence: Evidence, table: str, method: str, metric: str, fixed: Mapping[str, Any] | None) -> Any:
    rows = evidence.table(table, method=method, metric=metric, **(fixed or {}))
    return rows.assign(gain=rows["value"] * sign_of(metric))


@check(
    "On the median of {datasets}: a share of at least {at_least} of the entries of {array} is exactly 0, for "
    "each of {methods}."
)
def share_of_zero(
    evidence: Evidence,
    methods: Sequence[str],
    at_least: float,
    array: str = "W_",
    blocks: int | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if for every method the median share (over datasets) of entries that are exactly 0 reaches ``at_least``.

    With ``blocks`` the array's rows are that many groups of equal size (base classifiers); the numbers then tell how
    many complete groups are zero.
    """
    numbers, holds = {}, True
    for method in methods:
        weights = [arrays[0] for arrays in evidence.arrays(method, [array], datasets).values()]
        shares = [float(np.mean(W == 0)) for W in weights]
        holds &= float(np.median(shares)) >= at_least
        summary = {
            "median": round(float(np.median(shares)), 4),
            "largest": round(max(shares), 4),
            "datasets": len(shares),
        }
        if blocks:
            groups = [group for W in weights for group in np.array_split(W, blocks)]
            summary["zero groups"] = sum(not group.any() for group in groups)
        numbers[method] = summary
    return Finding.of(holds, numbers)


@check(
    "Over {datasets}: the cosines of label columns and of weight columns have a Spearman correlation of sign "
    "{sign}, for each of {methods}."
)
def correlation_sign(
    evidence: Evidence,
    methods: Sequence[str],
    affinity: str = "label_affinity_",
    weights: str = "W_",
    sign: int = 1,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if cosines of label columns and of weight columns correlate with the given sign.

    Spearman's correlation of the off-diagonal entries per dataset (at least 3 labels), then Wilcoxon's signed-rank
    test over the datasets: holds if significant with that sign for every method, fails if significant with the other
    sign for one or the median has it for all, else not testable.
    """
    numbers, verdicts = {}, []
    for method in methods:
        rhos = {}
        for dataset, (labels, W) in evidence.arrays(method, [affinity, weights], datasets).items():
            above = np.triu_indices(len(labels), 1)
            a, b = labels[above], cosine_affinity(W)[above]
            if len(labels) >= 3 and np.ptp(a) > 0 and np.ptp(b) > 0:
                rhos[dataset] = float(spearmanr(a, b).statistic)
        values = np.array(list(rhos.values())) * sign
        p = signed_rank_p(values) if len(values) else 1.0
        median = float(np.median(values)) if len(values) else 0.0
        verdicts.append((p < evidence.alpha, median))
        rounded: dict[str, object] = {name: round(rho, 3) for name, rho in rhos.items()}
        numbers[method] = {"median": round(median * sign, 3), "p": round(float(p), 4), **rounded}
    if all(sure and median > 0 for sure, median in verdicts):
        return Finding("holds", numbers)
    if any(sure and median < 0 for sure, median in verdicts) or all(median < 0 for _, median in verdicts):
        return Finding("fails", numbers)
    return Finding("not testable", numbers, f"no clear sign over the datasets at {evidence.alpha}")


@check(
    "On each of {datasets}: the mean {metric} of each of {methods} reaches that of the best of {others}, "
    "paired over the repetitions."
)
def at_least_best_of(
    evidence: Evidence, methods: Sequence[str], others: Sequence[str], metric: str, datasets: Sequence[str]
) -> Finding:
    """Holds if on every dataset each method's mean reaches that of the best of the others.

    The best of the others is the one with the best mean over the repetitions. Fails if on some dataset a method's
    paired difference to it is significantly below 0 (one-sided 2.5 % normal bound on the mean, which a single
    repetition does not have); otherwise not testable.
    """
    sign = sign_of(metric)
    numbers, reached, below = {}, True, False
    for dataset in datasets:
        runs = evidence.runs(metric, [*methods, *others], [dataset]) * sign
        best = str(runs[list(others)].mean().idxmax())
        for method in methods:
            gain = runs[method] - runs[best]
            mean, error = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))  # NaN of a single one
            error_text = f" (standard error {error:.4f})" if len(gain) > 1 else ""
            numbers[f"{method} against {best} on {dataset}"] = f"{mean:+.4f}{error_text}"
            reached &= mean >= -1e-12
            below |= mean + 1.96 * error < -1e-12
    if reached or below:
        return Finding.of(reached, numbers)
    return Finding("not testable", numbers, "below the best single one, but not significantly")
