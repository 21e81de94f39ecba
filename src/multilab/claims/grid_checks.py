"""Checks on tables over parameters or iterations: sensitivity, convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.claims.rank_checks import direction_of

__all__ = ["below_by", "flat_in", "monotone_in", "rises_then_falls", "worse_beyond"]


def _grid(evidence: Evidence, table: str, method: str, metric: str, fixed: Mapping[str, Any] | None) -> Any:
    rows = evidence.table(table, method=method, metric=metric, **(fixed or {}))
    return rows.assign(gain=rows["value"] * (1 if direction_of(metric) == "max" else -1))


@check
def worse_beyond(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    limit: float,
    margin: float = 0.01,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if on every dataset the best value beyond the limit is worse than the best up to it by the margin."""
    numbers: dict[str, Any] = {}
    holds = True
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        beyond, within = rows[rows[parameter] > limit], rows[rows[parameter] <= limit]
        if beyond.empty or within.empty:
            return Finding("inconclusive", numbers, f"{table}.csv has {parameter} on one side of {limit} only")
        best, late = rows.loc[within["gain"].idxmax()], rows.loc[beyond["gain"].idxmax()]
        numbers[str(dataset)] = {"best up to": round(best["value"], 4), "best beyond": round(late["value"], 4)}
        holds &= bool(best["gain"] - late["gain"] >= margin)
    return Finding.of(holds, {**numbers, "limit": limit})


@check
def rises_then_falls(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    margin: float = 0.01,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if on every dataset the best value lies inside the parameter's range, better than both ends by the margin.

    Where other parameters vary, each value of ``parameter`` stands for the mean over them.
    """
    numbers: dict[str, Any] = {}
    holds = True
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        curve = rows.groupby(parameter)["gain"].mean()
        values = rows.groupby(parameter)["value"].mean()
        told = {"first": values.iloc[0], "best": values[curve.idxmax()], "last": values.iloc[-1]}
        numbers[str(dataset)] = {**{k: round(float(v), 4) for k, v in told.items()}, "best at": float(curve.idxmax())}
        holds &= bool(curve.max() - max(curve.iloc[0], curve.iloc[-1]) >= margin)
    return Finding.of(holds, numbers)


@check
def flat_in(
    evidence: Evidence,
    method: str,
    metric: str,
    by: Sequence[str],
    tolerance: float = 0.02,
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if the range of the values is at most the tolerance at every combination of the parameters in ``by``."""
    rows = _grid(evidence, table, method, metric, fixed)
    spread = rows.groupby(["dataset", *by])["value"].agg(lambda v: v.max() - v.min())
    worst = spread.groupby("dataset").max()
    numbers = {str(dataset): round(float(value), 4) for dataset, value in worst.items()}
    return Finding.of(bool((spread <= tolerance).all()), {**numbers, "tolerance": tolerance})


@check
def monotone_in(
    evidence: Evidence,
    method: str | Sequence[str],
    table: str,
    x: str,
    y: str,
    direction: str = "up",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if on every dataset ``y`` goes ``up`` (or ``down``) with ``x`` by Spearman's correlation."""
    from scipy.stats import spearmanr

    numbers: dict[str, Any] = {}
    holds = True
    chosen = evidence.table(table, method=method, **(fixed or {}))
    for (dataset, who), rows in chosen.groupby(["dataset", "method"]):
        steady = rows[y].nunique() < 2 or rows[x].nunique() < 2
        rho = 0.0 if steady else float(spearmanr(rows[x], rows[y]).statistic)
        numbers[f"{who} on {dataset}"] = round(rho, 3)
        holds &= (rho if direction == "up" else -rho) > 0
    return Finding.of(holds, numbers)


@check
def below_by(
    evidence: Evidence,
    at: Mapping[str, int],
    limit: float,
    table: str = "convergence",
    x: str = "iteration",
    y: str = "gap",
) -> Finding:
    """Holds if every method's ``y`` is below the limit from ``x = at[method]`` on, on every dataset."""
    numbers: dict[str, Any] = {}
    holds = True
    for method, bound in at.items():
        for dataset, rows in evidence.table(table, method=method).groupby("dataset"):
            late = rows[rows[x] >= bound]
            if late.empty:
                return Finding("inconclusive", numbers, f"{table}.csv stops before {x} {bound} for {method}")
            numbers[f"{method} on {dataset}"] = float(f"{late[y].max():.3g}")
            holds &= bool((late[y] < limit).all())
    return Finding.of(holds, {**numbers, "limit": limit})
