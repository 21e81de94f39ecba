# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Nearest neighbours by Manhattan distance in blocks; ties go to the smaller row number."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

_ENTRIES = 2**20  # distances per block: 8 MiB


def distance_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the distances of blocks of rows to all rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        A sparse X is converted to a dense array.

    Yields
    ------
    rows : slice
        Rows of the block.
    distances : ndarray of shape (b, n)
        Infinite between a row and itself.
    """
    dense = X.toarray() if sp.issparse(X) else X
    step = max(1, _ENTRIES // len(dense))
    for start in range(0, len(dense), step):
        rows = slice(start, min(start + step, len(dense)))
        distances = cdist(dense[rows], dense, "cityblock")
        np.fill_diagonal(distances[:, start:], np.inf)
        yield rows, distances


def smallest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column numbers of the k smallest finite entries of each row, in ascending order of distance.

    All finite entries of a row are returned if there are fewer; ties go to the smaller column number.
    """
    k = min(k, distances.shape[1])
    bound = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    # all ties with the k-th entry are candidates, so that the order below decides
    rows, columns = np.nonzero((distances <= bound) & np.isfinite(distances))
    order = np.lexsort((columns, distances[rows, columns], rows))
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    chosen = order[rank < k]
    return rows[chosen], columns[chosen]
