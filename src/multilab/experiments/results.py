"""From stored cells to tables of numbers.

Metrics are computed from the stored scores, so adding a metric never retrains.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from multilab.experiments.cells import Cell
from multilab.experiments.settings import Study
from multilab.experiments.store import Store

if TYPE_CHECKING:  # every train stage imports this file, and needs neither
    import numpy as np
    import pandas as pd

__all__ = ["MEASURED", "dataset_facts", "evaluate", "evaluate_cell", "learned", "manifest", "measured", "tuned"]

MEASURED = ("fit_seconds", "input_seconds", "predict_seconds", "peak_mb", "model_bytes")
"""What is measured of a cell; ``input_seconds`` went into fitting the cells it reads."""


def manifest(cells: Sequence[Cell], store: Store) -> str:
    """Return what a stage made, as JSON: per cell its place, key and the sha256 of its arrays. No times."""
    rows = [
        {
            "dataset": cell.part.dataset,
            "split": cell.part.split,
            "method": cell.method.name,
            "kind": cell.kind,
            "key": cell.key,
            "arrays": (store.digests(cell.key) or {}).get("arrays.npz"),
        }
        for cell in cells
    ]
    return json.dumps(rows, indent=1)


def evaluate_cell(cell: Cell, store: Store, conventions: str = "default", paper: str | None = None) -> dict[str, float]:
    """Return all metrics of one finished train cell.

    With a paper, also those it prints under other conventions: ``ranking_loss.mulan`` is the ranking loss under the
    preset ``mulan``. Where a method predicts for single metrics, each of these is taken from its own prediction.
    """
    from multilab.claims import quantities
    from multilab.datasets import load
    from multilab.experiments.running import indices
    from multilab.metrics import score_all

    _, test = indices(cell.part)
    Y, arrays = load(cell.part.dataset).Y[test], store.arrays(cell.key)
    wanted = quantities(paper, cell.method.name, conventions) if paper else []
    presets = [conventions, *{preset for _, preset in wanted}]

    def scored(suffix: str) -> dict[str, dict[str, float]]:
        asked = Y, arrays[f"scores{suffix}"], arrays[f"decisions{suffix}"]
        return {preset: score_all(*asked, conventions=preset) for preset in presets}

    found = scored("")
    for measure in (name.partition(".")[2] for name in arrays if name.startswith("scores.")):
        for preset, values in scored(f".{measure}").items():
            found[preset][measure] = values[measure]
    return found[conventions] | {f"{metric}.{preset}": found[preset][metric] for metric, preset in wanted}


def evaluate(study: Study, cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return every (dataset, split, method, metric) of a study's cells in a fixed order, with the cell key."""
    import pandas as pd

    known: dict[tuple[str, str], dict[str, float]] = {}  # one cell may stand for many repetitions, and in many columns
    rows = []
    for cell in cells:
        asked = cell.key, cell.method.name
        if asked not in known:
            known[asked] = evaluate_cell(cell, store, study.conventions, study.paper)
        place = study.name, cell.part.dataset, cell.part.split, cell.method.name
        rows += [(*place, metric, value, cell.key) for metric, value in known[asked].items()]
    return pd.DataFrame(rows, columns=["study", "dataset", "split", "method", "metric", "value", "key"])


def measured(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return seconds, memory and model size of cells."""
    import pandas as pd

    rows = []
    for cell in cells:
        record = store.record(cell.key)
        numbers = [record.get(name, math.nan) for name in MEASURED]
        rows.append((cell.part.dataset, cell.part.split, cell.method.name, *numbers, record["alone"], cell.key))
    return pd.DataFrame(rows, columns=["dataset", "split", "method", *MEASURED, "alone", "key"])


def tuned(cells: Iterable[Cell], store: Store) -> pd.DataFrame:
    """Return what the searches of tuned cells chose, a row per argument.

    A search whose result stands for all repetitions is told once. ``value`` is JSON, as in the ``trials.csv`` kept with
    the cell; ``metric`` and ``best`` are what was optimised and its best mean over the inner folds; ``tune_seconds`` is
    for the whole search.
    """
    import pandas as pd

    from multilab.metrics import METRICS

    rows, told = [], set()
    for cell in cells:
        record, asked = store.record(cell.key), (cell.key, cell.method.name)
        if "tuned" not in record or asked in told:
            continue
        told.add(asked)
        trials = pd.read_csv(store.path(cell.key) / "trials.csv", float_precision="round_trip")
        metric = str(trials.columns[-1])
        best = trials[metric].agg(METRICS[metric].direction)
        place = cell.part.dataset, cell.part.split, cell.method.name
        for name, value in sorted(record["tuned"].items()):
            rows.append((*place, name, json.dumps(value), metric, best, record["tune_seconds"]))
    columns = ["dataset", "split", "method", "parameter", "value", "metric", "best", "tune_seconds"]
    return pd.DataFrame(rows, columns=columns)


def learned(cell: Cell, store: Store) -> dict[str, np.ndarray]:
    """Return what a cell's estimator learned (the attributes its YAML names under ``keep``)."""
    arrays = store.arrays(cell.key)
    return {name.removeprefix("learned_"): a for name, a in arrays.items() if name.startswith("learned_")}


def dataset_facts(name: str) -> dict[str, Any]:
    """Return what a report says of a dataset, from its prepared data."""
    from multilab.datasets import prepared_meta

    meta = prepared_meta(name) or {}
    left_out = ("label_names", "feature_names", "files")
    return {"name": name, **{key: value for key, value in meta.items() if key not in left_out}}
