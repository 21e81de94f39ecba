"""ML-RIT: random interaction trees on the decision paths of forests (Algorithm 1 of the iMLDF paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from multilab.methods.forests.growing import seed_at
from multilab.methods.forests.paths import ABOVE, BELOW, TreeStack

__all__ = ["Found", "ThresholdRule", "Trees", "ranked", "sampled_sets"]

ThresholdRule = Literal["relax", "tight", "median"]
Found = tuple[tuple[int, ...], np.ndarray]
"""A signed set and its thresholds; the sign ``2 c + side`` stands for column c and `BELOW` or `ABOVE`."""
_FOREST, _COLUMNS, _POWER = 10, 15, 2


@dataclass(frozen=True)
class Trees:
    """How many interaction trees of how many levels are grown on each subsample, and how their thresholds combine."""

    count: int
    depth: int
    rule: ThresholdRule


def sampled_sets(Z: np.ndarray, Y: np.ndarray, importances: np.ndarray, trees: Trees, seed: int) -> list[Found]:
    """Return the signed sets of two or more in the nodes of random interaction trees, on one half of the rows.

    A forest of 10 trees is grown on half of the rows, drawn without replacement. Each tree sees 15 columns, drawn with
    probabilities that go with the square of their importance: unweighted forests have next to no interaction twice.

    Parameters
    ----------
    Z : ndarray of shape (n, d), float32
    Y : ndarray of shape (n, q), 0/1
    importances : ndarray of shape (d,)
    trees : Trees
    seed : int
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(Z))[: max(2, len(Z) // 2)]
    labels = Y[rows][:, Y[rows].min(axis=0) != Y[rows].max(axis=0)]
    weights = importances**_POWER
    if not labels.shape[1] or not weights.any():
        return []
    grown, columns = [], []
    for place in range(_FOREST):
        size = min(_COLUMNS, int(np.count_nonzero(weights)))
        columns.append(np.sort(rng.choice(len(weights), size, replace=False, p=weights / weights.sum())))
        part = np.ascontiguousarray(Z[np.ix_(rows, columns[-1])])
        grown.append(DecisionTreeRegressor(random_state=seed_at(seed, place)).fit(part, labels).tree_)
    used = np.unique(np.concatenate(columns))
    stack = TreeStack.of(grown, [np.searchsorted(used, some) for some in columns])
    return [found for level in _levels(stack, len(used), trees, rng) for found in _sets(level, used)]


def _levels(stack: TreeStack, n_columns: int, trees: Trees, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the thresholds of the nodes of each level, shape (nodes, 2, n_columns), NaN where a sign is not shared.

    Every node draws a leaf with the probability of its size, that is a tree and a training row; it has the signs that
    its leaf shares with the leaves of all nodes above it, each with the combined threshold of those leaves.
    """
    chains: np.ndarray | None = None
    for level in range(trees.depth):
        drawn = rng.choice(stack.leaves, trees.count * 2**level, p=stack.sizes / stack.sizes.sum())
        distinct, place = np.unique(drawn, return_inverse=True)
        own = stack.boxes(distinct, n_columns)[place]
        parents = np.arange(len(drawn)) // 2
        chains = own[None] if chains is None else np.concatenate([chains[:, parents], own[None]])
        yield combined(chains, trees.rule)


def combined(chains: np.ndarray, rule: ThresholdRule) -> np.ndarray:
    """Return the thresholds of nodes from those of the leaves on their chains; NaN where a leaf has none.

    Parameters
    ----------
    chains : ndarray of shape (leaves per chain, nodes, 2, columns)
    rule : {"relax", "tight", "median"}
        The widest region ("<=" takes the largest), the narrowest, or the median threshold.
    """
    if rule == "median":
        return np.median(chains, axis=0)
    widest = rule == "relax"
    below = (np.max if widest else np.min)(chains[:, :, BELOW], axis=0)
    above = (np.min if widest else np.max)(chains[:, :, ABOVE], axis=0)
    return np.stack([below, above], axis=1)


def _sets(thresholds: np.ndarray, columns: np.ndarray) -> Iterator[Found]:
    there = ~np.isnan(thresholds)
    for node in np.flatnonzero(there.sum(axis=(1, 2)) >= 2):
        side, column = np.nonzero(there[node])
        signs = 2 * columns[column] + side
        order = np.argsort(signs)
        yield tuple(signs[order].tolist()), thresholds[node, side, column][order]


def ranked(subsamples: Sequence[Sequence[Found]]) -> list[tuple[tuple[int, ...], np.ndarray, float]]:
    """Return the distinct signed sets, the most stable first, each with its thresholds and its stability.

    Stability is the share of the subsamples that have the set; among equals it is first by its count and then by its
    signs. The threshold of a sign is the median over all nodes with the set: combining them as within a chain would
    leave next to all rows ("relax") or none ("tight").
    """
    seen: dict[tuple[int, ...], list[np.ndarray]] = {}
    within: dict[tuple[int, ...], int] = {}
    for sample in subsamples:
        for signs, thresholds in sample:
            seen.setdefault(signs, []).append(thresholds)
        for signs in {signs for signs, _ in sample}:
            within[signs] = within.get(signs, 0) + 1
    order = sorted(seen, key=lambda signs: (-within[signs], -len(seen[signs]), signs))
    return [(signs, np.median(seen[signs], axis=0), within[signs] / len(subsamples)) for signs in order]
