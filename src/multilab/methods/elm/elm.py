"""Extreme learning machine: least squares of -1/+1 labels on a random hidden layer."""

from typing import Any

import numpy as np
from scipy.linalg import lstsq
from scipy.special import expit
from sklearn.utils import check_random_state

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import IncrementalClassifier, MethodError, WeightedPartialClassifier
from multilab.methods.elm._targets import ScoreThreshold, Targets, target_blocks
from multilab.methods.ties import merge_ties

__all__ = ["ELM"]

_RANK = 1e-8  # singular values up to this share of the largest are 0: smaller ones would multiply rounding errors


class ELM(ScoreThreshold, IncrementalClassifier, WeightedPartialClassifier):
    """Multi-label extreme learning machine.

    With H = sigmoid(X A + b), A and b random, it takes beta = pinv(H) Y, Y in {-1, +1}; the scores are
    sigmoid(x A + b) beta.

    Parameters
    ----------
    n_hidden : int, default=500
        Hidden units, L. The ML-EKELM paper does not say how many it used.
    weight_range : float, default=1.0
        A and b are uniform on (-weight_range, weight_range).
    random_state : int, RandomState or None
        Seed of A and b.
    bias_range : tuple of two floats, optional
        b is uniform on this interval instead. Many programs of the field draw from (0, 1).
    threshold : float, default=0.0
        A label is assigned iff its score is >= threshold.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the squared errors by the value of each label, as in `BinaryRelevance`.

    Attributes
    ----------
    weights_ : ndarray of shape (d, L)
        A.
    bias_ : ndarray of shape (L,)
    coef_ : ndarray of shape (L, p)
        beta, one column for each of the p distinct columns of Y.
    column_ : ndarray of shape (q,)
        Which column of ``coef_`` belongs to each label.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Features are expected in [0, 1]. The pseudo-inverse comes from the singular values, so that H may have any rank; the
    paper's eq. (7) leaves out the deficient case. Singular values up to 1e-8 of the largest count as 0. Equal label
    columns are solved once and get bit-identical scores. Scores that differ by rounding errors only are made equal, see
    `multilab.methods.ties.merge_ties`.

    Weights of the rows, or of the labels of each row, are those of their squared errors.

    **Missing labels**: the output weights of a label are the solution on the rows that observe it.

    **Batches of rows**: exact in one pass, from the triangular factor of H. The sum H'H would be cheaper, but cannot
    tell singular values below 1e-8 of the largest, which the pseudo-inverse drops, from rounding errors.

    References
    ----------
    Equations (1) to (8) of the ML-EKELM paper; G.-B. Huang, Q.-Y. Zhu, C.-K. Siew. Extreme learning machine:
    theory and applications. Neurocomputing 70, 2006, 489-501.

    Examples
    --------
    >>> from multilab.methods import ELM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ELM(n_hidden=20, random_state=0).fit(X, y)
    >>> model.coef_.shape
    (20, 3)
    >>> model.decision_function(X).shape
    (60, 3)
    """

    _accepts_cell_weights = True

    def __init__(
        self,
        n_hidden: int = 500,
        weight_range: float = 1.0,
        random_state: Any = None,
        bias_range: tuple[float, float] | None = None,
        threshold: float = 0.0,
        label_weight: LabelWeight = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.weight_range = weight_range
        self.random_state = random_state
        self.bias_range = bias_range
        self.threshold = threshold
        self.label_weight = label_weight

    def _draw_layer(self, d: int) -> None:
        """Check the arguments and draw the hidden layer for d features."""
        if not self.n_hidden >= 1:
            raise MethodError(f"n_hidden={self.n_hidden}: there must be at least one hidden unit")
        if not self.weight_range > 0:
            raise MethodError(f"weight_range={self.weight_range}: it must be positive")
        if self.bias_range is not None and not (len(self.bias_range) == 2 and self.bias_range[0] < self.bias_range[1]):
            raise MethodError(f"bias_range={self.bias_range}: give two numbers, the lower one first")
        self._check_threshold()
        self.weights_, self.bias_ = draw_weights(
            d, self.n_hidden, self.weight_range, self.random_state, self.bias_range
        )

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        self._draw_layer(X.shape[1])
        targets = Targets.of(Y, Weights.of(weight, self.label_weight, self.n_labels_))
        H = hidden_output(X, self.weights_, self.bias_)
        self.column_ = targets.column
        self.coef_ = targets.solve(
            lambda values, weight, rows: self._output_weights(H if rows is None else H[rows], values, weight)
        )

    def _output_weights(self, H: np.ndarray, targets: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            H, targets = root * H, root * targets
        return lstsq(H, targets, cond=_RANK)[0]

    def _add_batch(self, X: Any, Y: np.ndarray, kept: Any) -> Any:
        """Return R of the QR factors of [H T]: its singular values are those of H, which H'H would square."""
        if kept is None:
            self._draw_layer(X.shape[1])
            kept = np.empty((0, self.n_hidden + Y.shape[1]))
        for rows, targets in target_blocks(X, Y):
            H = hidden_output(rows, self.weights_, self.bias_)
            kept = np.asarray(np.linalg.qr(np.vstack([kept, np.hstack([H, targets])]), mode="r"))
        return kept

    def _solve(self, kept: Any) -> None:
        top = kept[: self.n_hidden]  # below, the columns of H are 0
        self.coef_ = self._output_weights(top[:, : self.n_hidden], top[:, self.n_hidden :], None)
        self.column_ = np.arange(self.n_labels_)

    def _scores(self, X: Any) -> np.ndarray:
        return merge_ties(hidden_output(X, self.weights_, self.bias_) @ self.coef_)[:, self.column_]


def draw_weights(
    d: int, n_hidden: int, bound: float, random_state: Any, bias_range: tuple[float, float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return input weights (d, n_hidden) and biases (n_hidden,), uniform on (-bound, bound).

    ``bias_range`` gives another interval for the biases.
    """
    random = check_random_state(random_state)
    low, high = (-bound, bound) if bias_range is None else bias_range
    return random.uniform(-bound, bound, size=(d, n_hidden)), random.uniform(low, high, size=n_hidden)


def hidden_output(X: Any, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the sigmoids 1 / (1 + exp(-(X weights + bias))), shape (n, n_hidden); X dense or CSR."""
    activation = np.asarray(X @ weights)
    activation += bias
    return expit(activation, out=activation)
