"""Gaussian naive Bayes for many labels, as a sum over columns."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from multilab.methods.labels import is_partial, observed_groups

# Lower bound of a standard deviation, relative to the range of the column: a column that is constant in a class would
# determine all decisions. It is well above the rounding errors of a variance of 0.
_LEAST_SPREAD = 1e-6
# Ratios are rounded to multiples of 2^-20 up to 2^20: sums of thousands of them are exact in double precision, in
# whatever order a processor adds them, so the search takes the same path on all processors.
_GRID, _LARGEST = 2.0**20, 2.0**20
_COMPARED = 2**20  # comparisons of scores per block


@dataclass(frozen=True, eq=False)
class LabelGaussians:
    """Gaussian naive Bayes for q labels: a Gaussian per label, class and column.

    Attributes
    ----------
    log_odds : ndarray of shape (q,)
        Log-odds of the smoothed prior (s + n_l) / (2 s + n), n_l the number of rows with the label.
    means, spreads : ndarray of shape (2, q, d)
        Means and standard deviations (ddof = 1) of the rows without the label (class 0) and with it (class 1). A
        standard deviation is at least 1e-6 of the range of the column.
    """

    log_odds: np.ndarray
    means: np.ndarray
    spreads: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, Y: np.ndarray, s: float) -> Self:
        """Return the estimates from training data.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        Y : ndarray of shape (n, q), 0/1, or int8 with -1 where a label is not observed
        s : float
            Smoothing of the prior.

        Notes
        -----
        A class with one row has the standard deviation of all rows; an empty class also has their mean. The estimates
        of a label are those of the rows that observe it; without any its score is 0.
        """
        if is_partial(Y):
            return cls._fit_observed(X, Y, s)
        n, centre = len(X), X.mean(axis=0)
        Z = X - centre
        sizes, means, deviations = _class_moments(Z, Y)
        overall = Z.var(axis=0, ddof=min(1, n - 1))
        return cls._of(n, sizes, means + centre, deviations, overall, np.ptp(X, axis=0), s)

    @classmethod
    def _of(
        cls,
        n: int,
        sizes: np.ndarray,
        means: np.ndarray,
        deviations: np.ndarray,
        overall: np.ndarray,
        spans: np.ndarray,
        s: float,
    ) -> Self:
        """Return the estimates from moments of the classes, and variances and ranges of the columns."""
        variances = np.broadcast_to(overall, means.shape).copy()
        np.divide(deviations, sizes - 1, out=variances, where=sizes > 1)
        least = _LEAST_SPREAD * spans
        spreads = np.sqrt(np.maximum(variances, np.where(least > 0, least, 1.0) ** 2))
        prior = (s + sizes[:, :, 0]) / (2.0 * s + n)
        return cls(np.log(prior[1] / prior[0]), means, spreads)

    @classmethod
    def _fit_observed(cls, X: np.ndarray, Y: np.ndarray, s: float) -> Self:
        q, d = Y.shape[1], X.shape[1]
        log_odds, means, spreads = np.zeros(q), np.zeros((2, q, d)), np.ones((2, q, d))
        for labels, rows in observed_groups(Y):
            if len(rows):
                part = cls.fit(X[rows], Y[np.ix_(rows, labels)].astype(np.uint8), s)
                log_odds[labels], means[:, labels], spreads[:, labels] = part.log_odds, part.means, part.spreads
        return cls(log_odds, means, spreads)

    def ratios(self, X: np.ndarray, label: int) -> np.ndarray:
        """Return log p(x_f | label) - log p(x_f | no label) for all rows and columns f, shape (m, d)."""
        without, having = (((X - self.means[k, label]) / self.spreads[k, label]) ** 2 for k in (0, 1))
        return 0.5 * (without - having) - np.log(self.spreads[1, label] / self.spreads[0, label])

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the log-odds of all rows and labels, shape (m, q)."""
        return (
            np.column_stack([self.ratios(X, label).sum(axis=1) for label in range(len(self.log_odds))]) + self.log_odds
        )


def _class_moments(Z: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sizes, means and sums of squared deviations of the rows without and with each label.

    Z has centred columns: squares less squared means then lose few digits. Sizes have shape (2, q, 1), the others
    (2, q, d); of an empty class they are 0.
    """
    sizes = np.stack([len(Z) - Y.sum(axis=0), Y.sum(axis=0)]).astype(np.float64)[:, :, None]
    square, members = Z**2, Y.T.astype(np.float64)
    sums, squares = members @ Z, members @ square  # (q, d); class 0 is the difference to the totals
    sums, squares = np.stack([Z.sum(axis=0) - sums, sums]), np.stack([square.sum(axis=0) - squares, squares])
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    return sizes, means, np.where(sizes > 0, squares - sizes * means**2, 0.0)


class _Moments:
    """Counts, means and sums of squared deviations of groups of rows, merged batch by batch (Chan et al. 1983)."""

    def __init__(self) -> None:
        self.count: Any = 0.0
        self.mean: Any = 0.0
        self.squares: Any = 0.0

    def add(self, count: Any, mean: np.ndarray, squares: np.ndarray) -> None:
        total = np.maximum(self.count + count, 1.0)
        gap = mean - self.mean
        self.squares = self.squares + squares + gap**2 * (self.count * count / total)
        self.mean = self.mean + gap * (count / total)
        self.count = self.count + count


class GaussianSums:
    """Moments of batches of rows, from which the `LabelGaussians` of all of them follow."""

    def __init__(self) -> None:
        self._rows, self._classes = _Moments(), _Moments()
        self._low: Any = np.inf
        self._high: Any = -np.inf

    def add(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Add rows X (n, d) with labels Y (n, q), 0/1."""
        centre = X.mean(axis=0)
        Z = X - centre
        sizes, means, deviations = _class_moments(Z, Y)
        self._classes.add(sizes, means + centre, deviations)
        self._rows.add(float(len(X)), centre, (Z**2).sum(axis=0))
        self._low, self._high = np.minimum(self._low, X.min(axis=0)), np.maximum(self._high, X.max(axis=0))

    def estimates(self, s: float) -> LabelGaussians:
        """Return the estimates with the smoothing s of the prior."""
        n, sizes = int(self._rows.count), self._classes.count
        means = np.where(sizes > 0, self._classes.mean, self._rows.mean)
        overall = self._rows.squares / max(n - 1, 1)
        return LabelGaussians._of(n, sizes, means, self._classes.squares, overall, self._high - self._low, s)


class HeldOut:
    """Cross-validated log-likelihood ratios of naive Bayes per column; the log-odds of a subset are their sum.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, q), 0/1, or int8 with -1 where a label is not observed
        Losses count observed labels only.
    folds : int
        Number of contiguous folds of the rows.
    s : float
        Smoothing of the prior.

    Notes
    -----
    The memory is 8 n q d bytes: 650 MB for n = 2000, d = 1047 and q = 39.
    """

    def __init__(self, X: np.ndarray, Y: np.ndarray, folds: int, s: float) -> None:
        n, q = Y.shape
        self.Y = Y
        self.ratios = np.empty((n, q, X.shape[1]))  # of each row by the model without its fold
        self.prior = np.empty((n, q))
        sizes, others = (Y == 1).sum(axis=1), (Y == 0).sum(axis=1)
        ranked = (sizes > 0) & (others > 0)
        # weights of a wrong decision and of a wrongly ordered pair of each row in the mean losses over the folds
        self._of_decisions, self._of_pairs = np.empty(n), np.zeros(n)
        for rows in np.array_split(np.arange(n), folds):
            rest = np.delete(np.arange(n), rows)
            model = LabelGaussians.fit(X[rest], Y[rest], s)
            self.prior[rows] = _exact(model.log_odds)
            for label in range(q):
                self.ratios[rows, label] = _exact(model.ratios(X[rows], label))
            self._of_decisions[rows] = 1.0 / (folds * max(int((sizes + others)[rows].sum()), 1))
            usable = rows[ranked[rows]]
            self._of_pairs[usable] = 1.0 / (folds * len(usable) * sizes[usable] * others[usable]) if len(usable) else 0

    def losses(self, subsets: np.ndarray) -> np.ndarray:
        """Return the mean over the folds of (Hamming loss + ranking loss) / 2 for each subset, shape (p,).

        Parameters
        ----------
        subsets : bool ndarray of shape (p, d)
            Columns of each subset. An empty subset means all columns, as in the original.

        Notes
        -----
        Rows without labels or with all labels have no ranking loss; a tie is an error.
        """
        n, q = self.Y.shape
        chosen = np.where(subsets.any(axis=1, keepdims=True), subsets, True).astype(np.float64)
        # (p, n, q): one matrix product for all subsets, because log-odds add up over columns
        every = (chosen @ self.ratios.reshape(n * q, -1).T).reshape(-1, n, q) + self.prior
        rows, labels = np.nonzero(self.Y == 1)
        losses = np.empty(len(subsets))
        step = max(1, _COMPARED // q)
        for index, scores in enumerate(every):
            wrong = (((scores >= 0) != (self.Y == 1)) & (self.Y >= 0)).sum(axis=1) @ self._of_decisions
            for start in range(0, len(rows), step):
                row, label = rows[start : start + step], labels[start : start + step]
                above = (scores[row] >= scores[row, label][:, None]) & (self.Y[row] == 0)
                wrong += above.sum(axis=1) @ self._of_pairs[row]
            losses[index] = wrong / 2.0
        return losses.round(12)  # equal losses stay equal on all processors

    def single_columns(self) -> np.ndarray:
        """Return the held-out balanced accuracy of each single column without the prior, shape (d,).

        It is averaged over the labels with two classes; without such a label it is 0.5.
        """
        total, counted = np.zeros(self.ratios.shape[2]), 0
        for label, y in enumerate(self.Y.T):
            if (y == 1).any() and (y == 0).any():
                signs = np.sign(self.ratios[:, label])
                total += 0.5 + 0.25 * (signs[y == 1].mean(axis=0) - signs[y == 0].mean(axis=0))
                counted += 1
        return total / counted if counted else total + 0.5


def _exact(ratios: np.ndarray) -> np.ndarray:
    """Return the values rounded to multiples of 2^-20 and clipped to [-2^20, 2^20]."""
    return np.clip(np.round(ratios * _GRID) / _GRID, -_LARGEST, _LARGEST)
