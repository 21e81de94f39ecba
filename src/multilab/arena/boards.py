"""One board: methods ordered by a metric, or by a group of metrics, over datasets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from multilab.arena.tracks import ArenaError, Means
from multilab.core.messages import unknown_name
from multilab.metrics import METRICS
from multilab.metrics.registry import GROUPS
from multilab.statistics import cliques, friedman, iman_davenport, nemenyi_cd

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

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Board:
    """Methods ordered by their average rank over datasets.

    Attributes
    ----------
    name : str
        A metric or a group of metrics.
    metrics, datasets : tuple of str
        What counts; a dataset on which all metrics are undefined is in ``left_out``.
    left_out : tuple of str
    table : DataFrame
        Indexed by column (method), best first: ``rank``, the mean over the datasets of the rank within a dataset,
        ``win_rate``, the mean share of other methods beaten, ``improvability``, the mean share of the error that the
        best method of a dataset saves, ``unfinished``, the share of datasets without a result; with a rating also
        ``elo``, ``elo_low`` and ``elo_high``.
    wins : DataFrame
        Share of (dataset, metric) pairs that the method of the row wins against that of the column; ties count half.
    chi2, p : float or None
        Friedman's statistic, corrected for ties, and the p value of Iman and Davenport's F.
    cd : float or None
        Nemenyi's critical difference of ``rank`` at level .05.
    groups : tuple of tuple of str
        Maximal groups of methods whose ranks do not differ by ``cd``.
    dataset_ranks : DataFrame of shape (n_datasets, n_columns)
        The ranks that ``rank`` averages.
    """

    name: str
    metrics: tuple[str, ...]
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    table: pd.DataFrame
    wins: pd.DataFrame
    chi2: float | None
    p: float | None
    cd: float | None
    groups: tuple[tuple[str, ...], ...]
    dataset_ranks: pd.DataFrame


def rank_methods(
    means: Means,
    name: str,
    rating: Rating | None = None,
    anchor: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> Board:
    """Order methods by one metric or by a group of metrics.

    Parameters
    ----------
    means : Means
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
    A method with an unfinished split is last on the dataset; several share the last ranks. Its error for
    ``improvability`` is the largest finished one of the dataset. J. Demsar (2006), Statistical comparisons of
    classifiers over multiple data sets, JMLR 7, for the tests; improvability is TabArena's.

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
    if anchor is not None and anchor not in means.columns:
        raise ArenaError(unknown_name("column for the anchor", anchor, means.columns))
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
    within = ranks[0] if name not in METRIC_GROUPS else rankdata(_mean(ranks).round(9), axis=1)
    wins = _wins(ranks)
    k, columns = len(means.columns), list(means.columns)
    table = pd.DataFrame(
        {
            "rank": within.mean(axis=0),
            "win_rate": wins.sum(axis=1) / (k - 1) if k > 1 else np.nan,
            "improvability": _mean(_improvability(errors, defined)).mean(axis=0),
            "unfinished": means.unfinished[used].mean(axis=0),
        },
        index=columns,
    )
    if rating is not None:
        table = table.join(rating(ranks, columns, anchor, [(sources or {}).get(each, each) for each in datasets]))
    chi2 = p = cd = None
    groups: tuple[tuple[str, ...], ...] = ()
    if k > 1 and len(datasets) > 1:
        cd = critical_difference(k, len(datasets))
        chi2 = friedman(within)
        p = iman_davenport(chi2, len(datasets), k, ALPHA).p
        groups = cliques(table["rank"].to_dict(), cd)
    return Board(
        name=name,
        metrics=metrics,
        datasets=datasets,
        left_out=left_out,
        table=table.sort_values("rank", kind="stable"),
        wins=pd.DataFrame(wins, index=columns, columns=columns),
        chi2=chi2,
        p=p,
        cd=cd,
        groups=groups,
        dataset_ranks=pd.DataFrame(within, index=list(datasets), columns=columns),
    )


def errors_of(metrics: Sequence[str], values: np.ndarray) -> np.ndarray:
    """Return values as errors, the smaller the better: ``1 - value`` where large values are good.

    Parameters
    ----------
    metrics : sequence of str
    values : ndarray of shape (n_metrics, ...)
    """
    maximised = np.array([METRICS[metric].direction == "max" for metric in metrics])
    return np.where(maximised.reshape(-1, *[1] * (values.ndim - 1)), 1.0 - values, values)


critical_difference = functools.lru_cache(maxsize=None)(nemenyi_cd)
"""Nemenyi's critical difference of a number of methods on a number of datasets: it takes long to compute."""


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the first axis of what is not NaN; every other index has a value."""
    return np.nanmean(values, axis=0)


def _wins(ranks: np.ndarray) -> np.ndarray:
    """Return the share of (dataset, metric) pairs won, rows against columns; each dataset counts alike."""
    k = ranks.shape[2]
    wins = np.zeros((k, k))
    for each in np.moveaxis(ranks, 1, 0):
        rows = each[~np.isnan(each[:, 0])]
        signs = np.sign(rows[:, None, :] - rows[:, :, None])  # 1 where the row's rank is smaller: it wins
        wins += (signs.mean(axis=0) + 1) / 2
    wins /= ranks.shape[1]
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
