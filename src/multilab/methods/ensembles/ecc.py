"""ECC: classifier chains in random orders on bootstrap samples."""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from multilab.methods._weights import LabelWeight
from multilab.methods.ensembles._members import BaggedEnsemble, Combine
from multilab.methods.labels import Layout
from multilab.methods.transformation._binary import Calibration
from multilab.methods.transformation.classifier_chain import ClassifierChain

__all__ = ["ECC"]


class ECC(BaggedEnsemble):
    """Ensemble of classifier chains on bootstrap samples, each in a random order, combined by votes.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each link. When None an entropy tree with 2 rows per leaf, instead of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=1.0
        Share of the rows that a member sees; 0.67 in the chain paper, without replacement.
    bootstrap : bool, default=True
        Rows are drawn with replacement.
    combine : {"vote", "confidence"}, default="vote"
        The score of a label is the share of chains that assign it, or the mean of their probabilities (Mulan's
        ``useConfidences``, off in the MLWSE paper).
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        As in `ClassifierChain`.
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples, the chain orders and the base classifiers.
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        As in `ClassifierChain`; "balanced" counts the rows that a member sees.

    Attributes
    ----------
    estimators_ : list of ClassifierChain
        Their ``order_`` is the chain order.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned iff its score is >= 0.5. All orders are equally likely; Mulan's shuffle favours some.

    **Missing labels**: as in `ClassifierChain`; a member does not assign a label that its sample does not observe.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank. Classifier chains for multi-label classification. Machine Learning 85,
    2011.

    Examples
    --------
    >>> from multilab.methods import ECC
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ECC(n_estimators=5, random_state=0).fit(X, y)
    >>> sorted(model.estimators_[0].order_.tolist())
    [0, 1, 2]
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
        combine: Combine = "vote",
        calibration: Calibration = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        label_weight: LabelWeight = None,
    ) -> None:
        super().__init__(estimator, n_estimators, max_samples, bootstrap, n_jobs, random_state)
        self.combine = combine
        self.calibration = calibration
        self.label_weight = label_weight

    def _member(self, base: BaseEstimator, seed: int | None) -> ClassifierChain:
        """Return an unfitted member, whose seed draws the order of its chain."""
        return ClassifierChain(
            base, order="random", calibration=self.calibration, random_state=seed, label_weight=self.label_weight
        )
