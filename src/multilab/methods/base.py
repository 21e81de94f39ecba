"""What all multi-label classifiers share: how X and Y are checked and how scores become decisions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from multilab.ground import MultilabError

__all__ = ["MethodError", "MultiLabelClassifier", "check_labels"]


class MethodError(MultilabError, ValueError):
    """An argument or an input that a method cannot work with."""


def check_labels(Y: Any) -> np.ndarray:
    """Return the label matrix as a new C-contiguous uint8 array of shape (n, q).

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n, q)
        Values 0/1 of any number type, or booleans. One column is allowed, one dimension is not.

    Raises
    ------
    MethodError
        If Y is not two-dimensional or holds anything but 0 and 1.
    ValueError
        If Y holds NaN or infinity (raised by scikit-learn).
    """
    if Y is None:
        raise MethodError("the method requires y to be passed, but the target y is None")
    array = check_array(
        Y,
        accept_sparse=True,
        dtype=None,
        ensure_2d=False,
        input_name="Y",
        ensure_min_samples=0,
        ensure_min_features=0,
    )
    array = array.toarray() if sp.issparse(array) else np.asarray(array)
    positive = array == 1
    if not np.all(positive | (array == 0)):
        raise MethodError(f"{_told(array)} Y must hold 0 and 1 only; for -1/+1 labels pass (Y > 0)")
    if array.ndim != 2:
        raise MethodError(
            f"Y must have two dimensions, one column per label, and has shape {array.shape}; "
            "for a classification with a single label pass y.reshape(-1, 1)"
        )
    if array.shape[1] == 0:
        raise MethodError(f"Y has shape {array.shape}: there must be at least one label column")
    labels = np.zeros(array.shape, dtype=np.uint8)
    labels[positive] = 1
    return labels


def _told(array: np.ndarray) -> str:
    """Return what values that are not 0/1 look like, in scikit-learn's words where it has some."""
    kind = type_of_target(array.ravel())
    if kind == "binary":
        return f"Y holds the values {np.unique(array).tolist()}."
    if kind == "multiclass":
        return "Only binary classification is supported. The type of the target is multiclass."
    return f"Unknown label type: {kind}."


class MultiLabelClassifier(ClassifierMixin, BaseEstimator):
    """Common part of the multi-label classifiers.

    A subclass writes ``fit`` (which starts with ``X, Y = self._validate_fit(X, Y)``) and ``_scores``. It
    overrides ``_score_kind`` when its scores are not probabilities, and ``_decide`` or ``_both`` when its decisions
    are not ``score >= threshold``.

    Attributes
    ----------
    n_features_in_ : int
    n_labels_ : int
    classes_ : ndarray of shape (q, 2)
        ``[0, 1]`` for each label: the form that scikit-learn's scorers and ``cross_val_predict`` both read.

    Notes
    -----
    **Decision rule**: a label is assigned iff its score >= 0.5 (probabilities) or >= 0 (margins), ties
    included. Decisions are int64, whatever the type of the Y seen in ``fit``: differences of unsigned integers would
    wrap around.

    ``predict_proba`` exists where all scores are in [0, 1], else ``decision_function``.

    ``_small`` holds arguments that make a class without a YAML file fast for the common checks;
    ``_expected_failed_checks`` maps names of scikit-learn's checks that cannot hold to the reason why.
    """

    _accepts_sparse: ClassVar[bool] = True
    _small: ClassVar[dict[str, Any]] = {}
    _expected_failed_checks: ClassVar[dict[str, str]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from instances X of shape (n, d) and labels Y of shape (n, q)."""
        raise NotImplementedError(f"{type(self).__name__} has no fit")

    def _fit_checked(self, X: Any, Y: np.ndarray) -> Self:
        """Learn from rows of what an ensemble's ``_validate_fit`` returned, for the members that have a ``_learn``."""
        self.n_features_in_ = X.shape[1]
        self._set_labels(Y.shape[1])
        return self._learn(X, Y)

    def _learn(self, X: Any, Y: np.ndarray) -> Self:
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted without checks")

    def predict_both(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (float64) and decisions (0/1, int64), both of shape (n, q), in one pass over X."""
        X = self._validate_predict(X)
        scores, decisions = self._both(X)
        return scores, decisions.astype(np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """Return the 0/1 decisions of shape (n, q), int64."""
        return self.predict_both(X)[1]

    @available_if(lambda self: self._score_kind() == "probability")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return one score in [0, 1] per instance and label, shape (n, q)."""
        return self._scores(self._validate_predict(X))

    @available_if(lambda self: self._score_kind() != "probability")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return one real score per instance and label, shape (n, q).

        The threshold is 0, or the estimator's argument ``threshold`` where it has one.
        """
        return self._scores(self._validate_predict(X))

    def _score_kind(self) -> str:
        """Return "probability" (threshold 0.5), "margin" (0), or "score" (``threshold``, an argument of the class)."""
        return "probability"

    def _scores(self, X: Any) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} has no scores")

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores >= {"probability": 0.5, "margin": 0.0}[self._score_kind()]

    def _both(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(X)
        return scores, self._decide(scores)

    def _validate_fit(self, X: Any, Y: Any) -> tuple[Any, np.ndarray]:
        """Return X (float64, dense or canonical CSR) and a fresh uint8 Y; never changes the caller's."""
        if Y is None:
            raise MethodError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = _canonical(validate_data(self, X, **self._input_rules()))
        labels = check_labels(Y)
        check_consistent_length(X, labels)
        self._set_labels(labels.shape[1])
        return X, labels

    def _set_labels(self, n_labels: int) -> None:
        self.n_labels_ = n_labels
        self.classes_ = np.tile([0, 1], (n_labels, 1))

    def _validate_predict(self, X: Any) -> Any:
        check_is_fitted(self, "n_labels_")
        return _canonical(validate_data(self, X, reset=False, **self._input_rules()))

    def _input_rules(self) -> dict[str, Any]:
        return {"accept_sparse": "csr" if self._accepts_sparse else False, "dtype": np.float64}


def _canonical(X: Any) -> Any:
    """Sort and merge the entries of a sparse X in a copy, never in the caller's object."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
