"""Checks of the MLWSE claims and errata: parameters, iterations, weights, mixed measures, printed arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f, spearmanr

from multilab.claims.errors import NotYet
from multilab.claims.evidence import TIE, Evidence, Finding, direction_of, sign_of, words
from multilab.claims.pairs import balance_text, pair_name
from multilab.methods.stacking.objective import cosine_affinity
from multilab.statistics import nemenyi_cd, rank_rows, signed_rank_p


def cases_of_figure_4(
    evidence: Evidence, method: str, metric: str, limit: float, alpha: float, monotone: bool
) -> Finding:
    """True if most cases have this shape: on each dataset, worse beyond ``limit`` of alpha, and up, then down in beta.

    Without ``monotone`` a curve goes up, then down, if it is best inside its range and worse at both ends; with it, it
    must not fall before its best value nor rise after it.
    """
    how = "never falls before its best value, nor rises after it" if monotone else "is best inside its range"
    sentence = (
        f"In more than half of the cases: on each dataset, the best {words(metric)} of {method} with alpha "
        f"above {limit:g} is "
        f"below the best up to it; and at alpha = {alpha:g} it {how} as beta grows, and is below the best at both ends."
    )
    numbers: dict[str, Any] = {}
    kept = []
    for dataset, rows in _grid(evidence, "sensitivity", method, metric).groupby("dataset"):
        beyond, within = rows[rows["alpha"] > limit], rows[rows["alpha"] <= limit]
        kept.append(bool(within["gain"].max() > beyond["gain"].max()))
        numbers[f"{dataset}: alpha"] = {
            "best up to": round(float(within["value"].max()), 4),
            "best beyond": round(float(beyond["value"].max()), 4),
        }
        curve = rows[rows["alpha"] == alpha].sort_values("beta").set_index("beta")["gain"]
        best = int(np.argmax(curve.to_numpy()))
        steps = np.diff(curve.to_numpy())
        inside = curve.iloc[best] > max(curve.iloc[0], curve.iloc[-1])
        kept.append(bool(inside and (not monotone or ((steps[:best] >= 0).all() and (steps[best:] <= 0).all()))))
        numbers[f"{dataset}: beta"] = {
            "first": round(float(curve.iloc[0]), 4),
            "lowest before the best": round(float(curve.iloc[: best + 1].min()), 4),
            "best": round(float(curve.iloc[best]), 4),
            "best at": float(curve.index[best]),
            "last": round(float(curve.iloc[-1]), 4),
        }
    numbers["cases"] = f"{sum(kept)} of {len(kept)}"
    return Finding.of(2 * sum(kept) > len(kept), numbers, sentence)


def rises_in(evidence: Evidence, method: str, metric: str, parameter: str, dataset: str, at_any: str) -> Finding:
    """True if at some value of another parameter the best value lies inside a parameter's range, above both ends."""
    sentence = (
        f"On {dataset}: at some {at_any}, {words(metric)} of {method} is better inside the range of "
        f"{parameter} than at both ends."
    )
    rows = _grid(evidence, "sensitivity", method, metric)
    rows = rows[rows["dataset"] == dataset]
    leads = {}
    for value, part in rows.groupby(at_any):
        curve = part.sort_values(parameter)["gain"].to_numpy()
        leads[f"{at_any} {value:g}"] = float(curve.max() - max(curve[0], curve[-1]))
    return Finding.of(max(leads.values()) > 0, {name: round(lead, 4) for name, lead in leads.items()}, sentence)


def range_at_best(
    evidence: Evidence, method: str, metric: str, at_best: Sequence[str], up_to: Mapping[str, float] | None = None
) -> Finding:
    """Say over how much the values range, the parameters ``at_best`` kept at their best value.

    That is their value at the best point of the grid; the others vary up to the values in ``up_to``.
    """
    sentence = (
        f"On every dataset: at the best value of {words(at_best)}, {words(metric)} of {method} ranges over at most the "
        f"limit{f', with {words(up_to)} at most' if up_to else ''}."
    )
    widths = {}
    for dataset, rows in _grid(evidence, "sensitivity", method, metric).groupby("dataset"):
        best = rows.loc[rows["gain"].idxmax()]
        for name in at_best:
            rows = rows[rows[name] == best[name]]
        for name, bound in (up_to or {}).items():
            rows = rows[rows[name] <= bound]
        widths[str(dataset)] = float(np.ptp(rows["value"]))
    numbers = {name: round(width, 4) for name, width in widths.items()}
    return Finding.at_most(widths, None, numbers, sentence, "ranges")


def gap_from(evidence: Evidence, at: Mapping[str, int]) -> Finding:
    """Say how far from its minimum, as a share of it, the loss still is at an iteration."""
    sentence = (
        "On every dataset, from this iteration on the loss is above its minimum by at most the limit, as a "
        f"share of it: {words(at)}."
    )
    gaps = {name: float(rows["gap"].max()) for name, rows in _late(evidence, at, "convergence", "iteration").items()}
    return Finding.at_most(gaps, None, _rounded(gaps), sentence, "shares")


def changes_from(evidence: Evidence, at: Mapping[str, int]) -> Finding:
    """Say by how much the loss changes per iteration from an iteration on, and from the first one on."""
    sentence = (
        "On every dataset, from this iteration on the loss changes per iteration by at most the limit, as a "
        f"share of its minimum: {words(at)}."
    )

    def largest(first: Mapping[str, int]) -> dict[str, float]:
        late = _late(evidence, first, "convergence", "iteration", least=2)
        return {name: float((rows["gap"].diff().abs() / rows["iteration"].diff()).max()) for name, rows in late.items()}

    changes = largest(at)
    from_first = max(largest(dict.fromkeys(at, 1)).values())
    numbers = {**_rounded(changes), "largest of all from iteration 1 on": float(f"{from_first:.3g}")}
    return Finding.at_most(changes, None, numbers, sentence, "changes")


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


def _grid(evidence: Evidence, table: str, method: str, metric: str) -> Any:
    rows = evidence.table(table, method=method, metric=metric)
    return rows.assign(gain=rows["value"] * sign_of(metric))


def drops_classifiers(evidence: Evidence, methods: Sequence[str], blocks: int = 3) -> Finding:
    """True for a method if it leaves out a complete base classifier on some dataset, at its own parameters.

    The rows of ``W_`` are ``blocks`` groups of equal size. The numbers tell on how many datasets single weights are 0.
    """
    sentence = (
        f"On some dataset {words(methods)} gives all weights of one of {blocks} base classifiers the value "
        "0, on first splits."
    )
    numbers, dropped = {}, []
    for method in methods:
        weights = {name: arrays[0] for name, arrays in evidence.arrays(method, ["W_"]).items()}
        shares = {name: float(np.mean(W == 0)) for name, W in weights.items()}
        groups = [group for W in weights.values() for group in np.array_split(W, blocks)]
        count = sum(not group.any() for group in groups)
        dropped.append(count > 0)
        numbers[method] = {
            "classifiers dropped": f"{count} of {len(groups)}",
            "datasets with a weight of 0": f"{sum(share > 0 for share in shares.values())} of {len(shares)}",
            "largest share of weights of 0": round(max(shares.values()), 4),
        }
    return Finding.of(dropped, numbers, sentence)


def can_drop_classifiers(evidence: Evidence, methods: Sequence[str]) -> Finding:
    """True for a method and a dataset if at some strength one base classifier is left out and another is kept."""
    sentence = (
        f"For each of {words(methods)}, on each dataset: at some strength of the penalty one classifier has "
        "weights of 0 only, and another has not."
    )
    numbers, found = {}, []
    for (method, dataset), rows in evidence.table("sparsity", method=list(methods)).groupby(["method", "dataset"]):
        some = rows[(rows["zero_blocks"] > 0) & (rows["zero_blocks"] < 1)]
        found.append(len(some) > 0)
        own = rows[rows["paper"] > 0].iloc[0]
        if len(some):
            best = some.loc[some["hamming_loss"].idxmin()]
            numbers[f"{method} on {dataset}"] = {
                "strength": float(f"{best['strength']:.3g}"),
                "times the printed one": float(f"{best['strength'] / own['strength']:.3g}"),
                "Hamming loss": round(float(best["hamming_loss"]), 4),
                "at the printed strength": round(float(own["hamming_loss"]), 4),
            }
    return Finding.of(found, numbers, sentence)


def zeros_at(evidence: Evidence, method: str, strengths: Mapping[str, float]) -> Finding:
    """True for a dataset if weights are 0 at a strength of the penalty: the shares at the tabulated ones around it."""
    sentence = (
        f"On each dataset some weights of {method} are 0 at this strength (of the two tabulated next to it): "
        f"{words(strengths)}."
    )
    numbers, some = {}, []
    for dataset, strength in strengths.items():
        rows = evidence.table("sparsity", method=method, dataset=dataset).sort_values("strength")
        around = rows.iloc[[rows["strength"].searchsorted(strength) - 1, rows["strength"].searchsorted(strength)]]
        shares = {f"{row.strength:.3g}": round(float(row.zeros), 4) for row in around.itertuples()}
        numbers[dataset] = {**shares, "classifiers dropped": round(3 * float(around["zero_blocks"].max()))}
        some.append(min(around["zeros"]) > 0)
    return Finding.of(some, numbers, sentence)


def affinities_agree(evidence: Evidence, methods: Sequence[str], dataset: str, limit: float | None = None) -> Finding:
    """Say how the cosines of label columns and of weight columns of a dataset correlate, by Spearman."""
    sentence = (
        f"On {dataset}: the cosines of label columns and of weight columns have at least the Spearman "
        "correlation of the limit, "
        f"for each of {words(methods)}."
    )
    values, numbers = {}, {}
    for method in methods:
        rhos = {}
        for name, (labels, W) in evidence.arrays(method, ["label_affinity_", "W_"]).items():
            rhos[name] = _correlations(labels, W)
        if dataset not in rhos:
            raise NotYet(f"{method} kept no weights on {dataset}")
        values[method] = rhos[dataset]["Spearman"]
        all_rhos = [one["Spearman"] for one in rhos.values() if one]
        numbers[method] = {
            **rhos[dataset],
            "negative on": f"{sum(rho < 0 for rho in all_rhos)} of {len(all_rhos)} datasets",
            "median": round(float(np.median(all_rhos)), 3),
        }
    return Finding.at_least(values, limit, numbers, sentence, "correlations")


def _correlations(labels: np.ndarray, W: np.ndarray) -> dict[str, float]:
    """Return how off-diagonal cosines correlate, and the smallest ones; nothing where they do not vary."""
    above = np.triu_indices(len(labels), 1)
    a, b = labels[above], cosine_affinity(W)[above]
    if len(labels) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return {}
    return {
        "Spearman": round(float(spearmanr(a, b).statistic), 4),
        "Pearson": round(float(np.corrcoef(a, b)[0, 1]), 4),
        "smallest cosine of labels": round(float(a.min()), 3),
        "of weights": round(float(b.min()), 3),
    }


def loss_to_best(
    evidence: Evidence, methods: Sequence[str], others: Sequence[str], metric: str, datasets: Sequence[str]
) -> Finding:
    """Say by how much each method's mean is worse than that of the best of the others; below 0 it is better."""
    sentence = (
        f"On each of {words(datasets)}: the mean {words(metric)} of each of {words(methods)} is worse than "
        "that of the best "
        f"of {words(others)} by at most the limit."
    )
    sign = sign_of(metric)
    losses, numbers = {}, {}
    for dataset in datasets:
        runs = evidence.runs(metric, [*methods, *others], [dataset]) * sign
        best = str(runs[list(others)].mean().idxmax())
        for method in methods:
            gain = runs[method] - runs[best]
            name = pair_name(method, f"{best} on {dataset}")
            losses[name] = -float(gain.mean())
            error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
            numbers[name] = f"{gain.mean():+.4f}" + (f" (standard error {error:.4f})" if len(gain) > 1 else "")
    return Finding.at_most(losses, None, numbers, sentence, "differences")


def better_in_draws(
    evidence: Evidence, methods: Sequence[str], other: str, metric: str, datasets: Sequence[str]
) -> Finding:
    """True for a method and a dataset if its mean over the draws is better than the other's.

    Of more than one draw, by Wilcoxon's signed-rank test too: a difference that a further draw could turn is none.
    """
    sentence = (
        f"On each of {words(datasets)}: the mean {words(metric)} of each of {words(methods)} is better than "
        f"that of {other}, by "
        f"Wilcoxon's signed-rank test over the draws at {evidence.alpha:g}."
    )
    numbers, better = {}, []
    for dataset in datasets:
        runs = evidence.runs(metric, [*methods, other], [dataset]) * sign_of(metric)
        for method in methods:
            gain = (runs[method] - runs[other]).to_numpy()
            p = signed_rank_p(gain) if len(gain) > 1 else 0.0
            better.append(bool(gain.mean() > TIE and p < evidence.alpha))
            numbers[f"{method} on {dataset}"] = f"{gain.mean():+.4f}" + (f" (p {p:.2g})" if len(gain) > 1 else "")
    return Finding.of(better, numbers, sentence)


def largest_weight_to_best(
    evidence: Evidence, methods: Sequence[str], classifiers: Sequence[str], datasets: Sequence[str]
) -> Finding:
    """True for a method and a dataset if the most accurate classifier has the largest mean weight."""
    sentence = (
        f"On each of {words(datasets)}: {words(methods)} gives the largest weight to the most accurate of "
        f"{words(classifiers)}, by means."
    )
    numbers, kept = {}, []
    for dataset in datasets:
        accuracy = {name: float(evidence.runs("accuracy", [name], [dataset])[name].mean()) for name in classifiers}
        first = [name for name, value in accuracy.items() if value >= max(accuracy.values()) - TIE]
        for method in methods:
            weights = {
                name: float(evidence.runs(f"weight[{name}]", [method], [dataset])[method].mean())
                for name in classifiers
            }
            heaviest = max(weights, key=lambda name: weights[name])
            kept.append(heaviest in first)
            numbers[f"{method} on {dataset}"] = (
                f"largest weight {weights[heaviest]:.2f}: {heaviest} ({accuracy[heaviest]:.3f}); most accurate: "
                f"{first[0]} ({accuracy[first[0]]:.3f}, weight {weights[first[0]]:.2f})"
            )
    return Finding.of(kept, numbers, sentence)


def first_of(evidence: Evidence, method: str, others: Sequence[str], metric: str, datasets: Sequence[str]) -> Finding:
    """True for a dataset on which no other method has a better mean."""
    sentence = (
        f"On each of {words(datasets)}: no other of {words(others)} has a better mean {words(metric)} than {method}."
    )
    table = evidence.means(metric, [method, *others], datasets)
    signed = table * sign_of(metric)
    numbers = {str(d): {name: round(float(v), 4) for name, v in row.items()} for d, row in table.iterrows()}
    return Finding.of(list(signed[method] >= signed.max(axis=1) - TIE), numbers, sentence)


def pattern_is_likely(evidence: Evidence, method: str, metric: str, value: float, datasets: Sequence[str]) -> Finding:
    """True if one draw of each dataset gives the value each time with a probability of at least the level.

    The probability is the product of the shares of draws that give the value.
    """
    sentence = (
        f"One draw of each of {words(datasets)} has {metric} of {method} at {value:g} each time with a "
        f"probability of at least {evidence.alpha:g}."
    )
    shares = {}
    for dataset in datasets:
        runs = evidence.runs(metric, [method], [dataset])[method]
        shares[dataset] = float((runs == value).mean())
    probability = math.prod(shares.values())
    numbers = {**{name: f"{share:.0%}" for name, share in shares.items()}, "probability": float(f"{probability:.2g}")}
    return Finding.of(probability >= evidence.alpha, numbers, sentence)


def largest_difference(
    evidence: Evidence, method: str, other: str, metrics: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """Say by how much the means of two columns differ at most, over measures and datasets."""
    sentence = (
        f"By {words(metrics)}, on {words(datasets)}: the means of {method} and {other} differ by at most the limit."
    )
    values, numbers = {}, {}
    for metric in metrics:
        gain = evidence.gain(metric, method, other, datasets)
        values[metric] = float(gain.abs().max())
        where = str(gain.abs().idxmax())
        numbers[metric] = f"{gain[where]:+.4f} on {where}"
    return Finding.at_most(values, None, numbers, sentence, "differences")


def slower_than(
    evidence: Evidence, methods: Sequence[str], others: Sequence[str], datasets: Sequence[str] | None = None
) -> Finding:
    """Say how many times the seconds of the median of other methods each method takes, its base scores included."""
    sentence = (
        f"On each of {words(datasets)}: {words(methods)}, base scores, fit and prediction together, take at "
        "most the limit times "
        f"as long as the median of {words(others)}."
    )
    spent = evidence.means("total_seconds", [*methods, *others], datasets) + evidence.means(
        "input_seconds", [*methods, *others], datasets
    )
    factors, numbers, fastest = {}, {}, spent[list(others)].min(axis=1)
    for method in methods:
        ratio = spent[method] / spent[list(others)].median(axis=1)
        factors[method] = float(ratio.max())
        numbers[method] = {
            "median factor": float(f"{ratio.median():.3g}"),
            "largest": f"{ratio.max():.3g} on {ratio.idxmax()}",
            "faster than all others on": f"{int((spent[method] < fastest).sum())} of {len(spent)}",
        }
    return Finding.at_most(factors, None, numbers, sentence, "factors")


def best_mixed_rank(
    evidence: Evidence,
    mixture: Mapping[str, Mapping[str, str]],
    best: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True if one of ``best`` has the lowest average rank where the columns mix quantities.

    ``mixture`` has per printed name the quantity of each method, ``default`` that of those it does not name; all of
    them have the same direction.
    """
    sentence = (
        f"By {words(mixture)}, where methods have quantities of their own: the average rank of "
        f"{words(best)} is below that of the other ones of {words(methods)}, over {words(datasets)}."
    )
    numbers, first = {}, []
    for title, quantities in mixture.items():
        table = _mixed(evidence, quantities, methods, datasets)
        ranks = rank_rows(table, direction_of(quantities["default"])).mean(axis=0)
        numbers[title] = {name: round(float(rank), 3) for name, rank in ranks.sort_values().items()}
        first.append(min(ranks[list(best)]) < min(ranks[[m for m in methods if m not in best]]))
    return Finding.of(first, numbers, sentence)


def printed_is_better(evidence: Evidence, method: str, metric: str, dataset: str, other: float) -> Finding:
    """True if a printed number is better for its method than another published version of it."""
    sentence = (
        f"The printed {words(metric)} of {method} on {dataset} is better than {other:g}, that of the other version."
    )
    printed = float(evidence.means(metric, [method], [dataset])[method].iloc[0])
    return Finding.of(sign_of(metric) * (printed - other) > 0, {"printed": printed, "other version": other}, sentence)


def ranks_with_other_version(
    evidence: Evidence,
    metric: str,
    changed: Mapping[str, Mapping[str, float]],
    order: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str],
) -> Finding:
    """True if with another version's cells, ``{method: {dataset: value}}``, the average ranks rise along ``order``.

    And along the printed ones they do not.
    """
    sentence = (
        f"By {words(metric)}, over {words(datasets)}: with the cells of the other version the average ranks "
        "rise in the order "
        f"{words(order)}, with the printed ones they do not."
    )
    printed = evidence.means(metric, methods, datasets)
    other = printed.copy()
    for method, cells in changed.items():
        for dataset, value in cells.items():
            other.loc[dataset, method] = value
    numbers: dict[str, Any] = {}
    rising = []
    for title, table in (("printed", printed), ("other version", other)):
        ranks = rank_rows(table, direction_of(metric)).mean(axis=0)
        numbers[title] = {name: round(float(ranks[name]), 3) for name in order}
        rising.append(bool((np.diff(ranks[list(order)]) > 0).all()))
    return Finding.of(rising == [False, True], numbers, sentence)


def leads_by_critical_difference(
    evidence: Evidence,
    metrics: Sequence[str],
    best: Sequence[str],
    methods: Sequence[str],
    datasets: Sequence[str] | None = None,
) -> Finding:
    """True for a metric if one of ``best`` leads the other methods by more than Nemenyi's critical difference."""
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
    """True if each method wins more cells than it loses against each other one, where the columns mix quantities."""
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
            won = sum(int((gain > TIE).sum()) for gain in gains)
            lost = sum(int((gain < -TIE).sum()) for gain in gains)
            numbers[pair_name(method, other)] = balance_text(won, lost)
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
    """True if a quantity is at most another on all datasets but those in ``but``, where it is not.

    ``others`` are methods for which it is above it on some dataset: it is not an inequality that always holds.
    """
    sentence = (
        f"{words(metric)} is above {of} for {words(methods)} on {words(but)} only, and for some of "
        f"{words(others)} on other datasets."
    )
    names = [*methods, *others]
    above = evidence.means(metric, names) - evidence.means(of, names) > TIE
    numbers = {name: int(count) for name, count in above.sum().items()}
    inside = above[list(methods)]
    kept = not inside.drop(index=list(but)).any(axis=None) and bool(inside.loc[list(but)].all(axis=None))
    return Finding.of(
        kept and bool(above[list(others)].any(axis=None)), {f"datasets with {metric} > {of}": numbers}, sentence
    )


def ranges_over(evidence: Evidence, method: str, metrics: Sequence[str], dataset: str, at_least: float) -> Finding:
    """True for a metric if its largest and smallest run on a dataset differ by at least ``at_least``."""
    sentence = (
        f"On {dataset}: each of {words(metrics)} of {method} ranges over {at_least:g} or more, from "
        "repetition to repetition."
    )
    runs = {metric: evidence.runs(metric, [method], [dataset])[method] for metric in metrics}
    numbers = {metric: f"{values.min():.4g} to {values.max():.4g}" for metric, values in runs.items()}
    return Finding.of([values.max() - values.min() >= at_least for values in runs.values()], numbers, sentence)


def complement_is(evidence: Evidence, method: str, metric: str, other: str, values: Mapping[str, float]) -> Finding:
    """True if 1 - ``metric`` is, to a printed unit, the value of each dataset, and the printed ``other`` is not."""
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
    """True if printed shares are those of the printed counts with the further decimals left out."""
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
    """True if a number is the critical difference of average ranks at .05, and another the critical value of F_F."""
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
    """True if the printed standard deviations of some columns are smaller than those of others."""
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


def laplacian_identity(evidence: Evidence) -> Finding:
    """True if eq. (7) is an identity with D_ii = sum_k R_ik over the labels, at a random R and W."""
    sentence = "At random W and R, half the sum of R_jk |W_j - W_k|^2 equals tr(W (D - R) W^T) with D_ii = sum_k R_ik."
    W, R, H = _random_coupling()
    pairs = 0.5 * sum(R[j, k] * float(np.sum((W[:, j] - W[:, k]) ** 2)) for j in range(4) for k in range(4))
    error = abs(pairs - float(np.trace(W @ H @ W.T)))
    return Finding.of(error < 1e-10, {"difference": float(f"{error:.1g}")}, sentence)


def coupling_gradient(evidence: Evidence) -> Finding:
    """True if the gradient of tr(W H W^T) / 2 is W H by central differences, at a random point."""
    sentence = "At a random point the central differences of tr(W H W^T) / 2 are W H."
    W, _, H = _random_coupling()
    numeric = np.empty_like(W)
    for at in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[at] = 1e-6
        high, low = (0.5 * float(np.trace(V @ H @ V.T)) for V in (W + step, W - step))
        numeric[at] = (high - low) / 2e-6
    error = float(np.abs(numeric - W @ H).max())
    return Finding.of(error < 1e-6, {"largest difference": float(f"{error:.1g}")}, sentence)


def lipschitz_constant_too_small(evidence: Evidence) -> Finding:
    """True if the printed constant is below the largest curvature of eq. (13), at random scores and beta = 1."""
    sentence = (
        "At random scores, labels and beta = 1 the printed constant of eq. (16) is below the largest "
        "curvature of eq. (13)."
    )
    rng = np.random.default_rng(0)
    S = rng.uniform(size=(40, 12))
    _, _, H = _random_coupling()
    of_scores, of_labels = (float(np.linalg.norm(A, 2)) for A in (S.T @ S, H))
    curvature = np.kron(np.eye(4), S.T @ S) + np.kron(H, np.eye(12))
    largest, printed = float(np.linalg.eigvalsh(curvature).max()), math.sqrt(of_scores**2 + 2 * of_labels**2)
    numbers = {"printed": round(printed, 3), "largest curvature": round(largest, 3)}
    return Finding.of(printed < largest - 1e-9, numbers, sentence)


def _random_coupling() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random weights of three classifiers for four labels, similarities of the labels, and their Laplacian."""
    rng = np.random.default_rng(0)
    R = rng.uniform(size=(4, 4))
    R = R + R.T
    return rng.normal(size=(12, 4)), R, np.diag(R.sum(axis=1)) - R
