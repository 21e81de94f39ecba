"""Checks that several papers use: ranks and tests, values, the nearest column, arithmetic of published cells.

The checks of arithmetic are made for errata: each holds if the printed number is as wrong, or as right, as the entry
says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from multilab.audit import on_grid
from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.evidence import TIE, Evidence, Finding, direction_of, words
from multilab.claims.pairs import balance_text, pair_name
from multilab.claims.published import printed_number, rounds_to
from multilab.statistics import friedman, iman_davenport, nemenyi_cd, rank_rows, signed_rank_p
from multilab.statistics.summary import exact_mean


def _but_not_to(wrong: str | None) -> str:
    return "" if wrong is None else f" and not to {wrong}"


def best_average_rank(
    evidence: Evidence,
    metrics: Sequence[str],
    best: Sequence[str],
    methods: Sequence[str],
    against: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a metric if one of ``best`` has a lower average rank than all of ``against``.

    Ranks are taken among ``methods``; ``against`` defaults to all of them that are not ``best``. A tie fails.
    """
    others = [m for m in (against or methods) if m not in best]
    first = f"the best of {words(best)}" if len(best) > 1 else words(best)
    sentence = (
        f"By {words(metrics)}: {first} has a lower average rank than {words(others)}; "
        f"ranks among {words(methods)}, over {words(datasets)}."
    )
    numbers, parts = {}, []
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        parts.append(min(ranks[list(best)]) < min(ranks[others]))
    return Finding.of(parts, numbers, sentence)


def average_rank_order(
    evidence: Evidence,
    metrics: Sequence[str],
    order: Sequence[str],
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a metric if the average ranks rise strictly along ``order``; ranked among ``methods``."""
    sentence = (
        f"By {words(metrics)}: the average ranks over {words(datasets)} rise strictly in the order {words(order)}."
    )
    numbers, parts = {}, []
    for metric in metrics:
        ranks = evidence.ranks(metric, methods or order, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(ranks[name]), 3) for name in order}
        parts.append(all(ranks[a] < ranks[b] for a, b in itertools.pairwise(order)))
    return Finding.of(parts, numbers, sentence)


def friedman_rejects(
    evidence: Evidence,
    metrics: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
    tie_correction: bool = True,
    alpha: float | None = None,
) -> Finding:
    """True for a metric if F_F exceeds its critical value; Nemenyi's critical difference is carried along."""
    level = evidence.alpha if alpha is None else alpha
    sentence = (
        f"By {words(metrics)}: Iman and Davenport's F over {words(datasets)} exceeds "
        f"its critical value at {level}; methods {words(methods)}."
    )
    numbers: dict[str, object] = {}
    parts = []
    n = k = 0
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets)
        n, k = ranks.shape
        if n < 2 or k < 2:
            return Finding(
                "not testable", {}, f"{n} datasets and {k} methods are too few for Friedman's test", sentence=sentence
            )
        test = iman_davenport(friedman(ranks.to_numpy(), tie_correction), n, k, level)
        numbers[metric] = round(test.F, 3)
        numbers["F_crit"] = round(test.F_crit, 3)
        parts.append(test.p < level)
    return Finding.of(parts, {**numbers, "CD": round(nemenyi_cd(k, n, level), 3)}, sentence)


def wins_minus_losses(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
    most: bool = False,
) -> Finding:
    """True for a pair of ``methods`` and ``against`` if the first wins more cells than it loses.

    A cell is one dataset and one metric; ties and cells without a value on either side count for neither. With ``most``
    it must win more than half of all cells.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: each of {words(methods)} wins "
        f"more {'than half of all cells' if most else 'cells than it loses'} against each of "
        f"{words(against)}; a cell is one dataset and one measure."
    )
    numbers, parts = {}, []
    for method in methods:
        for other in against:
            won, lost, cells = evidence.won_and_lost(metrics, method, other, datasets)
            numbers[pair_name(method, other)] = balance_text(won, lost)
            parts.append(won > (cells / 2 if most else lost))
    return Finding.of(parts, numbers, sentence)


def best_share(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    at_least: int,
    datasets: Sequence[str] | None = None,
    within: int = 1,
) -> Finding:
    """True if the method has rank ``within`` or better (ties included) in at least ``at_least`` cells."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} has rank {within} or "
        f"better among {words(methods)} in at least {at_least} cells; a cell is one dataset and one "
        "measure."
    )
    cells = evidence.places(metrics, method, methods, datasets)
    reached = int((cells["place"] <= within).sum())
    numbers = {"reached": reached, "alone first": int(cells["alone"].sum()), "cells": len(cells)}
    return Finding.of(reached >= at_least, numbers, sentence)


def beats(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for two methods and a metric if the first is better over the datasets by Wilcoxon's signed-rank test.

    It is not testable on so few datasets that no difference could be significant.
    """
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: each of {words(methods)} is "
        f"better than each of {words(against)} by Wilcoxon's signed-rank test."
    )
    numbers, better, possible = {}, [], False
    for method in methods:
        for other in against:
            for metric in metrics:
                gain = evidence.gain(metric, method, other, datasets).dropna().to_numpy()
                p = signed_rank_p(gain)
                better.append(p < evidence.alpha and gain.sum() > 0)
                possible |= 2.0 ** (1 - len(gain)) < evidence.alpha  # the smallest p of this many differences
                summary = {
                    "median gain": round(float(np.median(gain)), 4),
                    "p": round(float(p), 4),
                    "datasets": len(gain),
                }
                numbers[pair_name(method, f"{other}, {metric}")] = summary
    if not possible:
        return Finding("not testable", numbers, "too few datasets for a significant difference", sentence=sentence)
    return Finding.of(better, numbers, sentence)


def value_is(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    value: float,
    datasets: Sequence[str],
    tolerance: float = 1e-9,
) -> Finding:
    """True for a method and a dataset if a quantity has the value in every repetition."""
    sentence = f"On each of {words(datasets)}, in every repetition: {words(metric)} of {words(methods)} is {value:g}."
    counts = _repetitions_with(evidence, methods, metric, value, datasets, tolerance)
    return Finding.of([equal == runs for equal, runs in counts.values()], _counted(counts), sentence)


def value_in_some(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    value: float,
    datasets: Sequence[str],
    tolerance: float = 1e-9,
) -> Finding:
    """True for a method and a dataset if a quantity has the value in some repetition."""
    sentence = (
        f"On each of {words(datasets)}, in at least one repetition: {words(metric)} of {words(methods)} is {value:g}."
    )
    counts = _repetitions_with(evidence, methods, metric, value, datasets, tolerance)
    return Finding.of([equal > 0 for equal, _ in counts.values()], _counted(counts), sentence)


def _repetitions_with(
    evidence: Evidence, methods: Sequence[str], metric: str, value: float, datasets: Sequence[str], tolerance: float
) -> dict[str, tuple[int, int]]:
    """Return per dataset and method in how many repetitions, of how many, a quantity has a value."""
    counts = {}
    for dataset in datasets:
        runs = evidence.runs(metric, methods, [dataset])
        for method in methods:
            equal = (runs[method] - value).abs() <= tolerance
            counts[f"{method} on {dataset}"] = int(equal.sum()), len(equal)
    return counts


def _counted(counts: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    return {name: f"{equal} of {runs}" for name, (equal, runs) in counts.items()}


def monotone_in(
    evidence: Evidence,
    method: str | Sequence[str],
    table: str,
    x: str,
    y: str,
    direction: str = "up",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """True for a dataset if ``y`` goes ``up`` (or ``down``) with ``x`` by Spearman's correlation."""
    sentence = f"On every dataset: {y} of {words(method)} goes {direction} with {x} by Spearman's correlation."
    numbers: dict[str, Any] = {}
    parts = []
    chosen = evidence.table(table, method=method, **(fixed or {}))
    for (dataset, who), rows in chosen.groupby(["dataset", "method"]):
        steady = rows[y].nunique() < 2 or rows[x].nunique() < 2
        rho = 0.0 if steady else float(spearmanr(rows[x], rows[y]).statistic)
        numbers[f"{who} on {dataset}"] = round(rho, 3)
        parts.append((rho if direction == "up" else -rho) > 0)
    return Finding.of(parts, numbers, sentence)


def nearer_to_published(
    evidence: Evidence,
    printed: str,
    method: str,
    others: Sequence[str] | Mapping[str, str],
    metrics: Sequence[str] | Mapping[str, str],
    datasets: Sequence[str],
    at_least: int,
) -> Finding:
    """True if in enough cells one of our columns is nearer to the published number than each of the others.

    Parameters
    ----------
    evidence : Evidence
        Our results, with the published cells.
    printed : str
        The published method.
    method : str
        Our column.
    others : sequence of str or mapping of str to str
        Our other columns; a mapping has our quantity of each, where that is not the one of ``method``.
    metrics : sequence of str or mapping of str to str
        Published metrics; a mapping has our quantity for each.
    datasets : sequence of str
    at_least : int
        In how many cells, datasets x metrics. A tie is not nearer. The numbers have the median relative gaps.

    Raises
    ------
    ClaimsError
        Without another column.
    """
    sentence = (
        f"By {_quantities(metrics)}, on {words(datasets)}: our {method} is nearer to the "
        f"published {printed} than each of {words(others)}, in at least {at_least} cells; a cell is one "
        "dataset and one measure."
    )
    quantities = metrics if isinstance(metrics, Mapping) else {metric: metric for metric in metrics}
    columns: list[tuple[str, str | None]] = [(method, None)]
    columns += others.items() if isinstance(others, Mapping) else [(other, None) for other in others]
    if len(columns) < 2:
        raise ClaimsError("check nearer_to_published: `others` names at least one column")
    cells = {metric: evidence.printed(printed, metric, datasets)["mean"] for metric in quantities}
    published = pd.concat(cells)
    own, *rest = ((_ours(evidence, column, quantities, datasets) - published).abs() for column in columns)
    near = pd.concat([other - own > TIE for other in rest], axis=1).all(axis=1)
    numbers: dict[str, object] = {"nearer": int(near.sum()), "cells": len(near)}
    if not near.all():
        names = [f"{metric} on {dataset}" if len(cells) > 1 else dataset for metric, dataset in near.index[~near]]
        numbers["not nearer"] = ", ".join(names)
    for column, gaps in zip(columns, (own, *rest), strict=True):
        numbers[f"median gap of {_title(*column)}"] = f"{(gaps / published.abs()).median():.2%}"
    return Finding.of(int(near.sum()) >= at_least, numbers, sentence)


def _quantities(metrics: Sequence[str] | Mapping[str, str]) -> str:
    if not isinstance(metrics, Mapping):
        return words(metrics)
    return ", ".join(f"{printed} (our {words(ours)})" for printed, ours in metrics.items())


def nearer_by_signed_rank(
    evidence: Evidence,
    printed: str,
    method: str,
    other: str,
    metrics: Sequence[str] | Mapping[str, str],
    datasets: Sequence[str],
) -> Finding:
    """True if one of our columns is nearer to the published numbers than another by Wilcoxon's signed-rank test.

    Its units are the datasets, each with the mean over the metrics of the relative gap to the published number; cells
    of one dataset are no independent evidence.

    Parameters
    ----------
    evidence : Evidence
        Our results, with the published cells.
    printed : str
        The published method.
    method, other : str
        Our columns.
    metrics : sequence of str or mapping of str to str
        Published metrics; a mapping has our quantity for each.
    datasets : sequence of str
    """
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: our {method} is nearer to the published {printed} than "
        f"{other} by "
        f"Wilcoxon's signed-rank test of the relative gaps at .05."
    )
    quantities = metrics if isinstance(metrics, Mapping) else {metric: metric for metric in metrics}
    published = pd.concat({metric: evidence.printed(printed, metric, datasets)["mean"] for metric in quantities})
    gaps = []
    for column in (method, other):
        gap = (_ours(evidence, (column, None), quantities, datasets) - published).abs() / published.abs()
        gaps.append(gap.groupby(level=1).mean())
    own, theirs = gaps
    p = signed_rank_p((theirs - own).to_numpy())
    numbers = {
        "nearer on": f"{int((own < theirs).sum())} of {len(own)} datasets",
        "p": float(f"{p:.2g}"),
        f"median gap of {method}": f"{own.median():.2%}",
        f"median gap of {other}": f"{theirs.median():.2%}",
    }
    return Finding.of(bool(p < 0.05 and (theirs - own).sum() > 0), numbers, sentence)


def _title(column: str, quantity: str | None) -> str:
    return f"{column} by {quantity}" if quantity else column


def _ours(
    evidence: Evidence, column: tuple[str, str | None], quantities: Mapping[str, str], datasets: Sequence[str]
) -> pd.Series:
    """Return our means of a column, by published metric and dataset; its own quantity replaces those of the metrics."""
    name, own = column
    parts = {metric: evidence.means(own or quantity, [name], datasets)[name] for metric, quantity in quantities.items()}
    return pd.concat(parts)


def _rows(evidence: Evidence, where: Mapping[str, Any]) -> pd.DataFrame:
    """Return the cells that a selector selects, those without a number left out."""
    cells = evidence.scores
    for key, value in where.items():
        cells = cells[cells[key].isin([str(v) for v in value] if isinstance(value, list | tuple) else [str(value)])]
    cells = cells.dropna(subset="value")
    if cells.empty:
        raise NotYet(f"no cell with {', '.join(f'{k} {v}' for k, v in where.items())}")
    return cells


def mean_of_rows(
    evidence: Evidence,
    where: Mapping[str, Any],
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
    changed: Mapping[str, float] | None = None,
) -> Finding:
    """True if the mean of some rows rounds to ``right`` (and not to ``wrong``), with some of them ``changed``."""
    sentence = f"The mean of {words(where)} over {words(datasets)} rounds to {right}{_but_not_to(wrong)}."
    rows = _rows(evidence, {**where, "dataset": list(datasets)}).set_index("dataset")["value"]
    for dataset, value in (changed or {}).items():
        rows[dataset] = value
    mean = exact_mean(rows)
    fits = rounds_to(mean, right)
    differs = wrong is None or not rounds_to(mean, wrong)
    return Finding.of(fits and differs, {"mean of the rows": round(mean, 6), "rows": len(rows)}, sentence)


def sums_to(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    total: float,
    datasets: Sequence[str],
    at_least: int,
    slack: float = 0.002,
) -> Finding:
    """True if on enough datasets some measures of a method sum to a constant, as accuracy and Hamming loss to 1."""
    sentence = f"On {at_least} or more of {words(datasets)}: the sum of {words(metrics)} of {method} is {total:g}."
    rows = _rows(evidence, {"method": method, "metric": list(metrics), "dataset": list(datasets)})
    table = rows.pivot_table(index="dataset", columns="metric", values="value").dropna()
    sums = table.sum(axis=1)
    fitting = int(((sums - total).abs() <= slack).sum())
    return Finding.of(fitting >= at_least, {"datasets that fit": fitting, "datasets": len(sums)}, sentence)


def average_rank_of_rows(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metric: str,
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
) -> Finding:
    """True if the average rank of a method, from the rows, rounds to ``right`` (and not to ``wrong``)."""
    sentence = (
        f"By {words(metric)}: the average rank of {method} among {words(methods)} over "
        f"{words(datasets)} is {right}{f' and not {wrong}' if wrong is not None else ''}."
    )
    table = evidence.means(metric, methods, datasets)
    rank = float(rank_rows(table, direction_of(metric))[method].mean())
    fits = rounds_to(rank, right)
    differs = wrong is None or not rounds_to(rank, wrong)
    return Finding.of(fits and differs, {"average rank": round(rank, 4)}, sentence)


def friedman_from_rows(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    datasets: Sequence[str],
    right: str,
    wrong: str | None = None,
) -> Finding:
    """True if Iman and Davenport's F_F of the rows, without correction for ties, rounds to ``right``."""
    sentence = (
        f"By {words(metric)}: F_F of {words(methods)} over {words(datasets)}, from "
        f"the rows, rounds to {right}{_but_not_to(wrong)}."
    )
    ranks = rank_rows(evidence.means(metric, methods, datasets), direction_of(metric))
    n, k = ranks.shape
    value = iman_davenport(friedman(ranks.to_numpy(), tie_correction=False), n, k).F
    fits = rounds_to(value, right)
    differs = wrong is None or not rounds_to(value, wrong)
    return Finding.of(fits and differs, {"F_F": round(float(value), 4)}, sentence)


def multiples_of(
    evidence: Evidence, where: Mapping[str, Any], n: int, fits: bool = True, none: bool = False
) -> Finding:
    """True if every selected cell is k / n rounded; with ``fits`` false if not all are, with ``none`` if none is."""
    sentence = (
        f"All of {words(where)} {'are' if fits else 'are not all'} multiples of 1 / {n}, to the printed decimals."
    )
    rows = _rows(evidence, where)
    printed = rows["printed"] if "printed" in rows else rows["value"].map(str)
    near = [on_grid(printed_number(text), n) for text in printed]
    numbers = {"multiples": sum(near), "cells": len(near), "n": n}
    return Finding.of(not any(near) if none else all(near) == fits, numbers, sentence)


def columns_equal(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    at_least: int,
    tolerance: float = 0.0,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if two methods have the same value in enough cells."""
    sentence = (
        f"{words(methods)} have the same {words(metrics)} on {at_least} or more of their cells, to {tolerance:g}."
    )
    equal = cells = 0
    first, second = methods
    for metric in metrics:
        gains = evidence.gain(metric, first, second, datasets).dropna().abs()
        equal, cells = equal + int((gains <= tolerance + TIE).sum()), cells + len(gains)
    return Finding.of(equal >= at_least, {"equal": equal, "cells": cells}, sentence)


def value_printed(evidence: Evidence, where: Mapping[str, Any], value: str) -> Finding:
    """True if one cell has a printed value: for errata that quote one."""
    sentence = f"The printed cell {words(where)} is {value}."
    rows = _rows(evidence, where)
    value_here = float(rows["value"].iloc[0])
    return Finding.of(
        len(rows) == 1 and math.isclose(value_here, float(value), abs_tol=TIE), {"value": value_here}, sentence
    )


def values_between(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    low: float | None = None,
    high: float | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if all runs of some methods by some metrics lie in a range, or on one side of a bound.

    Raises
    ------
    ClaimsError
        Without a bound: it would hold for any values.
    """
    sentence = (
        f"All values of {words(metrics)} of {words(methods)} on {words(datasets)} "
        f"are from {words(low, 'minus infinity')} to {words(high, 'infinity')}."
    )
    if low is None and high is None:
        raise ClaimsError("check values_between: `low`, `high` or both are needed")
    values = pd.concat([evidence.runs(metric, methods, datasets).stack() for metric in metrics])
    numbers = {"smallest": round(float(values.min()), 4), "largest": round(float(values.max()), 4)}
    lowest, highest = -math.inf if low is None else low, math.inf if high is None else high
    return Finding.of(bool(values.between(lowest, highest).all()), numbers, sentence)
