"""Forest of predictive clustering trees: grown with the trees of scikit-learn, kept in a compact form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Any, Literal, Self

import numpy as np
from joblib import delayed
from scipy import sparse as sp
from sklearn import config_context
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree

from multilab.core.parallel import parallel, workers

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
            See `multilab.methods.forests.compact_forest.single_precision`.

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


Kind = Literal["random", "extra"]
_KINDS = {"random": DecisionTreeRegressor, "extra": ExtraTreeRegressor}
_MOST = np.iinfo(np.int32).max  # the seeds of the trees of a scikit-learn forest are below


def grow_forest(
    kind: Kind,
    X: np.ndarray,
    Y: np.ndarray,
    seed: int,
    n_jobs: int | None = None,
    sample_weight: np.ndarray | None = None,
    **settings: Any,
) -> tuple[CompactForest, np.ndarray]:
    """Grow a forest of predictive clustering trees on all labels.

    A predictive clustering tree chooses the split that reduces the sum of the labels' variances most. The regression
    trees of scikit-learn reduce the mean of the outputs' variances, which is the same criterion up to the factor 1 / q.
    Classification trees would choose the same splits (the Gini index of a 0/1 output is twice its variance) but take up
    to three times as long with many labels. A label with one class changes no split: it is left out of the trees and
    its score is that class.

    The trees are those of `RandomForestRegressor` and `ExtraTreesRegressor` with the same seed, bit by bit, without
    what these do around each tree, which on a hundred rows takes longer than the tree.

    Parameters
    ----------
    kind : {"random", "extra"}
        "random": bootstrap samples and the best threshold per candidate feature. "extra": all rows and one random
        threshold per candidate feature.
    X : ndarray of shape (n, d), float32, C-contiguous
    Y : ndarray of shape (n, q), 0/1
    seed : int
        Seed of the bootstrap samples and of the trees.
    n_jobs : int, optional
        Number of threads that grow trees; does not change the result.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows, positive; bootstrap samples are drawn with probabilities in proportion to them. Weights
        that are all 1 are none.
    **settings
        ``n_estimators``, and arguments of the trees. Unless they set ``max_features``, each split tries the square root
        of the number of features.

    Returns
    -------
    forest : CompactForest
    importances : ndarray of shape (d,)
        Impurity-based importances of the features; they sum to 1, or are all 0 if no tree has a split.
    """
    if sample_weight is not None and (sample_weight == 1).all():
        sample_weight = None
    varied = np.flatnonzero(Y.min(axis=0) != Y.max(axis=0))
    constant = Y[0].astype(np.float64)
    if not len(varied):
        return CompactForest.of((), varied, constant, X.shape[1]), np.zeros(X.shape[1])
    settings = {"max_features": "sqrt", **settings}
    seeds = np.random.RandomState(seed).randint(_MOST, size=settings.pop("n_estimators", 100))
    parts = np.array_split(seeds, min(len(seeds), workers(n_jobs)))
    grown = parallel(len(parts), prefer="threads")(
        delayed(fit_trees)(_KINDS[kind](**settings), _samples(kind, X, sample_weight, part), Y[:, varied])
        for part in parts
    )
    trees = [tree for part in grown for tree in part]
    return CompactForest.of(trees, varied, constant, X.shape[1]), _importances(trees, X.shape[1])


def fit_trees(
    tree: DecisionTreeRegressor, samples: Iterable[tuple[np.ndarray, np.ndarray | None, int]], Y: np.ndarray
) -> list[Tree]:
    """Fit one estimator to several samples and return the fitted trees; check its arguments once, and X never.

    Parameters
    ----------
    tree : DecisionTreeRegressor
        Unfitted; its ``random_state`` is replaced.
    samples : iterable of (X, weight, seed)
        X of shape (n, d), float32 and C-contiguous, weights of shape (n,) or None, and the seed of the tree.
    Y : ndarray of shape (n, q)
    """
    random = np.random.RandomState(0)  # one for all trees: making one takes longer than growing a small tree
    tree.set_params(random_state=random)
    targets, trees = np.ascontiguousarray(Y, dtype=np.float64), []  # type: ignore[var-annotated]
    for X, weight, seed in samples:
        random.seed(seed)
        with config_context(skip_parameter_validation=bool(trees), assume_finite=True):
            trees.append(tree.fit(X, targets, weight, check_input=False).tree_)
    return trees


def _samples(
    kind: Kind, X: np.ndarray, weight: np.ndarray | None, seeds: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray | None, int]]:
    """Yield the sample of each tree of a forest: rows with how often they were drawn, or all rows."""
    random, n = np.random.RandomState(0), len(X)
    share = None if weight is None else weight / weight.sum()
    for seed in seeds:
        if kind == "random":
            random.seed(seed)
            drawn = random.randint(0, n, n) if share is None else random.choice(n, n, p=share)
            yield X, np.bincount(drawn, minlength=n).astype(np.float64), seed
        else:
            yield X, weight, seed


def _importances(trees: list[Tree], n_features: int) -> np.ndarray:
    """Return the mean of the importances of the trees that have a split, with the sum 1."""
    each = [tree.compute_feature_importances() for tree in trees if tree.node_count > 1]
    if not each:
        return np.zeros(n_features)
    mean = np.mean(each, axis=0)
    return np.asarray(mean / mean.sum())


def single_precision(X: Any) -> np.ndarray:
    """Return X as a dense, C-contiguous float32 array, the type that scikit-learn trees compare with thresholds."""
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def seed_at(root: int, *position: int) -> int:
    """Return the seed of one component of a cascade; it depends on the root seed and its position only.

    So the result is the same in whatever order, or with how many jobs, the components are computed.
    """
    return int(np.random.SeedSequence(root, spawn_key=position).generate_state(1)[0])
