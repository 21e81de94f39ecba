"""Binary problems: one base classifier per label, its kind of scores, and Platt's sigmoid."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    FixedThresholdClassifier,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    train_test_split,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

from multilab.methods._weights import Weights, check_takes_weights, weight_arguments
from multilab.methods.base import MethodError
from multilab.methods.transformation._inputs import PLAIN_TREES

Calibration = Literal["sigmoid", "libsvm", "none"] | None
_FOLDS = 5  # of the held-out scores to which a sigmoid is fitted; fewer if the rarer class has fewer rows
_VALIDATION = 0.1  # share of a label's rows that early stopping holds out, as in scikit-learn
_NOT_STOPPED = {"early_stopping": False, "early_stopping_rounds": None}  # of scikit-learn; of boosting libraries


class LabelScorer:
    """A fitted label."""

    def scores(self, matrix: Any) -> np.ndarray:
        """Return one score per row of the inputs."""
        raise NotImplementedError

    def predict(self, matrix: Any, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return scores, and decisions: the scores that reach the threshold, or those of a base that has its own."""
        scores = self.scores(matrix)
        return scores, scores >= threshold


def has_own_threshold(estimator: BaseEstimator) -> bool:
    """Return whether the decisions of a classifier are not those of its probabilities at .5, or its margins at 0.

    So it is with scikit-learn's two classifiers of thresholds, also as the last step of a pipeline or in a search.
    """
    if isinstance(estimator, Pipeline):
        return has_own_threshold(estimator.steps[-1][1])
    if isinstance(estimator, BaseSearchCV):
        return has_own_threshold(estimator.estimator)
    return isinstance(estimator, FixedThresholdClassifier | TunedThresholdClassifierCV)


def score_kind(estimator: BaseEstimator, calibration: Calibration) -> str:
    """Return the kind of scores of the fitted label: "probability" or "margin"."""
    calibrated = calibration in ("sigmoid", "libsvm")
    return "probability" if calibrated or hasattr(estimator, "predict_proba") else "margin"


def check_calibration(estimator: BaseEstimator, calibration: Calibration) -> None:
    """Raise MethodError where the option is unknown or the base estimator cannot serve it."""
    if calibration not in (None, "none", "sigmoid", "libsvm"):
        raise MethodError(f"calibration={calibration!r}: give None, 'none', 'sigmoid' or 'libsvm'")
    if calibration == "libsvm" and "probability" not in estimator.get_params():
        name = type(estimator).__name__
        raise MethodError(f"calibration='libsvm' needs an SVC as base, {name} has no argument 'probability'")
    if not hasattr(estimator, "predict_proba") and not hasattr(estimator, "decision_function"):
        raise MethodError(f"{type(estimator).__name__} has neither predict_proba nor decision_function")
    if calibration == "sigmoid" and has_own_threshold(estimator):
        raise MethodError(
            f"calibration='sigmoid' changes the scores that the threshold of {type(estimator).__name__} is for: leave "
            "it out, and give that classifier a CalibratedClassifierCV"
        )


def seeded(estimator: BaseEstimator, random_state: Any, calibration: Calibration) -> BaseEstimator:
    """Return a clone whose random arguments are set from ``random_state`` (left alone when that is None).

    All labels get the same seed, so that a label's result does not depend on its position. With "libsvm" the
    clone has ``probability=True``, and seed 0 where no other was given: libsvm shuffles its inner folds.
    """
    model = clone(estimator)
    if calibration == "libsvm":
        model.set_params(probability=True)
        if random_state is None and model.get_params()["random_state"] is None:
            random_state = 0
    if random_state is not None:
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        names = (n for n in model.get_params() if n == "random_state" or n.endswith("__random_state"))
        model.set_params(**dict.fromkeys(names, seed))
    return model


def check_base(estimator: BaseEstimator, calibration: Calibration, weights: Weights) -> None:
    """Raise MethodError where the base estimator cannot serve the calibration, or the weights if there are any."""
    check_calibration(estimator, calibration)
    check_takes_weights(estimator, weights)


def fit_label(
    base: BaseEstimator, matrix: Any, y: np.ndarray, calibration: Calibration, weight: np.ndarray | None = None
) -> LabelScorer:
    """Fit one label.

    Parameters
    ----------
    base : estimator
        From `seeded`; an SVC with ``kernel="precomputed"`` where ``matrix`` is a kernel matrix.
    matrix : ndarray or CSR matrix of shape (n, d) or (n, n)
    y : ndarray of shape (n,)
        0/1, or int8 with -1 for rows that do not observe the label; the label is fitted without them.
    calibration : {None, "none", "sigmoid", "libsvm"}
        "sigmoid" is ``CalibratedClassifierCV(base, ensemble=False)`` with min(5, size of the rarer class)
        stratified folds without shuffling.
    weight : ndarray of shape (n,), optional
        Weights of the rows, positive; they count in the calibration too.

    Returns
    -------
    LabelScorer
        The constant of the larger class (0/1, or -1/+1 for margins) where a class is empty, or has a single
        member and calibration would need two.

    Notes
    -----
    A base that stops early stops for each label at its own iteration. Classifiers of scikit-learn hold out rows
    themselves (``early_stopping=True``). One with ``early_stopping_rounds`` whose ``fit`` takes an ``eval_set``
    (XGBoost, LightGBM, CatBoost) gets a stratified tenth of the label's rows, without weights, drawn by its
    ``random_state`` (0 when None). A label with too few rows for that is fitted without early stopping.
    """
    rows = None
    if y.dtype == np.int8:
        rows = np.flatnonzero(y >= 0)
        y = y[rows].astype(np.uint8)
    rarer = min(int(y.sum()), len(y) - int(y.sum()))
    sigmoid = calibration == "sigmoid"
    if rarer < (2 if sigmoid else 1):
        common = float(2 * y.sum() > len(y))
        return _Constant(common if score_kind(base, calibration) == "probability" else 2.0 * common - 1.0)
    if isinstance(base, SVC) and base.kernel == "precomputed" and not hasattr(base, "predict_proba"):
        folds = StratifiedKFold(min(_FOLDS, rarer)).split(y, y) if sigmoid else ()
        return _fit_machine(base, matrix, y, [train for train, _ in folds], rows, weight)
    model = clone(base)
    pairwise = getattr(base, "kernel", None) == "precomputed"
    if rows is not None:
        matrix = matrix[np.ix_(rows, rows)] if pairwise else matrix[rows]
        weight = weight if weight is None else weight[rows]
    validation: dict[str, Any] = {}
    if stopping := _stopping(model):
        if len(y) * _VALIDATION <= 1 or rarer < (3 if sigmoid else 2):  # a fold of the sigmoid has one of them less
            model.set_params(**{name: _NOT_STOPPED[name.rpartition("__")[2]] for name in stopping})
        elif has_fit_parameter(model, "eval_set"):
            matrix, y, weight, validation = _held_out(model, matrix, y, weight)
            rarer = min(int(y.sum()), len(y) - int(y.sum()))
    if sigmoid:
        model = CalibratedClassifierCV(model, method="sigmoid", ensemble=False, cv=min(_FOLDS, rarer))
    return _Model(quiet_fit(model, matrix, y, weight, **validation), rows if pairwise else None)


def _stopping(model: BaseEstimator) -> list[str]:
    """Return the arguments by which a classifier, or a step of a pipeline, stops early."""
    return [name for name, value in model.get_params().items() if name.rpartition("__")[2] in _NOT_STOPPED and value]


def _held_out(
    model: BaseEstimator, matrix: Any, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None, dict[str, Any]]:
    """Return the inputs, labels and weights to fit to, and arguments of ``fit`` with the rows that are held out."""
    seed = model.get_params().get("random_state")
    seed = 0 if seed is None else seed
    train, test = train_test_split(np.arange(len(y)), test_size=_VALIDATION, stratify=y, random_state=seed)
    held = matrix[test], y[test]
    if has_fit_parameter(model, "eval_X"):  # LightGBM from 4.7, where `eval_set` is deprecated
        arguments: dict[str, Any] = dict(zip(("eval_X", "eval_y"), held, strict=True))
    else:
        arguments = {"eval_set": [held]}
    if has_fit_parameter(model, "verbose"):  # XGBoost prints each iteration
        arguments["verbose"] = False
    return matrix[train], y[train], weight if weight is None else weight[train], arguments


def quiet_fit(model: Any, matrix: Any, y: np.ndarray, weight: np.ndarray | None = None, **arguments: Any) -> Any:
    """Fit without scikit-learn's warning that ``SVC(probability=True)`` will be removed in 1.11.

    A tree takes a matrix of its own form (float32, dense or CSC) as it is: matrix and parameters were validated once
    for all labels, and checking them again costs a fifth of the fit where the features are sparse.

    Weights are passed by argument: the metadata routing of scikit-learn ends at the multi-label classifier.
    """
    arguments |= weight_arguments(model, weight)
    if isinstance(model, CalibratedClassifierCV):  # of a pipeline: the weights of its last step too
        arguments |= weight_arguments(model.estimator, weight)
    if _in_tree_form(model, matrix, "csc"):
        with config_context(skip_parameter_validation=True):
            return model.fit(matrix, y, check_input=False, **arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*`probability` parameter was deprecated", category=FutureWarning)
        if not arguments:
            return model.fit(matrix, y)
        warnings.filterwarnings("ignore", message=".*does not appear to accept sample_weight", category=UserWarning)
        with config_context(enable_metadata_routing=False):
            return model.fit(matrix, y, **arguments)


def probabilities(model: Any, matrix: Any) -> np.ndarray:
    """Return ``predict_proba``; for a tree, skip the check of a matrix that is already float32 (dense or CSR)."""
    if _in_tree_form(model, matrix, "csr"):
        return model.predict_proba(matrix, check_input=False)
    return model.predict_proba(matrix)


def _in_tree_form(model: Any, matrix: Any, layout: str) -> bool:
    return type(model) in PLAIN_TREES and matrix.dtype == np.float32 and getattr(matrix, "format", layout) == layout


_NEWTON_STEPS = 100  # a bound only: the loop ends when the gradient vanishes


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(-(slope f + offset))); Platt's A and B are -slope and -offset."""

    slope: float
    offset: float

    def __call__(self, margins: np.ndarray) -> np.ndarray:
        """Return p for each margin."""
        return expit(self.slope * margins + self.offset)


def fit_sigmoid(margins: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Sigmoid:
    """Fit the sigmoid by maximum likelihood on Platt's softened targets.

    Parameters
    ----------
    margins : ndarray of shape (n,)
        Out-of-fold margins f.
    y : ndarray of shape (n,)
        0/1 labels; with n1 ones and n0 zeros the targets are (n1 + 1) / (n1 + 2) and 1 / (n0 + 2).
    weight : ndarray of shape (n,), optional
        Weights of the terms of the likelihood; n1 and n0 are their sums. All 1 when None.

    Notes
    -----
    Newton's method with step halving (Lin, Lin, Weng. A note on Platt's probabilistic outputs for support
    vector machines. Machine Learning 68, 2007), to a gradient of rounding size. scikit-learn's calibration
    minimises the same function by L-BFGS and stops a little earlier.
    """
    weight = np.ones(len(y)) if weight is None else weight
    total = float(weight.sum())
    ones = float(weight[y > 0].sum())
    zeros = total - ones
    target = np.where(y > 0, (ones + 1.0) / (ones + 2.0), 1.0 / (zeros + 2.0))
    scale = float(np.abs(margins).max()) or 1.0
    design = np.column_stack([margins / scale, np.ones(len(y))])
    line = np.array([0.0, np.log((ones + 1.0) / (zeros + 1.0))])

    def loss(w: np.ndarray) -> float:
        z = design @ w
        return float(np.sum(weight * (np.logaddexp(0.0, z) - target * z)))

    value = loss(line)
    for _ in range(_NEWTON_STEPS):
        p = expit(design @ line)
        gradient = design.T @ (weight * (p - target))
        if np.abs(gradient).max() <= 1e-11 * total:
            break
        hessian = design.T @ (design * (weight * (p * (1.0 - p)))[:, None])
        hessian.flat[::3] += 1e-12  # equal margins leave the slope free: keep it where it is
        direction = -np.linalg.solve(hessian, gradient)
        step, descent = 1.0, float(gradient @ direction)
        while step > 1e-10 and loss(line + step * direction) > value + 1e-4 * step * descent:
            step /= 2.0
        if step <= 1e-10:
            break
        line = line + step * direction
        value = loss(line)
    return Sigmoid(float(line[0] / scale), float(line[1]))


@dataclass(frozen=True)
class _Constant(LabelScorer):
    value: float

    def scores(self, matrix: Any) -> np.ndarray:
        return np.full(matrix.shape[0], self.value)


@dataclass(frozen=True)
class _Model(LabelScorer):
    """A fitted classifier; of a kernel matrix it takes the columns ``rows``, or all."""

    model: Any
    rows: np.ndarray | None = None

    def scores(self, matrix: Any) -> np.ndarray:
        if self.rows is not None:
            matrix = matrix[:, self.rows]
        if hasattr(self.model, "predict_proba"):
            return probabilities(self.model, matrix)[:, 1]
        return self.model.decision_function(matrix)

    def predict(self, matrix: Any, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and decisions."""
        if not has_own_threshold(self.model):
            return super().predict(matrix, threshold)
        return self.scores(matrix), self.model.predict(matrix) == 1


@dataclass(frozen=True)
class _Machine(LabelScorer):
    """f = K coef + intercept, then the sigmoid if there is one."""

    coef: np.ndarray
    intercept: float
    sigmoid: Sigmoid | None

    def scores(self, matrix: Any) -> np.ndarray:
        margins = matrix @ self.coef + self.intercept
        return margins if self.sigmoid is None else self.sigmoid(margins)


def _fit_machine(
    svc: SVC,
    K: np.ndarray,
    y: np.ndarray,
    folds: list[np.ndarray],
    rows: np.ndarray | None,
    weight: np.ndarray | None,
) -> _Machine:
    """Fit on the full kernel matrix, and the sigmoid on the margins of machines fitted on the folds.

    ``y`` and ``folds`` count the rows of K, or those in ``rows``; ``weight`` counts all rows of K.
    """
    labels = y
    if rows is not None:
        labels = np.zeros(len(K), dtype=y.dtype)
        labels[rows] = y
    coef, intercept = _support_vectors(svc, K, labels, rows, weight)
    if not folds:
        return _Machine(coef, intercept, None)
    parts = [_support_vectors(svc, K, labels, train if rows is None else rows[train], weight) for train in folds]
    held_out = np.ones((len(y), len(folds)), dtype=bool)
    for number, train in enumerate(folds):
        held_out[train, number] = False
    # one pass over K for all folds; each row belongs to one test fold
    known = K if rows is None else K[rows]
    margins = (known @ np.column_stack([c for c, _ in parts]) + [b for _, b in parts])[held_out]
    observed = weight if weight is None or rows is None else weight[rows]
    return _Machine(coef, intercept, fit_sigmoid(margins, y, observed))


def _support_vectors(
    svc: SVC, K: np.ndarray, y: np.ndarray, train: np.ndarray | None, weight: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Return dual coefficients over all rows (0 where none) and intercept of the machine on rows ``train``.

    Other rows get the weight 0, for which libsvm leaves them out of the problem: that saves copying a slice
    of K for every label and fold. ``support_`` then counts the rows kept.
    """
    rows = np.arange(len(y)) if train is None else train
    model = clone(svc)
    if svc.class_weight == "balanced":  # frequencies of these rows only
        classes = np.array([0, 1])
        weights = compute_class_weight("balanced", classes=classes, y=y[rows])
        model.set_params(class_weight=dict(zip(classes.tolist(), weights.tolist(), strict=True)))
    kept = weight
    if train is not None:
        kept = np.zeros(len(y))
        kept[train] = 1.0 if weight is None else weight[train]
    with config_context(assume_finite=True):
        model.fit(K, y, sample_weight=kept)
    coef = np.zeros(len(y))
    coef[rows[model.support_]] = model.dual_coef_[0]
    return coef, float(model.intercept_[0])
