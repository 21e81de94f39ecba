"""Thresholds and calibration with labels that were not observed: only the observed cells count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from multilab.decision import (
    CalibratedMultiLabelClassifier,
    TunedThresholdClassifier,
    cost_thresholds,
    guarded_thresholds,
    macro_f1_thresholds,
)
from multilab.methods import BinaryRelevance
from multilab.methods.base import MethodError
from multilab.metrics import score_all

RNG = np.random.default_rng(0)
X, Y = make_multilabel_classification(n_samples=120, n_features=6, n_classes=4, n_labels=2, random_state=0)
MASK = RNG.random(Y.shape) < 0.7
HIDDEN = np.where(MASK, Y, np.nan)
SCORES = np.round(np.clip(0.5 * Y + 0.6 * RNG.random(Y.shape), 0, 1), 2)
PLAIN = BinaryRelevance(LogisticRegression(), calibration="none")
FOLDS = [(np.flatnonzero(np.arange(120) % 3 != k), np.flatnonzero(np.arange(120) % 3 == k)) for k in range(3)]


@pytest.mark.parametrize("form", ["nan", "int8", "mask", "frame"])
def test_every_form_of_missing_labels_gives_the_same_thresholds(form):
    frame = pd.DataFrame(Y, columns=list("abcd"))
    given = {
        "nan": (HIDDEN, None),
        "int8": (np.where(MASK, Y, -1).astype(np.int8), None),
        "mask": (np.where(MASK, Y, 1), MASK),  # the hidden values do not matter
        "frame": (frame, MASK),
    }[form]
    for wrapper in (TunedThresholdClassifier, CalibratedMultiLabelClassifier):
        model = wrapper(PLAIN, cv=FOLDS).fit(X, given[0], y_mask=given[1])
        expected = wrapper(PLAIN, cv=FOLDS).fit(X, HIDDEN)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        assert list(getattr(model, "label_names_", "")) == (list("abcd") if form == "frame" else [])


def test_thresholds_are_those_of_the_observed_rows_of_out_of_fold_scores():
    model = TunedThresholdClassifier(PLAIN, cv=FOLDS).fit(X, HIDDEN)
    held = np.empty(Y.shape)
    for train, test in FOLDS:
        held[test] = PLAIN.fit(X[train], HIDDEN[train]).predict_proba(X[test])
    for j in range(4):
        seen = MASK[:, j]
        expected = macro_f1_thresholds(Y[seen][:, [j]], held[seen][:, [j]])
        assert model.thresholds_[j] == expected[0]
    np.testing.assert_array_equal(model.predict_proba(X), PLAIN.fit(X, HIDDEN).predict_proba(X))


def test_costs_and_guarantees_count_observed_rows():
    model = TunedThresholdClassifier("precomputed", policy="cost", cost=(1, 3)).fit(SCORES, HIDDEN)
    recall = TunedThresholdClassifier("precomputed", guarantee=("recall", 0.8)).fit(SCORES, HIDDEN)
    for j in range(4):
        seen = MASK[:, j]
        column = Y[seen][:, [j]], SCORES[seen][:, [j]]
        assert model.thresholds_[j] == cost_thresholds(*column, cost=(1, 3))[0]
        alone = TunedThresholdClassifier("precomputed", guarantee=("recall", 0.8)).fit(column[1], column[0])
        assert recall.thresholds_[j] == alone.thresholds_[0]


@pytest.mark.parametrize("objective", ["macro_f1", "micro_f1", "example_f1", "hamming_loss", "subset_accuracy"])
@pytest.mark.parametrize("policy", ["per_label", "global", "top_k"])
def test_the_objective_of_the_observed_cells_is_the_best_of_all_thresholds(objective, policy):
    if policy == "per_label" and objective not in ("macro_f1", "micro_f1", "hamming_loss"):
        return
    model = TunedThresholdClassifier("precomputed", objective, policy).fit(SCORES, HIDDEN)
    sign = -1 if objective == "hamming_loss" else 1

    def value(decisions):
        return sign * score_all(HIDDEN, None, decisions, metrics=[objective])[objective]

    found = value(model.predict(SCORES))
    if policy == "top_k":
        others = [TunedThresholdClassifier("precomputed", policy="top_k", k=k).fit(SCORES, Y) for k in range(5)]
        tried = [value(other.predict(SCORES)) for other in others]
    elif policy == "global":
        tried = [value(t <= SCORES) for t in np.linspace(0, 1.1, 111) - 0.005]
    else:
        moved = [model.thresholds_ + step * np.eye(4)[j] for j in range(4) for step in np.arange(-1, 1, 0.05)]
        tried = [value(t <= SCORES) for t in moved]
    assert found >= max(tried) - 1e-12


def test_the_label_cardinality_is_that_of_observed_cells():
    Y = np.array([[1, 1, 0], [1, np.nan, 0], [1, np.nan, np.nan], [np.nan, 1, 1]])  # frequencies 1, 1 and 1/3
    scores = np.tile([0.9, 0.8, 0.7], (4, 1))
    assert TunedThresholdClassifier("precomputed", policy="top_k", k="cardinality").fit(scores, Y).k_ == 2
    assert TunedThresholdClassifier("precomputed", policy="top_k", k=1).fit(scores, Y).k_ == 1


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "beta", "temperature"])
def test_calibration_of_a_label_is_that_of_its_observed_rows(method):
    one_class = HIDDEN.copy()
    one_class[:, 3] = np.where(MASK[:, 3], 1, np.nan)
    model = CalibratedMultiLabelClassifier("precomputed", method).fit(SCORES, one_class)
    P = model.predict_proba(SCORES)
    assert (P[:, 3] == 1).all()
    if method == "temperature":
        seen = MASK[:, :3]
        pooled = CalibratedMultiLabelClassifier("precomputed", method)
        pooled.fit(SCORES[:, :3].T[seen.T][:, None], Y[:, :3].T[seen.T][:, None])
        expected = np.hstack([pooled.predict_proba(SCORES[:, [j]]) for j in range(3)])
    else:
        expected = np.hstack(
            [
                CalibratedMultiLabelClassifier("precomputed", method)
                .fit(SCORES[seen][:, [j]], Y[seen][:, [j]])
                .predict_proba(SCORES[:, [j]])
                for j, seen in enumerate(MASK.T[:3])
            ]
        )
    np.testing.assert_allclose(P[:, :3], expected, atol=1e-12)


def test_an_estimator_that_cannot_learn_from_them_is_refused_in_one_line():
    forest = ExtraTreesClassifier(5, random_state=0)
    with pytest.raises(MethodError, match="ExtraTreesClassifier cannot learn from partially observed labels"):
        TunedThresholdClassifier(forest).fit(X, HIDDEN)
    prefit = TunedThresholdClassifier(forest.fit(X, Y), cv="prefit").fit(X, HIDDEN)  # it learns nothing
    assert prefit.predict(X).shape == Y.shape


def test_weights_guard_and_label_without_observed_rows():
    weights = RNG.integers(0, 3, 120).astype(float)
    empty = HIDDEN.copy()
    empty[:, 2] = np.nan
    model = TunedThresholdClassifier(PLAIN, guard=True, cv=FOLDS).fit(X, empty, sample_weight=weights)
    assert model.thresholds_[2] == np.inf
    assert not model.predict(X)[:, 2].any()


def test_scores_in_another_order_of_the_labels_are_refused():
    labels, scores = pd.DataFrame(Y, columns=list("abcd")), pd.DataFrame(SCORES, columns=list("abcd"))
    other = scores[list("dcba")]
    for wrapper in (TunedThresholdClassifier, CalibratedMultiLabelClassifier):
        with pytest.raises(MethodError, match="in another order: pass X"):
            wrapper("precomputed").fit(other, labels)
        model = wrapper("precomputed").fit(scores, labels)
        with pytest.raises(MethodError, match="in another order: pass X"):
            model.predict(other)
    with pytest.raises(MethodError, match="in another order: pass scores"):
        guarded_thresholds(labels, other, 0.5)


def test_nothing_to_route_is_no_error():
    with config_context(enable_metadata_routing=True):
        for wrapper in (TunedThresholdClassifier, CalibratedMultiLabelClassifier):
            assert wrapper(PLAIN, cv=FOLDS).fit(X, Y).predict(X).shape == Y.shape
