# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Distances per feature, |x_f - z_f| / (max_f - min_f), summed over many pairs of rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp

_ENTRIES = 2**20  # differences per block: 8 MiB


def feature_scale(X: Any) -> np.ndarray:
    """Return 1 / (max - min) of each feature, shape (d,): the factor of eq. (10) of the LWMF paper.

    It is 0 for a constant feature, where eq. (10) divides by 0.
    """
    if sp.issparse(X):
        span = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
    else:
        span = np.ptp(X, axis=0)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)


def scaled(X: Any) -> Any:
    """Return X, shape (n, d), with each feature divided by its range; constant features become 0."""
    scale = feature_scale(X)
    return sp.csr_array(X @ sp.diags_array(scale)) if sp.issparse(X) else X * scale


def added_differences(X: Any, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum over pairs of rows of |x_first - x_second|, per feature.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    first, second : ndarray of shape (p,)
        Row numbers of the pairs.
    weights : ndarray of shape (p,) or (p, c)
        Weights of the pairs; c columns give c sums.

    Returns
    -------
    ndarray of shape (d,) or (c, d)
    """
    total = np.zeros((*weights.shape[1:], X.shape[1]))
    step = max(1, _ENTRIES // X.shape[1])
    for start in range(0, len(first), step):
        pairs = slice(start, start + step)
        differences = X[first[pairs]] - X[second[pairs]]
        if sp.issparse(differences):
            total += (abs(differences).T @ weights[pairs]).T
        else:
            total += weights[pairs].T @ np.abs(differences, out=differences)
    return total
