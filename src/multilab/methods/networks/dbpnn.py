"""DBPNN: a back-propagation network with one output per label."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier

__all__ = ["DBPNN"]


class DBPNN(MultiLabelClassifier):
    """Multi-layer perceptron with sigmoid outputs and the summed log loss of all labels.

    Parameters
    ----------
    hidden : sequence of int, default=(100, 50)
        Units of the hidden layers.
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
        Of the hidden units.
    alpha : float, default=1e-4
        Weight of the squared weights.
    learning_rate_init : float, default=1e-3
        First step size of Adam.
    max_iter : int, default=200
        Epochs at most; it stops earlier when the loss has not fallen by 1e-4 in ten epochs.
    pretrain : {None, "rbm"}, default=None
        "rbm" starts the hidden layers from restricted Boltzmann machines, trained one on the other; X must be in
        [0, 1] then, and ``activation="logistic"`` is what their hidden units have.
    pretrain_iter : int, default=10
        Epochs of each machine.
    random_state : int or RandomState, optional
        Seed of the weights and of the order of the rows.

    Attributes
    ----------
    n_iter_ : int
        Epochs run.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The iMLDF paper cites MEKA's DBPNN, which is pretrained, but names layers of 100 and 50, rectified linear units and
    Adam: that is this class's default. The features should be scaled. Labels with one class are left out of the
    network and predicted as that class. Reaching ``max_iter`` is no failure and raises no warning.

    References
    ----------
    G. E. Hinton, R. R. Salakhutdinov. Reducing the dimensionality of data with neural networks. Science 313, 2006.
    J. Read, P. Reutemann, B. Pfahringer, G. Holmes. MEKA. J. Machine Learning Research 17(21), 2016.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_label_permutation": "the first weights are drawn in the order of the labels",
    }

    def __init__(
        self,
        hidden: Sequence[int] = (100, 50),
        activation: Literal["relu", "logistic", "tanh", "identity"] = "relu",
        alpha: float = 1e-4,
        learning_rate_init: float = 1e-3,
        max_iter: int = 200,
        pretrain: Literal["rbm"] | None = None,
        pretrain_iter: int = 10,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.alpha = alpha
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.pretrain = pretrain
        self.pretrain_iter = pretrain_iter
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If ``pretrain`` is unknown, or X has values outside [0, 1] that are to be pretrained on.
        """
        X, Y = self._validate_fit(X, Y)
        if self.pretrain not in (None, "rbm"):
            raise MethodError(f"pretrain={self.pretrain!r}: give None or 'rbm'")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._varied = np.flatnonzero(Y.min(axis=0) != Y.max(axis=0))
        self._constant = Y[0].astype(np.float64)
        self.n_iter_ = 0
        if not len(self._varied):
            return self
        target = Y[:, self._varied[0]] if len(self._varied) == 1 else Y[:, self._varied]
        self._network = MLPClassifier(
            hidden_layer_sizes=tuple(self.hidden),
            activation=self.activation,
            alpha=self.alpha,
            learning_rate_init=self.learning_rate_init,
            max_iter=self.max_iter,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if self.pretrain:
                self._start_from_machines(X, target, seed)
            self._network.fit(X, target)
        self.n_iter_ = self._network.n_iter_
        return self

    def _start_from_machines(self, X: Any, target: np.ndarray, seed: int) -> None:
        """Give the hidden layers the weights of a stack of restricted Boltzmann machines."""
        low, high = (X.min(), X.max())
        if low < 0 or high > 1:
            raise MethodError(f"pretrain='rbm' needs X in [0, 1], and it reaches from {low:g} to {high:g}")
        classes = np.arange(2 if target.ndim == 1 else target.shape[1])
        self._network.partial_fit(X, target, classes=classes)  # makes the weights
        below = X
        for layer, units in enumerate(self.hidden):
            machine = BernoulliRBM(units, n_iter=self.pretrain_iter, random_state=seed).fit(below)
            self._network.coefs_[layer][:] = machine.components_.T
            self._network.intercepts_[layer][:] = machine.intercept_hidden_
            below = machine.transform(below)
        self._network.set_params(warm_start=True)

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant, (X.shape[0], 1))
        if len(self._varied):
            found = self._network.predict_proba(sp.csr_array(X) if sp.issparse(X) else X)
            scores[:, self._varied] = found[:, 1:] if len(self._varied) == 1 else found
        return scores
