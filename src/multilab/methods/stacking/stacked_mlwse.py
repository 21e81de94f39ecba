"""Stacking as one estimator on X: base classifiers, their out-of-fold scores, and MLWSE on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.datasets.folds import IterativeStratifiedKFold
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.stacking.mlwse import MLWSE, UNBOUNDED
from multilab.methods.stacking.out_of_fold import fit_seeded, fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.methods.transformation.label_powerset import LabelPowerset

__all__ = ["StackedMLWSE"]


class StackedMLWSE(MultiLabelClassifier):
    """Weighted stacking of multi-label classifiers, from features to decisions.

    The training rows are scored out of fold, MLWSE learns its weights on those scores, and the base
    classifiers are fitted again on all training rows to score new ones. In-sample scores are never used.

    Parameters
    ----------
    estimators : list of (name, multi-label classifier), optional
        Binary relevance, classifier chain and label powerset on ``SVC()`` with sigmoid calibration when None.
    penalty, alpha, lam, beta, algorithm, tol, max_iter, fit_intercept, weights, threshold
        Of `MLWSE`.
    cv : int
        Number of folds of iterative stratification (order 1).
    n_jobs : int, optional
        Models fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the base classifiers and of the folds; with None the base classifiers keep their own, and the
        folds have seed 0.

    Attributes
    ----------
    estimators_ : list
        The base classifiers fitted on all training rows.
    final_ : MLWSE
        Its ``W_`` holds block k for base classifier k.
    n_iter_ : int
        Of ``final_``.
    base_scores_ : ndarray of shape (n, mq)
        The out-of-fold scores ``final_`` was fitted on.

    Notes
    -----
    The paper's reference code fits the base classifiers on one half of the training part and scores the
    other; here each sees (cv - 1)/cv of it, and new rows are scored by models that saw all of it.

    References
    ----------
    J. Xiao, M. Liu. Weighted superposition ensemble multiple label classification based on sparse
    regularization. Computer Applications and Software 41(5), 2024, doi:10.3969/j.issn.1000-386x.2024.05.042.
    English version with reference code: Y. Xia, K. Chen, Y. Yang. Multi-label classification with weighted
    classifier selection and stacked ensemble. Information Sciences 557, 2021.
    Stacking: D. H. Wolpert. Stacked generalization. Neural Networks 5, 1992.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_classifiers_multilabel_output_format_predict_proba": UNBOUNDED,
        "check_classifier_multioutput": UNBOUNDED,
        "check_training_permutation": "which rows share a fold depends on their order",
        "check_label_permutation": "one base classifier is a chain in the order of the columns",
    }
    _small: ClassVar[dict[str, Any]] = {"cv": 2}

    def __init__(
        self,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        penalty: Literal["l1", "l21"] = "l1",
        alpha: float = 1e-4,
        lam: float = 1e-3,
        beta: float = 1e-3,
        algorithm: Literal["admm", "fista", "apg", "bcd"] = "admm",
        tol: float = 1e-6,
        max_iter: int = 5000,
        fit_intercept: bool = False,
        weights: Literal["full", "diagonal"] = "full",
        threshold: float = 0.5,
        cv: int = 5,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.penalty = penalty
        self.alpha = alpha
        self.lam = lam
        self.beta = beta
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.weights = weights
        self.threshold = threshold
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            When there is no base classifier, a name is used twice, or there are fewer rows than folds.
        """
        X, Y = self._validate_fit(X, Y)
        if not 2 <= self.cv <= X.shape[0]:
            raise MethodError(f"cv={self.cv} folds cannot be made of n_samples = {X.shape[0]}")
        members = self._members()
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = list(IterativeStratifiedKFold(self.cv, random_state=seed or 0).split(X, Y))
        self.base_scores_ = np.hstack(
            [out_of_fold_scores(member, X, Y, folds, seed, self.n_jobs) for member in members]
        )
        refit_seed = fold_seed(seed, len(folds))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_seeded)(member, X, Y, refit_seed) for member in members
        )
        shared = MLWSE().get_params().keys() & self.get_params(deep=False).keys()
        self.final_ = MLWSE(**{name: getattr(self, name) for name in shared})
        self.final_.fit(self.base_scores_, Y)
        self.n_iter_ = self.final_.n_iter_
        return self

    def _members(self) -> list[BaseEstimator]:
        if self.estimators is None:
            kinds = (BinaryRelevance, ClassifierChain, LabelPowerset)
            return [kind(calibration="sigmoid") for kind in kinds]
        names = [name for name, _ in self.estimators]
        if not names or len(set(names)) < len(names):
            raise MethodError(f"estimators needs at least one entry and different names, not {names}")
        return [member for _, member in self.estimators]

    def _scores(self, X: Any) -> np.ndarray:
        return self.final_.predict_proba(np.hstack([score_matrix(m, X, self.n_labels_) for m in self.estimators_]))

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores >= self.threshold
