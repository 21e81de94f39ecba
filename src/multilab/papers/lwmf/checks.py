"""Checks of the LWMF claims: wins, costs, and curves over the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding, direction_of, sign_of
from multilab.statistics import compare

_CURVES = "feature_curves"
_TIE = 1e-12


@check(
    "By {metrics}, on {datasets}: {method} is better in at least ``at_least`` cells than: {against}; a cell is one "
    "dataset and one measure."
)
def wins_at_least(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method is better than each other in at least ``at_least`` cells; a tie is no win."""
    numbers, holds = {}, True
    for other, at_least in against.items():
        gains = pd.concat([evidence.gain(metric, method, other, datasets) for metric in metrics])
        won, lost = int((gains > _TIE).sum()), int((gains < -_TIE).sum())
        numbers[other] = f"{won}-{lost} of {len(gains)}"
        holds &= won >= at_least
    return Finding.of(holds, numbers)


@check("By {metrics}: no other of {methods} has a better mean over {datasets} than {method}.")
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
        sign = sign_of(metric)
        holds &= bool((sign * means).max() <= sign * means[method] + _TIE)
    return Finding.of(holds, numbers)


@check(
    "By {metrics}, over {datasets}: Bonferroni-Dunn's test at {alpha} finds {control} better than others of "
    "{methods} in at least {at_least} pairs."
)
def separated(
    evidence: Evidence,
    control: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    at_least: int,
    alpha: float,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if Bonferroni-Dunn's test finds the control better in at least ``at_least`` pairs, over the metrics."""
    numbers: dict[str, Any] = {}
    count = 0
    for metric in metrics:
        comparison = compare(
            evidence.means(metric, methods, datasets), direction_of(metric), alpha, control=control, metric=metric
        )
        better = [m for m in comparison.beyond_control if comparison.ranks[m] > comparison.ranks[control]]
        count += len(better)
        numbers[metric] = better
        numbers["CD"] = None if comparison.cd_bonferroni_dunn is None else round(comparison.cd_bonferroni_dunn, 3)
    return Finding.of(count >= at_least, {"pairs": count, **numbers})


@check("On each of {datasets}: fitting {against} takes at least {times} times as long as fitting {method}.")
def faster(
    evidence: Evidence, method: str, against: str, times: float, datasets: Sequence[str] | None = None
) -> Finding:
    """Holds if fitting the other takes at least ``times`` times as long on every dataset, by the means over splits."""
    rows = evidence.table("measured", method=[method, against])
    seconds = rows.groupby(["dataset", "method"], sort=False)["fit_seconds"].mean().unstack()
    ratio = (seconds[against] / seconds[method]).loc[list(datasets) if datasets else slice(None)]
    return Finding.of(bool((ratio >= times).all()), {str(d): f"{r:.3g}x" for d, r in ratio.items()})


@check("On every dataset: {others} keep as many features as {method}.")
def kept_as_many(evidence: Evidence, method: str, others: Sequence[str]) -> Finding:
    """Holds if on every dataset the others keep as many features as the method."""
    rows = evidence.table(_CURVES, method=[method, *others], kept=True)
    kept = rows.drop_duplicates(["method", "dataset"]).pivot(index="dataset", columns="method", values="features")
    numbers = {str(dataset): {str(m): int(n) for m, n in row.items()} for dataset, row in kept.iterrows()}
    alike = {d: next(iter(row.values())) if len({*row.values()}) == 1 else row for d, row in numbers.items()}
    return Finding.of(bool(kept.eq(kept[method], axis=0).all(axis=None)), alike)


@check(
    "On each of {datasets}: {metric} of {method} is better than that of {others} at every number of features "
    "that both have{excepted:, except on %s}."
)
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
        texts = []
        for dataset, pair in _curves(evidence, [method, other], metric, datasets).items():
            low, high = (excepted or {}).get(dataset, (0, -1))
            pair = pair[~pair.index.to_series().between(low, high)]
            above = int((pair[method] > pair[other] + _TIE).sum())
            texts.append(f"{dataset} {above} of {len(pair)}")
            holds &= above == len(pair)
        numbers[other] = ", ".join(texts)
    return Finding.of(holds, numbers)


@check(
    "By {metrics}, on {datasets}: the area under the curve of {method} over the number of features is better "
    "in at least ``at_least`` cells than: {against}; a cell is one dataset and one measure."
)
def curve_areas(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method's area under the curve is better than each other's in at least ``at_least`` cells.

    The area is the mean height over the numbers of features that both curves have; a cell is a dataset and a metric.
    """
    numbers, holds = {}, True
    for other, at_least in against.items():
        gains = []
        for metric in metrics:
            sign = sign_of(metric)
            pairs = _curves(evidence, [method, other], metric, datasets).values()
            gains += [sign * (curve_area(pair[method]) - curve_area(pair[other])) for pair in pairs]
        won = int((np.array(gains) > _TIE).sum())
        numbers[other] = f"{won} of {len(gains)}"
        holds &= won >= at_least
    return Finding.of(holds, numbers)


def _curves(
    evidence: Evidence, methods: Sequence[str], metric: str, datasets: Sequence[str] | None
) -> dict[str, pd.DataFrame]:
    """Return per dataset the values at the numbers of features (index) that all methods have."""
    rows = evidence.table(_CURVES, method=list(methods), metric=metric)
    curves = {
        str(d): part.pivot(index="features", columns="method", values="value") for d, part in rows.groupby("dataset")
    }
    return {
        d: table.reindex(columns=list(methods)).dropna() for d, table in curves.items() if not datasets or d in datasets
    }


def curve_area(curve: pd.Series) -> float:
    """Return the mean height of a curve by the trapezoid rule."""
    at, height = curve.index.to_numpy(dtype=float), curve.to_numpy()
    return float(np.trapezoid(height, at) / (at[-1] - at[0])) if len(at) > 1 else float(height[0])
