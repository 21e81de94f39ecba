"""Calibrated probabilities of any multi-label classifier."""

from typing import Any, Self

from multilab.decision._calibration import METHODS, CalibrationMethod, fit_calibration
from multilab.decision._held_out import HeldOutClassifier

__all__ = ["CalibratedMultiLabelClassifier"]


class CalibratedMultiLabelClassifier(HeldOutClassifier):
    """Any multi-label classifier with calibrated probabilities, label by label.

    The training rows are scored out of fold, a calibration map of each label is fitted to those scores, and the
    estimator is fitted again on all rows.

    Parameters
    ----------
    estimator : multi-label classifier or "precomputed", optional
        With ``predict_proba`` or ``decision_function``; ``BinaryRelevance(LogisticRegression())`` when None.
        "precomputed": X holds held-out probabilities in ``fit`` and the probabilities of new rows in ``predict_proba``.
    method : {"sigmoid", "isotonic", "beta", "temperature"}, default="sigmoid"
        "sigmoid": Platt's, on probabilities or margins. "isotonic": isotonic regression; it needs some hundred
        positives per label. "beta": beta calibration of probabilities, which contains the identity. "temperature":
        log-odds divided by one number that all labels share, so that the order of the labels in a row stays.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        Folds of the held-out scores; a number means `IterativeStratifiedKFold`. "prefit", or an estimator inside
        scikit-learn's ``FrozenEstimator``: the estimator is fitted already, and must not have seen the rows of ``fit``.
    n_jobs : int, optional
        Folds fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the estimator's copies and of the folds; with None the estimator keeps its own, and the folds have
        seed 0.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows (with "prefit": the one that was given).
    folds_ : list of (train, test) or None
        Folds of the held-out scores; None if the estimator was fitted already.
    n_features_in_, n_labels_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned at a calibrated probability >= 0.5, which is best for Hamming loss if the calibration is right.
    A label that no or every training row has keeps the probability 0 or 1. Sigmoid, beta and temperature minimise the
    log loss of Platt's softened targets, (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), so that labels with few positives and
    separable scores have finite parameters; before logarithms probabilities are moved into [1e-6, 1 - 1e-6].

    scikit-learn's ``CalibratedClassifierCV`` takes one label only.

    References
    ----------
    J. Platt. Probabilistic outputs for support vector machines. 1999.
    B. Zadrozny, C. Elkan. Transforming classifier scores into accurate multiclass probability estimates. KDD 2002.
    M. Kull, T. M. Silva Filho, P. Flach. Beta calibration. AISTATS 2017.
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> from multilab.decision import CalibratedMultiLabelClassifier
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from sklearn.svm import LinearSVC
    >>> X, y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=3, random_state=0)
    >>> machine = OneVsRestClassifier(LinearSVC())  # margins only
    >>> model = CalibratedMultiLabelClassifier(machine, method="sigmoid", cv=3).fit(X[:80], y[:80])
    >>> model.predict_proba(X[80:]).shape
    (40, 3)
    """

    def __init__(
        self,
        estimator: Any = None,
        method: CalibrationMethod = "sigmoid",
        *,
        cv: Any = 5,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator and the calibration to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Passed on to the estimator as it is.
        y : array-like or sparse matrix of shape (n, q)
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the calibration, and in the estimator if its ``fit`` takes them.
        **fit_params
            Passed on to the estimator's ``fit``, by request where metadata routing is enabled.

        Raises
        ------
        MethodError
            If an argument is unknown, or there are fewer rows than folds.
        """
        self._check_choices(method=METHODS)
        held = self._fit_held_out(X, y, sample_weight, fit_params)
        proba = hasattr(self._base(), "predict_proba")
        self._calibrate = fit_calibration(self.method, held.scores, held.Y, held.weights, proba)
        return self

    def _scores(self, X: Any) -> Any:
        return self._calibrate(self._base_scores(X, self.n_labels_))
