"""Iterative stratification row by row on dense tables: the form with which the committed splits were made."""

from __future__ import annotations

import numpy as np


def assignment_by_rows(Y: np.ndarray, sizes: list[int], order: int = 1, seed: int = 0, repeat: int = 0) -> np.ndarray:
    """Return the subset index of every row of a dense uint8 table."""
    free = list(sizes)
    n = len(Y)
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repeat,)))
    shuffled = np.argsort(bits.random_raw(n), kind="stable")
    columns = (with_pairs(Y) if order == 2 else Y.astype(bool))[shuffled]
    columns = columns[:, columns.any(axis=0)]
    left = columns.sum(axis=0, dtype=np.int64)
    needs = np.outer(left, np.array(free, dtype=np.int64))
    columns_of = [np.flatnonzero(row) for row in columns]
    chosen = np.full(n, -1, dtype=np.int64)
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, n + 1)))
        for row in np.flatnonzero(columns[:, label] & (chosen < 0)):
            chosen[row] = subset = neediest(needs[label].tolist(), free, bits)
            free[subset] -= 1
            needs[columns_of[row], subset] -= n
            left[columns_of[row]] -= 1
    for row in np.flatnonzero(chosen < 0):
        chosen[row] = subset = neediest(free, free, bits)
        free[subset] -= 1
    assignment = np.empty_like(chosen)
    assignment[shuffled] = chosen
    return assignment


def neediest(needs: list[int], free: list[int], bits: np.random.PCG64) -> int:
    """Return the subset with free rows that needs most rows; of several one with most free rows, then a random one."""
    best = max((need, space) for need, space in zip(needs, free, strict=True) if space > 0)
    ties = [j for j, pair in enumerate(zip(needs, free, strict=True)) if pair == best]
    return ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]


def with_pairs(Y: np.ndarray) -> np.ndarray:
    """Return the columns of all pairs of labels that occur together, followed by the labels."""
    wide = Y.astype(np.int64)
    first, second = np.nonzero(np.triu(wide.T @ wide, k=1))
    single = Y.astype(bool)
    return np.hstack([single[:, first] & single[:, second], single])
