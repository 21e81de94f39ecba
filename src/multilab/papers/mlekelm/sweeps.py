"""Fig. 2 of the ML-EKELM paper: Hamming loss and distance from the minimum, by sweep of coordinate descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.cells import running
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.methods.elm.elastic_net_kernel_elm import ElasticNetKernelELM
from multilab.methods.kernels import kernel_matrix
from multilab.papers.iterations import shown_iterations

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "sweeps"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return Hamming loss on the test set and relative gap F(s) / F* - 1 after s sweeps, whatever the method's solver.

    The settings are ``every``, up to which all sweeps are listed, ``sweeps``, to which they go on with about 20 per
    factor of ten, and for ADMM, which finds F*, ``certified`` (relative duality gap) and ``max_iter``. Sweep 0 is the
    constant model; without an intercept its scores are 0, which the paper's rule f > 0, used here, takes for no label.
    F* is the smallest value reached by either run, ``certified`` in the table the gap that ADMM was left with.
    """
    assert unit.cell is not None
    model, best = build(unit.cell.method), build(unit.cell.method)
    if not isinstance(model, ElasticNetKernelELM):
        raise ExperimentError(f"{unit.label}: only the elastic-net kernel machine has sweeps")
    inputs, settings = running.scaled_rows(unit.cell, store), unit.settings
    sweeps = np.union1d(np.arange(settings["every"] + 1), shown_iterations(settings["sweeps"]))
    objectives: list[float] = []
    losses: list[float] = []
    kernel = np.empty((0, 0))

    def watch(objective: float) -> None:
        nonlocal kernel
        if not kernel.size:
            kernel = kernel_matrix(inputs.X_test, inputs.X_train, gamma=model.gamma_)
        if len(objectives) in sweeps:
            scores = (kernel @ model.coef_ + model.intercept_)[:, model.column_]
            losses.append(float(np.mean((scores > 0) != inputs.Y_test)))
        objectives.append(objective)

    model.set_params(solver="cd", stop="gap", tol=0.0, max_sweeps=int(sweeps[-1]))
    model.fit_watched(inputs.X_train, inputs.Y_train, watch)
    best.set_params(solver="admm", stop="gap", tol=settings["certified"], max_sweeps=settings["max_iter"])
    best.fit(inputs.X_train, inputs.Y_train)
    lowest = min(float(best.objective_path_.min()), *objectives)
    return {
        "sweep": sweeps.tolist(),
        "hamming_loss": losses,
        "gap": (np.array(objectives)[sweeps] / lowest - 1.0).tolist(),
        "certified": [float(best.dual_gap_)] * len(sweeps),
    }


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "sweep", "hamming_loss", "gap", "certified"]]
