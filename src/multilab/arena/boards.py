"""One board: methods ordered by a metric, or by a group of metrics, over datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from multilab.arena.tracks import ArenaError
from multilab.core.messages import unknown_name
from multilab.metrics import METRICS
from multilab.metrics.registry import GROUPS
from multilab.statistics import Comparison, Leaderboard, compare_methods

_MEMBERS = {group: tuple(name for name, metric in METRICS.items() if metric.group == group) for group in GROUPS}

METRIC_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "overall": tuple(name for members in _MEMBERS.values() for name in members),
        **{group: members for group, members in _MEMBERS.items() if members},
    }
)
"""Metrics by group, from their definitions: ``overall`` has those of all groups."""

GROUP_TITLES: Mapping[str, str] = MappingProxyType({"overall": "All metrics", **GROUPS})
"""Display names of the groups."""

ORDERED_LIKE: Mapping[str, str] = MappingProxyType(
    {name: metric.ordered_like for name, metric in METRICS.items() if metric.ordered_like}
)
"""Metrics that order the methods of any dataset as another metric does; a group counts such a pair once."""


def metrics_of(name: str) -> tuple[str, ...]:
    """Return the metrics that a board is computed from: of a group without those that repeat another, or the metric.

    Parameters
    ----------
    name : str
        A group of :data:`METRIC_GROUPS` or a metric.

    Raises
    ------
    ArenaError
        If there is neither.
    """
    if name in METRIC_GROUPS:
        return tuple(metric for metric in METRIC_GROUPS[name] if metric not in ORDERED_LIKE)
    if name not in METRICS:
        raise ArenaError(unknown_name("metric or group", name, [*METRIC_GROUPS, *METRICS]))
    return (name,)


def boards_of(metrics: Sequence[str]) -> list[str]:
    """Return the names of the boards of a suite with these metrics: the groups that have one, then the metrics."""
    groups = [group for group, members in METRIC_GROUPS.items() if set(members) & set(metrics)]
    return [*groups, *(metric for metric in METRICS if metric in metrics)]


Rating = Callable[[np.ndarray, Sequence[str], str | None, Sequence[str]], pd.DataFrame]
"""``rating(errors, columns, anchor, sources)``, see :func:`multilab.arena.elo.elo_ratings`."""

ALPHA = 0.05  # level of the rank tests and of Nemenyi's critical difference


@dataclass(frozen=True, eq=False)
class Board:
    """Methods ordered by their average rank over datasets by one metric or a group: its tests, and the arena's rates.

    Attributes
    ----------
    name : str
        A metric or a group of metrics.
    metrics : tuple of str
        The metrics that count.
    left_out : tuple of str
        Datasets on which all metrics are undefined.
    tests : Comparison
        Ranks within datasets, Friedman's test, Nemenyi's critical difference and its groups; without tests of pairs.
    table : DataFrame
        Indexed by column (method), best first: ``rank``, the mean over the datasets of the rank within a dataset,
        ``win_rate``, the mean share of other methods beaten, ``improvability``, the mean share of the error that the
        best method of a dataset saves, ``unfinished``, the share of datasets without a result; with a rating also
        ``elo``, ``elo_low`` and ``elo_high``.
    set_wins : ndarray of shape (n_datasets, n_columns, n_columns)
        Share of the metrics of a dataset in which the row's method beats the column's method; ties count half.
    """

    name: str
    metrics: tuple[str, ...]
    left_out: tuple[str, ...]
    tests: Comparison
    table: pd.DataFrame
    set_wins: np.ndarray

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that count."""
        return self.tests.datasets

    @property
    def cd(self) -> float | None:
        """Nemenyi's critical difference of ``rank`` at level .05; ``None`` with a single dataset or method."""
        return self.tests.cd_nemenyi if self.tests.n > 1 else None

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Maximal groups of methods whose ranks do not differ by ``cd``."""
        return self.tests.groups if self.tests.n > 1 else ()

    @property
    def wins(self) -> pd.DataFrame:
        """Share of (dataset, metric) pairs that the method of the row wins; every dataset counts alike."""
        columns = list(self.tests.methods)
        return pd.DataFrame(_mean_wins(self.set_wins), index=columns, columns=columns)

    @property
    def dataset_ranks(self) -> pd.DataFrame:
        """The ranks that ``rank`` averages, datasets x columns."""
        return pd.DataFrame.from_dict(self.tests.dataset_ranks, orient="index")[list(self.tests.methods)]


def rank_methods(
    means: Leaderboard,
    name: str,
    rating: Rating | None = None,
    anchor: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> Board:
    """Order methods by one metric or by a group of metrics.

    Parameters
    ----------
    means : Leaderboard
        From :meth:`Track.means` or :attr:`Pool.means`.
    name : str
        A metric, or a group of :data:`METRIC_GROUPS`. On a dataset, a group ranks the methods by the mean of their
        ranks by its metrics, each pair of :data:`ORDERED_LIKE` counted once.
    rating : callable, optional
        :func:`elo_ratings` for Elo with intervals; it needs the extra ``arena``.
    anchor : str, optional
        The column whose Elo is 1000; by default the median of all columns is 1000.
    sources : mapping of str to str, optional
        Source of each dataset: the intervals of Elo draw datasets of one source together. By default each has its own.

    Returns
    -------
    Board

    Raises
    ------
    ArenaError
        If the metric or the anchor is unknown, or the metric was not computed or is undefined on all datasets.

    Notes
    -----
    A method with an unfinished split is last on the dataset, where it loses every comparison; several such methods
    share the last ranks. Its error for ``improvability`` is the largest finished one of the dataset. The tests follow
    J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7; improvability is
    TabArena's.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import rank_methods, track_results
    >>> rows = [("x", 0, "a", "macro_f1", 0.6), ("x", 0, "b", "macro_f1", 0.7), ("y", 0, "a", "macro_f1", 0.5)]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> board = rank_methods(track_results("default", scores).means(), "macro_f1")
    >>> board.table[["rank", "unfinished"]]
       rank  unfinished
    a   1.5         0.0
    b   1.5         0.5
    """
    if anchor is not None and anchor not in means.methods:
        raise ArenaError(unknown_name("column for the anchor", anchor, means.methods))
    metrics = tuple(metric for metric in metrics_of(name) if metric in means.metrics)
    if not metrics:
        raise ArenaError(f"{name} was not computed; there are {', '.join(means.metrics)}")
    at = [means.metrics.index(metric) for metric in metrics]
    defined = ~means.undefined[at]
    used = defined.any(axis=0)
    datasets = tuple(np.array(means.datasets, dtype=object)[used])
    left_out = tuple(np.array(means.datasets, dtype=object)[~used])
    if not datasets:
        raise ArenaError(f"{name} is undefined on all datasets: {', '.join(left_out)}")
    defined, errors = defined[:, used], errors_of(metrics, means.values[at])[:, used]
    ranks = rankdata(np.where(np.isnan(errors), np.inf, errors), axis=2)  # unfinished last, in shared ranks
    ranks[~defined] = np.nan
    # rounded, so that mean ranks that differ by rounding errors are ties
    within = ranks[0] if name not in METRIC_GROUPS else rankdata(_mean(ranks).round(9), axis=1)
    wins, columns = _set_wins(ranks), list(means.methods)
    table = pd.DataFrame(
        {
            "rank": within.mean(axis=0),
            "win_rate": _mean_wins(wins).sum(axis=1) / (len(columns) - 1) if len(columns) > 1 else np.nan,
            "improvability": _mean(_improvability(errors, defined)).mean(axis=0),
            "unfinished": means.incomplete[used].mean(axis=0),
        },
        index=columns,
    )
    if rating is not None:
        table = table.join(
            rating(ranks, columns, anchor, [(sources or {}).get(dataset, dataset) for dataset in datasets])
        )
    ranked = pd.DataFrame(within, index=list(datasets), columns=columns)
    tests = compare_methods(ranked, "min", ALPHA, metric=name, pairs=False)
    return Board(name, metrics, left_out, tests, table.sort_values("rank", kind="stable"), wins)


def errors_of(metrics: Sequence[str], values: np.ndarray) -> np.ndarray:
    """Return values as errors, the smaller the better: ``1 - value`` where large values are good.

    Parameters
    ----------
    metrics : sequence of str
    values : ndarray of shape (n_metrics, ...)
    """
    maximised = np.array([METRICS[metric].direction == "max" for metric in metrics])
    return np.where(maximised.reshape(-1, *[1] * (values.ndim - 1)), 1.0 - values, values)


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis of what is not NaN; every other index has a value."""
    return np.nanmean(values, axis=0)


def _set_wins(ranks: np.ndarray) -> np.ndarray:
    """Return by dataset the share of metrics won, rows against columns."""
    k = ranks.shape[2]
    wins = np.zeros((ranks.shape[1], k, k))
    for at, set_ranks in enumerate(np.moveaxis(ranks, 1, 0)):
        rows = set_ranks[~np.isnan(set_ranks[:, 0])]
        signs = np.sign(rows[:, None, :] - rows[:, :, None])  # 1 where the row's rank is smaller: it wins
        wins[at] = (signs.mean(axis=0) + 1) / 2
    return wins


def _mean_wins(set_wins: np.ndarray) -> np.ndarray:
    wins = np.add.reduce(set_wins, axis=0) / len(set_wins)
    np.fill_diagonal(wins, 0.0)
    return wins


def _improvability(errors: np.ndarray, defined: np.ndarray) -> np.ndarray:
    """Return ``1 - best / error``, 0 for 0/0; unfinished as the largest finished error, NaN where undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.fmin.reduce(errors, axis=2, keepdims=True)
        worst = np.fmax.reduce(errors, axis=2, keepdims=True)
        filled = np.where(np.isnan(errors), worst, errors)
        saved = np.where(filled > 0, 1 - best / filled, 0.0)
    return np.where(defined[:, :, None], saved, np.nan)
