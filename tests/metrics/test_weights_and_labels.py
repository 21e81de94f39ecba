"""`sample_weight` and `labels` of every metric, against scikit-learn, repeated rows and selected columns."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.multioutput import MultiOutputClassifier

from multilab import metrics
from multilab.metrics import ALL_METRICS, MetricError, get_scorer

RNG = np.random.default_rng(0)
N, Q = 40, 5
TRUTH = (RNG.random((N, Q)) < [0.2, 0.4, 0.5, 0.6, 0.3]).astype(int)
SCORES = np.round(RNG.random((N, Q)), 1)  # with ties
DECISIONS = (SCORES >= 0.5).astype(int)
WEIGHTS = np.round(RNG.random(N) * 3, 2)
WEIGHTS[:3] = 0
TIMES = RNG.integers(0, 4, N)
SKLEARN = {
    "macro_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="macro", **w),
    "micro_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="micro", **w),
    "example_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "macro_precision": lambda **w: sk.precision_score(TRUTH, DECISIONS, average="macro", zero_division=0, **w),
    "macro_recall": lambda **w: sk.recall_score(TRUTH, DECISIONS, average="macro", zero_division=0, **w),
    "example_precision": lambda **w: sk.precision_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "example_recall": lambda **w: sk.recall_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "jaccard": lambda **w: sk.jaccard_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "hamming_loss": lambda **w: sk.hamming_loss(TRUTH, DECISIONS, **w),
    "subset_accuracy": lambda **w: sk.accuracy_score(TRUTH, DECISIONS, **w),
    "macro_auc": lambda **w: sk.roc_auc_score(TRUTH, SCORES, average="macro", **w),
    "micro_auc": lambda **w: sk.roc_auc_score(TRUTH, SCORES, average="micro", **w),
    "macro_average_precision": lambda **w: sk.average_precision_score(TRUTH, SCORES, average="macro", **w),
    "micro_average_precision": lambda **w: sk.average_precision_score(TRUTH, SCORES, average="micro", **w),
    "average_precision": lambda **w: sk.label_ranking_average_precision_score(TRUTH, SCORES, **w),
    "coverage_1based": lambda **w: sk.coverage_error(TRUTH, SCORES, **w),
    "ranking_loss": lambda **w: sk.label_ranking_loss(TRUTH, SCORES, **w),
    "log_loss": lambda **w: np.mean([sk.log_loss(TRUTH[:, j], SCORES[:, j], **w) for j in range(Q)]),
    "brier_score": lambda **w: np.mean([sk.brier_score_loss(TRUTH[:, j], SCORES[:, j], **w) for j in range(Q)]),
}
OF_LABELS = ("macro_f1", "micro_f1", "example_f1", "macro_precision", "macro_recall", "jaccard")
UNWEIGHTED = ("expected_calibration_error",)


def given(name):
    return DECISIONS if ALL_METRICS[name].needs == "decisions" else SCORES


@pytest.mark.parametrize("name", SKLEARN)
def test_weights_are_those_of_scikit_learn(name):
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", sample_weight=WEIGHTS)
    assert value == pytest.approx(SKLEARN[name](sample_weight=WEIGHTS), abs=1e-12)


@pytest.mark.parametrize("name", OF_LABELS)
def test_labels_are_those_of_scikit_learn(name):
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", labels=[3, 0])
    assert value == pytest.approx(SKLEARN[name](labels=[3, 0]), abs=1e-12)
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", labels=[3, 0], sample_weight=WEIGHTS)
    assert value == pytest.approx(SKLEARN[name](labels=[3, 0], sample_weight=WEIGHTS), abs=1e-12)


@pytest.mark.parametrize("conventions", ["default", "mulan", "meka", "lamda"])
@pytest.mark.parametrize("name", sorted(set(ALL_METRICS) - set(UNWEIGHTED)))
def test_a_weight_counts_a_row_as_often_as_it_says(name, conventions):
    function, rows = getattr(metrics, name), np.repeat(np.arange(N), TIMES)
    hidden = np.where(RNG.random(TRUTH.shape) < 0.2, np.nan, TRUTH)
    hidden[5] = np.nan
    for Y in (TRUTH, hidden):
        by_order_of_rows = name == "macro_average_precision" and conventions == "mulan"
        if by_order_of_rows or ALL_METRICS[name].mean_over is None:
            with pytest.raises(MetricError, match="takes no sample_weight"):
                function(Y, given(name), conventions, sample_weight=TIMES / 7)
            continue
        value = function(Y, given(name), conventions, sample_weight=TIMES / 7)
        assert value == pytest.approx(function(Y[rows], given(name)[rows], conventions), abs=1e-12)


@pytest.mark.parametrize("name", sorted(ALL_METRICS))
def test_labels_select_columns_by_position_or_name(name):
    function, chosen = getattr(metrics, name), [4, 1]
    expected = function(TRUTH[:, chosen], given(name)[:, chosen])
    mask = RNG.random(TRUTH.shape) < 0.8
    assert function(TRUTH, given(name), labels=chosen) == expected
    assert function(sp.csr_array(TRUTH), given(name), labels=np.array(chosen)) == expected
    frame = pd.DataFrame(TRUTH, columns=list("abcde"))
    assert function(frame, given(name), labels=["e", "b"]) == expected
    masked = function(TRUTH, given(name), labels=chosen, y_mask=mask)
    assert masked == function(TRUTH[:, chosen], given(name)[:, chosen], y_mask=mask[:, chosen])
    assert {"sample_weight", "labels", "y_mask"} < inspect.signature(function).parameters.keys()
    assert "labels : sequence of int or str" in function.__doc__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": np.ones(3)}, "must hold 40 finite numbers"),
        ({"sample_weight": -WEIGHTS}, "must hold 40 finite numbers"),
        ({"sample_weight": np.zeros(N)}, "nothing to measure"),
        ({"labels": [5]}, "5 is neither a position from 0 to 4"),
        ({"labels": [1, 1]}, "each once"),
        ({"labels": []}, "at least one label"),
        ({"labels": ["a"]}, "Y has no names: give positions"),
    ],
)
def test_wrong_weights_and_labels_are_refused(arguments, message):
    with pytest.raises(MetricError, match=message):
        metrics.macro_f1(TRUTH, DECISIONS, **arguments)
    with pytest.raises(MetricError, match="expected_calibration_error takes no sample_weight"):
        metrics.expected_calibration_error(TRUTH, SCORES, sample_weight=WEIGHTS)


def test_scorers_take_labels_and_weights_also_by_routing():
    X = RNG.normal(size=(N, 3))
    model = MultiOutputClassifier(LogisticRegression()).fit(X, TRUTH)
    decisions = model.predict(X)
    scorer = get_scorer("macro_f1", labels=[0, 2])
    assert scorer(model, X, TRUTH) == metrics.macro_f1(TRUTH[:, [0, 2]], decisions[:, [0, 2]])
    weighted = metrics.macro_f1(TRUTH, decisions, labels=[0, 2], sample_weight=WEIGHTS)
    assert scorer(model, X, TRUTH, sample_weight=WEIGHTS) == weighted
    with config_context(enable_metadata_routing=True):
        plain = MultiOutputClassifier(LogisticRegression().set_fit_request(sample_weight=False))
        asked = get_scorer("micro_f1").set_score_request(sample_weight=True)
        scores = cross_validate(plain, X, TRUTH, cv=2, scoring=asked, params={"sample_weight": WEIGHTS})["test_score"]
    first = MultiOutputClassifier(LogisticRegression()).fit(X[N // 2 :], TRUTH[N // 2 :]).predict(X[: N // 2])
    assert scores[0] == metrics.micro_f1(TRUTH[: N // 2], first, sample_weight=WEIGHTS[: N // 2])


def test_recall_at_k_is_the_share_of_relevant_labels_found():
    scores = RNG.permuted(np.tile(np.arange(Q), (N, 1)), axis=1).astype(float)
    for k in (1, 3, 9):
        top = np.argsort(-scores, axis=1)[:, :k]
        expected = [t[best].sum() / t.sum() if t.any() else 0.0 for t, best in zip(TRUTH, top, strict=True)]
        assert metrics.recall_at_k(TRUTH, scores, k=k) == pytest.approx(np.mean(expected))
    assert metrics.recall_at_k([[1, 0, 0]], [[0.5, 0.5, 0.1]], k=1) == 0.5  # a random choice of the two
    assert metrics.recall_at_k([[1, np.nan, 1]], [[0.2, 0.9, 0.4]], k=1) == 0.5
    with pytest.raises(MetricError, match="`k` must be an integer >= 1"):
        metrics.recall_at_k(TRUTH, scores, k=0)
