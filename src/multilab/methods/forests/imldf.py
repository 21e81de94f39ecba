"""iMLDF: deep forest on feature interactions that does not store the forests of its inner layers."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from joblib import delayed

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError
from multilab.methods.forests._deep_forest import Layer, MeasureAwareForest, grow_layer, held_out
from multilab.methods.forests.compact_forest import seed_at
from multilab.methods.forests.interactions import (
    Confidence,
    Found,
    LabelRepresentation,
    LabelShares,
    LayerPaths,
    Paths,
    Regions,
    ThresholdRule,
    Trees,
    auxiliary_sets,
    chosen_regions,
    layer_sets,
    ranked,
)

__all__ = ["IMLDF"]


class IMLDF(MeasureAwareForest):
    """Multi-label deep forest on interaction representations.

    Random interaction trees extract the conditions that recur together on the decision paths of a layer. Each such
    interaction is a region. The next layer has the original features and, per region, a confidence score of the row
    and the label distribution of the training rows inside. Prediction needs the interactions of all layers but only
    the forests of the last.

    Parameters
    ----------
    measure : str or sequence of str, default="ranking_loss"
        hamming_loss, one_error, coverage, ranking_loss, average_precision or macro_auc: the measure of the stopping
        rule; nothing else depends on it. With several, the layers are grown once and the best layer by each is kept.
        ``predict`` uses the first measure, ``predict_measures`` all.
    n_layers : int, default=10
        Maximum number of layers.
    n_forests : int, default=4
        Forests per layer: half of them as in `RFPCT` (one more if the number is odd), the others as in `ERFPCT`.
    n_trees : int, default=100
        Trees per forest.
    n_folds : int, default=3
        Number of folds. One cascade is grown without each fold; a new row gets the mean of their scores.
    max_depth : int, optional
        Maximum depth of the trees; unlimited when None.
    n_interactions : int, default=30
        Maximum number of regions per layer and fold.
    paths : {"layer", "auxiliary"}, default="layer"
        Whose decision paths the interactions are extracted from: those of the layer's own forests (Algorithm 1), or
        those of small forests grown for the purpose on columns drawn by their importance in the layer (hiDF, the
        single-label ancestor). See `layer_sets` and `auxiliary_sets` in `multilab.methods.forests.interactions`.
    threshold_rule : {"relax", "tight", "median"}, default="relax"
        How the thresholds of the same signed feature are combined along a chain of an interaction tree: widest,
        narrowest or median region.
    confidence : {"corner", "boundary"} or None, default="corner"
        f^feature, the confidence score of a row in a region: the sum of its distances to all thresholds (the formula
        of the paper), or the distance to the nearest threshold. None leaves this representation out.
    label_repr : {"aggregated", "per_interaction"} or None, default="aggregated"
        f^label, the label shares of the regions: their mean over the regions that contain the row (q features), or
        those of each region (the formula of the paper; with the shares of all rows, a column has one non-zero value
        only, so a region yields q copies of its indicator). None leaves this representation out.
    label_shares : {"out_of_fold", "in_sample"}, default="out_of_fold"
        Which rows the label shares that a training row gets are of: those of the ``n_folds - 1`` parts of its cascade's
        training rows that it is not in, or all of them, itself included. A new row gets the shares of all.
    add_probabilities : bool, default=False
        Whether the inputs of later layers include the label probabilities of the first layer, whose forests are then
        stored, too. The paper has no such features; the code of hiDF, its single-label ancestor, has.
    n_subsamples : int, default=10
        Number of samples of the training rows from which interactions are extracted: bootstrap samples, or halves
        without replacement where ``paths`` is "auxiliary". The stability of an interaction is the share of the samples
        that contain it.
    n_interaction_trees : int, default=20
        Interaction trees per sample.
    depth : int, default=5
        Number of levels of an interaction tree; each node has two children.
    early_stopping : bool, default=True
        If False, all ``n_layers`` layers are grown and the last one is used.
    patience : int, default=3
        Growth stops after this many layers without an improvement of more than 1e-4; layers after the best are
        discarded.
    n_jobs : int, optional
        Number of forests or samples computed in parallel; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds, the trees and the subsamples.

    Attributes
    ----------
    regions_ : list of list of Regions
        Regions of each layer but the last, and of each fold.
    n_layers_ : ndarray of shape (measures,)
        Number of layers kept for each measure.
    layer_losses_ : ndarray of shape (measures, layers)
        Out-of-fold loss after each layer (1 - value for average precision and AUC), NaN after the stop.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    With h_t the forests of layer t of T and R the extraction of interactions (section 3.2 of the paper, whose formulas
    have no numbers), f_t(x) = R(h_t)([x, f_{t-1}(x)]) and the prediction is h_T([x, f_{T-1}(x)]). So the conditions of
    a region of layer t may refer to columns of f_{t-1}.

    Each fold has its own interactions, extracted without its rows, so the out-of-fold losses of the stopping rule do
    not depend on the labels of the rows they are computed on.

    Deviations from the paper, and decisions where it is silent or contradicts itself:

    - Algorithm 1 (lines 8 to 12) takes the larger of two ``>=`` thresholds, Fig. 1 the smaller. "relax" follows the
      figure, "tight" the algorithm.
    - Nodes of all levels count (lines 15 and 16: of the last level only), because the chains of unpruned trees share
      hardly a sign down to the last level. Even so few sets occur in two samples.
    - Line 20 leaves the selection open: the ``n_interactions`` most stable sets that contain 1 % to 95 % of the
      training rows (at least 5) are taken. Thresholds of the same set in different chains are combined by the median.
    - Distances are in units of the ranges of the features; the paper does not scale them.
    - The denominator of f^label, printed equal to its numerator, is the number of rows in the region. The paper counts
      the rows that the next layer is trained on; here these get shares of other rows. Leaving out only the row itself
      would disclose its labels.
    - Section 4.3 speaks of tens of interactions per layer: 30. The paper gives neither the stopping rule nor the number
      of folds. Section 4.2 has four RF-PCT per layer, section 3.2 and Fig. 2 two kinds of forests; half of each kind is
      grown.

    References
    ----------
    S.-H. Lyu, Y.-H. Chen, Y. Jiang. Interaction-representation-based deep forest method in multi-label learning.
    Journal of Software 35(4), 2024, 1934-1944. Algorithm 1, sections 3.1 and 3.2.
    R. D. Shah, N. Meinshausen. Random intersection trees. JMLR 15, 2014.

    Examples
    --------
    >>> from multilab.methods import IMLDF
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = IMLDF(n_layers=2, n_forests=2, n_trees=3, random_state=0).fit(X, y)
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
        n_interactions: int = 30,
        paths: Paths = "layer",
        threshold_rule: ThresholdRule = "relax",
        confidence: Confidence | None = "corner",
        label_repr: LabelRepresentation | None = "aggregated",
        label_shares: LabelShares = "out_of_fold",
        add_probabilities: bool = False,
        n_subsamples: int = 10,
        n_interaction_trees: int = 20,
        depth: int = 5,
        early_stopping: bool = True,
        patience: int = 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            measure, n_layers, n_forests, n_trees, n_folds, max_depth, early_stopping, patience, n_jobs, random_state
        )
        self.n_interactions = n_interactions
        self.paths = paths
        self.threshold_rule = threshold_rule
        self.confidence = confidence
        self.label_repr = label_repr
        self.label_shares = label_shares
        self.add_probabilities = add_probabilities
        self.n_subsamples = n_subsamples
        self.n_interaction_trees = n_interaction_trees
        self.depth = depth

    def _fit(self, X: Any, Y: Any) -> None:
        self._check_arguments()
        X, folds, settings = self._begin(X, Y)
        growths, layers = self._growths(), dict[int, Layer]()  # layers that are best now, by number
        self.regions_ = list[list[Regions]]()
        inputs, extra = [X] * len(folds), np.empty((len(X), 0), dtype=np.float32)  # [x, f_0(x)] = x
        while True:
            layer, scores, importances = grow_layer(inputs, Y, folds, settings, len(self.regions_))
            if self.add_probabilities and not self.regions_:
                extra, self._first = scores.mean(axis=0).astype(np.float32), layer
            for growth in growths:
                growth.add(scores.mean(axis=0), Y)  # (n, q), mean over the forests
            # forests of other layers are never used again: dropping them here bounds memory
            layers[len(self.regions_) + 1] = layer
            layers = {at: kept for at, kept in layers.items() if at in {growth.best for growth in growths}}
            if len(self.regions_) + 1 == self.n_layers or all(growth.over for growth in growths):
                break
            self.regions_.append(self._mine(inputs, Y, folds, layer, importances.mean(axis=1), settings.seed))
            inputs = self._next_in_training(X, inputs, Y, folds, extra, settings.seed)
        self._finish(growths)
        del self.regions_[max(layers) - 1 :]  # regions of the last kept layer feed none that is kept
        self._last = layers

    def _check_arguments(self) -> None:
        """Raise a `MethodError` if an argument of the interactions is out of range."""
        for name in ("n_interactions", "n_subsamples", "n_interaction_trees", "depth"):
            if getattr(self, name) < 1:
                raise MethodError(f"{name}={getattr(self, name)!r} must be 1 or more")
        self._check_choices(
            paths=get_args(Paths),
            threshold_rule=get_args(ThresholdRule),
            confidence=(*get_args(Confidence), None),
            label_repr=(*get_args(LabelRepresentation), None),
            label_shares=get_args(LabelShares),
        )

    def _mine(
        self,
        inputs: list[np.ndarray],
        Y: np.ndarray,
        folds: list[np.ndarray],
        layer: Layer,
        importances: np.ndarray,
        seed: int,
    ) -> list[Regions]:
        """Return the regions of the current layer for each fold, extracted from the other rows.

        Parameters
        ----------
        inputs : list of ndarray of shape (n, d_k), float32
            Features of all rows for each fold.
        Y : ndarray of shape (n, q), 0/1
        folds : list of ndarray of int
            Held-out rows of each fold.
        layer : Layer
            Its forests.
        importances : ndarray of shape (n_folds, max d_k)
            Importances of the features in each fold, averaged over the forests.
        seed : int
            Root seed of the cascade.
        """
        trees = Trees(self.n_interaction_trees, self.depth, self.threshold_rule)
        number = len(self.regions_)
        seen = [np.delete(np.arange(len(Y)), out) for out in folds]
        parts = [(Z[rows], Y[rows]) for Z, rows in zip(inputs, seen, strict=True)]
        paths = [LayerPaths.of(forests) for forests in layer.forests] if self.paths == "layer" else []

        def sets(k: int, b: int) -> list[Found]:
            (Z, labels), own = parts[k], seed_at(seed, number, k, b, 1)
            if self.paths == "layer":
                return layer_sets(paths[k], Z, trees, own)
            return auxiliary_sets(Z, labels, importances[k, : Z.shape[1]], trees, own)

        tasks = [(k, b) for k in range(len(folds)) for b in range(self.n_subsamples)]
        drawn = parallel(self.n_jobs, prefer="threads")(delayed(sets)(*task) for task in tasks)
        chosen = []
        for k, part in enumerate(parts):
            samples = drawn[k * self.n_subsamples : (k + 1) * self.n_subsamples]
            ties = np.random.default_rng(seed_at(seed, number, k, 0, 3)) if self.paths == "layer" else None
            chosen.append(chosen_regions(ranked(samples, ties), *part, self.n_interactions))
        return chosen

    def _next_in_training(
        self,
        X: np.ndarray,
        inputs: list[np.ndarray],
        Y: np.ndarray,
        folds: list[np.ndarray],
        extra: np.ndarray,
        seed: int,
    ) -> list[np.ndarray]:
        """Return [x, f_t(x)] of the training rows for each fold; arguments as of `_mine` and `_next`.

        The rows that the next layer is trained on have label shares of rows that are in another part.
        """
        regions = self.regions_[-1]
        following = self._next(X, inputs, regions, extra)
        if self.label_repr is None or self.label_shares == "in_sample":
            return following
        for k, (one, Z, out) in enumerate(zip(regions, inputs, folds, strict=True)):
            rows = np.delete(np.arange(len(Y)), out)
            for part in held_out(len(rows), min(self.n_folds, len(rows)), seed_at(seed, len(self.regions_), k, 0, 2)):
                others, own = np.delete(rows, part), rows[part]
                if len(others):
                    shared = one.with_shares_of(Z[others], Y[others])
                    following[k][own] = self._next(X[own], [Z[own]], [shared], extra[own])[0]
        return following

    def _next(
        self, X: np.ndarray, inputs: list[np.ndarray], regions: list[Regions], extra: np.ndarray
    ) -> list[np.ndarray]:
        """Return [x, f_t(x)] for each fold, with ``extra`` of shape (n, q) or (n, 0) appended."""
        new = (one.represent(Z, self.confidence, self.label_repr) for one, Z in zip(regions, inputs, strict=True))
        return [np.hstack([X, features, extra]) for features in new]

    def _layers(self) -> list[Layer]:
        """Return the stored layers: the first if its probabilities are inputs, then the best by each measure."""
        return [*([self._first] if self.add_probabilities else []), *self._last.values()]

    def _by_measure(self, X: np.ndarray, measures: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the scores by the cascade of each measure; all share one iteration over the layers."""
        wanted = {name: int(self.n_layers_[self._measures.index(name)]) for name in measures}
        inputs, extra = [X] * len(next(iter(self._last.values())).forests), np.empty((len(X), 0), dtype=np.float32)
        if self.add_probabilities:
            extra = self._first.predict(inputs, self.n_jobs).mean(axis=0).astype(np.float32)
        scores = {}
        for at in range(1, max(wanted.values()) + 1):
            if at in wanted.values():
                scores[at] = self._last[at].predict(inputs, self.n_jobs).mean(axis=0)
            if at < max(wanted.values()):
                inputs = self._next(X, inputs, self.regions_[at - 1], extra)
        return {name: scores[at] for name, at in wanted.items()}
