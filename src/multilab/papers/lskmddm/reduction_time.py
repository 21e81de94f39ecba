"""Fig. 4 of the LSkMDDM paper: what a reducer costs over the number of training instances, the kernel matrix given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running
from multilab.methods.reduction.kernel_mddm import KernelMDDM
from multilab.methods.reduction.kernel_reducer import training_kernel
from multilab.methods.reduction.ls_kernel_mddm import LSKernelMDDM
from multilab.papers.lskmddm.reducers import reducer_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "reduction_time"
MEASURES_TIME = True

_REDUCERS = {"kmddm": KernelMDDM, "lskmddm": LSKernelMDDM}


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the processor seconds from kernel matrix to coefficients of the first n training rows, per variant and n.

    Settings: ``sizes``, ``variants`` (by name ``of``, a reducer, and its arguments) and ``repeats``; their median
    counts. The variants take turns, so that other work on the machine meets all of them.
    """
    assert unit.cell is not None
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    shared = reducer_of(unit)[0]
    reducers = {
        name: _REDUCERS[about["of"]](**{key: value for key, value in about.items() if key != "of"})
        for name, about in settings["variants"].items()
    }
    rows: dict[str, list[Any]] = {"variant": [], "n": [], "seconds": []}
    for n in settings["sizes"]:
        X, Y = inputs.X_train[:n], inputs.Y_train[:n]
        K, _ = training_kernel(X, shared.gamma, shared.gamma_factor)
        taken: dict[str, list[float]] = {name: [] for name in reducers}
        for _ in range(settings["repeats"]):
            for name, reducer in reducers.items():
                began = time.process_time()
                reducer.coefficients(K, X, Y)
                taken[name].append(time.process_time() - began)
        for name, seconds in taken.items():
            for column, value in zip(rows, (name, n, float(np.median(seconds))), strict=True):
                rows[column].append(value)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; the slope is that of the logarithms, by least squares over a variant's sizes."""

    def slope(curve: pd.DataFrame) -> float:
        return float(np.polyfit(np.log(curve["n"]), np.log(curve["seconds"]), 1)[0])

    by = ["method", "variant", "dataset"]
    slopes = rows.groupby(by, sort=False)[["n", "seconds"]].apply(slope).rename("slope")
    return rows.drop(columns="split").merge(slopes.reset_index(), on=by)[[*by, "n", "seconds", "slope"]]
