# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Fitted regression forest of scikit-learn as five arrays, for predictions without an overhead per tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

_BLOCK = 2**20  # numbers in the tables of one block of rows: 8 MiB


@dataclass(frozen=True, eq=False)
class PackedForest:
    """Trees of one forest one after another, all walked at the same time.

    Attributes
    ----------
    roots : ndarray of shape (n_trees,)
        Node number of each root.
    left, right : ndarray of shape (n_nodes,)
        Node numbers of the children; a leaf is its own child.
    feature, threshold : ndarray of shape (n_nodes,)
        A row goes left where its feature, as float32, is at most the threshold.
    value : ndarray of shape (n_nodes, q)
    depth : int
        Steps from a root to the deepest leaf.
    """

    roots: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    depth: int

    @classmethod
    def of(cls, forest: ExtraTreesRegressor | RandomForestRegressor) -> PackedForest:
        """Return the arrays of a fitted forest."""
        trees = [one.tree_ for one in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        nodes = np.arange(sum(tree.node_count for tree in trees))
        children = [
            np.concatenate([getattr(t, side) + (t.children_left >= 0) * r for t, r in zip(trees, roots, strict=True)])
            for side in ("children_left", "children_right")
        ]
        left, right = (np.where(side < 0, nodes, side) for side in children)
        feature = np.maximum(np.concatenate([tree.feature for tree in trees]), 0)
        threshold = np.concatenate([tree.threshold for tree in trees])
        value = np.concatenate([tree.value[:, :, 0] for tree in trees])
        return cls(roots, left, right, feature, threshold, value, max(tree.max_depth for tree in trees))

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the trees' values, shape (n, q), of X of shape (n, d), dense or CSR."""
        rows = max(1, _BLOCK // max(X.shape[1], len(self.roots)))
        blocks = [self._predict(X[start : start + rows]) for start in range(0, X.shape[0], rows)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.value.shape[1]))

    def _predict(self, X: Any) -> np.ndarray:
        dense = X.toarray() if sp.issparse(X) else X
        cells = np.ascontiguousarray(dense, dtype=np.float32)
        first = np.arange(len(cells)) * cells.shape[1]
        cells = cells.ravel()
        node = np.repeat(self.roots[:, None], len(first), axis=1)  # (n_trees, n)
        for _ in range(self.depth):
            lower = cells[first + self.feature[node]] <= self.threshold[node]
            node = np.where(lower, self.left[node], self.right[node])
        total = np.zeros((len(first), self.value.shape[1]))
        if len(first) == 1:
            return self.value[node[:, 0]].mean(axis=0, keepdims=True)
        for leaves in node:
            total += self.value[leaves]
        return total / len(self.roots)
