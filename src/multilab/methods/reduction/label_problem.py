"""Label problem of MDDM and CCA: targets that depend on the labels alone, from a c x c eigenproblem."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dgemm

from multilab.methods.base import MethodError
from multilab.methods.labels import centred
from multilab.methods.reduction.kernel_reducer import equal_rows

_RANK_TOLERANCE = 1e-10  # of the largest eigenvalue: smaller ones are rounding errors of the rank


@dataclass(frozen=True)
class LabelDirections:
    """Eigenvectors of H L H = Q Q^T with L = Y Y^T, eq. (2) and Lemma 1 of the LSkMDDM paper.

    Attributes
    ----------
    B : ndarray of shape (n, r)
        Orthonormal eigenvectors of H L H as columns, by descending eigenvalue.
    V : ndarray of shape (c, r)
        Eigenvectors of Q^T Q; in each the entry of largest magnitude is positive. B = Q V / sqrt(eigenvalues), Lemma 1.
    eigenvalues : ndarray of shape (r,)
        Positive eigenvalues that H L H and Q^T Q share, descending.
    """

    B: np.ndarray
    V: np.ndarray
    eigenvalues: np.ndarray


def centred_labels(Y: np.ndarray) -> np.ndarray:
    """Return Q = H Y, the labels minus their frequencies, shape (n, c); 0 where a label is not observed."""
    return centred(Y)


def group_means(Q: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the means of the rows of Q over groups of equal instances, shape (g, c).

    Parameters
    ----------
    Q : ndarray of shape (n, c)
    groups : ndarray of shape (n,)
        Group number 0..g-1 of each row, see `equal_rows`.

    Notes
    -----
    Differences from the first row of each group are summed, so the mean of equal rows of Q is bit by bit that row.
    """
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    repeated = np.flatnonzero(first[groups] != np.arange(len(Q)))
    sums = np.zeros((len(first), Q.shape[1]))
    np.add.at(sums, groups[repeated], Q[repeated] - Q[first[groups[repeated]]])
    return Q[first] + sums / sizes[:, None]


def label_directions(Q: np.ndarray, n_components: int | None) -> LabelDirections:
    """Solve the label problem H L H b = lambda b, eq. (2), for its leading eigenvectors by Lemma 1.

    Parameters
    ----------
    Q : ndarray of shape (n, c)
    n_components : int or None
        Upper bound of the number of eigenvectors; None for all. There are rank(Q) of them: a label that is constant or
        a copy of another one adds none. Eigenvalues up to 1e-10 of the largest count as 0.

    Raises
    ------
    MethodError
        If no label varies, or n_components is not positive.
    """
    if n_components is not None and n_components < 1:
        raise MethodError(f"n_components={n_components}: there must be at least one dimension")
    eigenvalues, V = eigh(product(Q.T, Q), driver="evd")  # (c,), (c, c), ascending
    eigenvalues, V = eigenvalues[::-1], V[:, ::-1]
    rank = int(np.sum(eigenvalues > _RANK_TOLERANCE * eigenvalues[0])) if eigenvalues[0] > 0 else 0
    if rank == 0:
        raise MethodError("no label varies over the training instances: there is nothing to learn a reduction from")
    kept = slice(rank if n_components is None else min(rank, n_components))
    eigenvalues, V = eigenvalues[kept], V[:, kept]
    V = V * sign_of_largest(V)
    return LabelDirections(rowwise_product(Q, V / np.sqrt(eigenvalues)), V, eigenvalues)


def rowwise_product(Q: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return Q times a matrix, shape (n, r), such that equal rows of Q give bit by bit equal rows.

    BLAS may round equal rows differently, and a nearest neighbour search would then order them at random.
    """
    groups = equal_rows(Q)
    first = np.unique(groups, return_index=True)[1]
    return product(Q[first], matrix)[groups]


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B by the BLAS of SciPy.

    NumPy and SciPy each ship an OpenBLAS whose threads spin for a while after their work: a NumPy product right after a
    SciPy factorisation takes ten times as long. C-contiguous factors are not copied.
    """
    return np.asarray(dgemm(1.0, B.T, A.T).T)


def sign_of_largest(V: np.ndarray) -> np.ndarray:
    """Return the sign of the entry of largest magnitude in each column, shape (r,)."""
    largest = V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
