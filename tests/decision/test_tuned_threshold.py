"""Decisions tuned on held-out scores: with any estimator, without leakage, with documented behaviour at the edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from multilab.decision import (
    CalibratedMultiLabelClassifier,
    TunedThresholdClassifier,
    expected_f1_decisions,
    global_threshold,
    macro_f1_thresholds,
)
from multilab.decision.thresholds import LOWEST
from multilab.methods import BinaryRelevance, MLkNN
from multilab.methods.base import MethodError

X, Y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=4, n_labels=2, random_state=0)
FITTED, NEW = slice(0, 60), slice(60, 90)
LOGISTIC = LogisticRegression()


@pytest.mark.parametrize(
    "estimator",
    [
        MLkNN(k=5),
        BinaryRelevance(LinearSVC()),
        ExtraTreesClassifier(5, random_state=0),
        KNeighborsClassifier(),
        MultiOutputClassifier(LOGISTIC),
        OneVsRestClassifier(LinearSVC()),
        ClassifierChain(LOGISTIC),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        GridSearchCV(MLkNN(), {"k": [3, 5]}, cv=2),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_multi_label_estimator_can_be_wrapped(estimator):
    model = TunedThresholdClassifier(estimator, cv=3).fit(X[FITTED], Y[FITTED])
    scores, decisions = model.predict_with_scores(X[NEW])
    assert scores.shape == decisions.shape == (30, 4)
    np.testing.assert_array_equal(decisions, scores >= model.thresholds_)
    calibrated = CalibratedMultiLabelClassifier(estimator, cv=3).fit(X[FITTED], Y[FITTED])
    probabilities = calibrated.predict_proba(X[NEW])
    assert probabilities.shape == (30, 4)
    assert 0 <= probabilities.min() <= probabilities.max() <= 1
    # sigmoid calibration keeps the order of the rows of a label, or inverts it
    for score, p in zip(scores.T, probabilities.T, strict=True):
        assert (
            np.diff(p[np.argsort(score, kind="stable")]) * np.sign(p[score.argmax()] - p[score.argmin()]) >= 0
        ).all()


def test_thresholds_are_those_of_the_out_of_fold_scores_and_the_estimator_is_that_of_all_rows():
    folds = list(KFold(3).split(X))
    model = TunedThresholdClassifier(KNeighborsClassifier(7), cv=KFold(3)).fit(X, Y)
    held_out = np.column_stack(
        [p[:, 1] for p in cross_val_predict(KNeighborsClassifier(7), X, Y, cv=folds, method="predict_proba")]
    )
    np.testing.assert_array_equal(model.thresholds_, macro_f1_thresholds(Y, held_out))
    proba = KNeighborsClassifier(7).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), np.column_stack([p[:, 1] for p in proba]))
    again = TunedThresholdClassifier(KNeighborsClassifier(7), cv=folds).fit(X, Y)
    np.testing.assert_array_equal(again.thresholds_, model.thresholds_)
    precomputed = TunedThresholdClassifier("precomputed").fit(held_out, Y)
    np.testing.assert_array_equal(precomputed.thresholds_, model.thresholds_)
    np.testing.assert_array_equal(precomputed.predict(model.predict_proba(X)), model.predict(X))


class Memory(ClassifierMixin, BaseEstimator):
    """Gives the labels of rows that it has seen (by their first feature), else the other features as scores."""

    def fit(self, X, y):
        order = np.argsort(X[:, 0])
        self.ids_, self.labels_, self.n_labels_ = X[order, 0], y[order], y.shape[1]
        self.classes_ = np.tile([0, 1], (y.shape[1], 1))
        return self

    def predict_proba(self, X):
        position = np.minimum(np.searchsorted(self.ids_, X[:, 0]), len(self.ids_) - 1)
        seen = self.ids_[position] == X[:, 0]
        return np.where(seen[:, None], self.labels_[position], X[:, 1:])


def test_thresholds_of_in_sample_scores_overfit_and_ours_do_not():
    """The true F1 of a threshold is known here, and a bound on what n held-out rows can miss of the best.

    A third of the rows has the label; scores of unseen rows are uniform, positives on [.1, .5], negatives on [0, .3].
    With probability 1 - 1e-9 the shares of true positives and of false positives above every threshold, and the
    share of positives, are within e of the truth (Dvoretzky, Kiefer, Wolfowitz; Massart). Then F1 = 2a / (a + b + p) is
    within 5 e / (p - e), and the F1 of the best empirical threshold within twice that of the best.
    """
    n, p, rng = 400_000, 1 / 3, np.random.default_rng(0)
    y = (rng.random((n, 1)) < p).astype(int)
    score = np.where(y == 1, rng.uniform(0.1, 0.5, (n, 1)), rng.uniform(0, 0.3, (n, 1)))
    rows = np.hstack([rng.permutation(n)[:, None].astype(float), score])

    def true_f1(t):
        hits, false = p * np.clip((0.5 - t) / 0.4, 0, 1), (1 - p) * np.clip((0.3 - t) / 0.3, 0, 1)
        return 2 * hits / (hits + false + p)

    e = np.sqrt(np.log(2 * 2 / 1e-9) / (2 * n))
    bound = 2 * 5 * e / (p - e)
    best = true_f1(np.linspace(0, 0.5, 10_001)).max()
    ours = TunedThresholdClassifier(Memory(), cv=KFold(2)).fit(rows, y)
    in_sample = TunedThresholdClassifier(Memory().fit(rows, y), cv="prefit").fit(rows, y)
    assert bound < 0.2 < best
    assert true_f1(ours.thresholds_[0]) >= best - bound
    assert in_sample.thresholds_[0] == 0.5  # right for every row that it was tuned on
    assert true_f1(in_sample.thresholds_[0]) == 0 < best - bound


def test_a_fitted_estimator_is_taken_as_it_is():
    fitted = BinaryRelevance(LOGISTIC).fit(X[FITTED], Y[FITTED])
    frozen = TunedThresholdClassifier(FrozenEstimator(fitted)).fit(X[NEW], Y[NEW])
    prefit = TunedThresholdClassifier(fitted, cv="prefit").fit(X[NEW], Y[NEW])
    expected = macro_f1_thresholds(Y[NEW], fitted.predict_proba(X[NEW]))
    for model in (frozen, prefit):
        assert model.folds_ is None
        np.testing.assert_array_equal(model.thresholds_, expected)
    with pytest.raises(ValueError, match="not fitted"):
        TunedThresholdClassifier(BinaryRelevance(LOGISTIC), cv="prefit").fit(X, Y)
    one = TunedThresholdClassifier(fitted, objective="hamming_loss", cv="prefit").fit(X[:1], np.array([[1, 0, 1, 0]]))
    assert one.thresholds_.tolist() == [LOWEST, np.inf, LOWEST, np.inf]  # each label has one class


@pytest.mark.parametrize("objective", ["macro_f1", "subset_accuracy", "example_f1"])
def test_a_global_threshold_is_the_same_for_all_labels(objective):
    fitted = BinaryRelevance(LOGISTIC).fit(X[FITTED], Y[FITTED])
    model = TunedThresholdClassifier(fitted, objective, "global", cv="prefit").fit(X[NEW], Y[NEW])
    expected = global_threshold(Y[NEW], fitted.predict_proba(X[NEW]), objective)
    np.testing.assert_array_equal(model.thresholds_, np.full(4, expected))


def test_top_k_expected_f1_and_the_fixed_rule():
    fitted = FrozenEstimator(BinaryRelevance(LOGISTIC).fit(X[FITTED], Y[FITTED]))
    scores = fitted.predict_proba(X[NEW])
    number = TunedThresholdClassifier(fitted, policy="top_k", k="cardinality").fit(X[NEW], Y[NEW])
    assert number.k_ == int(Y[NEW].sum(axis=1).mean() + 0.5)
    assert (number.predict(X[NEW]).sum(axis=1) == number.k_).all()
    assert TunedThresholdClassifier(fitted, policy="top_k", k=9).fit(X[NEW], Y[NEW]).predict(X[NEW]).all()
    expected = TunedThresholdClassifier(fitted, "example_f1", "expected").fit(X[NEW], Y[NEW])
    np.testing.assert_array_equal(expected.predict(X[NEW]), expected_f1_decisions(scores))
    fixed = TunedThresholdClassifier(fitted, policy="fixed").fit(X[NEW], Y[NEW])
    np.testing.assert_array_equal(fixed.predict(X[NEW]), fitted.predict(X[NEW]))


def test_decisions_by_costs_are_those_of_scikit_learn_at_the_threshold_of_elkan():
    fp, fn, tp, tn = np.array([1, 2, 5, 3]), np.array([4, 2, 1, 9]), np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1])
    fitted = FrozenEstimator(BinaryRelevance(LOGISTIC).fit(X[FITTED], Y[FITTED]))
    cost = {"fp": fp, "fn": fn, "tp": tp, "tn": tn}
    model = TunedThresholdClassifier(fitted, policy="expected_cost", cost=cost).fit(X[NEW], Y[NEW])
    for label, decisions in enumerate(model.predict(X[NEW]).T):
        alone = FrozenEstimator(clone(LOGISTIC).fit(X[FITTED], Y[FITTED, label]))
        threshold = (fp - tn)[label] / (fp - tn + fn - tp)[label]
        expected = FixedThresholdClassifier(alone, threshold=threshold, response_method="predict_proba")
        np.testing.assert_array_equal(decisions, expected.fit(X[NEW], Y[NEW, label]).predict(X[NEW]))


def test_margins_are_calibrated_before_costs_decide():
    margins = BinaryRelevance(LinearSVC())
    model = TunedThresholdClassifier(margins, policy="expected_cost", cost=(1, 3), calibration="sigmoid")
    p = CalibratedMultiLabelClassifier(margins).fit(X[FITTED], Y[FITTED]).predict_proba(X[NEW])
    np.testing.assert_array_equal(model.fit(X[FITTED], Y[FITTED]).predict(X[NEW]), 3 * p >= 1 - p)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"objective": "micro_f1"},
        {"policy": "global"},
        {"policy": "top_k"},
        {"policy": "top_k", "k": 0},
        {"policy": "cost", "cost": (1, 5)},
        {"policy": "expected_cost", "cost": {"fp": 1, "fn": 5}},
        {"policy": "expected", "objective": "example_f1"},
        {"guarantee": ("recall", 0.9)},
        {"guarantee": ("precision", 0.9)},
    ],
    ids=str,
)
def test_labels_with_one_class_and_constant_scores(arguments):
    never_always = Y[FITTED].copy()
    never_always[:, 1], never_always[:, 2] = 0, 1
    rows = X[FITTED].copy()
    model = TunedThresholdClassifier(MLkNN(k=5), cv=3, **arguments).fit(rows, never_always)
    decisions = model.predict(X[NEW])
    assert not decisions[:, 1].any()
    assert decisions[:, 2].all()
    constant = TunedThresholdClassifier(MLkNN(k=5), cv=3, **arguments).fit(np.zeros_like(rows), Y[FITTED])
    decisions = constant.predict(np.zeros((5, 6)))
    assert (decisions == decisions[0]).all()


def test_sample_weight_counts_rows_and_reaches_the_estimator():
    w = np.arange(90) % 3 + 1
    fitted = FrozenEstimator(BinaryRelevance(LOGISTIC).fit(X, Y))
    for arguments in ({}, {"policy": "global", "objective": "example_f1"}, {"calibration": "sigmoid"}):
        weighted = TunedThresholdClassifier(fitted, **arguments).fit(X, Y, sample_weight=w)
        repeated = TunedThresholdClassifier(fitted, **arguments).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
        np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, rtol=1e-6)
    forest = ExtraTreesClassifier(5, random_state=0)
    model = TunedThresholdClassifier(forest, cv=3).fit(X, Y, sample_weight=w)
    alone = clone(forest).fit(X, Y, sample_weight=w)
    np.testing.assert_array_equal(model.estimator_.predict_proba(X), alone.predict_proba(X))


def test_metadata_are_routed_by_request():
    w, groups = np.arange(90) % 3 + 1.0, np.arange(90) // 9
    with config_context(enable_metadata_routing=True):
        forest = ExtraTreesClassifier(5, max_depth=2, random_state=0).set_fit_request(sample_weight=True)
        model = TunedThresholdClassifier(forest, cv=GroupKFold(3)).set_fit_request(sample_weight=True)
        model.fit(X, Y, sample_weight=w, groups=groups)
        assert all(not set(groups[train]) & set(groups[test]) for train, test in model.folds_)
        np.testing.assert_array_equal(model.estimator_.predict_proba(X), clone(forest).fit(X, Y, w).predict_proba(X))
        unweighted = TunedThresholdClassifier(forest.set_fit_request(sample_weight=False)).fit(X, Y, sample_weight=w)
        assert not np.array_equal(unweighted.estimator_.predict_proba(X), model.estimator_.predict_proba(X))


def test_frames_text_and_sparse_rows_reach_the_estimator_as_they_are():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), ["a", "b"])), KNeighborsClassifier())
    model = TunedThresholdClassifier(pipeline, cv=3).fit(frame, pd.DataFrame(Y))
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.predict(frame).shape == Y.shape
    text = np.array([" ".join("abcdef"[j] * 3 for j in np.flatnonzero(row > row.mean())) for row in X], dtype=object)
    counted = make_pipeline(CountVectorizer(), OneVsRestClassifier(LOGISTIC))
    assert TunedThresholdClassifier(counted, cv=3).fit(text, Y).predict(text[:2]).shape == (2, 4)
    sparse = TunedThresholdClassifier(MLkNN(k=3), cv=3).fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_array_equal(sparse.thresholds_, TunedThresholdClassifier(MLkNN(k=3), cv=3).fit(X, Y).thresholds_)


def test_one_label_and_equal_seeds():
    forest = BinaryRelevance(ExtraTreesClassifier(3, max_depth=2))
    model = TunedThresholdClassifier(forest, cv=3, random_state=1).fit(X, Y[:, :1])
    assert model.predict(X).shape == (90, 1)
    again = TunedThresholdClassifier(forest, cv=3, random_state=1).fit(X, Y[:, :1])
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert model.thresholds_ == again.thresholds_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objective": "auc"}, "objective"),
        ({"policy": "best"}, "policy='best'"),
        ({"policy": "expected"}, "is for objective='example_f1'"),
        ({"estimator": BinaryRelevance(LinearSVC()), "policy": "expected", "objective": "example_f1"}, "calibration="),
        ({"estimator": BinaryRelevance(LinearSVC()), "policy": "expected_cost"}, "calibration="),
        ({"policy": "expected_cost", "cost": {"fp": 1}}, "`cost` must be a pair"),
        ({"policy": "top_k", "k": 1.5}, "k=1.5"),
        ({"policy": "global", "guarantee": ("recall", 0.9)}, "`guarantee` needs"),
        ({"guarantee": ("accuracy", 0.9)}, "'recall' or 'precision'"),
        ({"guarantee": ("recall", 1.2)}, "between 0 and 1"),
        ({"calibration": "platt"}, "'platt' is unknown"),
        ({"estimator": BinaryRelevance(LinearSVC()), "calibration": "beta"}, "needs probabilities"),
        ({"estimator": "precomputed"}, r"one probability in \[0, 1\]"),
        ({"estimator": "mlknn"}, "'precomputed'"),
        ({"estimator": StandardScaler()}, "neither predict_proba nor decision_function"),
        ({"cv": 100}, "cv=100 folds cannot be made of n_samples = 90"),
        ({"cv": "half"}, "cv='half'"),
        ({"cv": [(np.arange(80), np.arange(70, 90))]}, "also in its training set"),
        ({"cv": [(np.arange(45), np.arange(45, 90))]}, "exactly once"),
    ],
    ids=str,
)
def test_mistakes_are_refused(arguments, message):
    with pytest.raises(MethodError, match=message):
        TunedThresholdClassifier(**arguments).fit(X, Y)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_precomputed_probabilities_lie_between_0_and_1(wrong):
    P = np.full(Y.shape, 0.5)
    P[7, 1] = wrong
    with pytest.raises(MethodError, match=r"one probability in \[0, 1\]"):
        TunedThresholdClassifier("precomputed").fit(P, Y)


def test_a_guarantee_takes_no_weights():
    model = TunedThresholdClassifier(MLkNN(), guarantee=("recall", 0.9))
    with pytest.raises(MethodError, match="no sample_weight"):
        model.fit(X, Y, sample_weight=np.arange(90))
