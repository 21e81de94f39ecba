# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Base class of the kernel reducers: kernel matrix of the training rows, embedding of new rows."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from multilab.methods._array_api import keep_namespace
from multilab.methods._kernels import kernel_matrix
from multilab.methods.base import MultiLabelTransformer
from multilab.methods.reduction._training_kernel import Centring, row_blocks, training_kernel


class KernelReducer(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """Embedding Z = K(X, X_train) P with the Gaussian kernel exp(-gamma |x - x'|^2).

    A subclass implements ``coefficients``, and ``_embedding`` if K P is known more accurately than by the product. Its
    targets are made of `multilab.methods._observed.centred` labels: an unobserved one counts as its mean.

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

    def fit(self, X: Any, y: Any, *, y_mask: Any = None) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and y of shape (n, q); y_mask is True where it is observed.

        Raises
        ------
        MethodError
            If an argument is out of range, or no label varies.
        """
        self._fit(X, y, y_mask)
        return self

    @keep_namespace
    def fit_transform(self, X: Any, y: Any, *, y_mask: Any = None) -> np.ndarray:
        """Learn from X and y (see ``fit``) and return the embedding of the training rows, shape (n, r)."""
        return self._fit(X, y, y_mask)

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

    def _fit(self, X: Any, y: Any, y_mask: Any) -> np.ndarray:
        """Fit and return the embedding of the training rows, shape (n, r)."""
        X, Y = self._validate_fit(X, y, y_mask)
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
