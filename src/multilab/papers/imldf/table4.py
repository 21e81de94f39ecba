"""Table 4 of the iMLDF paper: what cascades of a given depth, and a forest, cost to train, to ask and to store."""

from __future__ import annotations

import pickle
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells.errors import ExperimentError
from multilab.cells.fit_costs import Meter, model_bytes
from multilab.cells.method import build
from multilab.cells.running import scaled_rows
from multilab.cells.seeds import seed_estimator
from multilab.methods.forests.compact_forest import CompactForest

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "scores-table4"
MEASURES_TIME = True
RESULTS_VERSION = 2  # processor seconds, and all methods measured anew, side by side in time
_REPEATS = 5


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return seconds and megabytes of one method on one split.

    ``settings.layers`` has the number of layers by dataset, all grown and used; ``settings.fewer`` that of a second
    run of which only the storage is measured; ``settings.n_jobs`` the threads that every method is fitted with.
    ``train_time_s`` is of one fit, ``test_time_s`` the median of five predictions of the test rows on one thread, by
    one cascade. ``train_cpu_s`` and ``test_cpu_s`` are the processor's seconds of the same: on an idle machine
    ``test_cpu_s`` is as large as ``test_time_s``, on one that other work shares it is less.

    ``storage_mb`` is what a dump without compression writes where trees are kept as scikit-learn's classifiers keep
    them, which is what the paper's numbers are about; ``compact_mb`` is the dump of the model as it is here. Dumps are
    counted, not written.

    For a model with regions ``without_inner_forests`` is the largest difference between its scores and those of a copy
    made of what is stored, and ``stored_trees`` are the trees in it. ``memory_mb`` is the peak of the fit.
    """
    if unit.cell is None:
        raise ExperimentError("the analysis table4 is of methods: name them")
    inputs = scaled_rows(unit.cell, store)
    rows: list[tuple[str, float]] = []
    for suffix, layers in _depths(unit):
        method = unit.cell.method
        if "n_layers" in method.params:
            method = method.with_params({"n_layers": layers, "early_stopping": False, "measure": "ranking_loss"})
        estimator = seed_estimator(build(method), unit.cell.seed, unit.dataset, str(unit.split), method.seed_name)
        estimator.set_params(n_jobs=unit.settings.get("n_jobs", 1))
        began = time.process_time()
        with Meter() as fit:
            estimator.fit(inputs.X_train, inputs.Y_train)
        fit_cpu = time.process_time() - began
        estimator.set_params(n_jobs=1)
        compact = model_bytes(estimator)
        forests = estimator.forests_
        plain = compact - sum(map(model_bytes, forests)) + sum(map(plain_bytes, forests))
        rows += [(f"storage_mb{suffix}", plain / 1e6), (f"compact_mb{suffix}", compact / 1e6)]
        if suffix:
            continue
        wall, cpu = _predict_seconds(estimator, inputs.X_test)
        rows += [("train_time_s", fit.seconds), ("test_time_s", wall), ("train_cpu_s", fit_cpu), ("test_cpu_s", cpu)]
        rows += [("memory_mb", fit.peak_mb), ("layers", float(layers))]
        if hasattr(estimator, "regions_"):
            copy = pickle.loads(pickle.dumps(estimator, protocol=5))
            apart = np.abs(copy.predict_proba(inputs.X_test) - estimator.predict_proba(inputs.X_test)).max()
            rows += [("without_inner_forests", float(apart))]
            rows += [("stored_trees", float(sum(forest.n_trees for forest in copy.forests_)))]
    return {"metric": [name for name, _ in rows], "value": [value for _, value in rows]}


def _depths(unit: Unit) -> list[tuple[str, int]]:
    """Return what is measured: the suffix of its names and the number of layers."""
    layers, fewer = unit.settings["layers"][unit.dataset], unit.settings.get("fewer", {}).get(unit.dataset)
    return [("", layers), *([(f"[{fewer} layers]", fewer)] if fewer else [])]


def _predict_seconds(estimator: Any, X: Any) -> tuple[float, float]:
    """Return the medians of the seconds by the clock and by the processor."""
    taken = []
    for _ in range(_REPEATS):
        began, busy = time.perf_counter(), time.process_time()
        estimator.predict_proba(X)
        taken.append((time.perf_counter() - began, time.process_time() - busy))
    wall, cpu = zip(*taken, strict=True)
    return statistics.median(wall), statistics.median(cpu)


def plain_bytes(forest: CompactForest) -> int:
    """Return how many bytes the trees take as scikit-learn's classifiers keep them, without what is around a tree."""
    classes = [2] * len(forest.varied)
    return sum(model_bytes(forest.tree(index, classes)) for index in range(forest.n_trees))


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return long scores of the form of ``scores.csv.gz``."""
    return rows[["dataset", "split", "method", "metric", "value"]]
