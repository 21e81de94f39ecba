"""Fig. 3 of the MLWSE paper as a curve: whether labels that go together get similar weights, as beta grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from multilab.methods.solvers.solve import solve
from multilab.methods.stacking.objective import cosine_affinity
from multilab.papers.mlwse.problem import problem_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "affinity"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return Spearman's correlation of the off-diagonal cosines of label columns and of weight columns, per beta.

    ``smallest`` is the smallest of the cosines of weight columns: near 1 all columns have become the same, and the
    correlation means nothing any more. A beta at which the cosines do not vary has no row, and fewer than three labels
    have none at all.
    """
    problem = problem_of(unit, store)
    penalty = problem.penalty()
    affinity = cosine_affinity(problem.Y_train)
    above = np.triu_indices(len(affinity), 1)
    labels = affinity[above]
    rows: dict[str, list[Any]] = {"beta": [], "correlation": [], "smallest": []}
    for beta in map(float, unit.settings["betas"]):
        at_beta = problem.loss.with_beta(beta)
        W = solve(at_beta, penalty, problem.start, tol=unit.settings["tol"], kkt_tol=0.0, max_iter=20_000).W
        weights = cosine_affinity(W)[above]
        if len(labels) >= 3 and np.ptp(labels) > 0 and np.ptp(weights) > 0:
            rows["beta"].append(beta)
            rows["correlation"].append(float(spearmanr(labels, weights).statistic))
            rows["smallest"].append(float(weights.min()))
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "beta", "correlation", "smallest"]]
