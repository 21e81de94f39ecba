# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Conjugate gradients and LSQR for many right-hand sides: each step is one product with a block of columns."""

from collections.abc import Callable, Iterator

import numpy as np

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
