"""RF-PCT and ERF-PCT: random forests, and extremely randomised forests, of predictive clustering trees."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.forests.compact import CompactForest
from multilab.methods.forests.growing import Kind, grow_forest, single_precision

__all__ = ["ERFPCT", "RFPCT"]


class RFPCT(MultiLabelClassifier):
    """Random forest of predictive clustering trees.

    One tree serves all labels: it splits where the sum of the labels' variances falls most, and a leaf predicts the
    share of its training rows that has each label. The forest averages trees grown on bootstrap samples.

    Parameters
    ----------
    n_estimators : int, default=500
        Number of trees.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Features tried per split, as in scikit-learn.
    max_depth : int, optional
        Unlimited when None.
    min_samples_leaf : int, default=1
        Least number of training rows in a leaf.
    n_jobs : int, optional
        Trees grown at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the trees.

    Attributes
    ----------
    forest_ : CompactForest
    feature_importances_ : ndarray of shape (d,)
        Share of the decrease of impurity, summing to 1.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The trees are scikit-learn's regression trees with several 0/1 outputs, see `grow_forest`. Leaf
    probabilities are kept in single precision, X is compared in single precision. A sparse X is made dense. Kocev et
    al. try ``floor(d / 10) + 1`` features per split; the iMLDF paper the square root.

    References
    ----------
    D. Kocev, C. Vens, J. Struyf, S. Dzeroski. Tree ensembles for predicting structured outputs. Pattern Recognition
    46(3), 2013, 817-833.
    """

    _small: ClassVar[dict[str, Any]] = {"n_estimators": 21}  # odd: no ties
    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_training_permutation": "bootstrap samples are drawn over row numbers",
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where trees agree",
    }
    _kind: ClassVar[Kind] = "random"

    def __init__(
        self,
        n_estimators: int = 500,
        max_features: str | int | float | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If the number of trees is not positive.
        """
        X, Y = self._validate_fit(X, Y)
        if self.n_estimators < 1:
            raise MethodError(f"n_estimators={self.n_estimators!r}: give the number of trees, 1 or more")
        self.forest_, self.feature_importances_ = grow_forest(
            self._kind,
            single_precision(X),
            Y,
            check_random_state(self.random_state).randint(2**31 - 1),
            self.n_jobs,
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
        )
        return self

    @property
    def forests_(self) -> list[CompactForest]:
        """All forests that prediction asks."""
        return [self.forest_]

    def _scores(self, X: Any) -> np.ndarray:
        return self.forest_.predict(single_precision(X))


class ERFPCT(RFPCT):
    """Extremely randomised forest of predictive clustering trees.

    As `RFPCT`, but each tree sees all training rows and tries one random threshold per candidate feature.

    References
    ----------
    D. Kocev, M. Ceci, T. Stepisnik. Ensembles of extremely randomized predictive clustering trees for predicting
    structured outputs. Machine Learning 109, 2020, 2213-2241.
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_classifiers_multilabel_output_format_predict_proba": "scores are exactly 0 or 1 where trees agree",
    }
    _kind: ClassVar[Kind] = "extra"
