"""Checks on what one method costs, or is worth, beside another."""

from __future__ import annotations

from collections.abc import Sequence

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.claims.rank_checks import direction_of

__all__ = ["not_worse", "ratio"]


@check
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
    table = evidence.means(metric, [method, to], datasets)
    found = table[method] / table[to]
    holds = (at_least is None or (found >= at_least).all()) and (at_most is None or (found <= at_most).all())
    return Finding.of(bool(holds), {str(name): round(float(value), 3) for name, value in found.items()})


@check
def not_worse(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    than: str,
    at_least: int,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method is as good as another, or better, in at least so many cells (datasets x metrics)."""
    won = tied = cells = 0
    for metric in metrics:
        table = evidence.means(metric, [method, than], datasets)
        gain = (table[method] - table[than]) * (1 if direction_of(metric) == "max" else -1)
        won, tied = won + int((gain > 1e-12).sum()), tied + int((gain.abs() <= 1e-12).sum())
        cells += len(gain)
    return Finding.of(won + tied >= at_least, {"won": won, "tied": tied, "cells": cells})
