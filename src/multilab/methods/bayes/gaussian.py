"""Gaussian naive Bayes for many labels, as a sum over columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

__all__ = ["HeldOut", "LabelGaussians"]

# A column without spread in a class tells everything there; the bound is well above what rounding leaves of a 0.
_LEAST_SPREAD = 1e-6
# Ratios are multiples of 2^-20 up to 2^20, so that sums of thousands are exact in double precision, in whatever order a
# processor adds them: a search takes the same path everywhere.
_GRID, _LARGEST = 2.0**20, 2.0**20
_COMPARED = 2**20


@dataclass(frozen=True, eq=False)
class LabelGaussians:
    """Per label and class a Gaussian in each column.

    Attributes
    ----------
    log_odds : ndarray of shape (q,)
        Of the smoothed prior (s + n_l) / (2 s + n).
    means, spreads : ndarray of shape (2, q, d)
        For the rows without the label, then for those with it; spreads are standard deviations (ddof = 1), at least
        1e-6 of the range of the column.
    """

    log_odds: np.ndarray
    means: np.ndarray
    spreads: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, Y: np.ndarray, s: float) -> Self:
        """Estimate from X (n, d) and Y (n, q); a class with one row has the spread of all rows, an empty one its mean
        too.
        """
        n = len(X)
        sizes = np.stack([n - Y.sum(axis=0), Y.sum(axis=0)]).astype(np.float64)[:, :, None]
        centre = X.mean(axis=0)
        Z = X - centre
        square = Z**2
        members = Y.T.astype(np.float64)
        sums, squares = members @ Z, members @ square
        sums, squares = np.stack([Z.sum(axis=0) - sums, sums]), np.stack([square.sum(axis=0) - squares, squares])
        means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
        variances = np.broadcast_to(Z.var(axis=0, ddof=min(1, n - 1)), sums.shape).copy()
        np.divide(squares - sizes * means**2, sizes - 1, out=variances, where=sizes > 1)
        least = _LEAST_SPREAD * np.ptp(X, axis=0)
        spreads = np.sqrt(np.maximum(variances, np.where(least > 0, least, 1.0) ** 2))
        prior = (s + sizes[:, :, 0]) / (2.0 * s + n)
        return cls(np.log(prior[1] / prior[0]), means + centre, spreads)

    def ratios(self, X: np.ndarray, label: int) -> np.ndarray:
        """Return log p(x_f | label) - log p(x_f | no label) for every row and column, shape (m, d)."""
        without, having = (((X - self.means[k, label]) / self.spreads[k, label]) ** 2 for k in (0, 1))
        return 0.5 * (without - having) - np.log(self.spreads[1, label] / self.spreads[0, label])

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the log-odds of every row and label, shape (m, q)."""
        return (
            np.column_stack([self.ratios(X, label).sum(axis=1) for label in range(len(self.log_odds))]) + self.log_odds
        )


class HeldOut:
    """What naive Bayes says of training rows it has not seen, column by column, so that any subset is a sum.

    Parameters
    ----------
    X, Y : ndarray of shape (n, d), (n, q)
    folds : int
        Contiguous parts of the rows.
    s : float
        Smoothing of the prior.

    Notes
    -----
    Holds n q d numbers: 650 MB for 2000 x 1047 with 39 labels.
    """

    def __init__(self, X: np.ndarray, Y: np.ndarray, folds: int, s: float) -> None:
        n, q = Y.shape
        self.Y = Y
        self.ratios = np.empty((n, q, X.shape[1]))
        self.prior = np.empty((n, q))
        sizes = Y.sum(axis=1, dtype=np.int64)
        ranked = (sizes > 0) & (sizes < q)
        self._of_decisions, self._of_pairs = np.empty(n), np.zeros(n)
        for rows in np.array_split(np.arange(n), folds):
            rest = np.delete(np.arange(n), rows)
            model = LabelGaussians.fit(X[rest], Y[rest], s)
            self.prior[rows] = _exact(model.log_odds)
            for label in range(q):
                self.ratios[rows, label] = _exact(model.ratios(X[rows], label))
            self._of_decisions[rows] = 1.0 / (folds * len(rows) * q)
            usable = rows[ranked[rows]]
            self._of_pairs[usable] = (
                1.0 / (folds * len(usable) * sizes[usable] * (q - sizes[usable])) if len(usable) else 0
            )

    def losses(self, subsets: np.ndarray) -> np.ndarray:
        """Return the mean over the folds of (Hamming loss + ranking loss) / 2 for each subset of columns.

        An empty subset is the set of all columns, as in the original. Rows without or with all labels have no
        ranking loss; a tie is an error.
        """
        n, q = self.Y.shape
        chosen = np.where(subsets.any(axis=1, keepdims=True), subsets, True).astype(np.float64)
        every = (chosen @ self.ratios.reshape(n * q, -1).T).reshape(-1, n, q) + self.prior
        rows, labels = np.nonzero(self.Y)
        found = np.empty(len(subsets))
        step = max(1, _COMPARED // q)
        for place, scores in enumerate(every):
            wrong = ((scores >= 0) != self.Y).sum(axis=1) @ self._of_decisions
            for start in range(0, len(rows), step):
                row, label = rows[start : start + step], labels[start : start + step]
                above = (scores[row] >= scores[row, label][:, None]) & (self.Y[row] == 0)
                wrong += above.sum(axis=1) @ self._of_pairs[row]
            found[place] = wrong / 2.0
        return found.round(12)  # subsets that are equally good are so on every machine

    def single_columns(self) -> np.ndarray:
        """Return, per column, the balanced accuracy of the column by itself (without the prior), averaged over labels.

        Labels with one class only are left out.
        """
        total, counted = np.zeros(self.ratios.shape[2]), 0
        for label, y in enumerate(self.Y.T):
            if y.any() and not y.all():
                signs = np.sign(self.ratios[:, label])
                total += 0.5 + 0.25 * (signs[y == 1].mean(axis=0) - signs[y == 0].mean(axis=0))
                counted += 1
        return total / counted if counted else total + 0.5


def _exact(ratios: np.ndarray) -> np.ndarray:
    return np.clip(np.round(ratios * _GRID) / _GRID, -_LARGEST, _LARGEST)
