"""Base classes of multi-label classifiers and transformers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from multilab.core import MultilabError

__all__ = ["MethodError", "MultiLabelClassifier", "MultiLabelTransformer", "check_labels"]


class MethodError(MultilabError, ValueError):
    """An argument or an input that a method cannot work with."""


def check_labels(y: Any, y_mask: Any = None, *, missing: bool = False) -> np.ndarray:
    """Return the label matrix as a new C-contiguous array of shape (n, q): uint8, or int8 with -1 for "not observed".

    Parameters
    ----------
    y : array-like or sparse matrix of shape (n, q)
        Values 0/1 of any number type, or booleans. One column is allowed, one dimension is not. NaN, and -1 in an int8
        y, mean that a label was not observed.
    y_mask : array-like or sparse matrix of shape (n, q), optional
        True where the label is observed; the values of y elsewhere are ignored.
    missing : bool, default=False
        Whether labels may be unobserved.

    Returns
    -------
    ndarray of shape (n, q)
        uint8 where all labels are observed, else int8. A label that no row observes counts as one that no row has.

    Raises
    ------
    MethodError
        If y is not two-dimensional, holds anything else, or has unobserved labels although ``missing`` is False.
    ValueError
        If y holds infinity (raised by scikit-learn).
    """
    if y is None:
        raise MethodError("the method requires y to be passed, but the target y is None")
    array = check_array(
        y,
        accept_sparse=True,
        dtype=None,
        ensure_2d=False,
        ensure_all_finite="allow-nan",
        input_name="y",
        ensure_min_samples=0,
        ensure_min_features=0,
    )
    array = array.toarray() if sp.issparse(array) else np.asarray(array)
    hidden = _unobserved(array, y_mask)
    positive = array == 1
    valid = positive | (array == 0)
    if hidden is not None:
        valid |= hidden
    if not np.all(valid):
        values = array if hidden is None else array[~hidden]
        raise MethodError(f"{_describe(values)} y must hold 0 and 1 only; for -1/+1 labels pass (y > 0)")
    if array.ndim != 2:
        raise MethodError(
            f"y must have two dimensions, one column per label, and has shape {array.shape}; "
            "for a classification with a single label pass y.reshape(-1, 1)"
        )
    if array.shape[1] == 0:
        raise MethodError(f"y has shape {array.shape}: there must be at least one label column")
    labels = np.zeros(array.shape, dtype=np.uint8)
    labels[positive] = 1
    if hidden is None:
        return labels
    if not missing:
        raise MethodError(f"{hidden.sum()} of the {hidden.size} labels in y are not observed (NaN or -1)")
    return _with_unobserved(labels, hidden)


def _unobserved(array: np.ndarray, y_mask: Any) -> np.ndarray | None:
    """Return where labels are not observed, or None if all are."""
    hidden: Any = False
    if array.dtype.kind in "fO":
        hidden = array != array  # NaN, also among objects
    elif array.dtype == np.int8:
        hidden = array == -1
        if y_mask is None and hidden.any() and not (array == 0).any():
            raise MethodError(
                "y holds no 0, and -1 in an int8 y means that a label is not observed; for -1/+1 labels pass (y > 0)"
            )
    if y_mask is not None:
        mask = y_mask.toarray() if sp.issparse(y_mask) else np.asarray(y_mask)
        if mask.shape != array.shape:
            raise MethodError(
                f"y_mask has shape {mask.shape} and y {array.shape}: give one value per label of each row"
            )
        if not np.isin(mask, (0, 1)).all():
            raise MethodError("y_mask must be True where a label is observed and False elsewhere")
        hidden = (mask == 0) | hidden
    return hidden if np.any(hidden) else None


def _with_unobserved(labels: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the labels as int8 with -1 where they are hidden; a label that all rows hide is 0 in all of them."""
    if hidden.all():
        raise MethodError("no label of y is observed: there is nothing to learn from")
    partial = hidden & ~hidden.all(axis=0)
    labels[hidden] = 0
    if not partial.any():
        return labels
    return np.where(partial, np.int8(-1), labels.astype(np.int8))


def _describe(array: np.ndarray) -> str:
    """Describe values that are not 0/1, in scikit-learn's terms where it has some."""
    kind = type_of_target(array.ravel())
    if kind == "binary":
        return f"y holds the values {np.unique(array).tolist()}."
    if kind == "multiclass":
        return "Only binary classification is supported. The type of the target is multiclass."
    return f"Unknown label type: {kind}."


class _MultiLabelInput:
    """Tags and validation of input that classifiers and transformers share."""

    _accepts_sparse: ClassVar[bool] = True
    _accepts_missing_labels: ClassVar[bool] = False  # then `fit` has an argument `y_mask` and Y may hold -1 (int8)
    _min_samples: ClassVar[int] = 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    def _validate_fit(self, X: Any, y: Any, y_mask: Any = None) -> tuple[Any, np.ndarray]:
        """Return X (float64, dense or canonical CSR) and y as a new array; the caller's stay as they are.

        y is uint8, or int8 with -1 where a label is not observed, which only estimators with
        ``_accepts_missing_labels`` see.
        """
        if y is None:
            raise MethodError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._validate_features(X, ensure_min_samples=self._min_samples)
        Y = check_labels(y, y_mask, missing=True)
        if Y.dtype == np.int8 and not self._accepts_missing_labels:
            raise MethodError(
                f"{type(self).__name__} cannot learn from partially observed labels, and {(Y < 0).sum()} of the "
                f"{Y.size} labels in y are NaN or -1; the guide on missing labels lists the methods that can"
            )
        check_consistent_length(X, Y)
        return X, Y

    def _check_choices(self, **choices: tuple[Any, ...]) -> None:
        """Raise a `MethodError` if an argument is none of the values that it can have."""
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise MethodError(f"{name}={getattr(self, name)!r}: give {' or '.join(map(repr, allowed))}")

    def _validate_features(self, X: Any, **options: Any) -> Any:
        accepted = "csr" if self._accepts_sparse else False
        X = validate_data(self, X, accept_sparse=accepted, dtype=np.float64, **options)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X


class MultiLabelClassifier(_MultiLabelInput, ClassifierMixin, BaseEstimator):
    """Base class of the multi-label classifiers: validation of input, scores and decisions.

    A subclass writes ``fit`` (which starts with ``X, Y = self._validate_fit(X, y)``) and ``_scores``. It
    overrides ``_score_kind`` when its scores are not probabilities, and ``_decide`` or ``_predict`` when its decisions
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
    included. Decisions are int64, whatever the type of the y seen in ``fit``: differences of unsigned integers would
    wrap around.

    ``predict_proba`` exists where all scores are in [0, 1], else ``decision_function``.

    **Missing labels**: a class with ``_accepts_missing_labels`` learns from the observed labels alone. Unobserved ones
    are NaN in a float y, -1 in an int8 y, or False in ``y_mask`` (the form for a sparse y); `check_labels` passes them
    on as -1. The other classes refuse them.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from instances X of shape (n, d) and labels y of shape (n, q)."""
        raise NotImplementedError(f"{type(self).__name__} has no fit")

    def _fit_validated(self, X: Any, Y: np.ndarray) -> Self:
        """Learn from rows that an ensemble has validated, for members with a ``_fit``."""
        self.n_features_in_ = X.shape[1]
        self._set_labels(Y.shape[1])
        return self._fit(X, Y)

    def _fit(self, X: Any, Y: np.ndarray) -> Self:
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted on validated input")

    def predict_with_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (float64) and decisions (0/1, int64), both of shape (n, q), in one pass over X."""
        X = self._validate_predict(X)
        scores, decisions = self._predict(X)
        return scores, decisions.astype(np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """Return the 0/1 decisions of shape (n, q), int64."""
        return self.predict_with_scores(X)[1]

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

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(X)
        return scores, self._decide(scores)

    def _validate_fit(self, X: Any, y: Any, y_mask: Any = None) -> tuple[Any, np.ndarray]:
        X, Y = super()._validate_fit(X, y, y_mask)
        self._set_labels(Y.shape[1])
        return X, Y

    def _set_labels(self, n_labels: int) -> None:
        self.n_labels_ = n_labels
        self.classes_ = np.tile([0, 1], (n_labels, 1))

    def _validate_predict(self, X: Any) -> Any:
        check_is_fitted(self, "n_labels_")
        return self._validate_features(X, reset=False)


class MultiLabelTransformer(_MultiLabelInput, TransformerMixin, BaseEstimator, ABC):
    """Base class of the transformers that learn from labels: selectors and reducers, before a classifier in a pipeline.

    A subclass writes ``fit`` (which starts with ``X, Y = self._validate_fit(X, y)``) and ``transform`` (which starts
    with ``X = self._validate_transform(X)``; scikit-learn's `SelectorMixin` brings its own).

    Attributes
    ----------
    n_features_in_ : int
    """

    _min_samples: ClassVar[int] = 2

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from instances X of shape (n, d) and labels y of shape (n, q)."""

    def _validate_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validate_features(X, reset=False)
