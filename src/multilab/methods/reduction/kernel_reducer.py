"""What the kernel reducers share: the kernel of the training rows, labels made to targets, new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from multilab.methods.kernels import kernel_matrix
from multilab.methods.reduction.training_kernel import Centring, row_blocks, training_kernel
from multilab.methods.transformer import MultiLabelTransformer

__all__ = ["ONE_DIMENSION", "KernelReducer"]

ONE_DIMENSION = {"check_transformer_n_iter": "passes 1-D y; Y is 0/1 with one column per label"}


class KernelReducer(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """Reducer to Z = K(X, X_train) P with the Gaussian kernel exp(-gamma |x - x'|^2).

    A subclass writes ``coefficients``, and ``_embedding`` where K P is known better than by the product.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        P. With a centred kernel it is multiplied by the centred kernel of the new rows.
    gamma_ : float
        The kernel width as a number.
    """

    _small: ClassVar[dict[str, Any]] = {"n_components": 3}
    n_components: int | None
    gamma: float | Literal["median", "scale", "auto"]
    gamma_factor: float
    center_kernel: bool

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of range, or no label varies.
        """
        self._fit(X, Y)
        return self

    def fit_transform(self, X: Any, Y: Any) -> np.ndarray:
        """Learn, and return the embedding of the training rows, shape (n, r)."""
        return self._fit(X, Y)

    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of new rows, shape (m, r)."""
        X = self._validate_transform(X)
        made = np.empty((X.shape[0], self.coef_.shape[1]))
        for rows in row_blocks(X.shape[0], len(self.coef_)):
            K = kernel_matrix(X[rows], self._X, gamma=self.gamma_)
            made[rows] = (self._centring(K) if self._centring else K) @ self.coef_
        return made

    def embeddings(
        self, X: Any, Y: Any, X_new: Any, dimensions: Iterable[int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the embeddings of training and new rows to several numbers of dimensions, from one fit.

        The columns of a smaller embedding are the first of a larger one; `OLSKernelMDDM` does otherwise. The reducer's
        own ``n_components`` should be at least the largest number.
        """
        Z, Z_new = self.fit_transform(X, Y), self.transform(X_new)
        yield from ((Z[:, :count], Z_new[:, :count]) for count in dimensions)

    @abstractmethod
    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """Return P of shape (n, r) and set what else is learned.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Kernel matrix of the training rows, centred if asked.
        X : ndarray or CSR matrix of shape (n, d)
            The training rows, of which equal ones are found.
        Y : ndarray of shape (n, q)
        """

    def _embedding(self, K: np.ndarray) -> np.ndarray:
        """Return the embedding of the training rows, once ``coef_`` is there."""
        return K @ self.coef_

    def _fit(self, X: Any, Y: Any) -> np.ndarray:
        X, Y = self._validate_fit(X, Y)
        K = self._training_kernel(X)
        self.coef_ = self.coefficients(K, X, Y)
        return self._embedding(K)

    def _training_kernel(self, X: Any) -> np.ndarray:
        K, self.gamma_ = training_kernel(X, self.gamma, self.gamma_factor)
        self._X = X.copy()
        self._centring = Centring(K) if self.center_kernel else None
        return self._centring(K) if self._centring else K

    @property
    def _n_features_out(self) -> int:
        return self.coef_.shape[1]
