"""A base classifier with a threshold of its own decides, label by label, as it does alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multioutput import ClassifierChain as TheirChain
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from multilab import compare, metrics
from multilab.cells import MethodPipeline
from multilab.decision import TunedThresholdClassifier
from multilab.methods import ECC, MLS, BinaryRelevance, ClassifierChain, RAkEL
from multilab.methods.base import MethodError

X, Y = make_multilabel_classification(140, n_features=8, n_classes=4, random_state=0)
X, Y, X_TEST, Y_TEST = X[:100], Y[:100], X[100:], Y[100:]
LR = LogisticRegression()
HIGH = FixedThresholdClassifier(LR, threshold=0.8)
BASES = [
    HIGH,
    FixedThresholdClassifier(LR, threshold=0.3, pos_label=0),
    FixedThresholdClassifier(LR, threshold=1.5, response_method="decision_function"),
    FixedThresholdClassifier(LinearSVC(dual=False), threshold=0.4),
    TunedThresholdClassifierCV(LR, scoring="f1", cv=3, thresholds=20),
    make_pipeline(StandardScaler(), HIGH),
    GridSearchCV(FixedThresholdClassifier(LR), {"threshold": [0.2, 0.7]}, scoring="precision", cv=3),
]


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_decisions_are_those_of_the_base_for_each_label(base: Any) -> None:
    model = BinaryRelevance(base).fit(X, Y)
    expected = np.column_stack([clone(base).fit(X, y).predict(X_TEST) for y in Y.T])
    np.testing.assert_array_equal(model.predict(X_TEST), expected)
    np.testing.assert_array_equal(model.predict(X_TEST), MultiOutputClassifier(base).fit(X, Y).predict(X_TEST))
    scores, decisions = model.predict_with_scores(X_TEST)
    np.testing.assert_array_equal(decisions, expected)
    np.testing.assert_array_equal(model.predict_sparse(X_TEST).toarray(), expected)
    half = 0.5 if hasattr(model, "predict_proba") else 0
    np.testing.assert_array_equal(scores, BinaryRelevance(_inner(base)).fit(X, Y).predict_with_scores(X_TEST)[0])
    assert ((scores >= half) != decisions).any()  # what was decided before


def _inner(base: Any) -> Any:
    """Return what gives the scores."""
    if isinstance(base, GridSearchCV):
        return LR
    return make_pipeline(StandardScaler(), LR) if hasattr(base, "steps") else base.estimator


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_a_chain_passes_the_decisions_of_the_base_on(base: Any) -> None:
    order = [2, 0, 3, 1]
    theirs = TheirChain(base, order=order).fit(X, Y)
    model = ClassifierChain(base, order=order).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_TEST), theirs.predict(X_TEST))


def test_labels_that_were_not_observed_and_labels_of_one_value() -> None:
    seen = np.random.default_rng(0).random(Y.shape) < 0.7
    never = Y.copy()
    never[:, 1] = 0
    model = BinaryRelevance(HIGH).fit(X, never, y_mask=seen)
    for label in (0, 2, 3):
        alone = clone(HIGH).fit(X[seen[:, label]], never[seen[:, label], label])
        np.testing.assert_array_equal(model.predict(X_TEST)[:, label], alone.predict(X_TEST))
    assert not model.predict(X_TEST)[:, 1].any()
    # the first link has not seen these rows: their labels are its own decisions for the next one
    chain = ClassifierChain(HIGH).fit(X, np.where(np.arange(4) == 0, np.where(seen, Y, np.nan), Y))
    first = clone(HIGH).fit(X[seen[:, 0]], Y[seen[:, 0], 0])
    known = np.where(seen[:, 0], Y[:, 0], first.predict(X))
    second = clone(HIGH).fit(np.column_stack([X, known]), Y[:, 1])
    new = np.column_stack([X_TEST, first.predict(X_TEST)])
    np.testing.assert_array_equal(chain.predict(X_TEST)[:, 1], second.predict(new))


def test_classes_of_a_single_label() -> None:
    names = np.where(Y[:, 0] == 1, "yes", "no")
    model, alone = BinaryRelevance(HIGH).fit(X, names), clone(HIGH).set_params(pos_label="yes").fit(X, names)
    np.testing.assert_array_equal(model.predict(X_TEST), alone.predict(X_TEST))


def test_ensembles_vote_with_these_decisions() -> None:
    labels = RAkEL(HIGH, k=1, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(labels.predict(X_TEST), BinaryRelevance(HIGH).fit(X, Y).predict(X_TEST))
    chains = ECC(HIGH, 3, random_state=0, combine="vote").fit(X, Y)
    votes = np.mean([chain.predict(X_TEST) for chain in chains.estimators_], axis=0)
    np.testing.assert_allclose(chains.predict_proba(X_TEST), votes)
    stacked = MLS(LR, meta_estimator=HIGH, cv=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(stacked.predict(X_TEST), stacked.predict_proba(X_TEST) >= 0.8)


def test_no_threshold_of_scores_is_reported_and_all_doors_give_the_same_decisions() -> None:
    expected = BinaryRelevance(HIGH).fit(X, Y).predict(X_TEST)
    pipeline = MethodPipeline([("classifier", BinaryRelevance(HIGH))]).fit(X, Y)
    np.testing.assert_array_equal(pipeline.predict(X_TEST), expected)
    np.testing.assert_array_equal(pipeline.predict_with_scores(X_TEST)[1], expected)
    assert pipeline.thresholds_ is None
    assert MethodPipeline([("classifier", BinaryRelevance(LR))]).fit(X, Y).thresholds_.tolist() == [0.5] * 4
    folds = [(np.arange(100), np.arange(100, 140))]
    board = compare(
        {"high": BinaryRelevance(HIGH)}, np.vstack([X, X_TEST]), np.vstack([Y, Y_TEST]), cv=folds, metrics=["macro_f1"]
    )
    assert board.table.loc["high", "macro_f1"] == metrics.macro_f1(Y_TEST, expected)
    # thresholds that are tuned replace those of the base: they are for its scores
    tuned = TunedThresholdClassifier(BinaryRelevance(HIGH), cv=3).fit(X, Y)
    plain = TunedThresholdClassifier(BinaryRelevance(LR), cv=3).fit(X, Y)
    np.testing.assert_array_equal(tuned.predict(X_TEST), plain.predict(X_TEST))


@pytest.mark.parametrize("model", [BinaryRelevance, ClassifierChain, MLS])
def test_a_sigmoid_around_a_threshold_is_refused(model: Any) -> None:
    with pytest.raises(MethodError, match="FixedThresholdClassifier"):
        model(HIGH, calibration="sigmoid").fit(X, Y)
    inside = FixedThresholdClassifier(CalibratedClassifierCV(LR, cv=3), threshold=0.8)
    assert BinaryRelevance(inside).fit(X, Y).predict(X_TEST).shape == Y_TEST.shape
