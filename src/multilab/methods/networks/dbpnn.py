"""DBPNN: back-propagation network with one output per label."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier

__all__ = ["DBPNN"]


class DBPNN(MultiLabelClassifier):
    """Multi-layer perceptron with sigmoid outputs that minimises the sum of the log losses of all labels.

    Parameters
    ----------
    hidden : sequence of int, default=(100, 50)
        Number of units of each hidden layer.
    activation : {"relu", "logistic", "tanh", "identity"}, default="relu"
        Activation function of the hidden units.
    alpha : float, default=1e-4
        Strength of the L2 penalty of the weights.
    learning_rate_init : float, default=1e-3
        Initial learning rate of Adam.
    max_iter : int, default=200
        Maximum number of epochs. Training stops earlier if the loss has not decreased by 1e-4 in ten epochs.
    pretrain : {None, "rbm"}, default=None
        "rbm" initialises the hidden layers by a stack of restricted Boltzmann machines, each trained on the hidden
        units of the previous one. X must be in [0, 1]; ``activation="logistic"`` matches their hidden units.
    pretrain_iter : int, default=10
        Number of epochs of each restricted Boltzmann machine.
    random_state : int or RandomState, optional
        Seed of the initial weights and of the order of the rows.

    Attributes
    ----------
    n_iter_ : int
        Number of epochs; 0 if no label varies in training.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The defaults are the settings of the iMLDF paper (section 4.2): hidden layers of 100 and 50 units, rectified linear
    units and Adam. The paper cites the DBPNN of MEKA, which is pretrained and has sigmoid units; closest to it is
    ``pretrain="rbm", activation="logistic"``. The features should be scaled. Labels with one class in training are not
    outputs of the network; their score is that class. Reaching ``max_iter`` raises no warning.

    References
    ----------
    G. E. Hinton, R. R. Salakhutdinov. Reducing the dimensionality of data with neural networks. Science 313, 2006.
    J. Read, P. Reutemann, B. Pfahringer, G. Holmes. MEKA. J. Machine Learning Research 17(21), 2016.

    Examples
    --------
    >>> from multilab.methods import DBPNN
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = DBPNN(hidden=(10,), max_iter=20, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    _makes_dense: ClassVar[bool] = True  # it does not, but results on texts were computed with frequent words only

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

    def _fit(self, X: Any, Y: Any) -> None:
        self._check_choices(pretrain=(None, "rbm"))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self._varied = np.flatnonzero(Y.min(axis=0) != Y.max(axis=0))
        self._constant = Y[0].astype(np.float64)
        self.n_iter_ = 0
        if not len(self._varied):
            return
        # a single output is passed as a vector, which scikit-learn fits as a binary problem
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

    def _start_from_machines(self, X: Any, target: np.ndarray, seed: int) -> None:
        """Initialise the hidden layers by a stack of restricted Boltzmann machines; the next fit starts from there.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, d)
            Values in [0, 1].
        target : ndarray of shape (n,) or (n, n_varied)
            Varied labels, which set the shape of the output layer.
        seed : int
            Seed of the machines.
        """
        low, high = (X.min(), X.max())
        if low < 0 or high > 1:
            raise MethodError(f"pretrain='rbm' needs X in [0, 1], and it reaches from {low:g} to {high:g}")
        classes = np.arange(2 if target.ndim == 1 else target.shape[1])
        self._network.partial_fit(
            X, target, classes=classes
        )  # allocates the weights; one epoch also trains the output layer
        below = X  # (n, d), then (n, units of the previous layer)
        for layer, units in enumerate(self.hidden):
            machine = BernoulliRBM(units, n_iter=self.pretrain_iter, random_state=seed).fit(below)
            self._network.coefs_[layer][:] = machine.components_.T
            self._network.intercepts_[layer][:] = machine.intercept_hidden_
            below = machine.transform(below)
        self._network.set_params(warm_start=True)

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant, (X.shape[0], 1))
        if len(self._varied):
            probabilities = self._network.predict_proba(sp.csr_array(X) if sp.issparse(X) else X)
            scores[:, self._varied] = probabilities[:, 1:] if len(self._varied) == 1 else probabilities
        return scores
