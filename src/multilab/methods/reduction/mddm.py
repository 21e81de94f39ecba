"""MDDM: projections on which instances depend most on their labels, by a linear kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from multilab.methods.base import MethodError
from multilab.methods.transformer import MultiLabelTransformer

__all__ = ["MDDM", "dependence_directions"]

Variant = Literal["proj", "spc"]


class MDDM(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """Multi-label dimensionality reduction via dependence maximisation, linear.

    Maximises tr(P' S P), S = X' H Y Y' H X with H = I - 11'/n, the Hilbert-Schmidt independence criterion of
    projected instances and labels.

    Parameters
    ----------
    variant : {"proj", "spc"}, default="spc"
        The constraint: P'P = I (projections uncorrelated as directions), or P'(mu X'HX + (1 - mu) I)P = I
        (projected features uncorrelated).
    mu : float, default=0.5
        In [0, 1], of "spc" only; 0 is "proj". 1 needs independent features.
    n_components : int or float, optional
        A number of directions (more than there are gives all), or in (0, 1] the share of the eigenvalues' sum that the
        directions reach; None keeps all with a positive eigenvalue, at most one per label.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
    components_ : ndarray of shape (r, d)
        Directions, one a row; of each the entry of largest absolute value is positive.
    eigenvalues_ : ndarray of shape (r,)
        Descending.
    n_features_in_ : int

    Notes
    -----
    S has rank q at most and is never formed: with A = X'H Y (d x q) the directions of "proj" are the left
    singular vectors of A. With B = R'R (Cholesky) those of "spc" are R^-1 U, U the left singular vectors of R^-T A.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multi-label dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.
    """

    def __init__(self, variant: Variant = "spc", mu: float = 0.5, n_components: float | None = None) -> None:
        self.variant = variant
        self.mu = mu
        self.n_components = n_components

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of range, or the features are dependent and ``mu`` is 1.
        """
        X, Y = self._validate_fit(X, Y)
        eigenvalues, directions = dependence_directions(X, Y, self.variant, self.mu)
        if len(eigenvalues) == 0:  # labels without variation depend on nothing: any direction is as good
            eigenvalues, directions = np.zeros(1), np.eye(X.shape[1], 1)
        kept = self._kept(eigenvalues)
        self.eigenvalues_ = eigenvalues[:kept]
        largest = np.abs(directions[:, :kept]).argmax(axis=0)
        self.components_ = (directions[:, :kept] * np.sign(directions[largest, np.arange(kept)])).T
        self.mean_ = np.asarray(X.mean(axis=0)).ravel()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the centred rows on the directions, shape (n, r)."""
        X = self._validate_transform(X)
        return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _kept(self, eigenvalues: np.ndarray) -> int:
        asked, reached = self.n_components, len(eigenvalues)
        if asked is None:
            return reached
        if isinstance(asked, Integral) and asked >= 1:
            return min(int(asked), reached)
        if isinstance(asked, Real) and not isinstance(asked, Integral) and 0 < asked <= 1:
            shares = np.cumsum(eigenvalues) / max(eigenvalues.sum(), np.finfo(float).tiny)
            return min(int((shares < asked * (1 - 1e-12)).sum()) + 1, reached)
        raise MethodError(f"n_components={asked!r}: give a positive number or a share in (0, 1]")


def dependence_directions(X: Any, Y: np.ndarray, variant: Variant, mu: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive eigenvalues of MDDM, descending, and the directions as columns, shape (d, r).

    Raises
    ------
    MethodError
        If the variant is unknown, mu outside [0, 1], or mu 1 with dependent features.
    """
    if variant not in ("proj", "spc"):
        raise MethodError(f"variant={variant!r}: give 'proj' or 'spc'")
    if not 0 <= mu <= 1:
        raise MethodError(f"mu={mu}: give a number in [0, 1]")
    cross = np.asarray(X.T @ (Y - Y.mean(axis=0)))
    if variant == "proj":
        U, s, _ = np.linalg.svd(cross, full_matrices=False)
        kept = s > s[:1] * max(cross.shape) * np.finfo(float).eps
        return s[kept] ** 2, U[:, kept]
    try:
        R = cholesky(mu * _scatter(X) + (1.0 - mu) * np.eye(X.shape[1]))
    except np.linalg.LinAlgError:
        raise MethodError(f"mu={mu} and dependent features: the constraint is singular; give a smaller mu") from None
    U, s, _ = np.linalg.svd(solve_triangular(R, cross, trans="T"), full_matrices=False)
    kept = s > s[:1] * max(cross.shape) * np.finfo(float).eps
    return s[kept] ** 2, solve_triangular(R, U[:, kept])


def _scatter(X: Any) -> np.ndarray:
    """Return the sums of products of centred features, shape (d, d)."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        return (X.T @ X).toarray() - X.shape[0] * np.outer(mean, mean)
    centred = X - X.mean(axis=0)
    return centred.T @ centred
