"""Checks on rankings of features: wins against named others, cost, and curves over the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.claims.rank_checks import direction_of
from multilab.statistics import compare

__all__ = [
    "best_mean",
    "curve_above",
    "curve_area",
    "curve_areas",
    "faster",
    "kept_as_many",
    "separated",
    "wins_at_least",
]

_CURVES = "feature_curves"
_TIE = 1e-12


def _gain(evidence: Evidence, method: str, other: str, metric: str, datasets: Sequence[str] | None) -> pd.Series:
    table = evidence.means(metric, [method, other], datasets)
    return (table[method] - table[other]) * (1 if direction_of(metric) == "max" else -1)


@check
def wins_at_least(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method is better than each other in at least so many cells; a tie is no win."""
    numbers, holds = {}, True
    for other, asked in against.items():
        gains = pd.concat([_gain(evidence, method, other, metric, datasets) for metric in metrics])
        won, lost = int((gains > _TIE).sum()), int((gains < -_TIE).sum())
        numbers[other] = f"{won}-{lost} of {len(gains)}"
        holds &= won >= asked
    return Finding.of(holds, numbers)


@check
def best_mean(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if by every metric no other method has a better mean over the datasets."""
    numbers, holds = {}, True
    for metric in metrics:
        means = evidence.means(metric, methods, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(value), 4) for name, value in means.items()}
        sign = 1 if direction_of(metric) == "max" else -1
        holds &= bool((sign * means).max() <= sign * means[method] + _TIE)
    return Finding.of(holds, numbers)


@check
def separated(
    evidence: Evidence,
    control: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    at_least: int,
    alpha: float,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if Bonferroni-Dunn's test finds the control better in at least so many pairs, over the metrics."""
    numbers: dict[str, Any] = {}
    count = 0
    for metric in metrics:
        found = compare(
            evidence.means(metric, methods, datasets), direction_of(metric), alpha, control=control, metric=metric
        )
        better = [m for m in found.beyond_control if found.ranks[m] > found.ranks[control]]
        count += len(better)
        numbers[metric] = better
        numbers["CD"] = None if found.cd_bonferroni_dunn is None else round(found.cd_bonferroni_dunn, 3)
    return Finding.of(count >= at_least, {"pairs": count, **numbers})


@check
def faster(
    evidence: Evidence, method: str, against: str, times: float, datasets: Sequence[str] | None = None
) -> Finding:
    """Holds if fitting the other takes at least so many times as long on every dataset, by the means over splits."""
    rows = evidence.table("measured", method=[method, against])
    seconds = rows.groupby(["dataset", "method"], sort=False)["fit_seconds"].mean().unstack()
    ratio = (seconds[against] / seconds[method]).loc[list(datasets) if datasets else slice(None)]
    return Finding.of(bool((ratio >= times).all()), {str(d): f"{r:.3g}x" for d, r in ratio.items()})


@check
def kept_as_many(evidence: Evidence, method: str, others: Sequence[str]) -> Finding:
    """Holds if on every dataset the others keep as many features as the method."""
    rows = evidence.table(_CURVES, method=[method, *others], kept=True)
    kept = rows.drop_duplicates(["method", "dataset"]).pivot(index="dataset", columns="method", values="features")
    numbers = {str(dataset): {str(m): int(n) for m, n in row.items()} for dataset, row in kept.iterrows()}
    alike = {d: next(iter(row.values())) if len({*row.values()}) == 1 else row for d, row in numbers.items()}
    return Finding.of(bool(kept.eq(kept[method], axis=0).all(axis=None)), alike)


@check
def curve_above(
    evidence: Evidence,
    method: str,
    others: Sequence[str],
    metric: str,
    excepted: Mapping[str, Sequence[int]] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method's curve is above each other's at every number of features that both have.

    ``excepted`` are ranges of numbers of features, per dataset, that do not count.
    """
    numbers, holds = {}, True
    for other in others:
        told = []
        for dataset, pair in _curves(evidence, [method, other], metric, datasets).items():
            low, high = (excepted or {}).get(dataset, (0, -1))
            pair = pair[~pair.index.to_series().between(low, high)]
            above = int((pair[method] > pair[other] + _TIE).sum())
            told.append(f"{dataset} {above} of {len(pair)}")
            holds &= above == len(pair)
        numbers[other] = ", ".join(told)
    return Finding.of(holds, numbers)


@check
def curve_areas(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method's area under the curve is better than each other's in at least so many cells.

    The area is the mean height over the numbers of features that both curves have; a cell is a dataset and a metric.
    """
    numbers, holds = {}, True
    for other, asked in against.items():
        gains = []
        for metric in metrics:
            sign = 1 if direction_of(metric) == "max" else -1
            pairs = _curves(evidence, [method, other], metric, datasets).values()
            gains += [sign * (curve_area(pair[method]) - curve_area(pair[other])) for pair in pairs]
        won = int((np.array(gains) > _TIE).sum())
        numbers[other] = f"{won} of {len(gains)}"
        holds &= won >= asked
    return Finding.of(holds, numbers)


def _curves(
    evidence: Evidence, methods: Sequence[str], metric: str, datasets: Sequence[str] | None
) -> dict[str, pd.DataFrame]:
    """Return per dataset the values at the numbers of features (index) that all methods have."""
    rows = evidence.table(_CURVES, method=list(methods), metric=metric)
    found = {
        str(d): part.pivot(index="features", columns="method", values="value") for d, part in rows.groupby("dataset")
    }
    return {
        d: table.reindex(columns=list(methods)).dropna() for d, table in found.items() if not datasets or d in datasets
    }


def curve_area(curve: pd.Series) -> float:
    """Return the mean height of a curve by the trapezoid rule."""
    at, height = curve.index.to_numpy(dtype=float), curve.to_numpy()
    return float(np.trapezoid(height, at) / (at[-1] - at[0])) if len(at) > 1 else float(height[0])
