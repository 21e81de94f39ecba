"""Results of one study of the arena: scores of methods on the splits of datasets, some of them unfinished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from multilab.arena.errors import ArenaError
from multilab.metrics import METRICS

DECIMALS = 9
"""Means are rounded to this many decimals before anything is ranked, so that a reader of the file ranks alike.

Means that differ by less than the rounding of sums tie; real differences are larger, at least one part in the rows
times the labels.
"""


def column_name(method: str, track: str) -> str:
    """Return the name of a method in a pool of tracks: ``mlknn`` of the track default, ``mlknn@tuned`` of another."""
    return method if track == "default" else f"{method}@{track}"


@dataclass(frozen=True, eq=False)
class Means:
    """Mean scores over the splits.

    Attributes
    ----------
    metrics, datasets, columns : tuple of str
        Axes of ``values``; a column is a method of a track.
    values : ndarray of shape (n_metrics, n_datasets, n_columns)
        Rounded to nine decimals; NaN where the method has an unfinished split of the dataset or the metric is
        undefined.
    undefined : ndarray of bool, shape (n_metrics, n_datasets)
        A finished method has no value of the metric: the dataset does not count for it.
    unfinished : ndarray of bool, shape (n_datasets, n_columns)
        A split is missing: the method is ranked last on the dataset.
    """

    metrics: tuple[str, ...]
    datasets: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray
    undefined: np.ndarray
    unfinished: np.ndarray

    def on(self, datasets: Sequence[str]) -> Means:
        """Return the means on some of the datasets, in their order.

        Raises
        ------
        ArenaError
            If one is not there.
        """
        positions = [_position(self.datasets, name) for name in datasets]
        return Means(
            self.metrics,
            tuple(datasets),
            self.columns,
            self.values[:, positions],
            self.undefined[:, positions],
            self.unfinished[positions],
        )

    def table(self, metric: str) -> pd.DataFrame:
        """Return the means of one metric, datasets x columns, without the datasets on which it is undefined.

        Raises
        ------
        ArenaError
            If the metric was not computed.
        """
        if metric not in self.metrics:
            raise ArenaError(f"{metric} was not computed; there are {', '.join(self.metrics)}")
        at = self.metrics.index(metric)
        table = pd.DataFrame(self.values[at], index=list(self.datasets), columns=list(self.columns))
        return table[~self.undefined[at]]


@dataclass(frozen=True, eq=False)
class Track:
    """Scores of one study.

    Attributes
    ----------
    name : str
        ``default``, ``tuned``, ``ensembled`` or any other.
    datasets, methods, metrics : tuple of str
    splits : dict of str to tuple of int
        Numbers of the splits of each dataset.
    scores : dict of str to ndarray of shape (n_metrics, n_splits, n_methods)
        By dataset; NaN where there is no value.
    finished : dict of str to ndarray of bool, shape (n_splits, n_methods)
        By dataset.
    reasons : dict of (str, str) to str
        Why a method has an unfinished split on a dataset; ``missing`` where the tables do not say.
    """

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    splits: Mapping[str, tuple[int, ...]]
    scores: Mapping[str, np.ndarray]
    finished: Mapping[str, np.ndarray]
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the methods in a pool of tracks: ``mlknn`` of the track default, ``mlknn@tuned`` of another."""
        return tuple(column_name(name, self.name) for name in self.methods)

    def unfinished_splits(self) -> np.ndarray:
        """Return the number of unfinished splits, shape (n_datasets, n_methods)."""
        return np.array([(~self.finished[name]).sum(axis=0) for name in self.datasets]).reshape(
            len(self.datasets), len(self.methods)
        )

    def means(self, splits: Mapping[str, Sequence[int]] | None = None) -> Means:
        """Return the mean scores over the splits.

        Parameters
        ----------
        splits : mapping of str to sequence of int, optional
            The splits to average over, by dataset; all of a dataset that is not named.

        Raises
        ------
        ArenaError
            If a dataset has no such split.
        """
        n_metrics, n_sets = len(self.metrics), len(self.datasets)
        values = np.full((n_metrics, n_sets, len(self.methods)), np.nan)
        undefined = np.zeros((n_metrics, n_sets), dtype=bool)
        unfinished = np.zeros((n_sets, len(self.methods)), dtype=bool)
        for at, name in enumerate(self.datasets):
            used = (splits or {}).get(name, self.splits[name])
            if absent := set(used) - set(self.splits[name]):
                raise ArenaError(
                    f"{name} has no split {min(absent)}; there are {', '.join(map(str, self.splits[name]))}"
                )
            positions = [self.splits[name].index(number) for number in used]
            scores, finished = self.scores[name][:, positions], self.finished[name][positions]
            undefined[:, at] = (np.isnan(scores) & finished).any(axis=(1, 2)) | ~finished.any()
            unfinished[at] = ~finished.all(axis=0)
            values[:, at] = np.where(undefined[:, at, None] | unfinished[at], np.nan, scores.mean(axis=1))
        values = np.round(values, DECIMALS) + 0.0  # no -0.0
        return Means(self.metrics, self.datasets, self.columns, values, undefined, unfinished)


def track_results(
    name: str,
    scores: pd.DataFrame,
    unfinished: pd.DataFrame | None = None,
    methods: Sequence[str] | None = None,
) -> Track:
    """Return the results of one study, ready to be averaged and ranked.

    Parameters
    ----------
    name : str
        Of the track.
    scores : DataFrame
        Columns dataset, split, method, metric, value. Metrics that are not in ``multilab.metrics.METRICS`` are ignored.
        A cell (dataset, split, method) with any row is finished; a value of NaN is an undefined metric.
    unfinished : DataFrame, optional
        Columns dataset, split, method, reason: cells that passed a limit or failed. Other cells without scores are
        unfinished too, with the reason ``missing``. A dataset on which no method finished anything is left out.
    methods : sequence of str, optional
        The methods to read, in this order; by default all, in the order of their first row.

    Raises
    ------
    ArenaError
        If there is no score, a cell has two values of one metric, or a method is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import track_results
    >>> rows = [("emotions", 0, "a", "macro_f1", 0.6), ("emotions", 1, "a", "macro_f1", 0.7),
    ...         ("emotions", 0, "b", "macro_f1", 0.5)]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> track = track_results("default", scores)
    >>> track.means().table("macro_f1")
                 a   b
    emotions  0.65 NaN
    >>> track.reasons
    {('emotions', 'b'): 'missing'}
    """
    metrics = tuple(metric for metric in METRICS if (scores["metric"] == metric).any())
    kept = scores[scores["metric"].isin(metrics)]
    known = _names(kept["method"], unfinished, "method")
    for method in methods or ():
        if method not in known:
            raise ArenaError(f"track {name}: there are no results of the method {method!r}")
    columns = tuple(methods or known)
    kept = kept[kept["method"].isin(columns)]
    if kept.empty:
        raise ArenaError(f"track {name}: the table of scores has no row of a metric of multilab")
    if kept.duplicated(["dataset", "split", "method", "metric"]).any():
        row = kept[kept.duplicated(["dataset", "split", "method", "metric"])].iloc[0]
        raise ArenaError(
            f"track {name}: two values of {row['metric']} for {row['method']} on {row['dataset']}, split {row['split']}"
        )
    if unfinished is not None:
        unfinished = unfinished[unfinished["method"].isin(columns)]
    splits, values, finished, reasons = {}, {}, {}, {}
    for dataset in _names(kept["dataset"], None, "dataset"):
        rows = kept[kept["dataset"] == dataset]
        stopped = None if unfinished is None else unfinished[unfinished["dataset"] == dataset]
        numbers = sorted({*rows["split"], *(() if stopped is None else stopped["split"])})
        splits[dataset] = tuple(int(number) for number in numbers)
        at = (
            pd.Index(metrics).get_indexer(rows["metric"]),
            pd.Index(numbers).get_indexer(rows["split"]),
            pd.Index(columns).get_indexer(rows["method"]),
        )
        values[dataset] = np.full((len(metrics), len(numbers), len(columns)), np.nan)
        values[dataset][at] = rows["value"].to_numpy(dtype=float)
        finished[dataset] = np.zeros((len(numbers), len(columns)), dtype=bool)
        finished[dataset][at[1:]] = True
        why = {} if stopped is None else dict(zip(stopped["method"], stopped["reason"].astype(str), strict=True))
        for position in np.flatnonzero(~finished[dataset].all(axis=0)):
            reasons[dataset, columns[position]] = why.get(columns[position], "missing")
    return Track(name, tuple(splits), columns, metrics, splits, values, finished, reasons)


def _names(first: pd.Series, other: pd.DataFrame | None, column: str) -> list[str]:
    """Return the names of a table and of the table of unfinished cells, in the order of their first row."""
    return [str(name) for name in dict.fromkeys([*first, *(() if other is None else other[column])])]


def _position(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise ArenaError(f"there is no result on the dataset {name!r}; there are {', '.join(names)}")
    return names.index(name)
