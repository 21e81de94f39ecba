"""Seeded tables of results such as the studies of the arena write."""

from __future__ import annotations

import numpy as np
import pandas as pd

from multilab.metrics import METRICS


def synthetic_scores(n_sets=6, n_methods=8, n_splits=3, seed=0, metrics=tuple(METRICS), prefix="m"):
    """Return scores of methods that differ a little, with ties; metrics in [0, 1] but for coverage."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.03, n_methods)
    level = rng.uniform(0.4, 0.7, (n_sets, len(metrics)))
    noise = rng.normal(0, 0.03, (n_sets, n_splits, n_methods, len(metrics)))
    values = np.clip(level[:, None, None] + strength[None, None, :, None] + noise, 0, 1).round(4)
    for at, name in enumerate(metrics):
        if METRICS[name].direction == "min":
            values[..., at] = (1 - values[..., at]) * (10 if np.isinf(METRICS[name].high) else 1)
    index = np.indices(values.shape).reshape(4, -1)
    return pd.DataFrame(
        {
            "dataset": [f"set{i}" for i in index[0]],
            "split": index[1],
            "method": [f"{prefix}{j}" for j in index[2]],
            "metric": np.array(metrics, dtype=object)[index[3]],
            "value": values.ravel(),
        }
    )


def facts_of(scores):
    """Return facts of the datasets of a table, as the leaderboard file has them."""
    return [
        {
            "name": name,
            "title": f"Set {at}",
            "domain": "text" if at % 2 else "image",
            "text": bool(at % 2),
            "n": 500 + 300 * at,
            "d": 50 * (at + 1),
            "q": 6 + at,
            "cardinality": 1.5 + at / 8,
            "density": (1.5 + at / 8) / (6 + at),
            "distinct": 30 + at,
            "nominal": 0,
            "sparse": bool(at % 2),
        }
        for at, name in enumerate(dict.fromkeys(scores["dataset"]))
    ]


def without_cells(scores, *cells):
    """Return the scores without those of some (dataset, method) or (dataset, method, split)."""
    for dataset, method, *split in cells:
        gone = (scores["dataset"] == dataset) & (scores["method"] == method)
        scores = scores[~(gone & scores["split"].isin(split) if split else gone)]
    return scores
