"""Dense features for a classifier that does not accept sparse ones."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.transformation.binary_relevance import BinaryRelevance

__all__ = ["DenseFeatures"]


class DenseFeatures(MultiLabelClassifier):
    """Multi-label classifier that makes X dense for a base classifier that refuses sparse input.

    Parameters
    ----------
    estimator : multi-label classifier of this package, optional
        `BinaryRelevance` on ``HistGradientBoostingClassifier()`` when None.

    Attributes
    ----------
    estimator_ : multi-label classifier
        Fitted on the dense features.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    X is made dense once, not once per label. Scores and decisions are those of the classifier.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from multilab.methods import DenseFeatures
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> DenseFeatures().fit(sp.csr_array(X), y).predict_proba(sp.csr_array(X)).shape
    (60, 3)
    """

    _makes_dense: ClassVar[bool] = True

    def __init__(self, estimator: BaseEstimator | None = None) -> None:
        self.estimator = estimator

    def _fit(self, X: Any, Y: Any) -> None:
        self.estimator_ = clone(self._multilabel()).fit(_dense(X), Y)

    def _multilabel(self) -> BaseEstimator:
        return BinaryRelevance(HistGradientBoostingClassifier()) if self.estimator is None else self.estimator

    def _score_kind(self) -> str:
        return str(self._multilabel()._score_kind())

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.estimator_.predict_with_scores(_dense(X))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X
