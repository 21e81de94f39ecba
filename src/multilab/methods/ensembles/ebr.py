"""EBR: binary relevance on bootstrap samples."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.ensembles.members import (
    Combine,
    average,
    c45_substitute,
    check_combine,
    draw_seeds,
    fit_members,
)
from multilab.methods.transformation.binary import Calibration
from multilab.methods.transformation.binary_relevance import BinaryRelevance

__all__ = ["EBR"]


class EBR(MultiLabelClassifier):
    """Ensemble of binary relevance: bagged binary relevance models and their mean confidence.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each member and label. When None an entropy tree with 2 rows per leaf, in the place of the paper's
        C4.5: ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=1.0
        Share of the rows that a member sees.
    bootstrap : bool, default=True
        Rows are drawn with replacement. MEKA's ``EnsembleML`` draws 67 % without.
    combine : {"confidence", "vote"}, default="confidence"
        The score of a label is the mean of the members' probabilities, or the share of members that assign it.
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        As in `BinaryRelevance`; an SVC needs one for "confidence".
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples and of the base classifiers.

    Attributes
    ----------
    estimators_ : list of BinaryRelevance
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff its score is >= 0.5. A drawn row is repeated, so that the two rows a leaf needs may be
    copies of one: as in Weka, where a bootstrap sample is a set of weights.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank. Classifier chains for multi-label classification. Machine Learning 85,
    2011. Bagging: L. Breiman. Bagging predictors. Machine Learning 24, 1996.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where members agree",
        "check_classifier_multioutput": "rounds .5 down; a label is assigned at a score >= .5",
        "check_training_permutation": "the samples are drawn over row numbers",
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        max_samples: float = 1.0,
        bootstrap: bool = True,
        combine: Combine = "confidence",
        calibration: Calibration = None,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.combine = combine
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If an argument is out of its range, or the base classifier has no probabilities to average.
        """
        X, Y = self._validate_fit(X, Y)
        base = c45_substitute() if self.estimator is None else self.estimator
        member = BinaryRelevance(base, calibration=self.calibration)
        check_combine(self.combine, member, base)
        seeds = draw_seeds(self.random_state, self.n_estimators)
        self.estimators_ = fit_members(member, X, Y, seeds, self.max_samples, self.bootstrap, self.n_jobs)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        return average(self.estimators_, X, self.combine)
