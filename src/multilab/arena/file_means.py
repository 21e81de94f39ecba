"""Mean scores from the leaderboard file, to rank its methods on other sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multilab.arena.errors import ArenaError
from multilab.arena.tracks import Means
from multilab.core.messages import unknown_name


def leaderboard_means(content: Mapping[str, Any], pool: str = "default") -> Means:
    """Return the means of a pool of tracks of a leaderboard.

    Parameters
    ----------
    content : mapping
        Of ``leaderboard.json``, see :mod:`multilab.arena.leaderboard_file`.
    pool : str, default="default"
        ``default``, ``tuned``, ``ensembled`` or ``all``.

    Returns
    -------
    Means
        On the datasets and columns of the pool, with the metrics that all its tracks have.

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
    >>> leaderboard_means(arena_leaderboard([track_results("default", scores)], facts, {}, [])).table("macro_f1")
         a    b
    x  0.6  0.7
    y  0.5  NaN
    """
    known = {each["name"]: each for each in content["pools"]}
    if pool not in known:
        raise ArenaError(unknown_name("pool of the leaderboard", pool, known))
    entry = known[pool]
    tracks = [(name, content["tracks"][name]) for name in entry["tracks"]]
    metrics = [name for name in tracks[0][1]["values"] if all(name in track["values"] for _, track in tracks)]
    values = np.full((len(metrics), len(entry["sets"]), len(entry["columns"])), np.nan)
    absent = entry["undefined"]
    undefined = np.array([[name in absent.get(metric, ()) for name in entry["sets"]] for metric in metrics])
    for name, track in tracks:
        columns = [entry["columns"].index(column) for column in track["columns"]]
        for m, metric in enumerate(metrics):
            own = entry["values"].get(name, {}).get(metric, {})
            for i, dataset in enumerate(entry["sets"]):
                row = own[dataset] if dataset in own else track["values"][metric][track["sets"].index(dataset)]
                values[m, i, columns] = np.array(row, dtype=float)
    values[undefined] = np.nan
    unfinished = np.isnan(values).all(axis=0)
    return Means(tuple(metrics), tuple(entry["sets"]), tuple(entry["columns"]), values, undefined, unfinished)
