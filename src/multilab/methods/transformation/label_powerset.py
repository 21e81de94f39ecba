"""Label powerset: each distinct set of labels seen in training is one class."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from multilab.methods._weights import Weights
from multilab.methods.base import WeightedClassifier
from multilab.methods.transformation._binary import Calibration, Sigmoid, check_base, fit_sigmoid, seeded
from multilab.methods.transformation._inputs import make_inputs
from multilab.methods.transformation._label_sets import distinct_rows, fit_sets

__all__ = ["LabelPowerset"]

_FOLDS = 5


class LabelPowerset(WeightedClassifier):
    """Label powerset: one multi-class classifier over the distinct label sets of the training set.

    The score of a label is the summed probability of the label sets that contain it.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned; ``SVC()`` when None. The probability of a label set is its ``predict_proba``, or else the
        softmax of its ``decision_function`` (of an SVC: of the one-vs-rest form, see `one_vs_rest_scores`).
    calibration : {None, "none", "sigmoid", "libsvm"}, default=None
        "sigmoid": one Platt sigmoid per label, fitted on the sums of 5 inner shuffled folds;
        ``CalibratedClassifierCV`` cannot serve, since most label sets are rarer than its folds. "libsvm":
        ``SVC(probability=True)``, deprecated in scikit-learn 1.9. None and "none": the sums as they are.
    random_state : int or RandomState, optional
        Seed of the inner folds (0 when None) and of the base classifier (None leaves its own).

    Attributes
    ----------
    label_sets_ : ndarray of shape (p, q)
        The distinct label sets in the order of their first row, which no order of the labels can change.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    **Decisions**: with "sigmoid" a label is assigned iff its score >= 0.5, so that label sets never seen may
    come out. Otherwise the most probable label set is predicted (of equals the first of ``label_sets_``),
    which may disagree with the scores at 0.5.

    With "sigmoid" a label whose rarer class has fewer than 2 members has a constant score, that of the larger
    class.

    References
    ----------
    M. R. Boutell, J. Luo, X. Shen, C. M. Brown. Learning multi-label scene classification. Pattern
    Recognition 37, 2004. G. Tsoumakas, I. Katakis, I. Vlahavas. Mining multi-label data. 2010.

    Examples
    --------
    >>> from multilab.methods import LabelPowerset
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = LabelPowerset(DecisionTreeClassifier(random_state=0)).fit(X, y)
    >>> model.label_sets_.shape
    (8, 3)
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    def __init__(
        self, estimator: BaseEstimator | None = None, calibration: Calibration = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        base = SVC() if self.estimator is None else self.estimator
        check_base(base, self.calibration, Weights(weight, None))
        self._inputs = make_inputs(seeded(base, self.random_state, self.calibration), X, weight)
        matrix = self._inputs.training().matrix
        self.label_sets_, classes = distinct_rows(Y)
        self._model = fit_sets(self._inputs.base, matrix, classes, weight)
        self._sigmoids = None
        if self.calibration == "sigmoid":
            sums = self._out_of_fold(matrix, classes, weight)
            self._sigmoids = [_label_sigmoid(s, y, weight) for s, y in zip(sums.T, Y.T, strict=True)]

    def _out_of_fold(self, matrix: Any, classes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return each training row's label sums from a model that has not seen it, shape (n, q)."""
        sums = np.empty((len(classes), self.n_labels_))
        if len(classes) < 2:
            return self.label_sets_[classes].astype(np.float64)
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31 - 1)
        folds = KFold(min(_FOLDS, len(classes)), shuffle=True, random_state=seed)
        pairwise = getattr(self._inputs.base, "kernel", None) == "precomputed"
        for train, test in folds.split(classes):
            known = matrix[np.ix_(train, train)] if pairwise else matrix[train]
            unknown = matrix[np.ix_(test, train)] if pairwise else matrix[test]
            model = fit_sets(self._inputs.base, known, classes[train], None if weight is None else weight[train])
            sums[test] = model.probabilities(unknown) @ self.label_sets_[model.classes]
        return sums

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        probabilities = self._model.probabilities(self._inputs.query(X).matrix)
        sums = probabilities @ self.label_sets_
        if self._sigmoids is None:
            return sums, self.label_sets_[probabilities.argmax(axis=1)]
        scores = np.column_stack([s(sums[:, j]) for j, s in enumerate(self._sigmoids)])
        return scores, self._decide(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]


def _label_sigmoid(sums: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Sigmoid:
    """Return the sigmoid of one label; of a label with fewer than two rows in a class, the constant 0 or 1."""
    ones = int(y.sum())
    if min(ones, len(y) - ones) < 2:
        return Sigmoid(0.0, np.inf if 2 * ones > len(y) else -np.inf)
    return fit_sigmoid(sums, y, weight)
