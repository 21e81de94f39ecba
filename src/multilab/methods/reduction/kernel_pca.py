"""Kernel principal component analysis: the unsupervised comparator of the kernel reducers."""

from typing import Any, Literal

import numpy as np
from sklearn.decomposition import KernelPCA as ScikitLearnKernelPCA

from multilab.methods.base import MethodError
from multilab.methods.reduction.kernel_reducer import KernelReducer

__all__ = ["KernelPCA"]

_ZERO = 1e-10  # eigenvalues up to this share of the largest count as 0
_LANCZOS_ROWS = 10  # with more rows per dimension ARPACK is faster than a dense solver


class KernelPCA(KernelReducer):
    """Kernel PCA with the kernel of the other reducers and one dimension per label.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r; None takes the number of labels. Directions with an eigenvalue up to 1e-10 of the
        largest are dropped.
    gamma, gamma_factor
        See `LSKernelMDDM`.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        Expansion coefficients P for the centred kernel.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues lambda of H K H, descending. The columns of the training embedding have the variances lambda / n.
    gamma_, n_features_in_

    Notes
    -----
    Only the number of labels is used, so that any of them may be unobserved. In each eigenvector the entry of largest
    magnitude is positive.

    References
    ----------
    B. Schoelkopf, A. Smola, K.-R. Mueller. Nonlinear component analysis as a kernel eigenvalue problem. Neural
    Computation 10(5), 1998.

    Examples
    --------
    >>> from multilab.methods import KernelPCA
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = KernelPCA(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    center_kernel = True

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        if self.n_components is not None and self.n_components < 1:
            raise MethodError(f"n_components={self.n_components}: there must be at least one dimension")
        count = min(self.n_components or Y.shape[1], len(K))
        solver = "arpack" if _LANCZOS_ROWS * count < len(K) else "dense"
        pca = ScikitLearnKernelPCA(count, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)
        kept = pca.eigenvalues_ > _ZERO * pca.eigenvalues_[0]
        self.eigenvalues_ = pca.eigenvalues_[kept]
        return pca.eigenvectors_[:, kept] / np.sqrt(self.eigenvalues_)
