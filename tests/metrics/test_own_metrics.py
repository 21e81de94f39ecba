"""Scorers of scikit-learn, scorers of this package and functions are metrics wherever Python takes the name of one."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import metrics as sk
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, cross_validate

from multilab import metrics
from multilab.methods import BinaryRelevance, MLkNN, ScoreEnsemble
from multilab.metrics import MetricError, bootstrap, bounds, get_scorer, score_all
from multilab.metrics.registry import by_name, defined

X, Y = make_multilabel_classification(120, n_features=8, n_classes=4, random_state=0)
MODEL = BinaryRelevance(LogisticRegression()).fit(X[:60], Y[:60])
X, Y = X[60:], Y[60:]
P, D = MODEL.predict_proba(X), MODEL.predict(X)
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)

SCORERS = [
    *map(sk.get_scorer, ("f1_weighted", "f1_samples", "accuracy", "jaccard_macro", "roc_auc", "average_precision")),
    sk.make_scorer(sk.fbeta_score, beta=2, average="macro", zero_division=0),
    sk.make_scorer(sk.hamming_loss, greater_is_better=False),
    sk.make_scorer(sk.label_ranking_loss, greater_is_better=False, response_method="predict_proba"),
]
OURS = [
    get_scorer("macro_fbeta", beta=0.5),
    get_scorer("ranking_loss", conventions="mulan"),
    get_scorer("hamming_loss"),
    get_scorer("macro_f1", labels=[0, 2]),
    get_scorer("precision_at_k", k=1),
]


def agreement(Y, decisions):
    return (decisions == Y).mean()


def weighted_agreement(Y, decisions, sample_weight=None):
    return np.average((decisions == Y).mean(axis=1), weights=sample_weight)


def separation(Y, scores):
    return scores[Y == 1].mean() - scores[Y == 0].mean()


def only(metric, *given, **arguments):
    """Return the value of one metric."""
    values = score_all(*given, metrics=[metric], **arguments)
    return values[defined(metric).name]


@pytest.mark.parametrize("scorer", [*SCORERS, *OURS], ids=repr)
def test_a_scorer_has_the_value_that_it_has_for_an_estimator(scorer):
    assert only(scorer, Y, P, D) == pytest.approx(scorer(MODEL, X, Y), abs=1e-12)
    assert only(scorer, Y, P) == pytest.approx(scorer(MODEL, X, Y), abs=1e-12)  # its decisions are those at .5
    assert only(scorer, sp.csr_array(Y), P, sp.csr_array(D)) == pytest.approx(scorer(MODEL, X, Y), abs=1e-12)
    weighted = only(scorer, Y, P, D, sample_weight=WEIGHTS)
    assert weighted == pytest.approx(scorer(MODEL, X, Y, sample_weight=WEIGHTS), abs=1e-12)


def test_a_function_gets_what_its_second_argument_is_called():
    expected = {"agreement": (Y == D).mean(), "separation": P[Y == 1].mean() - P[Y == 0].mean()}
    assert score_all(Y, P, D, metrics=[agreement, separation]) == pytest.approx(expected, abs=1e-15)
    mixed = score_all(Y, P, D, metrics=["macro_f1", agreement, metrics.micro_f1])
    assert list(mixed) == ["macro_f1", "agreement", "micro_f1", "n_skipped_macro_f1"]
    assert mixed["micro_f1"] == metrics.micro_f1(Y, D)
    margins = P * 4 - 2
    assert only(agreement, Y, margins, threshold=0) == (Y == D).mean()
    assert only(separation, Y, None, D) == D[Y == 1].mean() - D[Y == 0].mean()  # decisions as scores 0 and 1


def test_labels_and_weights_of_a_function():
    assert only(agreement, Y, P, D, labels=[1, 3]) == (Y == D)[:, [1, 3]].mean()
    frame = pd.DataFrame(Y, columns=list("abcd"))
    assert only(agreement, frame, P, D, labels=["d", "b"]) == (Y == D)[:, [3, 1]].mean()
    rows = np.repeat(np.arange(len(Y)), WEIGHTS.astype(int))
    value = only(weighted_agreement, Y, P, D, sample_weight=WEIGHTS)
    assert value == pytest.approx(weighted_agreement(Y[rows], D[rows]), abs=1e-12)
    with pytest.raises(MetricError, match="sample_weight"):
        only(agreement, Y, P, D, sample_weight=WEIGHTS)
    with pytest.raises(MetricError, match="labels"):
        only(OURS[3], Y, P, D, labels=[1])


def test_labels_that_were_not_observed_are_for_metrics_of_this_package():
    hidden = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
    assert only(OURS[0], hidden, P, D) == metrics.macro_fbeta(hidden, D, beta=0.5)
    for metric in (agreement, SCORERS[0]):
        with pytest.raises(MetricError, match="not observed"):
            only(metric, hidden, P, D)
    with pytest.raises(MetricError, match="bounds"):
        bounds(agreement, hidden, D)


@pytest.mark.parametrize(
    "metric",
    [
        lambda Y, predicted: 1.0,
        functools.partial(sk.f1_score, average="macro"),
        functools.partial(metrics.hamming_loss, conventions="mulan"),
        get_scorer(["macro_f1", "micro_f1"]),
        lambda Y, decisions: decisions.mean(axis=0),
        lambda Y, decisions: "good",
        3.5,
    ],
)
def test_what_is_no_metric_is_refused(metric):
    with pytest.raises(MetricError):
        only(metric, Y, P, D)


def test_names_are_unique():
    def macro_f1(Y, decisions):
        return 0.0

    with pytest.raises(MetricError, match="macro_f1"):
        only(macro_f1, Y, P, D)
    assert list(by_name([agreement, "macro_f1", agreement, metrics.macro_f1])) == ["agreement", "macro_f1"]
    with pytest.raises(MetricError, match="lambda"):
        by_name([lambda Y, decisions: 0.0, lambda Y, decisions: 1.0])


def test_a_function_is_a_scorer_too():
    model = BinaryRelevance(LogisticRegression())
    scores = cross_val_score(model, X, Y, cv=3, scoring=get_scorer(lambda Y, decisions: metrics.macro_f1(Y, decisions)))
    np.testing.assert_array_equal(scores, cross_val_score(model, X, Y, cv=3, scoring=get_scorer("macro_f1")))
    several = cross_validate(model, X, Y, cv=3, scoring=get_scorer([agreement, "hamming_loss"]))
    np.testing.assert_allclose(several["test_agreement"], 1 + several["test_hamming_loss"], atol=1e-12)


def test_an_interval_of_a_scorer_is_that_of_the_metric():
    arguments = {"n_draws": 30, "random_state": 0}
    for scorer, name, given in ((SCORERS[0], "weighted_f1", D), (SCORERS[4], "macro_auc", P)):
        theirs, ours = bootstrap(scorer, Y, given, **arguments), bootstrap(name, Y, given, **arguments)
        assert (theirs.value, theirs.low, theirs.high) == pytest.approx((ours.value, ours.low, ours.high), abs=1e-12)


def test_a_stack_chooses_by_a_scorer():
    S = np.hstack([P, np.random.default_rng(2).random(P.shape)])
    stacks = [
        ScoreEnsemble(candidates=["mean", "greedy"], metric=metric, cv=3).fit(S, Y)
        for metric in ("macro_auc", sk.get_scorer("roc_auc"))
    ]
    assert stacks[0].validation_ == pytest.approx(stacks[1].validation_, abs=1e-12)
    np.testing.assert_allclose(stacks[0].greedy_weights_, stacks[1].greedy_weights_)


def test_neighbours_need_no_probabilities_for_a_metric_of_decisions():
    model = MLkNN(k=3).fit(X, Y)
    assert get_scorer(agreement)(model, X, Y) == (model.predict(X) == Y).mean()
