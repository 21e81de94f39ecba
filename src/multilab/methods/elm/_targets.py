"""Labels as -1/+1 targets of weighted least squares, each distinct column once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from multilab.methods._weights import Weights


@dataclass(frozen=True, eq=False)
class Targets:
    """Distinct label columns and their weights.

    Attributes
    ----------
    values : ndarray of shape (n, p)
        -1 and +1.
    column : ndarray of shape (q,)
        Which column of ``values`` belongs to each label.
    weight : ndarray of shape (n, 1) or (n, p), or None
        Weights of the rows, the same for all labels or for each column; None: all count 1.
    """

    values: np.ndarray
    column: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def of(cls, Y: np.ndarray, weights: Weights) -> Self:
        """Return the targets of 0/1 labels Y (n, q); labels with equal columns and equal weights share one."""
        if not weights.by_label:
            columns, column = np.unique(Y, axis=1, return_inverse=True)
            return cls(2.0 * columns - 1.0, column, None if weights.rows is None else weights.rows[:, None])
        keys = Y if isinstance(weights.values, str) else np.vstack([Y, weights.values.T])
        _, first, column = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        return cls(2.0 * Y[:, first] - 1.0, column, weights.matrix(Y)[:, first])

    def solve(self, solver: Callable[[np.ndarray, np.ndarray | None], np.ndarray]) -> np.ndarray:
        """Return the coefficients of all columns side by side, solved together where they have the same weights.

        Parameters
        ----------
        solver : callable
            Of targets (n, r) and weights (n,) or None; returns shape (k, r).
        """
        if self.weight is None:
            return solver(self.values, None)
        if self.weight.shape[1] == 1:
            return solver(self.values, self.weight[:, 0])
        columns = range(self.values.shape[1])
        return np.hstack([solver(self.values[:, [column]], self.weight[:, column]) for column in columns])
