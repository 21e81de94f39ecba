"""Elo ratings with bootstrap intervals, computed by bencheval (extra ``arena``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from bencheval.evaluator import BenchmarkEvaluator

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
        The method whose rating is 1000; by default the mean of all ratings is 1000.
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
    All methods meet equally often, so that the order of the ratings is that of the win rates. The interval does not
    depend on the anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.arena import elo_ratings  # doctest: +SKIP
    >>> errors = np.array([[[0.1, 0.2], [0.1, 0.3], [0.4, 0.3]]])
    >>> elo_ratings(errors, ["a", "b"])["elo"].to_dict()  # doctest: +SKIP
    {'a': 1060.2, 'b': 939.8}
    """
    k = errors.shape[2]
    if k < 2:
        return pd.DataFrame({"elo": 1000.0, "elo_low": np.nan, "elo_high": np.nan}, index=list(columns))
    unit, task, method = np.indices(errors.shape).reshape(3, -1)
    kept = ~np.isnan(errors.ravel())
    results = pd.DataFrame({"method": method, "task": task, "unit": unit, "metric_error": errors.ravel()})[kept]
    evaluator = BenchmarkEvaluator(columns_to_agg_extra=None, seed_column="unit")
    several = len(results["task"].unique()) > 1
    ratings = evaluator.compute_elo(
        results,
        calibration_framework=None if anchor is None else list(columns).index(anchor),
        BOOTSTRAP_ROUNDS=rounds if several else 1,
        include_quantiles=several,
        round_decimals=None,
    ).sort_index()
    elo = ratings["elo"].to_numpy()
    low, high = (elo - ratings["elo-"], elo + ratings["elo+"]) if several else (np.nan, np.nan)
    return pd.DataFrame({"elo": elo, "elo_low": low, "elo_high": high}).set_axis(list(columns)).round(1)
