"""A portfolio of classifiers, combined in the way that is best on held-out scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.out_of_fold import fit_seeded, fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.stacking.score_ensemble import ScoreEnsemble
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["PortfolioStack"]


class PortfolioStack(MultiLabelClassifier):
    """Ensemble of a portfolio: a second-level classifier on the out-of-fold scores of the members.

    Parameters
    ----------
    estimators : list of (name, classifier), optional
        The portfolio: multi-label classifiers of any library. Binary relevance on logistic regression, extremely
        randomised trees and ML-kNN when None.
    final_estimator : classifier, optional
        Second level, fitted to the matrix (n, m q) of the scores of m classifiers for q labels. `ScoreEnsemble` when
        None; `multilab.decision.MetricStack` for a prediction per metric.
    cv : int, default=5
        Number of folds of iterative stratification.
    n_jobs : int, optional
        Fits in parallel; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds and the classifiers; with None the classifiers keep their own, and the folds have seed 0.

    Attributes
    ----------
    estimators_ : dict of str to classifier
        The classifiers that the second level uses, fitted on all rows.
    final_estimator_ : classifier
        The fitted second level.
    base_scores_ : ndarray of shape (n, m q)
        Out-of-fold scores of the portfolio.
    out_of_fold_scores_ : ndarray of shape (n, q)
        Scores of the training rows by the second level, each row by models that were fitted without it: what a
        decision threshold may be fitted to. Only where the second level has them.

    Examples
    --------
    >>> from multilab.methods import MLkNN, PortfolioStack, RFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=3, random_state=0)
    >>> portfolio = [("mlknn", MLkNN(k=5)), ("forest", RFPCT(n_estimators=10))]
    >>> model = PortfolioStack(portfolio, cv=3, random_state=0).fit(X, y)
    >>> sorted(model.estimators_)
    ['forest', 'mlknn']
    >>> model.predict_proba(X).shape
    (90, 3)
    """

    def __init__(
        self,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        final_estimator: MultiLabelClassifier | None = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        portfolio = self._portfolio()
        if not 2 <= self.cv <= X.shape[0]:
            raise MethodError(f"cv={self.cv!r} folds cannot be made of n_samples = {X.shape[0]}")
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = list(IterativeStratifiedKFold(self.cv, random_state=seed or 0).split(X, Y))
        scores = [out_of_fold_scores(one, X, Y, folds, seed, self.n_jobs) for one in portfolio.values()]
        self.base_scores_ = np.hstack(scores)
        self.final_estimator_ = clone(self._final()).fit(self.base_scores_, Y)
        if hasattr(self.final_estimator_, "out_of_fold_scores_"):
            self.out_of_fold_scores_ = self.final_estimator_.out_of_fold_scores_
        self._names = list(portfolio)
        used = getattr(self.final_estimator_, "used_", np.ones(len(portfolio), dtype=bool))
        names = [name for name, one in zip(portfolio, used, strict=True) if one]
        last = fold_seed(seed, len(folds))
        fitted = parallel(self.n_jobs)(delayed(fit_seeded)(portfolio[name], X, Y, last) for name in names)
        self.estimators_ = dict(zip(names, fitted, strict=True))

    @available_if(lambda self: hasattr(self._final(), "predict_measures"))
    def predict_measures(self, X: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return scores and decisions of the second level for each metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        dict of str to (ndarray of shape (n, q), int64 ndarray of shape (n, q))
        """
        return self.final_estimator_.predict_measures(self._base_scores(self._validate_predict(X)))

    def _portfolio(self) -> dict[str, BaseEstimator]:
        if self.estimators is None:
            return {
                "br": BinaryRelevance(LogisticRegression(max_iter=1000), calibration="none"),
                "extra_trees": ExtraTreesClassifier(),
                "mlknn": MLkNN(),
            }
        named = dict(self.estimators)
        if not named or len(named) < len(self.estimators):
            names = [name for name, _ in self.estimators]
            raise MethodError(f"estimators needs at least one entry and different names, not {names}")
        return named

    def _final(self) -> MultiLabelClassifier:
        return ScoreEnsemble() if self.final_estimator is None else self.final_estimator

    def _base_scores(self, X: Any) -> np.ndarray:
        """Return the scores of the portfolio, shape (n, m q); 0 of a classifier that is not used."""
        unused = np.zeros((X.shape[0], self.n_labels_))
        return np.hstack(
            [
                score_matrix(self.estimators_[name], X, self.n_labels_) if name in self.estimators_ else unused
                for name in self._names
            ]
        )

    def _score_kind(self) -> str:
        return self._final()._score_kind()

    def _threshold(self) -> float:
        return self._final()._threshold()

    def _scores(self, X: Any) -> np.ndarray:
        return score_matrix(self.final_estimator_, self._base_scores(X), self.n_labels_)
