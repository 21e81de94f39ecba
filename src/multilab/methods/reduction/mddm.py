"""MDDM: linear projections of the instances that depend most on the labels."""

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from multilab.methods._array_api import keep_namespace
from multilab.methods.base import MethodError, MultiLabelTransformer
from multilab.methods.labels import centred

__all__ = ["MDDM", "dependence_directions"]

Variant = Literal["proj", "spc"]


class MDDM(ClassNamePrefixFeaturesOutMixin, MultiLabelTransformer):
    """Multi-label dimensionality reduction via dependence maximisation, linear.

    Maximises tr(P' S P), S = X' H Y Y' H X with H = I - 11'/n, the Hilbert-Schmidt independence criterion of
    projected instances and labels.

    Parameters
    ----------
    variant : {"proj", "spc"}, default="spc"
        Constraint on P: "proj" is P'P = I (orthonormal directions), "spc" is P'BP = I with B = mu X'HX + (1 - mu) I
        (with mu = 1 uncorrelated projected features).
    mu : float, default=0.5
        Weight in [0, 1], for "spc" only. 0 is equivalent to "proj"; 1 requires linearly independent features.
    n_components : int or float, optional
        Number of directions r (all if there are fewer), or a share in (0, 1]: the smallest number whose eigenvalues
        reach this share of the sum. None keeps all with a positive eigenvalue, at most one per label.

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
        Mean of the training rows.
    components_ : ndarray of shape (r, d)
        Directions as rows; the entry of largest magnitude of each is positive.
    eigenvalues_ : ndarray of shape (r,)
        Eigenvalues of the directions, descending.
    n_features_in_ : int

    Notes
    -----
    **Missing labels**: a label is centred by its mean among the rows that observe it, and its covariances with the
    features are sums over these rows.

    S = A A' with A = X'H Y, shape (d, q), has at most rank q and is never formed. The directions of "proj" are the left
    singular vectors of A. With the Cholesky factor B = R'R, those of "spc" are R^-1 U, where U has the left singular
    vectors of R^-T A as columns.

    References
    ----------
    Y. Zhang, Z.-H. Zhou. Multi-label dimensionality reduction via dependence maximization. ACM TKDD 4(3), 2010.

    Examples
    --------
    >>> from multilab.methods import MDDM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MDDM(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (60, 2)
    """

    _accepts_missing_labels: ClassVar[bool] = True

    def __init__(self, variant: Variant = "spc", mu: float = 0.5, n_components: float | None = None) -> None:
        self.variant = variant
        self.mu = mu
        self.n_components = n_components

    def _fit(self, X: Any, Y: Any) -> None:
        eigenvalues, directions = dependence_directions(X, Y, self.variant, self.mu)
        if len(eigenvalues) == 0:  # no label varies: all directions have eigenvalue 0
            eigenvalues, directions = np.zeros(1), np.eye(X.shape[1], 1)
        kept = self._kept(eigenvalues)
        self.eigenvalues_ = eigenvalues[:kept]
        largest = np.abs(directions[:, :kept]).argmax(axis=0)
        self.components_ = (directions[:, :kept] * np.sign(directions[largest, np.arange(kept)])).T
        self.mean_ = np.asarray(X.mean(axis=0)).ravel()

    @keep_namespace
    def transform(self, X: Any) -> np.ndarray:
        """Return the projections of the centred rows on the directions, shape (m, r)."""
        X = self._validate_transform(X)
        return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _kept(self, eigenvalues: np.ndarray) -> int:
        """Return the number of directions to keep; raise a `MethodError` if ``n_components`` is out of range."""
        requested, reached = self.n_components, len(eigenvalues)
        if requested is None:
            return reached
        if isinstance(requested, Integral) and requested >= 1:
            return min(int(requested), reached)
        if isinstance(requested, Real) and not isinstance(requested, Integral) and 0 < requested <= 1:
            shares = np.cumsum(eigenvalues) / max(eigenvalues.sum(), np.finfo(float).tiny)
            return min(int((shares < requested * (1 - 1e-12)).sum()) + 1, reached)
        raise MethodError(f"n_components={requested!r}: give a positive number or a share in (0, 1]")


def dependence_directions(X: Any, Y: np.ndarray, variant: Variant, mu: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive eigenvalues of MDDM, descending, and the directions as columns, shape (d, r).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray of shape (n, q)
    variant, mu
        See `MDDM`.

    Raises
    ------
    MethodError
        If the variant is unknown, mu outside [0, 1], or mu 1 with dependent features.
    """
    if variant not in ("proj", "spc"):
        raise MethodError(f"variant={variant!r}: give 'proj' or 'spc'")
    if not 0 <= mu <= 1:
        raise MethodError(f"mu={mu}: give a number in [0, 1]")
    cross = np.asarray(X.T @ centred(Y))  # A = X'H Y, (d, q): centring Y is enough
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
    """Return the scatter matrix X'H X, shape (d, d), without centring a sparse X."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        return (X.T @ X).toarray() - X.shape[0] * np.outer(mean, mean)
    centred = X - X.mean(axis=0)
    return centred.T @ centred
