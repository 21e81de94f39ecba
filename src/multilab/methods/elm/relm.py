"""Regularised extreme learning machine: ridge regression of -1/+1 labels on a random hidden layer."""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from multilab.methods._weights import LabelWeight
from multilab.methods.base import MethodError
from multilab.methods.elm._targets import RidgeSums, target_blocks
from multilab.methods.elm.elm import ELM, hidden_output

__all__ = ["RELM"]


class RELM(ELM):
    """Multi-label regularised extreme learning machine.

    Minimises ||beta||_F^2 / 2 + C / 2 ||Y - H beta||_F^2 over the output weights of `ELM`.

    Parameters
    ----------
    n_hidden : int, default=500
        Hidden units, L.
    weight_range : float, default=1.0
        Bound of the random weights.
    C : float, default=1.0
        Weight of the training error, positive.
    random_state : int, RandomState or None
        Seed of the hidden layer.
    bias_range : tuple of two floats, optional
        Interval of the random biases; default that of the weights.
    threshold : float, default=0.0
        A label is assigned iff its score is >= threshold.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the squared errors by the value of each label, as in `BinaryRelevance`.

    Attributes
    ----------
    weights_, bias_, coef_, column_, n_labels_, n_features_in_, classes_
        See `ELM`.

    Notes
    -----
    beta = (I_L / C + H^T H)^(-1) H^T Y where L <= n, else the equal H^T (I_n / C + H H^T)^(-1) Y: the smaller
    matrix is factorised. Eq. (14) of the ML-EKELM paper calls the n-dimensional I L-dimensional, and eq. (15)
    applies the H of the training rows to every row.

    **Weights and missing labels**: as in `ELM`.

    **Batches of rows**: exact in one pass, from the sums H'H and H'Y.

    References
    ----------
    Equations (13) to (15) of the ML-EKELM paper; W.-Y. Deng, Q.-H. Zheng, L. Chen, X.-B. Xu. Research on
    extreme learning of neural networks. Chinese Journal of Computers 33(2), 2010.

    Examples
    --------
    >>> from multilab.methods import RELM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = RELM(n_hidden=20, C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    def __init__(
        self,
        n_hidden: int = 500,
        weight_range: float = 1.0,
        C: float = 1.0,
        random_state: Any = None,
        bias_range: tuple[float, float] | None = None,
        threshold: float = 0.0,
        label_weight: LabelWeight = None,
    ) -> None:
        super().__init__(n_hidden, weight_range, random_state, bias_range, threshold, label_weight)
        self.C = C

    def _draw_layer(self, d: int) -> None:
        if not self.C > 0:
            raise MethodError(f"C={self.C}: it must be positive")
        super()._draw_layer(d)

    def _output_weights(self, H: np.ndarray, targets: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            H, targets = root * H, root * targets
        n, units = H.shape
        if units <= n:
            return cho_solve(cho_factor(_plus_ridge(H.T @ H, 1.0 / self.C)), H.T @ targets)
        return H.T @ cho_solve(cho_factor(_plus_ridge(H @ H.T, 1.0 / self.C)), targets)

    def _add_batch(self, X: Any, Y: np.ndarray, kept: Any) -> RidgeSums:
        if kept is None:
            self._draw_layer(X.shape[1])
            kept = RidgeSums()
        for rows, targets in target_blocks(X, Y):
            kept.add(hidden_output(rows, self.weights_, self.bias_), targets)
        return kept

    def _solve(self, kept: Any) -> None:
        self.coef_, self.column_ = kept.solve(self.C), np.arange(self.n_labels_)


def _plus_ridge(gram: np.ndarray, ridge: float) -> np.ndarray:
    gram.flat[:: len(gram) + 1] += ridge
    return gram
