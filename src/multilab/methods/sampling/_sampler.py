"""Base class of the samplers, and which labels are in the minority."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.datasets.imbalance import irlbl, mean_ir
from multilab.methods.base import MethodError, _MultiLabelInput
from multilab.methods.labels import with_tag_columns


class LabelSampler(_MultiLabelInput, BaseEstimator, ABC):
    """Base class of samplers: `fit_resample` in the protocol of imbalanced-learn.

    A subclass has an argument ``random_state`` and implements ``_resample``.
    """

    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Check the arguments, X of shape (n, d) and y of shape (n, q); nothing is learned."""
        self._check_arguments()
        self._validate_fit(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the resampled training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q)

        Returns
        -------
        X : ndarray or CSR matrix of shape (m, d), float64
        y : ndarray of shape (m, q), or CSR array where a sparse y was given

        Raises
        ------
        MethodError
            If an argument is out of range.
        """
        self._check_arguments()
        y = with_tag_columns(y)
        X, Y = self._validate_fit(X, y)
        X, Y = self._resample(X, Y, check_random_state(self.random_state))
        if self._classes is not None:
            return X, self._classes[Y[:, 0]]
        if sp.issparse(y):
            return X, sp.csr_array(Y).astype(y.dtype)
        return X, Y.astype(getattr(y, "dtype", np.int64))

    def _set_labels(self, n_labels: int, classes: np.ndarray | None = None, names: np.ndarray | None = None) -> None:
        self._classes = classes

    def _check_arguments(self) -> None:
        """Raise a `MethodError` if an argument is out of range."""

    @abstractmethod
    def _resample(self, X: Any, Y: np.ndarray, rng: np.random.RandomState) -> tuple[Any, np.ndarray]:
        """Return the resampled X (dense or CSR) and Y (uint8)."""


def minority_labels(Y: np.ndarray) -> np.ndarray:
    """Return the numbers of the labels that some row has and whose `irlbl` is above `mean_ir`."""
    ratios = irlbl(Y)
    return np.flatnonzero(np.isfinite(ratios) & (ratios > mean_ir(Y)))


def check_ratio(ratio: float, largest: float) -> None:
    """Raise a `MethodError` if a share of the rows is not in (0, largest]."""
    if not 0 < ratio <= largest:
        raise MethodError(f"ratio={ratio!r} must be in (0, {largest:g}], a share of the training rows")
