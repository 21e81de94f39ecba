"""K P = B solved exactly, for a kernel matrix that may be singular."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dnrm2

from multilab.methods.reduction.label_problem import group_means

__all__ = ["Equations", "GroupedEquations", "KernelSpectrum", "equations"]

_RANGE_TOLERANCE = 1e-10  # eigenvalues up to this share of the largest are 0
_CONDITION = 1e12


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
        If M is not positive definite or nearly singular: trace M times |M^-1 z| / |z|, z random signs, is above 1e12.
    """

    def __init__(self, K: np.ndarray, groups: np.ndarray) -> None:
        _, first, self.sizes = np.unique(groups, return_index=True, return_counts=True)
        self.groups = groups
        # a copy, for the factor to overwrite
        M = K.copy() if len(first) == len(K) else K.take(first, axis=0).take(first, axis=1)
        trace = float(np.trace(M))
        # M is its transpose, in the order of Fortran, which needs no other copy
        self._factor = cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=len(M))
        if trace * dnrm2(cho_solve(self._factor, probe, check_finite=False)) > _CONDITION * dnrm2(probe):
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
