"""K P = B solved exactly, for a kernel matrix that may be singular."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dlange, dpocon

from multilab.methods.reduction.label_problem import group_means

__all__ = ["Equations", "GroupedEquations", "KernelSpectrum", "equations"]

_RANGE_TOLERANCE = 1e-10  # eigenvalues up to this share of the largest are 0
_RCOND = 1e-12


class Equations(Protocol):
    """The equations K P = B of one kernel matrix K."""

    def project(self, Q: np.ndarray) -> np.ndarray:
        """Return the projection of the columns of Q (n x c) on the range of K."""

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return the P of least norm among those with the least |K P - B|, of the shape of B (n x r)."""


def equations(K: np.ndarray, groups: np.ndarray) -> Equations:
    """Return the equations in the form that serves: by Cholesky where K of distinct rows is definite, else by `eigh`.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel of the training rows; centred it is singular, which is found out.
    groups : ndarray of shape (n,)
        Which rows are equal, see `equal_rows`.
    """
    try:
        return GroupedEquations(K, groups)
    except LinAlgError:
        return KernelSpectrum(K)


class GroupedEquations:
    """K = E M E^T, E the membership of rows in groups of equal rows, M the definite kernel of one row of each.

    The range of K is that of E, so that the projection on it is the mean over each group.

    Raises
    ------
    LinAlgError
        If M is not positive definite or nearly singular (reciprocal condition below 1e-12).
    """

    def __init__(self, K: np.ndarray, groups: np.ndarray) -> None:
        _, first, self.sizes = np.unique(groups, return_index=True, return_counts=True)
        self.groups = groups
        M = K.take(first, axis=0).take(first, axis=1)  # a copy, which the factor overwrites
        norm = dlange("1", M.T)
        self._factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        if dpocon(self._factor[0], norm, uplo="L")[0] < _RCOND:
            raise LinAlgError("the kernel matrix of the distinct rows is nearly singular")

    def project(self, Q: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        return group_means(Q, self.groups)[self.groups]

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        sums = cho_solve(self._factor, group_means(B, self.groups), check_finite=False)
        return (sums / self.sizes[:, None])[self.groups]


class KernelSpectrum:
    """K = U diag(w) U^T: one decomposition serves the exact solution, every ridge and steps in the eigenbasis.

    Attributes
    ----------
    w : ndarray of shape (n,)
        Eigenvalues, ascending.
    U : ndarray of shape (n, n)
    kept : boolean ndarray of shape (n,)
        Which eigenvalues are above 1e-10 of the largest.
    """

    def __init__(self, K: np.ndarray) -> None:
        self.w, self.U = eigh(K, driver="evd", check_finite=False)
        self.kept = self.w > _RANGE_TOLERANCE * self.w[-1]

    def project(self, Q: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        return self.U @ np.where(self.kept[:, None], self.U.T @ Q, 0.0)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        return self.U @ self.solve_turned(self.U.T @ B)

    def solve_turned(self, turned: np.ndarray) -> np.ndarray:
        """Return the solution as coefficients of the eigenvectors, from the targets U^T B in that form."""
        return np.divide(1.0, self.w, out=np.zeros_like(self.w), where=self.kept)[:, None] * turned

    def ridge(self, B: np.ndarray, eta: float, penalty: str = "l2") -> np.ndarray:
        """Return U diag(w / (w^2 + eta)) U^T B, eq. (5), or for the penalty "rkhs" U diag(1 / (w + eta)) U^T B."""
        shrunk = self.w / (self.w**2 + eta) if penalty == "l2" else 1.0 / (self.w + eta)
        return self.U @ (shrunk[:, None] * (self.U.T @ B))
