"""The public estimators of this package: decisions and probabilities fitted to the observed labels, and the guard.

`TunedThresholdClassifier` and `CalibratedMultiLabelClassifier` extend the classes of the same names for complete
labels, whose code is part of the keys of the study `decisions`. When those keys move for another reason, they become
one.
"""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import Bunch, check_random_state, indexable
from sklearn.utils.validation import _check_sample_weight

from multilab.core.tables import in_another_order
from multilab.decision import calibrated, tuned_threshold
from multilab.decision._held_out import HeldOutClassifier, HeldOutScores, _fit_fold
from multilab.decision.calibrated import CalibrationMap, CalibrationMethod, fit_calibration
from multilab.decision.guard import SHRINKAGE, guarded
from multilab.decision.thresholds import LOWEST, LabelCurves, best_nested, label_ranks
from multilab.methods.base import MethodError
from multilab.methods.labels import (
    binary_classes,
    check_labels,
    check_learns_from_missing,
    has_unobserved,
    label_names,
    learns_from_missing,
    to_frame,
)
from multilab.methods.out_of_fold import fold_seed

__all__ = ["CalibratedMultiLabelClassifier", "TunedThresholdClassifier"]


class _ObservedLabels(HeldOutClassifier):
    """Held-out scores of rows whose labels are observed in part."""

    @property
    def _accepts_missing_labels(self) -> bool:  # type: ignore[override]
        base = self._base()
        return self._is_prefit(base) or learns_from_missing(base)

    def _fit_held_out(self, X: Any, y: Any, sample_weight: Any, fit_params: dict[str, Any]) -> HeldOutScores:
        """Return held-out scores; the labels are -1 where they were not observed."""
        if isinstance(self.estimator, str) and in_another_order(
            getattr(y, "columns", None), getattr(X, "columns", None)
        ):
            raise MethodError("X has the scores of the labels in another order: pass X[y.columns]")
        classes, target = binary_classes(y)
        Y = None if classes is not None else check_labels(target, missing=True, owner=type(self).__name__)
        if Y is None or not has_unobserved(Y):
            return super()._fit_held_out(X, y, sample_weight, fit_params)
        base, names = self._base(), label_names(y)
        if self._is_prefit(base):  # only its scores are needed
            complete = np.where(Y < 0, 0, Y)
            given = complete if names is None else to_frame(complete, names, X)
            return super()._fit_held_out(X, given, sample_weight, fit_params)._replace(Y=Y)
        check_learns_from_missing(base)
        X, _ = indexable(X, Y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        routed = self._routed(base, sample_weight, fit_params)
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.folds_ = self._folds(X, Y, seed, routed)
        scores = self._out_of_fold(base, X, Y, routed.estimator.fit, seed)
        self.estimator_ = _fit_fold(base, X, Y, routed.estimator.fit, fold_seed(seed, len(self.folds_)))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        self._set_labels(Y.shape[1], None, names)
        return HeldOutScores(scores, Y, weights)

    def _validate_predict(self, X: Any) -> Any:
        X_names = getattr(X, "columns", None)
        if isinstance(self.estimator, str) and in_another_order(getattr(self, "label_names_", None), X_names):
            raise MethodError("X has the scores of the labels in another order: pass X[model.label_names_]")
        return super()._validate_predict(X)

    def _routed(self, base: Any, sample_weight: Any, fit_params: dict[str, Any]) -> Bunch:
        if sample_weight is None and not fit_params:  # scikit-learn's router has no answer for nothing
            return Bunch(estimator=Bunch(fit={}), splitter=Bunch(split={}))
        return super()._routed(base, sample_weight, fit_params)


class TunedThresholdClassifier(_ObservedLabels, tuned_threshold.TunedThresholdClassifier):
    """Any multi-label classifier with decisions tuned for an objective.

    The training rows are scored out of fold, the best decisions for the objective on these scores are computed exactly,
    and the estimator is fitted again on all rows. Thresholds are never tuned on scores of rows that the estimator was
    fitted on, because they would overfit with it.

    Parameters
    ----------
    estimator : multi-label classifier or "precomputed", optional
        With ``predict_proba`` (an array, or a list of arrays as of scikit-learn's forests) or ``decision_function``.
        ``BinaryRelevance(LogisticRegression())`` when None. "precomputed": X holds held-out probabilities in ``fit``
        and the probabilities of new rows in ``predict``, shape (n, q).
    objective : {"macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"}, default="macro_f1"
        Metric of the held-out rows to optimise, under the default conventions of `multilab.metrics`.
    policy : {"per_label", "global", "top_k", "cost", "expected", "fixed"}, default="per_label"
        "per_label": one threshold per label, exact for macro F1, micro F1 and Hamming loss. "global": one threshold for
        all labels, exact for all objectives. "top_k": the k labels of highest score in every row. "cost": one threshold
        per label with the smallest cost of errors; "objective" is not used. "expected": per row the set with
        the largest expected example F1 if labels are independent and the probabilities right (objective "example_f1").
        "fixed": probability >= 0.5 or margin >= 0; nothing is tuned.
    guard : bool, default=False
        Replace the threshold of labels that would be assigned far more often than they occur by the cut that matches
        their frequency; with "macro_f1", also shrink thresholds based on few positives towards that cut. See
        `guarded_thresholds`. Only for the policies "per_label" and "global", without ``guarantee``.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        Folds of the held-out scores; a number means `IterativeStratifiedKFold`. "prefit", or an estimator inside
        scikit-learn's ``FrozenEstimator``: the estimator is fitted already, and must not have seen the rows of ``fit``.
    calibration : {None, "sigmoid", "isotonic", "beta", "temperature"}, default=None
        Calibrate the scores first, on the same held-out rows (see `CalibratedMultiLabelClassifier`).
    k : int or "cardinality", optional
        Labels per row with "top_k": a number, or the mean number of labels in training (rounded half up); best for the
        objective when None.
    cost : pair (false positive, false negative), default=(1.0, 1.0)
        Costs of "cost": numbers, or arrays of shape (q,).
    guarantee : ("recall" or "precision", level), optional
        Restrict the thresholds of each label, with "per_label" and "cost", to those that have at least this recall or
        precision with probability ``confidence``; see Notes.
    confidence : float, default=0.9
        Confidence of the guarantee, of each label by itself.
    n_jobs : int, optional
        Folds fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the estimator's copies and of the folds; with None the estimator keeps its own, and the folds have
        seed 0.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows (with "prefit": the one that was given).
    thresholds_ : ndarray of shape (q,)
        For all policies except "top_k" and "expected": a label is assigned where its score is at least its threshold.
        +inf means never, the most negative number always.
    k_ : int
        Labels per row, with "top_k" only.
    folds_ : list of (train, test) or None
        Folds of the held-out scores; None if the estimator was fitted already.
    n_features_in_, n_labels_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    **Ties.** Among decisions that are equally good on the held-out rows (to 1e-12), those with the fewest labels are
    chosen. A threshold is midway between two scores; scores that differ only by rounding (2^-30 of the largest) are
    never separated. In "top_k", a tie goes to the label with the lower index. Constant scores are therefore all
    assigned or all not, whichever is better.

    **Labels with one class in training** are never, or always, assigned, under every policy except "fixed". If scores
    are uninformative, assigning a label to every row maximises F1; "hamming_loss" then assigns the more frequent class.
    One row is enough for an estimator that is fitted already; folds need two.

    **Guard.** The rule of `guarded_thresholds` on the held-out scores. Few positives are an argument for macro F1 only,
    where each threshold rests on the positives of its own label: over 13 data sets and three learners thresholds drawn
    to the frequencies have more macro F1 than the guard alone, but less micro F1 and more Hamming loss if tuned for
    these. `multilab compare` and `multilab fit --decision` have the guard.

    **Missing labels** (NaN, -1 in int8, or ``y_mask``): the estimator must learn from them; its scores of unobserved
    cells are ignored. With "top_k", the k labels are those with the highest scores among all.

    **Guarantee.** "recall" uses the exact binomial bound, "precision" Learn then Test with Bonferroni's correction; if
    no threshold can be guaranteed, every row is assigned (recall) or none (precision). It holds for rows of the
    distribution of the held-out rows and for the models that scored these: exactly with "prefit", as an
    approximation with folds, since the final estimator is another model, fitted on more rows. It takes no
    ``sample_weight``.

    ``predict_proba`` and ``decision_function`` give the scores that are compared with the thresholds.

    References
    ----------
    Z. C. Lipton, C. Elkan, B. Naryanaswamy. Optimal thresholding of classifiers to maximize F1 measure. ECML PKDD 2014.
    N. Ye, K. M. A. Chai, W. S. Lee, H. L. Chieu. Optimizing F-measures: a tale of two approaches. ICML 2012.
    A. N. Angelopoulos et al. Learn then test: calibrating predictive algorithms to achieve risk control.
    Annals of Applied Statistics 19, 2025.

    Examples
    --------
    >>> from multilab.decision import TunedThresholdClassifier
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=3, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0)
    >>> model = TunedThresholdClassifier(forest, objective="macro_f1", cv=3).fit(X[:80], y[:80])
    >>> model.thresholds_.shape
    (3,)
    >>> model.predict(X[80:]).shape
    (40, 3)
    """

    def __init__(
        self,
        estimator: Any = None,
        objective: Literal["macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"] = "macro_f1",
        policy: Literal["per_label", "global", "top_k", "cost", "expected", "fixed"] = "per_label",
        *,
        guard: bool = False,
        cv: Any = 5,
        calibration: CalibrationMethod | None = None,
        k: int | Literal["cardinality"] | None = None,
        cost: Any = (1.0, 1.0),
        guarantee: tuple[Literal["recall", "precision"], float] | None = None,
        confidence: float = 0.9,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            objective,
            policy,
            cv=cv,
            calibration=calibration,
            k=k,
            cost=cost,
            guarantee=guarantee,
            confidence=confidence,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.guard = guard

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, y_mask: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator and its decisions to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Passed on to the estimator as it is.
        y : array-like or sparse matrix of shape (n, q)
            NaN, or -1 in an int8 y, where a label is not observed.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the objective, and in the estimator if its ``fit`` takes them.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.
        **fit_params
            Passed on to the estimator's ``fit``, by request where metadata routing is enabled.

        Raises
        ------
        MethodError
            If an argument is unknown or does not fit the others, there are fewer rows than folds, or labels are
            missing and the estimator cannot learn from these.
        """
        self._check_arguments()
        held = self._fit_held_out(X, masked(y, y_mask), sample_weight, fit_params)
        observed, scores = held.Y >= 0, held.scores
        self._calibrate = None
        if self.calibration is not None:
            proba = hasattr(self._base(), "predict_proba")
            self._calibrate = fit_observed_calibration(self.calibration, scores, held.Y, held.weights, proba)
            scores = self._calibrate(scores)
        counted = observed & (held.weights > 0)[:, None]
        self._never = ~((held.Y == 1) & counted).any(axis=0)
        self._always = ~self._never & ~((held.Y == 0) & counted).any(axis=0)
        for name in ("thresholds_", "k_"):
            if hasattr(self, name):
                delattr(self, name)
        # An unobserved cell has no label and a score that no cut reaches, so that it counts nowhere.
        complete = held._replace(Y=np.where(observed, held.Y, 0))
        if self.policy == "top_k":
            self.k_ = self._number(scores, held)
        elif self.policy == "fixed":
            self.thresholds_ = np.full(self.n_labels_, 0.5 if self._score_kind() == "probability" else 0.0)
        elif self.policy != "expected":
            shown = np.where(observed, self._with_constants(scores), -np.inf)
            thresholds = self._tuned_thresholds(shown, complete)
            if self.guard:
                curves = LabelCurves.of(complete.Y, shown, held.weights)
                shrinkage = SHRINKAGE if (self.policy, self.objective) == ("per_label", "macro_f1") else 0.0
                thresholds = guarded(curves, thresholds, held.weights, shrinkage)
            self.thresholds_ = np.where(self._never, np.inf, np.where(self._always, LOWEST, thresholds))
        return self

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.guard and self.policy not in ("per_label", "global"):
            raise MethodError(f"`guard` needs policy='per_label' or 'global', got {self.policy!r}")
        if self.guard and self.guarantee is not None:
            raise MethodError("`guard` moves thresholds, which may break the `guarantee`: give one of the two")

    def _number(self, scores: np.ndarray, held: HeldOutScores) -> int:
        observed = held.Y >= 0
        if observed.all():
            return super()._number(scores, held)
        if self.k == "cardinality":  # the mean number of labels, were the observed cells drawn at random
            return int(np.floor(((held.Y == 1).sum(axis=0) / observed.sum(axis=0)).sum() + 0.5))
        if self.k is not None:
            return int(self.k)
        scores = self._with_constants(scores)
        priority = np.where(np.isfinite(scores), -label_ranks(scores).astype(float), scores)  # as `best_k`
        shown, Y = np.where(observed, priority, -np.inf), np.where(observed, held.Y, 0)
        threshold = best_nested(Y, shown, held.weights, self.objective)
        return int(np.clip(np.ceil(-threshold), 0, self.n_labels_))


class CalibratedMultiLabelClassifier(_ObservedLabels, calibrated.CalibratedMultiLabelClassifier):
    """Any multi-label classifier with calibrated probabilities, label by label.

    The training rows are scored out of fold, a calibration map of each label is fitted to those scores, and the
    estimator is fitted again on all rows.

    Parameters
    ----------
    estimator : multi-label classifier or "precomputed", optional
        With ``predict_proba`` or ``decision_function``; ``BinaryRelevance(LogisticRegression())`` when None.
        "precomputed": X holds held-out probabilities in ``fit`` and the probabilities of new rows in ``predict_proba``.
    method : {"sigmoid", "isotonic", "beta", "temperature"}, default="sigmoid"
        "sigmoid": Platt's, on probabilities or margins. "isotonic": isotonic regression; it needs some hundred
        positives per label. "beta": beta calibration of probabilities, which contains the identity. "temperature":
        log-odds divided by one number that all labels share, so that the order of the labels in a row stays.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        Folds of the held-out scores; a number means `IterativeStratifiedKFold`. "prefit", or an estimator inside
        scikit-learn's ``FrozenEstimator``: the estimator is fitted already, and must not have seen the rows of ``fit``.
    n_jobs : int, optional
        Folds fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the estimator's copies and of the folds; with None the estimator keeps its own, and the folds have
        seed 0.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows (with "prefit": the one that was given).
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, y_mask: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator and the calibration to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Passed on to the estimator as it is.
        y : array-like or sparse matrix of shape (n, q)
            NaN, or -1 in an int8 y, where a label is not observed.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the calibration, and in the estimator if its ``fit`` takes them.
        y_mask : array-like or sparse matrix of shape (n, q), optional
            True where a label is observed.
        **fit_params
            Passed on to the estimator's ``fit``, by request where metadata routing is enabled.

        Raises
        ------
        MethodError
            If an argument is unknown, there are fewer rows than folds, or labels are missing and the estimator cannot
            learn from these.
        """
        self._check_choices(method=calibrated.METHODS)
        held = self._fit_held_out(X, masked(y, y_mask), sample_weight, fit_params)
        proba = hasattr(self._base(), "predict_proba")
        self._calibrate = fit_observed_calibration(self.method, held.scores, held.Y, held.weights, proba)
        return self


def masked(y: Any, y_mask: Any) -> Any:
    """Return y with NaN where the mask hides labels, or y itself without a mask; label names are kept."""
    if y_mask is None:
        return y
    Y = check_labels(y, y_mask, missing=True)
    Y = np.where(Y == -1, np.nan, Y) if has_unobserved(Y) else Y
    names = label_names(y)
    return Y if names is None else to_frame(Y, names, y)


def fit_observed_calibration(
    method: str, scores: np.ndarray, Y: np.ndarray, weights: np.ndarray, probabilities: bool
) -> CalibrationMap:
    """Fit a calibration map to the observed cells, those where Y is not -1; see `fit_calibration`."""
    observed = Y >= 0
    if observed.all():
        return fit_calibration(method, scores, Y, weights, probabilities)
    columns = zip(scores.T, Y.T, observed.T, strict=True)
    cells = [(s[seen, None], y[seen, None], weights[seen]) for s, y, seen in columns]
    mixed = [len(np.unique(y[weight > 0])) == 2 for _, y, weight in cells]
    pooled = None
    if method == "temperature" and any(mixed):  # one map for all labels with both classes
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
