"""Properties of a dataset that papers print: counts, cardinalities, label frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from multilab.datasets import Dataset


DATA_METRICS = ("label_count", "label_frequency")
"""Properties of single labels; ``method`` is the label there."""


def data_rows(data: Dataset) -> pd.DataFrame:
    """Return a data set's numbers in the form of results: columns dataset, method, metric, mean, std.

    ``method`` is ``data`` for the complete set (n_instances, n_features before one-hot coding, n_labels,
    label_cardinality; train_ and test_label_cardinality with the standard deviation over instances, ddof = 1, where the
    set has an official split) and a label's name for its label_count and label_frequency.
    """
    n, q = data.Y.shape
    sizes = data.Y.sum(axis=1, dtype=float)
    rows: list[tuple[str, str, float, float]] = [
        ("data", "n_instances", n, np.nan),
        ("data", "n_features", data.features or data.X.shape[1], np.nan),
        ("data", "n_labels", q, np.nan),
        ("data", "label_cardinality", float(sizes.mean()), np.nan),
    ]
    if "official" in data.splits:
        for part, index in zip(("train", "test"), data.splits["official"], strict=True):
            mean, std = float(sizes[index].mean()), float(sizes[index].std(ddof=1))
            rows.append(("data", f"{part}_label_cardinality", mean, std))
    for name, count in zip(data.label_names, data.Y.sum(axis=0, dtype=int), strict=True):
        rows += [(name, "label_count", int(count), np.nan), (name, "label_frequency", int(count) / n, np.nan)]
    table = pd.DataFrame(rows, columns=["method", "metric", "mean", "std"])
    return table.assign(dataset=data.name).drop_duplicates(["method", "metric"])
