"""The Gaussian kernel of a reducer's training rows: width, matrix, equal rows, centring."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.methods.base import MethodError
from multilab.methods.kernels import kernel_matrix, resolve_gamma, squared_distances

__all__ = ["Centring", "equal_rows", "kernel_width", "row_blocks", "training_kernel"]

_BLOCK_ENTRIES = 2**25  # of a kernel matrix made at a time: 256 MiB
_MEDIAN_ROWS = 4096  # the median distance of more rows is that of so many of them, evenly spaced


def kernel_width(gamma: float | str, factor: float, X: Any) -> float:
    """Return gamma of exp(-gamma |x - z|^2): `resolve_gamma` times a factor.

    With "median", the paper's choice, and more than 4096 rows, the median is taken of 4096 of them, evenly spaced.
    """
    if not factor > 0:
        raise MethodError(f"gamma_factor={factor}: the factor of the kernel width must be positive")
    if gamma != "median":
        return factor * resolve_gamma(gamma, X)
    if X.shape[0] > _MEDIAN_ROWS:
        X = X[np.linspace(0, X.shape[0] - 1, _MEDIAN_ROWS).astype(int)]
    return factor * _median_gamma(squared_distances(X))


def _median_gamma(squared: np.ndarray) -> float:
    """Return what `multilab.methods.kernels.median_gamma` returns, three times as fast for thousands of rows."""
    above = np.concatenate([row[i + 1 :] for i, row in enumerate(squared)])
    if not above.size:
        return 1.0
    half = above.size // 2
    above.partition([half - 1, half] if above.size % 2 == 0 else half)
    middle = np.sqrt(above[half - 1 + above.size % 2 : half + 1]).mean()
    return float(1.0 / (2.0 * middle**2)) if middle > 0 else 1.0


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Return slices of rows such that a block of a (rows x columns) matrix takes 256 MiB at most."""
    step = max(1, _BLOCK_ENTRIES // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def training_kernel(X: Any, gamma: float | str, factor: float = 1.0) -> tuple[np.ndarray, float]:
    """Return the kernel matrix of the rows of X, its diagonal of ones, shape (n, n), and its gamma as `kernel_width`.

    Beside the matrix one more block of 256 MiB is held.
    """
    n = X.shape[0]
    if gamma == "median" and n <= _MEDIAN_ROWS and factor > 0:
        squared = squared_distances(X)
        width = factor * _median_gamma(squared)
        squared *= -width
        return np.exp(squared, out=squared), width
    width = kernel_width(gamma, factor, X)
    K = np.empty((n, n))
    for rows in row_blocks(n, n):
        K[rows] = kernel_matrix(X[rows], X, gamma=width)
    np.fill_diagonal(K, 1.0)
    return K, width


def equal_rows(X: Any) -> np.ndarray:
    """Return for each row of X the number of its group of equal rows, shape (n,): 0, 1, ... in order of appearance."""
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
    """Moves the mean of the training rows to the origin of the kernel's feature space."""

    def __init__(self, K: np.ndarray) -> None:
        self.means = K.mean(axis=0)
        self.mean = float(self.means.mean())

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """Return the centred kernel of some rows (m) with the training rows (n), shape (m, n)."""
        return K - K.mean(axis=1, keepdims=True) - self.means + self.mean
