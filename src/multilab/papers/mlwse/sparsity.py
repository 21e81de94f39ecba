"""How many weights are zero, and what that costs, against the strength of the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.methods.solvers.solve import solve_path
from multilab.methods.stacking.objective import classifier_rows
from multilab.papers.mlwse.problem import problem_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "sparsity"
_METRICS = ["hamming_loss", "example_f1", "f1_of_means"]


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return, per share of the strength that makes W zero, exact zeros, zero blocks, and metrics.

    ``strength`` is alpha (L1) or lam (L21), ``ratio`` its share of alpha_max or lam_max; ``paper`` marks the row at
    the method's own strength.
    """
    problem = problem_of(unit, store)
    largest = problem.penalty(**{problem.strength: 1.0}).alpha_max(problem.loss.cross)
    own = float(getattr(problem.model, problem.strength))
    spaced = np.geomspace(float(unit.settings["from"]), 1.0, int(unit.settings["points"]))
    strengths = sorted({*(largest * spaced), own}, reverse=True)
    penalties = [problem.penalty(**{problem.strength: s}) for s in strengths]
    path = solve_path(problem.loss, penalties, problem.start, **problem.options())
    names = ("step", "strength", "ratio", "paper", "zeros", "zero_blocks", *_METRICS)
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for i, strength in enumerate(strengths):
        W = path[i].W
        groups = [W[r] for r in classifier_rows(*W.shape)]
        step = (i, strength, strength / largest, strength == own)
        zeros = (float(np.mean(W == 0)), float(np.mean([not group.any() for group in groups])))
        for name, entry in zip(names, (*step, *zeros, *problem.scores(W, _METRICS).values()), strict=True):
            rows[name].append(entry)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits, from the strongest penalty to the weakest."""
    by = ["method", "dataset", "step"]
    return rows.drop(columns="split").groupby(by, sort=False).mean().reset_index().drop(columns="step")
