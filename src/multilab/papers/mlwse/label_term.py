"""Conclusion 3 of the MLWSE paper: processor seconds to learn the weights, with the label term and without it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from multilab.cells import running
from multilab.cells.method import build

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "label_term"
MEASURES_TIME = True


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the processor seconds of a fit at the method's beta and at beta = 0, the medians of ``repeats`` runs.

    The two take turns, so that other work on the machine meets both alike.
    """
    assert unit.cell is not None
    inputs, model = running.scaled_rows(unit.cell, store), build(unit.cell.method)
    taken: dict[float, list[float]] = {model.beta: [], 0.0: []}
    for _ in range(unit.settings["repeats"]):
        for beta, seconds in taken.items():
            estimator = clone(model).set_params(beta=beta)
            began = time.process_time()
            estimator.fit(inputs.X_train, inputs.Y_train)
            seconds.append(time.process_time() - began)
    return {"beta": list(taken), "seconds": [float(np.median(seconds)) for seconds in taken.values()]}


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "beta", "seconds"]]
