"""Iterative stratification: subsets in which every label, or pair of labels, has its share.

Order 1 follows K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of multi-label data, ECML PKDD
2011 (Algorithm 1); order 2 follows P. Szymański, T. Kajdanowicz, A network perspective on stratification of
multi-label data, LIDTA 2017: pairs of labels that occur together are stratified like labels of their own.

Two deviations. A subset never takes more rows than its share, so that sizes are exact (the originals only
prefer the one with more room when a label does not decide). And everything is integer arithmetic on raw PCG64
words: demands are counted in units of 1/n, ties have a written rule, and no generator method whose stream may
change between NumPy versions is used, so that the indices can be pinned in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError

__all__ = ["label_table", "permutation", "raw_bits", "stratified_assignment"]


def stratified_assignment(
    Y: Any, sizes: Sequence[int], *, order: int = 1, seed: int = 0, repeat: int = 0
) -> np.ndarray:
    """Return for every row the number of its subset, by iterative stratification.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q)
        Labels, 0 or 1.
    sizes : sequence of int
        Rows of each subset; they sum to n. Subset j gets ``sizes[j] / n`` of every label's rows, as nearly as
        it goes.
    order : {1, 2}
        2 adds a column for every pair of labels that occurs.
    seed, repeat : int
        Entropy and spawn key of the seed sequence.

    Returns
    -------
    ndarray of shape (n,), int64

    Notes
    -----
    The label (or pair) with the fewest rows left is served first; among equals a pair before a label, then
    the lower column. Its rows come in one fixed random order. A row goes to the subset that lacks most rows
    of that label; among equals to the one with most room; among those by a raw random word modulo their
    number. Rows without labels fill the room that is left by the same rule.
    """
    labels = label_table(Y)
    room = [int(size) for size in sizes]
    n = len(labels)
    if sum(room) != n or min(room, default=0) < 0:
        raise DatasetError(f"the subset sizes {room} do not sum to the {n} rows")
    bits = raw_bits(seed, repeat)
    shuffled = permutation(n, bits)
    columns = (_with_pairs(labels) if order == 2 else labels.astype(bool))[shuffled]
    columns = columns[:, columns.any(axis=0)]
    left = columns.sum(axis=0, dtype=np.int64)
    lacks = np.outer(left, np.array(room, dtype=np.int64))  # in units of 1/n rows
    columns_of = [np.flatnonzero(row) for row in columns]
    chosen = np.full(n, -1, dtype=np.int64)
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, n + 1)))
        for row in np.flatnonzero(columns[:, label] & (chosen < 0)):
            chosen[row] = subset = _neediest(lacks[label].tolist(), room, bits)
            room[subset] -= 1
            lacks[columns_of[row], subset] -= n
            left[columns_of[row]] -= 1
    for row in np.flatnonzero(chosen < 0):
        chosen[row] = subset = _neediest(room, room, bits)
        room[subset] -= 1
    assignment = np.empty_like(chosen)
    assignment[shuffled] = chosen
    return assignment


def _neediest(lacks: list[int], room: list[int], bits: np.random.PCG64) -> int:
    """Return the subset with room that lacks most; then most room; then a random one."""
    best = max((lack, space) for lack, space in zip(lacks, room, strict=True) if space > 0)
    ties = [j for j, pair in enumerate(zip(lacks, room, strict=True)) if pair == best]
    return ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]


def _with_pairs(labels: np.ndarray) -> np.ndarray:
    """Return the columns of all pairs of labels that occur together, followed by the labels themselves."""
    wide = labels.astype(np.int64)
    first, second = np.nonzero(np.triu(wide.T @ wide, k=1))
    single = labels.astype(bool)
    return np.hstack([single[:, first] & single[:, second], single])


def raw_bits(seed: int, repeat: int) -> np.random.PCG64:
    """Return the bit generator of one repetition; its words are the same in all NumPy versions."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repeat,)))


def permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return the numbers 0..n-1 in random order: n raw words, sorted."""
    return np.argsort(bits.random_raw(n), kind="stable")


def label_table(Y: Any) -> np.ndarray:
    """Return the labels as a dense (n, q) uint8 array of 0 and 1."""
    dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    if dense.ndim == 1:
        dense = dense[:, None]
    if dense.ndim != 2 or not np.isin(dense, (0, 1)).all():
        raise DatasetError("labels must be a table of 0 and 1, one row per example")
    return dense.astype(np.uint8, copy=False)
