"""Kernel principal component analysis, the unsupervised comparator of the kernel reducers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.decomposition import KernelPCA as ScikitLearnKernelPCA

from multilab.methods.base import MethodError
from multilab.methods.reduction.kernel_reducer import KernelReducer

__all__ = ["KernelPCA"]

_ZERO = 1e-10
_LANCZOS_ROWS = 10  # per dimension, from which on ARPACK is the faster


class KernelPCA(KernelReducer):
    """scikit-learn's `KernelPCA` with the kernel of the other reducers and as many dimensions as there are labels.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimensions; None takes the number of labels. Directions with an eigenvalue up to 1e-10 of the largest are left
        out.
    gamma, gamma_factor
        See `LSKernelMDDM`.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        P, for the centred kernel.
    eigenvalues_ : ndarray of shape (r,)
        Of H K H, falling. The training embedding has the variances lambda / n.
    gamma_, n_features_in_

    Notes
    -----
    Labels are not looked at beyond their number. In each eigenvector the entry of largest magnitude is positive.

    References
    ----------
    B. Schoelkopf, A. Smola, K.-R. Mueller. Nonlinear component analysis as a kernel eigenvalue problem. Neural
    Computation 10(5), 1998.
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
        found = ScikitLearnKernelPCA(count, kernel="precomputed", eigen_solver=solver, random_state=0).fit(K)
        kept = found.eigenvalues_ > _ZERO * found.eigenvalues_[0]
        self.eigenvalues_ = found.eigenvalues_[kept]
        return found.eigenvectors_[:, kept] / np.sqrt(self.eigenvalues_)
