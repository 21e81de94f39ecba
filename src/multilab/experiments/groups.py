"""Inner folds of a training set whose rows have groups: the rows of a group are never on both sides.

An inner fold is a split like any other, of a protocol that names the training set it is `within`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from multilab import datasets
from multilab.core import canonical_json
from multilab.experiments.cells import Cell, SplitRef, split_refs
from multilab.experiments.errors import ExperimentError
from multilab.experiments.fit_costs import one_thread
from multilab.experiments.fitting import CellInputs, indices, seeded_estimator
from multilab.experiments.method import Method
from multilab.experiments.seeds import seed_for
from multilab.experiments.study import Tuning
from multilab.methods.out_of_fold import out_of_fold_scores
from multilab.model_selection.group_kfold import IterativeStratifiedGroupKFold

__all__ = ["GroupFolds", "forget_groups", "inner_cells", "out_of_fold", "outer_ref", "with_grouped_decisions"]

RESULTS_VERSION = 2  # 2: a search on grouped rows sees no label that `observed` hides
_DECISIONS = re.compile(r"multilab\.decision\..*\b(TunedThreshold|CalibratedMultiLabel)Classifier")
_FOLDS = 5  # their default


class GroupFolds:  # a data class would be settings to Hydra
    """Splitter of rows with given groups."""

    def __init__(self, n_splits: int, groups: np.ndarray, order: int = 1, random_state: int = 0) -> None:
        self.n_splits = n_splits
        self.groups = groups
        self.order = order
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield training and test rows of each fold."""
        folds = IterativeStratifiedGroupKFold(self.n_splits, order=self.order, random_state=self.random_state)
        yield from folds.split(None, y, self.groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits


def inner_cells(cell: Cell, tuning: Tuning) -> list[Cell]:
    """Return `multilab.experiments.fitting.inner_cells` of grouped rows."""
    ref = cell.split_ref
    seed = seed_for(cell.seed, ref.dataset_digest, ref.digest, "search folds of groups")
    within = {"protocol": json.loads(ref.protocol), "split": ref.split}
    protocol = {"kfold": tuning.folds, "stratify": tuning.order, "seed": seed, "within": within}
    return [
        replace(cell, split_ref=replace(inner, repetition=ref.repetition), tune=None, alone=False)
        for inner in split_refs(ref.dataset, protocol)
    ]


def out_of_fold(cell: Cell, inputs: CellInputs, fit: AbstractContextManager[Any]) -> np.ndarray:
    """Return `multilab.experiments.fitting.out_of_fold` of grouped rows."""
    inner_cv = cell.method.inner_cv
    seed = seed_for(cell.seed, cell.split_ref.dataset_digest, cell.split_ref.digest, "inner folds of groups")
    folds = GroupFolds(inner_cv["folds"], _groups(cell.split_ref), inner_cv["order"], seed)
    estimator = seeded_estimator(cell.method, cell)
    with one_thread(), fit:
        parts = list(folds.split(None, inputs.Y_train))
        return out_of_fold_scores(estimator, inputs.X_train, inputs.Y_train, parts)


def with_grouped_decisions(cell: Cell, method: Method) -> Method:
    """Return a method whose tuned decisions, if any, use folds of groups.

    Raises
    ------
    ExperimentError
        The arguments of such a method are searched: a trial is fitted on other rows than those of the cell.
    """
    params = _grouped({"_target_": method.target, **method.params}, _groups(cell.split_ref))
    params.pop("_target_")
    if not any(isinstance(value, GroupFolds) for value in _leaves(params)):
        return method
    if cell.tune:
        raise ExperimentError(
            "rows with groups: a search over a method with tuned decisions is not there; tune without decisions first"
        )
    return replace(method, params=params)


def forget_groups(estimator: Any) -> None:
    """Restore the numbers of folds in a fitted estimator, so a saved model contains no groups."""
    for name, value in estimator.get_params().items():
        if isinstance(value, GroupFolds):
            estimator.set_params(**{name: value.n_splits})


def outer_ref(ref: SplitRef) -> SplitRef:
    """Return the split whose training set contains an inner fold; return any other split unchanged."""
    while within := json.loads(ref.protocol).get("within"):
        ref = replace(ref, protocol=canonical_json(within["protocol"]), split=within["split"])
    return replace(ref, inner=None, digest="")


def _grouped(params: Mapping[str, Any], groups: np.ndarray) -> dict[str, Any]:
    """Return arguments in which numbers of folds of the classes in `multilab.decision` are splitters."""
    changed = {}
    for name, value in params.items():
        changed[name] = _grouped(value, groups) if isinstance(value, Mapping) else value
    if _DECISIONS.fullmatch(str(params.get("_target_", ""))) and isinstance(params.get("cv", _FOLDS), int):
        changed["cv"] = GroupFolds(params.get("cv", _FOLDS), groups)
    return changed


def _leaves(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        yield from _leaves(value) if isinstance(value, Mapping) else [value]


def _groups(ref: SplitRef) -> np.ndarray:
    """Return the groups of the training rows of a split."""
    groups: np.ndarray = _dataset_groups(ref.dataset, ref.dataset_digest)
    return groups[indices(ref)[0]]


@functools.lru_cache(maxsize=2)
def _dataset_groups(name: str, digest: str) -> Any:
    return datasets.load(name).groups
