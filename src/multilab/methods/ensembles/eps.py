"""EPS: pruned sets on subsamples."""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from multilab.methods.ensembles._members import BaggedEnsemble
from multilab.methods.ensembles.pruned_sets import PrunedSets, Strategy

__all__ = ["EPS"]


class EPS(BaggedEnsemble):
    """Ensemble of pruned sets on subsamples of the rows, combined by votes.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each member. When None an entropy tree with 2 rows per leaf, instead of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    n_estimators : int, default=10
    max_samples : float, default=0.66
        Share of the rows that a member sees.
    bootstrap : bool, default=False
        Rows are drawn without replacement.
    p, strategy, b
        Of `PrunedSets`, here with Mulan's defaults for the ensemble.
    n_jobs : int, optional
        Members fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the samples and of the base classifiers.

    Attributes
    ----------
    estimators_ : list of PrunedSets
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The score of a label is the share of members whose predicted label set contains it; it is assigned iff >= 0.5.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes. Multi-label classification using ensembles of pruned sets. ICDM 2008.

    Examples
    --------
    >>> from multilab.methods import EPS
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = EPS(n_estimators=5, random_state=0).fit(X, y)
    >>> len(model.estimators_)
    5
    >>> model.predict_proba(X).shape
    (60, 3)
    """

    _accepts_missing_labels: ClassVar[bool] = False  # a label set is that of complete rows

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        max_samples: float = 0.66,
        bootstrap: bool = False,
        p: int = 2,
        strategy: Strategy = "A",
        b: int = 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator, n_estimators, max_samples, bootstrap, n_jobs, random_state)
        self.p = p
        self.strategy = strategy
        self.b = b

    def _member(self, base: BaseEstimator, seed: int | None) -> PrunedSets:
        """Return an unfitted member."""
        return PrunedSets(base, p=self.p, strategy=self.strategy, b=self.b, random_state=seed)
