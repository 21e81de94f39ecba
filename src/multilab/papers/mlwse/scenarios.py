"""Fig. 2 of the MLWSE paper: the four scenarios, points and true curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.datasets.synthetic import sample_scenario, scenario_curve, scenario_threshold

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "scenarios"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return points and curve of a scenario, with the threshold that makes classes of real values."""
    made = {name: value for name, value in (unit.generator or {}).items() if name != "name"}
    sample = sample_scenario(**made)
    x = np.linspace(-4, 4, 401)
    f = scenario_curve(made["k"], x)
    count = len(sample.X)
    return {
        "kind": ["point"] * count + ["curve"] * len(x),
        "x": np.round([*sample.X[:, 0], *x], 6).tolist(),
        "y": np.round([*sample.y_real, *f], 6).tolist(),
        "threshold": [round(scenario_threshold(made["k"], made.get("threshold", "median")), 6)] * (count + len(x)),
    }


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one repetition only."""
    return rows[["dataset", "kind", "x", "y", "threshold"]]
