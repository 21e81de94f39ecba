"""Input that the binary problems of one fit share: a kernel matrix, or the features themselves.

Both kinds have ``base`` (the estimator to clone), ``training()`` and ``query(X)``. The last two return a
table with the current ``matrix`` and ``append(bits, training_bits)``, which adds a label column to the
features (chains).
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from multilab.methods.kernels import dot_products, kernel_from, resolve_gamma, squared_distances

PLAIN_TREES = (DecisionTreeClassifier, ExtraTreeClassifier)  # not their subclasses, which may do otherwise

_SHARED_KERNELS = ("rbf", "linear", "poly", "sigmoid")


class Table(Protocol):
    """Inputs of one binary problem after another."""

    matrix: Any

    def append(self, bits: np.ndarray, training_bits: np.ndarray) -> None:
        """Add one 0/1 column: of the rows of the matrix, and of the training rows."""


class Inputs(Protocol):
    """Input of the base estimators of one fit."""

    base: BaseEstimator

    def training(self) -> Table:
        """Return the inputs of the training rows."""

    def query(self, X: Any) -> Table:
        """Return the inputs of new rows."""


def make_inputs(estimator: BaseEstimator, X: Any, weight: np.ndarray | None = None) -> Inputs:
    """Return a shared kernel for an SVC with one of scikit-learn's named kernels, else features.

    Features of a decision tree are brought into the form it works on (float32, CSC to fit and CSR to predict), and its
    parameters checked, once for all labels; see `multilab.methods.transformation._binary.quiet_fit`. Weights of the
    rows count in the width of a kernel.
    """
    if isinstance(estimator, SVC) and estimator.kernel in _SHARED_KERNELS:
        return _SharedKernel(estimator, X, weight)
    if type(estimator) in PLAIN_TREES:
        return _TreeFeatures(estimator, X)
    return _Features(estimator, X)


class _Features:
    def __init__(self, estimator: BaseEstimator, X: Any) -> None:
        self.base = estimator
        self._X = X

    def training(self) -> Table:
        return _FeatureTable(self._X)

    def query(self, X: Any) -> Table:
        return _FeatureTable(X)


class _TreeFeatures(_Features):
    def __init__(self, estimator: BaseEstimator, X: Any) -> None:
        super().__init__(estimator, X)
        estimator._validate_params()

    def training(self) -> Table:
        return _FeatureTable(_as_float32(self._X, "csc"))

    def query(self, X: Any) -> Table:
        return _FeatureTable(_as_float32(X, "csr"))


def _as_float32(X: Any, layout: str) -> Any:
    if not sp.issparse(X):
        # a number beyond float32 must reach the tree's own check
        return X if np.abs(X).max(initial=0.0) > np.finfo(np.float32).max else X.astype(np.float32)
    if X.indices.dtype != np.int32 or np.abs(X.data).max(initial=0.0) > np.finfo(np.float32).max:
        return X
    return X.astype(np.float32).asformat(layout)


class _FeatureTable:
    def __init__(self, X: Any) -> None:
        self.matrix = X

    def append(self, bits: np.ndarray, training_bits: np.ndarray) -> None:
        if sp.issparse(self.matrix):
            self.matrix = _with_column(self.matrix, bits)
        else:
            self.matrix = np.hstack([self.matrix, bits.astype(self.matrix.dtype)[:, None]])


def _with_column(X: Any, bits: np.ndarray) -> Any:
    """Return CSR or CSC X with one more 0/1 column; much cheaper than a general stack, which sorts all entries."""
    shape = X.shape[0], X.shape[1] + 1
    if X.format == "csc":
        rows = np.flatnonzero(bits).astype(X.indices.dtype)
        indptr = np.append(X.indptr, X.indptr[-1] + len(rows)).astype(X.indptr.dtype)
        ones = np.ones(len(rows), dtype=X.dtype)
        return type(X)((np.concatenate([X.data, ones]), np.concatenate([X.indices, rows]), indptr), shape=shape)
    ends = X.indptr[1:][np.asarray(bits, dtype=bool)]
    indptr = X.indptr.copy()
    indptr[1:] += np.cumsum(bits, dtype=indptr.dtype)
    entries = np.insert(X.data, ends, 1.0), np.insert(X.indices, ends, X.shape[1])
    return type(X)((*entries, indptr), shape=shape)


class _SharedKernel:
    """One kernel matrix for all labels; gamma is fixed from the features alone, whatever labels are added."""

    def __init__(self, estimator: SVC, X: Any, weight: np.ndarray | None) -> None:
        self.base = clone(estimator).set_params(kernel="precomputed")
        self.kernel, self.degree, self.coef0 = estimator.kernel, estimator.degree, estimator.coef0
        self.gamma = 1.0 if self.kernel == "linear" else resolve_gamma(estimator.gamma, X, weight)
        self._X = X

    def training(self) -> Table:
        return _KernelTable(self, self._X, None)

    def query(self, X: Any) -> Table:
        return _KernelTable(self, X, self._X)


class _KernelTable:
    def __init__(self, shared: _SharedKernel, X: Any, Z: Any) -> None:
        self._shared = shared
        base = squared_distances(X, Z) if shared.kernel == "rbf" else dot_products(X, Z)
        # kept only where a label column neither adds to the kernel nor multiplies it
        self._dots = base if shared.kernel in ("poly", "sigmoid") else None
        self.matrix = self._transform(base)

    def _transform(self, base: np.ndarray) -> np.ndarray:
        shared = self._shared
        return kernel_from(base, shared.kernel, shared.gamma, shared.degree, shared.coef0)

    def append(self, bits: np.ndarray, training_bits: np.ndarray) -> None:
        if self._shared.kernel == "rbf":  # exp(-g (D + (b - b')^2)) = K exp(-g [b != b'])
            unequal = np.exp(-self._shared.gamma)
            factors = [np.where(training_bits == bit, 1.0, unequal) for bit in (0, 1)]
            for row, bit in zip(self.matrix, bits, strict=True):  # row by row: no second n x n matrix
                row *= factors[int(bit)]
        elif self._dots is None:  # linear
            self.matrix[bits == 1] += training_bits
        else:
            self._dots[bits == 1] += training_bits
            self.matrix = self._transform(self._dots)
