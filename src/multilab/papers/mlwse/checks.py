"""Checks of the MLWSE claims and errata: parameters, iterations, weights, mixed measures, printed arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f, spearmanr

from multilab.claims.errors import NotYet
from multilab.claims.evidence import Evidence, Finding, direction_of, sign_of, words
from multilab.methods.stacking.objective import cosine_affinity
from multilab.statistics import nemenyi_cd, rank_rows, signed_rank_p


def worse_beyond(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    limit: float,
    margins: Mapping[str, float],
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if the best value beyond the limit is worse than the best up to it, by the margin of the dataset."""
    sentence = (
        f"On every dataset: the best {words(metric)} of {method} with {parameter} above {limit:g} is "
        f"worse by at least {words(margins)} than the best up to it."
    )
    numbers: dict[str, Any] = {}
    worse = []
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        beyond, within = rows[rows[parameter] > limit], rows[rows[parameter] <= limit]
        if beyond.empty or within.empty:
            return Finding(
                "not testable", numbers, f"{table}.csv has {parameter} on one side of {limit} only", sentence=sentence
            )
        best, late = rows.loc[within["gain"].idxmax()], rows.loc[beyond["gain"].idxmax()]
        numbers[str(dataset)] = {"best up to": round(best["value"], 4), "best beyond": round(late["value"], 4)}
        worse.append(bool(best["gain"] - late["gain"] >= margins[str(dataset)]))
    return Finding.of(worse, {**numbers, "limit": limit}, sentence)


def rises_then_falls(
    evidence: Evidence,
    method: str,
    metric: str,
    parameter: str,
    margins: Mapping[str, float],
    table: str = "sensitivity",
    fixed: Mapping[str, Any] | None = None,
) -> Finding:
    """Holds if the best value lies inside the parameter's range, better than both ends by the margin of the dataset.

    Only the datasets in ``margins``. Where other parameters vary, each value of ``parameter`` represents their best.
    """
    sentence = (
        f"On every dataset: {words(metric)} of {method} is best inside the range of {parameter}, better "
        f"than at both ends by at least {words(margins)}{f' ({words(fixed)})' if fixed is not None else ''}."
    )
    numbers: dict[str, Any] = {}
    inside = []
    for dataset, rows in _grid(evidence, table, method, metric, fixed).groupby("dataset"):
        if str(dataset) not in margins:
            continue
        curve = rows.groupby(parameter)["gain"].max()
        shown = {"first": curve.iloc[0], "best": curve.max(), "last": curve.iloc[-1]}
        shown = {name: round(float(value) * sign_of(metric), 4) for name, value in shown.items()}
        numbers[str(dataset)] = {**shown, "best at": float(curve.idxmax())}
        inside.append(bool(curve.max() - max(curve.iloc[0], curve.iloc[-1]) >= margins[str(dataset)]))
    return Finding.of(inside, numbers, sentence)


def flat_in(
    evidence: Evidence,
    method: str,
    metric: str,
    at_best: Sequence[str],
    tolerance: float = 0.02,
    table: str = "sensitivity",
    up_to: Mapping[str, float] | None = None,
) -> Finding:
    """Holds if the values range over at most the tolerance, the parameters ``at_best`` kept at their best value.

    That is their value at the best point of the grid; the others vary up to the values in ``up_to``.
    """
    sentence = (
        f"On every dataset: at the best value of {words(at_best)}, {words(metric)} of {method} ranges "
        f"over at most {tolerance:g}{', the other parameters up to given values' if up_to else ''}."
    )
    numbers, flat = {}, []
    for dataset, rows in _grid(evidence, table, method, metric, None).groupby("dataset"):
        best = rows.loc[rows["gain"].idxmax()]
        for name in at_best:
            rows = rows[rows[name] == best[name]]
        for name, bound in (up_to or {}).items():
            rows = rows[rows[name] <= bound]
        width = float(np.ptp(rows["value"]))
        flat.append(width <= tolerance)
        numbers[str(dataset)] = {"range": round(width, 4), **{f"best {name}": float(best[name]) for name in at_best}}
    return Finding.of(flat, {**numbers, "tolerance": tolerance}, sentence)


def below_by(
    evidence: Evidence,
    at: Mapping[str, int],
    limit: float,
    table: str = "convergence",
    x: str = "iteration",
    y: str = "gap",
) -> Finding:
    """Holds if every method's ``y`` is below the limit from ``x = at[method]`` on, on every dataset."""
    sentence = f"On every dataset: {y} is below {limit:g} for good from this {x} on: {words(at)}."
    largest = {name: float(rows[y].max()) for name, rows in _late(evidence, at, table, x).items()}
    return Finding.of([one < limit for one in largest.values()], {**_rounded(largest), "limit": limit}, sentence)


def settled_by(
    evidence: Evidence,
    at: Mapping[str, int],
    limit: float,
    table: str = "convergence",
    x: str = "iteration",
    y: str = "gap",
) -> Finding:
    """Holds if between all rows from ``x = at[method]`` on, ``y`` changes by less than the limit per unit of ``x``."""
    sentence = f"On every dataset: {y} changes by less than {limit:g} per iteration from this {x} on: {words(at)}."
    late = _late(evidence, at, table, x, least=2)
    changes = {name: float((rows[y].diff().abs() / rows[x].diff()).max()) for name, rows in late.items()}
    return Finding.of([change < limit for change in changes.values()], {**_rounded(changes), "limit": limit}, sentence)


def _late(evidence: Evidence, at: Mapping[str, int], table: str, x: str, least: int = 1) -> dict[str, pd.DataFrame]:
    """Return per method and dataset the rows of a table from ``x = at[method]`` on, in the order of ``x``.

    Raises
    ------
    NotYet
        If there are fewer than ``least``.
    """
    late = {}
    for method, bound in at.items():
        for dataset, rows in evidence.table(table, method=method).groupby("dataset"):
            late[f"{method} on {dataset}"] = kept = rows[rows[x] >= bound].sort_values(x)
            if len(kept) < least:
                raise NotYet(f"{table}.csv stops before {x} {bound} for {method}")
    return late


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.3g}") for name, value in values.items()}


def _grid(evidence: Evidence, table: str, method: str, metric: str, fixed: Mapping[str, Any] | None) -> Any:
    rows = evidence.table(table, method=method, metric=metric, **(fixed or {}))
    return rows.assign(gain=rows["value"] * sign_of(metric))


def some_zero(
    evidence: Evidence,
    methods: Sequence[str],
    array: str = "W_",
    blocks: int | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if on more than half of the datasets some entry of the array is exactly 0, for each method.

    With ``blocks`` the array's rows are that many groups of equal size (base classifiers); the numbers then tell how
    many complete groups are zero.
    """
    sentence = f"On the median of {words(datasets)}: some entry of {array} is exactly 0, for each of {words(methods)}."
    numbers, some = {}, []
    for method in methods:
        weights = [arrays[0] for arrays in evidence.arrays(method, [array], datasets).values()]
        shares = [float(np.mean(W == 0)) for W in weights]
        with_zeros = sum(share > 0 for share in shares)
        some.append(with_zeros > len(shares) / 2)
        summary: dict[str, Any] = {
            "datasets with zeros": f"{with_zeros} of {len(shares)}",
            "median share": round(float(np.median(shares)), 4),
            "largest share": round(max(shares), 4),
        }
        if blocks:
            groups = [group for W in weights for group in np.array_split(W, blocks)]
            summary["zero groups"] = f"{sum(not group.any() for group in groups)} of {len(groups)}"
        numbers[method] = summary
    return Finding.of(some, numbers, sentence)


def zeros_at(
    evidence: Evidence,
    method: str,
    strengths: Mapping[str, float],
    at_least: float,
    y: str = "zeros",
    table: str = "sparsity",
) -> Finding:
    """Holds if the share of exact zeros at a strength of the penalty, by dataset, is at least ``at_least``."""
    sentence = (
        f"On each of {words(strengths)}: {y} of {method} at the first tabulated strength from that on is "
        f"at least {at_least:g}."
    )
    numbers, reached = {}, []
    for dataset, strength in strengths.items():
        rows = evidence.table(table, method=method, dataset=dataset)
        row = rows[rows["strength"] >= strength].sort_values("strength").iloc[0]
        numbers[dataset] = {"strength": round(float(row["strength"]), 4), y: round(float(row[y]), 4)}
        reached.append(float(row[y]) >= at_least)
    return Finding.of(reached, numbers, sentence)


def correlation_sign(
    evidence: Evidence,
    methods: Sequence[str],
    affinity: str = "label_affinity_",
    weights: str = "W_",
    sign: int = 1,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if cosines of label columns and of weight columns correlate with the given sign.

    Spearman's correlation of the off-diagonal entries per dataset (at least 3 labels), then Wilcoxon's signed-rank
    test over the datasets: holds if significant with that sign for every method, fails if significant with the other
    sign for one or the median has it for all, else not testable.
    """
    sentence = (
        f"Over {words(datasets)}: the cosines of label columns and of weight columns "
        f"have a Spearman correlation of sign {sign}, for each of {words(methods)}."
    )
    numbers, verdicts = {}, []
    for method in methods:
        rhos = {}
        for dataset, (labels, W) in evidence.arrays(method, [affinity, weights], datasets).items():
            above = np.triu_indices(len(labels), 1)
            a, b = labels[above], cosine_affinity(W)[above]
            if len(labels) >= 3 and np.ptp(a) > 0 and np.ptp(b) > 0:
                rhos[dataset] = float(spearmanr(a, b).statistic)
        values = np.array(list(rhos.values())) * sign
        p = signed_rank_p(values) if len(values) else 1.0
        median = float(np.median(values)) if len(values) else 0.0
        verdicts.append((p < evidence.alpha, median))
        rounded: dict[str, object] = {name: round(rho, 3) for name, rho in rhos.items()}
        numbers[method] = {"median": round(median * sign, 3), "p": round(float(p), 4), **rounded}
    if all(sure and median > 0 for sure, median in verdicts):
        return Finding("holds", numbers, sentence=sentence)
    if any(sure and median < 0 for sure, median in verdicts) or all(median < 0 for _, median in verdicts):
        return Finding("fails", numbers, sentence=sentence)
    return Finding("not testable", numbers, f"no clear sign over the datasets at {evidence.alpha}", sentence=sentence)


def at_least_best_of(
    evidence: Evidence,
    methods: Sequence[str],
    others: Sequence[str],
    metric: str,
    datasets: Sequence[str],
    slack: float = 0.0,
) -> Finding:
    """Holds if on every dataset each method's mean reaches that of the best of the others, but for ``slack``.

    The best of the others is the one with the best mean over the repetitions.
    """
    sentence = (
        f"On each of {words(datasets)}: the mean {words(metric)} of each of "
        f"{words(methods)} is at most {slack:g} worse than that of the best of {words(others)}."
    )
    sign = sign_of(metric)
    numbers, reached = {}, []
    for dataset in datasets:
        runs = evidence.runs(metric, [*methods, *others], [dataset]) * sign
        best = str(runs[list(others)].mean().idxmax())
        for method in methods:
            gain = runs[method] - runs[best]
            mean, error = float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))  # NaN of a single one
            error_text = f" (standard error {error:.4f})" if len(gain) > 1 else ""
            numbers[f"{method} against {best} on {dataset}"] = f"{mean:+.4f}{error_text}"
            reached.append(mean >= -slack - 1e-9)
    return Finding.of(reached, numbers, sentence)


def best_mixed_rank(
    evidence: Evidence,
    mixture: Mapping[str, Mapping[str, str]],
    best: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
    slack: float = 0.0,
) -> Finding:
    """Holds if one of ``best`` has the lowest average rank, but for ``slack``, where the columns mix quantities.

    ``mixture`` has per printed name the quantity of each method, ``default`` that of those it does not name; all of
    them have the same direction.
    """
    sentence = (
        f"By {words(mixture)}, where methods have quantities of their own: the average rank of "
        f"{words(best)} is below that of the other ones of {words(methods)}, to {slack:g} ranks, over "
        f"{words(datasets)}."
    )
    numbers, first = {}, []
    for title, quantities in mixture.items():
        table = _mixed(evidence, quantities, methods, datasets)
        ranks = rank_rows(table, direction_of(quantities["default"])).mean(axis=0)
        numbers[title] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        first.append(min(ranks[list(best)]) < min(ranks[[m for m in methods if m not in best]]) + slack)
    return Finding.of(first, numbers, sentence)


def leads_by_critical_difference(
    evidence: Evidence,
    metrics: Sequence[str],
    best: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds for a metric if one of ``best`` leads the other methods by more than Nemenyi's critical difference."""
    sentence = (
        f"By {words(metrics)}: the average rank of {words(best)} is below that of every other one of "
        f"{words(methods)} by more than the critical difference, over {words(datasets)}."
    )
    numbers: dict[str, Any] = {}
    parts = []
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets)
        average = ranks.mean(axis=0)
        lead = float(average[[m for m in methods if m not in best]].min() - average[list(best)].min())
        difference = nemenyi_cd(len(methods), len(ranks), evidence.alpha)
        numbers[metric] = {"lead": round(lead, 3), "critical difference": round(difference, 3)}
        parts.append(lead > difference)
    return Finding.of(parts, numbers, sentence)


def mixed_wins(
    evidence: Evidence,
    mixture: Mapping[str, Mapping[str, str]],
    methods: Sequence[str],
    against: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if each method wins more cells than it loses against each other one, where the columns mix quantities."""
    sentence = (
        f"By {words(mixture)}, where methods have quantities of their own, on {words(datasets)}: "
        f"each of {words(methods)} wins more cells than it loses against each of {words(against)}."
    )
    numbers, more = {}, []
    tables = {
        title: _mixed(evidence, quantities, [*methods, *against], datasets) * sign_of(quantities["default"])
        for title, quantities in mixture.items()
    }
    for method in methods:
        for other in against:
            gains = [table[method] - table[other] for table in tables.values()]
            won = sum(int((gain > 1e-12).sum()) for gain in gains)
            lost = sum(int((gain < -1e-12).sum()) for gain in gains)
            numbers[f"{method} against {other}"] = f"{won}-{lost}"
            more.append(won > lost)
    return Finding.of(more, numbers, sentence)


def _mixed(
    evidence: Evidence, quantities: Mapping[str, str], methods: Sequence[str], datasets: Sequence[str] | None
) -> pd.DataFrame:
    """Return the means by dataset and method, each method by its own quantity."""
    columns = [
        evidence.means(quantities.get(method, quantities["default"]), [method], datasets)[method] for method in methods
    ]
    return pd.concat(columns, axis=1)


def never_exceeds(
    evidence: Evidence, metric: str, of: str, methods: Sequence[str], others: Sequence[str], but: Sequence[str] = ()
) -> Finding:
    """Holds if a quantity is at most another on all datasets but those in ``but``, where it is not.

    ``others`` are methods for which it is above it on some dataset: it is not an inequality that always holds.
    """
    sentence = (
        f"{words(metric)} is above {of} for {words(methods)} on {words(but)} only, and for some of "
        f"{words(others)} on other datasets."
    )
    names = [*methods, *others]
    above = evidence.means(metric, names) - evidence.means(of, names) > 1e-12
    numbers = {name: int(count) for name, count in above.sum().items()}
    inside = above[list(methods)]
    kept = not inside.drop(index=list(but)).any(axis=None) and bool(inside.loc[list(but)].all(axis=None))
    return Finding.of(
        kept and bool(above[list(others)].any(axis=None)), {f"datasets with {metric} > {of}": numbers}, sentence
    )


def ranges_over(evidence: Evidence, method: str, metrics: Sequence[str], dataset: str, at_least: float) -> Finding:
    """Holds for a metric if its largest and smallest run on a dataset differ by at least ``at_least``."""
    sentence = (
        f"On {dataset}: each of {words(metrics)} of {method} ranges over {at_least:g} or more, from "
        "repetition to repetition."
    )
    runs = {metric: evidence.runs(metric, [method], [dataset])[method] for metric in metrics}
    numbers = {metric: f"{values.min():.4g} to {values.max():.4g}" for metric, values in runs.items()}
    return Finding.of([values.max() - values.min() >= at_least for values in runs.values()], numbers, sentence)


def complement_is(evidence: Evidence, method: str, metric: str, other: str, values: Mapping[str, float]) -> Finding:
    """Holds if 1 - ``metric`` is, to a printed unit, the value of each dataset, and the printed ``other`` is not."""
    sentence = (
        f"1 - the printed {words(metric)} of {method} rounds to other values than the printed {other}: {words(values)}."
    )
    numbers, fits = {}, []
    for dataset, value in values.items():
        printed = {name: float(evidence.means(name, [method], [dataset])[method].iloc[0]) for name in (metric, other)}
        complement = 1 - printed[metric]
        numbers[dataset] = {f"1 - {metric}": round(complement, 4), f"printed {other}": printed[other], "right": value}
        fits.append(abs(complement - value) <= 0.001 and abs(printed[other] - value) > 0.001)
    return Finding.of(all(fits), numbers, sentence)


def cut_off(
    evidence: Evidence, methods: Sequence[str], n: int, count: str, frequency: str, dataset: str, decimals: int = 3
) -> Finding:
    """Holds if printed shares are those of the printed counts with the further decimals left out."""
    sentence = (
        f"The printed {frequency} of {words(methods)} is {count} / {n} cut off, not rounded, after {decimals} decimals."
    )
    numbers, cut = {}, []
    for method in methods:
        values = {name: float(evidence.means(name, [method], [dataset])[method].iloc[0]) for name in (count, frequency)}
        share, unit = values[count] / n, 10.0**-decimals
        cut.append(abs(math.floor(share / unit) * unit - values[frequency]) < unit / 2 < abs(share - values[frequency]))
        numbers[method] = {"share": round(share, 5), "printed": values[frequency]}
    return Finding.of(all(cut), numbers, sentence)


def is_critical_difference(evidence: Evidence, k: int, n: int, value: str, right: str) -> Finding:
    """Holds if a number is the critical difference of average ranks at .05, and another the critical value of F_F."""
    sentence = (
        f"{value} is Nemenyi's critical difference of {k} methods on {n} datasets; the critical value of "
        f"F_F is {right}."
    )
    difference = nemenyi_cd(k, n)
    critical = float(f.ppf(0.95, k - 1, (k - 1) * (n - 1)))
    fits = abs(difference - float(value)) < 1e-3 and abs(critical - float(right)) < 1e-3
    return Finding.of(
        fits, {"critical difference": round(difference, 4), "critical value of F_F": round(critical, 4)}, sentence
    )


def smaller_deviations(
    evidence: Evidence, metrics: Sequence[str], methods: Sequence[str], others: Sequence[str], share: float
) -> Finding:
    """Holds if the printed standard deviations of some columns are smaller than those of others."""
    sentence = (
        f"By {words(metrics)}, over the printed cells: the median standard deviation of "
        f"{words(methods)} is below {share:g} of {words(others)}'."
    )
    rows = evidence.scores[evidence.scores["metric"].isin(list(metrics))]
    deviations = {
        name: float(rows.loc[rows["method"].isin(list(group)), "std"].median())
        for name, group in (("of these columns", methods), ("of the others", others))
    }
    ours, theirs = deviations.values()
    return Finding.of(ours < share * theirs, {name: round(value, 4) for name, value in deviations.items()}, sentence)
