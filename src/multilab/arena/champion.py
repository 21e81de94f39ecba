"""One method compared with every other by the Bayesian signed-rank test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from multilab.arena.boards import errors_of
from multilab.arena.tracks import Means
from multilab.metrics import METRICS
from multilab.statistics import bayesian_signed_rank

ROPE = 0.01
"""Half the width of the region of practical equivalence, for metrics in [0, 1]."""

SAMPLES = 5_000
"""Posterior samples per pair: the standard error of a probability is at most .007."""


def champion_tests(
    means: Means, champion: str, metric: str, n_labels: Mapping[str, int], rope: float = ROPE
) -> pd.DataFrame:
    """Return the probabilities that a method is better than, equivalent to and worse than each other one.

    Parameters
    ----------
    means : Means
        From :meth:`Track.means` or :attr:`Pool.means`.
    champion : str
        A column.
    metric : str
    n_labels : mapping of str to int
        Number of labels of each dataset: coverage, whose range grows with it, is divided by it.
    rope : float, default=0.01
        Differences of at most this size do not matter.

    Returns
    -------
    DataFrame
        Indexed by the other columns: ``better``, ``equal``, ``worse``, which sum to 1, and ``datasets``, their number.
        Empty if the metric is undefined on all datasets.

    Notes
    -----
    A method with an unfinished split has the largest finished error of the dataset. The test is
    :func:`multilab.statistics.bayesian_signed_rank`.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import champion_tests, track_results
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(9) for m, v in (("a", 0.8), ("b", 0.7 + i / 200))]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> tests = champion_tests(track_results("default", scores).means(), "a", "macro_f1", {})
    >>> bool(tests.loc["b", "better"] > 0.99)
    True
    """
    table = means.table(metric)
    others = [column for column in table.columns if column != champion]
    if table.empty or not others:
        return pd.DataFrame(columns=["better", "equal", "worse", "datasets"])
    errors = errors_of([metric], table.to_numpy()[None])[0]
    errors = np.where(np.isnan(errors), np.fmax.reduce(errors, axis=1, keepdims=True), errors)
    if np.isinf(METRICS[metric].high):
        errors = errors / np.array([[n_labels[name]] for name in table.index])
    filled = pd.DataFrame(errors, index=table.index, columns=table.columns)
    pairs = bayesian_signed_rank(filled, "min", rope=rope, control=champion, samples=SAMPLES)
    return pd.DataFrame(
        {
            "better": [pair.p_a for pair in pairs],
            "equal": [pair.p_rope for pair in pairs],
            "worse": [pair.p_b for pair in pairs],
            "datasets": [pair.n for pair in pairs],
        },
        index=[pair.b for pair in pairs],
    )
