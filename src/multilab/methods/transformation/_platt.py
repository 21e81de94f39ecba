# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Platt's sigmoid: margins of a classifier as probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

_NEWTON_STEPS = 100


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(-(slope f + offset))); Platt's A and B are -slope and -offset."""

    slope: float
    offset: float

    def __call__(self, margins: np.ndarray) -> np.ndarray:
        """Return p for each margin."""
        return expit(self.slope * margins + self.offset)


def fit_sigmoid(margins: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Sigmoid:
    """Fit the sigmoid by maximum likelihood on Platt's softened targets.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Out-of-fold margins f.
    y : ndarray of shape (n,)
        0/1 labels; with n1 ones and n0 zeros the targets are (n1 + 1) / (n1 + 2) and 1 / (n0 + 2).
    weight : ndarray of shape (n,), optional
        Weights of the terms of the likelihood; n1 and n0 are their sums. All 1 when None.

    Notes
    -----
    Newton's method with step halving (Lin, Lin, Weng. A note on Platt's probabilistic outputs for support
    vector machines. Machine Learning 68, 2007), to a gradient of rounding size. scikit-learn's calibration
    minimises the same function by L-BFGS and stops a little earlier.
    """
    weight = np.ones(len(y)) if weight is None else weight
    total = float(weight.sum())
    ones = float(weight[y > 0].sum())
    zeros = total - ones
    target = np.where(y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (zeros + 2.0))
    scale = float(np.abs(margins).max()) or 1.0
    design = np.column_stack([margins / scale, np.ones(len(y))])
    line = np.array([0.0, np.log((ones + 1.0) / (zeros + 1.0))])

    def loss(w: np.ndarray) -> float:
        z = design @ w
        return float(np.sum(weight * (np.logaddexp(0.0, z) - target * z)))

    value = loss(line)
    for _ in range(_NEWTON_STEPS):
        p = expit(design @ line)
        gradient = design.T @ (weight * (p - target))
        if np.abs(gradient).max() <= 1e-11 * total:
            break
        hessian = design.T @ (design * (weight * (p * (1.0 - p)))[:, None])
        hessian.flat[::3] += 1e-12  # equal margins leave the slope free: keep it where it is
        direction = -np.linalg.solve(hessian, gradient)
        step, descent = 1.0, float(gradient @ direction)
        while step > 1e-10 and loss(line + step * direction) > value + 1e-4 * step * descent:
            step /= 2.0
        if step <= 1e-10:
            break
        line = line + step * direction
        value = loss(line)
    return Sigmoid(float(line[0] / scale), float(line[1]))
