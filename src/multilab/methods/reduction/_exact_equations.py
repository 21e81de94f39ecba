# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Exact solution of K P = B for a kernel matrix K that may be singular."""

from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dnrm2

from multilab.methods.reduction._label_problem import group_means

_RANGE_TOLERANCE = 1e-10  # eigenvalues up to this share of the largest count as 0
_CONDITION = 1e12  # upper bound of the estimated condition of M


class Equations(Protocol):
    """System of equations K P = B with one kernel matrix K, shape (n, n)."""

    def project(self, Q: np.ndarray) -> np.ndarray:
        """Return the projection of the columns of Q, shape (n, c), on the range of K."""

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return the least squares solution P of least norm for B, both of shape (n, r)."""


def equations(K: np.ndarray, groups: np.ndarray) -> Equations:
    """Return the equations by a Cholesky factor if the kernel of the distinct rows is definite, else by `eigh`.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training rows. A centred one is singular and leads to `KernelSpectrum`.
    groups : ndarray of shape (n,)
        Group number of each row, see `equal_rows`.
    """
    try:
        return GroupedEquations(K, groups)
    except LinAlgError:
        return KernelSpectrum(K)


class GroupedEquations:
    """Equations with K = E M E^T, where M is positive definite, by a Cholesky factor of M.

    E, shape (n, g), is the membership of the rows in g groups of equal rows, and M the kernel matrix of one row of each
    group. The range of K is that of E, so the projection on it is the mean over each group.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    groups : ndarray of shape (n,)
        Group number of each row, see `equal_rows`.

    Raises
    ------
    LinAlgError
        If M is not positive definite, or nearly singular: trace(M) |M^-1 z| / |z| > 1e12 for a vector z of random
        signs, an estimate of the condition that costs one solution.
    """

    def __init__(self, K: np.ndarray, groups: np.ndarray) -> None:
        _, first, self.sizes = np.unique(groups, return_index=True, return_counts=True)
        self.groups = groups
        # a copy in either case: the factorisation overwrites it
        M = K.copy() if len(first) == len(K) else K.take(first, axis=0).take(first, axis=1)
        trace = float(np.trace(M))
        # M is symmetric: its transpose is in Fortran order, which LAPACK takes without a second copy
        self._factor = cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
        probe = np.random.default_rng(0).choice([-1.0, 1.0], size=len(M))
        if trace * dnrm2(cho_solve(self._factor, probe, check_finite=False)) > _CONDITION * dnrm2(probe):
            raise LinAlgError("the kernel matrix of the distinct rows is nearly singular")

    def project(self, Q: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        return group_means(Q, self.groups)[self.groups]

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See `Equations`."""
        # K P = E M (E^T P): the sums of P over the groups are determined, and equal shares have the least norm
        sums = cho_solve(self._factor, group_means(B, self.groups), check_finite=False)  # (g, r)
        return (sums / self.sizes[:, None])[self.groups]


class KernelSpectrum:
    """Equations by the eigendecomposition K = U diag(w) U^T, which also gives the solutions of all ridge penalties.

    Parameters
    ----------
    K : ndarray of shape (n, n)

    Attributes
    ----------
    w : ndarray of shape (n,)
        Eigenvalues, ascending.
    U : ndarray of shape (n, n)
        Eigenvectors as columns.
    kept : boolean ndarray of shape (n,)
        Whether an eigenvalue exceeds 1e-10 of the largest; the others count as 0.
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
        """Return U^T P, shape (n, r), from the targets in the eigenbasis, U^T B."""
        return np.divide(1.0, self.w, out=np.zeros_like(self.w), where=self.kept)[:, None] * turned

    def ridge(self, B: np.ndarray, eta: float, penalty: str = "l2") -> np.ndarray:
        """Return the minimiser of |K P - B|^2 plus a penalty of strength eta, shape (n, r).

        Parameters
        ----------
        B : ndarray of shape (n, r)
        eta : float
            Positive.
        penalty : {"l2", "rkhs"}
            eta |P|^2, eq. (5) of the LSkMDDM paper: U diag(w / (w^2 + eta)) U^T B; or eta tr(P^T K P), kernel ridge
            regression: U diag(1 / (w + eta)) U^T B.
        """
        shrunk = self.w / (self.w**2 + eta) if penalty == "l2" else 1.0 / (self.w + eta)
        return self.U @ (shrunk[:, None] * (self.U.T @ B))
