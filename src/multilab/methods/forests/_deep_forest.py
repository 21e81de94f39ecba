"""Common parts of the deep forests: layers, measures that control their growth, stopping rule and predictions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from scipy.special import logsumexp
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.forests.compact_forest import CompactForest, Kind, grow_forest, seed_at, single_precision

BY_LABEL = frozenset({"hamming_loss", "macro_auc"})
"""Measures whose units are labels."""


def losses(measure: str, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the loss of each unit, shape (q,) or (n,); NaN where the measure is not defined.

    The rules are the default conventions of `multilab.metrics`. A tie is an error, except for macro AUC (half an error)
    and one-error (no error if one of the tied best labels is relevant). For average precision and AUC the loss is
    1 - value.

    Parameters
    ----------
    measure : str
        One of `MEASURES`.
    scores : ndarray of shape (n, q)
    Y : ndarray of shape (n, q), 0/1
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _LOSSES[measure](scores, Y.astype(bool))


def log_confidences(measure: str, scores: np.ndarray) -> np.ndarray:
    """Return the logarithm of the confidence of each unit, shape (q,) or (n,): Table 1 of the MLDF paper.

    The confidence of a row is, with its probabilities p sorted in descending order and independent labels:

    - ranking loss and average precision: the probability that the relevant labels are a prefix of the ranking,
      sum_{j=0..q} prod_{k<=j} p_(k) prod_{k>j} (1 - p_(k));
    - coverage: 1 - E[largest rank of a relevant label] / q, where
      E = sum_{j=1..q} j p_(j) prod_{k>j} (1 - p_(k));
    - one-error: the largest p.

    The confidence of a label is, for macro AUC, the first formula over the n rows and, for Hamming loss, the mean of
    max(p, 1 - p) over the rows.

    Parameters
    ----------
    measure : str
        One of `MEASURES`.
    scores : ndarray of shape (n, q)
        Probabilities of the labels.

    Notes
    -----
    Logarithms because a product over thousands of rows underflows to 0 in double precision.
    """
    with np.errstate(divide="ignore"):
        return _CONFIDENCES[measure](scores)


def _hamming(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the share of wrong decisions of each label, shape (q,)."""
    return np.mean((scores >= 0.5) != Y, axis=0)


def _one_error(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 for the rows whose best label is not relevant, shape (n,); NaN without a relevant label."""
    right = np.where(Y, scores, -np.inf).max(axis=1) == scores.max(axis=1)
    return np.where(Y.any(axis=1), ~right, np.nan)


def _coverage(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return (worst rank of a relevant label - 1) / q, shape (n,); NaN without a relevant label."""
    last = np.where(Y, _ranks(scores), 0).max(axis=1)
    return np.where(Y.any(axis=1), (last - 1) / Y.shape[1], np.nan)


def _ranking_loss(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the share of wrongly ordered pairs of labels, shape (n,); NaN without or with all labels."""
    relevant = Y.sum(axis=1)
    # rank among all less rank among the relevant ones: the irrelevant labels at or before a relevant one
    before = np.where(Y, _ranks(scores) - _ranks_among(scores, Y), 0).sum(axis=1)
    return before / (relevant * (Y.shape[1] - relevant))  # 0 / 0 is NaN


def _average_precision(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 - average precision, shape (n,); NaN without a relevant label."""
    return 1.0 - np.where(Y, _ranks_among(scores, Y) / _ranks(scores), 0).sum(axis=1) / Y.sum(axis=1)


def _macro_auc(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return 1 - AUC of each label, shape (q,), by the rank sum of the positive rows; NaN with one class."""
    positive = Y.sum(axis=0)
    won = np.where(Y, rankdata(scores, axis=0), 0).sum(axis=0) - positive * (positive + 1) / 2
    return 1.0 - won / (positive * (len(Y) - positive))


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each label in its row, shape (n, q): 1 for the largest score, the worst rank for ties."""
    return rankdata(-scores, method="max", axis=1)


def _ranks_among(scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the rank of each relevant label among those of its row, shape (n, q); arbitrary for the others."""
    return rankdata(np.where(Y, -scores, np.inf), method="max", axis=1)


def _sure_of_prefix(scores: np.ndarray) -> np.ndarray:
    """Return the log probability that the relevant labels are a prefix of the ranking, shape (n,)."""
    relevant, others = _log_products(scores)
    return logsumexp(relevant + others, axis=1)


def _sure_of_coverage(scores: np.ndarray) -> np.ndarray:
    """Return log(1 - E[largest rank of a relevant label] / q), shape (n,)."""
    q = scores.shape[1]
    ordered = -np.sort(-scores, axis=1)
    _, others = _log_products(scores)
    expected = (np.arange(1, q + 1) * ordered * np.exp(others[:, 1:])).sum(axis=1)
    return np.log(np.maximum(1.0 - expected / q, 0.0))


def _log_products(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log prod_{k <= j} p_(k) and log prod_{k > j} (1 - p_(k)) for j = 0..q, each of shape (n, q + 1).

    The probabilities p are sorted in descending order in each row.
    """
    ordered = -np.sort(-scores, axis=1)
    zero = np.zeros((len(scores), 1))
    relevant = np.hstack([zero, np.cumsum(np.log(ordered), axis=1)])
    others = np.hstack([np.cumsum(np.log1p(-ordered)[:, ::-1], axis=1)[:, ::-1], zero])
    return relevant, others


_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "hamming_loss": _hamming,
    "one_error": _one_error,
    "coverage": _coverage,
    "ranking_loss": _ranking_loss,
    "average_precision": _average_precision,
    "macro_auc": _macro_auc,
}
_CONFIDENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hamming_loss": lambda p: np.log(np.maximum(p, 1.0 - p).mean(axis=0)),
    "one_error": lambda p: np.log(p.max(axis=1)),
    "coverage": _sure_of_coverage,
    "ranking_loss": _sure_of_prefix,
    "average_precision": _sure_of_prefix,
    "macro_auc": lambda p: _sure_of_prefix(p.T),
}
MEASURES = tuple(_LOSSES)
"""Names of the measures, as in `multilab.metrics`."""


@dataclass(frozen=True)
class Settings:
    """Settings of the forests, the same in every layer.

    Attributes
    ----------
    n_forests : int
        Forests per layer: the first ``ceil(n_forests / 2)`` are random forests, the others extremely randomised.
    trees : dict
        Arguments of the scikit-learn forests.
    seed : int
        Root seed of the cascade.
    n_jobs : int or None
        Number of forests grown in parallel.
    """

    n_forests: int
    trees: dict[str, Any]
    seed: int
    n_jobs: int | None

    def kind(self, forest: int) -> Kind:
        """Return the kind of the forest with this number, counted from 0."""
        return "random" if 2 * forest < self.n_forests else "extra"


@dataclass(frozen=True, eq=False)
class Layer:
    """Forests of a layer: ``forests[k][f]`` is forest f fitted without the rows of fold k."""

    forests: tuple[tuple[CompactForest, ...], ...]

    def predict(self, inputs: Sequence[np.ndarray], n_jobs: int | None) -> np.ndarray:
        """Return the scores of each forest, averaged over the folds, shape (n_forests, n, q).

        Parameters
        ----------
        inputs : sequence of ndarray of shape (n, d_k), float32
            Features of the rows for the forests of each fold.
        n_jobs : int or None
            Number of forests that predict in parallel; does not change the result.
        """
        tasks = ((forest, X) for row, X in zip(self.forests, inputs, strict=True) for forest in row)
        results = parallel(n_jobs, prefer="threads")(delayed(forest.predict)(X) for forest, X in tasks)
        K = len(self.forests)
        by_fold = np.stack(results).reshape(K, -1, *results[0].shape)  # (K, n_forests, n, q)
        return by_fold.sum(axis=0) / K


def held_out(n: int, n_folds: int, seed: int) -> list[np.ndarray]:
    """Return the row numbers of each of ``n_folds`` shuffled folds, ascending within a fold."""
    order = np.random.default_rng(seed_at(seed)).permutation(n)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def grow_layer(
    inputs: Sequence[np.ndarray], Y: np.ndarray, folds: Sequence[np.ndarray], settings: Settings, layer: int
) -> tuple[Layer, np.ndarray, np.ndarray]:
    """Fit the forests of a layer.

    Parameters
    ----------
    inputs : sequence of ndarray of shape (n, d_k), float32
        Features of all rows for the forests of each fold.
    Y : ndarray of shape (n, q), 0/1
    folds : sequence of ndarray of int
        Held-out rows of each fold.
    settings : Settings
    layer : int
        Number of the layer, which enters the seeds.

    Returns
    -------
    layer : Layer
        Its forests are memory-mapped.
    scores : ndarray of shape (n_forests, n, q)
        Out-of-fold scores.
    importances : ndarray of shape (n_folds, n_forests, max d_k)
        Importances of the features; 0 for the columns that a fold does not have.
    """

    def grow(k: int, forest: int) -> tuple[CompactForest, np.ndarray, np.ndarray]:
        seed = seed_at(settings.seed, layer, k, forest)
        # trees grow with one job: the tasks below already use all
        grown, importances = grow_forest(settings.kind(forest), seen[k][0], seen[k][1], seed, **settings.trees)
        return grown.on_disk(), grown.predict(inputs[k][folds[k]]), importances

    seen = []
    for X, out in zip(inputs, folds, strict=True):
        rest = np.delete(np.arange(len(Y)), out)
        seen.append((X[rest], Y[rest]))
    tasks = [(k, forest) for k in range(len(folds)) for forest in range(settings.n_forests)]
    results = parallel(settings.n_jobs, prefer="threads")(delayed(grow)(*task) for task in tasks)
    scores = np.empty((settings.n_forests, *Y.shape))
    importances = np.zeros((len(folds), settings.n_forests, max(X.shape[1] for X in inputs)))
    for (k, forest), (_, out_of_fold, weights) in zip(tasks, results, strict=True):
        scores[forest, folds[k]] = out_of_fold
        importances[k, forest, : len(weights)] = weights
    grown = [one for one, _, _ in results]
    rows = [tuple(grown[i : i + settings.n_forests]) for i in range(0, len(grown), settings.n_forests)]
    return Layer(tuple(rows)), scores, importances


_IMPROVEMENT = 1e-4  # a smaller fall of the loss does not count as an improvement


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
    """Base class of cascades of forests whose growth is stopped by one of six measures, or by each of several.

    A subclass implements ``fit``, ``_layers`` and ``_by_measure``; it documents the parameters.
    """

    _makes_dense: ClassVar[bool] = True

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
