"""Models of groups of labels, each group a label powerset, a single label a binary problem."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods._weights import Weights, check_takes_weights
from multilab.methods.transformation._binary import LabelScorer, fit_label, score_kind, seeded
from multilab.methods.transformation._inputs import Inputs, make_inputs
from multilab.methods.transformation._label_sets import SetModel, distinct_rows, fit_sets

Group = tuple[int, ...]
_ENUMERATED = 10_000  # subsets listed one by one before any is drawn
_DRAWN_AT_ONCE = 1000  # partitions whose symbols fit into the processor's cache


@dataclass(frozen=True)
class _SingleLabel:
    scorer: LabelScorer
    threshold: float

    def decisions(self, matrix: Any) -> np.ndarray:
        return self.scorer.predict(matrix, self.threshold)[1][:, None]


@dataclass(frozen=True)
class _Powerset:
    model: SetModel
    sets: np.ndarray

    def decisions(self, matrix: Any) -> np.ndarray:
        return self.sets[self.model.probabilities(matrix).argmax(axis=1)]


@dataclass(frozen=True)
class FittedGroups:
    """One fitted model per group, all on the same inputs (an SVC's kernel matrix is computed once).

    ``groups`` are the groups, each with how often it votes: pairs, because a skops file has no mapping whose keys are
    tuples.
    """

    groups: list[tuple[Group, int]]
    models: Sequence[_SingleLabel | _Powerset]
    inputs: Inputs

    def decisions(self, X: Any) -> Iterator[tuple[Group, np.ndarray]]:
        """Yield each group with its 0/1 decisions, shape (n, size of the group)."""
        matrix = self.inputs.query(X).matrix
        for (group, _), model in zip(self.groups, self.models, strict=True):
            yield group, model.decisions(matrix)

    def vote_shares(self, X: Any, n_labels: int) -> np.ndarray:
        """Return for each row and label the share of votes for it, 0 for a label in no group."""
        votes, cast = np.zeros((X.shape[0], n_labels)), np.zeros(n_labels)
        for (group, decisions), (_, times) in zip(self.decisions(X), self.groups, strict=True):
            votes[:, group] += times * decisions.astype(np.float64)
            cast[list(group)] += times
        return votes / np.maximum(cast, 1)


def fit_groups(
    base: BaseEstimator,
    X: Any,
    Y: np.ndarray,
    groups: Iterable[Group],
    seed: int,
    n_jobs: int | None,
    weight: np.ndarray | None = None,
) -> FittedGroups:
    """Fit ``base`` on every group of label numbers; all get the same seed and the same weights of the rows.

    A group given several times is fitted once and votes as often. The models are those of `LabelPowerset` and
    `BinaryRelevance`, without validating X again for every group.
    """
    counted = sorted(Counter(groups).items())
    check_takes_weights(base, Weights(weight, None))
    inputs = make_inputs(seeded(base, seed, None), X, weight)
    matrix = inputs.training().matrix
    threshold = 0.5 if score_kind(inputs.base, None) == "probability" else 0.0

    def fit(group: Group) -> _SingleLabel | _Powerset:
        if len(group) == 1:
            return _SingleLabel(fit_label(inputs.base, matrix, Y[:, group[0]], None, weight), threshold)
        sets, classes = distinct_rows(Y[:, group])
        return _Powerset(fit_sets(inputs.base, matrix, classes, weight), sets)

    models = parallel(n_jobs, prefer="threads")(delayed(fit)(group) for group, _ in counted)
    return FittedGroups(counted, models, inputs)


def random_subsets(q: int, k: int, count: int, random_state: Any) -> list[Group]:
    """Return ``count`` different subsets of k of q labels, all choices equally likely, in ascending order.

    ``count`` must not exceed the number of subsets.
    """
    rng = check_random_state(random_state)
    if comb(q, k) <= _ENUMERATED:
        everything = list(combinations(range(q), k))
        return sorted(everything[i] for i in rng.permutation(len(everything))[:count])
    drawn: set[Group] = set()
    while len(drawn) < count:
        drawn.add(tuple(sorted(rng.permutation(q)[:k].tolist())))
    return sorted(drawn)


def cover_labels(subsets: list[Group], q: int, random_state: Any) -> list[Group]:
    """Return the subsets, changed in one entry per missing label so that together they hold all q labels.

    Each label that no subset holds, in random order, replaces one entry drawn from all entries whose label is in
    another subset too. Such an entry exists as long as the sizes add up to q or more, and no subset can become equal
    to another, since only the changed one holds the new label. Subsets that hold all labels are returned as they are.
    The scheme treats all labels alike, so each is in a subset with the same probability.
    """
    rng = check_random_state(random_state)
    members = [list(subset) for subset in subsets]
    counts = np.bincount(np.concatenate(members), minlength=q)
    for label in rng.permutation(np.flatnonzero(counts == 0)).tolist():
        entries = [(i, j) for i, subset in enumerate(members) for j, held in enumerate(subset) if counts[held] > 1]
        i, j = entries[rng.randint(len(entries))]
        counts[members[i][j]] -= 1
        counts[label] += 1
        members[i][j] = label
    return sorted(tuple(sorted(subset)) for subset in members)


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
    partitions = np.empty((count, q), dtype=np.int16)
    for start in range(0, count, _DRAWN_AT_ONCE):
        part = partitions[start : start + _DRAWN_AT_ONCE]
        symbols = np.tile(np.arange(2 * q - 1), (len(part), 1))  # NumPy permutes 8-byte integers fastest
        rng.permuted(symbols, axis=1, out=symbols)
        positions = np.flatnonzero(symbols < q)  # of the labels, q in each row
        labels = symbols.ravel()[positions]
        opens = np.diff(positions, prepend=-2) != 1  # a separator is before the label
        opens[::q] = True
        group = np.empty((len(part), q), dtype=np.int64)
        group.ravel()[np.repeat(np.arange(0, group.size, q), q) + labels] = np.cumsum(opens) - 1
        lowest = np.empty(group.max() + 1, dtype=np.int16)
        lowest[group[:, ::-1].ravel()] = np.tile(np.arange(q)[::-1], len(part))  # a group keeps the last, its lowest
        part[:] = lowest[group]
    # rows are distinguished by a 64-bit code: two of 50 000 different ones have the same with probability 1e-10
    code = partitions @ np.random.default_rng(0).integers(1, 2**62, size=q)
    return partitions[np.sort(np.unique(code, return_index=True)[1])]
