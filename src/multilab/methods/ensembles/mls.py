"""MLS: binary relevance stacked on binary relevance (2BR)."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.ensembles._members import base_classifier
from multilab.methods.ensembles.cde import chi_square
from multilab.methods.out_of_fold import out_of_fold_scores
from multilab.methods.transformation._binary import (
    Calibration,
    check_base,
    fit_label,
    has_own_threshold,
    score_kind,
    seeded,
)
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

__all__ = ["MLS"]


class MLS(WeightedPartialClassifier):
    """Multi-label stacking: a second binary relevance on the scores of the first for all labels.

    The first level's scores of the training rows are out of fold; for new rows it is fitted on all training rows.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label of the first level. When None an entropy tree with 2 rows per leaf, instead of the
        paper's C4.5: ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    meta_estimator : scikit-learn classifier, optional
        Of the second level; as ``estimator`` when None.
    meta_labels : float in (0, 1], default=1.0
        Share of the labels whose scores a label's second level sees: its own and those most correlated with it (by
        phi^2), floor(share q) and at least its own.
    include_features : bool, default=False
        The second level also sees the features.
    cv : int, default=10
        Folds of the first level, iteratively stratified (order 1); at most n.
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        Of both levels, as in `BinaryRelevance`.
    n_jobs : int, optional
        Folds and labels fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the folds and of the base classifiers.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Of both levels, as in `BinaryRelevance`.

    Attributes
    ----------
    base_ : BinaryRelevance
    base_scores_ : ndarray of shape (n, q)
        Out-of-fold scores the second level was fitted on.
    meta_columns_ : list of ndarray
        The labels whose scores each label's second level sees.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff the second level's score is >= 0.5 (margins: >= 0). Mulan stratifies the folds for each
    label by itself; here the labels share folds, and with them the kernel of an SVC. MEKA's MBR trains the second level
    on in-sample scores.

    **Missing labels**: both levels fit a label on the rows that observe it, folds balance the observed labels, and the
    correlation of two labels is that of the rows that observe both.

    References
    ----------
    G. Tsoumakas, A. Dimou, E. Spyromitros, V. Mezaris, I. Kompatsiaris, I. Vlahavas. Correlation-based pruning of
    stacked binary relevance models for multi-label learning. MLD workshop at ECML PKDD 2009.

    Examples
    --------
    >>> from multilab.methods import MLS
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLS(LogisticRegression(), random_state=0).fit(X, y)
    >>> model.base_scores_.shape
    (60, 3)
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        meta_estimator: BaseEstimator | None = None,
        meta_labels: float = 1.0,
        include_features: bool = False,
        cv: int = 10,
        calibration: Calibration = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        label_weight: LabelWeight = None,
    ) -> None:
        self.estimator = estimator
        self.meta_estimator = meta_estimator
        self.meta_labels = meta_labels
        self.include_features = include_features
        self.cv = cv
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        if not 0 < self.meta_labels <= 1 or self.cv < 2:
            raise MethodError(f"meta_labels={self.meta_labels!r} must be in (0, 1], cv={self.cv!r} 2 or more")
        if len(Y) < 2:
            raise MethodError(f"out-of-fold scores need two rows, there is n_samples = {len(Y)}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weights = Weights.of(weight, self.label_weight, self.n_labels_)
        for classifier in (self._base(), self._meta()):
            check_base(classifier, self.calibration, weights)
        base = BinaryRelevance(
            self._base(), calibration=self.calibration, n_jobs=self.n_jobs, label_weight=self.label_weight
        )
        folds = list(IterativeStratifiedKFold(min(self.cv, len(Y)), random_state=seed).split(X, Y))
        self.base_scores_ = out_of_fold_scores(base, X, Y, folds, seed, sample_weight=weight)
        self.base_ = base.set_params(random_state=seed).fit(X, Y, weight)
        self.meta_columns_ = _meta_columns(Y, self.meta_labels, weight)
        meta = seeded(self._meta(), seed, self.calibration)
        self._meta_models = [
            fit_label(
                meta,
                self._meta_inputs(X, self.base_scores_[:, columns]),
                y,
                self.calibration,
                weights.of_label(label, y),
            )
            for label, (columns, y) in enumerate(zip(self.meta_columns_, Y.T, strict=True))
        ]

    def _base(self) -> BaseEstimator:
        """Return the base classifier of the first level."""
        return base_classifier(self.estimator)

    def _meta(self) -> BaseEstimator:
        """Return the base classifier of the second level."""
        return self._base() if self.meta_estimator is None else self.meta_estimator

    def _score_kind(self) -> str:
        return score_kind(self._meta(), self.calibration)

    def _meta_inputs(self, X: Any, scores: np.ndarray) -> Any:
        """Return the inputs of a meta-classifier: the given base scores, after the features if these are included."""
        if not self.include_features:
            return scores
        return sp.hstack([X, scores], format="csr") if sp.issparse(X) else np.hstack([X, scores])

    def _decides_by_threshold(self) -> bool:
        return not has_own_threshold(self._meta())

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        base_scores, models = self.base_._scores(X), zip(self.meta_columns_, self._meta_models, strict=True)
        parts = [m.predict(self._meta_inputs(X, base_scores[:, c]), self._threshold()) for c, m in models]
        scores, decisions = zip(*parts, strict=True)
        return np.column_stack(scores), np.column_stack(decisions)

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]


def _meta_columns(Y: np.ndarray, share: float, weight: np.ndarray | None) -> list[np.ndarray]:
    """Return for each label the columns it sees, ascending: the most correlated, its own always among them."""
    q = Y.shape[1]
    correlation = chi_square(Y, weight)
    np.fill_diagonal(correlation, np.inf)
    count = max(1, int(share * q))
    return [np.sort(np.argsort(-row, kind="stable")[:count]) for row in correlation]
