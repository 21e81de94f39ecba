"""Least squares on a kernel matrix with a penalty: P from K and targets B, by three solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dnrm2, dsyrk

from multilab.methods.base import MethodError
from multilab.methods.reduction.exact_equations import KernelSpectrum
from multilab.methods.reduction.iterative import conjugate_gradients, lsqr
from multilab.methods.reduction.label_problem import product

__all__ = ["Regression", "chosen_eta", "regressions", "relative_residual"]


@dataclass(frozen=True)
class Regression:
    """How K P = B is solved.

    Attributes
    ----------
    solver : {"cholesky", "cg", "lsqr"}
    penalty : {"l2", "rkhs"}
        With eta > 0, P = (K^2 + eta I)^{-1} K B, eq. (5), or (K + eta I)^{-1} B.
    tol, max_iter
        Of the iterative solvers.
    """

    solver: str
    penalty: str
    tol: float
    max_iter: int

    def __post_init__(self) -> None:
        if self.solver not in ("cholesky", "cg", "lsqr"):
            raise MethodError(f"solver={self.solver!r}: give 'cholesky', 'cg' or 'lsqr'")
        if self.penalty not in ("l2", "rkhs"):
            raise MethodError(f"penalty={self.penalty!r}: give 'l2' or 'rkhs'")


def regressions(how: Regression, K: np.ndarray, B: np.ndarray, etas: Sequence[float]) -> list[tuple[np.ndarray, int]]:
    """Return P and the iterations taken (0 by Cholesky) for each eta; all must be positive by Cholesky.

    Parameters
    ----------
    how : Regression
    K : ndarray of shape (n, n)
        Kernel, centred or not.
    B : ndarray of shape (n, r)
        Targets.
    etas : sequence of float
        Strengths of the penalty. One product K K serves all.
    """
    if how.solver == "cholesky":
        return [(P, 0) for P in _by_cholesky(how.penalty, K, B, etas)]
    return [_by_products(how, K, B, eta) for eta in etas]


def _by_cholesky(penalty: str, K: np.ndarray, B: np.ndarray, etas: Sequence[float]) -> list[np.ndarray]:
    # dsyrk fills the upper triangle in the order of Fortran; transposed twice, nothing is copied
    gram, target = (dsyrk(1.0, K.T, trans=1).T, K @ B) if penalty == "l2" else (K, B)
    own = np.diag(gram).copy()
    found = []
    for eta in etas:
        ridged = gram.copy()
        np.fill_diagonal(ridged, own + eta)
        try:
            factor = cho_factor(ridged.T, lower=False, overwrite_a=True, check_finite=False)
            found.append(cho_solve(factor, target, check_finite=False))
        except LinAlgError:  # eta is below the rounding of K K
            found.append(KernelSpectrum(K).ridge(B, eta, penalty))
    return found


def _by_products(how: Regression, K: np.ndarray, B: np.ndarray, eta: float) -> tuple[np.ndarray, int]:
    if how.solver == "lsqr":
        if how.penalty == "rkhs" and eta > 0:
            return lsqr(lambda V: K @ V + eta * V, B, how.tol, how.max_iter)
        return lsqr(lambda V: K @ V, B, how.tol, how.max_iter, damp=eta**0.5)
    if how.penalty == "l2" and eta > 0:
        return conjugate_gradients(lambda V: K @ (K @ V) + eta * V, K @ B, how.tol, how.max_iter)
    return conjugate_gradients(lambda V: K @ V + eta * V if eta else K @ V, B, how.tol, how.max_iter)


def chosen_eta(how: Regression, K: np.ndarray, B: np.ndarray, etas: Sequence[float], folds: int) -> float:
    """Return the eta with the least squared error on rows left out; row i is in fold i modulo ``folds``.

    The targets, which depend on labels alone, are those of all training rows; what is left out is what an instance says
    of them.
    """
    n = len(K)
    if not 2 <= folds <= n:
        raise MethodError(f"cv={folds}: between 2 and {n} folds are possible")
    errors = np.zeros(len(etas))
    fold = np.arange(n) % folds
    for index in range(folds):
        out = fold == index
        inside = K[np.ix_(~out, ~out)]
        across = K[np.ix_(out, ~out)]
        for place, (P, _) in enumerate(regressions(how, inside, B[~out], etas)):
            errors[place] += float(np.sum((across @ P - B[out]) ** 2))
    return float(etas[int(errors.argmin())])


def relative_residual(K: np.ndarray, P: np.ndarray, B: np.ndarray) -> float:
    """Return |K P - B|_F / |B|_F."""
    return float(dnrm2((product(K, P) - B).ravel()) / dnrm2(B.ravel()))
