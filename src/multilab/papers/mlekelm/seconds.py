"""Table 9 of the ML-EKELM paper: processor seconds to train and to test, measured one method at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "seconds"
MEASURES_TIME = True


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the processor seconds to fit and to predict, the median of ``repeats`` runs.

    Processor seconds of one thread, not seconds of the clock: other work on the machine counts little.
    """
    assert unit.cell is not None
    inputs, taken = running.scaled_rows(unit.cell, store), []
    for _ in range(unit.settings["repeats"]):
        _, estimator = running.estimator_of_cell(unit.cell).label_free()
        began = time.process_time()
        estimator.fit(inputs.X_train, inputs.Y_train)
        estimator.predict(inputs.X_test)
        taken.append(time.process_time() - began)
    return {"seconds": [float(np.median(taken))]}


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "seconds"]]
