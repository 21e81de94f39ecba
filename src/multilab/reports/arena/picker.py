"""Data of *data like mine*: what the script of the page reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multilab.arena import leaderboard_means
from multilab.reports.arena.data import ArenaData
from multilab.reports.arena.texts import shown_column


def picker_data(arena: ArenaData) -> dict[str, Any]:
    """Return what the script of the page reads: sets, columns, metrics, pools, and means as integers of 10^-6.

    ``means`` is indexed by set, metric and column; ``pools`` hold the positions of their columns and sets, the
    metrics that are undefined on a set, and their own means on sets of which they average fewer splits.
    """
    sets, columns = list(arena.sets), list(arena.columns)
    metrics = [each["name"] for each in counted_metrics(arena)]
    pools, means = {}, np.full((len(sets), len(metrics), len(columns)), np.nan)
    for track in arena.tracks.values():
        for i, name in enumerate(sets):
            if name in track["sets"]:
                for j, metric in enumerate(metrics):
                    row = track["values"].get(metric, [[None] * len(track["columns"])] * len(sets))
                    at = [columns.index(column) for column in track["columns"]]
                    means[i, j, at] = np.array(row[track["sets"].index(name)], dtype=float)
    for name, pool in arena.pools.items():
        own = leaderboard_means(arena.content, name)
        fewer = sorted({dataset for track in pool["values"].values() for rows in track.values() for dataset in rows})
        used = [metric for metric in metrics if metric in own.metrics]
        pools[name] = {
            "columns": [columns.index(column) for column in own.columns],
            "sets": [sets.index(dataset) for dataset in own.datasets],
            "metrics": [metrics.index(metric) for metric in used],
            "undefined": {
                sets.index(dataset): absent
                for i, dataset in enumerate(own.datasets)
                if (absent := [metrics.index(m) for m in used if own.undefined[own.metrics.index(m), i]])
            },
            "own": {
                sets.index(dataset): {
                    metrics.index(m): _integers(own.values[own.metrics.index(m), own.datasets.index(dataset)])
                    for m in used
                }
                for dataset in fewer
            },
        }
    return {
        "sets": [
            {
                "name": name,
                "rows": profile.rows,
                "features": profile.features,
                "labels": profile.labels,
                "cardinality": profile.cardinality,
                "density": profile.density,
                "text": profile.text,
            }
            for name, profile in arena.profiles.items()
        ],
        "methods": [
            shown_column(arena, name) | {"chosen": [sets.index(each) for each in column.chosen_on if each in sets]}
            for name, column in arena.columns.items()
        ],
        "metrics": [{key: arena.metrics[name][key] for key in ("name", "title", "direction")} for name in metrics],
        "groups": {
            **{name: [metrics.index(m) for m in group["metrics"]] for name, group in arena.groups.items()},
            **{name: [index] for index, name in enumerate(metrics)},
        },
        "pools": pools,
        "means": [[_integers(row) for row in table] for table in means],
    }


def counted_metrics(arena: ArenaData) -> list[dict[str, Any]]:
    """Return the metrics that groups count: without those that order the methods as another one does."""
    return [each for each in arena.metrics.values() if not each["ordered_like"]]


def _integers(values: np.ndarray) -> list[int | None]:
    return [None if math.isnan(value) else round(1e6 * value) for value in values]
