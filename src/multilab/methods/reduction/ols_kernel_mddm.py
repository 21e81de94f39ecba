"""Kernel MDDM by least squares with orthonormal coefficients."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.reduction._stiefel import global_orthonormal_regression, orthonormal_regression, polar_factor
from multilab.methods.reduction.equations import KernelSpectrum
from multilab.methods.reduction.kernel_reducer import KernelReducer
from multilab.methods.reduction.label_problem import centred_labels, label_directions

__all__ = ["OLSKernelMDDM"]


class OLSKernelMDDM(KernelReducer):
    """OLSkMDDM: min |K P - B|^2 subject to P^T P = I, eq. (6) of the LSkMDDM paper.

    B has the eigenvectors of the label problem as columns, as in `LSKernelMDDM`.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of dimensions r, at most the rank of the centred label matrix; None takes that rank.
    gamma, gamma_factor, center_kernel
        See `LSKernelMDDM`.
    solver : {"global", "search"}, default="global"
        "global" computes the global minimum by Newton's method on the dual problem; if it is not certified, it runs the
        search. "search" is the curvilinear search of Wen and Yin, most likely the algorithm of the paper.
    eta : float, default=1.0
        Strength of the penalty of the rLSkMDDM solution whose polar factor is the starting point of the search.
    tol : float, default=1e-4
        Tolerance of the search on the norm of the Riemannian gradient, relative to that at the starting point.
    max_iter : int, default=500
        Maximum number of steps of the search.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        Expansion coefficients P.
    objective_ : float
        Value of the objective, |K P - B|^2.
    gradient_norm_ : float
        Norm of the Riemannian gradient relative to that at the starting point; 0 for the global minimum.
    is_global_ : bool
        Whether the minimum is certified to be global.
    n_iter_ : int
        Number of steps of Newton's method or of the search.
    eigenvalues_, gamma_, n_features_in_

    Notes
    -----
    **Missing labels**: an unobserved label counts as its mean among the rows that observe it (its centred value is 0).

    Both solvers work in the eigenbasis of K, where K is diagonal. The problem is not convex, but it has no duality gap
    if the unconstrained solution is large (see `global_orthonormal_regression`). The scale of the problem is arbitrary:
    P^T P = I sets |P|_F to sqrt(r), the norm of B, while K has eigenvalues up to n.

    After 500 steps the search is 1 to 5 % above the minimum. Its path doubles rounding errors in each step, so its
    result depends on the processor; the global minimum does not.

    The paper names the algorithm by the reference "[21]" only, which its text does not identify; that of Wen and Yin is
    likely. A solution for fewer dimensions is not a subset of the columns of a larger one.

    Examples
    --------
    >>> from multilab.methods import OLSKernelMDDM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = OLSKernelMDDM(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        gamma: float | Literal["median", "scale", "auto"] = "median",
        gamma_factor: float = 1.0,
        center_kernel: bool = False,
        solver: Literal["global", "search"] = "global",
        eta: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 500,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.center_kernel = center_kernel
        self.solver = solver
        self.eta = eta
        self.tol = tol
        self.max_iter = max_iter

    def coefficients(self, K: np.ndarray, X: Any, Y: np.ndarray) -> np.ndarray:
        """See `KernelReducer`."""
        return self._in_eigenbasis(KernelSpectrum(K), Y, self.n_components)

    def embeddings(
        self, X: Any, y: Any, X_new: Any, dimensions: Iterable[int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See `KernelReducer`; each number of dimensions is solved separately, in one eigenbasis."""
        X, Y = self._validate_fit(X, y)
        K = self._training_kernel(X)
        spectrum = KernelSpectrum(K)
        for count in dimensions:
            self.coef_ = self._in_eigenbasis(spectrum, Y, count)
            yield self._embedding(K), self.transform(X_new)

    def _in_eigenbasis(self, spectrum: KernelSpectrum, Y: np.ndarray, count: int | None) -> np.ndarray:
        """Return P, shape (n, r), for at most ``count`` dimensions and set the fitted attributes."""
        if not self.eta > 0:
            raise MethodError(f"eta={self.eta}: the strength at the start must be positive")
        self._check_choices(solver=("global", "search"))
        directions = label_directions(centred_labels(Y), count)
        self.eigenvalues_ = directions.eigenvalues
        turned = spectrum.U.T @ directions.B  # U^T B, (n, r): with P = U P' the constraint stays P'^T P' = I
        w = np.where(spectrum.kept, spectrum.w, 0.0)
        solution = global_orthonormal_regression(w, turned) if self.solver == "global" else None
        self.is_global_ = solution is not None
        if solution is None:
            # eq. (5) in the eigenbasis, then the nearest matrix with orthonormal columns
            start = polar_factor((spectrum.w / (spectrum.w**2 + self.eta))[:, None] * turned)
            solution = orthonormal_regression(spectrum.w, turned, start, self.tol, self.max_iter)
        residual = spectrum.w[:, None] * solution.P - turned
        self.objective_, self.n_iter_ = float(np.vdot(residual, residual)), len(solution.objective_path) - 1
        self.gradient_norm_ = solution.gradient_norm / (solution.first_gradient_norm or 1.0)
        return spectrum.U @ solution.P
