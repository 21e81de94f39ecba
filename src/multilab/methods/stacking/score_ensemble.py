"""The second level of a stack: base scores of several classifiers, combined as is best on held-out rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.stacking._combinations import (
    CANDIDATES,
    Calibration,
    constant_labels,
    fit_combinations,
    higher_is_better,
    with_constants,
)
from multilab.methods.stacking.objective import classifier_rows
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import Metric, defined
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["ScoreEnsemble"]


class ScoreEnsemble(MultiLabelClassifier):
    """Ensemble on a matrix of base scores: calibrates them and chooses the best of several combinations.

    The scores of m classifiers for q labels are calibrated per classifier and label (Platt's sigmoid). The candidates
    for the combination are fitted to them; cross-validation over the rows, calibration included, chooses one.

    Parameters
    ----------
    candidates : sequence of str
        "mean" of the probabilities. "greedy": mean with weights by greedy selection with replacement, the same for all
        labels. "l1", "l21": the same mean, corrected by MLWSE with a penalty of its paper, at three strengths.
    metric : str or callable, default="log_loss"
        Metric of scores or probabilities, by which greedy selection adds classifiers and the combination is chosen: a
        name of `multilab.metrics`, a scorer, or a function of your own.
    n_rounds : int, default=25
        Steps of greedy selection.
    cv : int, default=5
        Number of folds of iterative stratification; fewer if there are fewer rows.
    random_state : int, optional
        Seed of the folds; 0 when None.

    Attributes
    ----------
    combination_ : str
        Name of the best candidate; a penalty has its strength behind it, as in "l21_0.8".
    validation_ : dict of str to float
        The metric of each candidate on held-out rows.
    member_validation_ : ndarray of shape (m,)
        The same of each calibrated classifier.
    out_of_fold_ : dict of str to ndarray of shape (n, q)
        Probabilities of the training rows by each candidate, fitted without the row.
    out_of_fold_scores_ : ndarray of shape (n, q)
        Those of the best candidate: what a decision threshold may be fitted to.
    folds_ : list of (train, test)
    greedy_weights_ : ndarray of shape (m,) or None
        Weights by greedy selection; None without this candidate.
    used_ : ndarray of shape (m,), bool
        Whether the best candidate depends on a classifier.

    Notes
    -----
    X must hold out-of-fold scores in ``fit``, classifier by classifier; see `PortfolioStack`, which makes them. A row
    is validated by calibrations and weights fitted to other rows. The base classifiers behind the scores of those rows
    have seen it: validation without any trace of the row would need cv^2 fits per classifier.

    Log-odds are taken of scores in [0, 1], moved into [.001, .999]; other scores are calibrated as they are. Weighted
    sums of probabilities are recalibrated per label, so that all candidates give probabilities. A label that no or
    every training row has keeps the probability 0 or 1.

    The paper's MLWSE shrinks all weights to 0, and with its small penalties it fits hundreds of rows by nearly as many
    weights. Here Y minus the weighted mean of greedy selection is its target, so that weights are shrunk to that mean,
    and its penalty is .8, .5 or .2 of the least one that leaves the mean as it is.

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes. Ensemble selection from libraries of models. ICML 2004,
    doi:10.1145/1015330.1015432. Section 2.2 (with replacement); its bagging is left out.
    J. Platt. Probabilistic outputs for support vector machines. Advances in large margin classifiers, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods import MLkNN, RFPCT, ScoreEnsemble
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> X, y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=3, random_state=0)
    >>> members = MLkNN(k=5), RFPCT(n_estimators=10, random_state=0)
    >>> S = np.hstack([cross_val_predict(member, X, y, cv=3, method="predict_proba") for member in members])
    >>> model = ScoreEnsemble(candidates=["mean", "greedy"], cv=3).fit(S, y)
    >>> sorted(model.validation_)
    ['greedy', 'mean']
    >>> model.predict_proba(S).shape
    (90, 3)
    """

    _accepts_sparse = False
    _scores_of_labels = True

    def __init__(
        self,
        candidates: Sequence[str] = CANDIDATES,
        metric: MetricLike = "log_loss",
        n_rounds: int = 25,
        cv: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.metric = metric
        self.n_rounds = n_rounds
        self.cv = cv
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        metric = self._check_arguments()
        scores = self._by_classifier(X)
        self._constant = constant_labels(Y)
        self._calibration = Calibration.fit(scores, Y)
        self._combinations = self._fit_combinations(self._calibration(scores), Y, metric)
        self._validate(scores, Y, metric)
        # a metric that is not defined for these labels is the worst for all: then the first candidate
        self.combination_ = max(self._combinations, key=lambda name: self._values[name])
        self.out_of_fold_scores_ = self.out_of_fold_[self.combination_]
        self.used_ = self._combinations[self.combination_].used
        self.greedy_weights_ = None
        if "greedy" in self._combinations:
            self.greedy_weights_ = self._combinations["greedy"].weights[:, 0, 0]

    def candidate_scores(self, X: Any) -> dict[str, np.ndarray]:
        """Return the probabilities of every candidate.

        Parameters
        ----------
        X : array-like of shape (n, m q)

        Returns
        -------
        dict of str to ndarray of shape (n, q)
        """
        L = self._calibration(self._by_classifier(self._validate_predict(X)))
        combined = {name: combination(L) for name, combination in self._combinations.items()}
        return {name: with_constants(P, self._constant) for name, P in combined.items()}

    def _check_arguments(self) -> Metric:
        unknown = [name for name in self.candidates if name not in CANDIDATES]
        if unknown or not len(self.candidates) or len(set(self.candidates)) < len(self.candidates):
            raise MethodError(f"candidates={list(self.candidates)!r}: give different ones of {', '.join(CANDIDATES)}")
        metric = defined(self.metric)
        if metric.needs == "decisions":
            raise MethodError(f"metric={self.metric!r} is one of decisions; give one of scores, as 'ranking_loss'")
        if self.n_rounds < 1:
            raise MethodError(f"n_rounds={self.n_rounds!r} must be 1 or more")
        if self.cv < 2:
            raise MethodError(f"cv={self.cv!r} must be 2 or more")
        return metric

    def _fit_combinations(self, L: np.ndarray, Y: np.ndarray, metric: Metric) -> dict[str, Any]:
        return fit_combinations(list(self.candidates), L, Y, metric, self.n_rounds)

    def _validate(self, scores: np.ndarray, Y: np.ndarray, metric: Metric) -> None:
        """Score the rows by calibrations and combinations that are fitted without them."""
        splitter = IterativeStratifiedKFold(min(self.cv, len(Y)), random_state=self.random_state or 0)
        self.folds_ = list(splitter.split(np.zeros((len(Y), 1)), Y))
        held_out = {name: np.empty(Y.shape) for name in self._combinations}
        members = np.empty(scores.shape)
        for train, test in self.folds_:
            calibration = Calibration.fit(scores[:, train], Y[train], self._calibration)
            unseen = calibration(scores[:, test])
            members[:, test] = expit(unseen)
            fitted = self._fit_combinations(calibration(scores[:, train]), Y[train], metric)
            for name, combination in fitted.items():
                held_out[name][test] = combination(unseen)
        held_out = {name: with_constants(P, self._constant) for name, P in held_out.items()}
        self.out_of_fold_ = held_out
        self._values = {name: higher_is_better(metric, Y, P) for name, P in held_out.items()}
        self.validation_ = {name: metric.function(Y, P) for name, P in held_out.items()}
        self.member_validation_ = np.array([metric.function(Y, one) for one in members])

    def _by_classifier(self, X: np.ndarray) -> np.ndarray:
        """Return X of shape (n, m q) as an array of shape (m, n, q)."""
        blocks = classifier_rows(X.shape[1], self.n_labels_)
        return np.stack([np.asarray(X[:, block], dtype=np.float64) for block in blocks])

    def _scores(self, X: Any) -> np.ndarray:
        P = self._combinations[self.combination_](self._calibration(self._by_classifier(X)))
        return with_constants(P, self._constant)
