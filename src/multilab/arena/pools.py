"""Tracks that are ranked together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multilab.arena.errors import ArenaError
from multilab.arena.tracks import Means, Track

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
