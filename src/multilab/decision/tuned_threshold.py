"""Decisions of any multi-label classifier, tuned on held-out scores."""

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import binom

from multilab.core.messages import printable
from multilab.core.text import listed
from multilab.decision._held_out import HeldOutClassifier, HeldOutScores
from multilab.decision.calibrated import CalibrationMethod, fit_calibration
from multilab.decision.expected_f1 import expected_f1_decisions
from multilab.decision.guard import SHRINKAGE, guarded
from multilab.decision.thresholds import (
    LOWEST,
    LabelCurves,
    best_nested,
    expected_cost_thresholds,
    label_ranks,
    metric_of_decisions,
    value_of_decisions,
)
from multilab.methods.base import MethodError
from multilab.metrics.own_metrics import MetricLike

__all__ = ["TunedThresholdClassifier"]

_POLICIES = ("per_label", "global", "top_k", "cost", "expected_cost", "expected", "fixed")


class TunedThresholdClassifier(HeldOutClassifier):
    """Any multi-label classifier with decisions tuned for an objective.

    The training rows are scored out of fold, the best decisions for the objective on these scores are computed exactly,
    and the estimator is fitted again on all rows. Thresholds are never tuned on scores of rows that the estimator was
    fitted on, because they would overfit with it.

    Parameters
    ----------
    estimator : multi-label classifier or "precomputed", optional
        A classifier with ``predict_proba`` (which returns an array, or a list of arrays as scikit-learn's forests do)
        or ``decision_function``; ``BinaryRelevance(LogisticRegression())`` when None. With "precomputed", X holds
        held-out probabilities in ``fit`` and the probabilities of new rows in ``predict``, shape (n, q).
    objective : str or callable, default="macro_f1"
        Metric of the decisions on held-out rows to optimise: a name of `multilab.metrics` (under the default
        conventions), a scorer, or a function of your own (guide page *your own metric*); see Notes.
    policy : {"per_label", "global", "top_k", "cost", "expected_cost", "expected", "fixed"}, default="per_label"
        "per_label" tunes one threshold per label, "global" one threshold for all labels. "top_k" assigns the k labels
        of highest score in every row. "cost" finds one threshold per label with the smallest cost on the held-out rows,
        and "expected_cost" one with the smallest expected cost if the probabilities are right, see
        `expected_cost_thresholds`; neither uses ``objective``. "expected" assigns each row the set with the largest
        expected example F1 if labels are independent and the probabilities right (objective "example_f1"). "fixed"
        assigns labels with probability >= 0.5 or margin >= 0; nothing is tuned.
    guard : bool, default=False
        Whether to replace the threshold of labels that would be assigned far more often than they occur by the cut that
        matches their frequency, and with "macro_f1" also shrink thresholds based on few positives towards that cut. See
        `guarded_thresholds`. Only for the policies "per_label" and "global", without ``guarantee``.
    cv : int, splitter, iterable of (train, test) or "prefit", default=5
        Folds of the held-out scores; a number means `IterativeStratifiedKFold`. With "prefit", or an estimator inside
        scikit-learn's ``FrozenEstimator``, the estimator is fitted already, and must not have seen the rows of ``fit``.
    calibration : {None, "sigmoid", "isotonic", "beta", "temperature"}, default=None
        Calibration of the scores on the same held-out rows, before thresholds are tuned (see
        `CalibratedMultiLabelClassifier`).
    k : int or "cardinality", optional
        Number of labels per row with "top_k". "cardinality" is the mean number of labels in training (rounded half up).
        When None, the number that is best for the objective.
    cost : pair (false positive, false negative) or mapping, default=(1.0, 1.0)
        Costs of "cost" and "expected_cost": numbers, or arrays of shape (q,). The mapping has the costs of the outcomes
        "fp" and "fn", and those of "tp" and "tn" if they are not 0.
    guarantee : ("recall" or "precision", level), optional
        Restrict the thresholds of each label, with "per_label" and "cost", to those that have at least this recall or
        precision with probability ``confidence``; see Notes.
    confidence : float, default=0.9
        Confidence of the guarantee, of each label by itself.
    n_jobs : int, optional
        Number of folds fitted at the same time; it does not change the result.
    random_state : int or RandomState, optional
        Seed of the estimator's copies and of the folds; with None the estimator keeps its own, and the folds have
        seed 0.

    Attributes
    ----------
    estimator_ : estimator
        The estimator, fitted on all rows; with "prefit", the given one.
    thresholds_ : ndarray of shape (q,)
        Threshold of each label, for all policies except "top_k" and "expected". A label is assigned where its score is
        at least its threshold. +inf means never, the most negative number always.
    k_ : int
        Number of labels per row, only with "top_k".
    unreached_ : ndarray of int
        Labels for which no threshold reaches the ``guarantee``, only with a guarantee; `fit` warns of them.
    folds_ : list of (train, test) or None
        Folds of the held-out scores; None if the estimator was fitted already.
    n_features_in_, n_labels_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    **Objectives.** "per_label" is exact for micro F1, weighted F1, Hamming loss and all metrics that are means over
    labels, such as macro F1, F-beta and Matthews correlation. "global" and "top_k" are exact for macro F1, micro F1,
    example F1, Hamming loss and subset accuracy. Other objectives are computed at up to 100 cuts, evenly spaced among
    the scores: of all labels, or label by label, from the thresholds of macro F1, until no other threshold of a single
    label is better.

    **Ties.** Among decisions that are equally good on the held-out rows (to 1e-12), those with the fewest labels are
    chosen. A threshold is midway between two scores; scores that differ only by rounding (2^-30 of the largest) are
    never separated. In "top_k", a tie goes to the label with the lower index. Constant scores are therefore all
    assigned or all not, whichever is better.

    **Labels with one class in training** are never, or always, assigned, under every policy except "fixed". If scores
    are uninformative, assigning a label to every row maximises F1; "hamming_loss" then assigns the more frequent class.
    One row is enough for an estimator that is fitted already; folds need two.

    **Guard.** The rule of `guarded_thresholds` is applied to the held-out scores. Thresholds are shrunk only for macro
    F1, where each threshold depends on the few positives of its own label: over 13 datasets and three learners, shrunk
    thresholds have a higher macro F1 than the guard alone, but a lower micro F1 and a higher Hamming loss if tuned for
    these. `multilab compare` and `multilab fit --decision` use the guard.

    **Missing labels** (NaN, -1 in int8, or ``y_mask``): the estimator must learn from them; its scores of unobserved
    cells are ignored. With "top_k", the k labels are those with the highest scores among all.

    **Guarantee.** "recall" uses the exact binomial bound, "precision" Learn then Test with Bonferroni's correction; if
    no threshold can be guaranteed for a label, it is assigned to every row (recall) or to none (precision), and `fit`
    warns. The guarantee holds for rows of the same distribution as the held-out rows and for the models that scored
    these: exactly with "prefit", approximately with folds, since the final estimator is another model, fitted on more
    rows. A guarantee excludes ``sample_weight``.

    ``predict_proba`` and ``decision_function`` return the scores that are compared with the thresholds.

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
        objective: Literal["macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"]
        | MetricLike = "macro_f1",
        policy: Literal["per_label", "global", "top_k", "cost", "expected_cost", "expected", "fixed"] = "per_label",
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
        self.estimator = estimator
        self.objective = objective
        self.policy = policy
        self.guard = guard
        self.cv = cv
        self.calibration = calibration
        self.k = k
        self.cost = cost
        self.guarantee = guarantee
        self.confidence = confidence
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
        """Fit the estimator and its decisions to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Features, passed on unchanged to the estimator.
        y : array-like or sparse matrix of shape (n, q)
            Labels, 0/1; NaN, or -1 in an int8 y, where a label is not observed.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the objective, and in the estimator if its ``fit`` takes them.
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
            If an argument is unknown or does not fit the others, there are fewer rows than folds, or labels are
            missing and the estimator cannot learn from these.
        """
        self._check_arguments()
        held = self._fit_held_out(X, y, y_mask, sample_weight, groups, fit_params)
        scores = held.scores
        self._calibrate = None
        if self.calibration is not None:
            proba = hasattr(self._base(), "predict_proba")
            self._calibrate = fit_calibration(self.calibration, scores, held.Y, held.weights, proba)
            scores = self._calibrate(scores)
        counted = held.weights > 0
        self._never = ~(held.Y[counted] == 1).any(axis=0)
        self._always = ~self._never & ~(held.Y[counted] == 0).any(axis=0)
        for name in ("thresholds_", "k_", "unreached_"):
            if hasattr(self, name):
                delattr(self, name)
        held = held._replace(scores=self._with_constants(scores))
        if self.policy == "top_k":
            self.k_ = self._number(held)
        elif self.policy == "fixed":
            self.thresholds_ = np.full(self.n_labels_, 0.5 if self._score_kind() == "probability" else 0.0)
        elif self.policy != "expected":
            thresholds = self._tuned_thresholds(_observed_only(held), _mask(held))
            self.thresholds_ = np.where(self._never, np.inf, np.where(self._always, LOWEST, thresholds))
        return self

    def _check_arguments(self) -> None:
        self._check_choices(policy=_POLICIES)
        metric_of_decisions(self.objective)
        if self.policy == "expected" and self.objective != "example_f1":
            raise MethodError(f"policy='expected' is for objective='example_f1', got {self.objective!r}")
        if self.policy in ("expected", "expected_cost") and self._score_kind() != "probability":
            raise MethodError(f"policy={self.policy!r} needs probabilities; give calibration='sigmoid'")
        if self.guarantee is not None and self.policy not in ("per_label", "cost"):
            raise MethodError(f"`guarantee` needs policy='per_label' or 'cost', got {self.policy!r}")
        if self.guard and self.policy not in ("per_label", "global"):
            raise MethodError(f"`guard` needs policy='per_label' or 'global', got {self.policy!r}")
        if self.guard and self.guarantee is not None:
            raise MethodError("`guard` moves thresholds, which may break the `guarantee`; give one of the two")
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool) and self.k >= 0
        if not (whole or self.k is None or self.k == "cardinality"):
            raise MethodError(f"k={self.k!r}: give a number of labels >= 0, 'cardinality' or None")

    def _number(self, held: HeldOutScores) -> int:
        if self.k == "cardinality":
            observed = held.Y >= 0
            if observed.all():
                return int(np.floor(held.Y.sum(axis=1).mean() + 0.5))
            # the mean number of labels, were the observed cells drawn at random
            return int(np.floor(((held.Y == 1).sum(axis=0) / observed.sum(axis=0)).sum() + 0.5))
        if self.k is not None:
            return int(self.k)
        scores = held.scores
        priority = np.where(np.isfinite(scores), -label_ranks(scores).astype(float), scores)  # as `best_k`
        ranked = _observed_only(held._replace(scores=priority))
        threshold = best_nested(ranked.Y, ranked.scores, ranked.weights, self.objective, _mask(held))
        return int(np.clip(np.ceil(-threshold), 0, self.n_labels_))

    def _tuned_thresholds(self, held: HeldOutScores, observed: np.ndarray | None) -> np.ndarray:
        scores, Y, weights = held
        if self.policy == "expected_cost":
            return expected_cost_thresholds(self.cost, self.n_labels_)
        if self.policy == "global":
            thresholds = np.full(self.n_labels_, best_nested(Y, scores, weights, self.objective, observed))
            return guarded(LabelCurves.of(Y, scores, weights), thresholds, weights, 0.0) if self.guard else thresholds
        curves = LabelCurves.of(Y, scores, weights)
        if self.guarantee is not None:
            if not np.all(weights == 1):
                raise MethodError("`guarantee` counts rows and takes no sample_weight")
            measure, level = self.guarantee
            curves = guaranteed(curves, measure, level, self.confidence)
            self._warn_of_unreached(curves, measure, level)
        thresholds = curves.thresholds(self._cuts(curves, held, observed))
        if self.guard:
            is_macro = metric_of_decisions(self.objective).name == "macro_f1"
            return guarded(curves, thresholds, weights, SHRINKAGE if is_macro else 0.0)
        return thresholds

    def _warn_of_unreached(self, curves: LabelCurves, measure: str, level: float) -> None:
        """Keep, and name in a warning, the labels for which no threshold is allowed; constant labels have none."""
        if measure == "recall":  # but the one below all scores
            reached = (curves.allowed[:-1] & (curves.ordered > -np.inf)).any(axis=0)
            instead = "assigned to every row"
        else:
            reached, instead = curves.allowed[1:].any(axis=0), "assigned to no row"
        self.unreached_ = np.flatnonzero(~reached & ~self._never & ~self._always)
        if self.unreached_.size:
            known = getattr(self, "label_names_", None)
            names = [f"label {j}" if known is None else printable(known[j]) for j in self.unreached_]
            warnings.warn(
                f"no threshold has a {measure} of at least {level:g} with confidence {self.confidence:g} for "
                f"{listed(names)}: {instead}; give a lower level, or more rows",
                UserWarning,
                stacklevel=4,
            )

    def _cuts(self, curves: LabelCurves, held: HeldOutScores, observed: np.ndarray | None) -> np.ndarray:
        """Return the cut of each label."""
        if self.policy == "cost":
            return curves.cost_cuts(self.cost)
        metric = metric_of_decisions(self.objective)
        if metric.name == "hamming_loss":
            return curves.cost_cuts((1.0, 1.0))
        if metric.name == "micro_f1":
            return curves.micro_f1_cuts()
        if metric.name in ("macro_f1", "weighted_f1"):  # each label's F1 is maximised, whatever its weight
            return curves.macro_f1_cuts()
        if metric.counted and metric.mean_over == "labels":
            return curves.label_metric_cuts(metric)
        return curves.searched_cuts(held.scores, value_of_decisions(metric, held.Y, held.weights, observed))

    def _with_constants(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores with -inf for labels without, and +inf for labels with all training rows."""
        return np.where(self._never, -np.inf, np.where(self._always, np.inf, scores))

    def _score_kind(self) -> str:
        return "probability" if self.calibration is not None or hasattr(self._base(), "predict_proba") else "margin"

    def _scores(self, X: Any) -> np.ndarray:
        scores = self._base_scores(X, self.n_labels_)
        return scores if self._calibrate is None else self._calibrate(scores)

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        if self.policy == "expected":
            return expected_f1_decisions(np.where(self._never, 0.0, np.where(self._always, 1.0, scores)))
        if self.policy == "top_k":
            scores = self._with_constants(scores)
            return ((label_ranks(scores) < self.k_) | np.isposinf(scores)) & ~np.isneginf(scores)
        return scores >= self.thresholds_


def _mask(held: HeldOutScores) -> np.ndarray | None:
    """Return which cells are observed, None if all are."""
    observed = held.Y >= 0
    return None if observed.all() else observed


def _observed_only(held: HeldOutScores) -> HeldOutScores:
    """Give unobserved cells no label, and a score that no cut reaches: they count nowhere."""
    observed = held.Y >= 0
    return HeldOutScores(np.where(observed, held.scores, -np.inf), np.where(observed, held.Y, 0), held.weights)


GUARANTEES = ("recall", "precision")


def guaranteed(curves: LabelCurves, measure: str, level: float, confidence: float) -> LabelCurves:
    """Return the curves with only those cuts allowed that guarantee a recall or precision of each label.

    Parameters
    ----------
    curves : LabelCurves
        Of rows that count one each, which the scoring model has not seen.
    measure : {"recall", "precision"}
    level : float
        Least value for rows of the same distribution, in (0, 1).
    confidence : float
        Probability, over the held-out rows, that the guarantee of a label holds, in (0, 1).

    Notes
    -----
    Recall falls with the threshold. With m positives, a cut that misses j of them is allowed where
    P(Binomial(m, 1 - level) <= j) <= 1 - confidence: the exact tolerance limit of order statistics, which is Learn then
    Test for a monotone risk, without a correction for many cuts. Assigning every row is always allowed.

    Precision is not monotone. Cuts after 1, 2, 3, 4, 6, 8, 11, ... rows (powers of the square root of 2) and after all
    of them are tested, each with the exact binomial test and level (1 - confidence) / number of tests (Learn then Test
    with Bonferroni's correction). The rows above a threshold at the next row's score are a sample of rows above it, so
    that the test is valid given the threshold; the threshold is therefore close to that score, not midway. Assigning no
    row is always allowed.

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei. Learn then test: calibrating predictive algorithms
    to achieve risk control. Annals of Applied Statistics 19, 2025 (arXiv:2110.01052).
    """
    for name, value in (("the level of `guarantee`", level), ("`confidence`", confidence)):
        if not 0 < value < 1:
            raise MethodError(f"{name} must be between 0 and 1, got {value}")
    error = 1 - confidence
    if measure == "recall":
        missed = curves.true - curves.hits
        allowed = curves.allowed & (binom.cdf(missed, curves.true, 1 - level) <= error)
        allowed[-1] = True
        return replace(curves, allowed=allowed)
    if measure != "precision":
        raise MethodError(f"guarantee={measure!r}: give {' or '.join(map(repr, GUARANTEES))} and a level")
    tested = precision_ranks(len(curves.ordered))
    cuts = np.where(curves.allowed, np.arange(len(curves.allowed))[:, None], 0)
    cuts = np.maximum.accumulate(cuts, axis=0)[tested]  # rows above the score after each: ties stay together
    hits = np.take_along_axis(curves.hits, cuts, axis=0)
    passed = (cuts > 0) & (binom.sf(hits - 1, cuts, level) <= error / len(tested))
    allowed = np.zeros_like(curves.allowed)
    np.put_along_axis(allowed, np.where(passed, cuts, 0), True, axis=0)
    allowed[0] = True
    return replace(curves, allowed=allowed & curves.allowed, close=True)


def precision_ranks(n: int) -> np.ndarray:
    """Return the numbers of rows after which precision is tested: powers of the square root of 2, and n."""
    ranks = np.unique(np.rint(2.0 ** np.arange(0, np.log2(n), 0.5)).astype(int))
    return np.append(ranks[ranks < n], n)
