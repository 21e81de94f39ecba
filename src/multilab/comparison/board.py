"""Leaderboard of a comparison on one dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from multilab.metrics import OverAssigned, over_assigned
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import all_defined
from multilab.statistics import Leaderboard
from multilab.statistics.result_files import CELL

__all__ = ["board_of", "summed", "with_labels"]

_DECIDED = ("method", "label", "observed", "count", "predicted")
"""Columns of `Leaderboard.decided`."""


def board_of(
    scores: pd.DataFrame,
    metrics: Sequence[MetricLike],
    methods: tuple[str, ...],
    unfinished: Sequence[tuple[object, ...]],
    decided: pd.DataFrame,
    *,
    test_to_train: float,
    alpha: float,
    dataset: str = "",
    untuned: Mapping[str, str] | None = None,
) -> Leaderboard:
    """Return the leaderboard of methods on the splits of one dataset.

    Parameters
    ----------
    scores : DataFrame
        Columns dataset, split, method, metric, value.
    metrics : sequence of str or callable
        The first one orders the leaderboard.
    methods : tuple of str
        The methods in the order of the comparison.
    unfinished : sequence of (dataset, split, method, reason)
        Fits without a result.
    decided : DataFrame
        See `Leaderboard`; empty if no method finished.
    test_to_train, alpha, dataset, untuned
        See `Leaderboard`.
    """
    measured = all_defined(metrics)
    board = Leaderboard(
        scores=scores,
        directions={name: metric.direction for name, metric in measured.items()},
        ranges={name: metric.range for name, metric in measured.items()},
        datasets=(dataset,),
        methods=methods,
        unfinished=pd.DataFrame(unfinished, columns=[*CELL, "reason"]),
        alpha=alpha,
        test_to_train=test_to_train,
        untuned=dict(untuned or {}),
    )
    return with_labels(board, decided) if len(decided) else board


def with_labels(board: Leaderboard, decided: pd.DataFrame) -> Leaderboard:
    """Return a leaderboard with how often each method assigns each label, and the labels that it assigns too often."""
    flagged: dict[str, list[OverAssigned]] = {}
    for name in board.table.index:
        seen = decided[(decided["method"] == name) & (decided["observed"] > 0)]
        rates, frequencies = seen["predicted"] / seen["observed"], seen["count"] / seen["observed"]
        if labels := over_assigned(seen["label"], rates, frequencies):
            flagged[str(name)] = labels
    return replace(board, decided=decided, over_assigned=flagged)


def summed(decided: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the sums of the counts over the splits, with the columns of `Leaderboard.decided`."""
    if not decided:
        return pd.DataFrame(columns=list(_DECIDED))
    counts = ["observed", "count", "predicted"]
    return pd.concat(decided).groupby(["method", "label"], sort=False, as_index=False)[counts].sum()
