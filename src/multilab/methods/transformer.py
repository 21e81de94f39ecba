"""What selectors and reducers share: how X and Y are checked. They stand before a classifier in a `Pipeline`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from multilab.methods.base import MethodError, check_labels

__all__ = ["MultiLabelTransformer"]


class MultiLabelTransformer(TransformerMixin, BaseEstimator, ABC):
    """Common part of the transformers that learn from labels.

    A subclass writes ``fit`` (which starts with ``X, Y = self._validate_fit(X, Y)``) and ``transform`` (which starts
    with ``X = self._validate_transform(X)``; scikit-learn's `SelectorMixin` brings its own).

    Attributes
    ----------
    n_features_in_ : int

    Notes
    -----
    ``_small`` holds arguments that make the class fast for the common checks; ``_expected_failed_checks`` maps names
    of checks that cannot hold to the reason why.
    """

    _accepts_sparse: ClassVar[bool] = True
    _small: ClassVar[dict[str, Any]] = {}
    _expected_failed_checks: ClassVar[dict[str, str]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)  # what it learns from
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    @abstractmethod
    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from instances X of shape (n, d) and labels Y of shape (n, q)."""

    def _validate_fit(self, X: Any, Y: Any) -> tuple[Any, np.ndarray]:
        """Return X (float64, dense or canonical CSR) and a fresh uint8 Y; never changes the caller's."""
        if Y is None:
            raise MethodError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = _canonical(validate_data(self, X, ensure_min_samples=2, **self._input_rules()))
        labels = check_labels(Y)
        check_consistent_length(X, labels)
        return X, labels

    def _validate_transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return _canonical(validate_data(self, X, reset=False, **self._input_rules()))

    def _input_rules(self) -> dict[str, Any]:
        return {"accept_sparse": "csr" if self._accepts_sparse else False, "dtype": np.float64}


def _canonical(X: Any) -> Any:
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
