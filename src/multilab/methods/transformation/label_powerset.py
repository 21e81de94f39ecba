"""Label powerset: each distinct set of labels seen in training is one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.transformation.binary import Calibration, check_calibration, probabilities, quiet_fit, seeded
from multilab.methods.transformation.inputs import make_inputs
from multilab.methods.transformation.platt import fit_sigmoid

__all__ = ["LabelPowerset", "SetModel", "distinct_rows", "fit_sets", "one_vs_rest_scores"]

_FOLDS = 5
_BLOCK_ENTRIES = 2**22  # pairwise decisions held at a time: 32 MiB


class LabelPowerset(MultiLabelClassifier):
    """One multi-class classifier over the distinct label sets of the training part.

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
    """

    _expected_failed_checks: ClassVar[dict[str, str]] = {
        "check_decision_rule": "without calibration the most probable label set is predicted",
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        calibration: Calibration = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and Y of shape (n, q).

        Raises
        ------
        MethodError
            If the calibration is unknown or the base classifier cannot serve it.
        """
        X, Y = self._validate_fit(X, Y)
        base = SVC() if self.estimator is None else self.estimator
        check_calibration(base, self.calibration)
        self._inputs = make_inputs(seeded(base, self.random_state, self.calibration), X)
        matrix = self._inputs.training().matrix
        self.label_sets_, classes = distinct_rows(Y)
        self._model = fit_sets(self._inputs.base, matrix, classes)
        self._sigmoids = None
        if self.calibration == "sigmoid":
            self._sigmoids = _label_sigmoids(self._out_of_fold(matrix, classes), Y)
        return self

    def _out_of_fold(self, matrix: Any, classes: np.ndarray) -> np.ndarray:
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
            model = fit_sets(self._inputs.base, known, classes[train])
            sums[test] = model.probabilities(unknown) @ self.label_sets_[model.classes]
        return sums

    def _both(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        probabilities = self._model.probabilities(self._inputs.query(X).matrix)
        sums = probabilities @ self.label_sets_
        if self._sigmoids is None:
            return sums, self.label_sets_[probabilities.argmax(axis=1)]
        scores = np.column_stack([s(sums[:, j]) for j, s in enumerate(self._sigmoids)])
        return scores, self._decide(scores)

    def _scores(self, X: Any) -> np.ndarray:
        return self._both(X)[0]


@dataclass(frozen=True)
class SetModel:
    """A fitted multi-class classifier (None where there was one class only) and its classes."""

    model: Any
    classes: np.ndarray

    def probabilities(self, matrix: Any) -> np.ndarray:
        """Return one probability per row and class of ``classes``."""
        if self.model is None:
            return np.ones((matrix.shape[0], 1))
        if hasattr(self.model, "predict_proba"):
            return probabilities(self.model, matrix)
        if isinstance(self.model, SVC):
            return softmax(one_vs_rest_scores(self.model, matrix), axis=1)
        margins = self.model.decision_function(matrix)
        return softmax(np.column_stack([-margins, margins]) if margins.ndim == 1 else margins, axis=1)


def distinct_rows(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows in the order they appear, and for each row the number of its own.

    A dictionary of packed rows: for some thousand rows ten times as fast as sorting them.
    """
    packed = np.ascontiguousarray(np.packbits(Y, axis=1))
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    seen = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    number = np.array([seen[key] for key in keys])
    first = np.searchsorted(np.maximum.accumulate(number), np.arange(len(seen)))
    return Y[first], number


def fit_sets(base: BaseEstimator, matrix: Any, classes: np.ndarray) -> SetModel:
    """Fit a clone of ``base`` on class numbers."""
    present = np.unique(classes)
    if len(present) == 1:
        return SetModel(None, present)
    model = clone(base)
    if isinstance(model, SVC):
        model.set_params(decision_function_shape="ovo")
    return SetModel(quiet_fit(model, matrix, classes), present)


def one_vs_rest_scores(model: SVC, matrix: Any) -> np.ndarray:
    """Return what ``SVC(decision_function_shape="ovr")`` would, for a model fitted with "ovo", shape (m, p).

    Votes of the p (p - 1) / 2 pairwise machines plus sum / (3 (|sum| + 1)) of their signed margins. Rows come
    in blocks and the sums are sparse products: with several hundred label sets scikit-learn's loop over pairs
    takes minutes and its table of pairs gigabytes. For two classes the same formula holds here.
    """
    p = len(model.classes_)
    first, second = np.triu_indices(p, 1)
    pairs = np.arange(len(first))
    signs = np.r_[np.ones(len(first)), -np.ones(len(first))]
    incidence = sp.csr_array((signs, (np.r_[pairs, pairs], np.r_[first, second])), shape=(len(first), p))
    lost_all = np.bincount(second, minlength=p)
    scores = np.empty((matrix.shape[0], p))
    step = max(1, _BLOCK_ENTRIES // len(first))
    for start in range(0, matrix.shape[0], step):
        block = slice(start, start + step)
        margins = model.decision_function(matrix[block])
        if p == 2:  # scikit-learn turns the sign for two classes
            margins = -margins[:, None]
        sums = margins @ incidence
        scores[block] = (margins >= 0) @ incidence + lost_all + sums / (3.0 * (np.abs(sums) + 1.0))
    return scores


def _label_sigmoids(sums: np.ndarray, Y: np.ndarray) -> list[Any]:
    sigmoids: list[Any] = []
    for column, y in zip(sums.T, Y.T, strict=True):
        ones = int(y.sum())
        if min(ones, len(y) - ones) < 2:
            sigmoids.append(_Constant(float(2 * ones > len(y))))
        else:
            sigmoids.append(fit_sigmoid(column, y))
    return sigmoids


@dataclass(frozen=True)
class _Constant:
    value: float

    def __call__(self, sums: np.ndarray) -> np.ndarray:
        return np.full(len(sums), self.value)
