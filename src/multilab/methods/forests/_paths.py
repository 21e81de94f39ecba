# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Decision paths of many trees at once: the conditions under which a row reaches a leaf."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.tree._tree import Tree

BELOW, ABOVE = 0, 1
"""The sides of a threshold: ``x <= t`` (left) and ``x > t`` (right)."""


@dataclass(frozen=True, eq=False)
class TreeStack:
    """Concatenated trees with nodes numbered consecutively.

    Attributes
    ----------
    parent : ndarray of shape (n_nodes,), int
        Parent of each node, -1 for a root.
    side : ndarray of shape (n_nodes,), int
        `BELOW` for a left child, `ABOVE` for a right child.
    feature, threshold : ndarray of shape (n_nodes,)
        Column and threshold of a split; without meaning for a leaf.
    leaves : ndarray of shape (n_leaves,), int
        Nodes without children.
    sizes : ndarray of shape (n_leaves,), float
        Weighted number of training rows in each leaf.
    """

    parent: np.ndarray
    side: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    leaves: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, trees: Sequence[Tree], columns: Sequence[np.ndarray] | None = None) -> Self:
        """Return the stack of scikit-learn trees.

        Parameters
        ----------
        trees : sequence of Tree
        columns : sequence of ndarray, optional
            ``columns[i][f]`` is the number that feature f of tree i gets in the stack; unchanged when None.
        """
        counts = [tree.node_count for tree in trees]
        first = np.repeat(np.cumsum([0, *counts[:-1]]), counts)  # (n_nodes,) number of the root of each node's tree
        left, right = (np.concatenate([getattr(tree, name) for tree in trees]) for name in _CHILDREN)
        split = np.flatnonzero(left >= 0)
        parent, side = np.full(len(left), -1), np.zeros(len(left), dtype=np.int8)
        parent[left[split] + first[split]] = split
        parent[right[split] + first[split]] = split
        side[right[split] + first[split]] = ABOVE
        features = [tree.feature for tree in trees]
        if columns is not None:  # a leaf has feature -2, and its entry is never used
            features = [named[np.maximum(own, 0)] for own, named in zip(features, columns, strict=True)]
        weights = np.concatenate([tree.weighted_n_node_samples for tree in trees])
        leaves = np.flatnonzero(left < 0)
        thresholds = np.concatenate([tree.threshold for tree in trees])
        return cls(parent, side, np.concatenate(features), thresholds, leaves, weights[leaves])

    def walk_up(self, leaves: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Walk from the given leaves to their roots, all paths in step.

        Yields
        ------
        who : ndarray of int
            Positions in ``leaves`` of the paths that have not reached their root.
        above : ndarray of int
            Split above the current node of each path.
        side : ndarray of int
            `BELOW` or `ABOVE`: side of that split on which the path lies.
        """
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
        """Return the tightest threshold of each leaf per side and column, NaN where its path has none.

        Parameters
        ----------
        leaves : ndarray of shape (n_leaves,), int
        n_columns : int

        Returns
        -------
        ndarray of shape (n_leaves, 2, n_columns)
            A row reaches the leaf iff ``x <= boxes[:, BELOW]`` and ``x > boxes[:, ABOVE]`` wherever these are numbers.
        """
        limits = np.full((len(leaves), 2, n_columns), np.nan)
        for who, split, side in self.walk_up(leaves):
            position = who, side, self.feature[split]  # a leaf occurs once per step: no duplicate index
            limit, known = self.threshold[split], limits[position]
            limits[position] = np.where(side == ABOVE, np.fmax(known, limit), np.fmin(known, limit))
        return limits


_CHILDREN = ("children_left", "children_right")
