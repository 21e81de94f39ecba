"""A fitted forest as it is kept: leaves and splits only, in single precision, on disk where it is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from sklearn.tree._tree import NODE_DTYPE, Tree

__all__ = ["NODE", "CompactForest", "float32_below"]

NODE = np.dtype([("left", "<i4"), ("right", "<i4"), ("feature", "<i4"), ("threshold", "<f4")])
"""A split, 16 bytes. A leaf has no children (-1), and its row of the table of leaves in the place of the feature."""


@dataclass(frozen=True, eq=False)
class CompactForest:
    """The trees of a forest one after another, with one probability per leaf and label.

    A classification tree of scikit-learn keeps two doubles per label for every node, leaf or not, and 64 bytes besides:
    for many labels eight times as much. Splits are the same: X is single precision, so a threshold rounded down to it
    sends every value the same way. Leaf probabilities lose what lies beyond 7 digits.

    Attributes
    ----------
    nodes : structured ndarray
        All nodes of all trees, of type `NODE`; children count from the tree's first node.
    starts, leaf_starts : ndarray of shape (trees + 1,)
        Where each tree's nodes, and its leaves, begin.
    leaves : ndarray of shape (leaves, varied labels), float32
        Share of training rows with the label.
    varied : ndarray of int
        Labels that had both classes in training.
    constant : ndarray of shape (q,), float64
        The value of the others.
    n_features : int
    """

    nodes: np.ndarray
    starts: np.ndarray
    leaves: np.ndarray
    leaf_starts: np.ndarray
    varied: np.ndarray
    constant: np.ndarray
    n_features: int

    @classmethod
    def of(cls, trees: Sequence[Tree], varied: np.ndarray, constant: np.ndarray, n_features: int) -> CompactForest:
        """Take what is needed of scikit-learn's trees, fitted on the ``varied`` labels as 0/1 targets or as classes."""
        nodes, leaves = [], []
        for tree in trees:
            at_leaf = tree.children_left < 0
            packed = np.empty(tree.node_count, dtype=NODE)
            packed["left"], packed["right"] = tree.children_left, tree.children_right
            packed["feature"] = np.where(at_leaf, np.cumsum(at_leaf) - 1, tree.feature)
            packed["threshold"] = float32_below(tree.threshold)
            nodes.append(packed)
            leaves.append(tree.value[at_leaf, :, -1].astype(np.float32))
        return cls(
            np.concatenate(nodes) if nodes else np.empty(0, dtype=NODE),
            _starts(nodes),
            np.concatenate(leaves) if leaves else np.empty((0, 0), dtype=np.float32),
            _starts(leaves),
            varied,
            constant,
            n_features,
        )

    @property
    def n_trees(self) -> int:
        """Number of trees; 0 where no label varied."""
        return len(self.starts) - 1

    def tree(self, place: int, n_classes: Sequence[int] = (1,)) -> Tree:
        """Return one tree as scikit-learn's object, which finds leaves fast; its leaf values are zero.

        ``n_classes`` are the classes per output that it has room for.
        """
        compact = self.nodes[self.starts[place] : self.starts[place + 1]]
        nodes = np.zeros(len(compact), dtype=NODE_DTYPE)
        nodes["left_child"], nodes["right_child"] = compact["left"], compact["right"]
        nodes["feature"], nodes["threshold"] = compact["feature"], compact["threshold"]
        tree = Tree(self.n_features, np.asarray(n_classes, dtype=np.intp), len(n_classes))
        values = np.zeros((len(nodes), len(n_classes), max(n_classes)))
        tree.__setstate__({"max_depth": 0, "node_count": len(nodes), "nodes": nodes, "values": values})
        return tree

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the mean leaf probability, shape (n, q), of a C-contiguous float32 X; summed in the trees' order."""
        total = np.zeros((len(X), len(self.varied)))
        for place in range(self.n_trees):
            at = self.tree(place).apply(X)
            rows = self.nodes["feature"][self.starts[place] : self.starts[place + 1]][at]
            total += self.leaves[self.leaf_starts[place] : self.leaf_starts[place + 1]][rows]
        scores = np.tile(self.constant, (len(X), 1))
        scores[:, self.varied] = total / max(self.n_trees, 1)
        return scores

    def on_disk(self) -> CompactForest:
        """Return the same forest with its two large arrays mapped from a file that goes with them."""
        return replace(self, nodes=_mapped(self.nodes), leaves=_mapped(self.leaves))

    def __getstate__(self) -> dict[str, Any]:
        # a map of a file is pickled as the plain array
        return {
            name: np.asarray(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()
        }


def float32_below(values: np.ndarray) -> np.ndarray:
    """Return the largest float32 numbers that are not above the values: ``x <= value`` is the same for float32 x."""
    nearest = np.asarray(values).astype(np.float32)
    return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)


def _starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _mapped(array: np.ndarray) -> np.ndarray:
    if not array.size:
        return array
    with TemporaryFile(prefix="multilab-forest-") as stream:  # has no name: the space is free when the map is gone
        stream.write(np.ascontiguousarray(array).data)
        stream.flush()
        return np.memmap(stream, dtype=array.dtype, mode="r", shape=array.shape)
