"""Checks on average ranks, Friedman's test, and wins and losses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pandas as pd

from multilab.claims.checks import check
from multilab.claims.errors import ClaimsError
from multilab.claims.evidence import Evidence, Finding
from multilab.metrics import METRICS
from multilab.statistics import average_ranks, friedman, iman_davenport, nemenyi_cd, rank_rows

__all__ = [
    "average_rank_order",
    "best_average_rank",
    "best_share",
    "direction_of",
    "friedman_rejects",
    "significant_share",
    "wins_minus_losses",
]

_MORE_DIRECTIONS = {"accuracy": "max"}


def direction_of(metric: str) -> str:
    """Return "min" or "max" for a metric of ours, with or without a preset, or of a printed table."""
    plain = metric.partition(".")[0]
    if plain in METRICS:
        return METRICS[plain].direction
    if plain in _MORE_DIRECTIONS:
        return _MORE_DIRECTIONS[plain]
    raise ClaimsError(f"nothing says whether small or large values of {metric!r} are good")


def _ranks(evidence: Evidence, metric: str, methods: Sequence[str], datasets: Sequence[str] | None) -> pd.DataFrame:
    return rank_rows(evidence.means(metric, methods, datasets), direction_of(metric))


@check
def best_average_rank(
    evidence: Evidence,
    metrics: Sequence[str],
    best: Sequence[str],
    methods: Sequence[str],
    against: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if by every metric one of ``best`` has a lower average rank than all of ``against``.

    Ranks are taken among ``methods``; ``against`` defaults to all of them that are not ``best``. A tie fails.
    """
    others = [m for m in (against or methods) if m not in best]
    numbers, holds = {}, True
    for metric in metrics:
        ranks = _ranks(evidence, metric, methods, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        holds &= min(ranks[list(best)]) < min(ranks[others])
    return Finding.of(bool(holds), numbers)


@check
def average_rank_order(
    evidence: Evidence,
    metrics: Sequence[str],
    order: Sequence[str],
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if by every metric the average ranks rise strictly along ``order``; ranked among ``methods``."""
    numbers, holds = {}, True
    for metric in metrics:
        table = evidence.means(metric, methods or order, datasets)
        ranks = average_ranks(table, direction_of(metric))
        numbers[metric] = {name: round(float(ranks[name]), 3) for name in order}
        holds &= all(ranks[a] < ranks[b] for a, b in itertools.pairwise(order))
    return Finding.of(holds, numbers)


@check
def friedman_rejects(
    evidence: Evidence,
    metrics: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
    tie_correction: bool = True,
    alpha: float | None = None,
) -> Finding:
    """Holds if F_F exceeds its critical value by every metric; Nemenyi's critical difference is carried along."""
    level = evidence.alpha if alpha is None else alpha
    numbers: dict[str, object] = {}
    holds = True
    n = k = 0
    for metric in metrics:
        ranks = _ranks(evidence, metric, methods, datasets)
        n, k = ranks.shape
        if n < 2 or k < 2:
            return Finding("inconclusive", {}, f"{n} datasets and {k} methods are too few for Friedman's test")
        test = iman_davenport(friedman(ranks.to_numpy(), tie_correction), n, k, level)
        numbers[metric] = round(test.F, 3)
        numbers["F_crit"] = round(test.F_crit, 3)
        holds &= bool(test.p < level)
    return Finding.of(holds, {**numbers, "CD": round(nemenyi_cd(k, n, level), 3)})


@check
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
        table = _ranks(evidence, metric, methods, datasets)
        ranks, limit = table.mean(axis=0), nemenyi_cd(len(methods), len(table), evidence.alpha)
        beaten = [other for other in methods if other != method and ranks[other] - ranks[method] > limit]
        worse = [other for other in methods if other != method and ranks[method] - ranks[other] > limit]
        numbers[metric] = {"better than": ", ".join(beaten) or "none", "worse than": ", ".join(worse) or "none"}
        won, pairs = won + len(beaten), pairs + len(methods) - 1
        holds &= set(better_than) <= set(beaten)
    holds &= won >= share * pairs - 1e-9
    return Finding.of(holds, {**numbers, "share": f"{won} of {pairs}", "CD": round(limit, 4)})


@check
def wins_minus_losses(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
    most: bool = False,
) -> Finding:
    """Holds if each of ``methods`` wins more cells than it loses against each of ``against``.

    A cell is one dataset and one metric; ties and cells without a value on either side count for neither. With ``most``
    it must win more than half of all cells.
    """
    numbers, holds = {}, True
    for method in methods:
        for other in against:
            won = lost = cells = 0
            for metric in metrics:
                table = evidence.means(metric, [method, other], datasets)
                gain = (table[method] - table[other]) * (1 if direction_of(metric) == "max" else -1)
                won, lost = won + int((gain > 1e-12).sum()), lost + int((gain < -1e-12).sum())
                cells += len(gain)
            numbers[f"{method} against {other}"] = f"{won}-{lost}"
            holds &= won > (cells / 2 if most else lost)
    return Finding.of(holds, numbers)


@check
def best_share(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    at_least: int,
    datasets: Sequence[str] | None = None,
    within: int = 1,
) -> Finding:
    """Holds if the method has rank ``within`` or better (ties included) in at least so many cells."""
    reached = alone = cells = 0
    for metric in metrics:
        table = evidence.means(metric, methods, datasets)
        rank = table.rank(axis=1, method="min", ascending=direction_of(metric) == "min")
        reached += int((rank[method] <= within).sum())
        alone += int(((rank[method] == 1) & ((rank == 1).sum(axis=1) == 1)).sum())
        cells += len(table)
    return Finding.of(reached >= at_least, {"reached": reached, "alone first": alone, "cells": cells})
