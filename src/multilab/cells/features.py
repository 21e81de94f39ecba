"""Steps before a classifier that read no label: chosen columns and scaling."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_feature_names

from multilab.methods.mixed_scaler import MixedScaler
from multilab.methods.word_weights import WordWeights

__all__ = ["Columns", "Scaling"]


class Columns(TransformerMixin, BaseEstimator):
    """Some columns of X.

    Parameters
    ----------
    columns : ndarray of int
        Their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.cells import Columns
    >>> Columns(np.array([0, 2])).fit_transform(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 3.]])
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing but the number and the names of the columns."""
        _keep_input_names(self, X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of X of shape (n, d), dense or CSR."""
        return _safe_indexing(X, self.columns, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, ``x0``, ``x3``, ... without names of the input."""
        names = input_features if input_features is not None else getattr(self, "feature_names_in_", None)
        names = [f"x{column}" for column in range(self.n_features_in_)] if names is None else names
        return np.asarray(names, dtype=object)[self.columns]


class Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scaling of the features as a method file names it.

    Parameters
    ----------
    kind : {"minmax", "standard", "tfidf"}
        A sparse X keeps its zeros: "minmax" divides by the largest absolute value, "standard" does not centre. "tfidf"
        is for bags of words, see `multilab.methods.word_weights.WordWeights`; it makes X sparse.
    words : ndarray of int, optional
        Columns that hold words of free text, which stay as they are, see `multilab.methods.mixed_scaler.MixedScaler`.
        Their weights are those of TF-IDF already, so that "tfidf" is "standard" there.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.cells import Scaling
    >>> Scaling("minmax").fit_transform(np.array([[1.0], [2.0], [5.0]])).ravel()
    array([0.  , 0.25, 1.  ])
    """

    def __init__(self, kind: Literal["minmax", "standard", "tfidf"] = "minmax", words: Any = None) -> None:
        self.kind = kind
        self.words = words

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the scales of X of shape (n, d), dense or CSR."""
        self.scaler_ = self._scaler(issparse(X)).fit(X)
        _keep_input_names(self, X)
        return self

    def _scaler(self, sparse: bool) -> Any:
        if self.words is not None and len(self.words):
            return MixedScaler(self.words, "minmax" if self.kind == "minmax" else "standard")
        if self.kind == "tfidf":
            return WordWeights()
        if self.kind == "minmax":
            return MaxAbsScaler() if sparse else MinMaxScaler()
        return StandardScaler(with_mean=not sparse)

    def transform(self, X: Any) -> Any:
        """Return the scaled rows; rows beyond those seen in `fit` may lie outside [0, 1]."""
        return self.scaler_.transform(X) if X.shape[0] else X


def _keep_input_names(step: Any, X: Any) -> None:
    _check_feature_names(step, X, reset=True)
    step.n_features_in_ = X.shape[1]
