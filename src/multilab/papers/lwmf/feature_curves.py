"""Figs. 3 to 6 of the LWMF paper: metrics over the number of features, in the order a selector ranks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.methods.neighbours.feature_path import mlknn_path
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.metrics import score_all

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "feature_curves"
READS_CELL = True


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return metrics of ML-kNN on the first features of the ranking that the unit's cell has stored.

    Settings are ``metrics``, ``conventions`` (a preset of them), ``points`` (how many numbers of features, evenly
    spread up to all), ``beyond``, and ``order``: "ranking" (default), or "columns" for the features that the method
    keeps in the order of their columns, then the others. The number of features that the method keeps is a point too,
    with ``kept`` true; without ``beyond`` it is the last.

    Raises
    ------
    ExperimentError
        If the method is not a selector before ML-kNN on features as they are.
    """
    assert unit.cell is not None
    classifier = getattr(build(unit.cell.method), "named_steps", {}).get("classify")
    running.ensure(unit.cell, store)
    stored = store.arrays(unit.cell.key)
    if (
        not isinstance(classifier, MLkNN)
        or (classifier.exclude_self, classifier.scale) != (True, None)
        or "learned_select__ranking_" not in stored
    ):
        raise ExperimentError(
            f"{unit.label}: expected steps select, classify with ML-kNN, and keep: [select__ranking_]"
        )
    inputs = running.scaled_rows(unit.cell, store)
    support = stored["learned_select__support_"].astype(bool)
    by_columns = unit.settings.get("order", "ranking") == "columns"
    order = np.argsort(~support if by_columns else stored["learned_select__ranking_"], kind="stable")
    kept = int(support.sum())
    numbers = counts(len(order), kept, unit.settings["points"], unit.settings["beyond"])
    names, preset = unit.settings["metrics"], unit.settings["conventions"]
    path = mlknn_path(inputs.X_train, inputs.Y_train, inputs.X_test, order, numbers, classifier.k, classifier.s)
    rows: dict[str, list[Any]] = {"features": [], "kept": [], "metric": [], "value": []}
    for number, scores in zip(numbers, path, strict=True):
        values = score_all(inputs.Y_test, scores, conventions=preset)
        for name in names:
            for column, entry in zip(rows, (number, number == kept, name, values[name]), strict=True):
                rows[column].append(entry)
    return rows


def counts(features: int, kept: int, points: int, beyond: bool) -> list[int]:
    """Return the numbers of features of a curve."""
    spread = {max(1, round(features * i / points)) for i in range(1, points + 1)} | {kept}
    return sorted(number for number in spread if beyond or number <= kept)


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits."""
    by = ["method", "dataset", "metric", "features", "kept"]
    return rows.drop(columns="split").groupby(by, sort=False).mean().reset_index()
