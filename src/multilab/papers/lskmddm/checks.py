"""Checks of the LSkMDDM claims and errata: equal results, growth with the dimension and of costs, equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from multilab.claims.errors import NotYet
from multilab.claims.evidence import Evidence, Finding, words


def agree_within(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    tolerance: float,
    datasets: Sequence[str] | None = None,
    of_means: bool = False,
) -> Finding:
    """Holds for a metric and a dataset if no two of the methods differ by more than the tolerance: on every split, or
    in the means.

    The numbers are the largest differences, by metric, and where they are.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {words(methods)} differ by at "
        f"most {tolerance:g} {'in the means' if of_means else 'on every split'}."
    )
    numbers: dict[str, object] = {}
    parts = []
    for metric in metrics:
        table = (evidence.means if of_means else evidence.runs)(metric, methods, datasets)
        spread = table.max(axis=1) - table.min(axis=1)
        where = spread.idxmax()
        numbers[metric] = f"{spread.max():.2g} on {where if of_means else f'{where[0]}, split {where[1]}'}"
        parts += list(spread.groupby(level="dataset", sort=False).max() <= tolerance)
    return Finding.of(parts, numbers, sentence)


def rises_with(
    evidence: Evidence,
    methods: Sequence[str],
    table: str,
    x: str,
    y: str,
    by: str,
    datasets: Sequence[str] | None = None,
    least: float | None = None,
) -> Finding:
    """Holds for a method, a dataset and a value of the column ``by`` if Spearman's correlation of ``y`` and ``x`` is
    above 0, or at least ``least``.

    The numbers are the smallest correlations and how many are below.
    """
    sentence = (
        f"On {words(datasets)}: {table} of each of {words(methods)} by {y} rises with "
        f"{x}, Spearman's rho {f'at least {least:g}' if least is not None else 'above 0'}."
    )
    rows = evidence.table(table, method=list(methods), **({"dataset": list(datasets)} if datasets else {}))
    rho = {
        " ".join(map(str, names)): float(spearmanr(curve[x], curve[y]).statistic)
        for names, curve in rows.groupby(["method", "dataset", by], sort=False)
    }
    parts = {name: value > 0 if least is None else value >= least for name, value in rho.items()}
    smallest = min(rho, key=lambda name: rho[name])
    low = {name: round(rho[name], 3) for name, fits in parts.items() if not fits}
    return Finding.of(
        parts.values(), {"smallest": f"{rho[smallest]:.3f}, {smallest}", "below": low, "curves": len(rho)}, sentence
    )


def steeper(evidence: Evidence, variant: str, others: Sequence[str], table: str, margin: float = 0.0) -> Finding:
    """Holds for a dataset and another variant if the log-log slope of the variant's cost is above by the margin."""
    sentence = (
        f"On every dataset: the log-log slope of the cost of {variant} is above that of each of "
        f"{words(others)} by more than {margin:g}."
    )
    rows = evidence.table(table, variant=[variant, *others])
    slopes = rows.groupby(["dataset", "variant"], sort=False)["slope"].first().unstack()
    numbers = {name: {str(d): round(float(v), 2) for d, v in slopes[name].items()} for name in [variant, *others]}
    parts = [gap > margin for other in others for gap in slopes[variant] - slopes[other]]
    return Finding.of(parts, numbers, sentence)


def costlier_at(
    evidence: Evidence, variant: str, others: Sequence[str], table: str, x: str, at: float, y: str
) -> Finding:
    """Holds for a dataset and another variant if the variant's ``y`` is above at one ``x``."""
    sentence = f"On every dataset: at {x} {at:g} the {y} of {variant} is above that of each of {words(others)}."
    values = _at(evidence, [variant, *others], table, x, at, y)
    numbers = {name: {str(d): float(f"{v:.2g}") for d, v in values[name].items()} for name in values}
    return Finding.of([gap > 0 for other in others for gap in values[variant] - values[other]], numbers, sentence)


def alike_at(
    evidence: Evidence, variants: Sequence[str], table: str, x: str, at: float, of: float, y: str, share: float
) -> Finding:
    """Holds for a dataset if ``y`` of the variants differs at one ``x`` by a share of the largest at another ``x``."""
    sentence = (
        f"On every dataset: at {x} {at:g} the {y} of {words(variants)} differ by at most {share:g} of "
        f"the largest at {x} {of:g}, the end of the axis."
    )
    values = _at(evidence, variants, table, x, at, y)
    largest = _at(evidence, variants, table, x, of, y).max(axis=1)
    shares = (values.max(axis=1) - values.min(axis=1)) / largest
    numbers: dict[str, object] = {str(d): {v: f"{row[v]:.2g}" for v in variants} for d, row in values.iterrows()}
    return Finding.of(
        shares <= share, {**numbers, "share": {str(d): round(float(s), 3) for d, s in shares.items()}}, sentence
    )


def _at(evidence: Evidence, variants: Sequence[str], table: str, x: str, at: float, y: str) -> Any:
    """Return the mean ``y`` at one ``x``, datasets x variants."""
    rows = evidence.table(table, variant=list(variants), **{x: at})
    return rows.groupby(["dataset", "variant"], sort=False)[y].mean().unstack()[list(variants)]


def datasets_named(evidence: Evidence, tables: Sequence[str], prefix: str, count: int) -> Finding:
    """Holds if the published tables have a number of data sets, with numbers in their cells or not."""
    sentence = f"The cells of the tables {words(tables)} name {count} data sets that begin with {prefix}."
    rows = evidence.scores[evidence.scores["table"].astype(str).isin([str(table) for table in tables])]
    names = sorted({name for name in rows["dataset"] if str(name).startswith(prefix)})
    if not names:
        raise NotYet(f"no cell of the tables {', '.join(map(str, tables))}")
    return Finding.of(len(names) == count, {"data sets": len(names), "named": names}, sentence)


def equations_by_numbers(evidence: Evidence, n: int = 60, equal: int = 0, seed: int = 0) -> Finding:
    """Holds if the equations (1) and (2) are related as Theorem 1 says with the right numbers.

    Parameters
    ----------
    evidence : Evidence
        Not used.
    n : int
        Number of instances.
    equal : int
        Number of instances that repeat others, with labels of their own.
    seed : int
    """
    sentence = (
        f"On {n} random instances with {equal} pairs of equal ones: eigenvectors of (2) and K p = b solve "
        "(1), those of (1) do not solve (2), and equal instances with other labels make K p = b "
        "unsolvable until the targets are averaged."
    )
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 4)), rng.integers(2, size=(n, 3)).astype(float)
    X[n - equal :] = X[:equal]
    Q = Y - Y.mean(axis=0)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = np.exp(-distances)
    V, _, _ = np.linalg.svd(Q, full_matrices=False)
    w, U = np.linalg.eigh(K)
    kept = w > 1e-10 * w[-1]
    projected = U[:, kept] @ (U[:, kept].T @ Q)
    B, sigma, _ = np.linalg.svd(projected, full_matrices=False)
    inverse = (U[:, kept] / w[kept]) @ U[:, kept].T
    P = inverse @ B

    def residual(left: np.ndarray, right: np.ndarray) -> float:
        return float(np.linalg.norm(left - right) / np.linalg.norm(right))

    literal = residual(K @ (inverse @ V), V)
    numbers: Mapping[str, float] = {
        "residual of (1) for K p = b, b of (2)": residual(K @ Q @ (Q.T @ (K @ P)), K @ (K @ P) * sigma**2),
        "residual of (2) for p of (1)": residual(Q @ (Q.T @ P), P * sigma**2),
        "residual of K p = b as printed": literal,
        "rank of K": int(kept.sum()),
    }
    values = list(numbers.values())
    parts = [values[0] < 1e-8, values[1] > 0.1, (literal > 0.01) == (equal > 0), values[3] == n - equal]
    return Finding.of(parts, {name: float(f"{value:.3g}") for name, value in numbers.items()}, sentence)
