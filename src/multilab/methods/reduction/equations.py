"""Solutions of K P = B for a kernel matrix K: exact ones of a K that may be singular, conjugate gradients and LSQR."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.blas import dnrm2

from multilab.methods.reduction.label_problem import group_means

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


Product = Callable[[np.ndarray], np.ndarray]


def conjugate_gradients(product: Product, B: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, int]:
    """Solve A P = B by conjugate gradients, all columns in parallel.

    Parameters
    ----------
    product : callable
        Returns A V for V of shape (n, r); A is symmetric positive (semi)definite.
    B : ndarray of shape (n, r)
        Right-hand sides, in the range of A.
    tol : float
        A column has converged when the norm of its residual is at most tol times that of its right-hand side.
    max_iter : int
        Maximum number of iterations.

    Returns
    -------
    P : ndarray of shape (n, r)
    iterations : int
        Number of iterations taken.
    """
    P = np.zeros_like(B)
    residual, direction = B.copy(), B.copy()
    squared = np.einsum("ij,ij->j", B, B)
    goal = tol**2 * squared
    iterations = 0
    while iterations < max_iter and np.any(squared > goal):
        moved = product(direction)
        curvature = np.einsum("ij,ij->j", direction, moved)
        active = (squared > goal) & (curvature > 0)  # (r,); a converged column keeps its solution
        step = np.divide(squared, curvature, out=np.zeros_like(squared), where=active)
        P += step * direction
        residual -= step * moved
        new = np.where(active, np.einsum("ij,ij->j", residual, residual), squared)
        direction *= np.divide(new, squared, out=np.zeros_like(new), where=active)
        direction += residual
        squared = new
        iterations += 1
        if not active.any():
            break
    return P, iterations


def lsqr(
    product: Product, B: np.ndarray, tol: float, max_iter: int, damp: float = 0.0, reorthogonalise: bool = False
) -> tuple[np.ndarray, int]:
    """Minimise |A P - B|^2 + damp^2 |P|^2 for a symmetric A by LSQR, all columns in parallel.

    Parameters
    ----------
    product, B, max_iter
        See `conjugate_gradients`; A need not be definite.
    tol : float
        Upper bound of |r| / |b| for consistent equations and of |A^T r| / (|A| |r|) for others, r the residual of a
        column: ``atol = btol`` of `scipy.sparse.linalg.lsqr`.
    damp : float
        Square root of the strength of the penalty.
    reorthogonalise : bool
        See `lsqr_iterates`.

    Returns
    -------
    P : ndarray of shape (n, r)
    iterations : int

    References
    ----------
    C. C. Paige, M. A. Saunders. LSQR: an algorithm for sparse linear equations and sparse least squares. ACM TOMS 8(1),
    1982.
    """
    iterates = enumerate(lsqr_iterates(product, B, damp, reorthogonalise), 1)
    return next((P, count) for count, (P, worst) in iterates if worst <= tol or count >= max_iter)


def lsqr_iterates(
    product: Product, B: np.ndarray, damp: float = 0.0, reorthogonalise: bool = False
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield the iterates of LSQR, shape (n, r), with the stopping value of the worst column (see ``tol`` of `lsqr`).

    With ``reorthogonalise`` each new vector of the bidiagonalisation is made orthogonal to all earlier ones. Without
    it, rounding errors bring back directions that were found already, and iterates depend on the processor.

    The yielded array is updated in place by the next iteration. A column whose bidiagonalisation ends does not change
    any more. Names follow Paige and Saunders: beta, alpha, rho, phi and theta have shape (r,).
    """
    size = np.linalg.norm(B, axis=0)
    U, beta = _unit(B)
    V, alpha = _unit(product(U))
    P, W = np.zeros_like(B), V.copy()
    phi_bar, rho_bar = beta.copy(), alpha.copy()
    norm_squared = alpha**2
    lost = np.zeros_like(beta)  # squared: contribution of the damping to the residual
    lefts, rights = [U], [V]  # the vectors that new ones are made orthogonal to
    while True:
        U, beta = _unit(_orthogonal(product(V) - alpha * U, lefts if reorthogonalise else []))
        norm_squared = norm_squared + beta**2 + damp**2
        V, alpha_next = _unit(_orthogonal(product(U) - beta * V, rights if reorthogonalise else []))
        if reorthogonalise:
            lefts.append(U)
            rights.append(V)
        damped = np.hypot(rho_bar, damp)
        phi_bar, lost = phi_bar * _ratio(rho_bar, damped), lost + (phi_bar * _ratio(damp, damped)) ** 2
        rho = np.hypot(damped, beta)
        cosine, sine = _ratio(damped, rho), _ratio(beta, rho)
        theta, rho_bar = sine * alpha_next, -cosine * alpha_next
        phi, phi_bar = cosine * phi_bar, sine * phi_bar
        P += _ratio(phi, rho) * W
        W = V - _ratio(theta, rho) * W
        residual = np.sqrt(phi_bar**2 + lost)
        gradient = np.abs(phi_bar * alpha_next * cosine)
        norm_squared = norm_squared + alpha_next**2
        by_gradient = _ratio(gradient, np.sqrt(norm_squared) * residual)
        yield P, float(np.minimum(_ratio(residual, size), by_gradient).max(initial=0.0))
        alpha = alpha_next


def _orthogonal(block: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Return the columns made orthogonal to the same columns of other blocks of unit columns, shape (n, r)."""
    for other in [*others, *others]:  # twice is enough
        block = block - np.einsum("ij,ij->j", other, block) * other
    return block


def _unit(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns divided by their norms, shape (n, r), and the norms; a column of zeros is unchanged."""
    lengths = np.linalg.norm(block, axis=0)
    return block * _ratio(1.0, lengths), lengths


def _ratio(over: np.ndarray | float, under: np.ndarray) -> np.ndarray:
    """Return over / under, and 0 where the denominator is not positive."""
    return np.divide(over, under, out=np.zeros_like(under), where=under > 0)
