"""Pruned sets: label powerset without the rare label sets."""

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from multilab.methods._weights import Weights, check_takes_weights
from multilab.methods.base import MethodError, WeightedClassifier
from multilab.methods.ensembles._members import base_classifier
from multilab.methods.transformation._binary import quiet_fit
from multilab.methods.transformation._inputs import make_inputs
from multilab.methods.transformation._label_sets import SetModel, distinct_rows

__all__ = ["PrunedSets", "prune"]

Strategy = Literal["A", "B"]


class PrunedSets(WeightedClassifier):
    """Pruned sets: label powerset on the frequent label sets; rows of rare ones return with frequent subsets.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned. When None an entropy tree with 2 rows per leaf, instead of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``.
    p : int, default=3
        A label set is kept iff more than p training rows have it.
    strategy : {"A", "B"}, default="A"
        Which frequent subsets a rare label set is replaced by: the b first, ranked by size, then by frequency; or all
        with more than b labels.
    b : int, default=2
    random_state : int or RandomState, optional
        Seed of the base classifier, an integer as it is; None leaves its own.

    Attributes
    ----------
    label_sets_ : ndarray of shape (p, q)
        The label sets it can predict, in the order of their first row.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The most probable label set is predicted; the score of a label is the summed probability of the sets with it.

    A rare label set without a frequent subset is dropped, and the empty set is no subset here (it may be frequent
    itself), as in Mulan. With weights of the rows a label set is frequent by their sum. A row that comes
    back several times counts as often. Where no label set is frequent nothing is pruned.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes. Multi-label classification using ensembles of pruned sets. ICDM 2008.

    Examples
    --------
    >>> from multilab.methods import PrunedSets
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = PrunedSets(p=2).fit(X, y)
    >>> model.label_sets_.shape
    (7, 3)
    >>> model.predict(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        p: int = 3,
        strategy: Strategy = "A",
        b: int = 2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.p = p
        self.strategy = strategy
        self.b = b
        self.random_state = random_state

    def _fit(self, X: Any, Y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        """Fit on validated X and Y; the members of `EPS` skip the validation."""
        rows, sets = prune(Y, self.p, self.strategy, self.b, sample_weight)
        base, weight = self._base(), None if sample_weight is None else sample_weight[rows]
        check_takes_weights(base, Weights(weight, None))
        self._inputs = make_inputs(base, X[rows], weight)
        self.label_sets_, classes = distinct_rows(sets)
        self._model = SetModel(None, np.arange(len(self.label_sets_)))
        if len(self.label_sets_) > 1:
            model = quiet_fit(self._inputs.base, self._inputs.training().matrix, classes, weight)
            self._model = SetModel(model, self._model.classes)

    def _base(self) -> BaseEstimator:
        """Return the clone that is fitted.

        It is the only one, and an integer is its seed as it is: a member of EPS takes milliseconds, of which a second
        clone and another random generator would be 5 %.
        """
        model = clone(base_classifier(self.estimator))
        changes: dict[str, Any] = {"decision_function_shape": "ovo"} if isinstance(model, SVC) else {}
        if self.random_state is not None:
            seed = self.random_state
            seed = seed if isinstance(seed, int) else int(check_random_state(seed).randint(2**31 - 1))
            names = (n for n in model.get_params() if n == "random_state" or n.endswith("__random_state"))
            changes |= dict.fromkeys(names, seed)
        return model.set_params(**changes)

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the label marginals and the most probable label set, both of shape (m, q)."""
        probabilities = self._model.probabilities(self._inputs.query(X).matrix)  # (m, number of label sets)
        return probabilities @ self.label_sets_, self.label_sets_[probabilities.argmax(axis=1)]

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]


def prune(
    Y: np.ndarray, p: int, strategy: Strategy, b: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers, ascending with repetitions, and the label set to train each row with.

    Among subsets of equal size and frequency the one that appears first in the data comes first (label sets are
    numbered in that order, and the sort is stable), which no order of the labels can change. The frequency of a label
    set is the sum of ``weight`` over its rows, their number when None.
    """
    if strategy not in ("A", "B") or p < 0 or b < 0:
        raise MethodError(f"p={p!r}, b={b!r}, strategy={strategy!r}: give two counts and 'A' or 'B'")
    sets, number = distinct_rows(Y)
    counts = np.bincount(number, weights=weight)
    frequent = counts > p
    if frequent.all() or not frequent.any():
        return np.arange(len(Y)), Y
    sizes = sets.sum(axis=1, dtype=np.int64)
    ranked = np.lexsort((-counts, -sizes))
    ranked = ranked[frequent[ranked]]
    # per label set and frequent one: whether the second has no label that the first lacks
    inside = (1 - sets).astype(np.float32) @ sets[ranked].T.astype(np.float32) == 0
    inside &= sizes[ranked] > (0 if strategy == "A" else b)
    if strategy == "A":
        inside &= inside.cumsum(axis=1) <= b
    own = np.arange(len(sets))[:, None] == ranked
    rows, columns = np.nonzero(np.where(frequent[:, None], own, inside)[number])
    return rows, sets[ranked[columns]]
