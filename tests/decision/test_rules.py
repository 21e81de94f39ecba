"""Rules of scores from elsewhere: thresholds and calibration in JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from multilab.comparison.evaluating import learned_rules
from multilab.decision import CalibratedMultiLabelClassifier, DecisionRules
from multilab.methods.base import MethodError

RNG = np.random.default_rng(0)
Y = (RNG.random((150, 3)) < [0.5, 0.3, 0.1]).astype(int)
LOGITS = 3.0 * Y - 2 + RNG.normal(size=Y.shape)
P = expit(LOGITS)
NAMES = ["a", "b", "c"]


def test_calibration_is_that_of_the_estimator():
    rules = learned_rules(P, Y, NAMES)
    estimator = CalibratedMultiLabelClassifier("precomputed", method="beta").fit(P, Y)
    np.testing.assert_allclose(rules.calibrate(P), estimator.predict_proba(P), rtol=0, atol=1e-7)


def test_logits_are_decided_as_their_probabilities():
    probabilities, logits = learned_rules(P, Y, NAMES), learned_rules(P, Y, NAMES, "logits")
    assert logits.decide(LOGITS).tolist() == probabilities.decide(P).tolist()
    np.testing.assert_array_equal(logits.calibrate(LOGITS), probabilities.calibrate(P))


def test_labels_with_one_class_are_never_or_always_assigned(tmp_path):
    truth = np.column_stack([np.zeros(150), np.ones(150), Y[:, 2]])
    rules = DecisionRules.load(learned_rules(P, truth, NAMES).save(tmp_path / "rules.json"))
    assert rules.thresholds[:2] == [None, 0.0]
    assert rules.decide([[1.0, 0.0, 1.0]]).tolist() == [[1 - 1, 1, 1]]
    assert rules.calibrate(P)[:, :2].tolist() == [[0.0, 1.0]] * 150


def test_sparse_scores_have_sparse_decisions():
    few = sp.csr_array(np.where(P > 0.3, P, 0))
    for thresholds in ([0.5, 0.4, None], [0.5, 0.0, None]):
        rules = DecisionRules(NAMES, thresholds)
        decided = rules.decide(few)
        assert sp.issparse(decided)
        assert decided.toarray().tolist() == rules.decide(few.toarray()).tolist()


def test_rules_for_labels_in_another_order():
    rules = learned_rules(P, Y, NAMES)
    turned = rules.for_labels(NAMES[::-1])
    assert turned.decide(P[:, ::-1])[:, ::-1].tolist() == rules.decide(P).tolist()
    np.testing.assert_array_equal(turned.calibrate(P[:, ::-1])[:, ::-1], rules.calibrate(P))
    with pytest.raises(MethodError):
        rules.for_labels(["a", "b", "d"])


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"labels": None},
        {"labels": [{"name": "a"}]},
        {"kind": "decisions"},
        {"labels": [{"name": "a", "threshold": "high"}]},
        {"labels": [{"name": "a", "threshold": 0.5, "calibration": [1.0, 2.0]}]},
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change):
    path = DecisionRules(["a"], [0.5]).save(tmp_path / "rules.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MethodError):
        DecisionRules.load(path)
    for text in ("", "[]"):
        path.write_text(text)
        with pytest.raises(MethodError):
            DecisionRules.load(path)
    with pytest.raises(MethodError):
        DecisionRules.load(tmp_path / "none.json")


@pytest.mark.parametrize("scores", [[[0.5]], [[0.5, np.nan, 0.1]], [[0.5, 1.5, 0.1]], [[-0.1, 0.5, 0.1]]])
def test_scores_that_are_no_probabilities_are_refused(scores):
    with pytest.raises(ValueError):
        DecisionRules(NAMES, [0.5] * 3).decide(scores)
    with pytest.raises(MethodError):
        DecisionRules(NAMES, [0.5] * 3, "logits").decide(sp.csr_array(P))
