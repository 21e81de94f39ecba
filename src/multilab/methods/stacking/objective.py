"""Least squares on scores plus a coupling of the labels: the smooth term of MLWSE."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.solvers.penalties import SparseGroupPenalty
from multilab.methods.solvers.problem import SmoothTerm

# Sums g_i + beta h_j below this share of the largest eigenvalue of G are rounding, not curvature. There are some: G
# is singular for real scores (a chain's first column repeats binary relevance's) and H 1 = 0.
_NULL = 1e-10
_BLOCK_SCORES = 2**22  # float32 scores converted at a time: 32 MiB
_MOST_WEIGHTS = 4096  # of `CoupledLoss`: its eigenbasis takes 128 MiB


@dataclass(frozen=True, eq=False)
class LabelWeightedLoss(SmoothTerm):
    r"""Smooth term of MLWSE without label coupling, the squared errors weighted row by row and label by label.

    .. math:: f(W) = \tfrac12 \sum_j \sum_i v_{ij} (s_i^T w_j - y_{ij})^2

    Each label has a Gram matrix of its own, and Q is diagonal in their eigenbases.

    Attributes
    ----------
    vectors : ndarray (q, p, p)
        Eigenvectors of S^T diag(v_j) S, in columns.
    curvature : ndarray (p, q)
        Its eigenvalues, in column j.
    cross, cross_rotated, target_square, null
        See `SmoothTerm`.
    """

    vectors: np.ndarray
    cross: np.ndarray
    cross_rotated: np.ndarray
    target_square: float
    curvature: np.ndarray
    null: float

    @classmethod
    def from_scores(cls, S: np.ndarray, Y: np.ndarray, weight: np.ndarray, scale: float = 1.0) -> Self:
        """Build the loss from S (n, p), Y (n, q) and weights v (n, q), the squared error times ``scale``."""
        values, vectors = np.empty((S.shape[1], Y.shape[1])), np.empty((Y.shape[1], S.shape[1], S.shape[1]))
        for label, v in enumerate(weight.T):
            values[:, label], vectors[label] = np.linalg.eigh(scale * (S.T @ (S * v[:, None])))
        np.maximum(values, 0.0, out=values)
        cross = scale * (S.T @ (weight * Y))
        rotated = np.einsum("jpk,pj->kj", vectors, cross)
        square = scale * float(np.vdot(weight * Y, Y))
        return cls(vectors, cross, rotated, square, values, _NULL * float(values.max()))

    def rotate(self, W: np.ndarray) -> np.ndarray:
        """Return W in the eigenbases, that of label j for column j."""
        return np.einsum("jpk,pj->kj", self.vectors, W)

    def rotate_back(self, rotated: np.ndarray) -> np.ndarray:
        """Undo :meth:`rotate`."""
        return np.einsum("jpk,kj->pj", self.vectors, rotated)

    def ridge(self, eta: float) -> np.ndarray:
        """Return the minimum of f + eta ||W||^2 / 2, the paper's starting point."""
        return self.rotate_back(self.cross_rotated / (self.curvature + eta))


@dataclass(frozen=True, eq=False)
class CoupledLoss(SmoothTerm):
    r"""Smooth term of MLWSE with weights of its own for each row and label, and with label coupling or intercepts.

    .. math:: f(W) = \tfrac12 \sum_j \sum_i v_{ij} (s_i^T w_j + b_j - y_{ij})^2
              + \tfrac\beta2 \operatorname{tr}(W H W^T)

    Labels have different Gram matrices, so that only the eigenbasis of all p q weights makes Q diagonal.

    Attributes
    ----------
    vectors : ndarray (q p, q p)
        Eigenvectors of Q for the weights label by label.
    curvature, cross, cross_rotated, target_square, null
        See `SmoothTerm`.
    """

    vectors: np.ndarray
    cross: np.ndarray
    cross_rotated: np.ndarray
    target_square: float
    curvature: np.ndarray
    null: float

    @classmethod
    def from_scores(
        cls,
        S: np.ndarray,
        Y: np.ndarray,
        weight: np.ndarray,
        coupling: np.ndarray,
        *,
        intercept: bool = False,
        scale: float = 1.0,
    ) -> Self:
        """Build the loss from S (n, p), Y (n, q), weights v (n, q) and beta H (q, q).

        Raises
        ------
        MethodError
            If there are more than 4096 weights, or f would not be convex.
        """
        p, q = S.shape[1], Y.shape[1]
        if p * q > _MOST_WEIGHTS:
            raise MethodError(
                f"missing labels with label coupling or intercepts need an eigenbasis of all {p * q} weights, and at "
                f"most {_MOST_WEIGHTS} are possible: set beta=0 and fit_intercept=False"
            )
        Q, cross, square = np.kron(coupling, np.eye(p)), np.empty((p, q)), 0.0
        for label, (v, y) in enumerate(zip(weight.T, Y.T, strict=True)):
            scores, targets = S, y
            if intercept:
                scores, targets = S - np.average(S, axis=0, weights=v), y - np.average(y, weights=v)
            own = slice(label * p, (label + 1) * p)
            Q[own, own] += scale * (scores.T @ (scores * v[:, None]))
            cross[:, label] = scale * (scores.T @ (v * targets))
            square += scale * float(np.vdot(v * targets, targets))
        values, vectors = np.linalg.eigh(Q)
        if values[0] < -_NULL * values[-1]:
            raise MethodError(
                f"the label coupling makes the objective not convex (smallest curvature {values[0]:.3g}); lower beta "
                "or use laplacian='laplacian'"
            )
        rotated = (vectors.T @ cross.T.ravel()).reshape(q, p).T
        curvature = np.maximum(values, 0.0).reshape(q, p).T
        return cls(vectors, cross, rotated, square, curvature, _NULL * max(float(values[-1]), 0.0))

    def rotate(self, W: np.ndarray) -> np.ndarray:
        """Return W in the eigenbasis, in the shape of W."""
        return (self.vectors.T @ W.T.ravel()).reshape(W.T.shape).T

    def rotate_back(self, rotated: np.ndarray) -> np.ndarray:
        """Undo `rotate`."""
        return (self.vectors @ rotated.T.ravel()).reshape(rotated.T.shape).T

    def ridge(self, eta: float) -> np.ndarray:
        """Return the minimum of f + eta ||W||^2 / 2, the paper's starting point."""
        return self.rotate_back(self.cross_rotated / (self.curvature + eta))


def _products(S: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return S^T S and S^T Y in float64; of float32 scores by blocks of rows, without a float64 copy of S."""
    if S.dtype != np.float32:
        return S.T @ S, S.T @ Y
    gram, cross = np.zeros((S.shape[1], S.shape[1])), np.zeros((S.shape[1], Y.shape[1]))
    step = max(1, _BLOCK_SCORES // S.shape[1])
    for start in range(0, len(S), step):
        block = S[start : start + step].astype(np.float64)
        gram += block.T @ block
        cross += block.T @ Y[start : start + step]
    return gram, cross


@dataclass(frozen=True, eq=False)
class StackingLoss(SmoothTerm):
    r"""Smooth term f(W) of the MLWSE objectives, in terms of a Gram matrix: nothing here has n rows.

    .. math:: f(W) = \tfrac12 \|S W - Y\|_F^2 + \tfrac\beta2 \operatorname{tr}(W H W^T)
              = \tfrac12 \langle W, Q W\rangle - \langle B, W\rangle + \tfrac12\|Y\|_F^2,

    with Q W = G W + beta W H, G = S^T S, B = S^T Y (the MLWSE paper, eqs. 8, 9 and 15; its beta H W is not
    conformable). In the eigenbases of G and H the operator Q is diagonal, with entries g_i + beta h_j:
    ``curvature``. Its maximum is the exact Lipschitz constant of the gradient, for the malformed eq. (16), which as
    printed is no upper bound.

    Attributes
    ----------
    gram : ndarray (p, p)
    cross : ndarray (p, q)
        B.
    target_square : float
        ||Y||_F^2.
    coupling : ndarray (q, q)
        H.
    beta : float
    score_values, score_vectors, label_values, label_vectors : ndarray
        Eigendecompositions of G and H.
    """

    gram: np.ndarray
    cross: np.ndarray
    target_square: float
    coupling: np.ndarray
    beta: float
    score_values: np.ndarray
    score_vectors: np.ndarray
    label_values: np.ndarray
    label_vectors: np.ndarray
    curvature: np.ndarray
    cross_rotated: np.ndarray
    null: float

    @classmethod
    def from_scores(cls, S: np.ndarray, Y: np.ndarray, H: np.ndarray, beta: float, scale: float = 1.0) -> Self:
        """Build the loss from scores S (n, p) and targets Y (n, q), the squared error times ``scale``.

        Raises
        ------
        MethodError
            When S and Y differ in rows, H does not fit Y, or f would not be convex.
        """
        if S.shape[0] != Y.shape[0]:
            raise MethodError(f"S has {S.shape[0]} rows and Y has {Y.shape[0]}")
        if H.shape != (Y.shape[1], Y.shape[1]):
            raise MethodError(f"H has shape {H.shape}, and Y has {Y.shape[1]} labels")
        gram, cross = (scale * product for product in _products(S, Y))
        score_values, score_vectors = np.linalg.eigh(gram)
        label_values, label_vectors = np.linalg.eigh(H)
        loss = cls(
            gram,
            cross,
            scale * float(np.vdot(Y, Y)),
            H,
            0.0,
            np.maximum(score_values, 0.0),
            score_vectors,
            label_values,
            label_vectors,
            np.empty(0),
            score_vectors.T @ cross @ label_vectors,
            _NULL * max(float(score_values[-1]), 0.0),
        )
        return loss.with_beta(beta)

    def with_beta(self, beta: float) -> Self:
        """Return the same loss with another weight of the label coupling; nothing is recomputed but sums."""
        if not (beta >= 0 and np.isfinite(beta)):
            raise MethodError(f"beta must be a finite number >= 0, not {beta}")
        curvature = self.score_values[:, None] + beta * self.label_values[None, :]
        if curvature.min() < -_NULL * max(curvature.max(), self.score_values[-1]):
            raise MethodError(
                f"beta = {beta} makes the objective unbounded below or not convex (smallest curvature "
                f"{curvature.min():.3g}); lower beta or use laplacian='laplacian'"
            )
        return replace(self, beta=beta, curvature=np.maximum(curvature, 0.0))

    def apply(self, W: np.ndarray) -> np.ndarray:
        """Return Q W."""
        return self.gram @ W + self.beta * (W @ self.coupling)

    def rotate(self, W: np.ndarray) -> np.ndarray:
        """Return W in the eigenbases of G and H."""
        return self.score_vectors.T @ W @ self.label_vectors

    def rotate_back(self, rotated: np.ndarray) -> np.ndarray:
        """Undo :meth:`rotate`."""
        return self.score_vectors @ rotated @ self.label_vectors.T

    def ridge(self, eta: float) -> np.ndarray:
        """Return (G + eta I)^{-1} B, the paper's starting point."""
        rotated = self.score_vectors.T @ self.cross
        return self.score_vectors @ (rotated / (self.score_values[:, None] + eta))


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
        the paper's reference code uses (AiXia520/MLWSE at 3d31453, ``lasso.py``); indefinite, so that a large weight
        makes the objective unbounded below.
    """
    if kind == "laplacian":
        return np.diag(R.sum(axis=1)) - R
    if kind == "cosine_distance":
        distance = 1.0 - R
        np.fill_diagonal(distance, 0.0)
        return distance
    raise MethodError(f"laplacian is 'laplacian' or 'cosine_distance', not {kind!r}")


def classifier_rows(p: int, q: int, groups: Sequence[int] | None = None) -> list[slice]:
    """Return the rows of W of each base classifier.

    Parameters
    ----------
    p, q : int
        Columns of S and of Y.
    groups : sequence of int, optional
        Number of columns of S per classifier; q each when None.

    Raises
    ------
    MethodError
        When the columns of S cannot be divided so.
    """
    if groups is None:
        if p % q:
            raise MethodError(
                f"S has {p} columns, not a multiple of the {q} labels of Y: one group of {q} scores per base "
                "classifier is expected; name other group sizes with groups=[...]"
            )
        sizes = [q] * (p // q)
    else:
        sizes = [int(size) for size in groups]
        if min(sizes, default=0) < 1 or sum(sizes) != p:
            raise MethodError(f"groups={sizes} must be positive and sum to the {p} columns of S")
    ends = list(itertools.accumulate(sizes, initial=0))
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def diagonal_support(rows: Sequence[slice], q: int) -> np.ndarray:
    """Return where W may differ from zero when each score serves its own label only, shape (p, q)."""
    if any(r.stop - r.start != q for r in rows):
        raise MethodError(f"weights='diagonal' needs {q} scores per base classifier, one for each label")
    return np.tile(np.eye(q, dtype=bool), (len(rows), 1))


def unit_l1(rows: Sequence[slice], support: np.ndarray | None = None) -> SparseGroupPenalty:
    """Return |W|_1."""
    return SparseGroupPenalty(1.0, np.zeros(len(rows)), rows, support)


def unit_l21(
    rows: Sequence[slice], q: int, alpha: float, group_weight: str = "sqrt_labels", support: np.ndarray | None = None
) -> SparseGroupPenalty:
    """Return alpha |W|_1 + (1 - alpha) sum_k c_k ||W_k||_F, c_k = sqrt(q) or the root of the block's size."""
    if group_weight == "size":
        weights = [r.stop - r.start if support is not None else (r.stop - r.start) * q for r in rows]
    else:
        weights = [q] * len(rows)
    return SparseGroupPenalty(alpha, (1.0 - alpha) * np.sqrt(weights), rows, support)
