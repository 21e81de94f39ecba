"""Checks of the iMLDF paper: costs, paired comparisons, layers kept, and what its table says of its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from scipy.stats import ttest_rel

from multilab.claims.errors import NotYet
from multilab.claims.evidence import Evidence, Finding, direction_of, sign_of, words
from multilab.datasets import card

_EQUAL = 1e-12


def ratio(
    evidence: Evidence,
    metric: str,
    method: str,
    to: str,
    datasets: Sequence[str],
    at_least: float | None = None,
    at_most: float | None = None,
) -> Finding:
    """Holds if on every dataset the mean of a method divided by that of another is within the bounds."""
    sentence = (
        f"On each of {words(datasets)}: {words(metric)} of {method} divided by that of "
        f"{to} is from {words(at_least, '0')} to {words(at_most, 'infinity')}."
    )
    table = evidence.means(metric, [method, to], datasets)
    ratios = table[method] / table[to]
    within = [(at_least is None or r >= at_least) and (at_most is None or r <= at_most) for r in ratios]
    return Finding.of(within, {str(name): round(float(value), 3) for name, value in ratios.items()}, sentence)


def not_worse(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    than: str,
    at_least: int,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method is not worse than another in at least ``at_least`` cells (datasets x metrics).

    A cell with several splits is worse if its mean is and the paired t test over them is significant; a published mean
    is worse if it is at its printed decimals.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} is as good as {than} or "
        f"better, or not significantly worse, in at least {at_least} cells; a cell is one dataset and one "
        "measure, significance that of a paired t test over its splits."
    )
    numbers = {"won": 0, "tied": 0, "significantly better": 0, "significantly worse": 0, "cells": 0}
    worse = 0
    for metric in metrics:
        runs = evidence.runs(metric, [method, than], datasets).dropna()
        for _, split in runs.groupby(level="dataset"):
            gains = (split[method] - split[than]) * sign_of(metric)
            mean, significant = float(gains.mean()), _significant(gains, evidence.alpha)
            numbers["cells"] += 1
            numbers["won"] += mean > _EQUAL
            numbers["tied"] += abs(mean) <= _EQUAL
            numbers["significantly better"] += significant and mean > 0
            numbers["significantly worse"] += significant and mean < 0
            worse += mean < -_EQUAL and (significant or len(gains) < 2)
    return Finding.of(
        numbers["cells"] - worse >= at_least, {**numbers, "not worse": numbers["cells"] - worse}, sentence
    )


def layers_kept(evidence: Evidence, method: str, at_least: int, layers: int = 1) -> Finding:
    """Holds if at least ``at_least`` of the cascades of the first splits have this number of layers."""
    sentence = (
        f"{method} keeps {layers} layer in at least {at_least} of its cascades: one per measure, on the first split."
    )
    kept = {name: arrays[0] for name, arrays in evidence.arrays(method, ["n_layers_"]).items()}
    numbers = {name: " ".join(map(str, counts)) for name, counts in kept.items()}
    equal = sum(int((counts == layers).sum()) for counts in kept.values())
    cascades = sum(len(counts) for counts in kept.values())
    return Finding.of(equal >= at_least, {**numbers, f"{layers} layer": equal, "cascades": cascades}, sentence)


def counted_ranks(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    first: int,
    alone: int,
    second: int,
) -> Finding:
    """Holds if the cells (datasets x metrics) in which a method is first, alone and second have these numbers."""
    sentence = (
        f"{method} is first in {first} cells by {words(metrics)}, in {alone} of them alone, and second in {second}."
    )
    counts = {"first": 0, "alone first": 0, "second": 0, "cells": 0}
    for metric in metrics:
        table = evidence.means(metric, methods)
        rank = table.rank(axis=1, method="min", ascending=direction_of(metric) == "min")
        counts["first"] += int((rank[method] == 1).sum())
        counts["alone first"] += int(((rank[method] == 1) & ((rank == 1).sum(axis=1) == 1)).sum())
        counts["second"] += int((rank[method] == 2).sum())
        counts["cells"] += len(table)
    return Finding.of(
        (counts["first"], counts["alone first"], counts["second"]) == (first, alone, second), counts, sentence
    )


def not_one_split(evidence: Evidence, method: str, metric: str, rows: Mapping[str, Sequence[int]]) -> Finding:
    """Holds if no deviation differs from 0, and no value is a share of the rows of one test set."""
    sentence = (
        f"The deviations of {method} are all 0, and {words(metric)} is no k / N at three decimals for "
        f"the numbers of test rows N of one split: {words(rows)}."
    )
    own = evidence.scores[evidence.scores["method"] == method].dropna(subset=["std"])
    if own.empty:
        raise NotYet(f"no deviation of {method}")
    values = evidence.means(metric, [method], list(rows))[method]
    shares = {
        name: [n for n in sizes if any(round(k / n, 3) == round(values[name], 3) for k in range(n + 1))]
        for name, sizes in rows.items()
    }
    numbers = {name: ", ".join(map(str, fitting)) or "none" for name, fitting in shares.items()}
    flat = bool((own["std"] == 0).all())
    return Finding.of(
        flat and not any(shares.values()), {**numbers, "cells with deviation 0": int((own["std"] == 0).sum())}, sentence
    )


def loss_is_density(
    evidence: Evidence, method: str, datasets: Sequence[str], at_least: int, tolerance: float
) -> Finding:
    """Holds if the Hamming loss is that of predictions without a label, the label density, on enough datasets."""
    sentence = (
        f"On at least {at_least} of {words(datasets)}: the Hamming loss of {method} is "
        f"the label density, to {tolerance:g}."
    )
    losses = evidence.means("hamming_loss", [method], datasets)[method]
    densities = pd.Series({name: _density(name) for name in datasets})
    near = (losses - densities).abs() <= tolerance
    numbers = {name: f"{losses[name]:.3f}, density {densities[name]:.3f}" for name in datasets}
    return Finding.of(int(near.sum()) >= at_least, {**numbers, "datasets that fit": int(near.sum())}, sentence)


def _density(dataset: str) -> float:
    """Return the label density of a dataset, from its card."""
    expected = card(dataset).expected
    return float(expected.cardinality / expected.labels)


def _significant(gains: pd.Series, alpha: float) -> bool:
    """Return whether the mean of paired differences is significantly different from 0 by the t test."""
    return len(gains) > 1 and gains.std() > 0 and bool(ttest_rel(gains, 0 * gains).pvalue < alpha)
