"""Base classes of multi-label classifiers and transformers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from multilab.core.numbers import whole_number
from multilab.core.tables import in_another_order, pandas_frame
from multilab.methods._array_api import keep_namespace, to_numpy
from multilab.methods.errors import MethodError
from multilab.methods.labels import (
    Layout,
    binary_classes,
    canonical_labels,
    check_labels,
    label_names,
    labels_and_scores,
    target_values,
    to_frame,
    with_tag_columns,
)

__all__ = [
    "BatchClassifier",
    "IncrementalClassifier",
    "MethodError",
    "MultiLabelClassifier",
    "MultiLabelTags",
    "MultiLabelTransformer",
    "PartialClassifier",
    "WeightedClassifier",
    "WeightedPartialClassifier",
]

_BLOCK_SCORES = 2**24  # scores of one block of rows: 128 MiB


def _highest(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k highest scores of each row, highest first, equal ones in ascending order."""
    kth = np.partition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k, None]
    above = scores > kth
    tied = scores == kth
    tied &= np.cumsum(tied, axis=1) <= k - above.sum(axis=1, keepdims=True)
    columns = np.nonzero(above | tied)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(slots=True)
class MultiLabelTags(Tags):
    """scikit-learn's tags of an estimator, and two of this package.

    Attributes
    ----------
    makes_dense : bool
        It makes a sparse X dense.
    learns_from_batches : bool
        With its arguments, it can learn by `BatchClassifier.fit_batches`.

    Examples
    --------
    >>> from multilab.methods import MLNB, RELM
    >>> from sklearn.utils import get_tags
    >>> get_tags(MLNB()).makes_dense, get_tags(RELM()).learns_from_batches
    (True, True)
    """

    makes_dense: bool = False
    learns_from_batches: bool = False


class _MultiLabelInput:
    """Tags and validation of input that classifiers and transformers share."""

    _accepts_sparse: ClassVar[bool] = True
    _feature_types: ClassVar[tuple[type, ...]] = (np.float64,)  # types that X keeps; any other becomes the first
    _sparse_labels: ClassVar[Layout | None] = None  # then a sparse Y reaches `_fit` as canonical uint8 CSR or CSC
    _accepts_missing_labels: ClassVar[bool] = False  # then Y may hold -1 (int8)
    _makes_dense: ClassVar[bool] = False  # of a sparse X
    _learns_from_batches: ClassVar[bool] = False
    _scores_of_labels: ClassVar[bool] = False  # X has columns of scores in the order of the labels, which tags lack
    _min_samples: ClassVar[int] = 1

    def __sklearn_tags__(self) -> Any:
        known = super().__sklearn_tags__()  # type: ignore[misc]
        tags = MultiLabelTags(
            **{field.name: getattr(known, field.name) for field in fields(known)},
            makes_dense=self._makes_dense,
            learns_from_batches=self._learns_from_batches,
        )
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.one_d_labels = True  # two classes
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    def _validate_fit(self, X: Any, y: Any, y_mask: Any = None, classes: Any = None) -> tuple[Any, Any]:
        """Return X (float64, dense or canonical CSR) and y as a new array; the caller's stay as they are.

        y is uint8, or int8 with -1 where a label is not observed, which only estimators with
        ``_accepts_missing_labels`` see. It is dense, unless ``_sparse_labels`` of the estimator has a layout and a
        sparse y of observed labels is given. A one-dimensional y of two classes is a single label, the larger class;
        ``classes`` are those of rows to come, too.
        """
        if y is None:
            raise MethodError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self._scores_of_labels:
            y, X = labels_and_scores(y, X, names=("y", "X"))
        X = self._validate_features(X, ensure_min_samples=self._min_samples)
        y, y_mask = with_tag_columns(to_numpy(y)), to_numpy(y_mask)
        names = label_names(y)
        classes, y = binary_classes(y, classes)
        Y = canonical_labels(y, self._sparse_labels) if self._sparse_labels and y_mask is None else None
        if Y is None:
            Y = check_labels(y, y_mask, missing=True, owner=type(self).__name__)
        if Y.dtype == np.int8 and not self._accepts_missing_labels:
            raise MethodError(
                f"{type(self).__name__} cannot learn from partially observed labels, and {(Y < 0).sum()} of the "
                f"{Y.size} labels in y are NaN or -1; the guide on missing labels lists the methods that can"
            )
        check_consistent_length(X, Y)
        self._set_labels(Y.shape[1], classes, names)
        return X, Y

    def _set_labels(self, n_labels: int, classes: np.ndarray | None = None, names: np.ndarray | None = None) -> None:
        """Keep what predictions need to know of the labels; a transformer makes none."""

    def _check_choices(self, **choices: tuple[Any, ...]) -> None:
        """Raise a `MethodError` if an argument is none of the values that it can have."""
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise MethodError(f"{name}={getattr(self, name)!r}: give {' or '.join(map(repr, allowed))}")

    def _validate_features(self, X: Any, **options: Any) -> Any:
        accepted = "csr" if self._accepts_sparse else False
        X = pandas_frame(to_numpy(X))
        X = validate_data(self, X, accept_sparse=accepted, dtype=list(self._feature_types), **options)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if sp.issparse(X) and X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= np.iinfo(np.int32).max:
            # scikit-learn's linear models take no other indices
            X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
        return X


class MultiLabelClassifier(_MultiLabelInput, ClassifierMixin, BaseEstimator):
    """Base class of the multi-label classifiers: validation of input, scores and decisions.

    A subclass writes ``_fit(X, Y)``, which gets validated rows and labels, and ``_scores(X)``. It overrides
    ``_score_kind`` when its scores are not probabilities ("score" needs an argument ``threshold``), and ``_decide`` or
    ``_predict`` when its decisions are not ``score >= threshold``.

    A subclass whose ``fit`` takes more than X and y derives from `WeightedClassifier` (``sample_weight``),
    `PartialClassifier` (``y_mask``) or `WeightedPartialClassifier` (both).

    Attributes
    ----------
    n_features_in_ : int
        Number of features, d.
    n_labels_ : int
        Number of labels, q.
    classes_ : ndarray of shape (q, 2)
        ``[0, 1]`` for each label: the form that scikit-learn's scorers and ``cross_val_predict`` both read. The shape
        is (2,) after a fit on a one-dimensional y.
    label_names_ : ndarray of shape (q,)
        Names of the columns of y. Missing unless y was a data frame (or a series) with names that are text, or tags.

    Notes
    -----
    **Decision rule**: a label is assigned iff its score >= 0.5 (probabilities) or >= 0 (margins), ties
    included. Decisions are int64, whatever the type of the y seen in ``fit``: differences of unsigned integers would
    wrap around.

    ``predict_proba`` exists if all scores are in [0, 1], otherwise ``decision_function`` does.

    **Missing labels**: a `PartialClassifier` learns from the observed labels alone. Unobserved labels are NaN in a
    float y, -1 in an int8 y, or False in ``y_mask`` (the form for a sparse y); `check_labels` passes them on as -1. The
    other classes refuse unobserved labels.

    **Tags** can replace the matrix. The tags of a row are a list or set of texts, or a text such as ``red|blue``
    (separated by ``|``, ``;`` or ``,``) or with one tag; y is a list, an array, a series or a one-column data frame of
    these, where a missing cell is a row without tags. The labels are the sorted tags
    (`sklearn.preprocessing.MultiLabelBinarizer` has the same columns), and their names are in ``label_names_``. If y
    has only one or two different texts without a separator, they are the classes of a one-dimensional y.

    **One-dimensional y**: two classes of any type make a binary classifier in scikit-learn's sense, as with its own
    multi-label classifiers (`sklearn.neighbors.KNeighborsClassifier`): ``predict`` returns shape (n,) with these
    classes, ``predict_proba`` shape (n, 2), and ``decision_function`` shape (n,), moved so that its threshold is 0.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            Labels, 0/1; in one dimension, two classes of any type.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, or an argument of the estimator is out of range or does not fit the data.
        """
        self._fit(*self._validate_fit(X, y))
        return self

    def _fit(self, *args: Any, **kwargs: Any) -> None:
        """Learn from validated X (float64, dense or CSR) and Y (see `_validate_fit`), and weights if `fit` takes any.

        Parameters are checked here; ``n_features_in_``, ``n_labels_`` and ``classes_`` are set already.
        """
        raise NotImplementedError(f"{type(self).__name__} has no _fit")

    @keep_namespace
    def predict_with_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (float64) and decisions (0/1, int64), both of shape (n, q), in one pass over X.

        The shape is (n, 1) after a fit on a one-dimensional y, whatever its classes.
        """
        X = self._validate_predict(X)
        scores, decisions = self._predict(X)
        return scores, decisions.astype(np.int64)

    @keep_namespace
    def predict(self, X: Any) -> np.ndarray:
        """Return the 0/1 decisions of shape (n, q), int64; classes of shape (n,) after a fit on such a y."""
        decisions = self.predict_with_scores(X)[1]
        return decisions if self.classes_.ndim == 2 else self.classes_[decisions[:, 0]]

    def predict_frame(self, X: Any, *, scores: bool = False) -> Any:
        """Return the decisions, or the scores, as a DataFrame with one column per label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        scores : bool, default=False
            Return the scores of `predict_with_scores` instead of what `predict` returns.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            The columns are ``label_names_``, or ``label0``, ``label1``, ... if y had no names; the index is that of X,
            if X is a DataFrame.

        Examples
        --------
        >>> import pandas as pd
        >>> from multilab.methods import MLkNN
        >>> X = pd.DataFrame({"length": [0.0, 0.1, 1.0, 1.1]}, index=["a", "b", "c", "d"])
        >>> Y = pd.DataFrame({"short": [1, 1, 0, 0], "long": [0, 0, 1, 1]}, index=X.index)
        >>> MLkNN(k=1).fit(X, Y).predict_frame(X.loc[["b", "c"]])
           short  long
        b      1     0
        c      0     1
        """
        X = to_numpy(X)
        values = self.predict_with_scores(X)[0] if scores else self.predict(X)
        return to_frame(values, getattr(self, "label_names_", None), X)

    def predict_sparse(self, X: Any) -> sp.csr_array:
        """Return the 0/1 decisions as a CSR array of shape (n, q), int64.

        Rows are scored in blocks of about 2^24 scores, so that no dense matrix of shape (n, q) is needed.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from multilab.methods import MLkNN
        >>> from sklearn.datasets import make_multilabel_classification
        >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
        >>> MLkNN(k=5).fit(X, sp.csr_array(y)).predict_sparse(X[:2]).toarray()
        array([[1, 1, 1],
               [1, 1, 0]])
        """
        parts = [sp.csr_array(decisions.astype(np.int64)) for _, decisions in self._predict_blocks(X)]
        return sp.csr_array(sp.vstack(parts))

    @keep_namespace
    def predict_top_k(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels with the highest scores of each instance, computed in blocks as `predict_sparse`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        k : int, default=5
            Number of labels, from 1 to q.

        Returns
        -------
        labels : int64 ndarray of shape (n, k)
            Label numbers, the highest score first; of equal scores the smaller number.
        scores : float64 ndarray of shape (n, k)
            Their scores.

        Raises
        ------
        MethodError
            If k is not a whole number, or is out of range.

        Examples
        --------
        >>> from multilab.methods import MLkNN
        >>> from sklearn.datasets import make_multilabel_classification
        >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
        >>> labels, scores = MLkNN(k=5).fit(X, y).predict_top_k(X[:2], k=2)
        >>> labels
        array([[2, 0],
               [0, 1]])
        >>> scores.round(2)
        array([[0.85, 0.72],
               [0.64, 0.64]])
        """
        check_is_fitted(self, "n_labels_")
        if whole_number(k, "k", 1, MethodError) > self.n_labels_:
            raise MethodError(f"`k` must be <= {self.n_labels_}, the number of labels, got {k}")
        labels, values = [], []
        for scores, _ in self._predict_blocks(X):
            best = _highest(scores, k)
            labels.append(best)
            values.append(np.take_along_axis(scores, best, axis=1))
        return np.concatenate(labels), np.concatenate(values)

    def _predict_blocks(self, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield scores and decisions of one block of rows after another."""
        X = self._validate_predict(X)
        step = max(1, _BLOCK_SCORES // self.n_labels_)
        for start in range(0, X.shape[0], step):
            yield self._predict(X[start : start + step])

    @available_if(lambda self: self._score_kind() == "probability")
    @keep_namespace
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return one score in [0, 1] per instance and label, shape (n, q); (n, 2) after a fit on y of shape (n,)."""
        return self._as_probabilities(self._scores(self._validate_predict(X)))

    @available_if(lambda self: self._score_kind() != "probability")
    @keep_namespace
    def decision_function(self, X: Any) -> np.ndarray:
        """Return one real score per instance and label, shape (n, q).

        The threshold is 0, or the estimator's argument ``threshold`` where it has one. After a fit on a y of shape (n,)
        the shape is (n,) and the threshold 0.
        """
        scores = self._scores(self._validate_predict(X))
        return scores if self.classes_.ndim == 2 else scores[:, 0] - self._threshold()

    def _as_probabilities(self, scores: np.ndarray) -> np.ndarray:
        return scores if self.classes_.ndim == 2 else np.column_stack([1.0 - scores, scores])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels, or whose class, are all predicted correctly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            True labels, compared by position. A data frame must have its columns in the order of ``label_names_``. Tags
            that `fit` has not seen cannot be predicted; they are left out, and one warning counts them.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        MethodError
            If y is a data frame with the columns of ``label_names_`` in another order, or holds tags and the labels of
            the model have no names.
        """
        y = with_tag_columns(y, model=self)
        if in_another_order(getattr(self, "label_names_", None), getattr(y, "columns", None)):
            raise MethodError("y has the labels of the model in another order; pass y[model.label_names_]")
        return super().score(X, target_values(y), sample_weight)

    def _score_kind(self) -> str:
        """Return "probability" (threshold 0.5), "margin" (0), or "score" (``threshold``, an argument of the class)."""
        return "probability"

    def _decides_by_threshold(self) -> bool:
        """Return whether a label is assigned where its score reaches `_threshold`."""
        return True

    def _threshold(self) -> float:
        """Return the score from which on a label is assigned."""
        kind = self._score_kind()
        if kind == "score":
            return self.threshold
        return {"probability": 0.5, "margin": 0.0}[kind]

    def _scores(self, X: Any) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} has no scores")

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores >= self._threshold()

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        scores = self._scores(X)
        return scores, self._decide(scores)

    def _set_labels(self, n_labels: int, classes: np.ndarray | None = None, names: np.ndarray | None = None) -> None:
        self.n_labels_ = n_labels
        self.classes_ = np.tile([0, 1], (n_labels, 1)) if classes is None else classes
        if names is not None:
            self.label_names_ = names
        elif hasattr(self, "label_names_"):  # of an earlier fit
            del self.label_names_

    def _validate_predict(self, X: Any) -> Any:
        check_is_fitted(self, "n_labels_")
        return self._validate_features(X, reset=False)


class BatchClassifier(MultiLabelClassifier):
    """Base class of the classifiers that learn from batches of rows, of which only one is held at a time.

    A subclass writes ``_fit_batches(batches, n_rows)``, which iterates over `_validated` batches, and overrides
    ``_batches_fault`` if it needs all rows with some of its arguments.
    """

    def fit_batches(self, batches: Iterable[tuple[Any, Any]], *, n_rows: int | None = None) -> Self:
        """Learn from batches of rows, of which only one is held at a time.

        Parameters
        ----------
        batches : iterable of (X, y)
            Rows and labels as for `fit`, all labels observed. If several passes are needed, the iterable must start
            from the beginning each time, as a list does and a generator does not.
        n_rows : int, optional
            Number of rows of all batches, which saves the pass that some estimators need to count them.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If all rows are needed with these arguments, labels are missing, or there is no row.

        Examples
        --------
        >>> import numpy as np
        >>> from multilab.methods import RELM
        >>> from sklearn.datasets import make_multilabel_classification
        >>> X, Y = make_multilabel_classification(n_samples=600, n_features=6, n_classes=3, random_state=0)
        >>> batches = [(X[start : start + 100], Y[start : start + 100]) for start in range(0, 600, 100)]
        >>> model = RELM(n_hidden=20, random_state=0).fit_batches(batches)
        >>> whole = RELM(n_hidden=20, random_state=0).fit(X, Y)
        >>> bool(np.abs(model.decision_function(X) - whole.decision_function(X)).max() < 1e-8)
        True
        """
        if fault := self._batches_fault():
            raise MethodError(fault)
        self._fit_batches(batches, n_rows)
        return self

    def _fit_batches(self, batches: Iterable[tuple[Any, Any]], n_rows: int | None) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _fit_batches")

    def _batches_fault(self) -> str | None:
        """Return why the classifier, with its arguments, needs all rows at once; None if it does not."""
        if getattr(self, "label_weight", None) is not None:
            return f"{type(self).__name__} cannot weight labels in batches of rows; leave out label_weight"
        return None

    @property
    def _learns_from_batches(self) -> bool:  # type: ignore[override]
        return self._batches_fault() is None

    def _check_repeatable(self, batches: Iterable[Any]) -> None:
        """Raise a `MethodError` if only one pass over the batches is possible."""
        if iter(batches) is batches:
            raise MethodError("several passes are needed; give a list of batches, not a generator")

    def _validated(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield rows and labels as `fit` would see them, Y dense."""
        first = True
        for X, y in batches:
            yield self._validate_batch(X, y, first)
            first = False
        if first:
            raise MethodError("there is no row to learn from")

    def _validate_batch(self, X: Any, y: Any, first: bool, classes: Any = None) -> tuple[Any, np.ndarray]:
        if first:
            X, Y = self._validate_fit(X, y, classes=classes)
        else:
            X = self._validate_features(X, reset=False)
            y = to_numpy(y)
            if self.classes_.ndim == 1:
                _, y = binary_classes(y, self.classes_)
            else:
                y = with_tag_columns(y, getattr(self, "label_names_", None))
            Y = check_labels(y, missing=True, owner=type(self).__name__)
            if Y.shape != (X.shape[0], self.n_labels_):
                raise MethodError(f"a batch has labels of shape {Y.shape}, expected ({X.shape[0]}, {self.n_labels_})")
        if Y.dtype == np.int8:
            raise MethodError(f"{type(self).__name__} cannot learn from missing labels in batches of rows")
        return X, Y.toarray() if sp.issparse(Y) else Y


class IncrementalClassifier(BatchClassifier):
    """Base class of the classifiers that learn from batches of rows in one pass.

    A subclass writes ``_add_batch(X, Y, kept)``, which returns what it keeps of all rows so far (``kept`` is what it
    kept of those before the batch, None at the first), and ``_solve(kept)``, which sets its fitted attributes.
    """

    @available_if(lambda self: self._learns_from_batches)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from a batch of rows in addition to those of earlier calls; the first after `fit` starts anew.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,)
            All labels observed.
        classes : array-like of shape (2,), optional
            The two classes of a one-dimensional y, in the first call, where its batch may hold one of them only.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, labels are missing, or an argument is out of range.
        """
        kept = getattr(self, "_kept", None)
        X, Y = self._validate_batch(X, y, kept is None, None if classes is None else np.unique(classes))
        self._kept = self._add_batch(X, Y, kept)
        self._solve(self._kept)
        return self

    def _fit_batches(self, batches: Iterable[tuple[Any, Any]], n_rows: int | None) -> None:
        kept = None
        for X, Y in self._validated(batches):
            kept = self._add_batch(X, Y, kept)
        self._solve(kept)  # a fitted model without what only more rows would need

    def _add_batch(self, X: Any, Y: np.ndarray, kept: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _add_batch")

    def _solve(self, kept: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _solve")

    def _set_labels(self, n_labels: int, classes: np.ndarray | None = None, names: np.ndarray | None = None) -> None:
        super()._set_labels(n_labels, classes, names)
        self.__dict__.pop("_kept", None)  # a fit starts anew


def refuse_cell_weights(sample_weight: Any, owner: str) -> None:
    """Raise a `MethodError` if there is a weight for each label of a row, where an estimator takes one for each row."""
    if _ndim(sample_weight) == 2:
        raise MethodError(
            f"sample_weight has two dimensions, and {owner} takes one weight per row, shape (n,); the guide on "
            "imbalance lists the methods that take one for each label of a row"
        )


def _ndim(array: Any) -> int:
    return int(array.ndim) if hasattr(array, "ndim") else np.asarray(array).ndim


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(to_numpy(matrix))


class WeightedClassifier(MultiLabelClassifier):
    """Base class of the classifiers whose ``fit`` takes weights of the rows; they write ``_fit(X, Y, weight)``.

    Those that take a weight for each label of a row set ``_accepts_cell_weights``; they also learn from missing labels.
    """

    _accepts_cell_weights: ClassVar[bool] = False  # then the weight of `_fit` may have shape (n, q)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            Labels, 0/1; in one dimension, two classes of any type.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, >= 0. A row of weight 0 is absent. An estimator with base classifiers passes the
            weights to these, which must take them.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, or an argument of the estimator is out of range or does not fit the data.
        """
        self._fit(*self._validate_weighted(X, y, sample_weight))
        return self

    def _fit_validated(self, X: Any, Y: Any, weight: np.ndarray | None) -> Self:
        """Learn from rows that an ensemble has validated."""
        self.n_features_in_ = X.shape[1]
        self._set_labels(Y.shape[1])
        self._fit(X, Y, weight)
        return self

    def _validate_weighted(
        self, X: Any, y: Any, sample_weight: Any, y_mask: Any = None
    ) -> tuple[Any, Any, np.ndarray | None]:
        """Return X and y as `_validate_fit` does, and the weights (None: all count 1), shape (n,) or (n, q).

        Rows of weight 0 are left out, so that they are absent for everything that counts or draws rows. A label of
        weight 0 in a row is one that was not observed.
        """
        if _ndim(sample_weight) == 2:
            if not self._accepts_cell_weights:
                refuse_cell_weights(sample_weight, type(self).__name__)
            return self._validate_cell_weights(X, y, sample_weight, y_mask)
        X, Y = self._validate_fit(X, y, y_mask)
        if sample_weight is None:
            return X, Y, None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if weight.all():
            return X, Y, weight.copy()
        rows = np.flatnonzero(weight)
        Y = Y[rows]
        if Y.dtype == np.int8 and not sp.issparse(Y):  # a label may have lost the rows that observe it
            Y[:, (Y < 0).all(axis=0)] = 0
        return X[rows], Y, weight[rows]

    def _validate_cell_weights(self, X: Any, y: Any, sample_weight: Any, y_mask: Any) -> tuple[Any, Any, np.ndarray]:
        """Return X and y, and weights of shape (n, q): 0 where a label is not observed, else positive."""
        if in_another_order(getattr(y, "columns", None), getattr(sample_weight, "columns", None)):
            raise MethodError("sample_weight has the columns of y in another order: pass sample_weight[y.columns]")
        weight = check_array(_dense(sample_weight), dtype=np.float64, copy=True, input_name="sample_weight")
        if (weight < 0).any():
            raise MethodError("sample_weight holds a negative number: a weight is >= 0")
        if not weight.all():
            mask = np.ones(weight.shape, dtype=bool) if y_mask is None else _dense(y_mask)
            # another shape is refused with y_mask
            y_mask = np.where(weight > 0, mask, False) if mask.shape == weight.shape else mask
        X, Y = self._validate_fit(X, y, y_mask)
        if weight.shape != Y.shape:
            raise MethodError(
                f"sample_weight has shape {weight.shape} and y {Y.shape}: give one weight per label of a row"
            )
        if Y.dtype == np.int8:
            weight[Y < 0] = 0.0
        weight[:, ~weight.any(axis=0)] = 1.0  # a label that no row observes is one that no row has
        return X, Y, weight


class PartialClassifier(MultiLabelClassifier):
    """Base class of the classifiers that learn from partially observed labels; they write ``_fit(X, Y)``."""

    _accepts_missing_labels: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, *, y_mask: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            Labels, 0/1; in one dimension, two classes of any type. NaN, or -1 in an int8 y, where a label is not
            observed.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, or an argument of the estimator is out of range or does not fit the data.
        """
        self._fit(*self._validate_fit(X, y, y_mask))
        return self


class WeightedPartialClassifier(WeightedClassifier):
    """Base class of the classifiers that take weights and learn from partially observed labels.

    They write ``_fit(X, Y, weight)``.
    """

    _accepts_missing_labels: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, y_mask: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            Labels, 0/1; in one dimension, two classes of any type. NaN, or -1 in an int8 y, where a label is not
            observed.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, >= 0. A row of weight 0 is absent. An estimator with base classifiers passes the
            weights to these, which must take them. Some estimators also take the shape (n, q), with a weight for each
            label of a row; a label of weight 0 is not observed.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, or an argument of the estimator is out of range or does not fit the data.
        """
        self._fit(*self._validate_weighted(X, y, sample_weight, y_mask))
        return self


class MultiLabelTransformer(_MultiLabelInput, TransformerMixin, BaseEstimator, ABC):
    """Base class of the transformers that learn from labels: selectors and reducers, before a classifier in a pipeline.

    A subclass writes ``_fit(X, Y)``, which gets validated rows and labels, and ``transform`` (which starts with
    ``X = self._validate_transform(X)``; scikit-learn's `SelectorMixin` brings its own).

    Attributes
    ----------
    n_features_in_ : int
    """

    _min_samples: ClassVar[int] = 2

    def fit(self, X: Any, y: Any, *, y_mask: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q) or (n,), or n collections of tags
            Labels, 0/1; in one dimension, two classes of any type.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed; only some transformers learn from partially observed labels.

        Returns
        -------
        self

        Raises
        ------
        MethodError
            If y is not a label matrix, or an argument of the estimator is out of range or does not fit the data.
        """
        self._fit(*self._validate_fit(X, y, y_mask))
        return self

    @abstractmethod
    def _fit(self, X: Any, Y: Any) -> Any:
        """Learn from validated X (float64, dense or CSR) and Y (see `_validate_fit`)."""

    def _validate_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._validate_features(X, reset=False)
