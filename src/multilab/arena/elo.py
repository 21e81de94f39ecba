"""Elo ratings with bootstrap intervals, computed by bencheval (extra ``arena``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from bencheval.elo_utils import EloHelper

ROUNDS = 100
"""Bootstrap rounds of the intervals."""


def elo_ratings(
    errors: np.ndarray, columns: Sequence[str], anchor: str | None = None, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Return the Elo rating of each method with its bootstrap 95 % interval.

    Parameters
    ----------
    errors : ndarray of shape (n_metrics, n_datasets, n_columns)
        The smaller the better; only their order within a metric and dataset counts, so that ranks do too. NaN for all
        columns where a metric is undefined.
    columns : sequence of str
        Names of the methods.
    anchor : str, optional
        The method whose rating is 1000; by default the median of all ratings is 1000.
    rounds : int, default=100
        Bootstrap rounds.

    Returns
    -------
    DataFrame
        Indexed by column: ``elo``, ``elo_low``, ``elo_high``. The ends are NaN with a single dataset.

    Notes
    -----
    The maximum-likelihood fit of the Bradley-Terry model, scaled such that 400 points are odds of 10 to 1. A dataset is
    one task of weight 1: its battles are those of all pairs of methods by the means over its splits, one per metric,
    and the bootstrap draws datasets, with seed 0. Metrics of a dataset are not drawn, since they are not independent.
    All methods meet equally often, so that the order of the ratings is that of the win rates.

    A method that loses every battle (a baseline without features) has no finite rating; bencheval's ridge keeps it some
    thousand points away. So that it does not move the others, every round of the bootstrap is centred on the median of
    its ratings. The width of an interval does not depend on the anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.arena import elo_ratings
    >>> errors = np.array([[[0.1, 0.2, 0.2], [0.1, 0.3, 0.2], [0.4, 0.3, 0.5], [0.5, 0.2, 0.1]]])
    >>> elo_ratings(errors, ["a", "b", "c"])["elo"].to_dict()
    {'a': 1088.7, 'b': 1000.0, 'c': 1000.0}
    """
    if errors.shape[2] < 2:
        return pd.DataFrame({"elo": 1000.0, "elo_low": np.nan, "elo_high": np.nan}, index=list(columns))
    unit, task, method = np.indices(errors.shape).reshape(3, -1)
    battles = pd.DataFrame({"method": method, "task": task, "unit": unit, "metric_error": errors.ravel()})
    battles = battles[~np.isnan(errors.ravel())]
    helper = EloHelper(split_col="unit")
    ratings = helper.compute_mle_elo_from_ranks(battles).sort_index().to_numpy()
    ratings = ratings - np.median(ratings)
    shift = 1000 - (0.0 if anchor is None else ratings[list(columns).index(anchor)])
    low = high = np.full(len(ratings), np.nan)
    if battles["task"].nunique() > 1:
        drawn = helper.compute_elo_ratings_from_ranks(battles, BOOTSTRAP_ROUNDS=rounds, show_process=False)
        drawn = drawn.sort_index(axis=1).to_numpy()
        low, high = np.quantile(drawn - np.median(drawn, axis=1, keepdims=True), [0.025, 0.975], axis=0)
        low, high = np.minimum(low, ratings), np.maximum(high, ratings)
    table = {"elo": ratings + shift, "elo_low": low + shift, "elo_high": high + shift}
    return pd.DataFrame(table, index=list(columns)).round(1)
