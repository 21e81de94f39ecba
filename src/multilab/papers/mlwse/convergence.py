"""Fig. 6 of the MLWSE paper: how far the paper's algorithms are from the minimum, by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.methods.solvers.solve import solve
from multilab.papers.iterations import shown_iterations
from multilab.papers.mlwse.problem import problem_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "convergence"
_ALGORITHMS = {"l1": "apg", "l21": "bcd"}


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the relative gap (F(W_t) - F*) / F* of the paper's algorithm, and the certificate of F*.

    F* is the smallest value reached by any run; ADMM brings its relative duality gap down to ``settings.certified`` or
    stops after ``settings.max_iter`` iterations. ``certified`` is the bound reached: where a gap is of that order, F*
    itself is not known better.
    """
    problem = problem_of(unit, store)
    penalty, settings = problem.penalty(), unit.settings
    best = solve(
        problem.loss, penalty, problem.start, tol=settings["certified"], kkt_tol=0.0, max_iter=settings["max_iter"]
    )
    algorithm = _ALGORITHMS[problem.model.penalty]
    run = solve(
        problem.loss, penalty, problem.start, algorithm=algorithm, tol=0.0, kkt_tol=0.0, max_iter=settings["iterations"]
    )
    path = run.objective_path
    lowest = min(float(best.objective_path.min()), float(path.min()))
    iterations = shown_iterations(len(path))
    gap = np.maximum(path[iterations - 1] / lowest - 1.0, 0.0)
    return {
        "algorithm": [algorithm] * len(gap),
        "iteration": iterations.tolist(),
        "gap": gap.tolist(),
        "certified": [float(best.gap)] * len(gap),
    }


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "algorithm", "iteration", "gap", "certified"]]
