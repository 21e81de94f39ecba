"""Checks of the LSkMDDM claims and errata: which reduction is better, on how many sets, at what cost; equations."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from multilab.claims.errors import NotYet
from multilab.claims.evidence import TIE, Evidence, Finding, direction_of, words
from multilab.claims.pairs import balance_text, pair_name
from multilab.statistics import signed_rank_p


def agree_within(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    tolerance: float | None = None,
    datasets: Sequence[str] | None = None,
    of_means: bool = False,
) -> Finding:
    """True for a metric and a dataset if no two of the methods differ by more than the tolerance: on every split, or
    in the means. Without a tolerance the finding says for which ones it holds.

    The numbers are the largest differences, by metric, and where they are.
    """
    where_from = "in the means" if of_means else "on every split"
    bound = "little" if tolerance is None else f"by at most {tolerance:g}"
    sentence = f"By {words(metrics)}, on {words(datasets)}: {words(methods)} differ {bound} {where_from}."
    numbers: dict[str, object] = {}
    gaps: dict[str, float] = {}
    for metric in metrics:
        table = (evidence.means if of_means else evidence.runs)(metric, methods, datasets)
        spread = table.max(axis=1) - table.min(axis=1)
        where = spread.idxmax()
        numbers[metric] = f"{spread.max():.2g} on {where if of_means else f'{where[0]}, split {where[1]}'}"
        largest = spread.groupby(level="dataset", sort=False).max()
        gaps |= {f"{metric} {dataset}": float(gap) for dataset, gap in largest.items()}
    return Finding.at_most(gaps, tolerance, numbers, sentence, of="differences")


def better_than(
    evidence: Evidence,
    methods: Sequence[str],
    against: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str],
    everywhere: bool = False,
) -> Finding:
    """True for two methods and a metric if the first is better over the datasets by Wilcoxon's signed-rank test.

    With ``everywhere`` it must be better on each of them instead. A method is not better than one that has its column.
    The numbers are the sets won and lost, and p.
    """
    how = "on each of them" if everywhere else f"by Wilcoxon's signed-rank test at {evidence.alpha:g}"
    sentence = (
        f"By each of {words(metrics)}, over {words(datasets)}: each of {words(methods)} is better than each of "
        f"{words(against)} {how}."
    )
    numbers, parts = {}, []
    for method, other, metric in itertools.product(methods, against, metrics):
        gain = evidence.gain(metric, method, other, datasets)
        won, lost, _ = evidence.won_and_lost([metric], method, other, datasets)
        p = float(signed_rank_p(gain.to_numpy())) if won + lost else 1.0
        parts.append(won == len(gain) if everywhere else bool(gain.sum() > 0 and p < evidence.alpha))
        numbers[pair_name(method, f"{other}, {metric}")] = f"{balance_text(won, lost)}, p {p:.2g}"
    return Finding.of(parts, numbers, sentence)


def best_on(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str],
    at_least: int,
    together: bool = False,
) -> Finding:
    """True for a metric if the method is the best one on enough datasets, ties included.

    With ``together`` it must be the best one by all metrics on the same datasets. The numbers are the counts of the
    means, and the least and the largest of the counts of single splits; of one dataset, on how many splits it is best.
    """
    by = f"all of {words(metrics)} together" if together else f"each of {words(metrics)}"
    sentence = f"By {by}: {method} is the best of {words(methods)} on at least {at_least} of {words(datasets)}."
    runs = {metric: evidence.runs(metric, methods, datasets) for metric in metrics}
    best = {metric: _is_best(table.groupby(level="dataset").mean(), method, metric) for metric, table in runs.items()}
    single = {metric: _is_best(table, method, metric).groupby(level="split").sum() for metric, table in runs.items()}
    numbers: dict[str, object] = {
        metric: f"{int(best[metric].sum())} of {len(best[metric])}, on {_on_splits(single[metric], len(datasets))}"
        for metric in metrics
    }
    if not together:
        return Finding.of([int(one.sum()) >= at_least for one in best.values()], numbers, sentence)
    by_all = pd.DataFrame(best).all(axis=1)
    numbers["by all together"] = int(by_all.sum())
    return Finding.of(int(by_all.sum()) >= at_least, numbers, sentence)


def _on_splits(counts: pd.Series, datasets: int) -> str:
    """Return on how many datasets, by split, a method is best: a range, or of one dataset the number of splits."""
    if datasets == 1:
        return f"{int(counts.sum())} of {len(counts)} splits"
    return f"single splits {int(counts.min())} to {int(counts.max())}"


def combinations(
    evidence: Evidence,
    eta: Mapping[str, str],
    orthogonal: Mapping[str, str],
    original: Mapping[str, str],
    others: Sequence[str],
    datasets: Sequence[str],
    last: str,
    counts: Sequence[int],
) -> Finding:
    """True for a combination of columns if its counts of best F1 are those printed.

    Parameters
    ----------
    evidence : Evidence
    eta, orthogonal, original : mapping of str to str
        Our columns for rLSkMDDM, OLSkMDDM and kMDDM, by what they differ in.
    others : sequence of str
        The columns that all combinations have, KPCA and KLSCCA first.
    datasets : sequence of str
        The Yahoo sets.
    last : str
        The set of D9.
    counts : sequence of int
        The printed counts: micro F1 and macro F1 of rLSkMDDM, macro F1 of OLSkMDDM.
    """
    sentence = (
        f"On {words(datasets)}: rLSkMDDM has the best micro F1 on {counts[0]}, the best macro F1 on {counts[1]}, and "
        f"OLSkMDDM the best macro F1 on {counts[2]}."
    )
    numbers: dict[str, object] = {}
    parts = []
    for (rule, r), (solver, o), (problem, k) in itertools.product(eta.items(), orthogonal.items(), original.items()):
        found = _of_combination(evidence, r, o, k, others, datasets, last)
        numbers[f"{rule}; {solver}; {problem}"] = found
        parts.append(found["D4"] == ", ".join(map(str, counts)))
    return Finding.of(parts, numbers, sentence)


def _of_combination(
    evidence: Evidence, r: str, o: str, k: str, others: Sequence[str], datasets: Sequence[str], last: str
) -> dict[str, object]:
    """Return what D3, D4, D5, D8 and D9 come to with columns for rLSkMDDM (r), OLSkMDDM (o) and kMDDM (k)."""
    methods = [*others, k, r, o]

    def best(method: str, metric: str, sets: Sequence[str] = datasets) -> pd.Series:
        return _is_best(evidence.means(metric, methods, sets), method, metric)

    better = better_than(evidence, [k, r], others[:2], ["macro_auc", "macro_f1", "micro_f1"], datasets)
    auc = evidence.means("macro_auc", [r, o], datasets)
    ranking = {metric: best(r, metric) for metric in ("ranking_loss", "one_error", "coverage", "average_precision")}
    at_last = [bool(best(r, metric, [last]).all()) for metric in ("ranking_loss", "coverage", "average_precision")]
    f1 = (best(r, "micro_f1"), best(r, "macro_f1"), best(o, "macro_f1"))
    return {
        "D3": f"{better.share[0]} of {better.share[1]}" if better.share else better.outcome,
        "D4": ", ".join(str(int(one.sum())) for one in f1),
        "D5": round(float((auc[r] - auc[o]).abs().max()), 4),
        "D8": ", ".join(str(int(one.sum())) for one in ranking.values()),
        "D8 together": int(pd.DataFrame(ranking).all(axis=1).sum()),
        "D9": f"{sum(at_last)} of {len(at_last)}",
    }


def _is_best(table: pd.DataFrame, method: str, metric: str) -> pd.Series:
    best = table.max(axis=1) if direction_of(metric) == "max" else table.min(axis=1)
    return (table[method] - best).abs() <= TIE


def rises_with(
    evidence: Evidence,
    methods: Sequence[str],
    table: str,
    x: str,
    y: str,
    by: str,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a method, a dataset and a value of the column ``by`` if Spearman's correlation of ``y`` and ``x`` is
    above 0.

    The numbers are the smallest correlations and how many are below.
    """
    sentence = (
        f"On {words(datasets)}: {table} of each of {words(methods)} by {y} rises with {x}, Spearman's rho above 0."
    )
    rows = _all_of(evidence, table, "method", methods)
    rows = rows[rows["dataset"].isin(datasets)] if datasets else rows
    rho = {
        " ".join(map(str, names)): float(spearmanr(curve[x], curve[y]).statistic)
        for names, curve in rows.groupby(["method", "dataset", by], sort=False)
    }
    smallest = min(rho, key=lambda name: rho[name])
    low = {name: round(value, 3) for name, value in rho.items() if value <= 0}
    return Finding.of(
        [value > 0 for value in rho.values()],
        {"smallest": f"{rho[smallest]:.3f}, {smallest}", "not above 0": low, "curves": len(rho)},
        sentence,
    )


def above_others(
    evidence: Evidence, methods: Sequence[str], others: Sequence[str], table: str, x: str, y: str, by: str
) -> Finding:
    """Return for which shares of the points of curves all of some methods are above all others, by values of ``by``."""
    sentence = (
        f"At most points of {table}, a data set and a value of {x}: each of {words(methods)} is above each of "
        f"{words(others)}."
    )
    rows = _all_of(evidence, table, "method", [*methods, *others])
    points = rows.set_index([by, "dataset", x, "method"])[y].unstack().dropna()
    above = points[list(methods)].min(axis=1) > points[list(others)].max(axis=1)
    shares = {str(name): float(share) for name, share in above.groupby(level=by, sort=False).mean().items()}
    numbers = {
        name: f"{share:.0%} of {int((points.index.get_level_values(by) == name).sum())}"
        for name, share in shares.items()
    }
    return Finding.at_least(shares, None, numbers, sentence, of="shares")


def steeper(evidence: Evidence, variant: str, others: Sequence[str], table: str) -> Finding:
    """True for a dataset and another variant if the log-log slope of the variant's cost is above the other's."""
    sentence = f"On every dataset: the log-log slope of the cost of {variant} is above that of each of {words(others)}."
    rows = _all_of(evidence, table, "variant", [variant, *others])
    slopes = rows.groupby(["dataset", "variant"], sort=False)["slope"].first().unstack()
    numbers = {name: {str(d): round(float(v), 2) for d, v in slopes[name].items()} for name in [variant, *others]}
    return Finding.of([gap > 0 for other in others for gap in slopes[variant] - slopes[other]], numbers, sentence)


def costlier_at(
    evidence: Evidence, variant: str, others: Sequence[str], table: str, x: str, at: float, y: str
) -> Finding:
    """True for a dataset and another variant if the variant's ``y`` is above at one ``x``.

    Where it is above everywhere, the finding says by which factors: the paper says "far above" or "significantly" and
    gives none.
    """
    sentence = f"On every dataset: at {x} {at:g} the {y} of {variant} is far above that of each of {words(others)}."
    values = _at(evidence, [variant, *others], table, x, at, y)
    numbers = {name: {str(d): float(f"{v:.2g}") for d, v in values[name].items()} for name in values}
    factors = {
        f"{other} on {dataset}": float(factor)
        for other in others
        for dataset, factor in (values[variant] / values[other]).items()
    }
    above = [factor > 1 for factor in factors.values()]
    if all(above):
        return Finding.at_least(factors, None, numbers, sentence, of="factors")
    return Finding.of(above, numbers, sentence)


def alike_at(evidence: Evidence, variants: Sequence[str], table: str, x: str, at: float, y: str) -> Finding:
    """Return for which factors between the largest and the least ``y`` at one ``x`` variants are about equal."""
    sentence = f"On every dataset: at {x} {at:g} the {y} of {words(variants)} are about equal."
    values = _at(evidence, variants, table, x, at, y)
    numbers: dict[str, object] = {str(d): {v: f"{row[v]:.2g}" for v in variants} for d, row in values.iterrows()}
    factors = {str(dataset): float(factor) for dataset, factor in (values.max(axis=1) / values.min(axis=1)).items()}
    return Finding.at_most(factors, None, numbers, sentence, of="factors")


def _at(evidence: Evidence, variants: Sequence[str], table: str, x: str, at: float, y: str) -> Any:
    """Return the mean ``y`` at one ``x``, datasets x variants."""
    rows = _all_of(evidence, table, "variant", variants, **{x: at})
    return rows.groupby(["dataset", "variant"], sort=False)[y].mean().unstack()[list(variants)]


def _all_of(evidence: Evidence, table: str, column: str, names: Sequence[str], **chosen: Any) -> pd.DataFrame:
    """Return the rows of a table with some names in a column, all of which must be there."""
    rows = evidence.table(table, **{column: list(names)}, **chosen)
    lacking = [name for name in names if name not in set(rows[column])]
    if lacking:
        raise NotYet(f"{table}.csv has no {', '.join(lacking)}")
    return rows


def fewer_operations(evidence: Evidence, sizes: Sequence[int], labels: int, steps: int) -> Finding:
    """True for a size n if the paper's count of LSkMDDM is below n^3, the product K K that eq. (1) needs.

    Where it is for all sizes, the finding says by which factors: the paper says "much smaller" and gives none.
    """
    sentence = (
        f"With n of {words(sizes)}, {labels} labels and {steps} steps: 3/2 n c^2 + 9/2 c^3 + T c (2 n^2 + 8 n) is much "
        "smaller than n^3, the product K K of eq. (1)."
    )
    factors = {}
    for n in sizes:
        count = 1.5 * n * labels**2 + 4.5 * labels**3 + steps * labels * (2 * n**2 + 8 * n)
        factors[f"n = {n}"] = n**3 / count
    numbers = {name: float(f"{factor:.3g}") for name, factor in factors.items()}
    above = [factor > 1 for factor in factors.values()]
    return (
        Finding.at_least(factors, None, numbers, sentence, of="factors")
        if all(above)
        else Finding.of(above, numbers, sentence)
    )


def datasets_named(evidence: Evidence, tables: Sequence[str], prefix: str, count: int) -> Finding:
    """True if the published tables have a number of data sets, with numbers in their cells or not."""
    sentence = f"The cells of the tables {words(tables)} name {count} data sets that begin with {prefix}."
    rows = evidence.scores[evidence.scores["table"].astype(str).isin([str(table) for table in tables])]
    names = sorted({name for name in rows["dataset"] if str(name).startswith(prefix)})
    if not names:
        raise NotYet(f"no cell of the tables {', '.join(map(str, tables))}")
    return Finding.of(len(names) == count, {"data sets": len(names), "named": names}, sentence)


def equations_by_numbers(evidence: Evidence, n: int = 60, equal: int = 0, seed: int = 0) -> Finding:
    """True if the equations (1) and (2) are related as Theorem 1 says with the right numbers.

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
