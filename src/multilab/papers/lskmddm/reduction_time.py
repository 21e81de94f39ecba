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
RESULTS_VERSION = 2

_REDUCERS = {"kmddm": KernelMDDM, "lskmddm": LSKernelMDDM}


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the processor seconds from kernel matrix to coefficients of the first n training rows, by variant and n.

    Settings: ``sizes``, ``variants`` (by name ``of``, a reducer, and its arguments) and ``repeats``; all of them are
    returned. The variants take turns, so that other work on the machine meets all of them. Without sizes, n is the
    number of training rows.
    """
    assert unit.cell is not None
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    shared = reducer_of(unit)[0]
    reducers = {
        name: _REDUCERS[about["of"]](**{key: value for key, value in about.items() if key != "of"})
        for name, about in settings["variants"].items()
    }
    rows: dict[str, list[Any]] = {"variant": [], "n": [], "seconds": []}
    for n in settings.get("sizes", [len(inputs.Y_train)]):
        X, Y = inputs.X_train[:n], inputs.Y_train[:n]
        K, _ = training_kernel(X, shared.gamma, shared.gamma_factor)
        for _ in range(settings["repeats"]):
            for name, reducer in reducers.items():
                began = time.process_time()
                reducer.coefficients(K, X, Y)
                for column, value in zip(rows, (name, n, time.process_time() - began), strict=True):
                    rows[column].append(value)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the median of the repeats, the fastest and the slowest, and a slope.

    The slope is that of the logarithms, by least squares over a variant's sizes.
    """

    def slope(curve: pd.DataFrame) -> float:
        return float(np.polyfit(np.log(curve["n"]), np.log(curve["seconds"]), 1)[0])

    by = ["method", "variant", "dataset"]
    grouped = rows.groupby([*by, "n"], sort=False)["seconds"]
    medians = grouped.agg(seconds="median", fastest="min", slowest="max").reset_index()
    slopes = medians.groupby(by, sort=False)[["n", "seconds"]].apply(slope).rename("slope")
    return medians.merge(slopes.reset_index(), on=by)
