"""Dividing rows into training and test parts, the same way on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError
from multilab.datasets.protocol import normalise_protocol
from multilab.datasets.stratification import label_table, permutation, raw_bits, stratified_assignment

__all__ = ["IterativeStratifiedKFold", "Split", "indices_digest", "make_splits"]


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the rows.

    Attributes
    ----------
    train, test : ndarray of int64
        Row numbers, ascending for everything that is drawn; in the given order for named and explicit splits.
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

    def __iter__(self) -> Iterator[np.ndarray]:
        """Allow ``train, test = split``."""
        yield self.train
        yield self.test


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
        if y is None:
            raise DatasetError("iterative stratification needs the labels: split(X, Y)")
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
        A malformed protocol, an unknown split (the known ones are listed), row numbers out of range, repeated
        or in both parts, an empty part, or more folds than rows.
    """
    labels = label_table(Y)
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
    chosen[permutation(len(labels), raw_bits(plan["seed"], repeat))] = np.repeat(np.arange(len(sizes)), sizes)
    return chosen


def _named(name: str, named: Mapping[str, tuple[np.ndarray, np.ndarray]], n: int) -> Split:
    if name not in named:
        raise DatasetError(
            f"there is no split {name!r}; this data set has: {', '.join(sorted(named)) or 'none'}"
        )
    train, test = (np.asarray(part, dtype=np.int64) for part in named[name])
    return _checked(train, test, name, n)


def _checked(train: np.ndarray, test: np.ndarray, name: str, n: int) -> Split:
    """Return the split when its rows exist, are there once, and neither part is empty."""
    both = np.concatenate([train, test])
    if len(train) == 0 or len(test) == 0:
        raise DatasetError(
            f"split {name}: {len(train)} training and {len(test)} test rows; neither may be empty"
        )
    if both.min() < 0 or both.max() >= n:
        raise DatasetError(
            f"split {name}: row {both[(both < 0) | (both >= n)][0]} does not exist (rows are 0..{n - 1})"
        )
    if len(np.unique(both)) != len(both):
        raise DatasetError(f"split {name}: a row is named twice, or is in the training and in the test part")
    return Split(train, test, name)
