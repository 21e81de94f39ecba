"""Logistic regressions of all labels at once, with a ridge around given weights."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

_STEPS = 50
_HALVINGS = 30


def softened(Y: np.ndarray) -> np.ndarray:
    """Return Platt's targets of shape (n, q): (n1 + 1) / (n1 + 2) for ones and 1 / (n0 + 2) for zeros of a label."""
    ones = Y.sum(axis=0)
    return np.where(Y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (len(Y) - ones + 2.0))


def fit_own_features(F: np.ndarray, T: np.ndarray, start: np.ndarray, ridge: Any) -> np.ndarray:
    """Return the weights of a logistic regression per label on features of its own, by Newton's method.

    Parameters
    ----------
    F : ndarray of shape (q, n, k)
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
    T, weights = T.T, start.copy()
    ridge = np.broadcast_to(ridge, start.shape)
    diagonal = np.arange(F.shape[2])

    def loss(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = np.matmul(F, w[:, :, None])[:, :, 0]
        cross = np.logaddexp(0.0, z) - T * z
        return cross.sum(axis=1) + 0.5 * (ridge * (w - start) ** 2).sum(axis=1), z

    value, z = loss(weights)
    for _ in range(_STEPS):
        p = expit(z)
        gradient = np.matmul((p - T)[:, None], F)[:, 0] + ridge * (weights - start)
        if np.abs(gradient).max() <= 1e-8 * F.shape[1]:
            break
        hessian = np.matmul((F * (p * (1 - p))[:, :, None]).transpose(0, 2, 1), F)
        hessian[:, diagonal, diagonal] += ridge + 1e-9  # equal scores leave the slope free: keep it where it is
        direction = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        step = np.ones((len(weights), 1))
        for _ in range(_HALVINGS):
            tried, z = loss(weights + step * direction)
            worse = tried > value + 1e-10 * np.abs(value)
            if not worse.any():
                break
            step[worse] /= 2.0
        else:
            step[worse] = 0.0
            tried, z = loss(weights + step * direction)
        weights, value = weights + step * direction, tried
    return weights


def fit_shared_features(X: np.ndarray, T: np.ndarray, start: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Return the weights (k, q) of logistic regressions of all labels on the same features, by L-BFGS.

    Parameters
    ----------
    X : ndarray of shape (n, k)
    T : ndarray of shape (n, q)
        Targets in [0, 1].
    start, ridge : ndarray of shape (k, q)
        First weights, also the centre of the ridge, and its strength for each weight.
    """

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(start.shape)
        z = X @ W
        away = W - start
        value = np.sum(np.logaddexp(0.0, z) - T * z) + 0.5 * np.sum(ridge * away**2)
        return value, (X.T @ (expit(z) - T) + ridge * away).ravel()

    options = {"maxiter": 200, "ftol": 1e-9, "gtol": 1e-6 * len(X)}
    return minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(start.shape)
