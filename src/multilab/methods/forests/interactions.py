"""Interactions of features: decision paths, random interaction trees (ML-RIT), and the regions that they define."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

from multilab.methods.forests.compact_forest import CompactForest, fit_trees, float32_below, seed_at

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


@dataclass(frozen=True, eq=False)
class LayerPaths:
    """The decision paths of the forests of a layer, which are those of its trees' leaves.

    Attributes
    ----------
    nodes : structured ndarray
        Nodes of all trees, of type `multilab.methods.forests.compact_forest.NODE`.
    roots : ndarray of shape (n_trees,), int
        Number of each tree's root among the nodes. The children of a node are numbered from there.
    """

    nodes: np.ndarray
    roots: np.ndarray

    @classmethod
    def of(cls, forests: Sequence[CompactForest]) -> Self:
        """Return the paths of several forests."""
        first = np.cumsum([0, *(len(forest.nodes) for forest in forests[:-1])])
        roots = [forest.starts[:-1] + start for forest, start in zip(forests, first, strict=True)]
        return cls(np.concatenate([forest.nodes for forest in forests]), np.concatenate(roots))

    def boxes(self, trees: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the tightest threshold per side and column of the path of a row in a tree, NaN where there is none.

        Parameters
        ----------
        trees : ndarray of shape (n_paths,), int
            Number of the tree of each path.
        Z : ndarray of shape (n_paths, d), float32
            Row that takes each path.

        Returns
        -------
        ndarray of shape (n_paths, 2, d)
            As of `TreeStack.boxes`.
        """
        limits = np.full((len(Z), 2, Z.shape[1]), np.nan)
        root = self.roots[trees]
        who, at = np.arange(len(Z)), root
        while len(who):
            node = self.nodes[at]
            inner = node["left"] >= 0
            who, node = who[inner], node[inner]
            column, limit = node["feature"], node["threshold"].astype(float)
            side = np.where(Z[who, column] > limit, ABOVE, BELOW)
            known = limits[who, side, column]  # a path occurs once per step: no duplicate index
            limits[who, side, column] = np.where(side == ABOVE, np.fmax(known, limit), np.fmin(known, limit))
            at = root[who] + np.where(side == ABOVE, node["right"], node["left"])
        return limits


ThresholdRule = Literal["relax", "tight", "median"]
Found = tuple[tuple[int, ...], np.ndarray]
"""Signed set and its thresholds, in the order of the signs; ``2 c + side`` is column c with `BELOW` or `ABOVE`."""
_FOREST, _COLUMNS, _POWER = 10, 15, 2


@dataclass(frozen=True)
class Trees:
    """Settings of the interaction trees of a sample of rows.

    Attributes
    ----------
    count : int
        Number of interaction trees, L of Algorithm 1.
    depth : int
        Number of levels, D of Algorithm 1; the root is the first level.
    rule : {"relax", "tight", "median"}
        Combination of the thresholds of a chain, see `combined`.
    """

    count: int
    depth: int
    rule: ThresholdRule


def layer_sets(paths: LayerPaths, Z: np.ndarray, trees: Trees, seed: int) -> list[Found]:
    """Return the signed sets with at least two signs in the nodes of random interaction trees on the paths of a layer.

    Each node draws a tree of the layer and a row of a bootstrap sample, both uniformly: line 2 of Algorithm 1, whose
    input are the decision paths. Its own path is that of the row in the tree.

    Parameters
    ----------
    paths : LayerPaths
        Paths of the forests of the layer.
    Z : ndarray of shape (n, d), float32
        Rows that the forests were fitted on.
    trees : Trees
    seed : int

    Returns
    -------
    list of (signs, thresholds)
        One pair per node and path of its chain, so that sets which many paths share are frequent and those of a root, a
        single path, are not; empty if the forests have no tree.

    Notes
    -----
    Deviations from Algorithm 1 of the iMLDF paper: as of `auxiliary_sets`.
    """
    if not len(paths.roots):
        return []
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(Z), size=len(Z))

    def draw(count: int) -> np.ndarray:
        chosen = rng.integers(len(paths.roots), size=count)
        return paths.boxes(chosen, Z[rng.choice(rows, count)])

    columns = np.arange(Z.shape[1])
    levels = enumerate(_levels(draw, trees), start=1)
    return [found for length, nodes in levels for found in _sets(nodes, columns) for _ in range(length)]


def auxiliary_sets(Z: np.ndarray, Y: np.ndarray, importances: np.ndarray, trees: Trees, seed: int) -> list[Found]:
    """Return the signed sets with at least two signs in the nodes of interaction trees on a forest grown for them.

    A forest of 10 trees is grown on half of the rows, drawn without replacement; each tree sees at most 15 columns,
    drawn with probabilities proportional to the square of their importance in the layer, as in hiDF. Without these
    weights hardly any interaction occurs in two of so few trees.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
        Input features of a layer.
    Y : ndarray of shape (n, q), 0/1
    importances : ndarray of shape (d,)
        Importances of the columns of Z in the forests of the layer.
    trees : Trees
    seed : int

    Returns
    -------
    list of (signs, thresholds)
        One pair per node, so a set may occur several times; empty if no label varies on the drawn rows or all
        importances are 0.

    Notes
    -----
    Deviations from Algorithm 1 of the iMLDF paper: nodes of all levels count, not only those at depth D (lines 15 and
    16), because unpruned trees share hardly a sign along a full chain; index and threshold of an inherited set are
    intersected sign by sign (line 5 intersects an index set with a set of pairs).
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(Z))[: max(2, len(Z) // 2)]
    labels = Y[rows][:, Y[rows].min(axis=0) != Y[rows].max(axis=0)]
    weights = importances**_POWER
    if not labels.shape[1] or not weights.any():
        return []
    size, share = min(_COLUMNS, int(np.count_nonzero(weights))), weights / weights.sum()
    columns = [np.sort(rng.choice(len(weights), size, replace=False, p=share)) for _ in range(_FOREST)]
    parts = [np.ascontiguousarray(Z[np.ix_(rows, some)]) for some in columns]  # (n // 2, size)
    samples = ((part, None, seed_at(seed, number)) for number, part in enumerate(parts))
    grown = fit_trees(DecisionTreeRegressor(), samples, labels)
    used = np.unique(np.concatenate(columns))  # boxes over these columns only: at most 150 of d
    stack = TreeStack.of(grown, [np.searchsorted(used, some) for some in columns])

    def draw(count: int) -> np.ndarray:
        # a leaf by its number of training rows is a tree and a training row drawn uniformly
        drawn = rng.choice(stack.leaves, count, p=stack.sizes / stack.sizes.sum())
        distinct, inverse = np.unique(drawn, return_inverse=True)  # each box is computed once
        return stack.boxes(distinct, len(used))[inverse]

    return [signed_set for level in _levels(draw, trees) for signed_set in _sets(level, used)]


def _levels(draw: Callable[[int], np.ndarray], trees: Trees) -> Iterator[np.ndarray]:
    """Yield the thresholds of the nodes of each level, shape (nodes, 2, columns), NaN where a sign is not shared.

    Each node draws a path: ``draw`` returns the boxes of so many. The node has the signs that its path shares with the
    paths of all its ancestors, each with the combined threshold of these paths.
    """
    chains: np.ndarray | None = None  # (level + 1, nodes, 2, columns): the boxes from the root down to each node
    for level in range(trees.depth):
        own = draw(trees.count * 2**level)
        parents = np.arange(len(own)) // 2
        chains = own[None] if chains is None else np.concatenate([chains[:, parents], own[None]])
        yield combined(chains, trees.rule)


def combined(chains: np.ndarray, rule: ThresholdRule) -> np.ndarray:
    """Return the combined thresholds of nodes, shape (nodes, 2, columns); NaN where a leaf of the chain has none.

    Parameters
    ----------
    chains : ndarray of shape (levels, nodes, 2, columns)
        Boxes of the leaves from the root to each node, see `TreeStack.boxes`.
    rule : {"relax", "tight", "median"}
        "relax" gives the widest region (the largest threshold of "<=", the smallest of ">"), "tight" the narrowest,
        "median" the median threshold.

    Notes
    -----
    Lines 8 to 12 of Algorithm 1 tighten, Fig. 1 of the iMLDF paper and hiDF relax. NaN propagates through all three
    rules: this is the intersection of the signed sets (line 5).
    """
    if rule == "median":
        return np.median(chains, axis=0)
    widest = rule == "relax"
    below = (np.max if widest else np.min)(chains[:, :, BELOW], axis=0)
    above = (np.min if widest else np.max)(chains[:, :, ABOVE], axis=0)
    return np.stack([below, above], axis=1)


def _sets(thresholds: np.ndarray, columns: np.ndarray) -> Iterator[Found]:
    """Yield the signed set and thresholds of each node with at least two signs; ``columns`` numbers the last axis."""
    there = ~np.isnan(thresholds)  # (nodes, 2, columns)
    for node in np.flatnonzero(there.sum(axis=(1, 2)) >= 2):
        side, column = np.nonzero(there[node])
        signs = 2 * columns[column] + side
        order = np.argsort(signs)
        yield tuple(signs[order].tolist()), thresholds[node, side, column][order]


def ranked(
    subsamples: Sequence[Sequence[Found]], ties: np.random.Generator | None = None
) -> list[tuple[tuple[int, ...], np.ndarray, float]]:
    """Return the distinct signed sets in descending order of stability.

    Parameters
    ----------
    subsamples : sequence of lists
        Result of `layer_sets` or `auxiliary_sets` for each sample of rows.
    ties : Generator, optional
        Draws the order of sets that are equally stable and frequent; by their signs when None, so that the first
        columns of the data come first.

    Returns
    -------
    list of (signs, thresholds, stability)
        Stability is the share of the subsamples that contain the set; ties are ordered by the number of nodes
        (descending), then by ``ties``. A threshold is the median over all nodes with the set.

    Notes
    -----
    Line 20 of Algorithm 1 leaves the evaluation by bootstrap open; this is the stability of iRF. Thresholds of
    different chains are not combined by the rule within a chain: over many chains "relax" would leave nearly all rows
    in the region and "tight" nearly none.
    """
    seen: dict[tuple[int, ...], list[np.ndarray]] = {}
    within: dict[tuple[int, ...], int] = {}  # number of subsamples with the set
    for sample in subsamples:
        for signs, thresholds in sample:
            seen.setdefault(signs, []).append(thresholds)
        for signs in {signs for signs, _ in sample}:
            within[signs] = within.get(signs, 0) + 1
    order = sorted(seen)
    if ties is not None:
        order = [order[index] for index in ties.permutation(len(order))]
    order.sort(key=lambda signs: (-within[signs], -len(seen[signs])))
    return [(signs, np.median(seen[signs], axis=0), within[signs] / len(subsamples)) for signs in order]


Paths = Literal["layer", "auxiliary"]
Confidence = Literal["corner", "boundary"]
LabelRepresentation = Literal["aggregated", "per_interaction"]
LabelShares = Literal["out_of_fold", "in_sample"]
_SUPPORT = (0.01, 0.95)
_ROWS = 5  # training rows that a region needs: label shares of fewer say little


@dataclass(frozen=True, eq=False)
class Regions:
    """K regions, each the conjunction of conditions ``x_j <= t`` or ``x_j > t``; C conditions in all, concatenated.

    Attributes
    ----------
    starts : ndarray of shape (K + 1,)
        Offsets of the conditions of each region.
    columns : ndarray of shape (C,), int
        Column j of each condition.
    above : ndarray of shape (C,), bool
        Whether the condition is ``x_j > t``.
    thresholds : ndarray of shape (C,), float32
    units : ndarray of shape (C,), float32
        1 / range of column j in training, 0 for a constant column.
    labels : ndarray of shape (K, q), float32
        p_k, the share of the training rows in region k that have each label.
    """

    starts: np.ndarray
    columns: np.ndarray
    above: np.ndarray
    thresholds: np.ndarray
    units: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def inside(self, Z: np.ndarray, confidence: Confidence = "corner") -> tuple[np.ndarray, np.ndarray]:
        """Return the membership of rows in the regions and their confidence scores f^feature, both (n, K).

        Parameters
        ----------
        Z : ndarray of shape (n, d), float32
        confidence : {"corner", "boundary"}
            "corner" is the formula of the iMLDF paper (section 3.1), sum_j |x_j - t_j| over the conditions. Its text
            calls this the distance to the boundary, which is the smallest |x_j - t_j|: "boundary". Both are in units of
            the ranges of the columns (the paper has no scaling), and 0 outside the region.
        """
        member = np.ones((len(self), len(Z)), dtype=bool)  # (K, n)
        distance = np.full(member.shape, 0.0 if confidence == "corner" else np.inf, dtype=np.float32)
        used, index = np.unique(self.columns, return_inverse=True)
        table = np.ascontiguousarray(Z[:, used].T)  # (columns in use, n): each condition reads one contiguous row
        add = np.add if confidence == "corner" else np.minimum
        for k in range(len(self)):
            for i in range(self.starts[k], self.starts[k + 1]):
                column, limit = table[index[i]], self.thresholds[i]
                member[k] &= column > limit if self.above[i] else column <= limit
                add(distance[k], np.abs(column - limit) * self.units[i], out=distance[k])
        distance[~member] = 0.0
        return member.T, distance.T

    def with_shares_of(self, Z: np.ndarray, Y: np.ndarray) -> Self:
        """Return the same regions with the label shares of these rows; a region without any has those of all.

        Parameters
        ----------
        Z : ndarray of shape (n, d), float32
        Y : ndarray of shape (n, q), 0/1
        """
        member = self.inside(Z)[0].astype(np.float64)  # (n, K)
        count = member.sum(axis=0)[:, None]
        shares = np.where(count > 0, member.T @ Y / np.maximum(count, 1), Y.mean(axis=0))
        return replace(self, labels=shares.astype(np.float32))

    def represent(
        self, Z: np.ndarray, confidence: Confidence | None, label_repr: LabelRepresentation | None
    ) -> np.ndarray:
        """Return the interaction representation of rows, float32.

        Parameters
        ----------
        Z : ndarray of shape (n, d), float32
        confidence : {"corner", "boundary"} or None
            Form of f^feature, K columns; None leaves them out.
        label_repr : {"aggregated", "per_interaction"} or None
            Form of f^label: the mean of p_k over the regions of the row (q columns, 0 without a region), or p_k of each
            region (K q columns, 0 outside). None leaves it out.

        Returns
        -------
        ndarray of shape (n, K + q), (n, K + K q) or narrower
        """
        member, distance = self.inside(Z, confidence or "corner")
        parts = [distance] if confidence else []
        if label_repr == "aggregated":
            active = np.maximum(member.sum(axis=1, keepdims=True), 1)  # (n, 1) number of regions of the row
            parts.append(member.astype(np.float32) @ self.labels / active)
        elif label_repr == "per_interaction":
            parts.append((member[:, :, None] * self.labels).reshape(len(Z), -1))
        return np.hstack(parts).astype(np.float32) if parts else np.empty((len(Z), 0), dtype=np.float32)


def chosen_regions(
    candidates: Iterable[tuple[tuple[int, ...], np.ndarray, float]], Z: np.ndarray, Y: np.ndarray, n_regions: int
) -> Regions:
    """Return the first ``n_regions`` candidates that contain neither too few nor too many training rows.

    Parameters
    ----------
    candidates : iterable of (signs, thresholds, stability)
        In descending order of stability; a sign is ``2 column + side``.
    Z : ndarray of shape (n, d), float32
        Training rows. A region must contain at least 1 % of them, at least 5, and at most 95 %.
    Y : ndarray of shape (n, q), 0/1
    n_regions : int
        Upper bound of the number of regions.

    Returns
    -------
    Regions
        With the label shares p_k of the training rows. The denominator of f^label, printed equal to its numerator in
        the iMLDF paper, is the number of rows in the region.
    """
    least, most = max(_ROWS, _SUPPORT[0] * len(Z)), _SUPPORT[1] * len(Z)
    conditions: list[tuple[np.ndarray, np.ndarray]] = []
    labels = []
    for signs, limits, _ in candidates:
        if len(conditions) == n_regions:
            break
        sides, limits = np.array(signs), float32_below(limits)
        column = Z[:, sides // 2]  # (n, conditions)
        member = np.where(sides % 2 == ABOVE, column > limits, column <= limits).all(axis=1)
        if least <= member.sum() <= most:
            conditions.append((sides, limits))
            labels.append(Y[member].mean(axis=0))
    signs_ = np.concatenate([np.empty(0, dtype=np.int64), *(sides for sides, _ in conditions)])
    columns = signs_ // 2
    span = np.ptp(Z[:, columns], axis=0) if len(columns) else np.empty(0, dtype=np.float32)
    return Regions(
        np.cumsum([0, *(len(sides) for sides, _ in conditions)]),
        columns.astype(np.int32),
        signs_ % 2 == ABOVE,
        np.concatenate([np.empty(0, dtype=np.float32), *(limits for _, limits in conditions)]),
        np.divide(1.0, span, out=np.zeros_like(span), where=span > 0),
        np.array(labels, dtype=np.float32).reshape(len(labels), Y.shape[1]),
    )
