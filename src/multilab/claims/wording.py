"""What a check asks, in words: for readers of a ledger who do not read its YAML."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from multilab.claims.checks import all_checks
from multilab.metrics import METRICS

__all__ = ["WORDS", "in_words"]

WORDS = {
    "best_average_rank": "By {metrics}: {best} has a lower average rank than {against}; ranks among "
    "{methods}, over {datasets}.",
    "average_rank_order": "By {metrics}: the average ranks over {datasets} rise strictly in the order {order}.",
    "friedman_rejects": "By {metrics}: Iman and Davenport's F over {datasets} exceeds its critical value at {alpha}; "
    "methods {methods}.",
    "wins_minus_losses": "By {metrics}, on {datasets}: each of {methods} wins more cells than it loses against each of "
    "{against}; a cell is one dataset and one measure.",
    "best_share": "By {metrics}, on {datasets}: {method} has rank {within} or better among {methods} in at least "
    "{at_least} cells; a cell is one dataset and one measure.",
    "beats": "By {metrics}, over {datasets}: each of {methods} is better than each of {against} by Wilcoxon's "
    "signed-rank test.",
    "at_least_best_of": "On each of {datasets}: the mean {metric} of each of {methods} reaches that of the best of "
    "{others}, paired over the repetitions.",
    "value_is": "On each of {datasets}, in every repetition: {metric} of {methods} is {value}.",
    "share_of_zero": "On the median of {datasets}: a share of at least {at_least} of the entries of {array} is exactly "
    "0, for each of {methods}.",
    "correlation_sign": "Over {datasets}: the cosines of label columns and of weight columns have a Spearman "
    "correlation of sign {sign}, for each of {methods}.",
    "worse_beyond": "On every dataset: the best {metric} of {method} with {parameter} above {limit} is worse by at "
    "least {margin} than the best up to it.",
    "rises_then_falls": "On every dataset: {metric} of {method} is best inside the range of {parameter}, by at least "
    "{margin} better than at both ends{fixed}.",
    "flat_in": "On every dataset: at each value of {by}, {metric} of {method} ranges over at most {tolerance}{fixed}.",
    "monotone_in": "On every dataset: {y} of {method} goes {direction} with {x} by Spearman's correlation.",
    "significant_share": "By {metrics}, over {datasets}: by Nemenyi's test {method} is better than each of "
    "{better_than} among {methods}, and better in a share of at least {share} of all pairs of a measure and another.",
    "same_every_time": "By {metrics}, on {datasets}: every repetition of each of {methods} gives the same value.",
    "costs_between": "Over {datasets}: the mean {metric} of {method} is more than that of each of {more_than} and less "
    "than that of each of {less_than}.",
    "zero_weights": "On the median of {datasets}: a share of at least {at_least} of the weights is exactly 0, for each "
    "of {methods}.",
    "settles_within": "On every one of {datasets}: {y} of {method} has settled (to {tolerance}) after at most {limit} "
    "sweeps.",
    "settles_near": "{y} of {method} has settled (to {tolerance}) after this many sweeps, give or take {slack}: {at}.",
    "wavers_only_on": "Within {until} sweeps the Hamming loss of {method} rises again by at least {tolerance} on "
    "{datasets} and on no other dataset.",
    "wins_at_least": "By {metrics}, on {datasets}: {method} is better in at least so many cells than: {against}; a "
    "cell is one dataset and one measure.",
    "best_mean": "By {metrics}: no other of {methods} has a better mean over {datasets} than {method}.",
    "separated": "By {metrics}, over {datasets}: Bonferroni-Dunn's test at {alpha} finds {control} better than others "
    "of {methods} in at least {at_least} pairs.",
    "faster": "On each of {datasets}: fitting {against} takes at least {times} times as long as fitting {method}.",
    "kept_as_many": "On every dataset: {others} keep as many features as {method}.",
    "curve_above": "On each of {datasets}: {metric} of {method} is better than that of {others} at every number of "
    "features that both have{excepted}.",
    "curve_areas": "By {metrics}, on {datasets}: the area under the curve of {method} over the number of features is "
    "better in at least so many cells than: {against}; a cell is one dataset and one measure.",
    "agree_within": "By {metrics}, on {datasets}: {methods} differ by at most {tolerance}{of_means}.",
    "steeper": "On every dataset: the log-log slope of the cost of {variant} is above that of each of {others}.",
    "alike_at": "On every dataset: at {x} {at} the largest {y} of {variants} is at most {factor} times the least.",
    "below_by": "On every dataset: {y} is below {limit} for good from this {x} on: {at}.",
}
"""One sentence per check with the names of its arguments; ``all_of`` is made of its parts."""

_UNSAID = {"datasets": "all datasets with results", "against": "every other one", "alpha": "the study's level"}


def in_words(name: str, arguments: Mapping[str, Any]) -> str:
    """Return what a check asks with these arguments, as a sentence."""
    if name == "all_of":
        parts = arguments["parts"]
        return " And: ".join(in_words(part["check"], {k: v for k, v in part.items() if k != "check"}) for part in parts)
    signature = inspect.signature(all_checks()[name])
    values = {key: spec.default for key, spec in signature.parameters.items()} | dict(arguments)
    said = {key: _said(key, value) for key, value in values.items()}
    sentence = WORDS[name].format_map(said)
    if values.get("most"):
        sentence = sentence.replace("more cells than it loses", "more than half of all cells")
        sentence = sentence.replace("On every one of", "On more than half of")
    return sentence


def _said(key: str, value: Any) -> str:
    if value is None:
        return _UNSAID.get(key, "")
    if key == "of_means":
        return " in the means" if value else " on every split"
    if key == "fixed":
        return f" ({_said('', value)})"
    if key == "excepted":
        return ", except on " + ", ".join(f"{name} at {low} to {high}" for name, (low, high) in value.items())
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said('', one)}" for name, one in value.items())
    if key == "best" and not isinstance(value, str) and len(value) > 1:
        return f"the best of {_said('', value)}"
    if isinstance(value, list | tuple):
        return ", ".join(_said(key, one) for one in value)
    if key in ("metric", "metrics"):
        return METRICS[value].title if value in METRICS else str(value).replace("_", " ")
    return f"{value:g}" if isinstance(value, float) else str(value)
