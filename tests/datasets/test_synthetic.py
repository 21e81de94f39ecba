"""Embedded sets: the digits' segments and the four scenarios with their Bayes accuracies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from multilab.datasets import DatasetError, load, sample_scenario
from multilab.datasets.synthetic import (
    bayes_accuracy,
    generate,
    scenario_curve,
    scenario_threshold,
    segments_of,
)

PRINTED = {1: 0.910, 2: 0.852, 3: 0.906, 4: 0.716}  # accuracy of the best classifier, threshold at the median


def midpoints() -> np.ndarray:
    return -4 + 8 * (np.arange(200_000) + 0.5) / 200_000


@pytest.mark.parametrize("k", PRINTED)
def test_the_best_accuracy_is_the_printed_one(k):
    exact = bayes_accuracy(k)
    assert exact == pytest.approx(PRINTED[k], abs=5e-4)


@pytest.mark.parametrize("k", PRINTED)
@pytest.mark.parametrize("threshold", ["median", "mean", 0])
def test_a_large_sample_reaches_the_best_accuracy(k, threshold):
    """Whether the Bayes rule is right is a coin of known probability: five standard errors of 100 000."""
    n = 100_000
    sample = sample_scenario(k, n, seed=11, threshold=threshold)
    best = sample.f > scenario_threshold(k, threshold)
    exact = bayes_accuracy(k, threshold)
    assert abs(np.mean(best == sample.Y[:, 0]) - exact) < 5 * np.sqrt(exact * (1 - exact) / n)


@pytest.mark.parametrize("k", PRINTED)
def test_thresholds_are_those_of_the_distribution(k):
    f = scenario_curve(k, midpoints())
    assert stats.norm.cdf(scenario_threshold(k, "median") - f).mean() == pytest.approx(0.5, abs=1e-9)
    assert scenario_threshold(k, "mean") == pytest.approx(f.mean(), abs=1e-8)
    assert scenario_threshold(k, 0) == 0


@pytest.mark.parametrize(
    ("k", "x", "y"),
    [
        (1, [-3.5, -2.5, -1, 1, 2.5, 3.5], [-2, 0, 2.55, 0.55, 4.55, 3.55]),
        (2, [0, 1, -2], [5, 5.045, 5 - 0.8 - 1.44 - 0.04]),
        (3, [0, 1, -1, 2], [0, 2.85, -2.85, 0]),
        (4, [-1.5, 1 / 6, 0.5, 1], [0, 3.85, -3.85, 0]),
    ],
)
def test_curves_are_those_of_the_paper(k, x, y):
    assert scenario_curve(k, x) == pytest.approx(y, abs=1e-12)


def test_samples_are_what_they_say():
    """Position, noise and independence of the streams, each by a test that fails once in 10 000 seeds."""
    n = 20_000
    samples = {k: sample_scenario(k, n, seed=3) for k in PRINTED}
    for sample in samples.values():
        assert sample.X.shape == sample.Y.shape == (n, 1)
        assert sample.Y.dtype == np.uint8
        assert stats.kstest(sample.X[:, 0], "uniform", args=(-4, 8)).pvalue > 1e-4
        assert stats.kstest(sample.y_real - sample.f, "norm").pvalue > 1e-4
    for a, b in itertools.combinations(samples.values(), 2):
        assert stats.pearsonr(a.X[:, 0], b.X[:, 0]).pvalue > 1e-4
        assert stats.pearsonr(a.y_real - a.f, b.y_real - b.f).pvalue > 1e-4


def test_samples_are_seeded():
    one, same, other = (sample_scenario(2, 50, seed=seed) for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.X, other.X)
    assert one.X[0, 0] == sample_scenario(2, 50, seed=7, threshold=0).X[0, 0]


@pytest.mark.parametrize("k", PRINTED)
def test_the_cards_hold_the_default_sample(k):
    dataset = load(f"scenario{k}")
    sample = sample_scenario(k)
    assert np.array_equal(dataset.X, sample.X)
    assert np.array_equal(dataset.Y, sample.Y)
    # Median threshold: a fair coin, 300 throws, five standard deviations.
    assert abs(int(dataset.Y.sum()) - 150) < 5 * np.sqrt(75)


def test_wrong_arguments_are_refused():
    with pytest.raises(DatasetError, match="scenarios 1, 2, 3 and 4"):
        sample_scenario(5)
    with pytest.raises(DatasetError, match="not median, mean"):
        sample_scenario(1, threshold="mode")
    with pytest.raises(DatasetError, match="at least 1"):
        sample_scenario(1, n=0)
    with pytest.raises(DatasetError, match="unknown generator"):
        generate({"name": "moons"})
    with pytest.raises(DatasetError, match="rows"):
        generate({"name": "scenario", "k": 1, "rows": 3})


def test_segments_show_the_digits():
    """Checked against the display: three bars and four strokes, here as 3 x 5 characters."""
    display = {
        0: " _ ,| |,|_|",
        1: "   ,  |,  |",
        2: " _ , _|,|_ ",
        3: " _ , _|, _|",
        4: "   ,|_|,  |",
        5: " _ ,|_ , _|",
        6: " _ ,|_ ,|_|",
        7: " _ ,  |,  |",
        8: " _ ,|_|,|_|",
        9: " _ ,|_|, _|",
    }
    position = {"a": (0, 1), "f": (1, 0), "g": (1, 1), "b": (1, 2), "e": (2, 0), "d": (2, 1), "c": (2, 2)}
    for digit, lines in display.items():
        rows = lines.split(",")
        lit = {letter for letter, (row, column) in position.items() if rows[row][column] != " "}
        assert set(segments_of(digit)) == lit


def test_digit_segments_are_the_digits():
    dataset = load("digit-segments")
    digits = load_digits()
    assert np.array_equal(dataset.X, digits.data)
    assert dataset.label_names == list("abcdefg")
    for row in (0, 7, 100, 1796):
        lit = {name for name, on in zip(dataset.label_names, dataset.Y[row], strict=True) if on}
        assert lit == set(segments_of(digits.target[row]))
    assert len(np.unique(dataset.Y, axis=0)) == 10
