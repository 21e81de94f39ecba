"""Checks of the iMLDF claims: costs, and results that are not worse."""

from __future__ import annotations

from collections.abc import Sequence

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding


@check("On each of {datasets}: {metric} of {method} divided by that of {to} is from {at_least} to {at_most}.")
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
    ratios = table[method] / table[to]
    holds = (at_least is None or (ratios >= at_least).all()) and (at_most is None or (ratios <= at_most).all())
    return Finding.of(bool(holds), {str(name): round(float(value), 3) for name, value in ratios.items()})


@check(
    "By {metrics}, on {datasets}: {method} is as good as {than} or better in at least {at_least} cells; a "
    "cell is one dataset and one measure."
)
def not_worse(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    than: str,
    at_least: int,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if the method is as good as another, or better, in at least ``at_least`` cells (datasets x metrics)."""
    won = tied = cells = 0
    for metric in metrics:
        gain = evidence.gain(metric, method, than, datasets)
        won, tied = won + int((gain > 1e-12).sum()), tied + int((gain.abs() <= 1e-12).sum())
        cells += len(gain)
    return Finding.of(won + tied >= at_least, {"won": won, "tied": tied, "cells": cells})
