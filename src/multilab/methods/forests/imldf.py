"""iMLDF: a deep forest whose layers read feature interactions, so that inner forests need not be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, get_args

import numpy as np
from joblib import Parallel, delayed

from multilab.methods.base import MethodError
from multilab.methods.forests.growing import seed_at
from multilab.methods.forests.interaction_trees import ThresholdRule, Trees, ranked, sampled_sets
from multilab.methods.forests.layers import Layer, grow_layer
from multilab.methods.forests.measure_aware import MeasureAwareForest
from multilab.methods.forests.regions import Confidence, LabelRepresentation, Regions, chosen_regions

__all__ = ["IMLDF"]


class IMLDF(MeasureAwareForest):
    """Multi-label deep forest on interaction representations.

    From the decision paths of a layer random interaction trees take the conditions that recur together. Each such
    interaction is a region; the features of the next layer are the original ones and, per region, how far inside a
    row is and which labels the training rows inside have. Prediction needs the interactions of all layers and the
    forests of the last.

    Parameters
    ----------
    measure : str or sequence of str, default="ranking_loss"
        hamming_loss, one_error, coverage, ranking_loss, average_precision or macro_auc: what growth is stopped by, the
        one thing that depends on it. With several, the layers are grown once and the best for each is kept.
        ``predict`` is by the first of them, ``predict_measures`` by all.
    n_layers : int, default=10
        Layers at most.
    n_forests : int, default=4
        Forests per layer, the first half `RFPCT`, the others `ERFPCT`.
    n_trees : int, default=100
        Trees per forest.
    n_folds : int, default=3
        One cascade is grown without each fold; a new row gets the mean of these.
    max_depth : int, optional
        Of the trees; unlimited when None.
    n_interactions : int, default=10
        Regions per layer, at most.
    threshold_rule : {"relax", "tight", "median"}, default="relax"
        How thresholds of the same condition combine along a chain of an interaction tree.
    confidence : {"corner", "boundary"} or None, default="corner"
        What is a row's place in its region: the sum of the distances to all thresholds (as printed), or the distance
        to the nearest. None leaves this representation out.
    label_repr : {"aggregated", "per_interaction"} or None, default="aggregated"
        Label shares of the regions: their mean over the regions a row is in (q features), or those of each region
        apart (the printed formula: one non-zero value per region and label, so an indicator in q copies). None leaves
        this representation out.
    add_probabilities : bool, default=False
        Whether later layers also read the label probabilities of the first, whose forests are then kept too.
    n_subsamples : int, default=10
        Halves of the training rows on which interactions are looked for; an interaction is the more stable the more
        of them have it.
    n_interaction_trees : int, default=20
        Interaction trees per subsample.
    depth : int, default=5
        Levels of an interaction tree; every node has two children.
    early_stopping : bool, default=True
        False grows all layers and uses the last.
    patience : int, default=3
        Layers without an improvement of 1e-4 after which growth ends; the best layer is the last that is kept.
    n_jobs : int, optional
        Forests and subsamples worked on at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds, the trees and the subsamples.

    Attributes
    ----------
    regions_ : list of list of Regions
        Per layer but the last, and fold.
    n_layers_ : ndarray of shape (measures,)
        Layers kept.
    layer_losses_ : ndarray of shape (measures, layers)
        Out-of-fold loss after each layer (1 - value for average precision and AUC), NaN where growth was over.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Each fold has interactions of its own, found without its rows, so the out-of-fold losses that growth goes by are
    free of their labels. The features of layer t + 1 are the original ones and those of layer t's regions, which may
    be about features of layer t - 1's.

    What the paper leaves open or contradicts itself in, and what is done here: Algorithm 1 takes the larger of two
    ``>=`` thresholds and Fig. 1 the smaller; "relax" is the figure, and the authors' earlier hiDF. Nodes of all levels
    count, since at the last level unpruned trees share nothing. Stability ranks, and the best ``n_interactions`` with
    1 % to 95 % of the rows are taken. Thresholds of the same set in different chains are combined by their median.
    Distances are in units of the features' ranges. The denominator of the label representation, printed equal to the
    numerator, is the number of rows in the region. Label shares never leave a row out of its own region, which would
    tell its labels.

    References
    ----------
    S.-H. Lyu, Y.-H. Chen, Y. Jiang. Interaction-representation-based deep forest method in multi-label learning.
    Journal of Software 35(4), 2024, 1934-1944. R. D. Shah, N. Meinshausen. Random intersection trees. JMLR 15, 2014.
    """

    def __init__(
        self,
        measure: str | Sequence[str] = "ranking_loss",
        n_layers: int = 10,
        n_forests: int = 4,
        n_trees: int = 100,
        n_folds: int = 3,
        max_depth: int | None = None,
        n_interactions: int = 10,
        threshold_rule: ThresholdRule = "relax",
        confidence: Confidence | None = "corner",
        label_repr: LabelRepresentation | None = "aggregated",
        add_probabilities: bool = False,
        n_subsamples: int = 10,
        n_interaction_trees: int = 20,
        depth: int = 5,
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
        self.n_interactions = n_interactions
        self.threshold_rule = threshold_rule
        self.confidence = confidence
        self.label_repr = label_repr
        self.add_probabilities = add_probabilities
        self.n_subsamples = n_subsamples
        self.n_interaction_trees = n_interaction_trees
        self.depth = depth
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
        self._check_arguments()
        X, folds, settings = self._begin(X, Y)
        growths, layers = self._growths(), dict[int, Layer]()
        self.regions_ = list[list[Regions]]()
        inputs, beside = [X] * len(folds), np.empty((len(X), 0), dtype=np.float32)
        while True:
            layer, scores, importances = grow_layer(inputs, Y, folds, settings, len(self.regions_))
            if self.add_probabilities and not self.regions_:
                beside, self._first = scores.mean(axis=0).astype(np.float32), layer
            for growth in growths:
                growth.add(scores.mean(axis=0), Y)
            layers[len(self.regions_) + 1] = layer
            layers = {at: kept for at, kept in layers.items() if at in {growth.best for growth in growths}}
            if len(self.regions_) + 1 == self.n_layers or all(growth.over for growth in growths):
                break
            self.regions_.append(self._mine(inputs, Y, folds, importances.mean(axis=1), settings.seed))
            inputs = self._next(X, inputs, self.regions_[-1], beside)
        self._finish(growths)
        del self.regions_[max(layers) - 1 :]
        self._last = layers
        return self

    def _check_arguments(self) -> None:
        for name in ("n_interactions", "n_subsamples", "n_interaction_trees", "depth"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name}={getattr(self, name)!r} must be 1 or more")
        for name, known in (
            ("threshold_rule", get_args(ThresholdRule)),
            ("confidence", (*get_args(Confidence), None)),
            ("label_repr", (*get_args(LabelRepresentation), None)),
        ):
            if getattr(self, name) not in known:
                raise MethodError(f"{name}={getattr(self, name)!r} is not one of {', '.join(map(repr, known))}")

    def _mine(
        self, inputs: list[np.ndarray], Y: np.ndarray, folds: list[np.ndarray], importances: np.ndarray, seed: int
    ) -> list[Regions]:
        """Return the regions of a layer for each fold, found on the other rows."""
        trees = Trees(self.n_interaction_trees, self.depth, self.threshold_rule)
        layer = len(self.regions_)
        seen = [np.delete(np.arange(len(Y)), out) for out in folds]
        parts = [
            (Z[rows], Y[rows], weights[: Z.shape[1]])
            for Z, rows, weights in zip(inputs, seen, importances, strict=True)
        ]
        places = [(k, b) for k in range(len(folds)) for b in range(self.n_subsamples)]
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(sampled_sets)(*parts[k], trees, seed_at(seed, layer, k, b, 1)) for k, b in places
        )
        best = [ranked(found[i : i + self.n_subsamples]) for i in range(0, len(found), self.n_subsamples)]
        return [
            chosen_regions(sets, Z, labels, self.n_interactions)
            for sets, (Z, labels, _) in zip(best, parts, strict=True)
        ]

    def _next(
        self, X: np.ndarray, inputs: list[np.ndarray], regions: list[Regions], beside: np.ndarray
    ) -> list[np.ndarray]:
        """Return the inputs of the next layer for each fold."""
        new = (one.represent(Z, self.confidence, self.label_repr) for one, Z in zip(regions, inputs, strict=True))
        return [np.hstack([X, features, beside]) for features in new]

    def _layers(self) -> list[Layer]:
        return [*([self._first] if self.add_probabilities else []), *self._last.values()]

    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        wanted = {name: int(self.n_layers_[self._measures.index(name)]) for name in measures}
        inputs, beside = [X] * len(next(iter(self._last.values())).forests), np.empty((len(X), 0), dtype=np.float32)
        if self.add_probabilities:
            beside = self._first.predict(inputs, self.n_jobs).mean(axis=0).astype(np.float32)
        scores = {}
        for at in range(1, max(wanted.values()) + 1):
            if at in wanted.values():
                scores[at] = self._last[at].predict(inputs, self.n_jobs).mean(axis=0)
            if at < max(wanted.values()):
                inputs = self._next(X, inputs, self.regions_[at - 1], beside)
        return {name: scores[at] for name, at in wanted.items()}
