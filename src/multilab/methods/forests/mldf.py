"""MLDF: deep forest whose layers have the label probabilities of the previous layer as features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from multilab.methods.forests._deep_forest import (
    BY_LABEL,
    Growth,
    Layer,
    MeasureAwareForest,
    Settings,
    grow_layer,
    held_out,
    log_confidences,
    losses,
)
from multilab.methods.forests.compact_forest import seed_at

__all__ = ["MLDF"]


@dataclass(frozen=True, eq=False)
class _Step:
    """Layer after the first, with its rule of measure-aware feature reuse.

    Attributes
    ----------
    layer : Layer
    measure : str
        One of `multilab.methods.forests._deep_forest.MEASURES`.
    least : float
        Logarithm of the threshold eta_t: units with a lower confidence reuse the scores of the previous layer.
    labels : ndarray of int
        Labels that reuse them, for a measure averaged over labels; empty for the others.
    """

    layer: Layer
    measure: str
    least: float
    labels: np.ndarray

    @classmethod
    def of(cls, layer: Layer, measure: str, new: np.ndarray, old: np.ndarray, Y: np.ndarray) -> Self:
        """Return the step with eta_t, the mean confidence of the units whose loss the layer increased in training.

        Parameters
        ----------
        layer : Layer
        measure : str
        new, old : ndarray of shape (n_forests, n, q)
            Out-of-fold scores of this layer and representation of the previous one.
        Y : ndarray of shape (n, q), 0/1
        """
        # (q,) or (n,): one entry per unit of the measure
        sure = log_confidences(measure, new.mean(axis=0))
        worse = losses(measure, new.mean(axis=0), Y) > losses(measure, old.mean(axis=0), Y)
        # no unit got worse: eta_t is 0 and nothing is reused
        least = float(logsumexp(sure[worse]) - np.log(worse.sum())) if worse.any() else -np.inf
        labels = np.flatnonzero(sure < least) if measure in BY_LABEL else np.empty(0, dtype=int)
        return cls(layer, measure, least, labels)

    def after(self, new: np.ndarray, old: np.ndarray) -> np.ndarray:
        """Return the representation H_t of rows, shape (n_forests, n, q): ``new``, where confident, else ``old``.

        Parameters
        ----------
        new, old : ndarray of shape (n_forests, n, q)
            Scores of this layer and representation of the previous one.
        """
        kept = new.copy()
        if self.measure in BY_LABEL:
            kept[:, :, self.labels] = old[:, :, self.labels]
        else:
            rows = log_confidences(self.measure, new.mean(axis=0)) < self.least
            kept[:, rows] = old[:, rows]
        return kept


class MLDF(MeasureAwareForest):
    """Multi-label deep forest with measure-aware feature reuse and layer growth.

    The features of a layer are the original ones and the label probabilities of all forests of the previous layer (out
    of fold in training). Rows or labels of low confidence reuse the probabilities of the previous layer; the threshold
    is the mean confidence of those whose loss the layer increased in training. Layers are added until the out-of-fold
    loss stops improving.

    Parameters
    ----------
    measure : str or sequence of str, default="ranking_loss"
        hamming_loss, one_error, coverage, ranking_loss, average_precision or macro_auc: the measure of feature reuse
        and of the stopping rule. With several, one cascade is grown for each; they share the first layer, which does
        not depend on the measure. ``predict`` uses the first measure, ``predict_measures`` all.
    n_layers : int, default=10
        Maximum number of layers.
    n_forests : int, default=4
        Forests per layer: half of them as in `RFPCT` (one more if the number is odd), the others as in `ERFPCT`.
    n_trees : int, default=100
        Trees per forest.
    n_folds : int, default=3
        Number of folds. Each forest is fitted once without each fold; a new row gets the mean of their scores.
    max_depth : int, optional
        Maximum depth of the trees; unlimited when None.
    early_stopping : bool, default=True
        If False, all ``n_layers`` layers are grown and the last one is used.
    patience : int, default=3
        Growth stops after this many layers without an improvement of more than 1e-4; layers after the best are
        discarded.
    n_jobs : int, optional
        Number of forests that are grown, or predict, in parallel; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds and the trees.
    new_folds : bool, default=False
        Whether each layer has folds of its own. With the same folds in all layers, the scores that a layer reads come
        from forests that have seen the labels of its held-out rows.

    Attributes
    ----------
    n_layers_ : ndarray of shape (measures,)
        Number of layers kept for each measure.
    layer_losses_ : ndarray of shape (measures, layers)
        Out-of-fold loss after each layer (1 - value for average precision and AUC), NaN after the stop.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Confidences follow Table 1 of the MLDF paper (`log_confidences`). Copies of its code differ
    (``learner/cascade.py`` of Pan-will/MLDF at 2ca3156 and of liuliwen0990/paper_multi_label at 128ffe7): they multiply
    unsorted columns, and they never store the representation of the first layer, so that layer t uses the threshold of
    layer t + 1 in prediction.

    Deviations from the paper: for measures averaged over labels, the labels that reuse scores are fixed in training,
    because their confidences would otherwise depend on which rows are predicted together; confidences are compared as
    logarithms, because the products underflow. The original has two forests per layer, of increasing size and depth,
    and 5 folds; the defaults are those of the iMLDF paper, which does not give the number of folds.

    Fitted layers are stored as `CompactForest`, memory-mapped from unnamed temporary files in ``TMPDIR``.

    References
    ----------
    L. Yang, X.-Z. Wu, Y. Jiang, Z.-H. Zhou. Multi-label learning with deep forest. ECAI 2020, 1634-1641.

    Examples
    --------
    >>> from multilab.methods import MLDF
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLDF(n_layers=2, n_forests=2, n_trees=3, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (60, 3)
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
        n_jobs: int | None = None,
        random_state: Any = None,
        new_folds: bool = False,
    ) -> None:
        super().__init__(
            measure, n_layers, n_forests, n_trees, n_folds, max_depth, early_stopping, patience, n_jobs, random_state
        )
        self.new_folds = new_folds

    def _fit(self, X: Any, Y: Any) -> None:
        X, folds, settings = self._begin(X, Y)
        self._first, scores, _ = grow_layer([X] * len(folds), Y, folds, settings, 0)
        growths = self._growths()
        self._steps = {one.measure: self._grow(one, X, Y, folds, settings, scores) for one in growths}
        self._finish(growths)

    def _grow(
        self,
        growth: Growth,
        X: np.ndarray,
        Y: np.ndarray,
        folds: list[np.ndarray],
        settings: Settings,
        scores: np.ndarray,
    ) -> list[_Step]:
        """Return the steps after the first layer, up to the best layer by the measure of ``growth``.

        Parameters
        ----------
        growth : Growth
            Stopping rule; the losses are appended to it.
        X : ndarray of shape (n, d), float32
        Y : ndarray of shape (n, q), 0/1
        folds : list of ndarray of int
            Held-out rows of each fold.
        settings : Settings
        scores : ndarray of shape (n_forests, n, q)
            Out-of-fold scores of the first layer.
        """
        steps: list[_Step] = []
        growth.add(scores.mean(axis=0), Y)
        while len(steps) + 1 < self.n_layers and not growth.over:
            inputs, number = [_with_scores(X, scores)] * len(folds), len(steps) + 1
            if self.new_folds:
                folds = held_out(len(Y), len(folds), seed_at(settings.seed, number))
            layer, new, _ = grow_layer(inputs, Y, folds, settings, number)
            steps.append(_Step.of(layer, growth.measure, new, scores, Y))
            scores = steps[-1].after(new, scores)  # H_t, (n_forests, n, q)
            growth.add(scores.mean(axis=0), Y)
        return steps[: growth.best - 1]

    def _layers(self) -> list[Layer]:
        """Return the first layer and those of the cascades of all measures."""
        return [self._first, *(step.layer for steps in self._steps.values() for step in steps)]

    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the scores by the cascade of each measure; the first layer is evaluated once."""
        K = len(self._first.forests)
        first = self._first.predict([X] * K, self.n_jobs)
        scores_by_measure = {}
        for measure in measures:
            scores = first
            for step in self._steps[measure]:
                scores = step.after(step.layer.predict([_with_scores(X, scores)] * K, self.n_jobs), scores)
            scores_by_measure[measure] = scores.mean(axis=0)
        return scores_by_measure


def _with_scores(X: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return [X, H_t], the features and the scores of all forests, shape (n, d + n_forests q), float32."""
    return np.hstack([X, *scores.astype(np.float32)])
