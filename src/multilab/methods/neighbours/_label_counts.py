"""Numbers of neighbours that have a label, of dense and of sparse label matrices."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def label_counts(neighbours: np.ndarray, Y: Any) -> Any:
    """Return the number of neighbours of each row that have each label.

    Parameters
    ----------
    neighbours : int ndarray of shape (m, k)
        Row numbers of Y.
    Y : ndarray or CSR array of shape (n, q)

    Returns
    -------
    int64 ndarray or CSR array of shape (m, q)
        As Y.
    """
    m, k = neighbours.shape
    chosen = sp.csr_array(
        (np.ones(m * k, dtype=np.int64), neighbours.ravel(), np.arange(0, m * k + 1, k)), shape=(m, Y.shape[0])
    )
    return chosen @ Y


def rows_by_count(Y: Any, counts: Any, k: int) -> np.ndarray:
    """Return how many rows without (b = 0) and with (b = 1) a label have r neighbours with it, shape (q, 2, k + 1).

    Parameters
    ----------
    Y : ndarray or CSR array of shape (n, q)
    counts : ndarray or CSR array of shape (n, q)
        See `label_counts`.
    k : int
        Number of neighbours.
    """
    q, size = Y.shape[1], k + 1
    if not sp.issparse(Y):
        cell = (2 * np.arange(q) + Y) * size + counts
        return np.bincount(cell.ravel(), minlength=2 * q * size).reshape(q, 2, size)
    kappa = np.empty((q, 2, size), dtype=np.int64)
    kappa[:, 1] = _by_count(Y.multiply(counts).tocsr(), size, Y.sum(axis=0))
    kappa[:, 0] = _by_count(counts, size, np.full(q, Y.shape[0])) - kappa[:, 1]
    return kappa


def _by_count(counts: Any, size: int, totals: np.ndarray) -> np.ndarray:
    """Return the number of rows of each label by their count, shape (q, size); what is not stored is a count of 0."""
    cell = counts.indices.astype(np.int64) * size + counts.data
    number = np.bincount(cell, minlength=len(totals) * size).reshape(-1, size)
    number[:, 0] = totals.astype(np.int64) - number[:, 1:].sum(axis=1)
    return number


def values_at(table: np.ndarray, counts: Any) -> np.ndarray:
    """Return ``table[l, counts[i, l]]`` for all rows i and labels l, shape (m, q), from a table of shape (q, k + 1)."""
    if not sp.issparse(counts):
        return table[np.arange(len(table)), counts]
    values = np.tile(table[:, 0], (counts.shape[0], 1))
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values[rows, counts.indices] = table[counts.indices, counts.data]
    return values
