"""Kernel extreme learning machine on a Nystroem approximation: for more rows than a kernel matrix can have."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.utils import check_random_state

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import BatchClassifier, MethodError, WeightedPartialClassifier
from multilab.methods.elm._targets import RidgeSums, ScoreThreshold, Targets, target_blocks
from multilab.methods.kernels import kernel_matrix, resolve_gamma
from multilab.methods.ties import merge_ties

__all__ = ["NystroemKernelELM"]

_RANK = 1e-10  # eigenvalues up to this share of the largest are rounding errors

_ROWS = 4096  # rows of the kernel matrix to the landmarks that are held at a time


class NystroemKernelELM(ScoreThreshold, BatchClassifier, WeightedPartialClassifier):
    """Kernel extreme learning machine with a Nystroem approximation of the kernel matrix from landmarks.

    With F = K(X, Z) K(Z, Z)^(-1/2), Z the landmarks, F F^T replaces Omega: the scores are those of ridge
    regression of Y in {-1, +1} on F with ridge 1 / C. With all rows as landmarks it is `KernelELM`.

    Parameters
    ----------
    n_components : int, default=1000
        Number of landmarks, drawn without replacement; all rows where there are fewer.
    gamma : float or {"scale", "auto", "median"}, default=1.0
        Of the kernel exp(-gamma |x - z|^2); "scale" and "median" look at the landmarks only.
    C : float, default=1.0
        Weight of the training error, positive.
    random_state : int, RandomState or None
        Seed of the landmarks.
    threshold : float, default=0.0
        A label is assigned iff its score is >= threshold.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the squared errors by the value of each label, as in `BinaryRelevance`; with
        them, each distinct label column needs a pass over the rows of its own.

    Attributes
    ----------
    landmarks_ : ndarray of shape (r,)
        Row numbers of Z, ascending.
    coef_ : ndarray of shape (r, p)
        Weights of K(x, Z), one column for each of the p distinct columns of Y.
    column_ : ndarray of shape (q,)
        Which column of ``coef_`` belongs to each label.
    gamma_ : float
        The kernel width as a number.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Time O(n r^2), memory O(n d + r^2): no matrix of n x r is ever held. Directions in which K(Z, Z) is rounding are
    left out. Weights of the rows, or of the labels of each row, count in the squared errors, not in the draw of the
    landmarks. Equal label columns get bit-identical scores.
    Scores that differ by rounding errors only are made equal, see `multilab.methods.ties.merge_ties`.

    **Missing labels**: the weights of a label are the solution on the rows that observe it; landmarks are drawn from
    all rows. Each set of rows needs a pass of its own.

    **Batches of rows**: exact in three passes, with the landmarks that ``fit`` draws. The first counts the rows (which
    ``n_rows`` saves), the second collects the landmarks, the third adds up sums over the kernel of every row with all
    landmarks.

    References
    ----------
    C. K. I. Williams, M. Seeger. Using the Nystroem method to speed up kernel machines. NIPS 13, 2000.

    Examples
    --------
    >>> from multilab.methods import NystroemKernelELM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = NystroemKernelELM(n_components=20, random_state=0).fit(X, y)
    >>> len(model.landmarks_)
    20
    >>> model.decision_function(X).shape
    (60, 3)
    """

    _accepts_cell_weights = True

    def __init__(
        self,
        n_components: int = 1000,
        gamma: float | Literal["scale", "auto", "median"] = 1.0,
        C: float = 1.0,
        random_state: Any = None,
        threshold: float = 0.0,
        label_weight: LabelWeight = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.C = C
        self.random_state = random_state
        self.threshold = threshold
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        self._draw_landmarks(X.shape[0])
        weights = Weights.of(weight, self.label_weight, self.n_labels_)
        of_landmarks = None if weights.rows is None else weights.rows[self.landmarks_]
        whitening = self._whitening(X[self.landmarks_], of_landmarks)
        targets = Targets.of(Y, weights)
        self.column_ = targets.column
        self.coef_ = targets.solve(
            lambda values, weight, rows: self._ridge(X if rows is None else X[rows], values, weight, whitening)
        )

    def _draw_landmarks(self, n: int) -> None:
        """Check the arguments and draw the numbers of the landmarks among n rows."""
        if not (self.C > 0 and self.n_components >= 1):
            raise MethodError(f"C={self.C} must be positive and n_components={self.n_components} at least 1")
        self._check_threshold()
        random = check_random_state(self.random_state)
        self.landmarks_ = np.sort(random.choice(n, size=min(n, self.n_components), replace=False))

    def _whitening(self, Z: Any, weight: np.ndarray | None = None) -> np.ndarray:
        """Keep the landmarks and the kernel width, and return K(Z, Z)^(-1/2)."""
        self._Z = Z
        self.gamma_ = resolve_gamma(self.gamma, Z, weight)
        return _inverse_root(kernel_matrix(Z, gamma=self.gamma_))

    def _ridge(self, X: Any, targets: np.ndarray, weight: np.ndarray | None, whitening: np.ndarray) -> np.ndarray:
        """Return the weights of the landmarks, from one pass over the rows."""
        gram = np.eye(whitening.shape[1]) / self.C
        cross = np.zeros((whitening.shape[1], targets.shape[1]))
        for rows in _blocks(X.shape[0]):
            features = kernel_matrix(X[rows], self._Z, gamma=self.gamma_) @ whitening
            weighted = features if weight is None else features * weight[rows, None]
            gram += weighted.T @ features
            cross += weighted.T @ targets[rows]
        return whitening @ cho_solve(cho_factor(gram), cross)

    def _fit_batches(self, batches: Iterable[tuple[Any, Any]], n_rows: int | None) -> None:
        self._check_repeatable(batches)
        self._draw_landmarks(sum(X.shape[0] for X, _ in batches) if n_rows is None else n_rows)
        parts, n = [], 0
        for X, _ in self._validated(batches):
            first, last = np.searchsorted(self.landmarks_, (n, n + X.shape[0]))
            parts.append(X[self.landmarks_[first:last] - n])
            n += X.shape[0]
        if n_rows is not None and n != n_rows:
            raise MethodError(f"n_rows={n_rows}, but the batches have {n} rows")
        sparse = any(map(sp.issparse, parts))
        whitening = self._whitening(sp.vstack(parts, format="csr") if sparse else np.vstack(parts))
        sums = RidgeSums()
        for X, Y in self._validated(batches):
            for rows, targets in target_blocks(X, Y):
                sums.add(kernel_matrix(rows, self._Z, gamma=self.gamma_) @ whitening, targets)
        self.coef_, self.column_ = whitening @ sums.solve(self.C), np.arange(self.n_labels_)

    def _scores(self, X: Any) -> np.ndarray:
        parts = [kernel_matrix(X[rows], self._Z, gamma=self.gamma_) @ self.coef_ for rows in _blocks(X.shape[0])]
        return merge_ties(np.vstack(parts))[:, self.column_]


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, _ROWS):
        yield slice(start, start + _ROWS)


def _inverse_root(kernel: np.ndarray) -> np.ndarray:
    """Return T with T T^T the pseudo-inverse of a positive semidefinite matrix, shape (r, rank)."""
    values, vectors = eigh(kernel)
    kept = values > _RANK * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])
