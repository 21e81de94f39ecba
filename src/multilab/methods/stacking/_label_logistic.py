# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Logistic regressions of all labels at once, with a ridge around given weights."""

from typing import Any

import numpy as np

_STEPS = 50
_HALVINGS = 30
_TOLERANCE = 1e-8  # of the gradient of a row, in the mean

Array = np.ndarray


def softened(Y: Array) -> Array:
    """Return Platt's targets of shape (n, q): (n1 + 1) / (n1 + 2) for ones and 1 / (n0 + 2) for zeros of a label."""
    ones = Y.sum(axis=0)
    return np.where(Y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (len(Y) - ones + 2.0))


def fit_logistic(F: Array, T: Array, start: Array, ridge: Any) -> Array:
    """Return the weights of a logistic regression per label on features of its own, by Newton's method.

    Parameters
    ----------
    F : ndarray of shape (q, k, n)
        Features of each label.
    T : ndarray of shape (n, q)
        Targets in [0, 1].
    start : ndarray of shape (q, k)
        First weights, and the centre of the ridge.
    ridge : float or ndarray of shape (k,)
        Strength of the ridge of each weight.

    Returns
    -------
    ndarray of shape (q, k)
    """
    ridge = np.broadcast_to(ridge, F.shape[1])
    smallest = np.diag(ridge + 1e-9)  # equal scores leave the slope free: keep it where it is
    T, weights = np.ascontiguousarray(T.T), start.copy()

    def loss(w: Array) -> tuple[Array, Array]:
        z = np.matmul(w[:, None], F)[:, 0]
        small = np.exp(-np.abs(z))
        cross = np.maximum(z, 0.0) + np.log1p(small) - T * z
        value = cross.sum(axis=1) + 0.5 * (ridge * (w - start) ** 2).sum(axis=1)
        return value, np.where(z >= 0, 1.0, small) / (1.0 + small)

    value, p = loss(weights)
    for _ in range(_STEPS):
        gradient = np.matmul(F, (p - T)[:, :, None])[:, :, 0] + ridge * (weights - start)
        if np.abs(gradient).max() <= _TOLERANCE * T.shape[1]:
            break
        hessian = np.matmul(F * (p * (1.0 - p))[:, None], F.transpose(0, 2, 1)) + smallest
        change = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        step = np.ones((len(weights), 1))
        for _ in range(_HALVINGS):
            tried, p = loss(weights + step * change)
            worse = tried > value + 1e-10 * np.abs(value)
            if not worse.any():
                break
            step[worse] /= 2.0
        else:
            step[worse] = 0.0
            tried, p = loss(weights + step * change)
        weights, value = weights + step * change, tried
    return weights
