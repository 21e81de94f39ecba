"""The measures of deep forests: losses as the laboratory's metrics have them, confidences by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from multilab.methods.forests._deep_forest import MEASURES, log_confidences, losses
from multilab.metrics import score_all


def probabilities(n: int = 40, q: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(n, q))


@pytest.mark.parametrize("measure", MEASURES)
def test_the_mean_loss_is_the_metric(measure: str) -> None:
    rng = np.random.default_rng(1)
    for ties in (False, True):
        scores = probabilities(60, 6)
        scores = scores.round(1) if ties else scores
        Y = (rng.uniform(size=scores.shape) < 0.35).astype(np.uint8)
        Y[0], Y[1], Y[:, 2] = 0, 1, 0  # rows and a label on which some measures are not defined
        value = score_all(Y, scores)["coverage_normalised" if measure == "coverage" else measure]
        loss = np.nanmean(losses(measure, scores, Y))
        assert loss == pytest.approx(1 - value if measure in ("average_precision", "macro_auc") else value, abs=1e-12)


def test_undefined_losses_are_nan() -> None:
    scores, Y = probabilities(3, 4), np.array([[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
    assert np.isnan(losses("ranking_loss", scores, Y)).tolist() == [True, True, False]
    assert np.isnan(losses("average_precision", scores, Y)).tolist() == [True, False, False]
    assert np.isnan(losses("macro_auc", scores, Y)).tolist() == [False, False, False, False]
    assert np.isnan(losses("macro_auc", scores, np.zeros((3, 4), int))).all()


def test_ranking_confidence_is_the_probability_that_the_true_set_is_a_prefix() -> None:
    scores = probabilities()
    expected, last = np.zeros(len(scores)), np.zeros(len(scores))
    for truth in product([0, 1], repeat=scores.shape[1]):
        chance = np.where(truth, scores, 1 - scores).prod(axis=1)
        ordered = np.take_along_axis(np.tile(truth, (len(scores), 1)), np.argsort(-scores, axis=1), axis=1)
        expected += chance * (np.diff(ordered, axis=1) <= 0).all(axis=1)
        last += chance * (ordered * np.arange(1, scores.shape[1] + 1)).max(axis=1)
    for measure in ("ranking_loss", "average_precision"):
        np.testing.assert_allclose(np.exp(log_confidences(measure, scores)), expected)
    np.testing.assert_allclose(np.exp(log_confidences("macro_auc", scores.T)), expected)
    np.testing.assert_allclose(np.exp(log_confidences("coverage", scores)), 1 - last / scores.shape[1])


def test_the_other_confidences_written_out() -> None:
    p = np.array([[0.9, 0.2], [0.4, 0.5]])
    np.testing.assert_allclose(np.exp(log_confidences("hamming_loss", p)), [(0.9 + 0.6) / 2, (0.8 + 0.5) / 2])
    np.testing.assert_allclose(np.exp(log_confidences("one_error", p)), [0.9, 0.5])


def test_sure_predictions_have_the_confidence_one_and_long_columns_do_not_vanish() -> None:
    sure = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    for measure in MEASURES:
        confidences = np.exp(log_confidences(measure, sure if measure != "one_error" else sure[:1]))
        expected = np.full(len(confidences), 1.0) if measure != "coverage" else [1 / 3, 1.0]
        np.testing.assert_allclose(confidences, expected)
    long = log_confidences("macro_auc", np.random.default_rng(0).uniform(size=(5000, 3)))
    assert np.isfinite(long).all()
    assert (np.exp(long) == 0).all()  # the formula as it is printed
