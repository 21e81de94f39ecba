"""The paths of many trees at once: what a row must fulfil to reach a leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.tree._tree import Tree

__all__ = ["ABOVE", "BELOW", "TreeStack"]

BELOW, ABOVE = 0, 1
"""The sides of a threshold: ``x <= t`` (left) and ``x > t`` (right)."""


@dataclass(frozen=True, eq=False)
class TreeStack:
    """Trees one after another, their nodes numbered through.

    Attributes
    ----------
    parent : ndarray of int
        -1 for a root.
    side : ndarray of int
        `BELOW` or `ABOVE`: which child of its parent a node is.
    feature, threshold : ndarray
        Of a split.
    leaves : ndarray of int
        The nodes without children.
    sizes : ndarray of float
        Training rows in each leaf, by their weights.
    """

    parent: np.ndarray
    side: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    leaves: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, trees: Sequence[Tree], columns: Sequence[np.ndarray] | None = None) -> TreeStack:
        """Stack scikit-learn's trees; ``columns[i][f]`` is what tree i's feature f is to be called."""
        counts = [tree.node_count for tree in trees]
        first = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
        left, right = (np.concatenate([getattr(tree, name) for tree in trees]) for name in _CHILDREN)
        split = np.flatnonzero(left >= 0)
        parent, side = np.full(len(left), -1), np.zeros(len(left), dtype=np.int8)
        parent[left[split] + first[split]] = split
        parent[right[split] + first[split]] = split
        side[right[split] + first[split]] = ABOVE
        features = [tree.feature for tree in trees]
        if columns is not None:  # a leaf has feature -2, and never uses what it gets here
            features = [named[np.maximum(own, 0)] for own, named in zip(features, columns, strict=True)]
        weights = np.concatenate([tree.weighted_n_node_samples for tree in trees])
        leaves = np.flatnonzero(left < 0)
        thresholds = np.concatenate([tree.threshold for tree in trees])
        return cls(parent, side, np.concatenate(features), thresholds, leaves, weights[leaves])

    def walk_up(self, leaves: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Go from the leaves to their roots in step; yield per step who still goes, the split above, and the side."""
        who, at = np.arange(len(leaves)), leaves
        while True:
            above = self.parent[at]
            going = above >= 0
            if not going.any():
                return
            who, at, above = who[going], at[going], above[going]
            yield who, above, self.side[at]
            at = above

    def boxes(self, leaves: np.ndarray, n_columns: int) -> np.ndarray:
        """Return the tightest threshold of each leaf per side and column, NaN where there is none.

        Returns
        -------
        ndarray of shape (leaves, 2, n_columns)
            A row reaches the leaf iff ``x <= boxes[:, BELOW]`` and ``x > boxes[:, ABOVE]`` wherever these are numbers.
        """
        found = np.full((len(leaves), 2, n_columns), np.nan)
        for who, split, side in self.walk_up(leaves):
            place = who, side, self.feature[split]  # a leaf is there once per step, so nothing is written twice
            limit, known = self.threshold[split], found[place]
            found[place] = np.where(side == ABOVE, np.fmax(known, limit), np.fmin(known, limit))
        return found


_CHILDREN = ("children_left", "children_right")
