"""RF-PCT: random forest of predictive clustering trees."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, WeightedClassifier
from multilab.methods.forests.compact_forest import CompactForest, Kind, grow_forest, single_precision

__all__ = ["RFPCT"]


class RFPCT(WeightedClassifier):
    """Random forest of predictive clustering trees.

    A predictive clustering tree predicts all labels: each split reduces the sum of the labels' variances most, and a
    leaf predicts the share of its training rows that have each label. The forest averages trees grown on bootstrap
    samples.

    Parameters
    ----------
    n_estimators : int, default=500
        Number of trees.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Number of features tried per split, as in scikit-learn.
    max_depth : int, optional
        Maximum depth of the trees; unlimited when None.
    min_samples_leaf : int, default=1
        Minimum number of training rows in a leaf.
    n_jobs : int, optional
        Number of trees grown in parallel; does not change the result.
    random_state : int or RandomState, optional
        Seed of the trees.

    Attributes
    ----------
    forest_ : CompactForest
        The fitted trees.
    feature_importances_ : ndarray of shape (d,)
        Share of each feature in the decrease of impurity; the shares sum to 1.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The trees are regression trees of scikit-learn with several 0/1 outputs, see `grow_forest`. X and leaf
    probabilities have single precision. Weights of the rows count in the splits and the shares of the leaves. A
    sparse X is converted to a dense array. Kocev et al. try ``floor(d / 10) + 1`` features per split; the iMLDF paper
    tries sqrt(d), with 500 trees of unlimited depth.

    References
    ----------
    D. Kocev, C. Vens, J. Struyf, S. Dzeroski. Tree ensembles for predicting structured outputs. Pattern Recognition
    46(3), 2013, 817-833.

    Examples
    --------
    >>> from multilab.methods import RFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = RFPCT(n_estimators=20, random_state=0).fit(X, y)
    >>> model.forest_.predict(X.astype('float32')).shape
    (60, 3)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    _kind: ClassVar[Kind] = "random"
    _makes_dense: ClassVar[bool] = True

    def __init__(
        self,
        n_estimators: int = 500,
        max_features: str | int | float | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        if self.n_estimators < 1:
            raise MethodError(f"n_estimators={self.n_estimators!r}: give the number of trees, 1 or more")
        self.forest_, self.feature_importances_ = grow_forest(
            self._kind,
            single_precision(X),
            Y,
            check_random_state(self.random_state).randint(2**31 - 1),
            self.n_jobs,
            weight,
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
        )

    @property
    def forests_(self) -> list[CompactForest]:
        """The stored forest, as a list like that of the deep forests."""
        return [self.forest_]

    def _scores(self, X: Any) -> np.ndarray:
        return self.forest_.predict(single_precision(X))
