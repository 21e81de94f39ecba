"""Metrics of one cell from its stored scores, kept in the store: adding a metric never retrains.

They are kept with the digest of the arrays, because a result may be replaced by another one of the same key.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from multilab.cells.cell import Cell
from multilab.cells.loaded_data import loaded_dataset
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.core import formulas_digest, json_digest, outside_code, read_sealed, write_sealed
from multilab.metrics import METRICS, score_all

__all__ = ["cell_metrics", "evaluate_cell", "kept_metrics", "labels_of", "outdated_metrics"]


def cell_metrics(cell: Cell, store: Store, conventions: str = "default") -> dict[str, float]:
    """Return all metrics of a finished train cell, each computed once in the life of a store."""
    file = _metrics_file(cell.key, store, conventions)
    values = _kept(file, cell.key, store)
    if values is None:
        values = evaluate_cell(cell, store, conventions)
        with contextlib.suppress(OSError):  # a store that may only be read
            numbers = {name: float(value) for name, value in values.items()}
            content = {"arrays": store.arrays_digest(cell.key), "metrics": numbers}
            write_sealed(file, content)
    return values


def kept_metrics(key: str, store: Store, conventions: str = "default") -> dict[str, float] | None:
    """Return the metrics of a cell that the store keeps from an earlier evaluation, ``None`` if there are none."""
    return _kept(_metrics_file(key, store, conventions), key, store)


def _kept(file: Path, key: str, store: Store) -> dict[str, float] | None:
    try:
        kept = read_sealed(file)
        metrics: dict[str, float] | None = kept["metrics"] if kept["arrays"] == store.arrays_digest(key) else None
        return metrics
    except (OSError, ValueError):
        return None


def _metrics_file(key: str, store: Store, conventions: str) -> Path:
    """Return the file of kept metrics: under the digest of the code that computes them, so that none is out of date."""
    return store.root / ".metrics" / f"{conventions}-{_code()}" / f"{key}.json"


def outdated_metrics(store: Store) -> list[Path]:
    """Return the folders of metrics that other code computed, which are not read any more."""
    current = f"-{_code()}"
    return [folder for folder in sorted(store.root.glob(".metrics/*")) if not folder.name.endswith(current)]


def _code() -> str:
    """Return the digest of the files of formulas, and of the user's files that define a metric."""
    every = (f"{one.formula.__module__}.{name}" for name, one in METRICS.items())
    own = [name for name in every if not name.startswith("multilab.")]
    files = sorted(outside_code(own).files.values()) if own else []
    return _digest_with(tuple(files))


@functools.lru_cache
def _digest_with(files: tuple[str, ...]) -> str:
    return json_digest([formulas_digest("cells/cell_metrics.py"), files])[:16]


def evaluate_cell(
    cell: Cell, store: Store, conventions: str = "default", extra: Iterable[tuple[str, str]] = ()
) -> dict[str, float]:
    """Return all metrics of one finished train cell.

    ``extra`` are (metric, preset) pairs: ``ranking_loss.mulan`` is the ranking loss under the preset ``mulan``. A
    metric of a paper comes with the preset ``conventions`` itself. Where a method predicts for single metrics, each of
    these is taken from its own prediction.
    """
    Y, arrays = labels_of(cell), store.arrays(cell.key)
    extra = tuple(extra)
    presets = [conventions, *{preset for _, preset in extra} - {conventions}]
    names = [*METRICS, *(metric for metric, _ in extra if metric not in METRICS)]

    def score(suffix: str) -> dict[str, dict[str, float]]:
        scores, decisions = arrays[f"scores{suffix}"], arrays[f"decisions{suffix}"]
        return {preset: score_all(Y, scores, decisions, conventions=preset, metrics=names) for preset in presets}

    results = score("")
    for measure in (name.partition(".")[2] for name in arrays if name.startswith("scores.")):
        for preset, values in score(f".{measure}").items():
            results[preset][measure] = values[measure]
    others = {f"{metric}.{preset}": results[preset][metric] for metric, preset in extra if preset != conventions}
    return results[conventions] | others


def labels_of(cell: Cell) -> np.ndarray:
    """Return the labels of the test rows of a cell."""
    ref = cell.split_ref
    labels: np.ndarray = loaded_dataset(ref.dataset, ref.dataset_digest).Y[indices(ref)[1]]
    return labels
