# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Compact form of a fitted forest: splits and leaf probabilities in single precision, memory-mapped on request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np
from sklearn.tree._tree import NODE_DTYPE, Tree

NODE = np.dtype([("left", "<i4"), ("right", "<i4"), ("feature", "<i4"), ("threshold", "<f4")])
"""Record of a node, 16 bytes. A leaf has the children -1, and in ``feature`` the number of its row in the leaf table.
"""


@dataclass(frozen=True, eq=False)
class CompactForest:
    """Concatenated trees of a forest with one probability per leaf and label.

    A classification tree of scikit-learn stores 64 bytes and two doubles per label for every node, inner nodes
    included: with many labels about eight times as much. The splits decide the same: X has single precision, so
    ``x <= threshold`` does not change when the threshold is rounded down to single precision. Leaf probabilities are
    rounded to about 7 digits.

    Attributes
    ----------
    nodes : structured ndarray
        All nodes of all trees, of type `NODE`; children are numbered from the first node of their tree.
    starts, leaf_starts : ndarray of shape (n_trees + 1,)
        Offsets of each tree's nodes in ``nodes`` and of its leaves in ``leaves``.
    leaves : ndarray of shape (n_leaves, n_varied), float32
        Share of the training rows of the leaf that have each varied label.
    varied : ndarray of int
        Indices of the labels that had both classes in training.
    constant : ndarray of shape (q,), float64
        Scores of the other labels: their only class in training.
    n_features : int
        Number of columns d of X.
    """

    nodes: np.ndarray
    starts: np.ndarray
    leaves: np.ndarray
    leaf_starts: np.ndarray
    varied: np.ndarray
    constant: np.ndarray
    n_features: int

    @classmethod
    def of(cls, trees: Sequence[Tree], varied: np.ndarray, constant: np.ndarray, n_features: int) -> Self:
        """Return the compact form of scikit-learn trees.

        Parameters
        ----------
        trees : sequence of Tree
            Trees fitted on the ``varied`` labels, as 0/1 targets of a regression or as classes.
        varied, constant, n_features
            See the attributes of the class.
        """
        nodes, leaves = [], []
        for tree in trees:
            at_leaf = tree.children_left < 0  # (n_nodes,)
            packed = np.empty(tree.node_count, dtype=NODE)
            packed["left"], packed["right"] = tree.children_left, tree.children_right
            packed["feature"] = np.where(at_leaf, np.cumsum(at_leaf) - 1, tree.feature)
            packed["threshold"] = float32_below(tree.threshold)
            nodes.append(packed)
            # value is (n_nodes, n_varied, classes): the last class is 1; a regression has the mean of 0/1 instead
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
        """Number of trees; 0 if no label varied in training."""
        return len(self.starts) - 1

    def tree(self, index: int, n_classes: Sequence[int] = (1,)) -> Tree:
        """Return one tree as a scikit-learn ``Tree``, whose ``apply`` is compiled; its leaf values are zero.

        Parameters
        ----------
        index : int
            Number of the tree.
        n_classes : sequence of int
            Classes per output, which set the shape of the array of leaf values.
        """
        compact = self.nodes[self.starts[index] : self.starts[index + 1]]
        nodes = np.zeros(len(compact), dtype=NODE_DTYPE)
        nodes["left_child"], nodes["right_child"] = compact["left"], compact["right"]
        nodes["feature"], nodes["threshold"] = compact["feature"], compact["threshold"]
        tree = Tree(self.n_features, np.asarray(n_classes, dtype=np.intp), len(n_classes))
        values = np.zeros((len(nodes), len(n_classes), max(n_classes)))
        tree.__setstate__({"max_depth": 0, "node_count": len(nodes), "nodes": nodes, "values": values})
        return tree

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the mean over the trees of the leaf probabilities, shape (n, q).

        Parameters
        ----------
        X : ndarray of shape (n, d), float32, C-contiguous
            See `multilab.methods.forests._growing.single_precision`.

        Notes
        -----
        Probabilities are added up in double precision in the order of the trees, so the result is deterministic.
        """
        total = np.zeros((len(X), len(self.varied)))  # (n, n_varied)
        for index in range(self.n_trees):
            at = self.tree(index).apply(X)  # (n,) nodes, numbered within the tree
            rows = self.nodes["feature"][self.starts[index] : self.starts[index + 1]][at]
            total += self.leaves[self.leaf_starts[index] : self.leaf_starts[index + 1]][rows]
        scores = np.tile(self.constant, (len(X), 1))
        scores[:, self.varied] = total / max(self.n_trees, 1)
        return scores

    def on_disk(self) -> Self:
        """Return the same forest with its two large arrays memory-mapped from unnamed temporary files."""
        return replace(self, nodes=_mapped(self.nodes), leaves=_mapped(self.leaves))

    def __getstate__(self) -> dict[str, Any]:
        # the file of a memory map has no name by which another process could open it: pickle the array
        return {
            name: np.asarray(value) if isinstance(value, np.ndarray) else value for name, value in vars(self).items()
        }


def float32_below(values: np.ndarray) -> np.ndarray:
    """Return the largest float32 numbers that do not exceed the values: ``x <= value`` stays the same for float32 x."""
    nearest = np.asarray(values).astype(np.float32)
    return np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)


def _starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the offsets of consecutive arrays and, last, their total length, shape (len(parts) + 1,)."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _mapped(array: np.ndarray) -> np.ndarray:
    """Return a read-only memory map of the array in a temporary file; an empty array is returned unchanged."""
    if not array.size:
        return array
    with TemporaryFile(prefix="multilab-forest-") as stream:  # unnamed: the space is freed with the map
        stream.write(np.ascontiguousarray(array).data)
        stream.flush()
        return np.memmap(stream, dtype=array.dtype, mode="r", shape=array.shape)
