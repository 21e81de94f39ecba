"""ML-kNN on growing prefixes of a feature ranking, in one pass."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg.blas import dgemm

from multilab.methods.neighbours._label_counts import label_counts
from multilab.methods.neighbours._search import _candidates, _nearest
from multilab.methods.neighbours.mlknn import MLkNN

_ROWS = 512  # queries per block of distances
_WIDTH = 3  # most queries have fewer candidates than this many times k


def mlknn_path(
    X: np.ndarray, Y: np.ndarray, X_new: np.ndarray, order: np.ndarray, counts: Sequence[int], k: int, s: float
) -> Iterator[np.ndarray]:
    """Yield the scores of ML-kNN for new rows on the first ``count`` features of an order, for each count.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    X_new : ndarray of shape (m, d)
    Y : uint8 ndarray of shape (n, q)
    order : int ndarray
        Column numbers in the order of the ranking, at least as many as the largest count.
    counts : sequence of int
        Numbers of features, ascending.
    k, s
        See `MLkNN`.

    Yields
    ------
    ndarray of shape (m, q)
        Equal to ``MLkNN(k, s).fit(X[:, chosen], Y).predict_proba(X_new[:, chosen])``, ``chosen`` the sorted first
        ``count`` columns.
    """
    model = MLkNN(k, s)
    for near, near_new in neighbour_path(X, X_new, order, counts, k):
        _, posterior = model._probabilities(Y, label_counts(near, Y), k)
        yield posterior[np.arange(Y.shape[1]), label_counts(near_new, Y)]


def neighbour_path(
    X: np.ndarray, X_new: np.ndarray, order: np.ndarray, counts: Sequence[int], k: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the k nearest rows of X on the first ``count`` features of an order, for each count.

    They are those of `exact_neighbours` on the sorted chosen columns, as sets: within a row the order is arbitrary.

    Parameters
    ----------
    X, X_new, order, counts, k
        See `mlknn_path`.

    Yields
    ------
    near : int64 ndarray of shape (n, k)
        Neighbours of the rows of X; a row is not its own neighbour.
    near_new : int64 ndarray of shape (m, k)
        Neighbours of the rows of X_new.

    Notes
    -----
    Squared distances are sums over features, so each step adds one product of the new columns in place; the memory is
    O(n (n + m)). The set is certain if the k-th and the next distance differ by more than the rounding errors of these
    sums (bounded as in `exact_neighbours`), or if the tied rows are equal; otherwise exact distances decide.
    """
    n = len(X)
    rows = np.vstack([X, X_new])
    # columns in the order of the ranking; small norms mean small errors
    centred = (rows - X.mean(axis=0)).take(order[: counts[-1]], axis=1)
    norms, group = np.zeros(len(rows)), np.zeros(n, dtype=np.int64)
    # (n, n + m) |z|^2 - 2 x.z of training rows z and queries x; |x|^2 does not change the order of z. Fortran order
    # lets BLAS update it in place.
    partial = np.zeros((n, len(rows)), order="F")
    nearest = np.empty((len(rows), k), dtype=np.int64)
    done = 0
    for count in counts:
        part = centred[:, done:count]
        added = np.einsum("ij,ij->i", part, part)
        # the product of both is the increment: (n, new columns + 1) and (n + m, new columns + 1)
        left, right = np.column_stack([part[:n], added[:n]]), np.column_stack([-2.0 * part, np.ones(len(rows))])
        norms += added
        group = _equal_rows(group, X.take(order[done:count], axis=1))
        done = count
        slack = 16.0 * (count + 16) * np.finfo(np.float64).eps * (norms[:n].max() + norms)
        chosen, columns = np.sort(order[:count]), None
        for start in range(0, len(rows), _ROWS):
            block = slice(start, min(start + _ROWS, len(rows)))
            here = partial[:, block]
            dgemm(1.0, left.T, right[block].T, beta=1.0, c=here, trans_a=True, overwrite_c=True)
            own = np.arange(start, min(block.stop, n))
            partial[own, own] = np.inf
            owners, candidates = _candidates(here.T, slack[block], k)
            values = here.T[owners, candidates]
            nearest[block], unclear = _nearest_sets(owners, candidates, values, slack[block], k, group)
            if len(unclear):
                columns = X.take(chosen, axis=1) if columns is None else columns
                position = unclear + start
                queries = rows[np.ix_(position, chosen)]
                nearest[position] = _nearest(columns, queries, partial[:, position].T, slack[position], k)[0]
        yield nearest[:n].copy(), nearest[n:].copy()


def _equal_rows(group: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return group numbers, shape (n,), that are equal iff rows are equal in the old and in the new columns.

    Parameters
    ----------
    group : int ndarray of shape (n,)
        Group numbers of the rows on the old columns.
    part : ndarray of shape (n, c)
        The new columns.
    """
    shared = np.flatnonzero(np.bincount(group)[group] > 1)
    seen: dict[tuple[int, bytes], int] = {}
    numbers = np.arange(len(group), 2 * len(group))  # rows without an equal one stay unique
    for position, row in zip(shared.tolist(), np.ascontiguousarray(part[shared]) + 0.0, strict=True):  # -0 is 0
        numbers[position] = seen.setdefault((int(group[position]), row.tobytes()), len(seen))
    return numbers


def _nearest_sets(
    owners: np.ndarray, candidates: np.ndarray, values: np.ndarray, slack: np.ndarray, k: int, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of each query, shape (b, k), and the queries for which this is uncertain.

    Parameters
    ----------
    owners, candidates : int ndarray of shape (p,)
        Pairs of a query and a candidate, sorted by both.
    values : ndarray of shape (p,)
        Their rounded distances.
    slack : ndarray of shape (b,)
        Bound of the rounding errors of each query.
    k : int
    group : int ndarray of shape (n,)
        Group numbers of equal rows.

    Notes
    -----
    Of rows tied within the slack, those with the smallest numbers are taken. This is correct if they are equal.
    """
    size = np.bincount(owners, minlength=len(slack))
    first = np.cumsum(size) - size
    kth = _kth_smallest(values, owners, first, size, k)
    excess = values - kth[owners]
    surely, maybe = excess < -slack[owners], np.abs(excess) <= slack[owners]
    vacant = k - np.bincount(owners[surely], minlength=len(slack))
    tied = np.cumsum(maybe)
    position = tied - (tied[first] - maybe[first])[owners]  # 1 for the first tied candidate of a query
    nearest = candidates[surely | (maybe & (position <= vacant[owners]))].reshape(-1, k)
    whose, which = owners[maybe], group[candidates[maybe]]
    count = np.bincount(whose, minlength=len(slack))
    differ = np.zeros(len(slack), dtype=bool)
    differ[whose[which != which[(np.cumsum(count) - count)[whose]]]] = True
    return nearest, np.flatnonzero(differ & (count > vacant))


def _kth_smallest(values: np.ndarray, owners: np.ndarray, first: np.ndarray, size: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th smallest value of each query, shape (b,).

    The values of all queries are concatenated, with the offsets ``first`` and the lengths ``size``.
    """
    kth = np.empty(len(size))
    narrow = size <= _WIDTH * k  # these queries fit into one table with one partition
    table = np.full((len(size), _WIDTH * k), np.inf)
    inside = narrow[owners]
    table[owners[inside], (np.arange(len(values)) - first[owners])[inside]] = values[inside]
    kth[narrow] = np.partition(table[narrow], k - 1, axis=1)[:, k - 1]
    for query in np.flatnonzero(~narrow):
        kth[query] = np.partition(values[first[query] : first[query] + size[query]], k - 1)[k - 1]
    return kth
