"""Figs. 4 and 5 of the MLWSE paper: metrics over a grid of parameters, from one Gram matrix per split."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from multilab.methods.solvers.solve import solve_path
from multilab.papers.mlwse.problem import problem_of

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "sensitivity"
_PARAMETERS = ["alpha", "beta", "lam"]


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the metrics of a unit over ``settings.grid``; parameters the grid does not name stay the method's."""
    problem = problem_of(unit, store)
    grid = {
        name: [float(v) for v in unit.settings["grid"].get(name, [getattr(problem.model, name)])]
        for name in _PARAMETERS
    }
    metrics = list(unit.settings["metrics"])
    # alpha mixes the two parts of the L21 penalty: another alpha is another path of strengths
    mixes = grid["alpha"] if problem.strength == "lam" else [1.0]
    strengths = sorted(grid[problem.strength], reverse=True)
    rows: dict[str, list[Any]] = {name: [] for name in (*_PARAMETERS, "metric", "value")}
    for mix in mixes:
        penalties = [problem.penalty(**{"alpha": mix, problem.strength: strength}) for strength in strengths]
        paths = {
            beta: solve_path(problem.loss.with_beta(beta), penalties, problem.start, **problem.options())
            for beta in grid["beta"]
        }
        for (i, strength), beta in itertools.product(enumerate(strengths), grid["beta"]):
            alpha, lam = (mix, strength) if problem.strength == "lam" else (strength, None)
            for metric, value in problem.scores(paths[beta][i].W, metrics).items():
                for name, entry in zip(
                    rows, (alpha, beta, float("nan") if lam is None else lam, metric, value), strict=True
                ):
                    rows[name].append(entry)
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the splits, and the value on each split in a column of its own: ``split_0`` and so on."""
    point = ["method", "dataset", *_PARAMETERS, "metric"]
    means = rows.groupby(point, sort=False, dropna=False)["value"].mean().reset_index()
    for split, values in rows.groupby("split"):
        means = means.merge(values[[*point, "value"]].rename(columns={"value": f"split_{split}"}), on=point, how="left")
    return means
