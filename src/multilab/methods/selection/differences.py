"""Distances per feature, |x_f - z_f| / (max_f - min_f), added up over many pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["added_differences", "feature_scale", "scaled"]

_ENTRIES = 2**20  # differences held at a time: 8 MiB


def feature_scale(X: Any) -> np.ndarray:
    """Return 1 / (max - min) of each feature, 0 for a constant one: eq. (10) of the LWMF paper divides by 0 there."""
    if sp.issparse(X):
        span = X.max(axis=0).toarray().ravel() - X.min(axis=0).toarray().ravel()
    else:
        span = np.ptp(X, axis=0)
    return np.divide(1.0, span, out=np.zeros_like(span), where=span > 0)


def scaled(X: Any) -> Any:
    """Return X with each feature divided by its range; constant ones become 0."""
    scale = feature_scale(X)
    return sp.csr_array(X @ sp.diags_array(scale)) if sp.issparse(X) else X * scale


def added_differences(X: Any, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return, per feature, the weighted sum of |x_first - x_second| over pairs of rows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    first, second : ndarray of shape (p,)
        Row numbers.
    weights : ndarray of shape (p,) or (p, c)

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
