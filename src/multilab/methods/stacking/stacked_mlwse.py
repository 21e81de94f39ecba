"""Stacking as one estimator on X: base classifiers, their out-of-fold scores, and MLWSE on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state

from multilab.datasets.folds import IterativeStratifiedKFold
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.out_of_fold import fit_seeded, fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.methods.transformation.label_powerset import LabelPowerset

__all__ = ["StackedMLWSE"]

_SPLITS = ("folds", "half", "halves")
Folds = list[tuple[np.ndarray, np.ndarray]]
Runs = list[tuple[list[Any], MLWSE]]  # base classifiers with the weights that go with their scores


class StackedMLWSE(MultiLabelClassifier):
    """Weighted stacking of multi-label classifiers, from features to decisions.

    The training rows are scored out of fold, MLWSE learns its weights on those scores, and the base
    classifiers are fitted again on all training rows to score new ones. In-sample scores are never used.

    Parameters
    ----------
    estimators : list of (name, multi-label classifier), optional
        Binary relevance, classifier chain and label powerset on ``SVC()`` with sigmoid calibration when None.
    lp : {"powerset", "cc_rf"}
        Third of the default base classifiers: the label powerset of the paper's text, or the chain over a random
        forest of 20 trees that its reference code calls LP.
    split : {"folds", "half", "halves"}
        "half" and "halves": one run of the paper's reference code, or the mean of its two; see Notes.
    penalty, alpha, lam, beta, algorithm, tol, max_iter, fit_intercept, weights, threshold
        Of `MLWSE`.
    laplacian, loss_scale, group_weight
        Of `MLWSE`. "cosine_distance" is refused at any beta > 0 where binary relevance stands beside a chain on the
        same base, whose first column repeats its own: S^T S is singular then.
    cv : int
        Number of folds of iterative stratification (order 1); two otherwise.
    n_jobs : int, optional
        Models fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the base classifiers and of the folds; with None the base classifiers keep their own, and the
        folds have seed 0.

    Attributes
    ----------
    estimators_ : list
        The base classifiers fitted on all training rows; with "half" on half of them; with "halves" on the one half,
        then on the other.
    final_ : MLWSE
        Its ``W_`` holds block k for base classifier k. With "halves" the first of ``finals_``.
    finals_ : list of MLWSE
        One; two with "halves".
    n_iter_ : int
        The largest of ``finals_``.
    base_scores_ : ndarray of shape (n, mq)
        The out-of-fold scores ``finals_`` were fitted on; with "half" NaN in the rows the base classifiers saw.

    Notes
    -----
    The paper's reference code fits the base classifiers on one half A of the training part and the weights on their
    scores of the other half B, scores new rows by both, does the same with A and B exchanged, and reports the mean of
    the two runs' *measures*. One of these runs is ``split="half"``: its measures have the expectation of that mean,
    and more spread. With "halves" the score of a new row is the mean of the two runs' scores, which is not the same: an
    average of two models is better than they are (emotions, L1: Hamming loss .183 against .191). The halves are
    iteratively stratified.

    Scores are real numbers around [0, 1], not confined to it: ``decision_function`` returns them, and there is no
    ``predict_proba``.

    References
    ----------
    J. Xiao, M. Liu. Weighted superposition ensemble multiple label classification based on sparse
    regularization. Computer Applications and Software 41(5), 2024, doi:10.3969/j.issn.1000-386x.2024.05.042.
    English version with reference code: Y. Xia, K. Chen, Y. Yang. Multi-label classification with weighted
    classifier selection and stacked ensemble. Information Sciences 557, 2021.
    Stacking: D. H. Wolpert. Stacked generalization. Neural Networks 5, 1992.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_training_permutation": "which rows share a fold depends on their order",
        "check_label_permutation": "one base classifier is a chain in the order of the columns",
    }
    _small: ClassVar[dict[str, Any]] = {"cv": 2}

    def __init__(
        self,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        lp: Literal["powerset", "cc_rf"] = "powerset",
        split: Literal["folds", "half", "halves"] = "folds",
        penalty: Literal["l1", "l21"] = "l1",
        alpha: float = 1e-4,
        lam: float = 1e-3,
        beta: float = 1e-3,
        algorithm: Literal["admm", "fista", "apg", "bcd"] = "admm",
        tol: float = 1e-6,
        max_iter: int = 5000,
        fit_intercept: bool = False,
        laplacian: Literal["laplacian", "cosine_distance"] = "laplacian",
        loss_scale: Literal["sum", "mean"] = "sum",
        group_weight: Literal["sqrt_labels", "size"] = "sqrt_labels",
        weights: Literal["full", "diagonal"] = "full",
        threshold: float = 0.5,
        cv: int = 5,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.lp = lp
        self.split = split
        self.penalty = penalty
        self.alpha = alpha
        self.lam = lam
        self.beta = beta
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.laplacian = laplacian
        self.loss_scale = loss_scale
        self.group_weight = group_weight
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
            When there is no base classifier, a name is used twice, there are fewer rows than folds, or an argument is
            unknown.
        """
        X, Y = self._validate_fit(X, Y)
        if self.split not in _SPLITS:
            raise MethodError(f"split={self.split!r}: give one of {', '.join(map(repr, _SPLITS))}")
        cv = self.cv if self.split == "folds" else 2
        if not 2 <= cv <= X.shape[0]:
            raise MethodError(f"cv={cv} folds cannot be made of n_samples = {X.shape[0]}")
        members = self._members()
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = list(IterativeStratifiedKFold(cv, random_state=seed or 0).split(X, Y))
        if self.split == "folds":
            self._runs = self._fit_folds(members, X, Y, folds, seed)
        else:
            self._runs = self._fit_halves(members, X, Y, folds[: 1 if self.split == "half" else 2], seed)
        self.estimators_ = [model for models, _ in self._runs for model in models]
        self.finals_ = [final for _, final in self._runs]
        self.final_ = self.finals_[0]
        self.n_iter_ = max(final.n_iter_ for final in self.finals_)
        return self

    def _fit_folds(self, members: list[BaseEstimator], X: Any, Y: np.ndarray, folds: Folds, seed: int | None) -> Runs:
        self.base_scores_ = np.hstack(
            [out_of_fold_scores(member, X, Y, folds, seed, self.n_jobs) for member in members]
        )
        models = self._fit_members(members, X, Y, fold_seed(seed, len(folds)))
        return [(models, self._final().fit(self.base_scores_, Y))]

    def _fit_halves(self, members: list[BaseEstimator], X: Any, Y: np.ndarray, folds: Folds, seed: int | None) -> Runs:
        self.base_scores_ = np.full((X.shape[0], len(members) * self.n_labels_), np.nan)
        runs = []
        for number, (half, other) in enumerate(folds):
            models = self._fit_members(members, X[half], Y[half], fold_seed(seed, number))
            self.base_scores_[other] = self._base_scores(models, X[other])
            runs.append((models, self._final().fit(self.base_scores_[other], Y[other])))
        return runs

    def _fit_members(self, members: list[BaseEstimator], X: Any, Y: np.ndarray, seed: int | None) -> list[Any]:
        return Parallel(n_jobs=self.n_jobs)(delayed(fit_seeded)(member, X, Y, seed) for member in members)

    def _final(self) -> MLWSE:
        shared = MLWSE().get_params().keys() & self.get_params(deep=False).keys()
        return MLWSE(**{name: getattr(self, name) for name in shared})

    def _members(self) -> list[BaseEstimator]:
        if self.lp not in ("powerset", "cc_rf"):
            raise MethodError(f"lp={self.lp!r}: give 'powerset' or 'cc_rf'")
        if self.estimators is None:
            relevance, chain = (kind(calibration="sigmoid") for kind in (BinaryRelevance, ClassifierChain))
            if self.lp == "cc_rf":
                return [relevance, chain, ClassifierChain(RandomForestClassifier(n_estimators=20))]
            return [relevance, chain, LabelPowerset(calibration="sigmoid")]
        names = [name for name, _ in self.estimators]
        if not names or len(set(names)) < len(names):
            raise MethodError(f"estimators needs at least one entry and different names, not {names}")
        return [member for _, member in self.estimators]

    def _base_scores(self, models: list[Any], X: Any) -> np.ndarray:
        return np.hstack([score_matrix(model, X, self.n_labels_) for model in models])

    def _score_kind(self) -> str:
        return "score"

    def _scores(self, X: Any) -> np.ndarray:
        runs = [final.decision_function(self._base_scores(models, X)) for models, final in self._runs]
        return np.mean(runs, axis=0)

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores >= self.threshold
