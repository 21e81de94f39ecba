"""Checks on runs: whether repetitions agree, what they cost, how soon their sweeps settle, how sparse they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding

__all__ = ["costs_between", "same_every_time", "settles_near", "settles_within", "wavers_only_on", "zero_weights"]


@check
def same_every_time(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if every repetition of a method gives the same values, to the last bit, on every dataset.

    Repetitions for which one result stands count once, so that there must be at least two results. In print it is the
    printed standard deviation that must be 0.
    """
    numbers: dict[str, Any] = {}
    holds = True
    for method in methods:
        told: dict[str, Any] = {}
        for metric in metrics:
            for dataset, rows in evidence.rows(metric, method, datasets).groupby("dataset", sort=False):
                spread = float(rows["std"].max() if "std" in rows else np.ptp(rows["value"]))
                results = rows["key"].nunique() if "key" in rows else len(rows)
                if "std" not in rows and results < 2:
                    return Finding("inconclusive", numbers, f"{method} on {dataset} was run once only")
                told.setdefault("datasets", set()).add(dataset)
                if "std" not in rows:
                    told["runs of each"] = min(results, told.get("runs of each", results))
                told["largest spread"] = max(spread, told.get("largest spread", 0.0))
        holds &= told["largest spread"] == 0.0
        numbers[method] = told | {"datasets": len(told["datasets"])}
    return Finding.of(holds, numbers)


@check
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


@check
def zero_weights(
    evidence: Evidence,
    methods: Sequence[str],
    at_least: float,
    datasets: Sequence[str] | None = None,
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


def _told(found: Mapping[str, int | None]) -> dict[str, Any]:
    return {name: "not within the table" if at is None else at for name, at in sorted(found.items())}


@check
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
    found = _settling(evidence, method, y, tolerance, datasets)
    within = [at is not None and at <= limit for at in found.values()]
    return Finding.of(sum(within) > len(within) / 2 if most else all(within), _told(found))


@check
def settles_near(
    evidence: Evidence,
    method: str,
    at: Mapping[str, int],
    slack: int = 2,
    y: str = "hamming_loss",
    tolerance: float = 1e-4,
) -> Finding:
    """Holds if on every dataset named ``y`` has settled after the number of sweeps given for it, give or take some."""
    found = _settling(evidence, method, y, tolerance, at)
    near = [(sweep := found.get(name)) is not None and abs(sweep - stated) <= slack for name, stated in at.items()]
    return Finding.of(all(near), _told(found))


@check
def wavers_only_on(
    evidence: Evidence,
    method: str,
    datasets: Sequence[str],
    until: int = 20,
    tolerance: float = 1e-4,
) -> Finding:
    """Holds if the Hamming loss rises again by at least the tolerance, within so many sweeps, on just these datasets.

    The numbers are its largest rise above an earlier value.
    """
    rows = evidence.table("sweeps", method=method).sort_values("sweep")
    rises = {}
    for name, part in rows[rows["sweep"] <= until].groupby("dataset", sort=False):
        values = part["hamming_loss"].to_numpy()
        rises[str(name)] = round(float((values - np.minimum.accumulate(values)).max()), 6)
    wavering = {name for name, rise in rises.items() if rise >= tolerance}
    return Finding.of(wavering == set(datasets), dict(sorted(rises.items())))
