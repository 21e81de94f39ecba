"""Kernel MDDM by least squares with orthonormal coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.reduction.exact_equations import KernelSpectrum
from multilab.methods.reduction.kernel_reducer import ONE_DIMENSION, KernelReducer
from multilab.methods.reduction.label_problem import centred_labels, label_directions
from multilab.methods.reduction.stiefel import global_orthonormal_regression, orthonormal_regression, polar_factor

__all__ = ["OLSKernelMDDM"]


class OLSKernelMDDM(KernelReducer):
    """OLSkMDDM: min |K P - B|^2 subject to P^T P = I, eq. (6) of the LSkMDDM paper, B as in `LSKernelMDDM`.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimensions, at most the rank of the centred label matrix, which None takes.
    gamma, gamma_factor, center_kernel
        See `LSKernelMDDM`.
    solver : {"global", "search"}, default="global"
        "global" finds the global minimum by Newton's method on the dual problem, and takes the search where that is not
        certified. "search" is the curvilinear search of Wen and Yin, the paper's algorithm as far as it can be known.
    eta : float, default=1.0
        The search starts at the polar factor of the rLSkMDDM solution of this strength.
    tol : float, default=1e-4
        Of the search, on the norm of the Riemannian gradient, relative to that at the start.
    max_iter : int, default=500
        Steps of the search.

    Attributes
    ----------
    coef_ : ndarray of shape (n, r)
        P.
    objective_ : float
        |K P - B|^2.
    gradient_norm_ : float
        Relative to that at the start of the search; 0 for the global minimum.
    is_global_ : bool
        Whether the minimum is certified to be global.
    n_iter_ : int
    eigenvalues_, gamma_, n_features_in_

    Notes
    -----
    Both run in the eigenbasis of K, where K is diagonal. The problem is not convex, but its dual has no gap where the
    unconstrained solution is large (see `global_orthonormal_regression`). Its scale is arbitrary: P^T P = I sets |P|_F
    to sqrt(r), as B has, while K has eigenvalues up to n.

    After 500 steps the search is 1 to 5 % above the minimum, and its path doubles rounding errors in each step, so that
    another processor ends elsewhere; the global minimum is the same on all.

    The text names the algorithm by a number without an entry ("[21]"); Wen and Yin's is the likely one. Of the columns
    none is the solution to fewer dimensions.
    """

    _small: ClassVar[dict[str, Any]] = {"n_components": 3, "max_iter": 50}
    _expected_failed_checks: ClassVar[dict[str, str]] = ONE_DIMENSION

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
        self, X: Any, Y: Any, X_new: Any, dimensions: Iterable[int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See `KernelReducer`: a search for each number of dimensions, in one eigenbasis."""
        X, Y = self._validate_fit(X, Y)
        K = self._training_kernel(X)
        spectrum = KernelSpectrum(K)
        for count in dimensions:
            self.coef_ = self._in_eigenbasis(spectrum, Y, count)
            yield self._embedding(K), self.transform(X_new)

    def _in_eigenbasis(self, spectrum: KernelSpectrum, Y: np.ndarray, count: int | None) -> np.ndarray:
        if not self.eta > 0:
            raise MethodError(f"eta={self.eta}: the strength at the start must be positive")
        if self.solver not in ("global", "search"):
            raise MethodError(f"solver={self.solver!r}: give 'global' or 'search'")
        directions = label_directions(centred_labels(Y), count)
        self.eigenvalues_ = directions.eigenvalues
        turned = spectrum.U.T @ directions.B
        w = np.where(spectrum.kept, spectrum.w, 0.0)
        solution = global_orthonormal_regression(w, turned) if self.solver == "global" else None
        self.is_global_ = solution is not None
        if solution is None:
            start = polar_factor((spectrum.w / (spectrum.w**2 + self.eta))[:, None] * turned)
            solution = orthonormal_regression(spectrum.w, turned, start, self.tol, self.max_iter)
        residual = spectrum.w[:, None] * solution.P - turned
        self.objective_, self.n_iter_ = float(np.vdot(residual, residual)), len(solution.objective_path) - 1
        self.gradient_norm_ = solution.gradient_norm / (solution.first_gradient_norm or 1.0)
        return spectrum.U @ solution.P
