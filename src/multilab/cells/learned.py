"""Arrays that methods learn, with the names of their axes: what runs show besides numbers.

A fit stores those of :data:`_LEARNED` in a file of their own next to the arrays of its cell, in addition to the
attributes that a YAML names. These are in the key of a cell; the table here is not, so that it may grow: a result that
was computed before has no such file, and stays valid.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from multilab.cells.pipeline import MethodPipeline
from multilab.cells.store import Store
from multilab.core.array_files import check_npz, unpacked_room

__all__ = ["FILE", "LEFT_OUT", "Axes", "axes_of", "learned_file", "read_learned"]

FILE = "learned.npz"

LEFT_OUT = "learned_left_out"
"""Entry of a record: the arrays that are too large to keep, with their shapes."""

_MOST_BYTES = 2 * 2**20  # of an array: kernel coefficients of 10,000 rows and 26 labels

Axes = tuple[str, ...]

_LEARNED: dict[str, dict[str, Axes]] = {
    "MLWSE": {"W_": ("score", "label"), "label_affinity_": ("label", "label")},
    "StackedMLWSE": {"W_": ("score", "label"), "label_affinity_": ("label", "label")},
    "ElasticNetKernelELM": {"coef_": ("training row", "label")},
    "KernelReducer": {"coef_": ("training row", "projection")},
    "RankingSelector": {"scores_": ("feature",), "ranking_": ("feature",)},
    "MDDMSelector": {"components_": ("feature", "projection")},
    "LWMF": {"label_weights_": ("label",)},
    "IMLDF": {
        "region_label_shares_": ("region", "label"),
        "region_above_": ("region", "feature"),
        "region_below_": ("region", "feature"),
    },
}
"""Axes of the learned arrays by class, for its subclasses too."""


def _components(selector: Any, X: Any, Y: np.ndarray) -> np.ndarray:
    from multilab.methods.reduction.mddm import dependence_directions

    return dependence_directions(X, Y, selector.variant, selector.mu)[1]


def _regions(side: bool) -> Callable[..., np.ndarray | None]:
    """Return the function that gives the thresholds that each region of the first layer has on one side."""

    def thresholds(forest: Any, *_: Any) -> np.ndarray | None:
        if not forest.regions_:
            return None
        first = forest.regions_[0][0]  # of the first fold; its columns are features
        table = np.full((len(first), forest.n_features_in_), np.nan)
        region = np.repeat(np.arange(len(first)), np.diff(first.starts))
        chosen = first.above == side
        table[region[chosen], first.columns[chosen]] = first.thresholds[chosen]
        return table

    return thresholds


_MADE: dict[tuple[str, str], Callable[..., np.ndarray | None]] = {
    ("StackedMLWSE", "W_"): lambda model, *_: model.final_estimator_.W_,
    ("StackedMLWSE", "label_affinity_"): lambda model, *_: model.final_estimator_.label_affinity_,
    ("ElasticNetKernelELM", "coef_"): lambda model, *_: model.coef_[:, model.column_],
    ("MDDMSelector", "components_"): _components,
    ("IMLDF", "region_label_shares_"): lambda model, *_: model.regions_[0][0].labels if model.regions_ else None,
    ("IMLDF", "region_above_"): _regions(True),
    ("IMLDF", "region_below_"): _regions(False),
}
"""Arrays that are no attribute: functions of the fitted step, its rows and their labels."""


def _declared(model: MethodPipeline) -> Iterable[tuple[str, Any, str, str, Axes]]:
    """Yield the step, the name of an array as in `MethodPipeline.learned`, its class and attribute, and its axes."""
    for step_name, step in model.named_steps.items():
        prefix = "" if step is model.classifier else f"{step_name}__"
        for kind in (kind.__name__ for kind in type(step).__mro__):
            for attribute, axes in _LEARNED.get(kind, {}).items():
                yield prefix + attribute, step, kind, attribute, axes


def axes_of(model: MethodPipeline) -> dict[str, Axes]:
    """Return the names of the axes of what a method learns, by the name of the array."""
    return {name: axes for name, *_, axes in _declared(model)}


def learned_file(
    model: MethodPipeline, X: Any, Y: np.ndarray, kept: Iterable[str]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return what a fitted estimator learned as a file of its cell, and what the record says of what is too large.

    Parameters
    ----------
    model : MethodPipeline
    X, Y : array
        The training rows.
    kept : iterable of str
        Arrays that the cell has anyway.
    """
    arrays: dict[str, Any] = {}
    for name, step, kind, attribute, _ in _declared(model):
        if name in kept:
            continue
        if make := _MADE.get((kind, attribute)):
            value = make(step, _rows_of(model, step, X), Y)
        else:
            value = getattr(step, attribute, None)
        if value is not None:
            arrays[name] = np.asarray(value)
    large = {name: list(array.shape) for name, array in arrays.items() if array.nbytes > _MOST_BYTES}
    arrays = {name: array for name, array in arrays.items() if name not in large}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return {FILE: buffer.getvalue()} if arrays else {}, {LEFT_OUT: large} if large else {}


def _rows_of(model: MethodPipeline, step: Any, X: Any) -> Any:
    """Return the rows that a step was fitted to."""
    for other in model.named_steps.values():
        if other is step:
            return X
        X = other.transform(X)
    return X


def read_learned(store: Store, key: str) -> dict[str, np.ndarray]:
    """Return the learned arrays of a finished cell by name: those that its YAML names, and those of its file."""
    start = "learned_"
    arrays = {name.removeprefix(start): a for name, a in store.arrays(key).items() if name.startswith(start)}
    path = store.path(key) / FILE
    if path.is_file():
        content = path.read_bytes()
        check_npz(content, unpacked_room(len(content)))
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays |= {name: stored[name] for name in stored.files}
    return arrays
