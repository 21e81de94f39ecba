"""The guard: thresholds assign no label far more often than it occurs, and few positives do not decide alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from multilab.decision import TunedThresholdClassifier, guarded_thresholds, macro_f1_thresholds, micro_f1_thresholds
from multilab.decision.thresholds import LOWEST
from multilab.methods import BinaryRelevance
from multilab.methods.base import MethodError
from multilab.metrics import macro_f1, micro_f1, over_assigned

N = 600


def rare_noise(seed=0, n=N):
    """Return a table like that of the case `rare_noise_label`: two labels of the features, one of eight random rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noise = np.zeros(n)
    noise[rng.choice(n, round(n * 8 / 600), replace=False)] = 1
    hot, wet = X[:, 0] + 0.15 * rng.normal(size=n) > 1, X[:, 1] + 0.15 * rng.normal(size=n) > 1.2
    return X, np.column_stack([hot, wet, noise]).astype(int)


def plain():
    return BinaryRelevance(LogisticRegression(), calibration="none")


def test_the_guard_takes_back_what_thresholds_for_macro_f1_cost_in_micro_f1():
    values = []
    for seed in range(5):
        X, Y = rare_noise(seed)
        new, truth = rare_noise(seed + 100)
        models = (
            plain(),
            TunedThresholdClassifier(plain(), random_state=0),
            TunedThresholdClassifier(plain(), guard=True, random_state=0),
        )
        predicted = [model.fit(X, Y).predict(new) for model in models]
        values.append([[metric(truth, each) for each in predicted] for metric in (micro_f1, macro_f1)])
        assert not over_assigned(range(3), predicted[2].mean(axis=0), truth.mean(axis=0))
    (own, tuned, guarded), (own_macro, _, guarded_macro) = np.mean(values, axis=0)
    assert tuned < own - 0.2
    assert guarded >= own - 0.02
    assert guarded_macro > own_macro


def test_a_label_assigned_too_often_gets_the_cut_of_its_frequency():
    scores = np.linspace(0, 1, 100)[:, None]
    Y = np.zeros((100, 1), dtype=int)
    Y[[5, 40, 70, 90]] = 1  # of no use for the scores
    for thresholds in (np.array([LOWEST]), np.array([scores[24, 0]]), 0.0):
        guarded = guarded_thresholds(Y, scores, thresholds, shrinkage=0)
        assert (scores >= guarded).sum() == 4
    allowed = scores[100 - 24, 0]  # 24 of 100 rows: the frequency and .2
    assert guarded_thresholds(Y, scores, [allowed], shrinkage=0) == allowed
    assert (scores >= guarded_thresholds(Y, scores, [scores[100 - 25, 0]], shrinkage=0)).sum() == 4


def test_thresholds_shrink_towards_the_frequency_by_the_number_of_positives():
    rng = np.random.default_rng(0)
    scores = rng.random((1000, 2))
    Y = np.zeros((1000, 2), dtype=int)
    Y[:10, 0], Y[:990, 1] = 1, 1
    thresholds = np.sort(scores, axis=0)[[-70, -995], [0, 1]]  # assigned to 70 and to 995 rows
    for shrinkage in (0, 5, 10, 40):
        guarded = guarded_thresholds(Y, scores, thresholds, shrinkage=shrinkage)
        expected = [10 + 60 * 10 / (10 + shrinkage), 990 + 5 * 990 / (990 + shrinkage)]
        assert np.abs((scores >= guarded).sum(axis=0) - expected).max() <= 0.5
    assert (guarded_thresholds(Y, scores, thresholds, shrinkage=0) == thresholds).all()
    margins = np.log(scores / (1 - scores))
    logits = guarded_thresholds(Y, margins, np.log(thresholds / (1 - thresholds)))
    assert ((margins >= logits) == (scores >= guarded_thresholds(Y, scores, thresholds))).all()


def test_ties_and_labels_of_one_class_stay():
    Y = np.zeros((50, 3), dtype=int)
    Y[:, 1], Y[:4, 2] = 1, 1
    scores = np.full((50, 3), 0.5)  # a cut separates none of them
    guarded = guarded_thresholds(Y, scores, [np.inf, LOWEST, LOWEST])
    assert (scores >= guarded).sum(axis=0).tolist() == [0, 50, 0]
    model = TunedThresholdClassifier("precomputed", guard=True).fit(scores, Y)
    assert model.predict(scores).sum(axis=0).tolist() == [0, 50, 0]


def test_weights_count_as_repeated_rows_and_hidden_cells_as_none():
    rng = np.random.default_rng(1)
    scores, Y = rng.random((80, 3)), (rng.random((80, 3)) < [0.05, 0.2, 0.5]).astype(int)
    weights = rng.integers(0, 4, 80)
    repeated = np.repeat(np.arange(80), weights)
    thresholds = macro_f1_thresholds(Y[repeated], scores[repeated])
    once = guarded_thresholds(Y, scores, thresholds, weights, shrinkage=0)
    many = guarded_thresholds(Y[repeated], scores[repeated], thresholds, shrinkage=0)
    assert ((scores >= once) == (scores >= many))[weights > 0].all()
    mask = rng.random(Y.shape) < 0.7
    hidden = guarded_thresholds(np.where(mask, Y, np.nan), scores, thresholds)
    assert (hidden == guarded_thresholds(Y, scores, thresholds, y_mask=mask)).all()
    for j in range(3):
        seen = mask[:, j]
        alone = guarded_thresholds(Y[seen, j : j + 1], scores[seen, j : j + 1], thresholds[j])
        assert ((scores[seen, j] >= hidden[j]) == (scores[seen, j] >= alone)).all()


@pytest.mark.parametrize("objective", ["micro_f1", "hamming_loss", "example_f1", "subset_accuracy"])
def test_other_objectives_are_guarded_but_not_shrunk(objective):
    policy = "per_label" if objective in ("micro_f1", "hamming_loss") else "global"
    X, Y = rare_noise()
    own = TunedThresholdClassifier(plain(), objective, policy, random_state=0).fit(X, Y)
    guarded = TunedThresholdClassifier(plain(), objective, policy, guard=True, random_state=0).fit(X, Y)
    assert (own.thresholds_ == guarded.thresholds_).all()  # none of them assigns a label too often here


def test_the_estimator_tunes_and_guards_on_its_out_of_fold_scores():
    rng = np.random.default_rng(2)
    scores, Y = rng.random((200, 4)), (rng.random((200, 4)) < [0.02, 0.1, 0.3, 0.6]).astype(int)
    model = TunedThresholdClassifier("precomputed", guard=True).fit(scores, Y)
    expected = guarded_thresholds(Y, scores, macro_f1_thresholds(Y, scores))
    np.testing.assert_array_equal(model.thresholds_, expected)
    model = TunedThresholdClassifier("precomputed", "micro_f1", guard=True).fit(scores, Y)
    expected = guarded_thresholds(Y, scores, micro_f1_thresholds(Y, scores), shrinkage=0)
    np.testing.assert_array_equal(model.thresholds_, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "cost"}, "`guard` needs policy='per_label' or 'global', got 'cost'"),
        ({"policy": "top_k"}, "`guard` needs policy='per_label' or 'global', got 'top_k'"),
        ({"guarantee": ("recall", 0.9)}, "which may break the `guarantee`"),
    ],
)
def test_what_a_guard_would_break_is_refused(arguments, message):
    with pytest.raises(MethodError, match=message):
        TunedThresholdClassifier("precomputed", guard=True, **arguments).fit(np.eye(4), np.eye(4))
    for given, message in (({"shrinkage": -1}, "must be >= 0"), ({"thresholds": [0.1, 0.2, 0.3]}, "one per label")):
        with pytest.raises(MethodError, match=message):
            guarded_thresholds(np.eye(4), np.eye(4), **{"thresholds": 0.5, **given})
