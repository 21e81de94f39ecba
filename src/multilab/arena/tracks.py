"""Results of the studies of the arena: tracks, their means over splits, and pools of tracks ranked together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from multilab.core import MultilabError
from multilab.metrics import METRICS


class ArenaError(MultilabError, ValueError):
    """Results or arguments of the arena that cannot be used; the message names them."""


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


POOLS: Mapping[str, tuple[str, ...]] = {
    "default": ("default",),
    "tuned": ("default", "tuned"),
    "ensembled": ("default", "ensembled"),
    "all": ("default", "tuned", "ensembled"),
}
"""Tracks by pool."""

UNSEEN = "-unseen"
"""After the name of a pool: the same columns, without the sets whose results decided rules of the champion."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns of several tracks on the datasets and splits that all of them have.

    Attributes
    ----------
    name : str
    tracks : tuple of str
    means : Means
        Over the common splits.
    splits : dict of str to dict of str to tuple of int
        The splits averaged over, by track and dataset.
    other_splits : tuple of str
        Datasets that the tracks split differently, so that each track has its own splits.
    unfinished : dict of str to float
        Share of the cells (dataset, split) that a column did not finish.
    """

    name: str
    tracks: tuple[str, ...]
    means: Means
    splits: dict[str, dict[str, tuple[int, ...]]]
    other_splits: tuple[str, ...]
    unfinished: dict[str, float]


def pooled_tracks(
    name: str,
    tracks: Sequence[Track],
    digests: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    without: Collection[str] = (),
) -> Pool:
    """Join tracks: their columns, on the datasets that all have, with the splits that all have.

    Parameters
    ----------
    name : str
        Of the pool.
    tracks : sequence of Track
        The first one decides the order of datasets and metrics. A method of another track than ``default`` is a column
        ``method@track``.
    digests : mapping of str to mapping of str to sequence of str, optional
        By track and dataset the digest of each split, by its number. Splits with equal digests are the same rows;
        without digests, splits of the same number are taken to be.
    without : collection of str
        Datasets that are left out.

    Raises
    ------
    ArenaError
        If the tracks have no dataset or no metric in common.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import pooled_tracks, track_results
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> rows = [("x", 0, "a", "macro_f1", 0.6), ("x", 1, "a", "macro_f1", 0.8), ("y", 0, "a", "macro_f1", 0.5)]
    >>> default = track_results("default", pd.DataFrame(rows, columns=columns))
    >>> tuned = track_results("tuned", pd.DataFrame([("x", 0, "a", "macro_f1", 0.7)], columns=columns))
    >>> pooled_tracks("tuned", [default, tuned]).means.table("macro_f1")
         a  a@tuned
    x  0.6      0.7
    """
    first = tracks[0]
    datasets = common_sets(tracks, without)
    metrics = tuple(each for each in first.metrics if all(each in track.metrics for track in tracks))
    if not datasets or not metrics:
        what = "metric" if datasets else "dataset"
        raise ArenaError(f"the tracks {' and '.join(track.name for track in tracks)} have no {what} in common")
    splits: dict[str, dict[str, tuple[int, ...]]] = {track.name: {} for track in tracks}
    others = []
    for dataset in datasets:
        named = [_named_splits(track, dataset, (digests or {}).get(track.name, {})) for track in tracks]
        common = set.intersection(*(set(names) for names in named))
        if not common:
            others.append(dataset)
        for track, names in zip(tracks, named, strict=True):
            used = [number for split, number in names.items() if split in common] if common else track.splits[dataset]
            splits[track.name][dataset] = tuple(used)
    parts = [_of(track.means(splits[track.name]).on(datasets), metrics) for track in tracks]
    means = Means(
        metrics,
        datasets,
        tuple(column for part in parts for column in part.columns),
        np.concatenate([part.values for part in parts], axis=2),
        np.logical_or.reduce([part.undefined for part in parts]),
        np.concatenate([part.unfinished for part in parts], axis=1),
    )
    means.values[means.undefined] = np.nan
    return Pool(name, tuple(track.name for track in tracks), means, splits, tuple(others), _unfinished(tracks, splits))


def common_sets(tracks: Sequence[Track], without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the datasets that all tracks have, but for some, in the order of the first track."""
    shared = set(tracks[0].datasets).intersection(*(track.datasets for track in tracks)) - set(without)
    return tuple(name for name in tracks[0].datasets if name in shared)


def all_pools(
    tracks: Sequence[Track],
    methods: Mapping[str, Mapping[str, Any]],
    digests: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    champion: str | None = None,
) -> list[Pool]:
    """Return the pools of :data:`POOLS` whose tracks have common sets, each followed by the same on unseen sets.

    Parameters
    ----------
    tracks : sequence of Track
        ``default`` first.
    methods : mapping of str to mapping
        By name of a method its description. ``chosen_on["sets"]`` are the sets whose results decided rules of the
        method: a pool is ranked once more without those of its champion, unless no set is left.
    digests : mapping, optional
        See :func:`pooled_tracks`.
    champion : str, optional
        A column. In a pool without it, the sets of all methods are left out.
    """
    by_name, pools = {track.name: track for track in tracks}, []
    for name, members in POOLS.items():
        own = [by_name[each] for each in members if each in by_name]
        if len(own) < len(members) or not common_sets(own):
            continue
        pools.append(pooled_tracks(name, own, digests))
        named = {column: each for track in own for column, each in zip(track.columns, track.methods, strict=True)}
        judged = [named[champion]] if champion in named else list(named.values())
        described = [methods.get(method, {}).get("chosen_on") or {} for method in judged]
        seen = {dataset for each in described for dataset in each.get("sets", ())} & set(common_sets(own))
        if seen and common_sets(own, seen):
            pools.append(pooled_tracks(f"{name}{UNSEEN}", own, digests, seen))
    return pools


def _named_splits(track: Track, dataset: str, digests: Mapping[str, Sequence[str]]) -> dict[str | int, int]:
    """Return the numbers of the splits of a dataset by digest, where it is known, else by number."""
    known = digests.get(dataset, ())
    return {known[n] if n < len(known) else n: n for n in track.splits[dataset]}


def _of(means: Means, metrics: Sequence[str]) -> Means:
    at = [means.metrics.index(metric) for metric in metrics]
    return Means(tuple(metrics), means.datasets, means.columns, means.values[at], means.undefined[at], means.unfinished)


def _unfinished(tracks: Sequence[Track], splits: Mapping[str, Mapping[str, tuple[int, ...]]]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for track in tracks:
        cells = [
            ~track.finished[dataset][[track.splits[dataset].index(number) for number in used]]
            for dataset, used in splits[track.name].items()
        ]
        shares |= dict(zip(track.columns, np.concatenate(cells).mean(axis=0).tolist(), strict=True))
    return shares
