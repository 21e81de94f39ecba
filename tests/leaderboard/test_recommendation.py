"""Recommendation from a leaderboard: its reasons, and when there is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.leaderboard import Leaderboard, recommend
from multilab.statistics import StatisticsError, corrected_resampled_interval, corrected_resampled_p


def board(values: dict[str, list[float]], seconds: dict[str, float] | None = None) -> Leaderboard:
    """Return a leaderboard of macro F1 by split."""
    rows = [(s, m, "macro_f1", v) for m, own in values.items() for s, v in enumerate(own)]
    cost = seconds or {}
    rows += [(s, m, "fit_seconds", cost.get(m, 1.0)) for m, own in values.items() for s in range(len(own))]
    rows += [(s, m, "predict_seconds", 0.0) for m, own in values.items() for s in range(len(own))]
    frame = pd.DataFrame(rows, columns=["split", "method", "metric", "value"])
    n_splits = len(next(iter(values.values())))
    return Leaderboard(frame, tuple(values), {"macro_f1": "max"}, 0.25, n_splits)


BASE = [0.10, 0.11, 0.09, 0.10, 0.10]
GOOD = [0.60, 0.62, 0.61, 0.59, 0.60]


def test_a_clear_winner_is_recommended_with_its_numbers() -> None:
    poor = [v - 0.2 for v in GOOD]
    advice = recommend(board({"base": BASE, "good": GOOD, "poor": poor}), ["base"])
    text = " ".join(advice.sentences)
    assert advice.method == "good"
    assert advice.level == ()
    assert "0.6040 on average over 5 splits" in text
    assert "The best baseline, base, which reads no features, has 0.1000." in text
    assert "Every other method is significantly worse at 0.05" in text


def test_a_cheaper_method_that_is_not_worse_is_named_with_its_loss() -> None:
    near = [v + e for v, e in zip(GOOD, [-0.02, 0.01, -0.01, 0.015, -0.015], strict=True)]
    advice = recommend(board({"base": BASE, "good": GOOD, "near": near}, {"good": 30.0, "near": 1.0}), ["base"])
    assert (advice.method, advice.level, advice.cheaper) == ("good", ("near",), ("near",))
    assert any(
        "near takes 1 s per fit, 30 times less, and is 0.0040 worse" in sentence for sentence in advice.sentences
    )
    slow = recommend(board({"base": BASE, "good": GOOD, "near": near}, {"good": 30.0, "near": 29.0}), ["base"])
    assert slow.cheaper == ()


@pytest.mark.parametrize("model", [[0.12, 0.08, 0.11, 0.09, 0.11], [0.05, 0.04, 0.05, 0.06, 0.05]])
def test_nothing_is_recommended_that_does_not_beat_the_baseline(model: list[float]) -> None:
    advice = recommend(board({"base": BASE, "model": model}), ["base"])
    assert advice.method is None
    assert advice.sentences[0].startswith("Nothing is shown to be better than base")
    assert "Do not use a model on this evidence" in advice.sentences[1]


def test_the_best_of_several_baselines_counts() -> None:
    high = [v - 0.001 for v in GOOD]
    advice = recommend(board({"base": BASE, "base + thresholds": GOOD, "model": high}), ["base", "base + thresholds"])
    assert advice.method is None
    assert "better than base + thresholds" in advice.sentences[0]


def test_one_split_is_called_one_split() -> None:
    advice = recommend(board({"a": [0.5], "b": [0.4]}))
    assert advice.method == "a"
    assert any("One split says nothing" in sentence for sentence in advice.sentences)


def test_without_methods_there_is_no_recommendation() -> None:
    assert recommend(board({"base": BASE}), ["base"]).method is None
    assert recommend(board({"none": [np.nan] * 5})).sentences == (
        "No method finished, so there is nothing to recommend.",
    )


def test_the_front_of_quality_and_seconds() -> None:
    values = {"slow": [0.9, 0.9], "fast": [0.5, 0.5], "dominated": [0.4, 0.4], "middle": [0.7, 0.7]}
    seconds = {"slow": 9.0, "fast": 1.0, "dominated": 2.0, "middle": 3.0}
    assert board(values, seconds).pareto == ("fast", "middle", "slow")


def test_an_interval_excludes_zero_exactly_if_the_test_rejects() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        differences = rng.normal(0.02, 0.02, 5)
        mean, low, high = corrected_resampled_interval(differences, 0.25)
        assert mean == pytest.approx(differences.mean())
        assert (low > 0 or high < 0) == (corrected_resampled_p(differences, 0.25) < 0.05)
    with pytest.raises(StatisticsError, match="level"):
        corrected_resampled_interval([0.1, 0.2], 0.25, level=1.0)


def test_intervals_and_differences_of_a_leaderboard() -> None:
    both = board({"base": BASE, "good": GOOD})
    assert both.intervals().loc["good"].tolist() == list(corrected_resampled_interval(GOOD, 0.25))
    gain = both.difference("good", "base")
    assert gain["wins"] == 5
    assert gain["mean"] == pytest.approx(np.mean(GOOD) - np.mean(BASE))
    assert np.isnan(board({"a": [0.5]}).intervals().loc["a", "low"])
