# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Decisions of any multi-label classifier, tuned on held-out scores."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import binom

from multilab.decision._held_out import HeldOutClassifier, HeldOutScores
from multilab.decision.calibrated import CalibrationMethod, fit_calibration
from multilab.decision.expected_f1 import expected_f1_decisions
from multilab.decision.thresholds import LOWEST, OBJECTIVES, LabelCurves, best_k, best_nested, label_ranks
from multilab.methods.base import MethodError

__all__ = ["TunedThresholdClassifier"]

_POLICIES = ("per_label", "global", "top_k", "cost", "expected", "fixed")
_PER_LABEL = ("macro_f1", "micro_f1", "hamming_loss")


class TunedThresholdClassifier(HeldOutClassifier):
    """Any multi-label classifier with decisions tuned for an objective, from completely observed labels.

    The methods ``decide_*`` of the study `decisions` are this class; `multilab.decision.TunedThresholdClassifier` is
    its subclass in ``_observed.py``, which describes the arguments.
    """

    def __init__(
        self,
        estimator: Any = None,
        objective: Literal["macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"] = "macro_f1",
        policy: Literal["per_label", "global", "top_k", "cost", "expected", "fixed"] = "per_label",
        *,
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
        self.cv = cv
        self.calibration = calibration
        self.k = k
        self.cost = cost
        self.guarantee = guarantee
        self.confidence = confidence
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator and its decisions to X of shape (n, d) and y of shape (n, q).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Passed on to the estimator as it is.
        y : array-like or sparse matrix of shape (n, q)
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the objective, and in the estimator if its ``fit`` takes them.
        **fit_params
            Passed on to the estimator's ``fit``, by request where metadata routing is enabled.

        Raises
        ------
        MethodError
            If an argument is unknown or does not fit the others, or there are fewer rows than folds.
        """
        self._check_arguments()
        held = self._fit_held_out(X, y, sample_weight, fit_params)
        scores = held.scores
        self._calibrate = None
        if self.calibration is not None:
            proba = hasattr(self._base(), "predict_proba")
            self._calibrate = fit_calibration(self.calibration, scores, held.Y, held.weights, proba)
            scores = self._calibrate(scores)
        seen = held.Y[held.weights > 0]
        self._never, self._always = ~seen.any(axis=0), seen.all(axis=0)
        for name in ("thresholds_", "k_"):
            if hasattr(self, name):
                delattr(self, name)
        if self.policy == "top_k":
            self.k_ = self._number(scores, held)
        elif self.policy == "fixed":
            self.thresholds_ = np.full(self.n_labels_, 0.5 if self._score_kind() == "probability" else 0.0)
        elif self.policy != "expected":
            thresholds = self._tuned_thresholds(self._with_constants(scores), held)
            self.thresholds_ = np.where(self._never, np.inf, np.where(self._always, LOWEST, thresholds))
        return self

    def _check_arguments(self) -> None:
        self._check_choices(objective=OBJECTIVES, policy=_POLICIES)
        if self.policy == "per_label" and self.objective not in _PER_LABEL:
            raise MethodError(
                f"policy='per_label' has no exact maximiser of {self.objective!r}: give policy='global' or 'top_k'"
                + (", or 'expected'" if self.objective == "example_f1" else "")
            )
        if self.policy == "expected" and self.objective != "example_f1":
            raise MethodError(f"policy='expected' is for objective='example_f1', got {self.objective!r}")
        if self.policy == "expected" and self._score_kind() != "probability":
            raise MethodError("policy='expected' needs probabilities: give calibration='sigmoid'")
        if self.guarantee is not None and self.policy not in ("per_label", "cost"):
            raise MethodError(f"`guarantee` needs policy='per_label' or 'cost', got {self.policy!r}")
        whole = isinstance(self.k, int | np.integer) and not isinstance(self.k, bool) and self.k >= 0
        if not (whole or self.k is None or self.k == "cardinality"):
            raise MethodError(f"k={self.k!r}: give a number of labels >= 0, 'cardinality' or None")

    def _number(self, scores: np.ndarray, held: HeldOutScores) -> int:
        if self.k == "cardinality":
            return int(np.floor(held.Y.sum(axis=1).mean() + 0.5))
        if self.k is not None:
            return int(self.k)
        return best_k(held.Y, self._with_constants(scores), self.objective, held.weights)

    def _tuned_thresholds(self, scores: np.ndarray, held: HeldOutScores) -> np.ndarray:
        if self.policy == "global":
            return np.full(self.n_labels_, best_nested(held.Y, scores, held.weights, self.objective))
        curves = LabelCurves.of(held.Y, scores, held.weights)
        if self.guarantee is not None:
            if not np.all(held.weights == 1):
                raise MethodError("`guarantee` counts rows and takes no sample_weight")
            measure, level = self.guarantee
            curves = guaranteed(curves, measure, level, self.confidence)
        if self.policy == "cost" or self.objective == "hamming_loss":
            return curves.thresholds(curves.cost_cuts(self.cost if self.policy == "cost" else (1.0, 1.0)))
        return curves.thresholds(curves.macro_f1_cuts() if self.objective == "macro_f1" else curves.micro_f1_cuts())

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
