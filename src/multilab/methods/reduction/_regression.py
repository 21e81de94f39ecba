"""Penalised least squares on a kernel matrix, and the choice of its strength by cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dnrm2, dsyrk
from sklearn.base import clone

from multilab.methods.base import MethodError
from multilab.methods.labels import check_learns_from_missing, is_partial
from multilab.methods.reduction.equations import KernelSpectrum, conjugate_gradients, lsqr
from multilab.methods.reduction.label_problem import product


@dataclass(frozen=True)
class Regression:
    """Settings of a solver of K P = B, eqs. (3) and (5) of the LSkMDDM paper.

    Attributes
    ----------
    solver : {"cholesky", "cg", "lsqr"}
    penalty : {"l2", "rkhs"}
        With eta > 0, "l2" gives P = (K^2 + eta I)^{-1} K B, eq. (5), and "rkhs" P = (K + eta I)^{-1} B.
    tol : float
    max_iter : int
        Tolerance and maximum number of iterations of "cg" and "lsqr".
    reorthogonalise : bool
        See `lsqr_iterates`.

    Raises
    ------
    MethodError
        If the solver or the penalty is unknown.
    """

    solver: str
    penalty: str
    tol: float
    max_iter: int
    reorthogonalise: bool = False

    def __post_init__(self) -> None:
        if self.solver not in ("cholesky", "cg", "lsqr"):
            raise MethodError(f"solver={self.solver!r}: give 'cholesky', 'cg' or 'lsqr'")
        if self.penalty not in ("l2", "rkhs"):
            raise MethodError(f"penalty={self.penalty!r}: give 'l2' or 'rkhs'")


def regressions(how: Regression, K: np.ndarray, B: np.ndarray, etas: Sequence[float]) -> list[tuple[np.ndarray, int]]:
    """Return P, shape (n, r), and the number of iterations (0 for "cholesky") for each eta.

    Parameters
    ----------
    how : Regression
    K : ndarray of shape (n, n)
        Kernel matrix, centred or not.
    B : ndarray of shape (n, r)
        Targets.
    etas : sequence of float
        Strengths of the penalty; "cholesky" needs positive ones and computes K K once for all.
    """
    if how.solver == "cholesky":
        return [(P, 0) for P in _by_cholesky(how.penalty, K, B, etas)]
    return [_by_products(how, K, B, eta) for eta in etas]


def _by_cholesky(penalty: str, K: np.ndarray, B: np.ndarray, etas: Sequence[float]) -> list[np.ndarray]:
    """Return P for each positive eta by a Cholesky factor, or by `KernelSpectrum` if rounding makes it fail."""
    # dsyrk computes one triangle of K K in Fortran order; with both transposes nothing is copied
    gram, target = (dsyrk(1.0, K.T, trans=1).T, K @ B) if penalty == "l2" else (K, B)
    own = np.diag(gram).copy()
    solutions = []
    for eta in etas:
        ridged = gram.copy()
        np.fill_diagonal(ridged, own + eta)
        try:
            factor = cho_factor(ridged.T, lower=False, overwrite_a=True, check_finite=False)
            solutions.append(cho_solve(factor, target, check_finite=False))
        except LinAlgError:  # eta is smaller than the rounding errors of K K
            solutions.append(KernelSpectrum(K).ridge(B, eta, penalty))
    return solutions


def _by_products(how: Regression, K: np.ndarray, B: np.ndarray, eta: float) -> tuple[np.ndarray, int]:
    """Return P and the number of iterations by "cg" or "lsqr", from products with K alone."""
    if how.solver == "lsqr":
        if how.penalty == "rkhs" and eta > 0:
            return lsqr(lambda V: K @ V + eta * V, B, how.tol, how.max_iter, 0.0, how.reorthogonalise)
        return lsqr(lambda V: K @ V, B, how.tol, how.max_iter, eta**0.5, how.reorthogonalise)
    if how.penalty == "l2" and eta > 0:
        return conjugate_gradients(lambda V: K @ (K @ V) + eta * V, K @ B, how.tol, how.max_iter)
    return conjugate_gradients(lambda V: K @ V + eta * V if eta else K @ V, B, how.tol, how.max_iter)


def relative_residual(K: np.ndarray, P: np.ndarray, B: np.ndarray) -> float:
    """Return |K P - B|_F / |B|_F."""
    return float(dnrm2((product(K, P) - B).ravel()) / dnrm2(B.ravel()))


@dataclass(frozen=True)
class Fold:
    """One fold of the training rows.

    Attributes
    ----------
    kept, out : boolean ndarray of shape (n,)
        Rows for fitting, and rows held out.
    inside : ndarray of shape (k, k)
        Kernel matrix of the k rows for fitting.
    across : ndarray of shape (n - k, k)
        Kernel matrix of the rows held out and those for fitting.
    """

    kept: np.ndarray
    out: np.ndarray
    inside: np.ndarray
    across: np.ndarray


Loss = Callable[[Fold, np.ndarray], float]
"""Loss on the rows held out of a fold, given the coefficients P of the rows for fitting, shape (k, r)."""


def squared_error(B: np.ndarray) -> Loss:
    """Return the loss |K P - B|^2 for the targets B of all training rows, shape (n, r).

    Targets depend on the labels alone and are not recomputed per fold.
    """
    return lambda fold, P: float(np.sum((fold.across @ P - B[fold.out]) ** 2))


def micro_f1_loss(Y: np.ndarray, classifier: Any) -> Loss:
    """Return the loss 1 - micro F1 of a clone of the classifier fitted to the embedding; Y has shape (n, q).

    Labels that are not observed (-1) do not count.
    """
    if is_partial(Y):
        check_learns_from_missing(classifier)

    def loss(fold: Fold, P: np.ndarray) -> float:
        predicted = clone(classifier).fit(fold.inside @ P, Y[fold.kept]).predict(fold.across @ P)
        true = Y[fold.out]
        if is_partial(Y):
            true, predicted = np.where(true < 0, 0, true), np.where(true < 0, 0, predicted)
        positive = float(true.sum()) + float(predicted.sum())
        return 1.0 - (2.0 * float(np.sum(true * predicted)) / positive if positive else 0.0)

    return loss


def chosen_eta(how: Regression, K: np.ndarray, B: np.ndarray, etas: Sequence[float], folds: int, loss: Loss) -> float:
    """Return the eta with the least sum of losses over the folds; row i is in fold i modulo ``folds``.

    Parameters
    ----------
    how : Regression
    K : ndarray of shape (n, n)
    B : ndarray of shape (n, r)
    etas : sequence of float
        The first of equally good ones is taken.
    folds : int
    loss : Loss

    Raises
    ------
    MethodError
        If ``folds`` is not between 2 and n.
    """
    n = len(K)
    if not 2 <= folds <= n:
        raise MethodError(f"cv={folds}: between 2 and {n} folds are possible")
    losses = np.zeros(len(etas))
    for index in range(folds):
        out = np.arange(n) % folds == index
        fold = Fold(~out, out, K[np.ix_(~out, ~out)], K[np.ix_(out, ~out)])
        for i, (P, _) in enumerate(regressions(how, fold.inside, B[~out], etas)):
            losses[i] += loss(fold, P)
    return float(etas[int(losses.argmin())])
