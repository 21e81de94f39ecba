"""Kernel MDDM by least squares on a Nystroem approximation, for data sets whose kernel matrix is too large."""

from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from multilab.methods._array_api import keep_namespace
from multilab.methods.base import MethodError, MultiLabelTransformer
from multilab.methods.kernels import kernel_matrix
from multilab.methods.reduction.kernel_reducer import kernel_width, row_blocks
from multilab.methods.reduction.label_problem import centred_labels, label_directions

__all__ = ["NystroemLSKernelMDDM"]


class NystroemLSKernelMDDM(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """rLSkMDDM with the Nystroem approximation F F^T of K, where F = K(X, Z) K(Z, Z)^(-1/2).

    Z are m training rows, the landmarks. With G = F^T F the coefficients of F are (G^2 + eta I)^{-1} G F^T B for the
    penalty of eq. (5) of the LSkMDDM paper and (G + eta I)^{-1} F^T B for kernel ridge regression. With all rows as
    landmarks the result is that of `LSKernelMDDM`.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r, at most the rank of the centred label matrix; None takes that rank.
    n_landmarks : int, default=1000
        Number of landmarks m, drawn without replacement; all rows if there are fewer.
    gamma, gamma_factor
        See `LSKernelMDDM`; the rules for gamma are applied to the landmarks only.
    eta : float, default=1.0
        Strength of the penalty, positive.
    penalty : {"l2", "rkhs"}, default="l2"
        See `LSKernelMDDM`.
    random_state : int, RandomState or None
        Seed of the landmarks.

    Attributes
    ----------
    landmarks_ : ndarray of shape (m,)
        Row numbers of the landmarks, ascending.
    coef_ : ndarray of shape (m, r)
        Expansion coefficients of K(x, Z).
    residual_ : float
        Relative residual |E - B| / |B| of the training embedding E.
    eigenvalues_, gamma_, n_features_in_

    Notes
    -----
    Time is O(n m^2). Memory is O(n q + m^2) and one block of 256 MiB: the (n, m) matrix F is never formed.

    **Missing labels**: an unobserved label counts as its mean among the rows that observe it (its centred value is 0).

    References
    ----------
    C. K. I. Williams, M. Seeger. Using the Nystroem method to speed up kernel machines. NIPS 13, 2000.

    Examples
    --------
    >>> from multilab.methods import NystroemLSKernelMDDM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = NystroemLSKernelMDDM(n_components=2, n_landmarks=20, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    _accepts_missing_labels: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int | None = None,
        n_landmarks: int = 1000,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        eta: float = 1.0,
        penalty: Literal["l2", "rkhs"] = "l2",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.eta = eta
        self.penalty = penalty
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        if not (self.eta > 0 and self.n_landmarks >= 1) or self.penalty not in ("l2", "rkhs"):
            raise MethodError(
                f"eta={self.eta} must be positive, n_landmarks={self.n_landmarks} at least 1 and "
                f"penalty={self.penalty!r} 'l2' or 'rkhs'"
            )
        n = X.shape[0]
        random = check_random_state(self.random_state)
        self.landmarks_ = np.sort(random.choice(n, size=min(n, self.n_landmarks), replace=False))
        self._Z = X[self.landmarks_]
        self.gamma_ = kernel_width(self.gamma, self.gamma_factor, self._Z)
        directions = label_directions(centred_labels(Y), self.n_components)
        self.eigenvalues_ = directions.eigenvalues
        values, vectors = eigh(kernel_matrix(self._Z, gamma=self.gamma_))
        kept = values > len(values) * np.finfo(float).eps * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])  # K(Z, Z)^(-1/2) up to a rotation, (m, rank)
        G, target = np.zeros((root.shape[1],) * 2), np.zeros((root.shape[1], directions.B.shape[1]))
        for rows in row_blocks(n, len(self.landmarks_)):
            F = kernel_matrix(X[rows], self._Z, gamma=self.gamma_) @ root  # (rows of the block, rank)
            G += F.T @ F
            target += F.T @ directions.B[rows]
        left, right = (G @ G, G @ target) if self.penalty == "l2" else (G.copy(), target)
        left[np.diag_indices_from(left)] += self.eta
        W = cho_solve(cho_factor(left, overwrite_a=True), right)
        self.coef_ = root @ W
        count = directions.B.shape[1]  # |F W - B|^2 by G and F^T B; the columns of B have norm 1
        self.residual_ = float(np.sqrt(max(1.0 + (np.vdot(W, G @ W) - 2.0 * np.vdot(W, target)) / count, 0.0)))

    @keep_namespace
    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of rows, shape (m, r)."""
        X = self._validate_transform(X)
        blocks = row_blocks(X.shape[0], len(self.coef_))
        return np.vstack([kernel_matrix(X[rows], self._Z, gamma=self.gamma_) @ self.coef_ for rows in blocks])

    @property
    def _n_features_out(self) -> int:
        return self.coef_.shape[1]
