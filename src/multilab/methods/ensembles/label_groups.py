"""Models of groups of labels, each group a label powerset, a single label a binary problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.methods.transformation.binary import LabelScorer, fit_label, score_kind, seeded
from multilab.methods.transformation.inputs import Inputs, make_inputs
from multilab.methods.transformation.label_powerset import SetModel, distinct_rows, fit_sets

__all__ = ["FittedGroups", "Group", "fit_groups", "random_partitions", "random_subsets"]

Group = tuple[int, ...]
_ENUMERATED = 10_000  # subsets listed one by one before drawing


@dataclass(frozen=True)
class _SingleLabel:
    scorer: LabelScorer
    threshold: float

    def decisions(self, matrix: Any) -> np.ndarray:
        return (self.scorer.scores(matrix) >= self.threshold)[:, None]


@dataclass(frozen=True)
class _Powerset:
    model: SetModel
    sets: np.ndarray

    def decisions(self, matrix: Any) -> np.ndarray:
        return self.sets[self.model.probabilities(matrix).argmax(axis=1)]


@dataclass(frozen=True)
class FittedGroups:
    """One fitted model per group, all on the same inputs (an SVC's kernel matrix is computed once)."""

    groups: Sequence[Group]
    models: Sequence[_SingleLabel | _Powerset]
    inputs: Inputs

    def decisions(self, X: Any) -> Iterator[tuple[Group, np.ndarray]]:
        """Yield each group with its 0/1 decisions, shape (n, size of the group)."""
        matrix = self.inputs.query(X).matrix
        for group, model in zip(self.groups, self.models, strict=True):
            yield group, model.decisions(matrix)


def fit_groups(
    base: BaseEstimator, X: Any, Y: np.ndarray, groups: Sequence[Group], seed: int, n_jobs: int | None
) -> FittedGroups:
    """Fit ``base`` on every group of label numbers; all get the same seed.

    The models are those of `LabelPowerset` and `BinaryRelevance`, without validating X again for every group.
    """
    inputs = make_inputs(seeded(base, seed, None), X)
    matrix = inputs.training().matrix
    threshold = 0.5 if score_kind(inputs.base, None) == "probability" else 0.0

    def fit(group: Group) -> _SingleLabel | _Powerset:
        if len(group) == 1:
            return _SingleLabel(fit_label(inputs.base, matrix, Y[:, group[0]], None), threshold)
        sets, classes = distinct_rows(Y[:, group])
        return _Powerset(fit_sets(inputs.base, matrix, classes), sets)

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
        For each label the lowest label of its group.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    symbols = rng.permuted(np.tile(np.arange(2 * q - 1, dtype=np.int16), (count, 1)), axis=1)
    is_label = symbols < q
    opens = is_label.copy()  # the first label of a group comes first in its row, or after a separator
    opens[:, 1:] &= ~is_label[:, :-1]
    labels, opens = symbols[is_label], opens[is_label]
    lowest = np.minimum.reduceat(labels, np.flatnonzero(opens))
    partitions = np.empty((count, q), dtype=np.int16)
    partitions[np.repeat(np.arange(count), q), labels] = lowest[np.cumsum(opens) - 1]
    # rows are told apart by a 64-bit code: two of 50 000 different ones have the same with probability 1e-10
    code = partitions @ np.random.default_rng(0).integers(1, 2**62, size=q)
    return partitions[np.sort(np.unique(code, return_index=True)[1])]
