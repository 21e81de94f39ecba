"""EBR: binary relevance on bootstrap samples."""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from multilab.methods._weights import LabelWeight
from multilab.methods.ensembles._members import BaggedEnsemble, Combine
from multilab.methods.labels import Layout
from multilab.methods.transformation._binary import Calibration
from multilab.methods.transformation.binary_relevance import BinaryRelevance

__all__ = ["EBR"]


class EBR(BaggedEnsemble):
    """Ensemble of binary relevance models on bootstrap samples, combined by their mean confidence.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each member and label. When None an entropy tree with 2 rows per leaf, instead of the paper's
        C4.5: ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=1.0
        Share of the rows that a member sees.
    bootstrap : bool, default=True
        Rows are drawn with replacement. MEKA's ``EnsembleML`` draws 67 % without.
    combine : {"confidence", "vote"}, default="confidence"
        The score of a label is the mean of the members' probabilities, or the share of members that assign it.
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        As in `BinaryRelevance`; an SVC needs one for "confidence".
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples and of the base classifiers.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        As in `BinaryRelevance`; "balanced" counts the rows that a member sees.

    Attributes
    ----------
    estimators_ : list of BinaryRelevance
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff its score is >= 0.5. A drawn row is repeated, so that the two rows a leaf needs may be
    copies of one: as in Weka, where a bootstrap sample is a set of weights.

    **Missing labels**: as in `BinaryRelevance`; a member does not assign a label that its sample does not observe.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank. Classifier chains for multi-label classification. Machine Learning 85,
    2011. Bagging: L. Breiman. Bagging predictors. Machine Learning 24, 1996.

    Examples
    --------
    >>> from multilab.methods import EBR
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = EBR(n_estimators=5, random_state=0).fit(X, y)
    >>> len(model.estimators_)
    5
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    _sparse_labels: ClassVar[Layout | None] = "csc"

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        max_samples: float = 1.0,
        bootstrap: bool = True,
        combine: Combine = "confidence",
        calibration: Calibration = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        label_weight: LabelWeight = None,
    ) -> None:
        super().__init__(estimator, n_estimators, max_samples, bootstrap, n_jobs, random_state)
        self.combine = combine
        self.calibration = calibration
        self.label_weight = label_weight

    def _member(self, base: BaseEstimator, seed: int | None) -> BinaryRelevance:
        """Return an unfitted member."""
        return BinaryRelevance(base, calibration=self.calibration, random_state=seed, label_weight=self.label_weight)
