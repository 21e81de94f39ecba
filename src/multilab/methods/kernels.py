"""Kernel matrices and their widths, for support vector machines and kernel ridge alike."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from multilab.methods.base import MethodError

Kernel = Literal["rbf", "linear", "poly", "sigmoid"]


def dot_products(X: Any, Z: Any = None) -> np.ndarray:
    """Return X Z^T as a dense array of shape (m, n); Z = X when None. Dense or CSR input."""
    product = X @ (X if Z is None else Z).T
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def squared_distances(X: Any, Z: Any = None) -> np.ndarray:
    """Return |x|^2 + |z|^2 - 2 x.z for all pairs, clipped at 0, shape (m, n); Z = X when None.

    With ``Z=None`` the diagonal is exactly 0. Good for kernels; for neighbours, where ties count, use
    `multilab.methods.neighbours._search.exact_neighbours`.
    """
    squared = dot_products(X, Z)
    squared *= -2.0
    squared += squared_norms(X)[:, None]
    squared += squared_norms(X if Z is None else Z)
    np.maximum(squared, 0.0, out=squared)
    if Z is None:
        np.fill_diagonal(squared, 0.0)
    return squared


def median_gamma(squared: np.ndarray) -> float:
    """Return the median heuristic 1 / (2 sigma^2), sigma the median distance of two different training rows.

    Parameters
    ----------
    squared : ndarray of shape (n, n)
        Squared distances of the training rows.

    Returns
    -------
    float
        1.0 where the median distance is 0 or there is one row only.
    """
    above = np.concatenate([row[i + 1 :] for i, row in enumerate(squared)])
    if not above.size:
        return 1.0
    half = above.size // 2
    above.partition([half - 1, half] if above.size % 2 == 0 else half)
    middle = np.sqrt(above[half - 1 + above.size % 2 : half + 1]).mean()
    return float(1.0 / (2.0 * middle**2)) if middle > 0 else 1.0


def resolve_gamma(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """Return the kernel width as a number.

    Parameters
    ----------
    gamma : float or {"scale", "auto", "median"}
        "scale" is 1 / (d Var(X)) (1 where the variance is 0) and "auto" 1 / d, as in ``sklearn.svm.SVC``;
        "median" see `median_gamma`.
    X : ndarray or CSR matrix of shape (n, d)
        Training rows.
    weight : ndarray of shape (n,), optional
        Weights of the rows: a row of weight 2 counts as two equal ones.

    Raises
    ------
    MethodError
        If gamma is something else or not positive.
    """
    if gamma == "scale":
        variance = _variance(X, weight)
        return float(1.0 / (X.shape[1] * variance)) if variance > 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "median":
        squared = squared_distances(X)
        return median_gamma(squared) if weight is None else _weighted_median_gamma(squared, weight)
    if isinstance(gamma, str) or not gamma > 0:
        raise MethodError(f"gamma={gamma!r}: give a positive number, 'scale', 'auto' or 'median'")
    return float(gamma)


def _variance(X: Any, weight: np.ndarray | None) -> float:
    """Return the variance of all entries of X, its rows weighted."""
    if weight is None:
        return float(X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var())
    entries = weight.sum() * X.shape[1]
    mean = float((weight @ X).sum()) / entries
    if sp.issparse(X):
        return float(weight @ squared_norms(X)) / entries - mean**2
    return float(weight @ squared_norms(X - mean)) / entries


def _weighted_median_gamma(squared: np.ndarray, weight: np.ndarray) -> float:
    """Return `median_gamma` of rows that occur ``weight`` times each."""
    first, second = np.triu_indices(len(squared), 1)
    values = np.append(squared[first, second], 0.0)
    copies = np.maximum(weight * (weight - 1.0) / 2.0, 0.0).sum()  # pairs of a row and itself
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.append(weight[first] * weight[second], copies)[order])
    if not reached[-1] > 0:
        return 1.0
    middle = (
        np.searchsorted(reached, reached[-1] / 2.0, side="left"),
        np.searchsorted(reached, reached[-1] / 2.0, side="right"),
    )
    distance = np.sqrt(values[order[np.minimum(middle, len(values) - 1)]]).mean()
    return float(1.0 / (2.0 * distance**2)) if distance > 0 else 1.0


def kernel_from(base: np.ndarray, kernel: str, gamma: float, degree: float = 3, coef0: float = 0.0) -> np.ndarray:
    """Turn squared distances (rbf) or dot products (all other kernels) into a new kernel matrix.

    rbf: exp(-gamma base); linear: base; poly: (gamma base + coef0)^degree; sigmoid: tanh(gamma base + coef0).

    Raises
    ------
    MethodError
        If the kernel has another name.
    """
    if kernel == "rbf":
        exponent = base * -gamma
        return np.exp(exponent, out=exponent)
    if kernel == "linear":
        return base.copy()
    if kernel == "poly":
        return (gamma * base + coef0) ** degree
    if kernel == "sigmoid":
        return np.tanh(gamma * base + coef0)
    raise MethodError(f"kernel={kernel!r}: give 'rbf', 'linear', 'poly' or 'sigmoid'")


def kernel_matrix(
    X: Any, Z: Any = None, *, kernel: str = "rbf", gamma: float = 1.0, degree: float = 3, coef0: float = 0.0
) -> np.ndarray:
    """Return the kernel matrix of the rows of X (m x d) and Z (n x d; X itself when None), shape (m, n)."""
    base = squared_distances(X, Z) if kernel == "rbf" else dot_products(X, Z)
    return kernel_from(base, kernel, gamma, degree, coef0)


def squared_norms(X: Any) -> np.ndarray:
    """Return |x|^2 of every row, shape (n,)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
