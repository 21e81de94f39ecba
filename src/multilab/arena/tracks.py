"""Results of the studies of the arena: tracks, their means over splits, and pools of tracks ranked together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from multilab.core import MultilabError
from multilab.metrics import METRICS
from multilab.statistics import Leaderboard
from multilab.statistics.result_files import CELL


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


def method_of(column: str) -> str:
    """Return the method of a column of a pool: the inverse of :func:`column_name`."""
    return column.partition("@")[0]


@dataclass(frozen=True, eq=False)
class Track:
    """Results of one study.

    Attributes
    ----------
    name : str
        ``default``, ``tuned``, ``ensembled`` or any other.
    board : Leaderboard
        Its metrics are those of ``multilab.metrics.METRICS``.
    """

    name: str
    board: Leaderboard

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the methods in a pool of tracks: ``mlknn`` of the track default, ``mlknn@tuned`` of another."""
        return tuple(column_name(name, self.name) for name in self.board.methods)

    def reasons(self) -> dict[tuple[str, str], str]:
        """Return why a method lacks its first split of a dataset, by both; ``missing`` where the tables do not say.

        The splits after it were not tried where it exceeded a limit.
        """
        stopped = self.board.unfinished.sort_values("split", kind="stable").drop_duplicates(["dataset", "method"])
        why = dict(zip(zip(stopped["dataset"], stopped["method"], strict=True), stopped["reason"], strict=True))
        datasets, methods = self.board.datasets, self.board.methods
        pairs = [(datasets[i], methods[j]) for i, j in np.argwhere(self.board.incomplete)]
        return {pair: str(why.get(pair, "missing")) for pair in pairs}

    def unfinished_splits(self) -> np.ndarray:
        """Return the number of unfinished splits, shape (n_datasets, n_methods)."""
        counts = [(~self.board.finished[name]).sum(axis=0) for name in self.board.datasets]
        return np.array(counts).reshape(len(self.board.datasets), len(self.board.methods))

    def means(self, splits: Mapping[str, Sequence[int]] | None = None) -> Leaderboard:
        """Return the mean scores over the splits as a leaderboard of the columns, rounded to nine decimals.

        Parameters
        ----------
        splits : mapping of str to sequence of int, optional
            The splits to average over, by dataset; all of a dataset that is not named.

        Raises
        ------
        StatisticsError
            If a dataset has no such split.
        """
        board = self.board.only(splits) if splits else self.board
        values = np.round(board.values, DECIMALS) + 0.0  # no -0.0
        return Leaderboard.of_means(values, board.directions, board.datasets, self.columns)


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
        Name of the track.
    scores : DataFrame
        Columns dataset, split, method, metric, value. Metrics that are not in ``multilab.metrics.METRICS`` are ignored.
        A cell (dataset, split, method) with any row is finished; a value of NaN is an undefined metric.
    unfinished : DataFrame, optional
        Columns dataset, split, method, reason: cells that exceeded a limit or failed. Other cells without scores are
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
    >>> track.means().means("macro_f1")
                 a   b
    emotions  0.65 NaN
    >>> track.reasons()
    {('emotions', 'b'): 'missing'}
    """
    metrics = tuple(metric for metric in METRICS if (scores["metric"] == metric).any())
    rows = scores[scores["metric"].isin(metrics)]
    methods_seen = _names(rows["method"], unfinished, "method")
    for method in methods or ():
        if method not in methods_seen:
            raise ArenaError(f"track {name}: there are no results of the method {method!r}")
    columns = tuple(methods or methods_seen)
    rows = rows[rows["method"].isin(columns)]
    if rows.empty:
        raise ArenaError(f"track {name}: the table of scores has no row of a metric of multilab")
    if rows.duplicated(["dataset", "split", "method", "metric"]).any():
        row = rows[rows.duplicated(["dataset", "split", "method", "metric"])].iloc[0]
        raise ArenaError(
            f"track {name}: two values of {row['metric']} for {row['method']} on {row['dataset']}, split {row['split']}"
        )
    datasets = tuple(_names(rows["dataset"], None, "dataset"))
    stopped = pd.DataFrame(columns=[*CELL, "reason"]) if unfinished is None else unfinished
    stopped = stopped[stopped["method"].isin(columns) & stopped["dataset"].isin(datasets)]
    directions = {metric: METRICS[metric].direction for metric in metrics}
    return Track(name, Leaderboard(rows, directions, datasets, columns, stopped))


def _names(first: pd.Series, other: pd.DataFrame | None, column: str) -> list[str]:
    """Return the names of a table and of the table of unfinished cells, in the order of their first row."""
    return [str(name) for name in dict.fromkeys([*first, *(() if other is None else other[column])])]


POOLS: Mapping[str, tuple[str, ...]] = {
    "default": ("default",),
    "tuned": ("default", "tuned"),
    "ensembled": ("default", "ensembled"),
    "all": ("default", "tuned", "ensembled"),
}
"""Tracks by pool."""

UNSEEN = "-unseen"
"""After the name of a pool: the same columns, without the sets whose results decided rules of the tested method."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns of several tracks on the datasets and splits that all of them have.

    Attributes
    ----------
    name : str
    tracks : tuple of str
    means : Leaderboard
        Means over the common splits, of the columns of all tracks.
    splits : dict of str to dict of str to tuple of int
        The splits averaged over, by track and dataset.
    other_splits : tuple of str
        Datasets that the tracks split differently, so that each track has its own splits.
    unfinished : dict of str to float
        Share of the cells (dataset, split) that a column did not finish.
    """

    name: str
    tracks: tuple[str, ...]
    means: Leaderboard
    splits: dict[str, dict[str, tuple[int, ...]]]
    other_splits: tuple[str, ...]
    unfinished: dict[str, float]


def pooled_tracks(
    name: str,
    tracks: Sequence[Track],
    digests: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    without: Collection[str] = (),
) -> Pool:
    """Join the columns of tracks on their common datasets and splits.

    Parameters
    ----------
    name : str
        Name of the pool.
    tracks : sequence of Track
        The first one decides the order of datasets and metrics. A method of another track than ``default`` is a column
        ``method@track``.
    digests : mapping of str to mapping of str to sequence of str, optional
        Digest of each split by track and dataset, in the order of the splits. Splits with equal digests have the same
        rows; without digests, splits of the same number are assumed to have the same rows.
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
    >>> pooled_tracks("tuned", [default, tuned]).means.means("macro_f1")
         a  a@tuned
    x  0.6      0.7
    """
    datasets = common_sets(tracks, without)
    metrics = [name for name in tracks[0].board.metrics if all(name in track.board.metrics for track in tracks)]
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
            # without common splits each track has the mean of all its own; the pool lists these datasets
            used = [number for split, number in names.items() if split in common] if common else names.values()
            splits[track.name][dataset] = tuple(used)
    parts = [track.means(splits[track.name]).on(datasets) for track in tracks]
    at = [[part.metrics.index(name) for name in metrics] for part in parts]
    values = np.concatenate([part.values[index] for part, index in zip(parts, at, strict=True)], axis=2)
    values[np.logical_or.reduce([part.undefined[index] for part, index in zip(parts, at, strict=True)])] = np.nan
    means = Leaderboard.of_means(
        values,
        {name: METRICS[name].direction for name in metrics},
        datasets,
        [column for part in parts for column in part.methods],
    )
    return Pool(name, tuple(track.name for track in tracks), means, splits, tuple(others), _unfinished(tracks, splits))


def common_sets(tracks: Sequence[Track], without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the datasets that all tracks have, except some, in the order of the first track."""
    first, *others = [track.board.datasets for track in tracks]
    return tuple(name for name in first if name not in without and all(name in other for other in others))


def all_pools(
    tracks: Sequence[Track],
    methods: Mapping[str, Mapping[str, Any]],
    digests: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    tested: str | None = None,
) -> list[Pool]:
    """Return the pools of :data:`POOLS` whose tracks have common sets, each followed by the same on unseen sets.

    Parameters
    ----------
    tracks : sequence of Track
        ``default`` first.
    methods : mapping of str to mapping
        By name of a method its description. ``chosen_on["sets"]`` are the sets whose results decided rules of the
        method: a pool is ranked once more without those of its tested method, unless no set is left.
    digests : mapping, optional
        See :func:`pooled_tracks`.
    tested : str, optional
        A column. In a pool without it, the sets of all methods are left out.
    """
    by_name, pools = {track.name: track for track in tracks}, []
    for name, members in POOLS.items():
        pooled = [by_name[member] for member in members if member in by_name]
        if len(pooled) < len(members) or not common_sets(pooled):
            continue
        pools.append(pooled_tracks(name, pooled, digests))
        named = {
            column: method
            for track in pooled
            for column, method in zip(track.columns, track.board.methods, strict=True)
        }
        judged = [named[tested]] if tested in named else list(named.values())
        described = [methods.get(method, {}).get("chosen_on") or {} for method in judged]
        seen = {dataset for choice in described for dataset in choice.get("sets", ())} & set(common_sets(pooled))
        if seen and common_sets(pooled, seen):
            pools.append(pooled_tracks(f"{name}{UNSEEN}", pooled, digests, seen))
    return pools


def _named_splits(track: Track, dataset: str, digests: Mapping[str, Sequence[str]]) -> dict[str | int, int]:
    """Return the numbers of the splits of a dataset by digest, where it is known, else by number."""
    split_digests = digests.get(dataset, ())
    return {split_digests[n] if n < len(split_digests) else n: n for n in track.board.splits_of[dataset]}


def _unfinished(tracks: Sequence[Track], splits: Mapping[str, Mapping[str, tuple[int, ...]]]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for track in tracks:
        cells = [
            ~track.board.finished[dataset][[track.board.splits_of[dataset].index(number) for number in used]]
            for dataset, used in splits[track.name].items()
        ]
        shares |= dict(zip(track.columns, np.concatenate(cells).mean(axis=0).tolist(), strict=True))
    return shares
