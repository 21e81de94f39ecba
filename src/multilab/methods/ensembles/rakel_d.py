"""RAkELd: a label powerset on each part of a random partition of the labels."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, WeightedClassifier
from multilab.methods.ensembles._label_groups import fit_groups

__all__ = ["RAkELd"]


class RAkELd(WeightedClassifier):
    """Random k-labelsets, disjoint: a label powerset per group of a random partition of the labels.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each part. When None ``DecisionTreeClassifier()`` (Gini index), as in the iMLDF paper.
    k : int, default=4
        Labels per part; the last part has what is left.
    n_jobs : int, optional
        Parts fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the partition and of the base classifiers.

    Attributes
    ----------
    parts_ : list of tuple of int
        The label numbers of each part, ``ceil(q / k)`` of them.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Scores are the decisions, 0 or 1: each label is in one part, and its most probable label set decides. With ties
    counted as errors such scores have ranking losses about .5, which is what the iMLDF paper prints for "RAkEL".
    `RAkEL` has overlapping parts and shares of votes.

    References
    ----------
    G. Tsoumakas, I. Katakis, I. Vlahavas. Random k-labelsets for multilabel classification. IEEE Trans. Knowledge and
    Data Engineering 23(7), 2011. Section 3.1.

    Examples
    --------
    >>> from multilab.methods import RAkELd
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = RAkELd(k=2, random_state=0).fit(X, y)
    >>> [len(part) for part in model.parts_]
    [1, 2]
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    def __init__(
        self, estimator: BaseEstimator | None = None, k: int = 4, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        if self.k < 1:
            raise MethodError(f"k={self.k!r}: give the number of labels per part, 1 or more")
        rng = check_random_state(self.random_state)
        order = rng.permutation(self.n_labels_).tolist()
        self.parts_ = sorted(tuple(sorted(order[i : i + self.k])) for i in range(0, len(order), self.k))
        base = DecisionTreeClassifier() if self.estimator is None else self.estimator
        self._members = fit_groups(base, X, Y, self.parts_, rng.randint(2**31 - 1), self.n_jobs, weight)

    def _scores(self, X: Any) -> np.ndarray:
        return self._members.vote_shares(X, self.n_labels_)
