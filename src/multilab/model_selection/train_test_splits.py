"""Train/test splits of a dataset by a protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from multilab.datasets.errors import DatasetError
from multilab.model_selection.group_kfold import IterativeStratifiedGroupKFold
from multilab.model_selection.iterative_stratification.assignment import (
    fold_sizes,
    random_permutation,
    stratified_assignment,
)
from multilab.model_selection.iterative_stratification.columns import LabelMatrix, check_label_matrix
from multilab.model_selection.protocol import normalise_protocol
from multilab.model_selection.shuffle_split import train_test_split

_OTHER_SEED = 1_000_003  # between repetitions


@dataclass(frozen=True, eq=False)
class Split:
    """One train/test split of the rows.

    Attributes
    ----------
    train, test : ndarray of int64
        Row indices; ascending in random splits, in their given order in named and explicit splits.
    name : str
        ``fold0``, ``repeat1-fold0``, ``holdout3``, ``official``, ...
    digest : str
        :func:`indices_digest` of the two; computed.

    Examples
    --------
    >>> from multilab.model_selection import Split
    >>> train, test = Split([0, 1, 2], [3], "fold0")
    >>> test
    [3]
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
    """Return the sha256 of a split: lengths and row indices of both sets as little-endian int64.

    Examples
    --------
    >>> from multilab.model_selection import indices_digest
    >>> indices_digest([0, 1], [2])[:8]
    '4c152be4'
    """
    sha = hashlib.sha256()
    for indices in (train, test):
        rows = np.ascontiguousarray(indices, dtype="<i8")
        sha.update(len(rows).to_bytes(8, "little"))
        sha.update(rows.tobytes())
    return sha.hexdigest()


def make_splits(
    Y: Any,
    protocol: Mapping[str, Any],
    named_splits: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
    groups: np.ndarray | None = None,
) -> list[Split]:
    """Return the splits of a protocol.

    Parameters
    ----------
    Y : array-like or sparse of shape (n, q) or (n,)
        Labels, 0 or 1; NaN, or -1 in an int8 matrix, where a label is not observed.
    protocol : mapping
        See :func:`multilab.model_selection.protocol.normalise_protocol`.
    named_splits : mapping of str to (train, test), optional
        The splits that ``{split: name}`` may name: ``Dataset.splits``.
    groups : ndarray of shape (n,), optional
        Group of each row; all rows of a group are on the same side. Folds and holdouts are those of
        `IterativeStratifiedGroupKFold` (of order 1 if the protocol does not stratify), whose sizes are as near to the
        requested ones as the groups allow.

    Raises
    ------
    DatasetError
        If the protocol is malformed or names an unknown split (the known ones are listed), row indices are out of
        range, repeated or in both sets, a set is empty, there are more folds than rows or groups, or a group is on both
        sides.

    Examples
    --------
    >>> from multilab.model_selection import make_splits
    >>> y = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> [split.name for split in make_splits(y, {"kfold": 2, "stratify": 1})]
    ['fold0', 'fold1']
    >>> (split,) = make_splits(y, {"first": 3})
    >>> split.test.tolist()
    [3]
    """
    labels = check_label_matrix(Y)
    n = labels.positive.shape[0]
    plan = normalise_protocol(protocol)
    if "kfold" in plan or "holdout" in plan:
        if groups is not None:
            return list(_grouped(Y, plan, groups))
        return list(_kfold(labels, plan) if "kfold" in plan else _holdout(labels, plan))
    if "split" in plan:
        made = [_named(plan["split"], named_splits or {}, n, plan.get("train_size"))]
    elif "first" in plan:
        rows = np.arange(n, dtype=np.int64)
        made = [_checked(rows[: plan["first"]], rows[plan["first"] :], "first", n)]
    else:
        indices = [{key: np.array(rows, dtype=np.int64) for key, rows in entry.items()} for entry in plan["explicit"]]
        made = [_checked(**entry, name=f"fold{i}", n=n) for i, entry in enumerate(indices)]
    for split in made:
        both: Any = [] if groups is None else np.intersect1d(groups[split.train], groups[split.test])
        if len(both):
            raise DatasetError(
                f"split {split.name}: {len(both)} groups have rows in the training and in the test set: take kfold or "
                "holdout, which keep them together"
            )
    return made


def _kfold(labels: LabelMatrix, plan: Mapping[str, Any]) -> Iterator[Split]:
    folds = plan["kfold"]
    sizes = fold_sizes(labels.positive.shape[0], folds)
    for repeat in range(plan["repeats"]):
        fold_of = _assignment(labels, sizes, plan, repeat)
        for fold in range(folds):
            name = f"fold{fold}" if plan["repeats"] == 1 else f"repeat{repeat}-fold{fold}"
            yield Split(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), name)


def _holdout(labels: LabelMatrix, plan: Mapping[str, Any]) -> Iterator[Split]:
    n = labels.positive.shape[0]
    size = Fraction(plan["holdout"]["train_size"])
    train = int(size * n) if size < 1 else int(size)
    if not 0 < train < n:
        raise DatasetError(f"a training set of {train} of {n} rows leaves one set empty")
    for repeat in range(plan["repeats"]):
        subset = _assignment(labels, [train, n - train], plan, repeat)
        yield Split(np.flatnonzero(subset == 0), np.flatnonzero(subset == 1), f"holdout{repeat}")


def _grouped(Y: Any, plan: Mapping[str, Any], groups: np.ndarray) -> Iterator[Split]:
    """Yield the splits of k folds or of holdouts in which the rows of a group stay together."""
    n, order = len(groups), max(plan["stratify"], 1)
    for repeat in range(plan["repeats"]):
        seed = plan["seed"] + _OTHER_SEED * repeat
        if "kfold" in plan:
            splitter = IterativeStratifiedGroupKFold(plan["kfold"], order=order, random_state=seed)
            for fold, (train, test) in enumerate(splitter.split(None, Y, groups)):
                yield Split(train, test, f"fold{fold}" if plan["repeats"] == 1 else f"repeat{repeat}-fold{fold}")
        else:
            size = Fraction(plan["holdout"]["train_size"])
            train_size = int(size * n) if size < 1 else int(size)
            train, test = train_test_split(
                np.arange(n), train_size=train_size, stratify=Y, groups=groups, order=order, random_state=seed
            )
            yield Split(train, test, f"holdout{repeat}")


def _assignment(labels: LabelMatrix, sizes: list[int], plan: Mapping[str, Any], repeat: int) -> np.ndarray:
    if plan["stratify"]:
        return stratified_assignment(labels, sizes, order=plan["stratify"], seed=plan["seed"], repeat=repeat)
    n = labels.positive.shape[0]
    chosen = np.empty(n, dtype=np.int64)
    chosen[random_permutation(n, plan["seed"], repeat)] = np.repeat(np.arange(len(sizes)), sizes)
    return chosen


def _named(
    name: str, named: Mapping[str, tuple[np.ndarray, np.ndarray]], n: int, train_size: int | None = None
) -> Split:
    if name not in named:
        raise DatasetError(f"there is no split {name!r}; this dataset has: {', '.join(sorted(named)) or 'none'}")
    train, test = (np.asarray(rows, dtype=np.int64) for rows in named[name])
    if train_size is None:
        return _checked(train, test, name, n)
    rows = np.concatenate([train, test])
    return _checked(rows[:train_size], rows[train_size:], f"{name}-{train_size}", n)


def _checked(train: np.ndarray, test: np.ndarray, name: str, n: int) -> Split:
    """Return the split if its rows exist and occur once, and neither set is empty."""
    both = np.concatenate([train, test])
    if len(train) == 0 or len(test) == 0:
        raise DatasetError(f"split {name}: {len(train)} training and {len(test)} test rows; neither may be empty")
    if both.min() < 0 or both.max() >= n:
        raise DatasetError(
            f"split {name}: row {both[(both < 0) | (both >= n)][0]} does not exist (rows are 0..{n - 1})"
        )
    if len(np.unique(both)) != len(both):
        raise DatasetError(f"split {name}: a row occurs twice, or in the training and in the test set")
    return Split(train, test, name)
