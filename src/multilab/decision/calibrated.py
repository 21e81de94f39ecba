"""Calibrated probabilities of any multi-label classifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from multilab.decision._held_out import HeldOutClassifier
from multilab.decision.thresholds import SAME_SCORE
from multilab.methods.base import MethodError
from multilab.methods.ties import round_to_grid

__all__ = ["CalibratedMultiLabelClassifier"]

CalibrationMethod = Literal["sigmoid", "isotonic", "beta", "temperature"]
METHODS = ("sigmoid", "isotonic", "beta", "temperature")


class CalibratedMultiLabelClassifier(HeldOutClassifier):
    """Any multi-label classifier with calibrated probabilities, label by label.

    The training rows are scored out of fold, a calibration map of each label is fitted to those scores, and the
    estimator is fitted again on all rows.

    Parameters
    ----------
    estimator : multi-label classifier or "precomputed", optional
        A classifier with ``predict_proba`` or ``decision_function``; ``BinaryRelevance(LogisticRegression())`` when
        None. With "precomputed", X holds held-out probabilities in ``fit`` and the probabilities of new rows in
        ``predict_proba``.
    method : {"sigmoid", "isotonic", "beta", "temperature"}, default="sigmoid"
        "sigmoid" is Platt's calibration of probabilities or margins. "isotonic" is isotonic regression, which needs
        some hundred positives per label. "beta" is beta calibration of probabilities, which contains the identity.
        "temperature" divides log-odds by one number that all labels share, so that the order of the labels in a row
        stays.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        Folds of the held-out scores; a number means `IterativeStratifiedKFold`. With "prefit", or an estimator inside
        scikit-learn's ``FrozenEstimator``, the estimator is fitted already, and must not have seen the rows of ``fit``.
    n_jobs : int, optional
        Number of folds fitted at the same time; it does not change the result.
    random_state : int or RandomState, optional
        Seed of the estimator's copies and of the folds; with None the estimator keeps its own, and the folds have
        seed 0.

    Attributes
    ----------
    estimator_ : estimator
        The estimator, fitted on all rows; with "prefit", the given one.
    folds_ : list of (train, test) or None
        Folds of the held-out scores; None if the estimator was fitted already.
    n_features_in_, n_labels_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    A label is assigned at a calibrated probability >= 0.5, which is best for Hamming loss if the calibration is right.
    A label that no or every training row has keeps the probability 0 or 1. Sigmoid, beta and temperature minimise the
    log loss of Platt's softened targets, (n1 + 1) / (n1 + 2) and 1 / (n0 + 2), so that labels with few positives and
    separable scores have finite parameters; before logarithms probabilities are moved into [1e-6, 1 - 1e-6].

    **Missing labels** (NaN, -1 in int8, or ``y_mask``): the estimator must learn from them, and each map is fitted to
    the observed cells of its label; the temperature to all observed cells, with one softened target for each class.

    scikit-learn's ``CalibratedClassifierCV`` takes one label only.

    References
    ----------
    J. Platt. Probabilistic outputs for support vector machines. 1999.
    B. Zadrozny, C. Elkan. Transforming classifier scores into accurate multiclass probability estimates. KDD 2002.
    M. Kull, T. M. Silva Filho, P. Flach. Beta calibration. AISTATS 2017.
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> from multilab.decision import CalibratedMultiLabelClassifier
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from sklearn.svm import LinearSVC
    >>> X, y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=3, random_state=0)
    >>> machine = OneVsRestClassifier(LinearSVC())  # margins only
    >>> model = CalibratedMultiLabelClassifier(machine, method="sigmoid", cv=3).fit(X[:80], y[:80])
    >>> model.predict_proba(X[80:]).shape
    (40, 3)
    """

    def __init__(
        self,
        estimator: Any = None,
        method: CalibrationMethod = "sigmoid",
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        y_mask: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the estimator and the calibration to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Features, passed on unchanged to the estimator.
        y : array-like or sparse matrix of shape (n, q)
            Labels, 0/1; NaN, or -1 in an int8 y, where a label is not observed.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the calibration, and in the estimator if its ``fit`` takes them.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.
        groups : array-like of shape (n,), optional
            Group of each row; rows of one group are on one side of every fold. If ``cv`` is a number,
            `IterativeStratifiedGroupKFold` makes the folds.
        **fit_params
            Passed on to the estimator's ``fit``, by request where metadata routing is enabled.

        Raises
        ------
        MethodError
            If an argument is unknown, there are fewer rows than folds, or labels are missing and the estimator cannot
            learn from these.
        """
        self._check_choices(method=METHODS)
        held = self._fit_held_out(X, y, y_mask, sample_weight, groups, fit_params)
        proba = hasattr(self._base(), "predict_proba")
        self._calibrate = fit_calibration(self.method, held.scores, held.Y, held.weights, proba)
        return self

    def _scores(self, X: Any) -> Any:
        return self._calibrate(self._base_scores(X, self.n_labels_))


_LEAST = 1e-6  # probabilities are moved into [1e-6, 1 - 1e-6] before logarithms
_NEWTON_STEPS = 10  # a bound only: the loop ends when the gradient stops shrinking
_NO_CURVATURE = 1e-12  # of the largest: scores that are all equal leave the slope free
_Bounds = Sequence[tuple[float | None, float | None]]


def beta_coefficients(scores: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the coefficients of `beta_features` of one label, or its share if all or none of the rows have it.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Held-out scores in [0, 1].
    y : ndarray of shape (n,)
        0, 1, or anything else where the label was not observed.
    """
    seen = (y == 0) | (y == 1)
    if not seen.any():
        return [float(scores.mean())]  # nothing is known of the label: its mean score stays
    fitted = fit_calibration("beta", scores[seen, None], y[seen, None].astype(int), np.ones(seen.sum()), True)
    assert isinstance(fitted, _Logistic)
    share = float(fitted.constant[0])
    return fitted.coef[0].tolist() if np.isnan(share) else [share]


class CalibrationMap(Protocol):
    """Fitted calibration of all labels."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities of scores, both of shape (n, q)."""


def fit_calibration(
    method: str, scores: np.ndarray, Y: np.ndarray, weights: np.ndarray, probabilities: bool
) -> CalibrationMap:
    """Fit a calibration map to held-out scores of shape (n, q) and labels; ``probabilities``: the scores are in [0, 1].

    Cells where Y is -1 are not observed and do not count.

    Raises
    ------
    MethodError
        If the method is unknown, or is "beta" and the scores are margins.

    Notes
    -----
    Scores of a label that differ by rounding only get the same probability; otherwise the last bits of the
    coefficients decide whether two rows tie, and those of the scores which step of an isotonic map a row is on.
    The isotonic map merges scores that are close to each other or to those it was fitted to. The other maps have no
    steps: they round their features and log-odds with `round_to_grid`.
    """
    if method not in METHODS:
        raise MethodError(f"calibration {method!r} is unknown: give {', '.join(map(repr, METHODS))}")
    if method == "beta" and not probabilities:
        raise MethodError("beta calibration needs probabilities: the estimator has no predict_proba; give 'sigmoid'")
    if (Y < 0).any():
        return _fit_observed(method, scores, Y, weights, probabilities)
    share = np.average(Y, axis=0, weights=weights) if weights.sum() > 0 else Y.mean(axis=0)
    constant = np.where((share == 0) | (share == 1), share, np.nan)
    seen = weights > 0 if weights.any() else np.ones(len(weights), dtype=bool)
    if method == "isotonic":
        levels = [_Levels.of(s[seen]) for s in scores.T]
        fitted = [
            IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(merge(s), y, weights)
            for merge, s, y in zip(levels, scores.T, Y.T, strict=True)
        ]
        return _Isotonic(constant, levels, fitted)
    features = _FEATURES[method] if method != "temperature" else partial(_log_odds, probabilities=probabilities)
    design = features(scores)
    largest = np.abs(design[seen]).max(axis=(0, 1) if method == "temperature" else 0)  # its labels share one map
    design = round_to_grid(design, largest)
    targets = _softened(Y, weights)
    bounds = _BOUNDS[method]
    if method == "temperature":
        used = np.isnan(constant)
        shared = _fit_logistic(
            design[:, used].reshape(-1, 1), targets[:, used].ravel(), np.repeat(weights, used.sum()), bounds
        )
        return _Logistic(constant, features, largest, np.tile(shared, (Y.shape[1], 1)))
    coef = np.stack([_fit_logistic(design[:, j], targets[:, j], weights, bounds) for j in range(Y.shape[1])])
    return _Logistic(constant, features, largest, coef)


def _fit_observed(
    method: str, scores: np.ndarray, Y: np.ndarray, weights: np.ndarray, probabilities: bool
) -> "_LabelByLabel":
    """Fit a map of each label to its observed rows; one temperature for all labels with both classes."""
    columns = zip(scores.T, Y.T, Y.T >= 0, strict=True)
    cells = [(s[seen, None], y[seen, None], weights[seen]) for s, y, seen in columns]
    mixed = [len(np.unique(y[weight > 0])) == 2 for _, y, weight in cells]
    pooled = None
    if method == "temperature" and any(mixed):
        parts = zip(*(cell for cell, both in zip(cells, mixed, strict=True) if both), strict=True)
        joined = [np.concatenate(part) for part in parts]
        pooled = fit_calibration(method, joined[0], joined[1], joined[2], probabilities)
    return _LabelByLabel(
        [
            pooled if pooled is not None and both else fit_calibration(method, *cell, probabilities)
            for cell, both in zip(cells, mixed, strict=True)
        ]
    )


@dataclass(frozen=True)
class _LabelByLabel:
    """Calibration maps of one label each."""

    maps: list[CalibrationMap]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return np.column_stack([one(scores[:, [j]]) for j, one in enumerate(self.maps)])


@dataclass(frozen=True)
class _Logistic:
    """Probability expit(coefficients . features); a label with one class in training keeps its share."""

    constant: np.ndarray
    features: Callable[[np.ndarray], np.ndarray]
    largest: np.ndarray
    coef: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        design = round_to_grid(self.features(scores), self.largest)
        P = expit(round_to_grid(np.einsum("nqm,qm->nq", design, self.coef)))
        return np.where(np.isnan(self.constant), P, self.constant)


@dataclass(frozen=True)
class _Isotonic:
    constant: np.ndarray
    levels: list["_Levels"]
    labels: list[IsotonicRegression]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        labels = zip(self.labels, self.levels, scores.T, strict=True)
        P = np.column_stack([label.predict(merge(s)) for label, merge, s in labels])
        return np.where(np.isnan(self.constant), P, self.constant)


@dataclass(frozen=True)
class _Levels:
    """Groups of a label's training scores whose neighbours are apart by at most 2^-30 of the largest magnitude."""

    first: np.ndarray
    last: np.ndarray
    tolerance: float

    @classmethod
    def of(cls, scores: np.ndarray) -> "_Levels":
        ordered = np.sort(scores)
        tolerance = SAME_SCORE * float(np.abs(ordered).max())
        apart = np.diff(ordered) > tolerance
        return cls(ordered[np.r_[True, apart]], ordered[np.r_[apart, True]], tolerance)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the first score of the group that a score belongs to, or the score if it belongs to none."""
        group = np.searchsorted(self.first, scores + self.tolerance, side="right") - 1
        return np.where((group >= 0) & (scores <= self.last[group] + self.tolerance), self.first[group], scores)


def _line(scores: np.ndarray) -> np.ndarray:
    return np.stack([scores, np.ones_like(scores)], axis=2)


def beta_features(scores: np.ndarray) -> np.ndarray:
    """Return ``ln p``, ``-ln(1 - p)`` and 1 of probabilities of shape (n, q), as an array of shape (n, q, 3)."""
    P = np.clip(scores, _LEAST, 1 - _LEAST)
    return np.stack([np.log(P), -np.log1p(-P), np.ones_like(P)], axis=2)


def _log_odds(scores: np.ndarray, probabilities: bool) -> np.ndarray:
    return (logit(np.clip(scores, _LEAST, 1 - _LEAST)) if probabilities else scores)[:, :, None]


_FEATURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"sigmoid": _line, "beta": beta_features}


_BOUNDS: dict[str, _Bounds] = {
    "sigmoid": [(None, None), (None, None)],
    "beta": [(0, None), (0, None), (None, None)],
    "temperature": [(0, None)],
}


def _softened(Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Platt's targets: (n1 + 1) / (n1 + 2) for positives, 1 / (n0 + 2) for negatives."""
    ones = weights @ Y
    zeros = weights.sum() - ones
    return np.where(Y > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def _fit_logistic(design: np.ndarray, target: np.ndarray, weights: np.ndarray, bounds: _Bounds) -> np.ndarray:
    """Return the coefficients of the smallest weighted log loss, from those of a constant probability."""
    if not len(design) or not weights.sum() > 0:
        return np.ones(design.shape[1])
    scale = np.abs(design).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    scaled, weights = design / scale, weights / weights.sum()
    start = np.zeros(design.shape[1])
    if bounds[-1] == (None, None):  # the intercept
        start[-1] = logit(np.clip(weights @ target, _LEAST, 1 - _LEAST))

    def loss(w: np.ndarray) -> Any:
        z = scaled @ w
        return weights @ (np.logaddexp(0.0, z) - target * z), scaled.T @ (weights * (expit(z) - target))

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return (
        _newton(found, scaled, target, weights, np.array([-np.inf if low is None else low for low, _ in bounds]))
        / scale
    )


def _newton(
    coef: np.ndarray, design: np.ndarray, target: np.ndarray, weights: np.ndarray, lowest: np.ndarray
) -> np.ndarray:
    """Return the coefficients after Newton's steps: differences of the loss leave 1e-8 of them to rounding."""

    def slope(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = expit(design @ w)
        gradient = design.T @ (weights * (p - target))
        return np.where((w > lowest) | (gradient < 0), gradient, 0.0), p

    gradient, p = slope(coef)
    for _ in range(_NEWTON_STEPS):
        free = gradient != 0
        hessian = (design[:, free].T * (weights * p * (1 - p))) @ design[:, free]
        step = np.zeros_like(coef)
        step[free] = np.linalg.lstsq(hessian, gradient[free], rcond=_NO_CURVATURE)[0]
        tried = np.maximum(coef - step, lowest)
        after, p = slope(tried)
        if not np.abs(after).max() < np.abs(gradient).max():
            break
        coef, gradient = tried, after
    return coef
