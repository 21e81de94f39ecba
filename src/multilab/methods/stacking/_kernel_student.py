"""Ridge regression of log-odds on a Gaussian kernel with training rows as centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.special import logit
from sklearn.utils.extmath import row_norms, safe_sparse_dot

_MOST_CENTRES = 1500  # a row of 1,000 dense features then takes about 2 ms
_LEAST = 0.02  # targets are moved into [.02, .98] before logarithms
_LARGEST = float(logit(0.99))
_NULL = 1e-8  # eigenvalues of the kernel below this share of the largest one are left out
_BLOCK_ROWS = 2000


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """Log-odds of all labels by kernel ridge regression.

    Attributes
    ----------
    centres : ndarray or CSR matrix of shape (m, d)
    gamma : float
        1 / (d times the variance of the centres' values), as "scale" of scikit-learn's support vector machines.
    offset : ndarray of shape (q,)
    weights : ndarray of shape (m, q)
    """

    centres: Any
    squares: np.ndarray
    gamma: float
    offset: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(cls, rows: Any, targets: np.ndarray, n_centres: int) -> KernelRegression:
        """Fit to targets in [0, 1], with a ridge of 1; centres are up to 1,500 of the first ``n_centres`` rows."""
        picked = np.unique(np.linspace(0, n_centres - 1, min(n_centres, _MOST_CENTRES)).astype(int))
        centres = rows[picked]
        mean = centres.mean()
        square = centres.multiply(centres).mean() if sp.issparse(centres) else (centres**2).mean()
        variance = float(square - mean**2)
        margins = logit(np.clip(targets, _LEAST, 1.0 - _LEAST))
        offset = margins.mean(axis=0)
        gamma = 1.0 / (rows.shape[1] * variance) if variance > 0 else 1.0
        model = cls(centres, row_norms(centres, squared=True), gamma, offset, np.empty((0, 0)))
        values, vectors = np.linalg.eigh(model._kernel(centres))
        large = values > _NULL * values[-1]
        basis = vectors[:, large] / np.sqrt(values[large])
        gram, cross = np.eye(basis.shape[1]), np.zeros((basis.shape[1], targets.shape[1]))
        for start in range(0, len(targets), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            features = model._kernel(rows[block]) @ basis
            gram += features.T @ features
            cross += features.T @ (margins[block] - offset)
        return cls(centres, model.squares, gamma, offset, basis @ np.linalg.solve(gram, cross))

    def __call__(self, X: Any) -> np.ndarray:
        """Return log-odds of shape (n, q), between those of .01 and .99."""
        return np.clip(self._kernel(X) @ self.weights + self.offset, -_LARGEST, _LARGEST)

    def _kernel(self, X: Any) -> np.ndarray:
        distances = row_norms(X, squared=True)[:, None] + self.squares
        distances -= 2.0 * safe_sparse_dot(X, self.centres.T, dense_output=True)
        return np.exp(-self.gamma * np.maximum(distances, 0.0))


def limited_log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return the log-odds of probabilities, between those of .01 and .99."""
    return logit(np.clip(probabilities, 0.01, 0.99))
