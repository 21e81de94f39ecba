"""Checks of arithmetic on published cells: averages, ranks, sums, ranges, resolutions, repeated columns.

They are made for errata: each holds if the printed number is as wrong, or as right, as the entry says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from multilab.claims.checks import check
from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.evidence import Evidence, Finding, direction_of
from multilab.claims.naming import half_unit
from multilab.statistics import friedman, iman_davenport, rank_rows


def _rows(evidence: Evidence, where: Mapping[str, Any]) -> pd.DataFrame:
    """Return the cells that a selector selects, those without a number left out."""
    cells = evidence.scores
    for key, value in where.items():
        cells = cells[cells[key].isin([str(v) for v in value] if isinstance(value, list | tuple) else [str(value)])]
    cells = cells.dropna(subset="value")
    if cells.empty:
        raise NotYet(f"no cell with {', '.join(f'{k} {v}' for k, v in where.items())}")
    return cells


@check("The mean of {where} over {datasets} rounds to {right}{wrong: and not to %s}.")
def mean_of_rows(
    evidence: Evidence,
    where: Mapping[str, Any],
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
    changed: Mapping[str, float] | None = None,
) -> Finding:
    """Holds if the mean of some rows rounds to ``right`` (and not to ``wrong``), with some of them ``changed``."""
    rows = _rows(evidence, {**where, "dataset": list(datasets)}).set_index("dataset")["value"]
    for dataset, value in (changed or {}).items():
        rows[dataset] = value
    mean = float(rows.mean())
    fits = abs(mean - float(right)) <= half_unit(right)
    differs = wrong is None or abs(mean - float(wrong)) > half_unit(wrong)
    return Finding.of(fits and differs, {"mean of the rows": round(mean, 6), "rows": len(rows)})


@check("On {at_least} or more of {datasets}: the sum of {metrics} of {method} is {total}.")
def sums_to(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    total: float,
    datasets: Sequence[str],
    at_least: int,
    slack: float = 0.002,
) -> Finding:
    """Holds if on enough datasets some measures of a method sum to a constant, as accuracy and Hamming loss to 1."""
    rows = _rows(evidence, {"method": method, "metric": list(metrics), "dataset": list(datasets)})
    table = rows.pivot_table(index="dataset", columns="metric", values="value").dropna()
    sums = table.sum(axis=1)
    fitting = int(((sums - total).abs() <= slack).sum())
    return Finding.of(fitting >= at_least, {"datasets that fit": fitting, "datasets": len(sums)})


@check("By {metric}: the average rank of {method} among {methods} over {datasets} is {right}{wrong: and not %s}.")
def average_rank_of_rows(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metric: str,
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
) -> Finding:
    """Holds if the average rank of a method, from the rows, rounds to ``right`` (and not to ``wrong``)."""
    table = evidence.means(metric, methods, datasets)
    rank = float(rank_rows(table, direction_of(metric))[method].mean())
    fits = abs(rank - float(right)) <= half_unit(right)
    differs = wrong is None or abs(rank - float(wrong)) > half_unit(wrong)
    return Finding.of(fits and differs, {"average rank": round(rank, 4)})


@check("By {metric}: F_F of {methods} over {datasets}, from the rows, rounds to {right}{wrong: and not to %s}.")
def friedman_from_rows(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
) -> Finding:
    """Holds if Iman and Davenport's F_F of the rows, without correction for ties, rounds to ``right``."""
    ranks = rank_rows(evidence.means(metric, methods, datasets), direction_of(metric))
    n, k = ranks.shape
    value = iman_davenport(friedman(ranks.to_numpy(), tie_correction=False), n, k).F
    fits = abs(value - float(right)) <= half_unit(right)
    differs = wrong is None or abs(value - float(wrong)) > half_unit(wrong)
    return Finding.of(fits and differs, {"F_F": round(float(value), 4)})


@check("All of {where} {fits:are|are not all} multiples of 1 / {n}, to the printed decimals.")
def multiples_of(
    evidence: Evidence, where: Mapping[str, Any], n: int, fits: bool = True, none: bool = False
) -> Finding:
    """Holds if every selected cell is k / n rounded; with ``fits`` false if not all are, with ``none`` if no one is."""
    rows = _rows(evidence, where)
    printed = rows["printed"] if "printed" in rows else rows["value"].map(str)
    near = [abs(v - round(v * n) / n) <= half_unit(text) for v, text in zip(rows["value"], printed, strict=True)]
    numbers = {"multiples": sum(near), "cells": len(near), "n": n}
    return Finding.of(not any(near) if none else all(near) == fits, numbers)


@check("{methods} have the same {metrics} on {at_least} or more of their cells, to {tolerance}.")
def columns_equal(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    at_least: int,
    tolerance: float = 0.0,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if two methods have the same value in enough cells."""
    equal = cells = 0
    first, second = methods
    for metric in metrics:
        gains = evidence.gain(metric, first, second, datasets).dropna().abs()
        equal, cells = equal + int((gains <= tolerance + 1e-12).sum()), cells + len(gains)
    return Finding.of(equal >= at_least, {"equal": equal, "cells": cells})


@check("The printed cell {where} is {value}.")
def value_printed(evidence: Evidence, where: Mapping[str, Any], value: str) -> Finding:
    """Holds if one cell has a printed value: for errata that quote one."""
    rows = _rows(evidence, where)
    value_here = float(rows["value"].iloc[0])
    return Finding.of(len(rows) == 1 and math.isclose(value_here, float(value), abs_tol=1e-12), {"value": value_here})


@check("All values of {metrics} of {methods} on {datasets} are from {low} to {high}.")
def values_between(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    low: float | None = None,
    high: float | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if all runs of some methods by some metrics lie in a range, or on one side of a bound.

    Raises
    ------
    ClaimsError
        Without a bound: it would hold for any values.
    """
    if low is None and high is None:
        raise ClaimsError("check values_between: `low`, `high` or both are needed")
    values = pd.concat([evidence.runs(metric, methods, datasets).stack() for metric in metrics])
    numbers = {"smallest": round(float(values.min()), 4), "largest": round(float(values.max()), 4)}
    lowest, highest = -math.inf if low is None else low, math.inf if high is None else high
    return Finding.of(bool(values.between(lowest, highest).all()), numbers)
