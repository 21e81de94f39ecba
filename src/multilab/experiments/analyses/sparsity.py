"""How many weights are zero, and what that costs, against the strength of the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.experiments.analyses.problem import problem_of
from multilab.methods.stacking.blocks import classifier_rows
from multilab.methods.stacking.penalty import strength_max
from multilab.methods.stacking.solve import solve_path

if TYPE_CHECKING:
    import pandas as pd

    from multilab.experiments.analyses.unit import Unit
    from multilab.experiments.store import Store

__all__ = ["FILE", "compute", "finish"]

FILE = "sparsity"
_METRICS = ["hamming_loss", "example_f1", "f1_of_means"]


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return, per share of the strength that makes W zero, exact zeros, zero blocks, and metrics.

    ``strength`` is alpha (L1) or lam (L21), ``ratio`` its share of alpha_max or lam_max; ``paper`` marks the row at
    the method's own strength.
    """
    problem = problem_of(unit, store)
    unit_penalty = problem.unit_penalty()
    largest = strength_max(problem.loss.cross, unit_penalty)
    own = float(problem.params[problem.strength])
    spaced = np.geomspace(float(unit.settings["from"]), 1.0, int(unit.settings["points"]))
    strengths = sorted({*(largest * spaced), own}, reverse=True)
    options = {name: problem.params[name] for name in ("algorithm", "tol", "kkt_tol", "max_iter")}
    beta = problem.loss.beta
    found = solve_path(problem.loss, [unit_penalty.times(s) for s in strengths], [beta], problem.start, **options)
    names = ("step", "strength", "ratio", "paper", "zeros", "zero_blocks", *_METRICS)
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for i, strength in enumerate(strengths):
        W = found[i, beta].W
        blocks = [W[r] for r in classifier_rows(*W.shape)]
        told = (i, strength, strength / largest, strength == own)
        zeros = (float(np.mean(W == 0)), float(np.mean([not block.any() for block in blocks])))
        for name, entry in zip(names, (*told, *zeros, *problem.scores(W, _METRICS).values()), strict=True):
            rows[name].append(entry)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits, from the strongest penalty to the weakest."""
    by = ["method", "dataset", "step"]
    return rows.drop(columns="split").groupby(by, sort=False).mean().reset_index().drop(columns="step")
