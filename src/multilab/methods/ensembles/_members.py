"""Bagging, and the default tree of the ensembles."""

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError, WeightedClassifier, WeightedPartialClassifier

Combine = Literal["confidence", "vote"]


def base_classifier(estimator: BaseEstimator | None) -> BaseEstimator:
    """Return the estimator, or for None the replacement of C4.5 (Weka's J48), which the papers use.

    Both split on information and keep 2 rows per leaf. C4.5 also divides the gain by the information of the split,
    prunes pessimistically, and splits a nominal feature into all its values at once.
    """
    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2) if estimator is None else estimator


def draw_rows(seed: int, n: int, max_samples: float, bootstrap: bool) -> np.ndarray:
    """Return the row numbers a member is trained on, ascending.

    Parameters
    ----------
    seed : int
        The member's; the draw is independent of what else the member does with it.
    n : int
        Number of training rows.
    max_samples : float in (0, 1]
        Share of n that is drawn, rounded down, at least one row.
    bootstrap : bool
        With or without replacement.
    """
    if not 0 < max_samples <= 1:
        raise MethodError(f"max_samples={max_samples!r} must be in (0, 1]")
    size = max(1, int(max_samples * n))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    return np.sort(rng.integers(n, size=size) if bootstrap else rng.choice(n, size=size, replace=False))


class BaggedEnsemble(WeightedPartialClassifier, ABC):
    """Base class of bagged multi-label classifiers: the mean of their scores or decisions.

    A subclass returns from ``_member`` the classifier to fit on each sample. Its ``combine`` ("vote" where it has none)
    selects what is averaged.

    Attributes
    ----------
    estimators_ : list of multi-label classifiers
        One per seed drawn from ``random_state``.
    """

    combine: Combine = "vote"

    def __init__(
        self,
        estimator: BaseEstimator | None,
        n_estimators: int,
        max_samples: float,
        bootstrap: bool,
        n_jobs: int | None,
        random_state: Any,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    @abstractmethod
    def _member(self, base: BaseEstimator, seed: int | None) -> WeightedClassifier:
        """Return the classifier to fit on a sample, its ``random_state`` the seed."""

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        base = base_classifier(self.estimator)
        self._check_arguments(base)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators).tolist()

        def fit(seed: int) -> WeightedClassifier:
            rows = draw_rows(seed, X.shape[0], self.max_samples, self.bootstrap)
            return self._member(base, seed)._fit_validated(X[rows], Y[rows], None if weight is None else weight[rows])

        # trees and libsvm release the interpreter lock: threads share the one X
        self.estimators_ = parallel(self.n_jobs, prefer="threads")(delayed(fit)(seed) for seed in seeds)

    def _check_arguments(self, base: BaseEstimator) -> None:
        """Raise a `MethodError` if an argument is out of range or the mean of margins is requested."""
        if not isinstance(self.n_estimators, int | np.integer) or self.n_estimators < 1:
            raise MethodError(f"n_estimators={self.n_estimators!r}: give the number of members, 1 or more")
        self._check_choices(combine=("confidence", "vote"))
        if self.combine == "confidence" and self._member(base, None)._score_kind() == "margin":
            raise MethodError(
                f"{type(base).__name__} gives margins, whose mean is no confidence: "
                "set combine='vote', or calibration='sigmoid'"
            )

    def _scores(self, X: Any) -> np.ndarray:
        total = np.zeros((X.shape[0], self.n_labels_))
        for member in self.estimators_:
            scores, decisions = member._predict(X)
            total += scores if self.combine == "confidence" else decisions
        return total / len(self.estimators_)
