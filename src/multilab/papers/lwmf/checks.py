"""Checks of the LWMF claims: wins, costs, and curves over the number of features."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from multilab.claims.errors import NotYet
from multilab.claims.evidence import TIE, Evidence, Finding, direction_of, sign_of, words
from multilab.claims.pairs import balance_text, pair_name
from multilab.claims.published import rounds_to
from multilab.statistics import compare_methods

_CURVES = "feature_curves"


def wins_at_least(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for each rival that the method beats in at least ``at_least`` cells (ties do not count)."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} is better in at least "
        f"this number of cells than: {words(against)}; a cell is one dataset and one "
        "measure."
    )
    counts = {other: evidence.won_and_lost(metrics, method, other, datasets) for other in against}
    parts = [counts[other][0] >= at_least for other, at_least in against.items()]
    return Finding.of(parts, _counted(counts), sentence)


def loses_at_most(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for each rival that beats the method in at most ``at_most`` cells (ties do not count)."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: in at most so many cells "
        f"{method} is worse than: {words(against)}; a cell is one dataset and one "
        "measure."
    )
    counts = {other: evidence.won_and_lost(metrics, method, other, datasets) for other in against}
    return Finding.of([counts[other][1] <= at_most for other, at_most in against.items()], _counted(counts), sentence)


def wins_by_run(
    evidence: Evidence, method: str, other: str, metrics: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """True if it depends on the run which of two methods wins more cells than it loses."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} wins more cells than it loses against some runs of "
        f"{other}, and loses more than it wins against others."
    )
    tables = [sign_of(metric) * evidence.runs(metric, [method, other], datasets) for metric in metrics]
    gains = pd.concat([table[method] - table[other] for table in tables])
    won, lost = ((side > TIE).groupby(level="split").sum() for side in (gains, -gains))
    numbers = {
        "better in, by run": [int(number) for number in won],
        "worse in, by run": [int(number) for number in lost],
    }
    return Finding.of(bool((won > lost).any() and (won < lost).any()), numbers, sentence)


def best_in_combinations(
    evidence: Evidence,
    fair: Mapping[str, Sequence[str]],
    as_printed: Mapping[str, Sequence[str]],
    method: str,
    metrics: Sequence[str],
    at_least: int,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a combination of fair columns and columns as printed in which a method is best in enough cells.

    Parameters
    ----------
    evidence : Evidence
    fair, as_printed : mapping of str to sequence of str
        The columns of each published method, in both programs; a combination takes one or the other of each.
    method : str
        The published method that is to be best; a tie is enough.
    metrics : sequence of str
    at_least : int
        In how many cells, datasets x metrics. The numbers are the cells by what is as printed.
    datasets : sequence of str, optional
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} is best in at least {at_least} cells, in each "
        "combination of fair columns and columns as printed; a cell is one dataset and one measure."
    )
    numbers: dict[str, object] = {}
    parts = []
    for chosen in itertools.product((False, True), repeat=len(fair)):
        printed = [name for name, one in zip(fair, chosen, strict=True) if one]
        columns = {name: as_printed[name] if name in printed else fair[name] for name in fair}
        everyone = [column for own in columns.values() for column in own]
        reached = int((evidence.places(metrics, columns[method][0], everyone, datasets)["place"] == 1).sum())
        numbers[", ".join(printed) or "none"] = reached
        parts.append(reached >= at_least)
    return Finding.of(parts, numbers, sentence)


def _counted(counts: Mapping[str, tuple[int, int, int]]) -> dict[str, str]:
    return {other: f"{balance_text(won, lost)} of {cells}" for other, (won, lost, cells) in counts.items()}


def better_on_each(
    evidence: Evidence, method: str, other: str, metric: str, datasets: Sequence[str] | None = None
) -> Finding:
    """True for each dataset on which the method is better than the other."""
    sentence = f"By {words(metric)}: {method} is better than {other}, per dataset of {words(datasets)}."
    gains = evidence.gain(metric, method, other, datasets)
    return Finding.of(list(gains > TIE), {str(name): round(float(gain), 4) for name, gain in gains.items()}, sentence)


def best_mean(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for each metric by which no other method has a better mean over the datasets."""
    sentence = (
        f"By {words(metrics)}: no other of {words(methods)} has a better mean over {words(datasets)} than {method}."
    )
    numbers, parts = {}, []
    for metric in metrics:
        means = evidence.means(metric, methods, datasets).mean(axis=0)
        numbers[metric] = {name: round(float(value), 4) for name, value in means.items()}
        sign = sign_of(metric)
        parts.append(bool((sign * means).max() <= sign * means[method] + TIE))
    return Finding.of(parts, numbers, sentence)


def mean_rank_order(
    evidence: Evidence, metrics: Sequence[str], order: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """True if the means, over the metrics, of the average ranks rise strictly along ``order``."""
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: the average ranks of all "
        f"measures together rise strictly in the order {words(order)}."
    )
    ranks = [evidence.ranks(metric, order, datasets).mean(axis=0) for metric in metrics]
    mean = pd.concat(ranks, axis=1).mean(axis=1)[list(order)]
    return Finding.of(
        bool((np.diff(mean) > TIE).all()), {name: round(float(rank), 3) for name, rank in mean.items()}, sentence
    )


def first_in(
    evidence: Evidence,
    counts: Mapping[str, Sequence[int]],
    methods: Sequence[str],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if each method of ``counts`` is first in as many cells, ``[alone, tied]``."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}, among {words(methods)}: cells "
        f"in which a method is first, alone and tied: {words(counts)}."
    )
    tables = [evidence.ranks(metric, methods, datasets) for metric in metrics]
    first = pd.concat([table.eq(table.min(axis=1), axis=0) for table in tables])
    alone = first.sum(axis=1) == 1
    numbers = {name: [int((first[name] & alone).sum()), int((first[name] & ~alone).sum())] for name in counts}
    return Finding.of(all(numbers[name] == list(expected) for name, expected in counts.items()), numbers, sentence)


def critical_difference(
    evidence: Evidence,
    methods: Sequence[str],
    metric: str,
    alpha: float,
    right: str,
    wrong: str,
    datasets: Sequence[str],
) -> Finding:
    """True if Bonferroni-Dunn's critical difference rounds to ``right`` and not to ``wrong``."""
    sentence = (
        f"The critical difference of {words(methods)} over {words(datasets)} at "
        f"{alpha:g} (Bonferroni-Dunn) is {right} and not {wrong}."
    )
    table = evidence.means(metric, methods, datasets)
    cd = compare_methods(table, direction_of(metric), alpha, control=methods[0], metric=metric).cd_bonferroni_dunn
    number = float("nan") if cd is None else float(cd)
    fits = {text: rounds_to(number, text) for text in (right, wrong)}
    return Finding.of(fits[right] and not fits[wrong], {"CD": round(number, 4), "datasets": len(table)}, sentence)


def datasets_printed(evidence: Evidence, number: int, metric: str) -> Finding:
    """True if a metric has results of ``number`` datasets, rows of averages left out."""
    sentence = f"The printed tables have {number} datasets."
    rows = evidence.scores[evidence.scores["metric"] == metric]
    names = sorted(name for name in set(rows["dataset"]) if not name.startswith("(") and "average" not in name)
    return Finding.of(len(names) == number, {"datasets": names}, sentence)


def simba_gradient(evidence: Evidence, points: int = 5) -> Finding:
    """True if central differences of eq. (3)'s margin equal w_f times the printed gradient and not the printed one."""
    sentence = (
        f"At {points} random points, finite differences agree with the printed gradient of Simba times w_f "
        "and not without."
    )
    rng, errors = np.random.default_rng(0), []
    for _ in range(points):
        w, miss, hit = rng.uniform(0.5, 2, 5), rng.normal(size=5), rng.normal(size=5)
        steps = 1e-6 * np.eye(5)
        numeric = np.array([_simba(w + step, miss, hit) - _simba(w - step, miss, hit) for step in steps]) / 2e-6
        printed = 0.5 * (miss**2 / np.linalg.norm(w * miss) - hit**2 / np.linalg.norm(w * hit))
        errors.append([float(np.abs(numeric - gradient).max()) for gradient in (printed, w * printed)])
    without, times = np.array(errors).T
    numbers = {
        "least error as printed": float(f"{without.min():.2g}"),
        "largest times w_f": float(f"{times.max():.2g}"),
    }
    return Finding.of(bool(times.max() < 1e-8 < 1e-2 < without.min()), numbers, sentence)


def _simba(w: np.ndarray, miss: np.ndarray, hit: np.ndarray) -> float:
    """Return the margin of eq. (3) at differences to the nearest miss and hit."""
    return 0.5 * float(np.linalg.norm(w * miss) - np.linalg.norm(w * hit))


def within_runs(
    evidence: Evidence,
    printed: Sequence[str],
    method: str,
    metrics: Sequence[str],
    datasets: Sequence[str],
    deviations: float,
    at_least: int,
) -> Finding:
    """True if enough published cells are as near to the mean of our runs as a further run would be."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: the published cells of "
        f"{words(printed)} are within {deviations:g} standard deviations of the runs of {method} in at "
        f"least {at_least} cells."
    )
    distances = []
    for metric in metrics:
        groups = evidence.runs(metric, [method], datasets)[method].groupby(level="dataset")
        for name in printed:
            cells = evidence.printed(name, metric, datasets)["mean"]
            distances += list(((cells - groups.mean()) / groups.std(ddof=1)).to_numpy())
    z = np.array(distances)
    numbers = {"within": int((np.abs(z) <= deviations).sum()), "cells": len(z), "least": z.min(), "largest": z.max()}
    numbers |= {name: round(float(numbers[name]), 2) for name in ("least", "largest")}
    return Finding.of(numbers["within"] >= at_least, numbers, sentence)


def published_beats(
    evidence: Evidence, printed: str, method: str, metrics: Sequence[str], datasets: Sequence[str]
) -> Finding:
    """True for each dataset and metric on which the published number is better than that of our column."""
    sentence = (
        f"By {words(metrics)}: the published {printed} is better than our {method}, per dataset of {words(datasets)}."
    )
    numbers, parts = {}, []
    for metric in metrics:
        theirs = evidence.printed(printed, metric, datasets)["mean"]
        ours = evidence.means(metric, [method], datasets)[method]
        parts += list(sign_of(metric) * (theirs - ours) > TIE)
        numbers[metric] = {name: f"{theirs[name]:.4f} to {ours[name]:.4f}" for name in datasets}
    return Finding.of(parts, numbers, sentence)


def separated(
    evidence: Evidence,
    control: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    at_least: int,
    alpha: float,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if Bonferroni-Dunn's test finds the control better in at least ``at_least`` pairs, over the metrics."""
    sentence = (
        f"By {words(metrics)}, over {words(datasets)}: Bonferroni-Dunn's test at "
        f"{alpha:g} finds {control} better than others of {words(methods)} in at least {at_least} pairs."
    )
    numbers: dict[str, Any] = {}
    count = 0
    for metric in metrics:
        comparison = compare_methods(
            evidence.means(metric, methods, datasets), direction_of(metric), alpha, control=control, metric=metric
        )
        better = [m for m in comparison.beyond_control if comparison.ranks[m] > comparison.ranks[control]]
        count += len(better)
        numbers[metric] = better
        numbers["CD"] = None if comparison.cd_bonferroni_dunn is None else round(comparison.cd_bonferroni_dunn, 3)
    return Finding.of(count >= at_least, {"pairs": count, **numbers}, sentence)


def slower_than(
    evidence: Evidence, method: str, others: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """Say how many times as long as each of the others a method takes to fit, by the means over splits."""
    sentence = (
        f"On each of {words(datasets)}: fitting {method} takes at most the limit times as long as fitting "
        f"each of {words(others)}."
    )
    seconds = evidence.means("fit_seconds", [method, *others], datasets)
    factors, numbers = {}, {}
    for other in others:
        ratio = seconds[method] / seconds[other]
        factors[other] = float(ratio.max())
        numbers[other] = f"{ratio.min():.2g} to {ratio.max():.2g} times"
    return Finding.at_most(factors, None, numbers, sentence, "factors")


def behind_by_at_most(
    evidence: Evidence, method: str, other: str, metric: str, at_most: Mapping[str, float]
) -> Finding:
    """True for a dataset on which the method's mean is worse than the other's by at most a printed difference.

    Half a printed unit of either number is allowed.
    """
    sentence = f"By {words(metric)}: {method} is worse than {other} by at most {words(at_most)}."
    loss = -evidence.gain(metric, method, other, list(at_most))
    numbers = {str(dataset): round(float(value), 4) for dataset, value in loss.items()}
    return Finding.of([loss[name] <= limit + 1e-4 for name, limit in at_most.items()], numbers, sentence)


def over_splits(evidence: Evidence, methods: Sequence[str], against: Sequence[str], metrics: Sequence[str]) -> Finding:
    """True for a pair if the first wins more cells than it loses, by means over the random splits.

    A cell is a dataset and a measure of the study of random splits; the numbers also tell in how many the difference is
    beyond two standard errors.
    """
    sentence = (
        f"Over random splits, by {words(metrics)}: each of {words(methods)} wins more cells than it loses "
        "against each of "
        f"{words(against)}; a cell is one dataset and one measure."
    )
    numbers, parts = {}, []
    for method in methods:
        for other in against:
            gains = _gains_over_splits(evidence, method, other, metrics)
            means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
            won, lost = int((means > TIE).sum()), int((means < -TIE).sum())
            parts.append(won > lost)
            sure = (
                f"{int((means > 2 * errors).sum())} and {int((means < -2 * errors).sum())} beyond two standard errors"
            )
            numbers[pair_name(method, other)] = f"{balance_text(won, lost)} of {len(means)} ({sure})"
    return Finding.of(parts, numbers, sentence)


def gains_over_splits(evidence: Evidence, method: str, other: str, metric: str) -> Finding:
    """True for a dataset on which a method is better than another by its mean over the random splits."""
    sentence = f"Over random splits, by {words(metric)}: {method} is better than {other}, per dataset."
    gains = _gains_over_splits(evidence, method, other, [metric])
    numbers = {
        str(dataset): f"{row.mean():+.4f} (standard error {row.std(ddof=1) / np.sqrt(len(row)):.4f}), ahead on "
        f"{int((row > TIE).sum())} of {len(row)}"
        for (_, dataset), row in gains.iterrows()
    }
    return Finding.of(list(gains.mean(axis=1) > TIE), numbers, sentence)


def _gains_over_splits(evidence: Evidence, method: str, other: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Return by how much a method is better, (metric, dataset) x split, in the study of random splits."""
    rows = evidence.table("resplits", method=[method, other], metric=list(metrics))
    tables = {}
    for metric in metrics:
        of_metric = rows[rows["metric"] == metric]
        values = of_metric.pivot_table(index="dataset", columns=["method", "split"], values="value")
        lacking = [name for name in (method, other) if name not in values.columns.get_level_values(0)]
        if lacking:
            raise NotYet(f"not run on random splits: {', '.join(lacking)}")
        tables[metric] = (values[method] - values[other]) * sign_of(metric)
    return pd.concat(tables)


def margins_go_with(evidence: Evidence, quantity: str, sign: int) -> Finding:
    """True for a dataset if the margins of its labels correlate with a quantity with a sign, by Spearman."""
    sentence = (
        f"On each dataset the margins of labels and their {quantity} have a Spearman correlation of sign "
        f"{sign:+d}, at {evidence.alpha:g}."
    )
    numbers: dict[str, Any] = {}
    kept = []
    for dataset, rows in evidence.table("margins").groupby("dataset", sort=False):
        found = spearmanr(rows["margin"], rows[quantity])
        kept.append(bool(found.statistic * sign > 0 and found.pvalue < evidence.alpha))
        numbers[str(dataset)] = round(float(found.statistic), 3)
    numbers["median"] = round(float(np.median(list(numbers.values()))), 3)
    return Finding.of(kept, numbers, sentence)


def _ranges(excepted: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{dataset} at {low} to {high}" for dataset, (low, high) in excepted.items())


def kept_as_many(evidence: Evidence, method: str, others: Sequence[str]) -> Finding:
    """True if on every dataset the others keep as many features as the method."""
    sentence = f"On every dataset: {words(others)} keep as many features as {method}."
    rows = evidence.table(_CURVES, method=[method, *others], kept=True)
    kept = rows.drop_duplicates(["method", "dataset"]).pivot(index="dataset", columns="method", values="features")
    numbers = {str(dataset): {str(m): int(n) for m, n in row.items()} for dataset, row in kept.iterrows()}
    alike = {d: next(iter(row.values())) if len({*row.values()}) == 1 else row for d, row in numbers.items()}
    return Finding.of(bool(kept.eq(kept[method], axis=0).all(axis=None)), alike, sentence)


def curve_above(
    evidence: Evidence,
    method: str,
    others: Sequence[str],
    metric: str,
    excepted: Mapping[str, Sequence[int]] | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for each rival and dataset on which the method's curve is higher at every number of features of both.

    All features together do not count, since all curves meet there. ``excepted`` are ranges of numbers of features, per
    dataset, that do not count either.
    """
    sentence = (
        f"On each of {words(datasets)}: {words(metric)} of {method} is better than "
        f"that of each of {words(others)} at every number of features that both have, but for all features"
        f"{'' if excepted is None else f', except on {_ranges(excepted)}'}."
    )
    every = evidence.table(_CURVES).groupby("dataset")["features"].max()
    numbers, parts = {}, []
    for other in others:
        texts = []
        for dataset, pair in _curves(evidence, [method, other], metric, datasets).items():
            low, high = (excepted or {}).get(dataset, (0, -1))
            pair = pair[~pair.index.to_series().between(low, high) & (pair.index < every[dataset])]
            gain = sign_of(metric) * (pair[method] - pair[other])
            above = int((gain > TIE).sum())
            texts.append(f"{dataset} {above} of {len(pair)}")
            parts.append(above == len(pair))
        numbers[other] = ", ".join(texts)
    return Finding.of(parts, numbers, sentence)


def curve_areas(
    evidence: Evidence,
    method: str,
    against: Mapping[str, int],
    metrics: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for each rival whose area under the curve is worse than the method's in at least ``at_least`` cells.

    The area is the mean height over the numbers of features that both curves have; a cell is a dataset and a metric.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: the area under the curve of "
        f"{method} over the number of features is better in at least this number of cells than: "
        f"{words(against)}; a cell is one dataset and one measure."
    )
    numbers, parts = {}, []
    for other, at_least in against.items():
        gains = []
        for metric in metrics:
            sign = sign_of(metric)
            pairs = _curves(evidence, [method, other], metric, datasets).values()
            gains += [sign * (curve_area(pair[method]) - curve_area(pair[other])) for pair in pairs]
        won = int((np.array(gains) > TIE).sum())
        numbers[other] = f"{won} of {len(gains)}"
        parts.append(won >= at_least)
    return Finding.of(parts, numbers, sentence)


def _curves(
    evidence: Evidence, methods: Sequence[str], metric: str, datasets: Sequence[str] | None
) -> dict[str, pd.DataFrame]:
    """Return per dataset the values at the numbers of features (index) that all methods have.

    Raises
    ------
    NotYet
        If a method has no curve.
    """
    rows = evidence.table(_CURVES, method=list(methods), metric=metric)
    if lacking := sorted(set(methods) - set(rows["method"])):
        raise NotYet(f"no curve of {', '.join(lacking)}")
    curves = {
        str(d): part.pivot(index="features", columns="method", values="value") for d, part in rows.groupby("dataset")
    }
    return {
        d: table.reindex(columns=list(methods)).dropna() for d, table in curves.items() if not datasets or d in datasets
    }


def curve_area(curve: pd.Series) -> float:
    """Return the mean height of a curve by the trapezoid rule."""
    at, height = curve.index.to_numpy(dtype=float), curve.to_numpy()
    return float(np.trapezoid(height, at) / (at[-1] - at[0])) if len(at) > 1 else float(height[0])
