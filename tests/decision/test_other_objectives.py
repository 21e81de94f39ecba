"""Thresholds for metrics without a maximiser of their own, for scorers and for functions, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import f1_score, fbeta_score, make_scorer

from decision.test_maximisers import candidates, exact, problems
from multilab import metrics
from multilab.decision import TunedThresholdClassifier, best_k, global_threshold, macro_f1_thresholds
from multilab.decision.thresholds import LabelCurves, label_ranks, metric_of_decisions
from multilab.methods import MLkNN
from multilab.methods.base import MethodError
from multilab.metrics.registry import ALL_METRICS

RNG = np.random.default_rng(0)
Y = (RNG.random((150, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(int)
P = np.clip(0.4 * Y + RNG.random(Y.shape) * 0.6, 0, 1)
HELD = {"estimator": "precomputed"}
MEANS = [name for name, m in ALL_METRICS.items() if m.needs == "decisions" and m.mean_over == "labels"]


def mean_over_labels(Y, decisions):
    """Macro F1, in other words than those of the package."""
    hits = (Y * decisions).sum(axis=0)
    return np.mean(2 * hits / np.maximum(Y.sum(axis=0) + decisions.sum(axis=0), 1))


def mean_f1(Y, decisions):
    """A mean over rows, which no label decides alone."""
    return metrics.example_f1(Y, decisions)


@pytest.mark.parametrize("name", MEANS)
@exact
@given(problems())
def test_the_cut_of_each_label_is_the_best_for_a_mean_over_labels(name, problem):
    truth, scores, weights = problem
    curves = LabelCurves.of(truth, scores, weights.astype(float))
    thresholds = curves.thresholds(curves.label_metric_cuts(metric_of_decisions(name)))
    function = getattr(metrics, name)
    for y, s, t in zip(truth.T, scores.T, thresholds, strict=True):
        values = {c: function(y[:, None], (s >= c)[:, None], sample_weight=weights) for c in candidates(s)}
        reached = function(y[:, None], (s >= t)[:, None], sample_weight=weights)
        assert reached == pytest.approx(max(values.values()), abs=1e-12)
        assert (s >= t).sum() == min((s >= c).sum() for c, v in values.items() if v > max(values.values()) - 1e-13)


@exact
@given(problems())
def test_one_threshold_and_k_are_the_best_of_all_for_a_function(problem):
    truth, scores, _ = problem
    values = {t: mean_f1(truth, scores >= t) for t in candidates(scores)}
    reached = global_threshold(truth, scores, lambda Y, decisions: mean_f1(Y, decisions))
    assert reached == global_threshold(truth, scores, "example_f1")
    assert mean_f1(truth, scores >= reached) == pytest.approx(max(values.values()), abs=1e-12)
    by_k = [metrics.jaccard(truth, label_ranks(scores) < k) for k in range(truth.shape[1] + 1)]
    k = best_k(truth, scores, "jaccard")
    assert by_k[k] == pytest.approx(max(by_k), abs=1e-12)


@exact
@given(problems())
def test_no_change_of_one_threshold_is_better(problem):
    truth, scores, weights = problem
    curves = LabelCurves.of(truth, scores, weights.astype(float))
    cuts = curves.searched_cuts(scores, lambda decisions: mean_f1(truth, decisions))
    decided = scores >= curves.thresholds(cuts)
    reached = mean_f1(truth, decided)
    for label, column in enumerate(scores.T):
        for threshold in candidates(column):
            other = decided.copy()
            other[:, label] = column >= threshold
            assert mean_f1(truth, other) <= reached + 1e-12


@pytest.mark.parametrize(
    "objective",
    [
        mean_over_labels,
        make_scorer(f1_score, average="macro", zero_division=0),
        metrics.macro_f1,
        metrics.get_scorer("macro_f1"),
    ],
)
def test_a_function_or_scorer_of_macro_f1_tunes_as_macro_f1(objective):
    found = TunedThresholdClassifier("precomputed", objective=objective).fit(P, Y).predict(P)
    expected = metrics.macro_f1(Y, macro_f1_thresholds(Y, P) <= P)
    # at most 100 cuts of 150 are tried for what is not known to be macro F1
    assert metrics.macro_f1(Y, found) == pytest.approx(expected, abs=0.01)
    assert metrics.macro_f1(Y, found) > metrics.macro_f1(Y, P >= 0.5) + 0.05


@pytest.mark.slow
def test_thresholds_for_f_beta_trade_precision_for_recall():
    scorers = [make_scorer(fbeta_score, beta=beta, average="micro") for beta in (0.5, 2)]
    tuned = [TunedThresholdClassifier("precomputed", objective=scorer).fit(P, Y).predict(P) for scorer in scorers]
    for k, beta in enumerate((0.5, 2)):
        values = [metrics.micro_fbeta(Y, decisions, beta=beta) for decisions in tuned]
        assert values[k] > values[1 - k]
    assert tuned[1].sum() > tuned[0].sum()


@pytest.mark.parametrize("policy", ["per_label", "global", "top_k"])
def test_cells_that_are_not_observed_and_rows_without_weight_do_not_count(policy):
    labels, scores = Y[:90], P[:90]
    seen = np.random.default_rng(1).random(labels.shape) < 0.8
    weights = np.r_[np.ones(70), np.zeros(20)]
    alone = TunedThresholdClassifier("precomputed", objective="jaccard", policy=policy)
    expected = alone.fit(scores[:70], labels[:70], y_mask=seen[:70]).predict(scores[:70])
    for filler in (0, 1):
        filled = np.where(seen, labels, filler)
        model = TunedThresholdClassifier("precomputed", objective="jaccard", policy=policy)
        model.fit(scores, filled, sample_weight=weights, y_mask=seen)
        np.testing.assert_array_equal(model.predict(scores[:70]), expected)


def test_weighted_f1_has_the_thresholds_of_macro_f1():
    thresholds = [
        TunedThresholdClassifier(**HELD, objective=f"{kind}_f1").fit(P, Y).thresholds_ for kind in ("macro", "weighted")
    ]
    np.testing.assert_array_equal(*thresholds)


def test_a_guarantee_restricts_the_search():
    bounded = TunedThresholdClassifier("precomputed", objective=mean_f1, guarantee=("recall", 0.7)).fit(P, Y)
    free = TunedThresholdClassifier("precomputed", objective=mean_f1).fit(P, Y)
    assert (bounded.thresholds_ <= free.thresholds_).all()
    assert metrics.macro_recall(Y, bounded.predict(P)) > 0.7


@pytest.mark.parametrize(
    "objective",
    [
        "auc",
        "macro_auc",
        make_scorer(f1_score, response_method="predict_proba"),
        lambda Y, scores: 0.0,
        lambda Y, Z: 0.0,
    ],
)
def test_what_is_no_metric_of_decisions_is_refused(objective):
    with pytest.raises(MethodError, match="objective"):
        TunedThresholdClassifier(MLkNN(), objective=objective).fit(P, Y)
    with pytest.raises(MethodError, match="objective"):
        global_threshold(Y, P, objective)
