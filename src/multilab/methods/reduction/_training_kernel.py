# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Gaussian kernel of the training rows: width, matrix, groups of equal rows, centring."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.methods._kernels import kernel_matrix, median_gamma, resolve_gamma, squared_distances
from multilab.methods.base import MethodError

_BLOCK_ENTRIES = 2**25  # entries of one block of a kernel matrix: 256 MiB
_MEDIAN_ROWS = 4096  # with more rows, the median distance is taken over this many evenly spaced ones


def kernel_width(gamma: float | str, factor: float, X: Any) -> float:
    """Return gamma of exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma : float or {"median", "scale", "auto"}
        See `resolve_gamma`. "median" is the rule of the LSkMDDM paper; with more than 4096 rows it is computed on 4096
        of them, evenly spaced.
    factor : float
        Positive factor on gamma.
    X : ndarray or CSR matrix of shape (n, d)

    Raises
    ------
    MethodError
        If the factor is not positive or gamma is unknown.
    """
    if not factor > 0:
        raise MethodError(f"gamma_factor={factor}: the factor of the kernel width must be positive")
    if gamma != "median":
        return factor * resolve_gamma(gamma, X)
    if X.shape[0] > _MEDIAN_ROWS:
        X = X[np.linspace(0, X.shape[0] - 1, _MEDIAN_ROWS).astype(int)]
    return factor * median_gamma(squared_distances(X))


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Return slices of the rows such that a block of a (rows, columns) matrix takes at most 256 MiB."""
    step = max(1, _BLOCK_ENTRIES // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def training_kernel(X: Any, gamma: float | str, factor: float = 1.0) -> tuple[np.ndarray, float]:
    """Return the kernel matrix of the rows of X, shape (n, n), with a diagonal of ones, and gamma as a number.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    gamma, factor
        See `kernel_width`.

    Notes
    -----
    Memory: the matrix and one block of 256 MiB.
    """
    n = X.shape[0]
    if gamma == "median" and n <= _MEDIAN_ROWS and factor > 0:
        squared = squared_distances(X)
        width = factor * median_gamma(squared)
        squared *= -width
        return np.exp(squared, out=squared), width
    width = kernel_width(gamma, factor, X)
    K = np.empty((n, n))
    for rows in row_blocks(n, n):
        K[rows] = kernel_matrix(X[rows], X, gamma=width)
    np.fill_diagonal(K, 1.0)
    return K, width


def equal_rows(X: Any) -> np.ndarray:
    """Return the group of equal rows of each row of X, shape (n,): numbers 0, 1, ... in order of appearance."""
    if sp.issparse(X):
        if not np.all(X.data):
            X = X.copy()
            X.eliminate_zeros()
        bounds = pairwise(X.indptr.tolist())
        rows: Iterator[bytes] = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in bounds)
    else:
        rows = (row.tobytes() for row in X + 0.0)  # -0.0 becomes 0.0
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row, len(seen)) for row in rows], dtype=np.intp)


class Centring:
    """Centring of a kernel: it moves the mean of the training rows to the origin of the feature space of the kernel.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training rows.
    """

    def __init__(self, K: np.ndarray) -> None:
        self.means = K.mean(axis=0)
        self.mean = float(self.means.mean())

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """Return the centred kernel matrix of m rows with the n training rows, shape (m, n)."""
        return K - K.mean(axis=1, keepdims=True) - self.means + self.mean
