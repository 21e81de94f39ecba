# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Cosine similarity of label columns and its graph Laplacian."""

import numpy as np

from multilab.methods.base import MethodError


def cosine_affinity(Y: np.ndarray, observed: np.ndarray | None = None) -> np.ndarray:
    """Return the cosine similarities R of the label columns, shape (q, q), symmetric, in [0, 1].

    A label that never occurs has no direction; its row and column are zero, so that it couples to nothing
    (the MLWSE paper, below eq. 7, leaves this case open).

    Parameters
    ----------
    Y : ndarray of shape (n, q)
    observed : bool ndarray of shape (n, q), optional
        The cosine of two labels is then that of the rows that observe both.
    """
    if observed is not None:
        values = np.where(observed, Y, 0.0).astype(np.float64)
        squares = (values**2).T @ observed  # of the first label, in the rows that observe the second too
        norms = np.sqrt(squares * squares.T)
        affinity = np.divide(values.T @ values, norms, out=np.zeros_like(norms), where=norms > 0)
        np.fill_diagonal(affinity, np.diag(squares) > 0)
        return affinity
    columns = np.asarray(Y, dtype=np.float64)
    norms = np.linalg.norm(columns, axis=0)
    unit = columns / np.where(norms > 0, norms, 1.0)
    affinity = unit.T @ unit
    np.fill_diagonal(affinity, norms > 0)
    return affinity


def label_coupling(R: np.ndarray, kind: str = "laplacian") -> np.ndarray:
    """Return the matrix H of the coupling term tr(W H W^T) / 2.

    Parameters
    ----------
    R : ndarray of shape (q, q)
        Similarities of the labels.
    kind : {"laplacian", "cosine_distance"}
        ``"laplacian"``: H = D - R with D the row sums (the MLWSE paper, eq. 7, with D_ii for its misprinted
        D_ij); positive semidefinite, H 1 = 0. ``"cosine_distance"``: H = 1 - R with a zero diagonal, which
        the paper's reference code uses; indefinite, so that a large weight makes the objective unbounded
        below.
    """
    if kind == "laplacian":
        return np.diag(R.sum(axis=1)) - R
    if kind == "cosine_distance":
        distance = 1.0 - R
        np.fill_diagonal(distance, 0.0)
        return distance
    raise MethodError(f"laplacian is 'laplacian' or 'cosine_distance', not {kind!r}")
