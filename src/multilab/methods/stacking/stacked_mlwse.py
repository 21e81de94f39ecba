"""Stacking of multi-label classifiers with MLWSE as meta-learner."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods._weights import Weights, check_takes_weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.labels import learns_from_missing
from multilab.methods.out_of_fold import fit_seeded, fold_seed, out_of_fold_scores, score_matrix
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.methods.transformation.label_powerset import LabelPowerset
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["StackedMLWSE"]

_HALVES = {"half": 1, "halves": 2}  # runs: base classifiers on one half of the rows, weights on the other
Folds = list[tuple[np.ndarray, np.ndarray]]
Members = list[BaseEstimator]
Seed = int | None
Weight = np.ndarray | None


class StackedMLWSE(WeightedPartialClassifier):
    """Stacking of multi-label classifiers with MLWSE as meta-learner, from features to decisions.

    The training rows are scored out of fold, MLWSE learns its weights on those scores, and the base
    classifiers are fitted again on all training rows to score new ones. In-sample scores are never used.

    Parameters
    ----------
    estimators : list of (name, multi-label classifier), optional
        Base classifiers. Binary relevance, classifier chain and label powerset on ``SVC()`` with sigmoid calibration
        when None.
    final_estimator : MLWSE, optional
        Meta-learner on the base scores; ``MLWSE()`` when None. Its ``laplacian="cosine_distance"`` is refused at any
        beta > 0 where the base classifiers are binary relevance and a chain on the same base, whose first column
        repeats its own: S^T S is singular then.
    cv : int or {"half", "halves"}, default=5
        Number of folds of iterative stratification (order 1). "half" and "halves": one run of the paper's reference
        code, or the mean of its two; see Notes.
    n_jobs : int, optional
        Models fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the base classifiers and of the folds; with None the base classifiers keep their own, and the
        folds have seed 0.
    score_type : {"float64", "float32"}, default="float64"
        Type of ``base_scores_``; "float32" halves the memory for many rows and labels, and rounds the scores to seven
        digits.

    Attributes
    ----------
    estimators_ : list
        The base classifiers fitted on all training rows; with "half" on half of them; with "halves" on the one half,
        then on the other.
    final_estimator_ : MLWSE
        Its ``W_`` holds group k for base classifier k. With "halves" the first of ``final_estimators_``.
    final_estimators_ : list of MLWSE
        One; two with "halves".
    n_iter_ : int
        The largest of ``final_estimators_``.
    base_scores_ : ndarray of shape (n, mq)
        Out-of-fold scores, what ``final_estimators_`` are fitted on; with "half" NaN in the rows that the base
        classifiers have seen.

    Notes
    -----
    The paper's reference code (AiXia520/MLWSE at 3d31453, ``lasso_stacking.py``) fits the base classifiers on one half
    A of the training set and the weights on their scores of the other half B, scores new rows by both, does the same
    with A and B exchanged, and reports the mean of the two runs' *measures*. One of these runs is ``cv="half"``: its
    measures have the expectation of that mean, and more spread. With "halves" the score of a new row is the mean of the
    two runs' scores, which is not the same: an average of two models is better than they are (emotions, L1: Hamming
    loss .183 against .191). The halves are iteratively stratified. Its third base classifier, called LP there, is a
    chain over a random forest of 20 trees.

    Scores are real numbers around [0, 1], not confined to it: ``decision_function`` returns them, and there is no
    ``predict_proba``.

    **Missing labels**: as the base classifiers and `MLWSE` treat them; all base classifiers must (of the default ones
    the label powerset does not). Folds balance the observed labels.

    References
    ----------
    J. Xiao, M. Liu. Weighted superposition ensemble multiple label classification based on sparse
    regularization. Computer Applications and Software 41(5), 2024, doi:10.3969/j.issn.1000-386x.2024.05.042.
    English version with reference code (github.com/AiXia520/MLWSE, commit 3d31453): Y. Xia, K. Chen, Y. Yang.
    Multi-label classification with weighted classifier selection and stacked ensemble. Information Sciences 557, 2021.
    Stacking: D. H. Wolpert. Stacked generalization. Neural Networks 5, 1992.

    Examples
    --------
    >>> from multilab.methods import MLWSE, BinaryRelevance, MLkNN, StackedMLWSE
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> members = [("mlknn", MLkNN(k=5)), ("br", BinaryRelevance(LogisticRegression()))]
    >>> model = StackedMLWSE(members, final_estimator=MLWSE(alpha=0.5), cv=3, random_state=0).fit(X, y)
    >>> model.final_estimator_.W_.shape
    (6, 3)
    >>> model.decision_function(X).shape
    (60, 3)
    >>> model.set_params(final_estimator__alpha=1.0).final_estimator.alpha
    1.0
    """

    @property
    def _accepts_missing_labels(self) -> bool:  # type: ignore[override]
        return all(learns_from_missing(member) for member in self._members())

    def __init__(
        self,
        estimators: Sequence[tuple[str, BaseEstimator]] | None = None,
        final_estimator: MLWSE | None = None,
        cv: int | Literal["half", "halves"] = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        score_type: Literal["float64", "float32"] = "float64",
    ) -> None:
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.score_type = score_type

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        self._check_choices(score_type=("float64", "float32"))
        members = self._members()
        for member in members:
            check_takes_weights(member, Weights(weight, None))
        final = MLWSE() if self.final_estimator is None else self.final_estimator
        if not isinstance(final, MLWSE):
            raise MethodError(f"final_estimator must be an MLWSE, got {type(final).__name__}")
        n_folds = 2 if self.cv in _HALVES else self.cv
        if not isinstance(n_folds, int | np.integer):
            raise MethodError(f"cv={self.cv!r}: give a number of folds or one of {', '.join(map(repr, _HALVES))}")
        if not 2 <= n_folds <= X.shape[0]:
            raise MethodError(f"cv={n_folds} folds cannot be made of n_samples = {X.shape[0]}")
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = list(IterativeStratifiedKFold(n_folds, random_state=seed or 0).split(X, Y))
        if self.cv in _HALVES:
            self._fit_halves(members, final, X, Y, folds[: _HALVES[self.cv]], seed, weight)
        else:
            self._fit_folds(members, final, X, Y, folds, seed, weight)
        self.estimators_ = [model for models, _ in self._runs for model in models]
        self.final_estimators_ = [final for _, final in self._runs]
        self.final_estimator_ = self.final_estimators_[0]
        self.n_iter_ = max(final.n_iter_ for final in self.final_estimators_)

    def _fit_folds(
        self, members: Members, final: MLWSE, X: Any, Y: np.ndarray, folds: Folds, seed: Seed, weight: Weight
    ) -> None:
        q = self.n_labels_
        self.base_scores_ = np.empty((X.shape[0], len(members) * q), dtype=self.score_type)
        for number, member in enumerate(members):
            part = self.base_scores_[:, number * q : (number + 1) * q]
            out_of_fold_scores(member, X, Y, folds, seed, self.n_jobs, weight, out=part)
        models = self._fit_members(members, X, Y, fold_seed(seed, len(folds)), weight)
        self._runs = [(models, clone(final).fit(self.base_scores_, Y, weight))]

    def _fit_halves(
        self, members: Members, final: MLWSE, X: Any, Y: np.ndarray, folds: Folds, seed: Seed, weight: Weight
    ) -> None:
        self.base_scores_ = np.full((X.shape[0], len(members) * self.n_labels_), np.nan, dtype=self.score_type)
        self._runs = []
        for number, (half, other) in enumerate(folds):
            learned, scored = (None, None) if weight is None else (weight[half], weight[other])
            models = self._fit_members(members, X[half], Y[half], fold_seed(seed, number), learned)
            self.base_scores_[other] = self._base_scores(models, X[other])
            self._runs.append((models, clone(final).fit(self.base_scores_[other], Y[other], scored)))

    def _fit_members(self, members: Members, X: Any, Y: np.ndarray, seed: Seed, weight: Weight) -> list[Any]:
        return parallel(self.n_jobs)(delayed(fit_seeded)(member, X, Y, seed, weight) for member in members)

    def _members(self) -> Members:
        if self.estimators is None:
            return [kind(calibration="sigmoid") for kind in (BinaryRelevance, ClassifierChain, LabelPowerset)]
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

    def _threshold(self) -> float:
        return self.final_estimator_.threshold
