"""TabM: perceptrons that share most of their weights, with one sigmoid output per label."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import tabm
import torch
from sklearn.utils import check_random_state
from torch.nn.functional import binary_cross_entropy_with_logits

from multilab.methods.base import MethodError, PartialClassifier
from multilab.model_selection.iterative_stratification import stratified_assignment

__all__ = ["TabM"]

_BLOCK_ROWS = 1024  # rows of one pass when predicting


class TabM(PartialClassifier):
    """TabM: k multi-layer perceptrons that share most of their weights, with one sigmoid output per label.

    Every member has its own log loss, summed over the labels; the scores are the mean probabilities of the members.

    Parameters
    ----------
    architecture : callable, default=None
        Returns a `torch.nn.Module` from the arguments ``n_num_features, d_out, k, arch_type, n_blocks, d_block,
        dropout, activation, start_scaling_init``, which maps (n, d) to (n, k, d_out). `tabm.TabM` when None.
    optimizer : callable, default=None
        Class of `torch.optim` that takes ``lr`` and ``weight_decay``. `torch.optim.AdamW` when None.
    k : int, default=32
        Number of members.
    n_blocks : int, default=3
        Number of hidden layers.
    d_block : int, default=512
        Number of units of each hidden layer.
    dropout : float, default=0.1
        Share of hidden units that are dropped in training.
    learning_rate : float, default=2e-3
    weight_decay : float, default=3e-4
    batch_size : int, default=256
        Rows of a step of the optimiser.
    max_epochs : int, default=1000
        Maximum number of passes over the training rows.
    patience : int, default=16
        Training stops after this number of epochs without a smaller log loss of the validation rows; the weights of
        the best epoch are used.
    validation_fraction : float, default=0.2
        Share of the rows, drawn by iterative stratification, that are validation rows and not learned from. With 0, or
        too few rows for a single one, all rows are learned from for ``max_epochs``.
    random_state : int or RandomState, optional
        Seed of the validation rows, the first weights, the batches and the dropped units.

    Attributes
    ----------
    n_epochs_ : int
        Number of epochs after which the weights were taken; 0 if no label varies in training.
    validation_loss_ : ndarray of shape (epochs,)
        Mean log loss of the observed labels of the validation rows after each epoch; empty without validation rows.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Needs the packages ``torch`` and ``tabm`` (extra ``tabular-nets``). Features are standardised with the training
    rows, and a sparse X is made dense. One thread; the result depends on the seed and the versions of the packages, and
    in its last bits on the processor. Weights are trained as float32, and predictions computed as float64, so
    that the score of a row does not depend on the rows that are predicted together with it.

    Labels with one class in training are not outputs of the network; their score is that class. Unobserved labels have
    no loss. The defaults are the authors' values, which are for a GPU or many cores: 16 members of 128 units need a
    thirtieth of the multiplications.

    References
    ----------
    Y. Gorishniy, A. Kotelnikov, A. Babenko. TabM: Advancing tabular deep learning with parameter-efficient ensembling.
    ICLR 2025.

    Examples
    --------
    >>> from multilab.methods import TabM
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = TabM(k=4, d_block=16, max_epochs=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    _makes_dense: ClassVar[bool] = True

    def __init__(
        self,
        architecture: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        k: int = 32,
        n_blocks: int = 3,
        d_block: int = 512,
        dropout: float = 0.1,
        learning_rate: float = 2e-3,
        weight_decay: float = 3e-4,
        batch_size: int = 256,
        max_epochs: int = 1000,
        patience: int = 16,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.architecture = architecture
        self.optimizer = optimizer
        self.k = k
        self.n_blocks = n_blocks
        self.d_block = d_block
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        self._check_sizes()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        positive = (Y == 1).any(axis=0)
        self._varied = np.flatnonzero(positive & (Y == 0).any(axis=0))
        self._constant = positive.astype(np.float64)
        self.n_epochs_, self.validation_loss_ = 0, np.zeros(0)
        if not len(self._varied):
            return
        X = _dense(X)
        self._mean, self._scale = X.mean(axis=0), X.std(axis=0)
        self._scale[self._scale == 0] = 1.0
        Y = np.ascontiguousarray(Y[:, self._varied])
        n_validation = round(self.validation_fraction * len(Y))
        subset = stratified_assignment(Y, [len(Y) - n_validation, n_validation], seed=seed)
        with _one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            inputs = torch.from_numpy(self._standardised(X).astype(np.float32))
            targets = torch.from_numpy(Y.astype(np.float32))
            rows, held_out = (torch.from_numpy(np.flatnonzero(subset == part)) for part in (0, 1))
            self._train(inputs[rows], targets[rows], inputs[held_out], targets[held_out])

    def _check_sizes(self) -> None:
        for name in ("k", "n_blocks", "d_block", "batch_size", "max_epochs", "patience"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name}={getattr(self, name)!r}: give a number >= 1")
        for name in ("dropout", "validation_fraction"):
            if not 0 <= getattr(self, name) < 1:
                raise MethodError(f"{name}={getattr(self, name)!r}: give a number >= 0 and < 1")

    def _train(self, X: Any, Y: Any, X_validation: Any, Y_validation: Any) -> None:
        """Minimise the log loss of every member; store the weights of the best epoch.

        Parameters
        ----------
        X, X_validation : float32 Tensor of shape (n, d)
            Standardised features.
        Y, Y_validation : float32 Tensor of shape (n, n_varied)
            0/1, and -1 where a label is not observed.
        """
        network = self._network()
        optimizer = (self.optimizer or torch.optim.AdamW)(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        best, losses = np.inf, []
        for epoch in range(1, self.max_epochs + 1):
            network.train()
            for batch in torch.randperm(len(X)).split(self.batch_size):
                optimizer.zero_grad()
                logits = network(X[batch])
                members = Y[batch, None].expand(logits.shape)
                _masked_mean(binary_cross_entropy_with_logits(logits, members, reduction="none"), members).backward()
                optimizer.step()
            if not len(X_validation):
                self.n_epochs_ = epoch
                continue
            probabilities = _mean_probabilities(network.eval(), X_validation).clamp(1e-7, 1 - 1e-7)
            loss = torch.nn.functional.binary_cross_entropy(probabilities, Y_validation.clamp(min=0), reduction="none")
            losses.append(float(_masked_mean(loss, Y_validation)))
            if losses[-1] < best:
                best, self.n_epochs_ = losses[-1], epoch
                self._weights = _arrays(network)
            elif epoch - self.n_epochs_ >= self.patience:
                break
        if not losses:
            self._weights = _arrays(network)
        self.validation_loss_ = np.array(losses)

    def _network(self) -> Any:
        return (self.architecture or tabm.TabM)(
            n_num_features=self.n_features_in_,
            d_out=len(self._varied),
            k=self.k,
            arch_type="tabm",
            n_blocks=self.n_blocks,
            d_block=self.d_block,
            dropout=self.dropout,
            activation="ReLU",
            start_scaling_init="random-signs",
        )

    def _standardised(self, X: np.ndarray) -> np.ndarray:
        return (X - self._mean) / self._scale

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.tile(self._constant, (X.shape[0], 1))
        if len(self._varied):
            with torch.device("meta"):  # draws no weights
                network = self._network()
            weights = {name: torch.from_numpy(value) for name, value in self._weights.items()}
            network.load_state_dict(weights, assign=True)
            network.double().eval()
            with _one_thread():
                for start in range(0, len(scores), _BLOCK_ROWS):
                    rows = slice(start, start + _BLOCK_ROWS)
                    inputs = torch.from_numpy(self._standardised(_dense(X[rows])))
                    scores[rows, self._varied] = _mean_probabilities(network, inputs).numpy()
        return scores


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _arrays(network: Any) -> dict[str, np.ndarray]:
    """Return a copy of the weights: a fitted estimator holds arrays only, which any format of model files can store."""
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}


def _mean_probabilities(network: Any, X: Any) -> Any:
    with torch.inference_mode():
        return torch.sigmoid(network(X)).mean(dim=1)


def _masked_mean(loss: Any, Y: Any) -> Any:
    """Return the mean loss of the observed labels; the loss of a label that is not observed (-1) may be anything."""
    observed = Y >= 0
    return torch.where(observed, loss, 0.0).sum() / observed.sum().clamp(min=1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run a block with one thread of torch: sums in another order would change the last bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
