"""Checks of the LSkMDDM claims: equal results, and growth of costs."""

from __future__ import annotations

from collections.abc import Sequence

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding


@check("By {metrics}, on {datasets}: {methods} differ by at most {tolerance}{of_means: in the means| on every split}.")
def agree_within(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    tolerance: float,
    datasets: Sequence[str] | None = None,
    of_means: bool = False,
) -> Finding:
    """Holds if no two of the methods differ by more than the tolerance on any dataset: on every split, or in the means.

    The numbers are the largest differences, by metric, and where they are.
    """
    numbers: dict[str, object] = {}
    holds = True
    for metric in metrics:
        table = (evidence.means if of_means else evidence.runs)(metric, methods, datasets)
        spread = table.max(axis=1) - table.min(axis=1)
        where = spread.idxmax()
        numbers[metric] = f"{spread.max():.2g} on {where if of_means else f'{where[0]}, split {where[1]}'}"
        holds &= bool((spread <= tolerance).all())
    return Finding.of(holds, numbers)


@check("On every dataset: the log-log slope of the cost of {variant} is above that of each of {others}.")
def steeper(evidence: Evidence, variant: str, others: Sequence[str], table: str, margin: float = 0.0) -> Finding:
    """Holds if on every dataset the log-log slope of the variant's cost is above that of each other by the margin."""
    rows = evidence.table(table, variant=[variant, *others])
    slopes = rows.groupby(["dataset", "variant"], sort=False)["slope"].first().unstack()
    numbers = {name: {str(d): round(float(v), 2) for d, v in slopes[name].items()} for name in [variant, *others]}
    holds = all(bool((slopes[variant] - slopes[other] > margin).all()) for other in others)
    return Finding.of(holds, numbers)


@check("On every dataset: at {x} {at} the largest {y} of {variants} is at most {factor} times the least.")
def alike_at(
    evidence: Evidence, variants: Sequence[str], table: str, x: str, at: float, y: str, factor: float
) -> Finding:
    """Holds if on every dataset the largest ``y`` of the variants at one ``x`` is at most a factor times the least."""
    rows = evidence.table(table, variant=list(variants), **{x: at})
    values = rows.groupby(["dataset", "variant"], sort=False)[y].mean().unstack()[list(variants)]
    numbers: dict[str, object] = {str(d): {v: f"{row[v]:.2g}" for v in variants} for d, row in values.iterrows()}
    ratio = values.max(axis=1) / values.min(axis=1)
    return Finding.of(bool((ratio <= factor).all()), {**numbers, "largest ratio": round(float(ratio.max()), 1)})
