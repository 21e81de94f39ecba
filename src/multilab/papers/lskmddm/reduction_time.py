# Part of the key of analyses: an edit of code (not of comments or docstrings) recomputes those that use it.
"""Fig. 4 of the LSkMDDM paper: what a reducer costs over the number of training instances, the kernel matrix given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.experiments import running
from multilab.methods.reduction.kernel_reducer import training_kernel
from multilab.papers.lskmddm.reducers import reducer_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.experiments.analyses import Unit
    from multilab.experiments.store import Store

FILE = "reduction_time"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the processor seconds from kernel matrix to coefficients for the first n training rows, per n.

    Settings: ``sizes``, ``repeats`` (the median counts), ``set`` (arguments of the reducer) and ``variant``, what to
    call it then.
    """
    assert unit.cell is not None
    inputs, settings = running.gather(unit.cell, store), unit.settings
    reducer = reducer_of(unit)[0].set_params(**settings.get("set", {}))
    seconds = []
    for n in settings["sizes"]:
        X, Y = inputs.X_train[:n], inputs.Y_train[:n]
        K, _ = training_kernel(X, reducer.gamma, reducer.gamma_factor)
        taken = []
        for _ in range(settings["repeats"]):
            began = time.process_time()
            reducer.coefficients(K, X, Y)
            taken.append(time.process_time() - began)
        seconds.append(float(np.median(taken)))
    return {"variant": [settings["variant"]] * len(seconds), "n": list(settings["sizes"]), "seconds": seconds}


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; the slope is that of the logarithms, by least squares over a variant's sizes."""

    def slope(curve: pd.DataFrame) -> float:
        return float(np.polyfit(np.log(curve["n"]), np.log(curve["seconds"]), 1)[0])

    by = ["method", "variant", "dataset"]
    slopes = rows.groupby(by, sort=False)[["n", "seconds"]].apply(slope).rename("slope")
    return rows.drop(columns="split").merge(slopes.reset_index(), on=by)[[*by, "n", "seconds", "slope"]]
