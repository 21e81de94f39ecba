"""A portfolio of classifiers, combined in the way that held-out scores prefer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.stacking._out_of_fold import fit_seeded, fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.transformation._platt import fit_sigmoid
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.metrics.registry import defined
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["PortfolioStack"]

Value = Callable[[np.ndarray, np.ndarray], float]  # of true labels and scores; higher is better
Scores = np.ndarray  # of shape (m, n, q): classifier, row, label
Combiner = Callable[[Scores, np.ndarray], np.ndarray]  # weights of shape (m, q, q)


class PortfolioStack(MultiLabelClassifier):
    """Ensemble of a portfolio: calibrated out-of-fold scores, combined greedily or by MLWSE.

    Each classifier scores the training rows out of fold, and its scores are calibrated per label (Platt's sigmoid). The
    candidates for the combination are greedy selection, one weight per classifier (Caruana et al. 2004), and each MLWSE
    of ``final_estimators``. Cross-validation over the same folds, calibration included, chooses between them.

    Parameters
    ----------
    estimators : list of (name, classifier), optional
        The portfolio: multi-label classifiers of any library. Binary relevance on logistic regression, extremely
        randomised trees and ML-kNN when None.
    final_estimators : list of (name, MLWSE), optional
        Candidates in addition to greedy selection; L1 and L21 with the penalties of the paper when None, an empty list
        for greedy selection alone.
    metric : str, default="macro_average_precision"
        Metric of `multilab.metrics` on scores or probabilities, by which greedy selection adds classifiers and the
        combination is chosen.
    n_rounds : int, default=25
        Steps of greedy selection; each adds one classifier, with replacement, to the mean.
    cv : int, default=5
        Number of folds of iterative stratification.
    n_jobs : int, optional
        Fits in parallel; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds and the classifiers; with None the classifiers keep their own, and the folds have seed 0.

    Attributes
    ----------
    estimators_ : dict of str to classifier
        The classifiers that the combination uses, fitted on all rows.
    combination_ : str
        ``"greedy"`` or the name of the final estimator.
    weights_ : ndarray of shape (m, q, q)
        Weight of the calibrated score of each classifier for the first label in the score of the second; a multiple of
        the identity per classifier in greedy selection.
    validation_ : dict of str to float
        The metric of each candidate and of each single classifier (calibrated) on held-out scores.
    out_of_fold_scores_ : ndarray of shape (n, q)
        Scores of the training rows by the chosen combination, each row by models that were fitted without it: what a
        decision threshold may be fitted to.

    Notes
    -----
    A row is validated by calibrations and weights that are fitted to the out-of-fold scores of other rows, and its own
    scores come from models that have not seen it. The models behind the others' scores have: validation without any
    trace of the row would need cv^2 fits per classifier.

    MLWSE's scores are clipped to [0, 1].

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes. Ensemble selection from libraries of models. ICML 2004,
    doi:10.1145/1015330.1015432. Section 2.2 (with replacement); its bagging is left out.
    J. Platt. Probabilistic outputs for support vector machines. Advances in large margin classifiers, 1999.

    Examples
    --------
    >>> from multilab.methods import MLkNN, PortfolioStack, RFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=3, random_state=0)
    >>> portfolio = [("mlknn", MLkNN(k=5)), ("forest", RFPCT(n_estimators=10))]
    >>> model = PortfolioStack(portfolio, cv=3, random_state=0).fit(X, y)
    >>> sorted(model.validation_)
    ['forest', 'greedy', 'l1', 'l21', 'mlknn']
    >>> model.predict_proba(X).shape
    (90, 3)
    """

    def __init__(
        self,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        final_estimators: Sequence[tuple[str, MLWSE]] | None = None,
        metric: str = "macro_average_precision",
        n_rounds: int = 25,
        cv: int = 5,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.final_estimators = final_estimators
        self.metric = metric
        self.n_rounds = n_rounds
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and y of shape (n, q).

        Raises
        ------
        MethodError
            If the portfolio is empty, a name is used twice, there are fewer rows than folds, or an argument is out of
            range.
        MetricError
            If the metric is unknown.
        """
        X, Y = self._validate_fit(X, y)
        portfolio, combiners = self._portfolio(), self._combiners()
        if not 2 <= self.cv <= X.shape[0]:
            raise MethodError(f"cv={self.cv!r} folds cannot be made of n_samples = {X.shape[0]}")
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = list(IterativeStratifiedKFold(self.cv, random_state=seed or 0).split(X, Y))
        scores = np.stack([out_of_fold_scores(one, X, Y, folds, seed, self.n_jobs) for one in portfolio.values()])
        self._choose(list(portfolio), scores, Y, folds, combiners)
        self._calibration = _Calibration(scores, Y)
        self.weights_ = combiners[self.combination_](self._calibration(scores), Y)
        self._names = list(portfolio)
        used = [name for name, weights in zip(portfolio, self.weights_, strict=True) if weights.any()]
        last = fold_seed(seed, len(folds))
        fitted = Parallel(n_jobs=self.n_jobs)(delayed(fit_seeded)(portfolio[name], X, Y, last) for name in used)
        self.estimators_ = dict(zip(used, fitted, strict=True))
        return self

    def _choose(
        self,
        names: list[str],
        scores: Scores,
        Y: np.ndarray,
        folds: list[tuple[np.ndarray, np.ndarray]],
        combiners: dict[str, Combiner],
    ) -> None:
        """Validate classifiers and combinations on held-out rows, and keep the best combination."""
        held_out = {name: np.empty(Y.shape) for name in (*names, *combiners)}
        for train, test in folds:
            calibration = _Calibration(scores[:, train], Y[train])
            seen, unseen = calibration(scores[:, train]), calibration(scores[:, test])
            for at, name in enumerate(names):
                held_out[name][test] = unseen[at]
            for name, combine in combiners.items():
                held_out[name][test] = _combined(unseen, combine(seen, Y[train]))
        metric = defined(self.metric)
        self.validation_ = {name: metric.function(Y, values) for name, values in held_out.items()}
        # a metric that is not defined for these labels is NaN for all: then greedy selection, the first one
        self.combination_ = max(combiners, key=lambda name: _higher(self.validation_[name], metric.direction))
        self.out_of_fold_scores_ = held_out[self.combination_]

    def _portfolio(self) -> dict[str, BaseEstimator]:
        if self.estimators is None:
            return {
                "br": BinaryRelevance(LogisticRegression(max_iter=1000), calibration="none"),
                "extra_trees": ExtraTreesClassifier(),
                "mlknn": MLkNN(),
            }
        return _by_name("estimators", self.estimators)

    def _combiners(self) -> dict[str, Combiner]:
        """Return what fits the weights of calibrated scores, by name."""
        metric = defined(self.metric)
        if metric.needs == "decisions":
            raise MethodError(f"metric={self.metric!r} is one of decisions; give one of scores, as 'ranking_loss'")
        if self.n_rounds < 1:
            raise MethodError(f"n_rounds={self.n_rounds!r} must be 1 or more")

        def value(Y: np.ndarray, scores: np.ndarray) -> float:
            return _higher(metric.function(Y, scores), metric.direction)

        final = self.final_estimators
        if final is None:
            final = [("l1", MLWSE(penalty="l1")), ("l21", MLWSE(penalty="l21", alpha=0.05))]
        named = _by_name("final_estimators", final) if len(final) else {}
        for name, estimator in named.items():
            if not isinstance(estimator, MLWSE) or name == "greedy":
                raise MethodError(f"final_estimators must be MLWSE, none named 'greedy'; got {name!r}: {estimator!r}")
        greedy = partial(_greedy_weights, value=value, n_rounds=self.n_rounds)
        return {"greedy": greedy, **{name: partial(_mlwse_weights, estimator) for name, estimator in named.items()}}

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.zeros((len(self._names), X.shape[0], self.n_labels_))
        for at, name in enumerate(self._names):
            if name in self.estimators_:
                scores[at] = score_matrix(self.estimators_[name], X, self.n_labels_)
        return _combined(self._calibration(scores), self.weights_)


class _Calibration:
    """A sigmoid per classifier and label."""

    def __init__(self, scores: Scores, Y: np.ndarray) -> None:
        fitted = [[fit_sigmoid(s, y) for s, y in zip(one.T, Y.T, strict=True)] for one in scores]
        self.slope = np.array([[sigmoid.slope for sigmoid in one] for one in fitted])[:, None]
        self.offset = np.array([[sigmoid.offset for sigmoid in one] for one in fitted])[:, None]

    def __call__(self, scores: Scores) -> Scores:
        return expit(self.slope * scores + self.offset)


def _greedy_weights(P: Scores, Y: np.ndarray, *, value: Value, n_rounds: int) -> np.ndarray:
    """Return the weights (m, q, q) of the mean to which the best classifier is added ``n_rounds`` times."""
    counts, total = np.zeros(len(P)), np.zeros(Y.shape)
    for _ in range(n_rounds):
        # a mean has the order of its sum, but probabilities must stay below 1
        best = int(np.argmax([value(Y, (total + one) / (counts.sum() + 1)) for one in P]))
        counts[best] += 1
        total += P[best]
    return (counts / n_rounds)[:, None, None] * np.eye(Y.shape[1])


def _mlwse_weights(estimator: MLWSE, P: Scores, Y: np.ndarray) -> np.ndarray:
    W = clone(estimator).fit(np.hstack(list(P)), Y).W_
    return W.reshape(len(P), Y.shape[1], Y.shape[1])


def _combined(P: Scores, weights: np.ndarray) -> np.ndarray:
    return np.clip(np.einsum("mnp,mpq->nq", P, weights, optimize=True), 0.0, 1.0)


def _higher(value: float, direction: str) -> float:
    """Return a value of which more is better; undefined ones are the worst."""
    return -np.inf if np.isnan(value) else value if direction == "max" else -value


def _by_name(argument: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if not named or len(named) < len(pairs):
        raise MethodError(f"{argument} needs at least one entry and different names, not {[name for name, _ in pairs]}")
    return named
