"""Binary relevance: one independent classifier per label."""

from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator
from sklearn.svm import SVC

from multilab.core.parallel import parallel
from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import WeightedPartialClassifier
from multilab.methods.labels import Layout, label_columns
from multilab.methods.transformation._binary import Calibration, check_base, fit_label, score_kind, seeded
from multilab.methods.transformation._inputs import make_inputs

__all__ = ["BinaryRelevance"]


class BinaryRelevance(WeightedPartialClassifier):
    """Binary relevance: one independent binary classifier per label.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each label; ``SVC()`` when None. An SVC with a named kernel computes its kernel matrix once
        for all labels.
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        None and "none": scores as the base gives them, ``predict_proba`` or else ``decision_function``.
        "sigmoid": Platt's sigmoid on out-of-fold margins, equal to ``CalibratedClassifierCV(estimator,
        ensemble=False)`` with min(5, size of the rarer class) folds. "libsvm": ``SVC(probability=True)``,
        deprecated in scikit-learn 1.9.
    n_jobs : int, optional
        Labels fitted at the same time, in threads. Does not change the result, except for ``LinearSVC`` with its dual
        solver: threads share liblinear's random numbers. ``LinearSVC(dual=False)`` draws none.
    random_state : int or RandomState, optional
        Seed of the base classifiers, the same for all labels; None leaves theirs.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the values of each label in its classifier, as ``class_weight`` of scikit-learn; they multiply
        ``sample_weight``. "balanced": n / (2 n_c) for the value c that n_c of the n rows have. Shape (q,): of the value
        1, the value 0 counts 1; shape (q, 2): of the values 0 and 1. The base classifier must take weights.

    Attributes
    ----------
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label with one class in training (with "sigmoid": with a single member of the rarer class) has a
    constant score, that of the larger class. Labels are assigned at probability >= 0.5 or margin >= 0.

    **Early stopping** is that of the base: with ``early_stopping=True`` (scikit-learn) or ``early_stopping_rounds``
    (XGBoost, LightGBM, CatBoost) each label stops at its own iteration. scikit-learn holds out rows of the label; the
    others get a stratified tenth of these as ``eval_set``, drawn by the ``random_state`` of the base (0 when None),
    without weights. A label with fewer than 11 rows, or a single row of a class (with "sigmoid": two), is fitted
    without early stopping.

    **Missing labels**: each label is fitted on the rows that observe it.

    ``gamma="scale"`` of an SVC is computed once from the full training set, also for the inner folds, where
    ``CalibratedClassifierCV`` would recompute it (emotions: scores differ by up to 5e-4).

    References
    ----------
    M. R. Boutell, J. Luo, X. Shen, C. M. Brown. Learning multi-label scene classification. Pattern
    Recognition 37, 2004. Calibration: J. Platt, Probabilistic outputs for support vector machines, 1999.

    Examples
    --------
    >>> from multilab.methods import BinaryRelevance
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = BinaryRelevance(LogisticRegression()).fit(X, y)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 1, 0]])
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    _sparse_labels: ClassVar[Layout | None] = "csc"

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        calibration: Calibration = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        label_weight: LabelWeight = None,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, sample_weight: np.ndarray | None) -> None:
        base = self._base()
        weights = Weights.of(sample_weight, self.label_weight, Y.shape[1])
        check_base(base, self.calibration, weights)
        self._inputs = make_inputs(seeded(base, self.random_state, self.calibration), X, sample_weight)
        matrix = self._inputs.training().matrix
        # libsvm and the BLAS release the interpreter lock: threads share the one kernel matrix
        self._labels = parallel(self.n_jobs, prefer="threads")(
            delayed(fit_label)(self._inputs.base, matrix, y, self.calibration, weights.of_label(label, y))
            for label, y in enumerate(label_columns(Y))
        )

    def _base(self) -> BaseEstimator:
        return SVC() if self.estimator is None else self.estimator

    def _score_kind(self) -> str:
        return score_kind(self._base(), self.calibration)

    def _scores(self, X: Any) -> np.ndarray:
        matrix = self._inputs.query(X).matrix
        return np.column_stack([label.scores(matrix) for label in self._labels])
