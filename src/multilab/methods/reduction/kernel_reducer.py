"""Base class of the kernel reducers: kernel matrix of the training rows, embedding of new rows."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from multilab.methods._array_api import keep_namespace
from multilab.methods.base import MethodError, MultiLabelTransformer
from multilab.methods.kernels import kernel_matrix, median_gamma, resolve_gamma, squared_distances

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


class KernelReducer(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """Embedding Z = K(X, X_train) P with the Gaussian kernel exp(-gamma |x - x'|^2).

    A subclass implements ``coefficients``, and ``_embedding`` if K P is known more accurately than by the product. Its
    targets are made of `multilab.methods.labels.centred` labels: an unobserved one counts as its mean.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        Expansion coefficients P; with ``center_kernel`` those of the centred kernel.
    gamma_ : float
        gamma of the kernel as a number.
    """

    _accepts_missing_labels: ClassVar[bool] = True

    n_components: int | None
    gamma: float | Literal["median", "scale", "auto"]
    gamma_factor: float
    center_kernel: bool

    @keep_namespace
    def fit_transform(self, X: Any, y: Any, *, y_mask: Any = None) -> np.ndarray:
        """Learn from X and y (see ``fit``) and return the embedding of the training rows, shape (n, r)."""
        return self._fit(*self._validate_fit(X, y, y_mask))

    @keep_namespace
    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of new rows, shape (m, r)."""
        X = self._validate_transform(X)
        made = np.empty((X.shape[0], self.coef_.shape[1]))
        for rows in row_blocks(X.shape[0], len(self.coef_)):
            K = kernel_matrix(X[rows], self._X, gamma=self.gamma_)
            made[rows] = (self._centring(K) if self._centring else K) @ self.coef_
        return made

    def embeddings(
        self, X: Any, y: Any, X_new: Any, dimensions: Iterable[int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the embeddings of training and new rows for several numbers of dimensions, from one fit.

        Parameters
        ----------
        X, y
            Training rows and labels, see ``fit``.
        X_new : array-like or sparse matrix of shape (m, d)
        dimensions : iterable of int
            The largest number should not exceed ``n_components``.

        Yields
        ------
        Z : ndarray of shape (n, r)
        Z_new : ndarray of shape (m, r)
            The columns of a smaller embedding are the first ones of a larger; `OLSKernelMDDM` overrides this.
        """
        Z, Z_new = self.fit_transform(X, y), self.transform(X_new)
        yield from ((Z[:, :count], Z_new[:, :count]) for count in dimensions)

    @abstractmethod
    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return P of shape (n, r) and set the other fitted attributes.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Kernel matrix of the training rows, centred if requested.
        X : ndarray or CSR matrix of shape (n, d)
            Training rows, to detect equal ones.
        Y : ndarray of shape (n, q)
        """

    def _embedding(self, K: np.ndarray) -> np.ndarray:
        """Return the embedding of the training rows, shape (n, r), after ``coef_`` is set."""
        return K @ self.coef_

    def _fit(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """Fit and return the embedding of the training rows, shape (n, r)."""
        K = self._training_kernel(X)
        self.coef_ = self.coefficients(K, X, Y)
        return self._embedding(K)

    def _training_kernel(self, X: Any) -> np.ndarray:
        """Return the kernel matrix of the training rows, shape (n, n), centred if requested, and store a copy of X."""
        K, self.gamma_ = training_kernel(X, self.gamma, self.gamma_factor)
        self._X = X.copy()
        self._centring = Centring(K) if self.center_kernel else None
        return self._centring(K) if self._centring else K

    @property
    def _n_features_out(self) -> int:
        return self.coef_.shape[1]
