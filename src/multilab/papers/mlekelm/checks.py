"""Checks of the ML-EKELM claims: ranks and leads, repetitions, costs, sparsity, convergence by sweep, one equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims.evidence import Evidence, Finding, direction_of, sign_of, words
from multilab.claims.published import printed_number
from multilab.claims.published import rounds_to as is_rounded_to  # `rounds_to` is a check here
from multilab.statistics import nemenyi_cd, rank_rows
from multilab.statistics.result_files import variant_column
from multilab.statistics.summary import exact_mean


def _near(relative: float | None, deviations: float | None, exact: bool) -> str:
    share = f"within a share of {relative:g} of" if relative is not None else ""
    return (
        share
        + (f"within {deviations:g} standard deviations of" if deviations is not None else "")
        + (" equal to" if exact else "")
    )


def significant_share(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    better_than: Sequence[str],
    share: float,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if Nemenyi's test finds the method better than all of ``better_than`` by every metric, and often enough.

    ``share`` is the least share of all pairs of a metric and an opponent that it must win significantly. The parts are
    the metrics and the share.
    """
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: by Nemenyi's test {method} is "
        f"better than each of {words(better_than)} among {words(methods)}, and better in a share of at "
        f"least {share:g} of all pairs of a measure and another."
    )
    numbers: dict[str, Any] = {}
    won = pairs = 0
    parts = []
    for metric in metrics:
        beaten, worse, limit = _significant(evidence, metric, method, methods, datasets)
        numbers[metric] = {"better than": ", ".join(beaten) or "none", "worse than": ", ".join(worse) or "none"}
        won, pairs = won + len(beaten), pairs + len(methods) - 1
        parts.append(set(better_than) <= set(beaten))
    parts.append(won >= share * pairs - 1e-9)
    return Finding.of(parts, {**numbers, "share": f"{won} of {pairs}", "CD": round(limit, 4)}, sentence)


def significant_counts(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    methods: Sequence[str],
    worse: int,
    better: int | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if over the metrics the method loses just this number of comparisons significantly, and wins that number.

    Without ``better`` any number may be won.
    """
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: by Nemenyi's test among "
        f"{words(methods)}, {method} is {'' if better is None else f'better {better} times and '}worse {worse} times."
    )
    beaten = [_significant(evidence, metric, method, methods, datasets)[:2] for metric in metrics]
    won, lost = (sum(len(names) for names in side) for side in zip(*beaten, strict=True))
    return Finding.of(lost == worse and better in (None, won), {"better": won, "worse": lost}, sentence)


def _significant(
    evidence: Evidence, metric: str, method: str, methods: Sequence[str], datasets: Sequence[str] | None
) -> tuple[list[str], list[str], float]:
    """Return which methods are significantly worse and better than ``method``, and the critical difference."""
    table = evidence.ranks(metric, methods, datasets)
    ranks, limit = table.mean(axis=0), nemenyi_cd(len(methods), len(table), evidence.alpha)
    others = [other for other in methods if other != method]
    beaten = [other for other in others if ranks[other] - ranks[method] > limit]
    return beaten, [other for other in others if ranks[method] - ranks[other] > limit], limit


def first_on(evidence: Evidence, metrics: Sequence[str], method: str, methods: Sequence[str], dataset: str) -> Finding:
    """True for a metric if no other method is better on the dataset; a tie counts as first."""
    sentence = f"On {dataset}, by {words(metrics)}: none of {words(methods)} is better than {method}."
    ranks = {metric: evidence.ranks(metric, methods, [dataset]).iloc[0] for metric in metrics}
    best = {metric: float(row[method]) == float(row.min()) for metric, row in ranks.items()}
    return Finding.of(best.values(), {metric: float(row[method]) for metric, row in ranks.items()}, sentence)


def ahead_by(
    evidence: Evidence, metric: str, method: str, methods: Sequence[str], dataset: str, at_least: float
) -> Finding:
    """True if the method's value is better than the best of the others by at least this share of that value."""
    others = [other for other in methods if other != method]
    sentence = (
        f"On {dataset}: {words(metric)} of {method} is better than the best of {words(others)} by a share of at least "
        f"{at_least:g} of its value."
    )
    gains = {other: evidence.gain(metric, method, other, [dataset]).iloc[0] for other in others}
    second = min(gains, key=lambda other: gains[other])
    share = float(gains[second] / evidence.means(metric, [second], [dataset]).iloc[0, 0])
    return Finding.of(share >= at_least, {"second": second, "share": round(share, 4)}, sentence)


def ahead_in_rank(
    evidence: Evidence, metrics: Sequence[str], method: str, methods: Sequence[str], datasets: Sequence[str]
) -> Finding:
    """Return by how much the average rank is ahead of the next; where it is not ahead it fails.

    How much is "largely" the paper does not say, so that no limit is set.
    """
    sentence = (
        f"By {words(metrics)}: the average rank of {method} among {words(methods)}, over {words(datasets)}, is ahead "
        "of the next one."
    )
    margins = {}
    for metric in metrics:
        ranks = evidence.ranks(metric, methods, datasets).mean(axis=0)
        margins[metric] = float(ranks.drop(method).min() - ranks[method])
    numbers = {metric: round(margin, 3) for metric, margin in margins.items()}
    if min(margins.values()) <= 0:
        return Finding.of([margin > 0 for margin in margins.values()], numbers, sentence)
    return Finding.at_least(margins, None, numbers, sentence, of="leads")


def places(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    front: Sequence[str],
    back: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a metric of ``front`` if the method's average rank is in the better half, of ``back`` in the worse."""
    sentence = (
        f"Over {words(datasets)}, among the average ranks of {words(methods)}: {method} is in the better half by "
        f"{words(front)}, in the worse half by {words(back)}."
    )
    numbers, parts = {}, []
    for metric in (*front, *back):
        place = int(evidence.ranks(metric, methods, datasets).mean(axis=0).rank(method="min")[method])
        numbers[metric] = place
        parts.append((place <= len(methods) / 2) == (metric in front))
    return Finding.of(parts, numbers, sentence)


def second_on_mean(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    first: str,
    methods: Sequence[str],
    datasets: Sequence[str],
) -> Finding:
    """True for a metric if by the means over the datasets one method is first and the other second.

    The numbers have the difference as a share of the first one's mean.
    """
    sentence = (
        f"By the mean {words(metrics)} over {words(datasets)}: {method} is second to {first} among {words(methods)}."
    )
    numbers, parts = {}, []
    for metric in metrics:
        means = evidence.means(metric, methods, datasets).mean() * sign_of(metric)
        order = list(means.sort_values(ascending=False).index)
        parts.append(order[:2] == [first, method])
        share = abs(float((means[method] - means[first]) / means[first]))
        numbers[metric] = {"first two": ", ".join(order[:2]), "difference": round(share, 4)}
    return Finding.of(parts, numbers, sentence)


def same_every_time(
    evidence: Evidence,
    methods: Sequence[str],
    metrics: Sequence[str],
    again: str = "",
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if every repetition of a method gives the same values, to the last bit, on every dataset.

    Repetitions for which one result stands count once, so that there must be at least two results. ``again`` is the
    variant that runs the methods with another seed. In print it is the printed standard deviation that must be 0.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: every repetition of each of {words(methods)} gives the same value."
    )
    numbers: dict[str, Any] = {}
    holds = True
    for method in methods:
        column = variant_column(method, again) if again else method
        summary: dict[str, Any] = {}
        for metric in metrics:
            for dataset, rows in evidence.rows(metric, column, datasets).groupby("dataset", sort=False):
                spread = float(rows["std"].max() if "std" in rows else np.ptp(rows["value"]))
                results = rows["key"].nunique() if "key" in rows else len(rows)
                if "std" not in rows and results < 2:
                    return Finding(
                        "not testable", numbers, f"{column} on {dataset} was run once only", sentence=sentence
                    )
                summary.setdefault("datasets", set()).add(dataset)
                if "std" not in rows:
                    summary["runs of each"] = min(results, summary.get("runs of each", results))
                summary["largest spread"] = max(spread, summary.get("largest spread", 0.0))
        holds &= summary["largest spread"] == 0.0
        numbers[method] = summary | {"datasets": len(summary["datasets"])}
    return Finding.of(holds, numbers, sentence)


def costs_between(
    evidence: Evidence,
    metric: str,
    method: str,
    more_than: Sequence[str],
    less_than: Sequence[str],
    table: str | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if the mean cost over the datasets is above that of each of one kind, below that of each of the other.

    ``table`` has the costs, where they are no metric. The ratios are its own cost to the other's, as the paper takes
    them.
    """
    others = [*more_than, *less_than]
    sentence = (
        f"Over {words(datasets)}: the mean {words(metric)} of {method} is more than "
        f"that of each of {words(more_than)} and less than that of each of {words(less_than)}."
    )
    if table is None:
        means = evidence.means(metric, [method, *others], datasets).mean()
    else:
        chosen = {} if datasets is None else {"dataset": list(datasets)}
        rows = [evidence.table(table, method=name, **chosen) for name in (method, *others)]
        means = pd.Series({str(part["method"].iloc[0]): part[metric].mean() for part in rows})
    numbers = {name: {"mean": round(float(means[name]), 4)} for name in means.index}
    for other in others:
        numbers[other]["ratio"] = round(float(means[method] / means[other]), 3)
    dearer = all(means[method] > means[other] for other in more_than)
    return Finding.of(dearer and all(means[method] < means[other] for other in less_than), numbers, sentence)


def zero_weights(
    evidence: Evidence, method: str, at_least: float | None = None, datasets: Sequence[str] | None = None
) -> Finding:
    """True for a dataset if some weights of the method are exactly 0; with ``at_least``, that share of them.

    The numbers tell the same of training points without any weight.
    """
    sentence = (
        f"On each of {words(datasets)}: {'some' if at_least is None else f'a share of at least {at_least:g}'} of the "
        f"weights of {method} are exactly 0."
    )
    kept = evidence.arrays(method, ["zero_shares_"], datasets).values()
    weights, points = np.array([shares for (shares,) in kept], dtype=float).T
    numbers = {
        "median": round(float(np.median(weights)), 4),
        "smallest": round(float(weights.min()), 6),
        "largest": round(float(weights.max()), 4),
        "points without weight, largest": round(float(points.max()), 4),
        "datasets": len(weights),
    }
    return Finding.of(weights >= at_least if at_least else weights > 0, numbers, sentence)


def settles_within(
    evidence: Evidence,
    method: str,
    limit: int,
    tolerance: float,
    y: str = "hamming_loss",
    most: bool = False,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if ``y`` has settled after at most ``limit`` sweeps on every dataset, with ``most`` on more than half.

    The parts are the datasets, but with ``most``. The numbers tell the sweeps, and the smallest changes that would have
    to count as none for the statement to hold.
    """
    sentence = (
        f"On {'more than half of' if most else 'every one of'} {words(datasets)}: {words(y)} of "
        f"{method} has settled (changes of less than {tolerance:g} in five sweeps) after at most {limit} sweeps."
    )
    curves = _curves(evidence, method, datasets)
    settled = {name: _settled(part, y, tolerance) for name, part in curves.items()}
    within = [at is not None and at <= limit for at in settled.values()]
    numbers: dict[str, Any] = {"sweeps": _numbers(settled)}
    if y != "gap":
        needed = sorted(_least_tolerance(part, y, limit) for part in curves.values())
        numbers["holds if changes count up to"] = round(needed[len(needed) // 2 if most else -1], 6)
    return Finding.of(sum(within) > len(within) / 2 if most else within, numbers, sentence)


def settles_at(evidence: Evidence, method: str, at: Mapping[str, int], tolerance: float) -> Finding:
    """True for a dataset if the Hamming loss has settled after just this number of sweeps."""
    sentence = (
        f"The Hamming loss of {method} has settled (changes of less than {tolerance:g} in five sweeps) after this many "
        f"sweeps: {words(at)}."
    )
    curves = _curves(evidence, method, list(at))
    settled = {name: _settled(part, "hamming_loss", tolerance) for name, part in curves.items()}
    return Finding.of([settled[name] == stated for name, stated in at.items()], _numbers(settled), sentence)


def wavers_only_on(
    evidence: Evidence, method: str, datasets: Sequence[str], tolerance: float, until: int = 20
) -> Finding:
    """True if the Hamming loss rises again by at least the tolerance, within ``until`` sweeps, on just these datasets.

    The numbers are its largest rise above an earlier value.
    """
    sentence = (
        f"Within {until} sweeps the Hamming loss of {method} rises again by at least {tolerance:g} on "
        f"{words(datasets)} and on no other dataset."
    )
    rises = {}
    for name, part in _curves(evidence, method, None).items():
        values = part.loc[part["sweep"] <= until, "hamming_loss"].to_numpy()
        rises[name] = round(float((values - np.minimum.accumulate(values)).max()), 6)
    wavering = {name for name, rise in rises.items() if rise >= tolerance}
    return Finding.of(wavering == set(datasets), dict(sorted(rises.items())), sentence)


def falls_while_loss_rises(evidence: Evidence, method: str, datasets: Sequence[str]) -> Finding:
    """True if the objective falls in each sweep on every dataset, and the Hamming loss rises in some sweep on one."""
    sentence = (
        f"On each of {words(datasets)}: the objective of {method} falls in every sweep; the Hamming loss does not, "
        "on some."
    )
    curves = _curves(evidence, method, datasets)
    falls = {name: bool((np.diff(part["gap"]) < 0).all()) for name, part in curves.items()}
    rises = [name for name, part in curves.items() if (np.diff(part["hamming_loss"]) > 0).any()]
    numbers = {"objective falls in every sweep": sum(falls.values()), "Hamming loss rises in some": len(rises)}
    return Finding.of(all(falls.values()) and bool(rises), {**numbers, "datasets": len(curves)}, sentence)


_STEADY = 5
"""Sweeps in a row without a change that counts."""


def _settled(rows: pd.DataFrame, y: str, tolerance: float) -> int | None:
    """Return the sweep at which a method has settled, ``None`` if it has not within the table.

    The Hamming loss has where it changes by less than the tolerance in each of the next sweeps, all of which must be
    listed; the gap has where it is below the tolerance for good.
    """
    sweeps, values = rows["sweep"].to_numpy(), rows[y].to_numpy()
    if y == "gap":
        late = np.flatnonzero(values >= tolerance)
        first = int(late[-1]) + 1 if len(late) else 0
        return int(sweeps[first]) if first < len(sweeps) else None
    return next((sweep for sweep, change in _changes(rows, y).items() if change < tolerance), None)


def _least_tolerance(rows: pd.DataFrame, y: str, limit: int) -> float:
    """Return the largest change after the sweep, up to the limit, from which on there is least of it."""
    return min(change for sweep, change in _changes(rows, y).items() if sweep <= limit)


def _changes(rows: pd.DataFrame, y: str) -> dict[int, float]:
    """Return, by sweep, the largest change from one of the next sweeps to the following one."""
    sweeps, values = rows["sweep"].to_numpy(), rows[y].to_numpy()
    steps = np.abs(np.diff(values))
    listed = range(len(steps) - _STEADY + 1)
    return {
        int(sweeps[start]): float(steps[start : start + _STEADY].max())
        for start in listed
        if sweeps[start + _STEADY] == sweeps[start] + _STEADY
    }


def _curves(evidence: Evidence, method: str, datasets: Any) -> dict[str, pd.DataFrame]:
    chosen = {} if datasets is None else {"dataset": list(datasets)}
    rows = evidence.table("sweeps", method=method, **chosen).sort_values("sweep")
    return {str(name): part for name, part in rows.groupby("dataset", sort=False)}


def _numbers(sweeps: Mapping[str, int | None]) -> dict[str, Any]:
    return {name: "not within the table" if at is None else at for name, at in sorted(sweeps.items())}


# -- equations -------------------------------------------------------------------------------------------------------


def ridge_by_rows(evidence: Evidence) -> Finding:
    """True if eq. (14) minimises eq. (13) with an identity of as many rows as instances, and no other fits."""
    sentence = (
        "On random H (30 x 12) and Y: H'(I/C + HH')^-1 Y with an I of 30 rows minimises eq. (13), and equals "
        "(I/C + H'H)^-1 H'Y with an I of 12 rows; HH' has 30 rows."
    )
    random, C = np.random.default_rng(0), 0.7
    H, Y = random.normal(size=(30, 12)), random.choice([-1.0, 1.0], size=(30, 4))
    beta = H.T @ np.linalg.solve(np.eye(30) / C + H @ H.T, Y)
    other = np.linalg.solve(np.eye(12) / C + H.T @ H, H.T @ Y)
    numbers = {
        "largest entry of the gradient": float(np.abs(beta - C * H.T @ (Y - H @ beta)).max()),
        "largest difference of the two forms": float(np.abs(beta - other).max()),
        "rows of HH'": len(H @ H.T),
    }
    return Finding.of(max(list(numbers.values())[:2]) < 1e-10 and len(H @ H.T) != 12, numbers, sentence)


# -- results next to published cells ---------------------------------------------------------------------------------


def reproduces(
    evidence: Evidence,
    method: str,
    printed: str,
    metrics: Sequence[str],
    datasets: Sequence[str],
    at_least: int = 0,
    at_most: int | None = None,
    relative: float | None = None,
    deviations: float | None = None,
    exact: bool = False,
) -> Finding:
    """True if enough (and with ``at_most`` not too many) of our cells of a column are near the published ones.

    Near is: the relative gap is at most ``relative``; or the gap is at most this number of ``deviations``, the root of
    the summed squares of the printed standard deviation and ours over the repetitions; or, with ``exact``, our mean
    rounds to the printed number.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {at_least} or more cells"
        f"{'' if at_most is None else f', and at most {at_most},'} "
        f"of {method} are {_near(relative, deviations, exact)} the published ones of {printed}."
    )
    near, gaps = 0, []
    for metric in metrics:
        cells = evidence.printed(printed, metric, datasets)
        ours = evidence.runs(metric, [method], datasets)[method]
        for dataset in datasets:
            runs, cell = ours.loc[dataset], cells.loc[dataset]
            gap = abs(exact_mean(runs) - cell["mean"])
            spread = float(np.hypot(np.nan_to_num(cell["std"]), runs.std(ddof=1) if runs.nunique() > 1 else 0.0))
            limits = (
                printed_number(cell["printed_mean"]).half if exact else 0.0,
                (relative or 0.0) * cell["mean"],
                (deviations or 0.0) * spread,
            )
            near += bool(gap <= max(limits))
            gaps.append(float(gap / cell["mean"]))
    numbers = {"near": near, "cells": len(gaps), "median relative gap": round(float(np.median(gaps)), 5)}
    return Finding.of(near >= at_least and (at_most is None or near <= at_most), numbers, sentence)


def nearer(
    evidence: Evidence, method: str, other: str, printed: str, metrics: Sequence[str], datasets: Sequence[str]
) -> Finding:
    """True if the median relative gap of one of our columns to a published one is smaller than that of another."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: the median relative gap to the "
        f"published {printed} is smaller for {method} than for {other}."
    )
    medians = {}
    for name in (method, other):
        numbers = reproduces(evidence, name, printed, metrics, datasets, relative=0.01).numbers
        medians[name] = {"median relative gap": numbers["median relative gap"], "within 1 %": numbers["near"]}
    gaps = [one["median relative gap"] for one in medians.values()]
    return Finding.of(gaps[0] < gaps[1], medians | {"cells": len(metrics) * len(datasets)}, sentence)


def leads(
    evidence: Evidence, metrics: Sequence[str], best: str, against: Sequence[str], datasets: Sequence[str]
) -> Finding:
    """True for a metric if ``best`` has the lowest average rank among itself and ``against``.

    The columns may have different numbers of repetitions; their means are compared.
    """
    sentence = (
        f"By {words(metrics)}: {best} has a lower average rank than {words(against)}, "
        f"over {words(datasets)}; a tie counts as not lower."
    )
    numbers, parts = {}, []
    for metric in metrics:
        means = [evidence.means(metric, [name], datasets) for name in (best, *against)]
        ranks = rank_rows(pd.concat(means, axis=1), direction_of(metric)).mean(axis=0)
        numbers[metric] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        parts.append(ranks[best] < ranks[list(against)].min())
    return Finding.of(parts, numbers, sentence)


def rounds_to(evidence: Evidence, metric: str, method: str, dataset: str, right: str) -> Finding:
    """True if one of our means rounds to a number."""
    sentence = f"{words(metric)} of {method} on {dataset} rounds to {right}."
    value = float(evidence.means(metric, [method], [dataset]).iloc[0, 0])
    return Finding.of(is_rounded_to(value, right), {"value": round(value, 6)}, sentence)


def ranks_on(
    evidence: Evidence, metric: str, dataset: str, methods: Sequence[str], ranks: Mapping[str, float]
) -> Finding:
    """True if the values of a row have these ranks; equal values share the mean of theirs."""
    sentence = f"By {words(metric)}, on {dataset}: the ranks among {words(methods)} are {words(ranks)}."
    row = evidence.ranks(metric, methods, [dataset]).iloc[0]
    return Finding.of(
        all(row[name] == rank for name, rank in ranks.items()), {name: float(row[name]) for name in ranks}, sentence
    )


def saves(evidence: Evidence, metric: str, method: str, other: str, dataset: str, right: str, wrong: str) -> Finding:
    """True if 1 - cost / other cost rounds to ``right``; ``wrong`` is other cost / cost - 1."""
    sentence = (
        f"The mean {words(metric)} of {method} is less than that of {other} by a share that rounds to "
        f"{right}; as a share of its own, the difference rounds to {wrong}."
    )
    own, others = (float(evidence.means(metric, [name], [dataset]).iloc[0, 0]) for name in (method, other))
    numbers = {"1 - a / b": round(1 - own / others, 4), "b / a - 1": round(others / own - 1, 4)}
    fits = is_rounded_to(1 - own / others, right)
    fits = fits and is_rounded_to(others / own - 1, wrong)
    return Finding.of(fits, numbers, sentence)


def off_the_line(
    evidence: Evidence, dataset: str, methods: Sequence[str], printed: str, x: str, y: str, spreads: float
) -> Finding:
    """True if a published pair of values is far off the least squares line through those of our columns.

    The standard deviation is that of the residuals of our columns.
    """
    sentence = (
        f"On {dataset}: the published {y} of {printed} is more than {spreads:g} standard deviations off "
        f"the line that {y} of {words(methods)} follows in {x}."
    )
    across, up = (evidence.means(metric, methods, [dataset]).iloc[0].to_numpy(dtype=float) for metric in (x, y))
    slope, constant = np.polyfit(across, up, 1)
    spread = float(np.sqrt(np.square(up - slope * across - constant).sum() / (len(up) - 2)))
    at, value = (float(evidence.printed(printed, metric, [dataset])["mean"].iloc[0]) for metric in (x, y))
    line = float(slope * at + constant)
    numbers = {
        "published": value,
        "on the line": round(line, 4),
        "standard deviations": round((value - line) / spread, 1),
    }
    return Finding.of(abs(value - line) > spreads * spread, numbers, sentence)
