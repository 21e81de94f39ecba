# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Nearest hits and misses: for each row and label the nearest other row with the label and without it."""

from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.neighbours._search import _exact_distances, _lower_bounds, exact_neighbours
from multilab.methods.selection._manhattan import distance_blocks

Metric = Literal["euclidean", "manhattan"]
_LISTED = 16  # length of the shared neighbour lists; they nearly always contain the more frequent class


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
    taken (the LWMF paper leaves ties open). For "euclidean", a list of nearest neighbours in this order, computed once
    for all labels, gives the result wherever it contains the class. The remaining cases, mostly rows far from the few
    rows of a rare label, are searched in blocks of one distance matrix, also shared by all labels.
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
                present = np.isfinite(away)
                indices[kind, rows, label] = np.where(present, near, -1)
                distances[kind, rows, label] = np.where(present, away, np.nan)
    return indices, distances


def _classes(Y: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return (label, class 0 or 1, rows of the class) for all classes that are not empty."""
    both = [(label, kind, np.flatnonzero(Y[:, label] == kind)) for label in range(Y.shape[1]) for kind in (0, 1)]
    return [part for part in both if len(part[2])]


def _from_lists(X: Any, Y: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> None:
    """Fill in, in place, the results that the 16 nearest neighbours of each row contain."""
    near, away = exact_neighbours(X, min(_LISTED, len(Y) - 1))
    every = np.arange(len(Y))
    for label, kind, _ in _classes(Y):
        of_class = Y[:, label][near] == kind  # (n, 16); argmax is the first, so the nearest, of the class
        first = of_class.argmax(axis=1)
        present = of_class[every, first]
        indices[kind, present, label] = near[every, first][present]
        distances[kind, present, label] = away[every, first][present]


def _from_bounds(X: Any, Y: np.ndarray, indices: np.ndarray, distances: np.ndarray) -> None:
    """Fill in, in place, the missing results: error bounds choose candidates of a class, exact distances decide."""
    classes = [(label, kind, members) for label, kind, members in _classes(Y) if (indices[kind, :, label] < 0).any()]
    for start, lower, slack in _lower_bounds(X, X) if classes else ():
        rows = slice(start, start + len(lower))
        np.fill_diagonal(lower[:, start:], np.inf)
        chosen = []  # (number of the class, row in the block, candidate) of all classes
        for class_number, (label, kind, members) in enumerate(classes):
            todo = np.flatnonzero(indices[kind, rows, label] < 0)
            part = lower[np.ix_(todo, members)]
            line, column = np.nonzero(part <= (part.min(axis=1) + slack[todo])[:, None])
            candidates = members[column]
            other = todo[line] + start != candidates  # the only row of its class has no other
            chosen.append((np.full(other.sum(), class_number), todo[line][other], candidates[other]))
        which, owners, candidates = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
        # labels share candidates: each exact distance is computed once
        pairs, number = np.unique(owners * len(Y) + candidates, return_inverse=True)
        exact = _exact_distances(X, X[rows], *np.divmod(pairs, len(Y)))[number]
        order = np.lexsort((candidates, exact, owners, which))
        first = np.unique(which[order] * len(Y) + owners[order], return_index=True)[1]
        for one in order[first]:
            label, kind, _ = classes[which[one]]
            indices[kind, owners[one] + start, label] = candidates[one]
            distances[kind, owners[one] + start, label] = exact[one]
