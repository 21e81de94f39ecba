"""Binary relevance: one independent classifier per label."""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any, ClassVar, Self

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC

from multilab.core.parallel import parallel
from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import IncrementalClassifier, MethodError, WeightedPartialClassifier
from multilab.methods.labels import Layout, label_columns
from multilab.methods.transformation._binary import (
    Calibration,
    _Model,
    check_base,
    check_calibration,
    fit_label,
    has_own_threshold,
    score_kind,
    seeded,
)
from multilab.methods.transformation._inputs import make_inputs

__all__ = ["BinaryRelevance"]


class BinaryRelevance(IncrementalClassifier, WeightedPartialClassifier):
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
    constant score, that of the larger class. Labels are assigned at probability >= 0.5 or margin >= 0. A base with a
    threshold of its own (scikit-learn's `FixedThresholdClassifier` and `TunedThresholdClassifierCV`, also in a pipeline
    or a search) decides itself, label by label; scores stay as they are.

    **Early stopping** is that of the base: with ``early_stopping=True`` (scikit-learn) or ``early_stopping_rounds``
    (XGBoost, LightGBM, CatBoost) each label stops at its own iteration. scikit-learn holds out rows of the label; the
    others get a stratified tenth of these as ``eval_set``, drawn by the ``random_state`` of the base (0 when None),
    without weights. A label with fewer than 11 rows, or a single row of a class (with "sigmoid": two), is fitted
    without early stopping.

    **Missing labels**: each label is fitted on the rows that observe it.

    **Weights of shape (n, q)**: the classifier of a label gets its column; a label of weight 0 is not observed.

    **Batches of rows** need a base classifier with ``partial_fit``, such as `SGDClassifier`, and no calibration; the
    result is that of its ``partial_fit`` on the same batches in the same order. Shuffle them where they are sorted:
    stochastic gradients follow the last rows they saw.

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
    _accepts_cell_weights = True

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
        self._inputs = make_inputs(seeded(base, self.random_state, self.calibration), X, weights.rows)
        matrix = self._inputs.training().matrix
        # libsvm and the BLAS release the interpreter lock: threads share the one kernel matrix
        self._labels = parallel(self.n_jobs, prefer="threads")(
            delayed(fit_label)(self._inputs.base, matrix, y, self.calibration, weights.of_label(label, y))
            for label, y in enumerate(label_columns(Y))
        )

    def fit_batches(self, batches: Iterable[tuple[Any, Any]], *, n_rows: int | None = None, epochs: int = 1) -> Self:
        """Learn from batches of rows, of which only one is held at a time.

        Parameters
        ----------
        batches : iterable of (X, y)
            Rows and labels as for `fit`, all labels observed. For several passes, the iterable must start from the
            beginning each time, as a list does and a generator does not.
        n_rows : int, optional
            Not needed here.
        epochs : int, default=1
            Number of passes.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If all rows are needed with these arguments, labels are missing, or there is no row.
        """
        if epochs < 1:
            raise MethodError(f"epochs={epochs}: there must be at least one")
        if epochs > 1:
            self._check_repeatable(batches)
        return super().fit_batches(chain.from_iterable(repeat(batches, epochs)), n_rows=n_rows)

    def _batches_fault(self) -> str | None:
        base = self._base()
        if not hasattr(base, "partial_fit"):
            return f"{type(base).__name__} has no partial_fit: take an SGDClassifier as base of BinaryRelevance"
        if self.calibration not in (None, "none"):
            return "BinaryRelevance needs all rows for its calibration: leave it out"
        return super()._batches_fault()

    def _add_batch(self, X: Any, Y: np.ndarray, kept: Any) -> tuple[list[Any], int, np.ndarray]:
        """Return the models, the number of rows, and the number of those with each label."""
        if kept is None:
            base = seeded(self._base(), self.random_state, self.calibration)
            check_calibration(base, self.calibration)
            self._inputs = make_inputs(base, X[:1])
            kept = [clone(base) for _ in range(Y.shape[1])], 0, 0
        models, n, positive = kept
        parallel(self.n_jobs, prefer="threads")(
            delayed(model.partial_fit)(X, np.ascontiguousarray(y), classes=np.array([0, 1]))
            for model, y in zip(models, Y.T, strict=True)
        )
        return models, n + X.shape[0], positive + Y.sum(axis=0)

    def _solve(self, kept: Any) -> None:
        """Keep the models, and a constant for a label that no row has, or every one."""
        models, n, positive = kept
        row = self._inputs.training().matrix
        self._labels = [
            _Model(model)
            if 0 < count < n
            else fit_label(self._inputs.base, row, np.array([count > 0], dtype=np.uint8), self.calibration)
            for model, count in zip(models, positive, strict=True)
        ]

    def _base(self) -> BaseEstimator:
        return SVC() if self.estimator is None else self.estimator

    def _score_kind(self) -> str:
        return score_kind(self._base(), self.calibration)

    def _decides_by_threshold(self) -> bool:
        return not has_own_threshold(self._base())

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        matrix = self._inputs.query(X).matrix
        scores, decisions = zip(*(label.predict(matrix, self._threshold()) for label in self._labels), strict=True)
        return np.column_stack(scores), np.column_stack(decisions)

    def _scores(self, X: Any) -> np.ndarray:
        matrix = self._inputs.query(X).matrix
        return np.column_stack([label.scores(matrix) for label in self._labels])
