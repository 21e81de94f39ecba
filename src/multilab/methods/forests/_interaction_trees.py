# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""ML-RIT: random interaction trees on the decision paths of forests (Algorithm 1 of the iMLDF paper)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from multilab.methods.forests._growing import fit_trees, seed_at
from multilab.methods.forests._paths import ABOVE, BELOW, TreeStack

ThresholdRule = Literal["relax", "tight", "median"]
Found = tuple[tuple[int, ...], np.ndarray]
"""Signed set and its thresholds, in the order of the signs; ``2 c + side`` is column c with `BELOW` or `ABOVE`."""
_FOREST, _COLUMNS, _POWER = 10, 15, 2


@dataclass(frozen=True)
class Trees:
    """Settings of the interaction trees of a subsample.

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


def sampled_sets(Z: np.ndarray, Y: np.ndarray, importances: np.ndarray, trees: Trees, seed: int) -> list[Found]:
    """Return the signed sets with at least two signs in the nodes of random interaction trees on half of the rows.

    The rows are drawn without replacement. A forest of 10 trees is grown on them; each tree sees at most 15 columns,
    drawn with probabilities proportional to the square of their importance. Without these weights hardly any
    interaction occurs in two trees.

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
    return [signed_set for level in _levels(stack, len(used), trees, rng) for signed_set in _sets(level, used)]


def _levels(stack: TreeStack, n_columns: int, trees: Trees, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the thresholds of the nodes of each level, shape (nodes, 2, n_columns), NaN where a sign is not shared.

    Each node draws a leaf with a probability proportional to its number of training rows, which is a tree and a
    training row drawn uniformly (line 2 of Algorithm 1, where the input is a set of paths). The node has the signs that
    its leaf shares with the leaves of all its ancestors, each with the combined threshold of these leaves.
    """
    chains: np.ndarray | None = None  # (level + 1, nodes, 2, n_columns): the boxes from the root down to each node
    for level in range(trees.depth):
        drawn = rng.choice(stack.leaves, trees.count * 2**level, p=stack.sizes / stack.sizes.sum())
        distinct, inverse = np.unique(drawn, return_inverse=True)  # each box is computed once
        own = stack.boxes(distinct, n_columns)[inverse]
        parents = np.arange(len(drawn)) // 2
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


def ranked(subsamples: Sequence[Sequence[Found]]) -> list[tuple[tuple[int, ...], np.ndarray, float]]:
    """Return the distinct signed sets in descending order of stability.

    Parameters
    ----------
    subsamples : sequence of lists
        Result of `sampled_sets` for each subsample.

    Returns
    -------
    list of (signs, thresholds, stability)
        Stability is the share of the subsamples that contain the set; ties are ordered by the number of nodes
        (descending), then by the signs. A threshold is the median over all nodes with the set.

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
    order = sorted(seen, key=lambda signs: (-within[signs], -len(seen[signs]), signs))
    return [(signs, np.median(seen[signs], axis=0), within[signs] / len(subsamples)) for signs in order]
