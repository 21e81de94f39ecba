"""Calibration maps: optimal, in agreement with peers, sane for degenerate labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from multilab.decision import CalibratedMultiLabelClassifier
from multilab.decision.calibrated import METHODS, fit_calibration
from multilab.methods import BinaryRelevance
from multilab.methods.base import MethodError
from multilab.methods.transformation._binary import fit_sigmoid

rng = np.random.default_rng(0)
TRUE = rng.beta(1, 3, (400, 3))
Y = (rng.random((400, 3)) < TRUE).astype(np.int64)
SCORES = expit(2 * logit(TRUE) + 0.5)  # too sure, and too high
ONES = np.ones(400)


def log_loss(P, targets):
    return -(targets * np.log(P) + (1 - targets) * np.log1p(-P)).mean()


def softened(y):
    ones, zeros = y.sum(axis=0), (1 - y).sum(axis=0)
    return np.where(y == 1, (ones + 1) / (ones + 2), 1 / (zeros + 2))


def test_the_sigmoid_is_the_one_of_binary_relevance_and_of_scikit_learn():
    P = fit_calibration("sigmoid", SCORES, Y, ONES, True)(SCORES)
    for j in range(3):
        np.testing.assert_allclose(P[:, j], fit_sigmoid(SCORES[:, j], Y[:, j])(SCORES[:, j]), rtol=0, atol=1e-6)
    X = rng.normal(size=(200, 4))
    y = (X @ rng.normal(size=(4, 2)) + rng.normal(size=(200, 2)) > 0).astype(int)
    fitted = BinaryRelevance(GaussianNB()).fit(X[:100], y[:100])
    ours = CalibratedMultiLabelClassifier(FrozenEstimator(fitted), "isotonic").fit(X[100:], y[100:])
    for j in range(2):
        one = FrozenEstimator(GaussianNB().fit(X[:100], y[:100, j]))
        peer = CalibratedClassifierCV(one, method="isotonic").fit(X[100:], y[100:, j])
        np.testing.assert_allclose(ours.predict_proba(X)[:, j], peer.predict_proba(X)[:, 1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["sigmoid", "beta", "temperature"])
def test_no_other_parameters_have_a_smaller_loss(method):
    fitted = fit_calibration(method, SCORES, Y, ONES, True)
    best, targets = log_loss(fitted(SCORES), softened(Y)), softened(Y)
    draws = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 0.1, 0.5):
        for _ in range(10):
            change = scale * draws.normal(size=fitted.coef.shape)
            if method == "temperature":
                change[:] = change[0]
            coef = fitted.coef + change
            if method == "beta":
                coef[:, :2] = np.maximum(coef[:, :2], 0)
            other = replace(fitted, coef=coef)
            assert log_loss(np.clip(other(SCORES), 1e-15, 1 - 1e-15), targets) >= best - 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_scores_that_differ_by_rounding_only_have_one_probability_in_either_order(method):
    draws = np.random.default_rng(2)
    levels = draws.permutation(np.linspace(0.02, 0.98, 25))
    low, high = levels * (1 - 4e-16), levels * (1 + 4e-16)  # each level computed in two ways
    ways = draws.random((400, 3)) < 0.5
    number = draws.integers(0, 25, (400, 3))
    y = (draws.random((400, 3)) < levels[number]).astype(np.int64)
    maps = [fit_calibration(method, np.where(way, low[number], high[number]), y, ONES, True) for way in (ways, ~ways)]
    new = [np.tile(scores[:, None], 3) for scores in (low, high, 0.3 * low + 0.01, 0.3 * high + 0.01)]
    P = [[fitted(scores) for scores in new] for fitted in maps]
    np.testing.assert_array_equal(P[0][0], P[0][1])
    np.testing.assert_array_equal(P[0], P[1])
    if method != "isotonic":  # continuous between the scores of the fit: nothing to merge
        np.testing.assert_array_equal(P[0][2], P[0][3])
    assert len(np.unique(P[0][0])) > 3


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e200])
def test_margins_of_any_size_are_merged_by_rounding_errors_only(scale):
    margins, y = np.array([[-3.0], [-1.0], [-1.0 + 1e-15], [2.0], [2.0 + 1e-8]]), np.array([[0], [1], [0], [1], [1]])
    for method in ("isotonic", "sigmoid", "temperature"):
        P = fit_calibration(method, scale * margins, y, np.ones(5), False)(scale * np.vstack([margins, [[1e60]]]))[:, 0]
        assert P[1] == P[2], method
        assert P[0] < P[2] < P[3] <= P[4] <= P[5] <= 1, method
        assert method == "isotonic" or P[3] < P[4], method


def test_a_constant_score_of_a_label_that_half_of_the_rows_have_is_even_odds():
    y = np.array([[1], [0]] * 7)
    P = fit_calibration("sigmoid", np.full((14, 1), 0.37), y, np.ones(14), True)(np.full((1, 1), 0.37))
    assert P[0, 0] == 0.5


@pytest.mark.parametrize("method", ["sigmoid", "beta", "temperature"])
def test_coefficients_depend_on_the_order_of_the_rows_by_rounding_only(method):
    order = np.random.default_rng(3).permutation(400)
    sharp = (TRUE > 0.6).astype(np.int64)
    maps = [fit_calibration(method, SCORES[rows], sharp[rows], ONES, True) for rows in (slice(None), order)]
    np.testing.assert_allclose(maps[0].coef, maps[1].coef, rtol=1e-11, atol=0)


def test_beta_calibration_agrees_with_the_reference_code():
    betacal = pytest.importorskip("betacal", reason="betacal, the package of its authors, is not installed")
    n = 20_000
    true = np.random.default_rng(2).beta(1, 2, n)
    y = (np.random.default_rng(3).random(n) < true).astype(int)
    scores = expit(2 * logit(true) + 0.5)
    ours = fit_calibration("beta", scores[:, None], y[:, None], np.ones(n), True)(scores[:, None])[:, 0]
    # softened targets move the loss by about 1/n, the reference's weak ridge by less
    np.testing.assert_allclose(ours, betacal.BetaCalibration("abm").fit(scores, y).predict(scores), rtol=0, atol=2e-3)


def test_temperature_keeps_the_order_of_the_labels_and_the_decisions():
    P = fit_calibration("temperature", SCORES, Y, ONES, True)(SCORES)
    np.testing.assert_array_equal(np.argsort(P, axis=1), np.argsort(SCORES, axis=1))
    np.testing.assert_array_equal(P >= 0.5, SCORES >= 0.5)


@pytest.mark.parametrize("method", METHODS)
def test_calibration_lowers_the_brier_score_of_new_rows_as_far_as_it_can(method):
    draws = np.random.default_rng(4)
    true = draws.beta(1, 3, (4400, 3))
    y, scores = (draws.random(true.shape) < true).astype(int), expit(3 * logit(true) + 1)
    P = fit_calibration(method, scores[:400], y[:400], ONES, True)(scores[400:])
    y, scores = y[400:], scores[400:]
    before, after = (scores - y) ** 2, (P - y) ** 2
    # 1,200 held-out cells against 12,000 new ones: the paired difference of the cells, at six standard errors
    gain = (before - after).ravel()
    assert gain.mean() > 6 * gain.std() / np.sqrt(gain.size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scores", [np.full((6, 3), 0.3), np.tile([[0.0], [1.0]], (3, 3)), np.eye(6, 3)])
def test_degenerate_labels_and_scores(method, scores):
    y = np.zeros((6, 3), dtype=np.int64)
    y[:, 1] = 1
    y[::2, 2] = 1
    P = fit_calibration(method, scores, y, np.ones(6), True)(scores)
    assert np.isfinite(P).all()
    assert (P[:, 0] == 0).all()
    assert (P[:, 1] == 1).all()
    if np.ptp(scores) == 0 and method != "temperature":
        np.testing.assert_allclose(P[:, 2], 0.5, rtol=0, atol=1e-6)


def test_mistakes_are_refused():
    with pytest.raises(MethodError, match="method='platt'"):
        CalibratedMultiLabelClassifier(method="platt").fit(SCORES, Y)
