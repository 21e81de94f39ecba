"""ML-kNN on the first 1, 2, ... of an order of features, without starting anew for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg.blas import dgemm

from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.neighbours.search import _candidates, _exact_distances

__all__ = ["mlknn_path", "neighbour_path"]

_ROWS = 64  # queries whose distances are made and looked through at a time: they stay in a core's own cache
_SETS = 512  # queries whose neighbours are told at a time, of the few candidates left
_WIDTH = 3  # most queries have fewer candidates than this many times k


def mlknn_path(
    X: np.ndarray, Y: np.ndarray, X_new: np.ndarray, order: np.ndarray, counts: Sequence[int], k: int, s: float
) -> Iterator[np.ndarray]:
    """Yield ML-kNN's scores of new rows when only the first ``count`` features of an order are used, for each count.

    Parameters
    ----------
    X, X_new : ndarray of shape (n, d), (m, d)
    Y : uint8 ndarray of shape (n, q)
    order : int ndarray
        Column numbers, at least as many as the largest count.
    counts : sequence of int
        Ascending.
    k, s
        See `MLkNN`.

    Yields
    ------
    ndarray of shape (m, q)
        What ``MLkNN(k, s).fit(X[:, chosen], Y).predict_proba(X_new[:, chosen])`` returns.
    """
    for near, near_new in neighbour_path(X, X_new, order, counts, k):
        yield _OnNeighbours(k, s).fit(near, Y).predict_proba(near_new)


class _OnNeighbours(MLkNN):
    """ML-kNN that is told the neighbours in the place of the features."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> _OnNeighbours:
        self._Y, self.n_labels_ = Y, Y.shape[1]
        self.prior_ = (self.s + Y.sum(axis=0)) / (2.0 * self.s + len(Y))
        self.posterior_ = self._posterior(self._count(X))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.posterior_[np.arange(self.n_labels_), self._count(X)]


def neighbour_path(
    X: np.ndarray, X_new: np.ndarray, order: np.ndarray, counts: Sequence[int], k: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the k nearest rows of X, for X itself (without oneself) and for X_new, by the first features of an order.

    They are those of `exact_neighbours` on the chosen columns in their own order, as sets: within a row their
    order is arbitrary.

    Notes
    -----
    Squared distances add up over features, so each step adds one product of the new columns in place; memory is
    O(n (n + m)). Where the k-th and the next distance are apart by more than the rounding errors of these sums (bounded
    as in `search`), or the rows in question are equal, the set is known; else exact distances decide.
    """
    n = len(X)
    rows = np.vstack([X, X_new])
    centred = rows - X.mean(axis=0)  # small norms mean small errors
    norms, group = np.zeros(len(rows)), np.zeros(n, dtype=np.int64)
    # |z|^2 - 2 x.z: without |x|^2, which is the same for a whole row; transposed, as BLAS wants it
    partial = np.zeros((n, len(rows)), order="F")
    blocks = [slice(start, min(start + _SETS, len(rows))) for start in range(0, len(rows), _SETS)]
    found = np.empty((len(rows), k), dtype=np.int64)
    done = 0
    for count in counts:
        part = centred[:, order[done:count]]
        added = np.einsum("ij,ij->i", part, part)
        left, right = np.column_stack([part[:n], added[:n]]), np.column_stack([-2.0 * part, np.ones(len(rows))])
        norms += added
        group = _equal_rows(group, X[:, order[done:count]])
        done = count
        slack = 16.0 * (count + 16) * np.finfo(np.float64).eps * (norms[:n].max() + norms)
        chosen = np.sort(order[:count])
        columns = X[:, chosen]
        for block in blocks:
            pieces = []
            for start in range(block.start, block.stop, _ROWS):
                few = slice(start, min(start + _ROWS, block.stop))
                here = partial[:, few]
                dgemm(1.0, left.T, right[few].T, beta=1.0, c=here, trans_a=True, overwrite_c=True)
                own = np.arange(start, min(few.stop, n))
                partial[own, own] = np.inf
                owners, candidates = _candidates(here.T, slack[few], k)
                pieces.append((owners + (start - block.start), candidates, here.T[owners, candidates]))
            owners, candidates, values = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
            found[block], unclear = _nearest_sets(owners, candidates, values, slack[block], k, group)
            if len(unclear):
                place = unclear + block.start
                queries = rows[np.ix_(place, chosen)]
                found[place] = _by_exact_distance(partial[:, place].T, slack[place], k, columns, queries)
        yield found[:n].copy(), found[n:].copy()


def _equal_rows(group: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return numbers that are equal for rows that were equal before and are in the new columns."""
    shared = np.flatnonzero(np.bincount(group)[group] > 1)
    seen: dict[tuple[int, bytes], int] = {}
    numbers = np.arange(len(group), 2 * len(group))  # of rows that had no equal any more
    for place, row in zip(shared.tolist(), np.ascontiguousarray(part[shared]) + 0.0, strict=True):  # -0 is 0
        numbers[place] = seen.setdefault((int(group[place]), row.tobytes()), len(seen))
    return numbers


def _nearest_sets(
    owners: np.ndarray, candidates: np.ndarray, values: np.ndarray, slack: np.ndarray, k: int, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of each query, and the queries of which the distances do not tell.

    Given are pairs of a query and a candidate, sorted, with their distances. Of rows tied within the slack those with
    the smallest numbers are taken, which is right if they are equal.
    """
    size = np.bincount(owners, minlength=len(slack))
    first = np.cumsum(size) - size
    kth = _kth_smallest(values, owners, first, size, k)
    excess = values - kth[owners]
    surely, maybe = excess < -slack[owners], np.abs(excess) <= slack[owners]
    room = k - np.bincount(owners[surely], minlength=len(slack))
    tied = np.cumsum(maybe)
    place = tied - (tied[first] - maybe[first])[owners]  # 1 for the first tied candidate of a query
    found = candidates[surely | (maybe & (place <= room[owners]))].reshape(-1, k)
    whose, which = owners[maybe], group[candidates[maybe]]
    count = np.bincount(whose, minlength=len(slack))
    differ = np.zeros(len(slack), dtype=bool)
    differ[whose[which != which[(np.cumsum(count) - count)[whose]]]] = True
    return found, np.flatnonzero(differ & (count > room))


def _kth_smallest(values: np.ndarray, owners: np.ndarray, first: np.ndarray, size: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th smallest of each query's values, which stand one query after the other."""
    kth = np.empty(len(size))
    narrow = size <= _WIDTH * k
    table = np.full((len(size), _WIDTH * k), np.inf)
    inside = narrow[owners]
    table[owners[inside], (np.arange(len(values)) - first[owners])[inside]] = values[inside]
    kth[narrow] = np.partition(table[narrow], k - 1, axis=1)[:, k - 1]
    for query in np.flatnonzero(~narrow):
        kth[query] = np.partition(values[first[query] : first[query] + size[query]], k - 1)[k - 1]
    return kth


def _by_exact_distance(bounds: np.ndarray, slack: np.ndarray, k: int, X: np.ndarray, queries: np.ndarray) -> np.ndarray:
    owners, candidates = _candidates(bounds, slack, k)
    exact = _exact_distances(X, queries, owners, candidates)
    order = np.lexsort((candidates, exact, owners))
    first = np.searchsorted(owners, np.arange(len(queries)))
    return candidates[order[first[:, None] + np.arange(k)]]
