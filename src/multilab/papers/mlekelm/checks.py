"""Checks of the ML-EKELM claims: significance, repetitions, costs, sparsity, and convergence by sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.statistics import nemenyi_cd


@check(
    "By {metrics}, over {datasets}: by Nemenyi's test {method} is better than each of {better_than} among "
    "{methods}, and better in a share of at least {share} of all pairs of a measure and another."
)
def significant_share(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    better_than: Sequence[str],
    share: float,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if Nemenyi's test finds the method better than all of ``better_than`` by every metric, and often enough.

    ``share`` is the least share of all pairs of a metric and an opponent that it must win significantly.
    """
    numbers: dict[str, Any] = {}
    won = pairs = 0
    holds = True
    for metric in metrics:
        table = evidence.ranks(metric, methods, datasets)
        ranks, limit = table.mean(axis=0), nemenyi_cd(len(methods), len(table), evidence.alpha)
        beaten = [other for other in methods if other != method and ranks[other] - ranks[method] > limit]
        worse = [other for other in methods if other != method and ranks[method] - ranks[other] > limit]
        numbers[metric] = {"better than": ", ".join(beaten) or "none", "worse than": ", ".join(worse) or "none"}
        won, pairs = won + len(beaten), pairs + len(methods) - 1
        holds &= set(better_than) <= set(beaten)
    holds &= won >= share * pairs - 1e-9
    return Finding.of(holds, {**numbers, "share": f"{won} of {pairs}", "CD": round(limit, 4)})


@check("By {metrics}, on {datasets}: every repetition of each of {methods} gives the same value.")
def same_every_time(
    evidence: Evidence, methods: Sequence[str], metrics: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """Holds if every repetition of a method gives the same values, to the last bit, on every dataset.

    Repetitions for which one result stands count once, so that there must be at least two results. In print it is the
    printed standard deviation that must be 0.
    """
    numbers: dict[str, Any] = {}
    holds = True
    for method in methods:
        summary: dict[str, Any] = {}
        for metric in metrics:
            for dataset, rows in evidence.rows(metric, method, datasets).groupby("dataset", sort=False):
                spread = float(rows["std"].max() if "std" in rows else np.ptp(rows["value"]))
                results = rows["key"].nunique() if "key" in rows else len(rows)
                if "std" not in rows and results < 2:
                    return Finding("not testable", numbers, f"{method} on {dataset} was run once only")
                summary.setdefault("datasets", set()).add(dataset)
                if "std" not in rows:
                    summary["runs of each"] = min(results, summary.get("runs of each", results))
                summary["largest spread"] = max(spread, summary.get("largest spread", 0.0))
        holds &= summary["largest spread"] == 0.0
        numbers[method] = summary | {"datasets": len(summary["datasets"])}
    return Finding.of(holds, numbers)


@check(
    "Over {datasets}: the mean {metric} of {method} is more than that of each of {more_than} and less than "
    "that of each of {less_than}."
)
def costs_between(
    evidence: Evidence,
    metric: str,
    method: str,
    more_than: Sequence[str],
    less_than: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method's mean cost over the datasets is above that of each of one kind and below each of another.

    The ratios are its own cost to the other's, as the paper takes them.
    """
    means = evidence.means(metric, [method, *more_than, *less_than], datasets).mean()
    numbers = {name: {"mean": round(float(means[name]), 4)} for name in means.index}
    for other in (*more_than, *less_than):
        numbers[other]["ratio"] = round(float(means[method] / means[other]), 3)
    dearer = all(means[method] > means[other] for other in more_than)
    return Finding.of(dearer and all(means[method] < means[other] for other in less_than), numbers)


@check(
    "On the median of {datasets}: a share of at least {at_least} of the weights is exactly 0, for each of {methods}."
)
def zero_weights(
    evidence: Evidence, methods: Sequence[str], at_least: float, datasets: Sequence[str] | None = None
) -> Finding:
    """Holds if for every method the median share (over datasets) of weights that are exactly 0 reaches ``at_least``.

    The numbers tell the same of training points without any weight.
    """
    numbers, holds = {}, True
    for method in methods:
        kept = evidence.arrays(method, ["zero_shares_"], datasets).values()
        weights, points = np.array([shares for (shares,) in kept], dtype=float).T
        holds &= float(np.median(weights)) >= at_least
        numbers[method] = {
            "median": round(float(np.median(weights)), 4),
            "largest": round(float(weights.max()), 4),
            "points without weight, largest": round(float(points.max()), 4),
            "datasets": len(weights),
        }
    return Finding.of(holds, numbers)


@check(
    "On {most:more than half of|every one of} {datasets}: {y} of {method} has settled (to {tolerance}) after "
    "at most {limit} sweeps."
)
def settles_within(
    evidence: Evidence,
    method: str,
    limit: int,
    y: str = "hamming_loss",
    tolerance: float = 1e-4,
    most: bool = False,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if ``y`` has settled after at most ``limit`` sweeps on every dataset, with ``most`` on more than half."""
    settled = _settling(evidence, method, y, tolerance, datasets)
    within = [at is not None and at <= limit for at in settled.values()]
    return Finding.of(sum(within) > len(within) / 2 if most else all(within), _numbers(settled))


@check("{y} of {method} has settled (to {tolerance}) after this many sweeps, give or take {slack}: {at}.")
def settles_near(
    evidence: Evidence,
    method: str,
    at: Mapping[str, int],
    slack: int = 2,
    y: str = "hamming_loss",
    tolerance: float = 1e-4,
) -> Finding:
    """Holds if on every dataset named ``y`` has settled after the number of sweeps given for it, give or take some."""
    settled = _settling(evidence, method, y, tolerance, at)
    near = [(sweep := settled.get(name)) is not None and abs(sweep - stated) <= slack for name, stated in at.items()]
    return Finding.of(all(near), _numbers(settled))


@check(
    "Within {until} sweeps the Hamming loss of {method} rises again by at least {tolerance} on {datasets} and "
    "on no other dataset."
)
def wavers_only_on(
    evidence: Evidence, method: str, datasets: Sequence[str], until: int = 20, tolerance: float = 1e-4
) -> Finding:
    """Holds if the Hamming loss rises again by at least the tolerance, within ``until`` sweeps, on just these datasets.

    The numbers are its largest rise above an earlier value.
    """
    rows = evidence.table("sweeps", method=method).sort_values("sweep")
    rises = {}
    for name, part in rows[rows["sweep"] <= until].groupby("dataset", sort=False):
        values = part["hamming_loss"].to_numpy()
        rises[str(name)] = round(float((values - np.minimum.accumulate(values)).max()), 6)
    wavering = {name for name, rise in rises.items() if rise >= tolerance}
    return Finding.of(wavering == set(datasets), dict(sorted(rises.items())))


def _settled(rows: pd.DataFrame, y: str, tolerance: float, steady: int = 5) -> int | None:
    """Return the sweep at which a method has settled, ``None`` if it has not within the table.

    The Hamming loss has where it changes by less than the tolerance in each of the next ``steady`` sweeps, all of which
    must be listed; the gap has where it is below the tolerance for good.
    """
    sweeps, values = rows["sweep"].to_numpy(), rows[y].to_numpy()
    if y == "gap":
        late = np.flatnonzero(values >= tolerance)
        first = int(late[-1]) + 1 if len(late) else 0
        return int(sweeps[first]) if first < len(sweeps) else None
    still = (np.abs(np.diff(values)) < tolerance) & (np.diff(sweeps) == 1)
    for start in range(len(still) - steady + 1):
        if still[start : start + steady].all():
            return int(sweeps[start])
    return None


def _settling(evidence: Evidence, method: str, y: str, tolerance: float, datasets: Any) -> dict[str, int | None]:
    chosen = {} if datasets is None else {"dataset": list(datasets)}
    rows = evidence.table("sweeps", method=method, **chosen).sort_values("sweep")
    return {str(name): _settled(part, y, tolerance) for name, part in rows.groupby("dataset", sort=False)}


def _numbers(sweeps: Mapping[str, int | None]) -> dict[str, Any]:
    return {name: "not within the table" if at is None else at for name, at in sorted(sweeps.items())}
