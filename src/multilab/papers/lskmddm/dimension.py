"""Figs. 1 to 3 of the LSkMDDM paper: metrics over the number of dimensions that a reducer leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilab.cells import running
from multilab.metrics import score_all
from multilab.papers.lskmddm.reducers import reducer_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "dimension"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return ``settings.metrics`` of a reducer and its classifier for each number in ``settings.dimensions``.

    There are no more dimensions than the labels or the method allow; larger numbers are left out.
    """
    assert unit.cell is not None
    reducer, classifier = reducer_of(unit)
    inputs = running.scaled_rows(unit.cell, store)
    metrics = list(unit.settings["metrics"])
    rows: dict[str, list[Any]] = {"dimension": [], "metric": [], "value": []}
    counts = sorted(map(int, unit.settings["dimensions"]))
    made = reducer.embeddings(inputs.X_train, inputs.Y_train, inputs.X_test, counts)
    for count, (Z, Z_test) in zip(counts, made, strict=True):
        if Z.shape[1] < count:
            break
        scores, decisions = classifier.fit(Z, inputs.Y_train).predict_with_scores(Z_test)
        values = score_all(inputs.Y_test, scores, decisions)
        for metric in metrics:
            for name, entry in zip(rows, (count, metric, values[metric]), strict=True):
                rows[name].append(entry)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values of all splits; a number of dimensions that not every split reaches is left out."""
    splits = rows.groupby(["method", "dataset"])["split"].transform("nunique")
    complete = rows.groupby(["method", "dataset", "dimension", "metric"])["split"].transform("nunique") == splits
    return rows.loc[complete, ["method", "dataset", "split", "dimension", "metric", "value"]].reset_index(drop=True)
