"""Guaranteed recall and precision: they hold as often as stated, and MAPIE's thresholds are among ours."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import f1_score

from multilab.decision import TunedThresholdClassifier
from multilab.decision.thresholds import LOWEST, LabelCurves, f1_ratio
from multilab.decision.tuned_threshold import guaranteed, precision_ranks

POSITIVES, LEVEL, CONFIDENCE, LABELS = 0.3, 0.8, 0.9, 600


def sample(seed, n, q):
    """Return labels and scores: positives uniform on [.2, 1], negatives on [0, .8]."""
    rng = np.random.default_rng(seed)
    y = (rng.random((n, q)) < POSITIVES).astype(int)
    return y, np.where(y == 1, rng.uniform(0.2, 1, (n, q)), rng.uniform(0, 0.8, (n, q)))


def true_recall(t):
    return np.clip((1 - t) / 0.8, 0, 1)


def true_precision(t):
    hits, false = POSITIVES * true_recall(t), (1 - POSITIVES) * np.clip((0.8 - t) / 0.8, 0, 1)
    return np.where(t <= 1, hits / np.maximum(hits + false, 1e-300), 1.0)


@pytest.mark.parametrize(
    ("measure", "truth", "cost"), [("recall", true_recall, (1, 0)), ("precision", true_precision, (0, 1))]
)
def test_the_guarantee_fails_at_most_as_often_as_stated(measure, truth, cost):
    """600 labels are 600 independent trials; the costs ask for the most extreme threshold that is allowed."""
    y, scores = sample(0, 1000, LABELS)
    model = TunedThresholdClassifier(
        "precomputed", policy="cost", cost=cost, guarantee=(measure, LEVEL), confidence=CONFIDENCE
    ).fit(scores, y)
    failed = (truth(model.thresholds_) < LEVEL).sum()
    assert failed <= binom.ppf(1 - 1e-9, LABELS, 1 - CONFIDENCE)
    decided = (model.thresholds_ > LOWEST) & (model.thresholds_ < np.inf)
    assert decided.mean() > 0.9  # not by deciding nothing
    loose = TunedThresholdClassifier("precomputed", policy="cost", cost=cost).fit(scores, y)
    assert (truth(loose.thresholds_) < LEVEL).all()  # without it the same costs fail always


@pytest.mark.parametrize("measure", ["recall", "precision"])
def test_the_objective_is_optimised_among_what_is_guaranteed(measure):
    y, scores = sample(1, 2000, 3)
    bounded = TunedThresholdClassifier("precomputed", guarantee=(measure, LEVEL)).fit(scores, y).thresholds_
    curves = guaranteed(LabelCurves.of(y, scores, np.ones(2000)), measure, LEVEL, CONFIDENCE)
    assert (curves.allowed.sum(axis=0) > 1).all()
    f1 = np.where(curves.allowed, f1_ratio(2 * curves.hits, curves.predicted + curves.true), 0)
    reached = [f1_score(y[:, j], scores[:, j] >= bounded[j]) for j in range(3)]
    np.testing.assert_allclose(reached, f1.max(axis=0), rtol=0, atol=1e-12)


def test_what_cannot_be_guaranteed_is_decided_the_safe_way():
    y, scores = sample(2, 8, 5)
    for measure, threshold in (("recall", LOWEST), ("precision", np.inf)):
        model = TunedThresholdClassifier("precomputed", guarantee=(measure, 0.99)).fit(scores, y)
        mixed = y.any(axis=0) & ~y.all(axis=0)
        assert mixed.any()
        assert (model.thresholds_[mixed] == threshold).all()


@pytest.mark.parametrize(("measure", "level"), [("recall", 0.95), ("precision", 0.75)])
def test_labels_that_no_threshold_can_serve_are_named(measure, level):
    y, scores = sample(3, 400, 5)
    y[:, 1] = np.random.default_rng(0).random(400) < 0.05  # noise, and few positives
    y[:, 2], y[:, 4] = 0, 1  # constant: no threshold is looked for
    frame = pd.DataFrame(y, columns=["good", "noise", "never", "fine", "always"])
    model = TunedThresholdClassifier("precomputed", guarantee=(measure, level))
    with pytest.warns(UserWarning, match="noise") as caught:
        model.fit(scores, frame)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert not any(name in str(caught[0].message) for name in ("good", "never", "fine", "always"))
    assert model.unreached_.tolist() == [1]
    assert model.thresholds_[1] == (LOWEST if measure == "recall" else np.inf)
    seen = np.ones(y.shape, dtype=bool)
    seen[:, 3] = np.arange(400) < 20  # too few rows for any guarantee
    with pytest.warns(UserWarning, match="noise and fine"):
        model.fit(scores, frame, y_mask=seen)
    assert model.unreached_.tolist() == [1, 3]


@pytest.mark.parametrize("measure", ["recall", "precision"])
def test_without_such_labels_there_is_no_warning(measure):
    y, scores = sample(4, 1000, 3)
    model = TunedThresholdClassifier("precomputed", guarantee=(measure, 0.6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(scores, y).unreached_.size == 0
        assert not hasattr(model.set_params(guarantee=None).fit(scores, y), "unreached_")


@pytest.mark.parametrize("measure", ["recall", "precision"])
def test_every_threshold_of_mapie_is_among_ours(measure):
    """On the same thresholds. The p-values of MAPIE (Hoeffding-Bentkus) are upper bounds of our exact ones."""
    control = pytest.importorskip("mapie.risk_control", reason="MAPIE, the oracle of guarantees, is not installed")
    for seed in range(3):
        y, scores = sample(10 + seed, 400, 1)
        free = LabelCurves.of(y, scores, np.ones(400))
        ours = guaranteed(free, measure, LEVEL, CONFIDENCE)
        tests = precision_ranks(400) if measure == "precision" else np.arange(1, 401)
        cuts = {float(ours.thresholds(np.array([cut]))[0]): cut for cut in tests}
        peer = control.BinaryClassificationController(
            lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]),
            measure,
            target_level=LEVEL,
            confidence_level=CONFIDENCE,
            list_predict_params=np.maximum(np.sort(list(cuts)), 0.0),
            fwer_method="bonferroni",
        ).calibrate(scores, y[:, 0])
        valid = [float(t) for t in np.ravel(peer.valid_predict_params)]
        assert valid
        assert all(ours.allowed[cuts.get(t, 400), 0] for t in valid)  # 0 is the threshold below all scores
