"""Checks on average ranks, Friedman's test, and wins and losses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding, direction_of
from multilab.statistics import friedman, iman_davenport, nemenyi_cd


@check("By {metrics}: {best} has a lower average rank than {against}; ranks among {methods}, over {datasets}.")
def best_average_rank(
    evidence: Evidence,
    metrics: Sequence[str],
    best: Sequence[str],
    methods: Sequence[str],
    against: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds for a metric if one of ``best`` has a lower average rank than all of ``against``.

    Ranks are taken among ``methods``; ``against`` defaults to all of them that are not ``best``. A tie fails.
    """
    others = [m for m in (against or methods) if m not in best]
    numbers, parts = {}, []
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        parts.append(min(ranks[list(best)]) < min(ranks[others]))
    return Finding.of(parts, numbers)


@check("By {metrics}: the average ranks over {datasets} rise strictly in the order {order}.")
def average_rank_order(
    evidence: Evidence,
    metrics: Sequence[str],
    order: Sequence[str],
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds for a metric if the average ranks rise strictly along ``order``; ranked among ``methods``."""
    numbers, parts = {}, []
    for metric in metrics:
        ranks = evidence.ranks(metric, methods or order, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(ranks[name]), 3) for name in order}
        parts.append(all(ranks[a] < ranks[b] for a, b in itertools.pairwise(order)))
    return Finding.of(parts, numbers)


@check("By {metrics}: Iman and Davenport's F over {datasets} exceeds its critical value at {alpha}; methods {methods}.")
def friedman_rejects(
    evidence: Evidence,
    metrics: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
    tie_correction: bool = True,
    alpha: float | None = None,
) -> Finding:
    """Holds for a metric if F_F exceeds its critical value; Nemenyi's critical difference is carried along."""
    level = evidence.alpha if alpha is None else alpha
    numbers: dict[str, object] = {}
    parts = []
    n = k = 0
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets)
        n, k = ranks.shape
        if n < 2 or k < 2:
            return Finding("not testable", {}, f"{n} datasets and {k} methods are too few for Friedman's test")
        test = iman_davenport(friedman(ranks.to_numpy(), tie_correction), n, k, level)
        numbers[metric] = round(test.F, 3)
        numbers["F_crit"] = round(test.F_crit, 3)
        parts.append(test.p < level)
    return Finding.of(parts, {**numbers, "CD": round(nemenyi_cd(k, n, level), 3)})


@check(
    "By {metrics}, on {datasets}: each of {methods} wins more {most:than half of all cells|cells than it "
    "loses} against each of {against}; a cell is one dataset and one measure."
)
def wins_minus_losses(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
    most: bool = False,
) -> Finding:
    """Holds for a pair of ``methods`` and ``against`` if the first wins more cells than it loses.

    A cell is one dataset and one metric; ties and cells without a value on either side count for neither. With ``most``
    it must win more than half of all cells.
    """
    numbers, parts = {}, []
    for method in methods:
        for other in against:
            won = lost = cells = 0
            for metric in metrics:
                gain = evidence.gain(metric, method, other, datasets)
                won, lost = won + int((gain > 1e-12).sum()), lost + int((gain < -1e-12).sum())
                cells += len(gain)
            numbers[f"{method} against {other}"] = f"{won}-{lost}"
            parts.append(won > (cells / 2 if most else lost))
    return Finding.of(parts, numbers)


@check(
    "By {metrics}, on {datasets}: {method} has rank {within} or better among {methods} in at least {at_least} "
    "cells; a cell is one dataset and one measure."
)
def best_share(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    at_least: int,
    datasets: Sequence[str] | None = None,
    within: int = 1,
) -> Finding:
    """Holds if the method has rank ``within`` or better (ties included) in at least ``at_least`` cells."""
    reached = alone = cells = 0
    for metric in metrics:
        table = evidence.means(metric, methods, datasets)
        rank = table.rank(axis=1, method="min", ascending=direction_of(metric) == "min")
        reached += int((rank[method] <= within).sum())
        alone += int(((rank[method] == 1) & ((rank == 1).sum(axis=1) == 1)).sum())
        cells += len(table)
    return Finding.of(reached >= at_least, {"reached": reached, "alone first": alone, "cells": cells})
