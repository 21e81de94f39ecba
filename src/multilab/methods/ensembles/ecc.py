"""ECC: classifier chains in random orders on bootstrap samples."""

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
from multilab.methods.transformation.classifier_chain import ClassifierChain

__all__ = ["ECC"]


class ECC(MultiLabelClassifier):
    """Ensemble of classifier chains: bagged chains, each in a random order of its own, and their votes.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each link. When None an entropy tree with 2 rows per leaf, in the place of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=1.0
        Share of the rows that a member sees; 0.67 in the chain paper, without replacement.
    bootstrap : bool, default=True
        Rows are drawn with replacement.
    combine : {"vote", "confidence"}, default="vote"
        The score of a label is the share of chains that assign it, or the mean of their probabilities (Mulan's
        ``useConfidences``, off in the MLWSE paper).
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        As in `ClassifierChain`.
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples, the chain orders and the base classifiers.

    Attributes
    ----------
    estimators_ : list of ClassifierChain
        Their ``order_`` is the chain order.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff its score is >= 0.5. All orders are equally likely; Mulan's shuffle favours some.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank. Classifier chains for multi-label classification. Machine Learning 85,
    2011.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_label_permutation": "the chain orders are drawn over column numbers",
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where members agree",
        "check_training_permutation": "the samples are drawn over row numbers",
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        max_samples: float = 1.0,
        bootstrap: bool = True,
        combine: Combine = "vote",
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
        member = ClassifierChain(base, order="random", calibration=self.calibration)
        check_combine(self.combine, member, base)
        seeds = draw_seeds(self.random_state, self.n_estimators)
        self.estimators_ = fit_members(member, X, Y, seeds, self.max_samples, self.bootstrap, self.n_jobs)
        return self

    def _scores(self, X: Any) -> np.ndarray:
        return average(self.estimators_, X, self.combine)
