"""Distances of rows for the selectors: per feature, Manhattan neighbours, and nearest hits and misses."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist, squareform

from multilab.methods.base import MethodError
from multilab.methods.neighbours._search import _candidates, _exact_distances, _first, _nearest, _squared_distances

_ENTRIES = 2**20  # differences or distances per block: 8 MiB
_SQUARE = 2**23  # distances of all pairs of rows that are kept at once: 64 MiB, of 2896 rows


def feature_scale(X: Any) -> np.ndarray:
    """Return 1 / (max - min) of each feature, shape (d,): the factor of eq. (10) of the LWMF paper.

    It is 0 for a constant feature, where eq. (10) divides by 0.
    """
    if sp.issparse(X):
        span = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
    else:
        span = np.ptp(X, axis=0)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)


def scaled(X: Any) -> Any:
    """Return X, shape (n, d), with each feature divided by its range; constant features become 0."""
    scale = feature_scale(X)
    return sp.csr_array(X @ sp.diags_array(scale)) if sp.issparse(X) else X * scale


def added_differences(X: Any, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum over pairs of rows of |x_first - x_second|, per feature.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    first, second : ndarray of shape (p,)
        Row numbers of the pairs.
    weights : ndarray of shape (p,) or (p, c)
        Weights of the pairs; c columns give c sums.

    Returns
    -------
    ndarray of shape (d,) or (c, d)
    """
    total = np.zeros((*weights.shape[1:], X.shape[1]))
    step = max(1, _ENTRIES // X.shape[1])
    for start in range(0, len(first), step):
        pairs = slice(start, start + step)
        differences = X[first[pairs]] - X[second[pairs]]
        if sp.issparse(differences):
            total += (abs(differences).T @ weights[pairs]).T
        else:
            total += weights[pairs].T @ np.abs(differences, out=differences)
    return total


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
    # each distance once, not in both directions, where all of them fit into memory; the values are the same
    every = squareform(pdist(dense, "cityblock")) if len(dense) ** 2 <= _SQUARE else None
    for start in range(0, len(dense), step):
        rows = slice(start, min(start + step, len(dense)))
        distances = cdist(dense[rows], dense, "cityblock") if every is None else every[rows]
        np.fill_diagonal(distances[:, start:], np.inf)
        yield rows, distances


def smallest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column numbers of the k smallest finite entries of each row, in ascending order of distance.

    All finite entries of a row are returned if there are fewer; ties go to the smaller column number.
    """
    k = min(k, distances.shape[1])
    rows, columns = _candidates(distances, np.zeros(len(distances)), k)
    values = distances[rows, columns]
    finite = np.isfinite(values)
    rows, columns = rows[finite], columns[finite]
    order = np.lexsort((values[finite], rows))  # stable: ties stay in the order of the columns
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    chosen = order[rank < k]
    return rows[chosen], columns[chosen]


Metric = Literal["euclidean", "manhattan"]
_LISTED = 8  # length of the shared neighbour lists; they nearly always contain the more frequent class


def nearest_of_classes(X: Any, Y: np.ndarray, metric: Metric = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other row of each class of each label, for all rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Finite float64 values, n >= 2.
    Y : uint8 ndarray of shape (n, q)
    metric : {"euclidean", "manhattan"}

    Returns
    -------
    indices : int64 ndarray of shape (2, n, q)
        Row numbers of the nearest row without the label (class 0) and with it (class 1); -1 if there is none.
    distances : float64 ndarray of shape (2, n, q)
        Their distances; NaN if there is none.

    Raises
    ------
    MethodError
        If the metric is unknown.

    Notes
    -----
    Distances are those of ``scipy.spatial.distance.cdist``; of equally near rows the one with the smallest number is
    taken (the LWMF paper leaves ties open). For "euclidean", a list of nearest neighbours in this order, shared by all
    labels, gives the result wherever it contains the class. The remaining cases, mostly rows far from the few rows of
    a rare label, are searched in the same block of the distance matrix.
    """
    if metric not in ("euclidean", "manhattan"):
        raise MethodError(f"nn_metric={metric!r}: give 'euclidean' or 'manhattan'")
    n, q = Y.shape
    indices = np.full((2, n, q), -1, dtype=np.int64)
    distances = np.full((2, n, q), np.nan)
    if metric == "euclidean":
        classes = _classes(Y)
        for start, squared, slack in _squared_distances(X, X):
            rows = slice(start, start + len(squared))
            np.fill_diagonal(squared[:, start:], np.inf)
            near, away = _nearest(X, X[rows], squared, slack, min(_LISTED, n - 1))
            _from_lists(Y, near, away, indices[:, rows], distances[:, rows])
            _from_all_rows(X, start, squared, slack, classes, indices[:, rows], distances[:, rows])
    else:
        for rows, block in distance_blocks(X):
            for label, kind, members in _classes(Y):
                near = members[block[:, members].argmin(axis=1)]
                away = block[np.arange(len(near)), near]
                present = np.isfinite(away)
                indices[kind, rows, label] = np.where(present, near, -1)
                distances[kind, rows, label] = np.where(present, away, np.nan)
    return indices, distances


def _classes(Y: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return (label, class 0 or 1, rows of the class) for all classes that are not empty."""
    both = [(label, kind, np.flatnonzero(Y[:, label] == kind)) for label in range(Y.shape[1]) for kind in (0, 1)]
    return [part for part in both if len(part[2])]


def _from_lists(Y: np.ndarray, near: np.ndarray, away: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> None:
    """Fill in, in place, the results of a block of rows that the lists of their nearest neighbours contain.

    Parameters
    ----------
    Y : uint8 ndarray of shape (n, q)
    near, away : ndarray of shape (b, k)
        The neighbours of the rows, nearest first, and their distances.
    indices, distances : ndarray of shape (2, b, q)
        See `nearest_of_classes`.
    """
    labels = Y[near]  # (b, k, q)
    for kind in (0, 1):
        first = (labels == kind).argmax(axis=1)  # the first, so the nearest, of the class; 0 if there is none
        row, label = np.nonzero(np.take_along_axis(labels, first[:, None], axis=1)[:, 0] == kind)
        indices[kind, row, label] = near[row, first[row, label]]
        distances[kind, row, label] = away[row, first[row, label]]


def _from_all_rows(
    X: Any,
    start: int,
    squared: np.ndarray,
    slack: np.ndarray,
    classes: list[tuple[int, int, np.ndarray]],
    indices: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Fill in, in place, the missing results of a block: rounded distances choose candidates, exact ones decide.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    start, squared, slack
        See `_squared_distances`; infinite between a row and itself.
    classes
        See `_classes`.
    indices, distances : ndarray of shape (2, b, q)
        See `nearest_of_classes`; an index below 0 is missing.
    """
    b, n = squared.shape
    chosen = [(np.empty(0, dtype=np.int64),) * 3]  # (number of the class, row in the block, candidate)
    for class_number, (label, kind, members) in enumerate(classes):
        todo = np.flatnonzero(indices[kind, :, label] < 0)
        if len(todo):
            part = squared[np.ix_(todo, members)]
            line, column = np.nonzero(part <= (part.min(axis=1) + slack[todo])[:, None])
            candidates = members[column]
            other = todo[line] + start != candidates  # the only row of its class has no other
            chosen.append((np.full(other.sum(), class_number), todo[line][other], candidates[other]))
    which, owners, candidates = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    # labels share candidates: each exact distance is computed once
    pairs, number = np.unique(owners * n + candidates, return_inverse=True)
    exact = _exact_distances(X, X[start : start + b], *np.divmod(pairs, n))[number]
    best = _first(which * b + owners, exact, 1)[:, 0]
    label, kind = (np.array([one[side] for one in classes])[which[best]] for side in (0, 1))
    indices[kind, owners[best], label] = candidates[best]
    distances[kind, owners[best], label] = exact[best]
