"""MLDF: a deep forest whose layers read the label probabilities of the layer before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from multilab.methods.forests.layers import Layer, Settings, grow_layer
from multilab.methods.forests.measure_aware import Growth, MeasureAwareForest
from multilab.methods.forests.measures import BY_LABEL, log_confidences, losses

__all__ = ["MLDF"]


@dataclass(frozen=True, eq=False)
class _Step:
    """A layer after the first, and what it does not dare to change.

    ``least`` is the logarithm of the confidence below which a row keeps what the layer before said; ``labels`` are the
    labels that do, for a measure averaged over labels.
    """

    layer: Layer
    measure: str
    least: float
    labels: np.ndarray

    @classmethod
    def of(cls, layer: Layer, measure: str, new: np.ndarray, old: np.ndarray, Y: np.ndarray) -> _Step:
        """Set the threshold by the training rows: the mean confidence of the units that the layer made worse."""
        sure = log_confidences(measure, new.mean(axis=0))
        worse = losses(measure, new.mean(axis=0), Y) > losses(measure, old.mean(axis=0), Y)
        least = float(logsumexp(sure[worse]) - np.log(worse.sum())) if worse.any() else -np.inf
        labels = np.flatnonzero(sure < least) if measure in BY_LABEL else np.empty(0, dtype=int)
        return cls(layer, measure, least, labels)

    def after(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Return the layer's representation, shape (forests, n, q), with the reused parts of the one before."""
        kept = new.copy()
        if self.measure in BY_LABEL:
            kept[:, :, self.labels] = old[:, :, self.labels]
        else:
            rows = log_confidences(self.measure, new.mean(axis=0)) < self.least
            kept[:, rows] = old[:, rows]
        return kept


class MLDF(MeasureAwareForest):
    """Multi-label deep forest with measure-aware feature reuse and layer growth.

    Each layer is a set of forests on the features and the label probabilities that the forests of the layer before
    gave (out of fold in training). Where a layer is less sure than those that it made worse in training, the
    probabilities of the layer before are reused. Layers are added until the measure stops improving out of fold.

    Parameters
    ----------
    measure : str or sequence of str, default="ranking_loss"
        hamming_loss, one_error, coverage, ranking_loss, average_precision or macro_auc: what reuse and growth go by.
        With several, one cascade is grown by each; they share the first layer, which no measure touches. ``predict``
        is by the first of them, ``predict_measures`` by all.
    n_layers : int, default=10
        Layers at most.
    n_forests : int, default=4
        Forests per layer, the first half `RFPCT`, the others `ERFPCT`.
    n_trees : int, default=100
        Trees per forest.
    n_folds : int, default=3
        Each forest is fitted once without each fold; a new row gets the mean of these.
    max_depth : int, optional
        Of the trees; unlimited when None.
    early_stopping : bool, default=True
        False grows all layers and uses the last.
    patience : int, default=3
        Layers without an improvement of 1e-4 after which growth ends; the best layer is the last that is kept.
    n_jobs : int, optional
        Forests grown, and asked, at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds and the trees.

    Attributes
    ----------
    n_layers_ : ndarray of shape (measures,)
        Layers kept.
    layer_losses_ : ndarray of shape (measures, layers)
        Out-of-fold loss after each layer (1 - value for average precision and AUC), NaN where none was grown.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Confidences follow the formulas of the MLDF paper (`log_confidences`), not its released code, which multiplies
    unsorted columns, never stores the first layer's representation and so is one threshold off in prediction.
    Deviations: for measures averaged over labels the labels that are reused are fixed in training, since their
    confidences would otherwise depend on which rows are asked about together; confidences are compared in logarithms.
    The original has two forests of growing size and depth per layer and 5 folds; the defaults are those of the iMLDF
    paper, which does not tell the folds.

    Fitted layers are held as `CompactForest` in nameless temporary files (in ``TMPDIR``), mapped into memory.

    References
    ----------
    L. Yang, X.-Z. Wu, Y. Jiang, Z.-H. Zhou. Multi-label learning with deep forest. ECAI 2020, 1634-1641.
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

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q), n >= 2.

        Raises
        ------
        MethodError
            If an argument is out of range or there is one row only.
        """
        X, Y = self._validate_fit(X, Y)
        X, folds, settings = self._begin(X, Y)
        self._first, scores, _ = grow_layer([X] * len(folds), Y, folds, settings, 0)
        growths = self._growths()
        self._steps = {one.measure: self._grow(one, X, Y, folds, settings, scores) for one in growths}
        self._finish(growths)
        return self

    def _grow(
        self,
        growth: Growth,
        X: np.ndarray,
        Y: np.ndarray,
        folds: list[np.ndarray],
        settings: Settings,
        scores: np.ndarray,
    ) -> list[_Step]:
        """Return the layers after the first, up to the best by a measure."""
        steps: list[_Step] = []
        growth.add(scores.mean(axis=0), Y)
        while len(steps) + 1 < self.n_layers and not growth.over:
            inputs = [_beside(X, scores)] * len(folds)
            layer, new, _ = grow_layer(inputs, Y, folds, settings, len(steps) + 1)
            steps.append(_Step.of(layer, growth.measure, new, scores, Y))
            scores = steps[-1].after(new, scores)
            growth.add(scores.mean(axis=0), Y)
        return steps[: growth.best - 1]

    def _layers(self) -> list[Layer]:
        return [self._first, *(step.layer for steps in self._steps.values() for step in steps)]

    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        K = len(self._first.forests)
        first = self._first.predict([X] * K, self.n_jobs)
        found = {}
        for measure in measures:
            scores = first
            for step in self._steps[measure]:
                scores = step.after(step.layer.predict([_beside(X, scores)] * K, self.n_jobs), scores)
            found[measure] = scores.mean(axis=0)
        return found


def _beside(X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the features with the scores of all forests beside them."""
    return np.hstack([X, *scores.astype(np.float32)])
