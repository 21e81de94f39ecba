"""Logistic regressions of all labels at once, with a ridge around given weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh

_STEPS = 50
_HALVINGS = 30
_CG_STEPS = 100
_CG_SHARE = 1e-3  # of the residual that conjugate gradients leave

Array = np.ndarray


def softened(Y: Array) -> Array:
    """Return Platt's targets of shape (n, q): (n1 + 1) / (n1 + 2) for ones and 1 / (n0 + 2) for zeros of a label."""
    ones = Y.sum(axis=0)
    return np.where(Y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (len(Y) - ones + 2.0))


def fit_own_features(F: Array, T: Array, start: Array, ridge: Any) -> Array:
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

    def direction(curvature: Array, gradient: Array) -> Array:
        hessian = np.matmul(F * curvature[:, None], F.transpose(0, 2, 1)) + smallest
        return -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]

    return _newton(
        lambda w: np.matmul(w[:, None], F)[:, 0],
        lambda r: np.matmul(F, r[:, :, None])[:, :, 0],
        direction,
        T,
        start,
        ridge,
        1e-8,
    )


def fit_shared_features(X: Array, T: Array, start: Array, ridge: Array) -> Array:
    """Return the weights of logistic regressions of all labels on the same features, by Newton's method.

    Parameters
    ----------
    X : ndarray of shape (n, k)
    T : ndarray of shape (n, q)
        Targets in [0, 1].
    start : ndarray of shape (q, k)
        First weights, and the centre of the ridge.
    ridge : ndarray of shape (k,)
        Strength of the ridge of each weight, positive.

    Returns
    -------
    ndarray of shape (q, k)

    Notes
    -----
    The Hessian of a label is not formed: conjugate gradients solve for the steps of all labels at once, with two
    products with X per iteration, in O(nkq) and not O(nk^2 q). They are preconditioned by c X^T X + ridge, with c the
    mean curvature of the label, of which one eigendecomposition serves all labels.
    """
    values, vectors = eigh(X.T @ X, np.diag(ridge))

    def margins(w: Array) -> Array:
        return w @ X.T

    def gather(r: Array) -> Array:
        return r @ X

    def direction(curvature: Array, gradient: Array) -> Array:
        scale = np.outer(curvature.mean(axis=1), values) + 1.0
        return _conjugate_gradients(
            lambda v: gather(curvature * margins(v)) + ridge * v,
            lambda r: (r @ vectors / scale) @ vectors.T,
            -gradient,
        )

    return _newton(margins, gather, direction, T, start, ridge, 1e-10)


def _newton(
    margins: Callable[[Array], Array],
    gather: Callable[[Array], Array],
    direction: Callable[[Array, Array], Array],
    T: Array,
    start: Array,
    ridge: Array,
    tolerance: float,
) -> Array:
    """Minimise the log loss of all labels, until the gradient of a row is at most ``tolerance`` in the mean.

    ``margins`` are linear, (q, k) to (q, n), and ``gather`` is the transpose.
    """
    T, weights = np.ascontiguousarray(T.T), start.copy()

    def loss(w: Array) -> tuple[Array, Array]:
        z = margins(w)
        small = np.exp(-np.abs(z))
        cross = np.maximum(z, 0.0) + np.log1p(small) - T * z
        value = cross.sum(axis=1) + 0.5 * (ridge * (w - start) ** 2).sum(axis=1)
        return value, np.where(z >= 0, 1.0, small) / (1.0 + small)

    value, p = loss(weights)
    for _ in range(_STEPS):
        gradient = gather(p - T) + ridge * (weights - start)
        if np.abs(gradient).max() <= tolerance * T.shape[1]:
            break
        change = direction(p * (1.0 - p), gradient)
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


def _conjugate_gradients(
    product: Callable[[Array], Array], precondition: Callable[[Array], Array], right: Array
) -> Array:
    """Solve a positive definite system per row of ``right``, all in step."""
    solution, residual = np.zeros_like(right), right.copy()
    z = precondition(residual)
    search, size = z, (residual * z).sum(axis=1, keepdims=True)
    enough = _CG_SHARE**2 * size
    for _ in range(_CG_STEPS):
        if (size <= enough).all():
            break
        image = product(search)
        bend = (search * image).sum(axis=1, keepdims=True)
        share = np.divide(size, bend, out=np.zeros_like(size), where=bend > 0)
        solution += share * search
        residual -= share * image
        z = precondition(residual)
        last, size = size, (residual * z).sum(axis=1, keepdims=True)
        search = z + np.divide(size, last, out=np.zeros_like(size), where=last > 0) * search
    return solution
