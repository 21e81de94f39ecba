"""Checks of the iMLDF paper: costs, paired comparisons, layers kept, and what its table says of its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
from scipy.stats import ttest_rel

from multilab.claims.errors import NotYet
from multilab.claims.evidence import TIE, Evidence, Finding, sign_of, words
from multilab.claims.pairs import balance_text, pair_name
from multilab.datasets import card
from multilab.statistics.resampled_t import corrected_resampled_p

_TEST_TO_TRAIN = 3 / 7  # the paper and the study train on 70 % of the rows


def ratio_at_most(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    to: str,
    datasets: Sequence[str],
    limit: float | None = None,
) -> Finding:
    """True if on every dataset the means of a method divided by those of another are at most a limit.

    Without a limit, which is for a sentence that has none, it depends on it.
    """
    return _limited_ratio(evidence, metrics, method, to, datasets, limit, "most")


def ratio_at_least(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    to: str,
    datasets: Sequence[str],
    limit: float | None = None,
) -> Finding:
    """True if on every dataset the means of a method divided by those of another are at least a limit.

    Without a limit, which is for a sentence that has none, it depends on it.
    """
    return _limited_ratio(evidence, metrics, method, to, datasets, limit, "least")


def _limited_ratio(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    to: str,
    datasets: Sequence[str],
    limit: float | None,
    side: Literal["most", "least"],
) -> Finding:
    bound = "" if limit is None else f" is at {side} {limit:g}"
    sentence = f"On each of {words(datasets)}: {words(metrics)} of {method}, divided by that of {to}{bound}."
    tables = {metric: evidence.means(metric, [method, to], datasets) for metric in metrics}
    ratios = {
        f"{dataset}, {metric}" if len(tables) > 1 else str(dataset): float(value)
        for metric, table in tables.items()
        for dataset, value in (table[method] / table[to]).items()
    }
    numbers = {name: round(value, 3) for name, value in ratios.items()}
    limited = Finding.at_most if side == "most" else Finding.at_least
    return limited(ratios, limit, numbers, sentence, of="factors")


def not_worse(
    evidence: Evidence,
    metrics: Sequence[str],
    method: str,
    than: str,
    at_least: int,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if the method is not worse than another in at least ``at_least`` cells (datasets x metrics).

    A cell with several splits is worse if its mean is and the corrected resampled t test over them is significant; a
    published mean is worse if it is at its printed decimals.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} is as good as {than} or "
        f"better, or not significantly worse, in at least {at_least} cells; a cell is one dataset and one "
        "measure, significance that of the corrected resampled t test over its splits."
    )
    cells = _compared(evidence, metrics, method, than, datasets)
    decides = cells["significant"] | (cells["splits"] < 2)
    kept = len(cells) - int(((cells["gain"] < -TIE) & decides).sum())
    return Finding.of(kept >= at_least, {**_counted(cells), "not worse": kept}, sentence)


def more_won(
    evidence: Evidence, metrics: Sequence[str], method: str, than: str, datasets: Sequence[str] | None = None
) -> Finding:
    """True if the mean of a method is better than that of another in more cells (datasets x metrics) than worse.

    The numbers say how many of these differences are significant, and how the cells of each dataset fall.
    """
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {method} wins more cells than it loses against {than}; a cell is "
        "one dataset and one measure, and won by the mean over its splits."
    )
    numbers = _counted(_compared(evidence, metrics, method, than, datasets))
    return Finding.of(numbers["won"] > numbers["lost"], numbers, sentence)


def _compared(
    evidence: Evidence, metrics: Sequence[str], method: str, than: str, datasets: Sequence[str] | None
) -> pd.DataFrame:
    """Return one row per dataset and metric: the mean gain of a method, how many splits, and whether it is significant.

    ``significant`` is by the corrected resampled t test, ``plain`` by the paired t test, for which the splits, whose
    training sets overlap, are independent.
    """
    cells = []
    for metric in metrics:
        runs = evidence.runs(metric, [method, than], datasets).dropna()
        for dataset, split in runs.groupby(level="dataset"):
            gains = (split[method] - split[than]) * sign_of(metric)
            cells.append((dataset, float(gains.mean()), len(gains), *_significant(gains, evidence.alpha)))
    return pd.DataFrame(cells, columns=["dataset", "gain", "splits", "significant", "plain"])


def _counted(cells: pd.DataFrame) -> dict[str, Any]:
    won, lost = cells["gain"] > TIE, cells["gain"] < -TIE
    counts = {
        "won": won,
        "lost": lost,
        "tied": ~(won | lost),
        "significantly better": won & cells["significant"],
        "significantly worse": lost & cells["significant"],
        "better by the plain t test": won & cells["plain"],
        "worse by the plain t test": lost & cells["plain"],
    }
    numbers = {name: int(which.sum()) for name, which in counts.items()} | {"cells": len(cells)}
    by_set = {
        f"on {name}": balance_text(won[at].sum(), lost[at].sum())
        for name, at in cells.groupby("dataset").groups.items()
    }
    return numbers | by_set


def decided_best_share(
    evidence: Evidence, metrics: Sequence[str], method: str, methods: Sequence[str], at_least: int
) -> Finding:
    """True if a method is first (ties included) in at least ``at_least`` cells, one per dataset and metric.

    It is decided by the datasets with all the splits that the paper has where the others cannot change it any more;
    else by all.
    """
    sentence = (
        f"By {words(metrics)}: {method} is first among {words(methods)}, ties included, in at least {at_least} cells; "
        "a cell is one dataset and one measure."
    )
    datasets = sorted(set(evidence.scores["dataset"][evidence.scores["method"] == method]))
    complete = _complete(evidence, methods, metrics, datasets)
    numbers = _firsts(evidence, metrics, method, methods, complete)
    undecided = (len(datasets) - len(complete)) * len(metrics)
    if not datasets or (undecided and numbers["first"] < at_least <= numbers["first"] + undecided):
        numbers = _firsts(evidence, metrics, method, methods, datasets or None)  # which makes it open
        undecided = 0
    if undecided:
        numbers["cells on fewer splits, not counted"] = undecided
    return Finding.of(numbers["first"] >= at_least, numbers, sentence)


def _complete(evidence: Evidence, methods: Sequence[str], metrics: Sequence[str], datasets: Sequence[str]) -> list[str]:
    """Return the datasets with the results of all methods, on as many splits as the paper has."""
    if evidence.splits is None:
        return list(datasets)
    rows = evidence.scores[evidence.scores["method"].isin(methods) & evidence.scores["metric"].isin(metrics)]
    have = rows.groupby(["dataset", "method", "metric"])["split"].nunique()
    least = have.unstack("dataset").min()
    full = have.groupby("dataset").size() == len(set(methods)) * len(metrics)
    needed = {name: evidence.splits.get(name, evidence.splits.get("default", 1)) for name in datasets}
    return [name for name in datasets if full.get(name, False) and least[name] >= needed[name]]


def _firsts(
    evidence: Evidence, metrics: Sequence[str], method: str, methods: Sequence[str], datasets: Sequence[str] | None
) -> dict[str, int]:
    """Return in how many cells a method is first, in how many alone, and of how many."""
    if datasets is not None and not datasets:
        return {"first": 0, "alone first": 0, "cells": 0}
    cells = evidence.places(metrics, method, methods, datasets)
    return {"first": int((cells["place"] == 1).sum()), "alone first": int(cells["alone"].sum()), "cells": len(cells)}


def loses_less_with_depth(
    evidence: Evidence,
    metrics: Sequence[str],
    deep: str,
    shallow: str,
    other_deep: str,
    other_shallow: str,
    datasets: Sequence[str],
) -> Finding:
    """True if a method loses fewer cells (datasets x metrics) by its deep form than another method does."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: {deep} is worse than {shallow} in fewer cells than {other_deep} "
        f"is than {other_shallow}; a cell is one dataset and one measure."
    )
    numbers, lost = dict[str, Any](), []
    for one, than in ((deep, shallow), (other_deep, other_shallow)):
        counted = _counted(_compared(evidence, metrics, one, than, datasets))
        lost.append(counted["lost"])
        numbers[pair_name(one, than)] = balance_text(counted["won"], counted["lost"])
        for name in ("significantly worse", "worse by the plain t test"):
            numbers[f"{one}, {name}"] = counted[name]
    return Finding.of(lost[0] < lost[1], numbers, sentence)


def less_correlated(evidence: Evidence, quantities: Sequence[str], datasets: Sequence[str]) -> Finding:
    """True for a quantity and a dataset if a correlation is smaller in interactions than in label probabilities.

    Both are representations of the same forests, see the analysis ``diversity``; means over the splits.
    """
    named = {"between_columns": "two columns", "with_labels": "a column with the label it is nearest to"}
    sentence = (
        f"On each of {words(datasets)}: the mean absolute correlation of "
        f"{' and of '.join(named[q] for q in quantities)} is smaller for interactions than for label probabilities."
    )
    parts, numbers = [], {}
    for quantity in quantities:
        rows = evidence.table("diversity", quantity=quantity, dataset=list(datasets))
        means = rows.groupby(["dataset", "representation"])["value"].mean().unstack().reindex(datasets)
        parts += (means["interactions"] < means["probabilities"]).tolist()
        numbers[quantity] = {
            str(name): f"{row.interactions:.3f}, probabilities {row.probabilities:.3f}"
            for name, row in means.iterrows()
        }
    return Finding.of(parts, numbers, sentence)


def more_dimensions(evidence: Evidence, datasets: Sequence[str]) -> Finding:
    """True for a dataset if the columns of interactions span more dimensions, for their number, than probabilities.

    Dimensions are the participation ratio of the eigenvalues of the correlation matrix, see the analysis ``diversity``.
    """
    sentence = (
        f"On each of {words(datasets)}: the dimensions that the columns span, by the participation ratio of the "
        "eigenvalues of their correlation matrix, divided by the number of columns, are more for interactions than for "
        "label probabilities."
    )
    rows = evidence.table("diversity", quantity="effective_share", dataset=list(datasets))
    means = rows.groupby(["dataset", "representation"])["value"].mean().unstack().reindex(datasets)
    numbers = {
        str(name): f"{row.interactions:.3f}, probabilities {row.probabilities:.3f}" for name, row in means.iterrows()
    }
    return Finding.of((means["interactions"] > means["probabilities"]).tolist(), numbers, sentence)


def fewer_sets_than(evidence: Evidence, quantity: str, datasets: Sequence[str], limit: float) -> Finding:
    """True if on every dataset, in the mean over the splits, fewer interactions than a limit are found."""
    named = {"sets_last_level": "in nodes of the last level", "sets_twice": "in two samples or more"}[quantity]
    sentence = (
        f"On each of {words(datasets)}: of the sets of two signed features or more on the paths of a layer, fewer than "
        f"{limit:g} are {named}."
    )
    rows = evidence.table("diversity", quantity=quantity, dataset=list(datasets))
    means = rows.groupby("dataset")["value"].mean().reindex(datasets)
    return Finding.of(
        (means < limit).tolist(), {name: round(float(value), 1) for name, value in means.items()}, sentence
    )


def layers_kept(evidence: Evidence, method: str, at_least: int, layers: int = 1) -> Finding:
    """True if at least ``at_least`` of the cascades of the first splits have this number of layers."""
    sentence = (
        f"{method} keeps {layers} layer in at least {at_least} of its cascades: one per measure, on the first split."
    )
    kept = {name: arrays[0] for name, arrays in evidence.arrays(method, ["n_layers_"]).items()}
    numbers = {name: " ".join(map(str, counts)) for name, counts in kept.items()}
    equal = sum(int((counts == layers).sum()) for counts in kept.values())
    cascades = sum(len(counts) for counts in kept.values())
    return Finding.of(equal >= at_least, {**numbers, f"{layers} layer": equal, "cascades": cascades}, sentence)


def counted_ranks(
    evidence: Evidence,
    method: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    first: int,
    alone: int,
    second: int,
) -> Finding:
    """True if the cells (datasets x metrics) in which a method is first, alone and second have these numbers."""
    sentence = (
        f"{method} is first in {first} cells by {words(metrics)}, in {alone} of them alone, and second in {second}."
    )
    cells = evidence.places(metrics, method, methods)
    counts = {
        "first": int((cells["place"] == 1).sum()),
        "alone first": int(cells["alone"].sum()),
        "second": int((cells["place"] == 2).sum()),
        "cells": len(cells),
    }
    return Finding.of(
        (counts["first"], counts["alone first"], counts["second"]) == (first, alone, second), counts, sentence
    )


def not_one_split(evidence: Evidence, method: str, metric: str, rows: Mapping[str, Sequence[int]]) -> Finding:
    """True if no deviation differs from 0, and no value is a share of the rows of one test set."""
    sentence = (
        f"The deviations of {method} are all 0, and {words(metric)} is no k / N at three decimals for "
        f"the numbers of test rows N of one split: {words(rows)}."
    )
    own = evidence.scores[evidence.scores["method"] == method].dropna(subset=["std"])
    if own.empty:
        raise NotYet(f"no deviation of {method}")
    values = evidence.means(metric, [method], list(rows))[method]
    shares = {
        name: [n for n in sizes if any(round(k / n, 3) == round(values[name], 3) for k in range(n + 1))]
        for name, sizes in rows.items()
    }
    numbers = {name: ", ".join(map(str, fitting)) or "none" for name, fitting in shares.items()}
    flat = bool((own["std"] == 0).all())
    return Finding.of(
        flat and not any(shares.values()), {**numbers, "cells with deviation 0": int((own["std"] == 0).sum())}, sentence
    )


def loss_is_density(
    evidence: Evidence, method: str, datasets: Sequence[str], at_least: int, tolerance: float
) -> Finding:
    """True if the Hamming loss is that of predictions without a label, the label density, on enough datasets."""
    sentence = (
        f"On at least {at_least} of {words(datasets)}: the Hamming loss of {method} is "
        f"the label density, to {tolerance:g}."
    )
    losses = evidence.means("hamming_loss", [method], datasets)[method]
    densities = pd.Series({name: _density(name) for name in datasets})
    near = (losses - densities).abs() <= tolerance
    numbers = {name: f"{losses[name]:.3f}, density {densities[name]:.3f}" for name in datasets}
    return Finding.of(int(near.sum()) >= at_least, {**numbers, "datasets that fit": int(near.sum())}, sentence)


def _density(dataset: str) -> float:
    """Return the label density of a dataset, from its card."""
    expected = card(dataset).expected
    return float(expected.cardinality / expected.labels)


def _significant(gains: pd.Series, alpha: float) -> tuple[bool, bool]:
    """Return whether the mean of paired differences differs significantly from 0: corrected for overlap, and not."""
    if len(gains) < 2 or gains.std() == 0:
        return False, False
    corrected = corrected_resampled_p(gains.to_numpy(), _TEST_TO_TRAIN)
    return corrected < alpha, bool(ttest_rel(gains, 0 * gains).pvalue < alpha)
