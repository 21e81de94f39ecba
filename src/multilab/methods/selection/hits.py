"""For every row and label the nearest row with the label and the nearest one without it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.neighbours.search import _exact_distances, _lower_bounds, exact_neighbours
from multilab.methods.selection.manhattan import distance_blocks

__all__ = ["Metric", "nearest_of_classes"]

Metric = Literal["euclidean", "manhattan"]
_LISTED = 16  # neighbours that are looked through first; all of the commoner class is found there, nearly


def nearest_of_classes(X: Any, Y: np.ndarray, metric: Metric = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other row of each class of each label, for every row.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Finite float64 values, n >= 2.
    Y : uint8 ndarray of shape (n, q)
    metric : {"euclidean", "manhattan"}

    Returns
    -------
    indices : int64 ndarray of shape (2, n, q)
        First for the rows without the label (class 0), then for those with it (class 1); -1 where there is none.
    distances : float64 ndarray of shape (2, n, q)
        NaN where there is none.

    Notes
    -----
    Distances are those of ``scipy.spatial.distance.cdist``; of equally near rows the one with the smallest number is
    taken. A list of nearest neighbours in exactly this order, shared by all labels, answers wherever it holds
    the class; for the others (mostly rows far from the few of a rare label) the columns of the class are searched in
    one distance matrix, also shared by all labels, of which only a block is held.
    """
    if metric not in ("euclidean", "manhattan"):
        raise MethodError(f"nn_metric={metric!r}: give 'euclidean' or 'manhattan'")
    n, q = Y.shape
    indices = np.full((2, n, q), -1, dtype=np.int64)
    distances = np.full((2, n, q), np.nan)
    if metric == "euclidean":
        _from_lists(X, Y, indices, distances)
        _from_bounds(X, Y, indices, distances)
    else:
        for rows, block in distance_blocks(X):
            for label, kind, members in _classes(Y):
                near = members[block[:, members].argmin(axis=1)]
                away = block[np.arange(len(near)), near]
                found = np.isfinite(away)
                indices[kind, rows, label] = np.where(found, near, -1)
                distances[kind, rows, label] = np.where(found, away, np.nan)
    return indices, distances


def _classes(Y: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return (label, 0 or 1, its rows) of the classes that are not empty."""
    both = [(label, kind, np.flatnonzero(Y[:, label] == kind)) for label in range(Y.shape[1]) for kind in (0, 1)]
    return [found for found in both if len(found[2])]


def _from_lists(X: Any, Y: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> None:
    """Fill in what the nearest neighbours of each row tell."""
    near, away = exact_neighbours(X, min(_LISTED, len(Y) - 1))
    every = np.arange(len(Y))
    for label, kind, _ in _classes(Y):
        of_class = Y[:, label][near] == kind
        place = of_class.argmax(axis=1)
        found = of_class[every, place]
        indices[kind, found, label] = near[every, place][found]
        distances[kind, found, label] = away[every, place][found]


def _from_bounds(X: Any, Y: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> None:
    """Fill in what is missing: rounded distances choose candidates in the columns of a class, exact ones decide."""
    classes = [(label, kind, members) for label, kind, members in _classes(Y) if (indices[kind, :, label] < 0).any()]
    for start, lower, slack in _lower_bounds(X, X) if classes else ():
        rows = slice(start, start + len(lower))
        np.fill_diagonal(lower[:, start:], np.inf)
        found = []
        for place, (label, kind, members) in enumerate(classes):
            todo = np.flatnonzero(indices[kind, rows, label] < 0)
            part = lower[np.ix_(todo, members)]
            line, column = np.nonzero(part <= (part.min(axis=1) + slack[todo])[:, None])
            candidates = members[column]
            other = todo[line] + start != candidates  # a lone member of its class has no other
            found.append((np.full(other.sum(), place), todo[line][other], candidates[other]))
        which, owners, candidates = (np.concatenate(parts) for parts in zip(*found, strict=True))
        pairs, number = np.unique(owners * len(Y) + candidates, return_inverse=True)
        exact = _exact_distances(X, X[rows], *np.divmod(pairs, len(Y)))[number]
        order = np.lexsort((candidates, exact, owners, which))
        first = np.unique(which[order] * len(Y) + owners[order], return_index=True)[1]
        for one in order[first]:
            label, kind, _ = classes[which[one]]
            indices[kind, owners[one] + start, label] = candidates[one]
            distances[kind, owners[one] + start, label] = exact[one]
