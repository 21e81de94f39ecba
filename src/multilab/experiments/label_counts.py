"""Counts of decisions per label, from stored cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from multilab.cells.cell import Cell
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.datasets import load

__all__ = ["decisions_by_label"]


def decisions_by_label(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return the counts of every label on the test rows of all splits together, a row per dataset, method and label.

    Returns
    -------
    DataFrame
        Columns dataset, method, label (number of the column), rows, positives, predicted and hits.
    """
    totals: dict[tuple[str, str], np.ndarray] = {}
    for cell in cells:
        _, test = indices(cell.split_ref)
        Y, decisions = load(cell.split_ref.dataset).Y[test], store.arrays(cell.key)["decisions"] == 1
        observed, true = Y >= 0, Y == 1
        counts = np.stack([c.sum(axis=0) for c in (observed, true, decisions & observed, decisions & true)])
        index = cell.split_ref.dataset, cell.method.name
        totals[index] = totals.get(index, 0) + counts
    rows = [
        (dataset, method, label, *map(int, counts))
        for (dataset, method), total in totals.items()
        for label, counts in enumerate(total.T)
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "label", "rows", "positives", "predicted", "hits"])
