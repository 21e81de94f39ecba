"""Labels as -1/+1 targets of weighted least squares, each distinct column once, and the threshold of the scores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from multilab.methods._weights import Weights
from multilab.methods.base import MethodError
from multilab.methods.labels import is_partial, observed_groups

Rows = np.ndarray | None  # None: all rows

_BLOCK_ROWS = 8192  # of hidden outputs or kernels that are held at a time: 64 MB for 1000 units


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
    observed : list of (columns, rows), or None
        Columns of ``values`` that are observed in the same rows; None: all are observed in all rows.
    """

    values: np.ndarray
    column: np.ndarray
    weight: np.ndarray | None
    observed: list[tuple[np.ndarray, np.ndarray]] | None = None

    @classmethod
    def of(cls, Y: np.ndarray, weights: Weights) -> Self:
        """Return the targets of labels Y (n, q), 0/1 or -1; labels with equal columns and weights share one."""
        if not weights.by_label:
            columns, column = np.unique(Y, axis=1, return_inverse=True)
            weight = None if weights.rows is None else weights.rows[:, None]
        else:
            of_values = [] if weights.values is None or isinstance(weights.values, str) else [weights.values.T]
            of_cells = [] if weights.cells is None else [weights.cells]
            keys = np.vstack([Y, *of_values, *of_cells])
            _, first, column = np.unique(keys, axis=1, return_index=True, return_inverse=True)
            columns, weight = Y[:, first], weights.matrix(Y)[:, first]
        return cls(2.0 * columns - 1.0, column, weight, observed_groups(columns) if is_partial(Y) else None)

    def solve(self, solver: Callable[[np.ndarray, np.ndarray | None, Rows], np.ndarray]) -> np.ndarray:
        """Return the coefficients of all columns side by side, solved together where rows and weights are the same.

        Parameters
        ----------
        solver : callable
            Of targets (m, r), weights (m,) or None, and the m rows that they are on (None: all); returns shape (k, r).
        """
        if self.observed is None:
            return self._solve(self.values, self.weight, None, solver)
        parts = []
        for columns, rows in self.observed:
            weight = self.weight
            if weight is not None:
                weight = weight[rows] if weight.shape[1] == 1 else weight[np.ix_(rows, columns)]
            parts.append(self._solve(self.values[np.ix_(rows, columns)], weight, rows, solver))
        coefficients = np.empty((len(parts[0]), self.values.shape[1]))
        for (columns, _), part in zip(self.observed, parts, strict=True):
            coefficients[:, columns] = part
        return coefficients

    @staticmethod
    def _solve(
        values: np.ndarray,
        weight: np.ndarray | None,
        rows: Rows,
        solver: Callable[[np.ndarray, np.ndarray | None, Rows], np.ndarray],
    ) -> np.ndarray:
        if weight is None:
            return solver(values, None, rows)
        if weight.shape[1] == 1:
            return solver(values, weight[:, 0], rows)
        return np.hstack([solver(values[:, [j]], weight[:, j], rows) for j in range(values.shape[1])])


class RidgeSums:
    """F'F and F'T of features F and targets T, to which rows are added: what ridge regression needs of them."""

    def __init__(self) -> None:
        self.gram: Any = 0.0
        self.cross: Any = 0.0

    def add(self, F: np.ndarray, targets: np.ndarray) -> None:
        """Add rows."""
        self.gram = self.gram + F.T @ F
        self.cross = self.cross + F.T @ targets

    def solve(self, C: float) -> np.ndarray:
        """Return the coefficients with the ridge 1 / C, shape (k, q)."""
        gram = self.gram.copy()
        gram.flat[:: len(gram) + 1] += 1.0 / C
        return cho_solve(cho_factor(gram), self.cross)


def target_blocks(X: Any, Y: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield blocks of the rows of a batch, and their -1/+1 targets."""
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        yield X[rows], 2.0 * Y[rows] - 1.0


class ScoreThreshold:
    """Mixin of a classifier with real scores that assigns a label iff its score >= ``threshold``.

    Measures of the scores do not depend on the threshold.
    """

    threshold: float

    def _check_threshold(self) -> None:
        if not np.isfinite(self.threshold):
            raise MethodError(f"threshold={self.threshold}: it must be a finite number")

    def _score_kind(self) -> str:
        return "margin"

    def _threshold(self) -> float:
        return self.threshold
