"""Readers of ``leaderboard.json.gz``: a pool, its means, and the ratings of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multilab.arena.tracks import ArenaError
from multilab.core.messages import unknown_name
from multilab.metrics import METRICS
from multilab.statistics import Leaderboard


def pool_of(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a pool of the leaderboard, an empty mapping if it is absent."""
    return next((pool for pool in content["pools"] if pool["name"] == name), {})


def elo_of(pool: Mapping[str, Any], group: str, column: str) -> dict[str, Any]:
    """Return the Elo of a column with its interval, an empty mapping without ratings."""
    board, at = pool["boards"][group], pool["columns"].index(column)
    return {key: board[key][at] for key in ("elo", "elo_low", "elo_high") if key in board}


def leaderboard_means(content: Mapping[str, Any], pool: str = "default") -> Leaderboard:
    """Return the means of a pool of tracks of a leaderboard.

    Parameters
    ----------
    content : mapping
        Content of ``leaderboard.json.gz``, see :mod:`multilab.arena.leaderboard`.
    pool : str, default="default"
        ``default``, ``tuned``, ``ensembled`` or ``all``.

    Returns
    -------
    Leaderboard
        The means on the datasets and columns of the pool, with the metrics that all its tracks have.

    Raises
    ------
    ArenaError
        If there is no such pool.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import arena_leaderboard, leaderboard_means, track_results
    >>> rows = [("x", 0, "a", "macro_f1", 0.6), ("x", 0, "b", "macro_f1", 0.7), ("y", 0, "a", "macro_f1", 0.5)]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> facts = [{"name": "x", "q": 6}, {"name": "y", "q": 6}]
    >>> leaderboard_means(arena_leaderboard([track_results("default", scores)], facts, {}, [])).means("macro_f1")
         a    b
    x  0.6  0.7
    y  0.5  NaN
    """
    pools = {pool_entry["name"]: pool_entry for pool_entry in content["pools"]}
    if pool not in pools:
        raise ArenaError(unknown_name("pool of the leaderboard", pool, pools))
    entry = pools[pool]
    tracks = [(name, content["tracks"][name]) for name in entry["tracks"]]
    metrics = [name for name in tracks[0][1]["values"] if all(name in track["values"] for _, track in tracks)]
    values = np.full((len(metrics), len(entry["sets"]), len(entry["columns"])), np.nan)
    absent = entry["undefined"]
    undefined = np.array([[name in absent.get(metric, ()) for name in entry["sets"]] for metric in metrics])
    for name, track in tracks:
        columns = [entry["columns"].index(column) for column in track["columns"]]
        for m, metric in enumerate(metrics):
            by_dataset = entry["values"].get(name, {}).get(metric, {})
            for i, dataset in enumerate(entry["sets"]):
                row = (
                    by_dataset[dataset]
                    if dataset in by_dataset
                    else track["values"][metric][track["sets"].index(dataset)]
                )
                values[m, i, columns] = np.array(row, dtype=float)
    values[undefined] = np.nan
    directions = {name: METRICS[name].direction for name in metrics}
    return Leaderboard.of_means(values, directions, entry["sets"], entry["columns"])
