"""Neighbours by Manhattan distance, block by block; ties go to the smaller row number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

__all__ = ["distance_blocks", "smallest"]

_ENTRIES = 2**20  # distances held at a time: memory is O(block x n)


def distance_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (rows, distances of these rows to all) of the rows of X (dense or CSR); the diagonal is infinite."""
    dense = X.toarray() if sp.issparse(X) else X
    step = max(1, _ENTRIES // len(dense))
    for start in range(0, len(dense), step):
        rows = slice(start, min(start + step, len(dense)))
        distances = cdist(dense[rows], dense, "cityblock")
        np.fill_diagonal(distances[:, start:], np.inf)
        yield rows, distances


def smallest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, column) of the k smallest finite entries of each row, nearest first; all where there are fewer."""
    k = min(k, distances.shape[1])
    bound = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    rows, columns = np.nonzero((distances <= bound) & np.isfinite(distances))
    order = np.lexsort((columns, distances[rows, columns], rows))
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    chosen = order[place < k]
    return rows[chosen], columns[chosen]
