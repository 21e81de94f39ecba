# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Ridge regression of log-odds on a Gaussian kernel with training rows as centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from multilab.methods._kernels import kernel_matrix, resolve_gamma

_MOST_CENTRES = 1500  # a row of 1,000 dense features then takes about 2 ms
_LEAST = 0.02  # targets are moved into [.02, .98] before logarithms
_LARGEST = float(logit(0.99))
_NULL = 1e-10  # eigenvalues of the kernel below this share of the largest one are left out
_BLOCK_ROWS = 2000


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """Log-odds of all labels by kernel ridge regression.

    Attributes
    ----------
    centres : ndarray or CSR matrix of shape (m, d)
    gamma : float
    offset : ndarray of shape (q,)
    weights : ndarray of shape (m, q)
    """

    centres: Any
    gamma: float
    offset: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(
        cls, rows: Any, targets: np.ndarray, n_centres: int, width: float, ridges: Sequence[float]
    ) -> list[KernelRegression]:
        """Return a regression for each ridge.

        Parameters
        ----------
        rows : ndarray or sparse matrix of shape (n, d)
        targets : ndarray of shape (n, q)
            In [0, 1].
        n_centres : int
            The centres are up to 1,500 of that many first rows, evenly spaced.
        width : float
            Gamma is this times 1 / (d times the variance of the centres' values), which is "scale" of scikit-learn's
            support vector machines.
        ridges : sequence of float
            Above 0.
        """
        picked = np.unique(np.linspace(0, n_centres - 1, min(n_centres, _MOST_CENTRES)).astype(int))
        centres = rows[picked]
        gamma = width * resolve_gamma("scale", centres)
        margins = logit(np.clip(targets, _LEAST, 1.0 - _LEAST))
        offset = margins.mean(axis=0)
        values, vectors = np.linalg.eigh(kernel_matrix(centres, gamma=gamma))
        large = values > _NULL * values[-1]
        basis = vectors[:, large] / np.sqrt(values[large])
        gram, cross = np.zeros((basis.shape[1],) * 2), np.zeros((basis.shape[1], targets.shape[1]))
        for start in range(0, len(targets), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            features = kernel_matrix(rows[block], centres, gamma=gamma) @ basis
            gram += features.T @ features
            cross += features.T @ (margins[block] - offset)
        strengths, directions = np.linalg.eigh(gram)
        basis, cross = basis @ directions, directions.T @ cross
        return [cls(centres, gamma, offset, basis @ (cross / (strengths + r)[:, None])) for r in ridges]

    def __call__(self, X: Any) -> np.ndarray:
        """Return log-odds of shape (n, q), between those of .01 and .99."""
        kernel = kernel_matrix(X, self.centres, gamma=self.gamma)
        return np.clip(kernel @ self.weights + self.offset, -_LARGEST, _LARGEST)


def limited_log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return the log-odds of probabilities, between those of .01 and .99."""
    return logit(np.clip(probabilities, 0.01, 0.99))
