"""Dividing rows into training and test parts, the same way on every machine.

Iterative stratification of order 1 follows K. Sechidis, G. Tsoumakas, I. Vlahavas, On the stratification of
multi-label data, ECML PKDD 2011 (Algorithm 1); order 2 follows P. Szymański, T. Kajdanowicz, A network
perspective on stratification of multi-label data, LIDTA 2017: pairs of labels that occur together are
stratified like labels of their own.

Two deviations. A subset never takes more rows than its share, so that sizes are exact (the originals only
prefer the one with more room when a label does not decide). And everything is integer arithmetic on raw PCG64
words: demands are counted in units of 1/n, ties have a written rule, and no generator method whose stream may
change between NumPy versions is used, so that the indices can be pinned in tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError
from multilab.datasets.protocol import normalise_protocol

__all__ = ["IterativeStratifiedKFold", "Split", "indices_digest", "make_splits", "stratified_assignment"]


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the rows.

    Attributes
    ----------
    train, test : ndarray of int64
        Row numbers; ascending for what is drawn, in their own order for named and explicit splits.
    name : str
        ``fold0``, ``repeat1-fold0``, ``holdout3``, ``official``, ...
    digest : str
        :func:`indices_digest` of the two; computed.
    """

    train: np.ndarray
    test: np.ndarray
    name: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", indices_digest(self.train, self.test))

    def __iter__(self) -> Iterator[np.ndarray]:  # so that `train, test = split` works
        return iter((self.train, self.test))


def indices_digest(train: Any, test: Any) -> str:
    """Return the sha256 that identifies a division: lengths and row numbers as little-endian int64."""
    sha = hashlib.sha256()
    for part in (train, test):
        rows = np.ascontiguousarray(part, dtype="<i8")
        sha.update(len(rows).to_bytes(8, "little"))
        sha.update(rows.tobytes())
    return sha.hexdigest()


class IterativeStratifiedKFold:
    """Folds in which every label is about as frequent as in the whole set; a scikit-learn splitter.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2.
    order : {1, 2}, default 1
        1 balances labels, 2 balances pairs of labels as well.
    random_state : int, default 0
        Seed; the same folds on every machine.
    """

    def __init__(self, n_splits: int = 5, *, order: int = 1, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.order = order
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(train, test)`` row numbers, fold by fold; ``X`` and ``groups`` are not looked at.

        Parameters
        ----------
        X : ignored
        y : array-like or sparse of shape (n, q) or (n,)
            Labels, 0 or 1.
        groups : ignored

        Raises
        ------
        DatasetError
            Labels other than 0 and 1, or more folds than rows.
        """
        if y is None or self.order not in (1, 2):
            raise DatasetError("iterative stratification needs the labels, split(X, Y), and the order 1 or 2")
        protocol = {"kfold": self.n_splits, "stratify": self.order, "seed": self.random_state}
        for split in make_splits(y, protocol):
            yield split.train, split.test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_splits}, order={self.order}, random_state={self.random_state})"


def make_splits(
    Y: Any,
    protocol: Mapping[str, Any],
    named_splits: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
) -> list[Split]:
    """Return the splits that a protocol asks for.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q) or (n,)
        Labels, 0 or 1.
    protocol : mapping
        See :func:`multilab.datasets.protocol.normalise_protocol`.
    named_splits : mapping of str to (train, test), optional
        What ``{split: name}`` may ask for: ``Dataset.splits``.

    Raises
    ------
    DatasetError
        A malformed protocol, an unknown split (the known ones are listed), row numbers out of range,
        repeated or in both parts, an empty part, or more folds than rows.
    """
    labels = _label_table(Y)
    plan = normalise_protocol(protocol)
    if "split" in plan:
        return [_named(plan["split"], named_splits or {}, len(labels))]
    if "first" in plan:
        rows = np.arange(len(labels), dtype=np.int64)
        return [_checked(rows[: plan["first"]], rows[plan["first"] :], "first", len(labels))]
    if "explicit" in plan:
        return [
            _checked(
                np.array(e["train"], dtype=np.int64),
                np.array(e["test"], dtype=np.int64),
                f"fold{i}",
                len(labels),
            )
            for i, e in enumerate(plan["explicit"])
        ]
    return list(_kfold(labels, plan) if "kfold" in plan else _holdout(labels, plan))


def stratified_assignment(
    Y: Any, sizes: Sequence[int], *, order: int = 1, seed: int = 0, repeat: int = 0
) -> np.ndarray:
    """Return for every row the number of its subset, by iterative stratification.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q)
        Labels, 0 or 1.
    sizes : sequence of int
        Rows of each subset; they sum to n. Subset j gets ``sizes[j] / n`` of every label's rows, as
        nearly as it goes.
    order : {1, 2}
        2 adds a column for every pair of labels that occurs.
    seed, repeat : int
        Entropy and spawn key of the seed sequence.

    Returns
    -------
    ndarray of shape (n,), int64

    Notes
    -----
    The label (or pair) with the fewest rows left is served first; among equals a pair before a label, then
    the lower column. Its rows come in one fixed random order. A row goes to the subset that lacks most rows
    of that label; among equals to the one with most room; among those by a raw random word modulo their
    number. Rows without labels fill the room that is left by the same rule.
    """
    labels = _label_table(Y)
    room = [int(size) for size in sizes]
    n = len(labels)
    if sum(room) != n or min(room, default=0) < 0:
        raise DatasetError(f"the subset sizes {room} do not sum to the {n} rows")
    bits = _raw_bits(seed, repeat)
    shuffled = _permutation(n, bits)
    columns = (_with_pairs(labels) if order == 2 else labels.astype(bool))[shuffled]
    columns = columns[:, columns.any(axis=0)]
    left = columns.sum(axis=0, dtype=np.int64)
    lacks = np.outer(left, np.array(room, dtype=np.int64))  # in units of 1/n rows
    columns_of = [np.flatnonzero(row) for row in columns]
    chosen = np.full(n, -1, dtype=np.int64)
    while left.any():
        label = int(np.argmin(np.where(left > 0, left, n + 1)))
        for row in np.flatnonzero(columns[:, label] & (chosen < 0)):
            chosen[row] = subset = _neediest(lacks[label].tolist(), room, bits)
            room[subset] -= 1
            lacks[columns_of[row], subset] -= n
            left[columns_of[row]] -= 1
    for row in np.flatnonzero(chosen < 0):
        chosen[row] = subset = _neediest(room, room, bits)
        room[subset] -= 1
    assignment = np.empty_like(chosen)
    assignment[shuffled] = chosen
    return assignment


def _neediest(lacks: list[int], room: list[int], bits: np.random.PCG64) -> int:
    """Return the subset with room that lacks most; then most room; then a random one."""
    best = max((lack, space) for lack, space in zip(lacks, room, strict=True) if space > 0)
    ties = [j for j, pair in enumerate(zip(lacks, room, strict=True)) if pair == best]
    return ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]


def _with_pairs(labels: np.ndarray) -> np.ndarray:
    """Return the columns of all pairs of labels that occur together, followed by the labels themselves."""
    wide = labels.astype(np.int64)
    first, second = np.nonzero(np.triu(wide.T @ wide, k=1))
    single = labels.astype(bool)
    return np.hstack([single[:, first] & single[:, second], single])


def _raw_bits(seed: int, repeat: int) -> np.random.PCG64:
    """Return the bit generator of one repetition; its words are the same in all NumPy versions."""
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repeat,)))


def _permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return the numbers 0..n-1 in random order: n raw words, sorted."""
    return np.argsort(bits.random_raw(n), kind="stable")


def _label_table(Y: Any) -> np.ndarray:
    """Return the labels as a dense (n, q) uint8 array of 0 and 1."""
    dense = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    if dense.ndim == 1:
        dense = dense[:, None]
    if dense.ndim != 2 or not np.isin(dense, (0, 1)).all():
        raise DatasetError("labels must be a table of 0 and 1, one row per example")
    return dense.astype(np.uint8, copy=False)


def _kfold(labels: np.ndarray, plan: Mapping[str, Any]) -> Iterator[Split]:
    n, folds = len(labels), plan["kfold"]
    if folds > n:
        raise DatasetError(f"{folds} folds of {n} rows: every fold needs at least one row")
    sizes = [n // folds + (fold < n % folds) for fold in range(folds)]
    for repeat in range(plan["repeats"]):
        fold_of = _assignment(labels, sizes, plan, repeat)
        for fold in range(folds):
            name = f"fold{fold}" if plan["repeats"] == 1 else f"repeat{repeat}-fold{fold}"
            yield Split(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), name)


def _holdout(labels: np.ndarray, plan: Mapping[str, Any]) -> Iterator[Split]:
    n = len(labels)
    size = Fraction(plan["holdout"]["train_size"])
    train = int(size * n) if size < 1 else int(size)
    if not 0 < train < n:
        raise DatasetError(f"a training part of {train} of {n} rows leaves one part empty")
    for repeat in range(plan["repeats"]):
        part = _assignment(labels, [train, n - train], plan, repeat)
        yield Split(np.flatnonzero(part == 0), np.flatnonzero(part == 1), f"holdout{repeat}")


def _assignment(labels: np.ndarray, sizes: list[int], plan: Mapping[str, Any], repeat: int) -> np.ndarray:
    if plan["stratify"]:
        return stratified_assignment(labels, sizes, order=plan["stratify"], seed=plan["seed"], repeat=repeat)
    chosen = np.empty(len(labels), dtype=np.int64)
    shuffled = _permutation(len(labels), _raw_bits(plan["seed"], repeat))
    chosen[shuffled] = np.repeat(np.arange(len(sizes)), sizes)
    return chosen


def _named(name: str, named: Mapping[str, tuple[np.ndarray, np.ndarray]], n: int) -> Split:
    if name not in named:
        raise DatasetError(f"there is no split {name!r}; this data set has: {', '.join(sorted(named)) or 'none'}")
    train, test = (np.asarray(part, dtype=np.int64) for part in named[name])
    return _checked(train, test, name, n)


def _checked(train: np.ndarray, test: np.ndarray, name: str, n: int) -> Split:
    """Return the split when its rows exist, are there once, and neither part is empty."""
    both = np.concatenate([train, test])
    if len(train) == 0 or len(test) == 0:
        raise DatasetError(f"split {name}: {len(train)} training and {len(test)} test rows; neither may be empty")
    if both.min() < 0 or both.max() >= n:
        raise DatasetError(
            f"split {name}: row {both[(both < 0) | (both >= n)][0]} does not exist (rows are 0..{n - 1})"
        )
    if len(np.unique(both)) != len(both):
        raise DatasetError(f"split {name}: a row is named twice, or is in the training and in the test part")
    return Split(train, test, name)
