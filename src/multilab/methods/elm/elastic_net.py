"""Elastic nets on a kernel matrix, one or a whole path of them, solved in the eigenbasis for all labels at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh, svd

from multilab.methods.elm.kernel_loss import KernelLoss
from multilab.methods.elm.sparse_penalty import SparsePenalty
from multilab.methods.elm.working_sets import solve_sparse
from multilab.methods.stacking.certificates import Solution
from multilab.methods.stacking.solve import solve

__all__ = ["elastic_net", "elastic_net_path", "lambda_max", "ridge_scores"]


def lambda_max(cross: np.ndarray, alpha: float, unit: SparsePenalty) -> float:
    """Return the smallest lambda at which W = 0 is optimal, given Omega^T Y; infinite at alpha = 0."""
    return float(unit.sizes(cross).max(initial=0.0)) / alpha if alpha > 0 else float("inf")


def elastic_net(
    loss: KernelLoss,
    lam: float,
    alpha: float,
    *,
    by_row: bool = False,
    tol: float = 1e-4,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
) -> Solution:
    """Minimise loss + lam (alpha |W| + (1 - alpha) tr(W^T R W)) to a relative duality gap of ``tol``.

    ADMM in the eigenbasis, where each least squares step is exact, on a few rows of W where that is enough; alpha = 0
    is a closed form.

    Parameters
    ----------
    by_row : bool
        Whether |W| is the sum of the norms of the rows.
    start : ndarray of shape (n, p), optional
        Where to begin; not changed.
    """
    penalty = SparsePenalty(lam * alpha, by_row)
    whole: tuple[Any, Any] = (loss.with_ridge(2.0 * lam * (1.0 - alpha)), penalty)
    begin = np.zeros_like(loss.cross) if start is None else start
    if penalty.is_zero or tol == 0 or penalty.dual_scale(loss.cross, 1.0) >= 1.0:
        return solve(*whole, begin, tol=tol, kkt_tol=0.0, max_iter=max_iter)
    return solve_sparse(*whole, begin, tol=tol, max_iter=max_iter)


def elastic_net_path(loss: KernelLoss, lams: Iterable[float], alpha: float, **options: Any) -> list[Solution]:
    """Return the solutions at every lambda, each started at the one before: give them from large to small.

    Parameters
    ----------
    **options
        Passed to :func:`elastic_net`.
    """
    solutions: list[Solution] = []
    for lam in lams:
        start = solutions[-1].W if solutions else None
        solutions.append(elastic_net(loss, lam, alpha, start=start, **options))
    return solutions


def ridge_scores(
    omega: np.ndarray,
    targets: np.ndarray,
    omega_test: np.ndarray,
    strengths: np.ndarray,
    *,
    ridge: Literal["frobenius", "rkhs"] = "rkhs",
) -> np.ndarray:
    """Return the scores of test rows under every strength of a pure ridge, from one eigendecomposition.

    Parameters
    ----------
    omega : ndarray of shape (n, n)
        Kernel matrix of the training rows, positive semidefinite.
    targets : ndarray of shape (n, p)
    omega_test : ndarray of shape (m, n)
        Kernel values of test and training rows.
    strengths : array-like of shape (k,)
        Positive. "rkhs": 1 / C of `KernelELM`; "frobenius": 2 lambda, the ML-EKELM objective at alpha = 0.
    ridge : {"rkhs", "frobenius"}

    Returns
    -------
    ndarray of shape (k, m, p)

    Notes
    -----
    In the eigenbasis a strength s is a filter 1 / (w + s), or w / (w^2 + s), of the eigenvalues w. As functions
    of w such filters are smooth and nearly dependent: 200 of them are combinations of some 30 to rounding
    (found by a singular value decomposition). So the test rows are multiplied 30 times and not 200 times.
    """
    strengths = np.asarray(strengths, dtype=float)[:, None]
    values, vectors = eigh(omega, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    filters = 1.0 / (values + strengths) if ridge == "rkhs" else values / (values**2 + strengths)
    largest = filters.max(axis=1, keepdims=True)
    left, sizes, basis = svd(filters / largest, full_matrices=False)
    kept = sizes > 1e-15 * sizes[0]
    left = largest * left[:, kept] * sizes[kept]
    rotated, projected = vectors.T @ targets, omega_test @ vectors
    parts = np.stack([projected @ (part[:, None] * rotated) for part in basis[kept]])
    return np.tensordot(left, parts, axes=1)
