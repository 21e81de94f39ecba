"""EPS: pruned sets on subsamples."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.ensembles.members import average, c45_substitute, draw_seeds, fit_members
from multilab.methods.ensembles.pruned_sets import PrunedSets, Strategy

__all__ = ["EPS"]


class EPS(MultiLabelClassifier):
    """Ensemble of pruned sets: pruned-set models on subsamples of the rows, and their votes.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each member. When None an entropy tree with 2 rows per leaf, in the place of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=0.66
        Share of the rows that a member sees.
    bootstrap : bool, default=False
        Rows are drawn without replacement.
    p, strategy, b
        Of `PrunedSets`, here with Mulan's defaults for the ensemble.
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples and of the base classifiers.

    Attributes
    ----------
    estimators_ : list of PrunedSets
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The score of a label is the share of members whose predicted label set contains it; it is assigned iff >= 0.5.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes. Multi-label classification using ensembles of pruned sets. ICDM 2008.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where members agree",
        "check_training_permutation": "the samples are drawn over row numbers",
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        max_samples: float = 0.66,
        bootstrap: bool = False,
        p: int = 2,
        strategy: Strategy = "A",
        b: int = 3,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.p = p
        self.strategy = strategy
        self.b = b
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of its range.
        """
        X, Y = self._validate_fit(X, Y)
        base = c45_substitute() if self.estimator is None else self.estimator
        member = PrunedSets(base, p=self.p, strategy=self.strategy, b=self.b)
        seeds = draw_seeds(self.random_state, self.n_estimators)
        self.estimators_ = fit_members(member, X, Y, seeds, self.max_samples, self.bootstrap, self.n_jobs)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        return average(self.estimators_, X, "vote")
