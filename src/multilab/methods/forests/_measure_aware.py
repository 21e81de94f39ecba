# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Base class of the deep forests: arguments, stopping rule, and predictions for several measures."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.forests._compact import CompactForest
from multilab.methods.forests._growing import single_precision
from multilab.methods.forests._layers import Layer, Settings, held_out
from multilab.methods.forests._measures import MEASURES, losses

_IMPROVEMENT = 1e-4


class Growth:
    """Stopping rule of a cascade: the loss after each layer, and the best number of layers.

    Parameters
    ----------
    measure : str
        One of `MEASURES`.
    patience : int or None
        Number of consecutive layers without improvement that stops the cascade; None never stops it.

    Attributes
    ----------
    losses : list of float
        Mean loss of the out-of-fold scores after each layer.
    best : int
        Number of layers to keep. A layer replaces the best one if its loss is smaller by more than 1e-4; with
        ``patience=None`` it is the number of all layers.
    """

    def __init__(self, measure: str, patience: int | None) -> None:
        self.measure = measure
        self.patience = patience
        self.losses: list[float] = []
        self.best = 0

    def add(self, scores: np.ndarray, Y: np.ndarray) -> None:
        """Append the loss of the out-of-fold scores of one more layer; after the stop it does nothing.

        Parameters
        ----------
        scores : ndarray of shape (n, q)
        Y : ndarray of shape (n, q), 0/1
        """
        if self.over:
            return
        values = losses(self.measure, scores, Y)
        values = values[~np.isnan(values)]  # units for which the measure is not defined
        loss = float(values.mean()) if len(values) else np.inf
        if self.patience is None or not self.best or loss < self.losses[self.best - 1] - _IMPROVEMENT:
            self.best = len(self.losses) + 1
        self.losses.append(loss)

    @property
    def over(self) -> bool:
        """Whether the last ``patience`` layers were no improvement."""
        return self.patience is not None and len(self.losses) - self.best >= self.patience


class MeasureAwareForest(MultiLabelClassifier, ABC):
    """Base class of cascades of forests whose growth one of six measures stops, or each of several.

    A subclass implements ``fit``, ``_layers`` and ``_by_measure``; it documents the parameters.
    """

    def __init__(
        self,
        measure: str | Sequence[str] = "ranking_loss",
        n_layers: int = 10,
        n_forests: int = 4,
        n_trees: int = 100,
        n_folds: int = 3,
        max_depth: int | None = None,
        early_stopping: bool = True,
        patience: int = 3,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.measure = measure
        self.n_layers = n_layers
        self.n_forests = n_forests
        self.n_trees = n_trees
        self.n_folds = n_folds
        self.max_depth = max_depth
        self.early_stopping = early_stopping
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _measures(self) -> tuple[str, ...]:
        """Names of the measures; ``predict`` uses the cascade of the first."""
        return (self.measure,) if isinstance(self.measure, str) else tuple(self.measure)

    def _begin(self, X: Any, Y: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], Settings]:
        """Check the arguments and return X in single precision, the held-out rows of each fold, and the settings.

        Raises
        ------
        MethodError
            If an argument is out of range or there is one row only.
        """
        for name in ("n_layers", "n_forests", "n_trees", "patience"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name}={getattr(self, name)!r} must be 1 or more")
        if not self._measures or not set(self._measures) <= set(MEASURES):
            raise MethodError(f"measure={self.measure!r}: give one or several of {', '.join(MEASURES)}")
        if self.n_folds < 2 or len(Y) < 2:
            raise MethodError(f"n_folds={self.n_folds!r} and n_samples={len(Y)} must both be 2 or more")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        trees = {"n_estimators": self.n_trees, "max_depth": self.max_depth}
        folds = held_out(len(Y), min(self.n_folds, len(Y)), seed)
        return single_precision(X), folds, Settings(self.n_forests, trees, seed, self.n_jobs)

    def _growths(self) -> list[Growth]:
        """Return a stopping rule per measure."""
        return [Growth(measure, self.patience if self.early_stopping else None) for measure in self._measures]

    def _finish(self, growths: Sequence[Growth]) -> None:
        """Set ``n_layers_`` and ``layer_losses_`` from the stopping rules."""
        self.n_layers_ = np.array([growth.best for growth in growths])
        self.layer_losses_ = np.full((len(growths), max(len(growth.losses) for growth in growths)), np.nan)
        for row, growth in zip(self.layer_losses_, growths, strict=True):
            row[: len(growth.losses)] = growth.losses

    def predict_measures(self, X: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the scores and decisions of the cascade of each measure.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        dict of str to (ndarray of shape (n, q), int64 ndarray of shape (n, q))
        """
        by_measure = self._by_measure(single_precision(self._validate_predict(X)), self._measures)
        return {name: (scores, self._decide(scores).astype(np.int64)) for name, scores in by_measure.items()}

    def _scores(self, X: Any) -> np.ndarray:
        return self._by_measure(single_precision(X), self._measures[:1])[self._measures[0]]

    @property
    def forests_(self) -> list[CompactForest]:
        """All stored forests, layer by layer."""
        return [forest for layer in self._layers() for row in layer.forests for forest in row]

    @abstractmethod
    def _layers(self) -> list[Layer]:
        """Return the layers whose forests prediction needs."""

    @abstractmethod
    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the scores by the cascade of each measure, shape (n, q) each.

        Parameters
        ----------
        X : ndarray of shape (n, d), float32
        measures : sequence of str
            Some of ``_measures``.
        """
