# Part of the key of analyses: an edit of code (not of comments or docstrings) recomputes those that use it.
"""Regularisation path: a sequence of penalties with warm starts."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.problem import Penalty, SmoothTerm
from multilab.methods.solvers.solve import solve

__all__ = ["solve_path"]


def solve_path(loss: SmoothTerm, penalties: Iterable[Penalty], start: np.ndarray, **options: Any) -> list[Solution]:
    """Solve for each penalty, with the solution for the one before as warm start.

    Parameters
    ----------
    penalties : iterable
        From the strongest to the weakest.
    start : ndarray of shape (p, q)
        Starting point of the first, and where the solution before is zero.
    **options
        Of `multilab.methods.solvers.solve.solve`.
    """
    solutions: list[Solution] = []
    W = start
    for penalty in penalties:
        solutions.append(solve(loss, penalty, W, **options))
        W = solutions[-1].W if solutions[-1].W.any() else start
    return solutions
