"""Models of groups of labels, each group a label powerset, a single label a binary problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.transformation.binary import seeded
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.inputs import Inputs, make_inputs
from multilab.methods.transformation.label_powerset import LabelPowerset

__all__ = ["FittedGroups", "Group", "fit_groups", "random_partitions", "random_subsets"]

Group = tuple[int, ...]
_ENUMERATED = 10_000  # subsets listed one by one before drawing


@dataclass(frozen=True)
class FittedGroups:
    """One fitted model per group, all on the same inputs (an SVC's kernel matrix is computed once)."""

    groups: Sequence[Group]
    models: Sequence[MultiLabelClassifier]
    inputs: Inputs

    def decisions(self, X: Any) -> Iterator[tuple[Group, np.ndarray]]:
        """Yield each group with its 0/1 decisions, shape (n, size of the group)."""
        matrix = self.inputs.query(X).matrix
        for group, model in zip(self.groups, self.models, strict=True):
            yield group, model._both(matrix)[1]


def fit_groups(
    base: BaseEstimator, X: Any, Y: np.ndarray, groups: Sequence[Group], seed: int, n_jobs: int | None
) -> FittedGroups:
    """Fit ``base`` on every group of label numbers; all get the same seed."""
    inputs = make_inputs(seeded(base, seed, None), X)
    matrix = inputs.training().matrix

    def fit(group: Group) -> MultiLabelClassifier:
        kind = BinaryRelevance if len(group) == 1 else LabelPowerset
        return kind(inputs.base).fit(matrix, Y[:, group])

    models = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fit)(group) for group in groups)
    return FittedGroups(groups, models, inputs)


def random_subsets(q: int, k: int, count: int, random_state: Any) -> list[Group]:
    """Return ``count`` different subsets of k of q labels, all choices equally likely, in ascending order.

    ``count`` must not exceed the number of subsets.
    """
    from itertools import combinations
    from math import comb

    rng = check_random_state(random_state)
    if comb(q, k) <= _ENUMERATED:
        everything = list(combinations(range(q), k))
        return sorted(everything[i] for i in rng.permutation(len(everything))[:count])
    drawn: set[Group] = set()
    while len(drawn) < count:
        drawn.add(tuple(sorted(rng.permutation(q)[:k].tolist())))
    return sorted(drawn)


def random_partitions(q: int, count: int, random_state: Any) -> np.ndarray:
    """Return the different ones among ``count`` random partitions of q labels.

    As in Mulan: a random order of the q labels and q - 1 separators; labels with no separator between them form a
    group.

    Returns
    -------
    ndarray of shape (at most count, q)
        Group number of each label; groups are numbered in the order of their first label.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    symbols = rng.permuted(np.tile(np.arange(2 * q - 1, dtype=np.int32), (count, 1)), axis=1)
    separators = np.cumsum(symbols >= q, axis=1, dtype=np.int32)
    rows = np.arange(count)
    labels = symbols < q
    place = np.empty((count, q), dtype=np.int32)
    place[np.nonzero(labels)[0], symbols[labels]] = separators[labels]
    numbers = np.full((count, q), -1, dtype=np.int32)
    used = np.zeros(count, dtype=np.int32)
    partitions = np.empty((count, q), dtype=np.uint16)
    for label in range(q):
        known = numbers[rows, place[:, label]]
        new = known < 0
        known[new] = used[new]
        numbers[rows[new], place[new, label]] = used[new]
        used[new] += 1
        partitions[:, label] = known
    return np.unique(partitions, axis=0)
