"""What the deep forests share: arguments, when a cascade stops growing, and predictions for several measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.forests.compact import CompactForest
from multilab.methods.forests.growing import single_precision
from multilab.methods.forests.layers import Layer, Settings, held_out
from multilab.methods.forests.measures import MEASURES, losses

__all__ = ["Growth", "MeasureAwareForest"]

_IMPROVEMENT = 1e-4


class Growth:
    """The losses of a cascade layer by layer, and where it was best.

    Attributes
    ----------
    losses : list of float
    best : int
        Number of layers with the smallest loss, where a later layer must be better by 1e-4; without early stopping
        (``patience`` None) all layers.
    """

    def __init__(self, measure: str, patience: int | None) -> None:
        self.measure = measure
        self.patience = patience
        self.losses: list[float] = []
        self.best = 0

    def add(self, scores: np.ndarray, Y: np.ndarray) -> None:
        """Take note of the out-of-fold scores of one more layer."""
        if self.over:
            return
        found = losses(self.measure, scores, Y)
        found = found[~np.isnan(found)]
        loss = float(found.mean()) if len(found) else np.inf
        if self.patience is None or not self.best or loss < self.losses[self.best - 1] - _IMPROVEMENT:
            self.best = len(self.losses) + 1
        self.losses.append(loss)

    @property
    def over(self) -> bool:
        """Whether ``patience`` layers have brought no improvement."""
        return self.patience is not None and len(self.losses) - self.best >= self.patience


class MeasureAwareForest(MultiLabelClassifier, ABC):
    """A cascade of layers of forests that is grown by one of six measures, or by each of several.

    A subclass writes ``fit``, ``_layers`` and ``_by_measure``.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_label_permutation": "the features of later layers, and with them the draws, are in the labels' order",
        "check_training_permutation": "folds are drawn over row numbers",
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where trees agree",
    }

    measure: str | Sequence[str]
    n_layers: int
    n_forests: int
    n_trees: int
    n_folds: int
    max_depth: int | None
    early_stopping: bool
    patience: int
    n_jobs: int | None
    random_state: Any

    @property
    def _measures(self) -> tuple[str, ...]:
        return (self.measure,) if isinstance(self.measure, str) else tuple(self.measure)

    def _begin(self, X: Any, Y: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], Settings]:
        """Check the arguments and return X in single precision, the held-out rows of each fold, and the settings."""
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
        return [Growth(measure, self.patience if self.early_stopping else None) for measure in self._measures]

    def _finish(self, growths: Sequence[Growth]) -> None:
        """Set the fitted attributes that tell how the cascades grew."""
        self.n_layers_ = np.array([growth.best for growth in growths])
        self.layer_losses_ = np.full((len(growths), max(len(growth.losses) for growth in growths)), np.nan)
        for row, growth in zip(self.layer_losses_, growths, strict=True):
            row[: len(growth.losses)] = growth.losses

    def predict_measures(self, X: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return for each measure the scores and decisions of the cascade that was grown by it."""
        found = self._by_measure(single_precision(self._validate_predict(X)), self._measures)
        return {name: (scores, self._decide(scores).astype(np.int64)) for name, scores in found.items()}

    def _scores(self, X: Any) -> np.ndarray:
        return self._by_measure(single_precision(X), self._measures[:1])[self._measures[0]]

    @property
    def forests_(self) -> list[CompactForest]:
        """All forests that prediction asks."""
        return [forest for layer in self._layers() for row in layer.forests for forest in row]

    @abstractmethod
    def _layers(self) -> list[Layer]:
        """Return the layers that are kept."""

    @abstractmethod
    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the scores of float32 rows by the cascade of each measure."""
