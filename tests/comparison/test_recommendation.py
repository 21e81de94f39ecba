"""Recommendation from a leaderboard: its reasons, and when there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from multilab import compare
from multilab.comparison import recommend
from multilab.comparison.board import with_labels
from multilab.decision import TunedThresholdClassifier
from multilab.methods import BinaryRelevance, MLkNN
from multilab.metrics import over_assigned
from multilab.models.summaries import metric_summaries
from multilab.statistics import Leaderboard, StatisticsError, corrected_resampled_interval, corrected_resampled_p


def board(
    values: dict[str, list[float]],
    seconds: dict[str, float] | None = None,
    tuned: dict[str, str] | None = None,
    rates: dict[str, dict[str, float]] | None = None,
) -> Leaderboard:
    """Return a leaderboard of macro F1 by split.

    ``tuned`` names the methods with their own decisions; ``rates`` has how often a method assigns the labels "hot",
    which 30 % of 200 rows have, and "fog", which 1 % have.
    """
    rows = [(s, m, "macro_f1", v) for m, own in values.items() for s, v in enumerate(own)]
    cost = seconds or {}
    rows += [(s, m, "fit_seconds", cost.get(m, 1.0)) for m, own in values.items() for s in range(len(own))]
    rows += [(s, m, "predict_seconds", 0.0) for m, own in values.items() for s in range(len(own))]
    frame = pd.DataFrame(rows, columns=["split", "method", "metric", "value"]).assign(dataset="x")
    decided = [
        (method, label, 200, count, round(200 * own.get(label, count / 200)))
        for method, own in (rates or {}).items()
        for label, count in (("hot", 60), ("fog", 2))
    ]
    made = Leaderboard(frame, {"macro_f1": "max"}, test_to_train=0.25, untuned=tuned or {})
    return with_labels(made, pd.DataFrame(decided, columns=["method", "label", "observed", "count", "predicted"]))


BASE = [0.10, 0.11, 0.09, 0.10, 0.10]
GOOD = [0.60, 0.62, 0.61, 0.59, 0.60]


def test_a_clear_winner_is_recommended_with_its_numbers() -> None:
    poor = [v - 0.2 for v in GOOD]
    advice = recommend(board({"base": BASE, "good": GOOD, "poor": poor}), ["base"])
    text = " ".join(advice.sentences)
    assert advice.method == "good"
    assert advice.level == ()
    assert "Use good, the best of 2 methods: Macro F1 0.6040 on average over 5 splits" in text
    assert "The best baseline, base, which reads no features, has 0.1000." in text
    assert "Next is poor, 0.2000 worse on average" in text
    assert "Every other method is significantly worse at 0.05" in text


def test_a_cheaper_method_that_is_not_worse_is_named_with_its_loss() -> None:
    near = [v + e for v, e in zip(GOOD, [-0.02, 0.01, -0.01, 0.015, -0.015], strict=True)]
    advice = recommend(board({"base": BASE, "good": GOOD, "near": near}, {"good": 30.0, "near": 1.0}), ["base"])
    assert (advice.method, advice.level, advice.cheaper) == ("good", ("near",), ("near",))
    assert any(
        "near takes 1 s per fit, 30 times less. It is 0.0040 worse on average, which may be chance" in sentence
        for sentence in advice.sentences
    )
    for seconds in ({"good": 30.0, "near": 29.0}, {"good": 0.3, "near": 0.01}):
        assert recommend(board({"base": BASE, "good": GOOD, "near": near}, seconds), ["base"]).cheaper == ()


@pytest.mark.parametrize("model", [[0.12, 0.08, 0.11, 0.09, 0.11], [0.05, 0.04, 0.05, 0.06, 0.05]])
def test_nothing_is_recommended_that_does_not_beat_the_baseline(model: list[float]) -> None:
    advice = recommend(board({"base": BASE, "model": model}), ["base"])
    assert advice.method is None
    assert advice.sentences[0].startswith("Nothing is shown to be better than base")
    assert "Do not deploy a model yet" in advice.sentences[1]


def test_the_best_of_several_baselines_counts() -> None:
    high = [v - 0.001 for v in GOOD]
    advice = recommend(board({"base": BASE, "base + thresholds": GOOD, "model": high}), ["base", "base + thresholds"])
    assert advice.method is None
    assert "better than base + thresholds" in advice.sentences[0]


def test_one_split_is_called_one_split() -> None:
    advice = recommend(board({"a": [0.5], "b": [0.4]}))
    assert advice.method == "a"
    assert any("One split" in sentence for sentence in advice.sentences)


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


def test_no_interval_of_a_mean_leaves_the_range_of_its_metric() -> None:
    values = [1.0, 0.95, 0.99, 1.0, 0.96]
    mean, low, high = corrected_resampled_interval(values, 0.25)
    assert high > 1
    assert corrected_resampled_interval(values, 0.25, bounds=(0.0, 1.0)) == (mean, low, 1.0)
    assert corrected_resampled_interval([3.0, 3.0], 0.25, bounds=(0.0, 1.0)) == (3.0, 3.0, 3.0)  # holds its mean
    Y = (np.random.default_rng(1).random((60, 3)) < 0.4).astype(int)
    X = Y + np.random.default_rng(10).normal(scale=0.3, size=Y.shape)
    easy = compare([MLkNN(k=5)], X, Y, metrics=["macro_f1", "ranking_loss"])
    for metric in ("macro_f1", "ranking_loss"):
        free, kept = replace(easy, ranges={}).intervals(metric), easy.intervals(metric)
        assert free["low"].min() < 0 or free["high"].max() > 1  # else the test shows nothing
        pd.testing.assert_frame_equal(kept, free.clip(0, 1))
    summary = metric_summaries([{"macro_f1": value} for value in values], 0.25)["macro_f1"]
    assert (summary["low"], summary["high"]) == (low, 1.0)


def test_intervals_and_differences_of_a_leaderboard() -> None:
    both = board({"base": BASE, "good": GOOD})
    assert both.intervals().loc["good"].tolist() == list(corrected_resampled_interval(GOOD, 0.25))
    gain = both.difference("good", "base")
    assert gain["wins"] == 5
    assert gain["mean"] == pytest.approx(np.mean(GOOD) - np.mean(BASE))
    assert np.isnan(board({"a": [0.5]}).intervals().loc["a", "low"])


NOISY = [v + e for v, e in zip(GOOD, [0.06, -0.03, 0.05, -0.02, 0.04], strict=True)]  # mean +0.02, interval with 0
SURE = [v + e for v, e in zip(GOOD, [0.05, 0.06, 0.05, 0.04, 0.05], strict=True)]
TUNED = {"good + thresholds": "good"}


def test_thresholds_whose_gain_may_be_chance_are_not_recommended() -> None:
    advice = recommend(board({"base": BASE, "good": GOOD, "good + thresholds": NOISY}, tuned=TUNED), ["base"])
    assert advice.method == "good"
    assert advice.sentences[0].startswith(
        "Use good with its own decisions, the only method, tried with its own decisions and with tuned thresholds:"
    )
    gain = board({"a": GOOD, "b": NOISY}).difference("b", "a")
    assert gain["low"] < 0 < gain["mean"]
    assert (
        "Highest mean: good + thresholds, 0.6240. It is not recommended because its gain over the own decisions of "
        f"good may be chance (+0.0200, uncorrected 95 % interval {gain['low']:+.4f} to {gain['high']:+.4f})."
        in advice.sentences
    )
    assert advice.highest == "good + thresholds"
    assert advice.paid.loc["macro_f1"].tolist() == pytest.approx([0.604, 0.624, 0.02])
    one_split = recommend(board({"good": [0.5], "good + thresholds": [0.6]}, tuned=TUNED))
    assert one_split.method == "good"


def test_the_first_sentence_says_what_the_method_is_and_which_thresholds_were_tried() -> None:
    values = {"base": BASE, "base + thresholds": BASE, **{m: [v - 0.1 for v in GOOD] for m in "abc"}}
    values |= {"good": GOOD, "good + thresholds": [v - e for v, e in zip(GOOD, (0.03, 0.04, 0.05), strict=False)]}
    values["good + thresholds"] += [v - 0.04 for v in GOOD[3:]]
    baselines = ["base", "base + thresholds"]
    advice = recommend(board(values, tuned=TUNED), baselines, titles={"good": "a new method"})
    assert advice.sentences[0].startswith(
        "Use good (a new method) with its own decisions, the best of 4 methods, of which good was tried with tuned "
        "thresholds too: Macro F1"
    )
    assert any("Tuned thresholds of good are a loss (-0.0400, uncorrected" in sentence for sentence in advice.sentences)
    assert any("corrected for all 6 comparisons" in sentence for sentence in advice.sentences)  # 3 + 1 + 2 baselines
    every = {**values, **{f"{m} + thresholds": [v - 0.3 for v in GOOD] for m in "abc"}}
    advice = recommend(board(every, tuned={f"{m} + thresholds": m for m in ("good", *"abc")}), baselines)
    assert "the best of 4 methods, each with its own decisions and with tuned thresholds: " in advice.sentences[0]


def test_thresholds_with_a_gain_are_recommended_with_what_they_cost() -> None:
    advice = recommend(board({"base": BASE, "good": GOOD, "good + thresholds": SURE}, tuned=TUNED), ["base"])
    assert advice.method == "good + thresholds"
    assert advice.paid.loc["macro_f1"].tolist() == pytest.approx([0.604, 0.654, 0.05])
    assert "Macro F1 (higher is better)        0.6040     0.6540  +0.0500" in str(advice)


def test_a_method_that_assigns_a_label_far_too_often_is_not_recommended() -> None:
    values = {"base": BASE, "good": GOOD, "good + thresholds": SURE, "poor": [v - 0.1 for v in GOOD]}
    rates = {"good": {"hot": 0.5}, "good + thresholds": {"fog": 0.9}, "poor": {}}
    advice = recommend(board(values, tuned=TUNED, rates=rates), ["base"])
    assert advice.method == "good"
    assert "fog (assigned to 90 %, 1 % have it)" in advice.sentences[1]
    assert "good + thresholds" in advice.sentences[1]
    rates["good"] = {"hot": 0.95}  # beyond 3 * .3 = .9
    advice = recommend(board(values, tuned=TUNED, rates=rates), ["base"])
    assert advice.method == "poor"
    assert "fog (assigned to 90 %, 1 % have it) and hot (assigned to 95 %, 30 % have it)" in advice.sentences[1]
    assert list(advice.over_assigned) == ["good + thresholds", "good"]


def test_where_every_method_does_so_the_label_is_excepted() -> None:
    values = {"base": BASE, "good": GOOD, "good + thresholds": SURE}
    rates = {"good": {"fog": 0.4}, "good + thresholds": {"fog": 0.9}}
    advice = recommend(board(values, tuned=TUNED, rates=rates), ["base"])
    assert advice.method == "good"
    assert advice.sentences[0] == (
        "Every method assigns a label to far too many of the held-out rows. Use good with its own decisions, but do "
        "not use its decisions for fog (assigned to 40 %, 1 % have it)."
    )


def test_a_baseline_that_assigns_everything_does_not_stand_against_own_decisions() -> None:
    """Features that say something are seen with thresholds; the own decisions need only beat the plain baseline."""
    everything = [v - 0.01 for v in SURE]
    values = {"base": BASE, "base + thresholds": everything, "good": [v - 0.2 for v in GOOD], "good + thresholds": SURE}
    rates = {"base + thresholds": {"fog": 1.0}, "good": {}, "good + thresholds": {"fog": 0.9}}
    advice = recommend(board(values, tuned=TUNED, rates=rates), ["base", "base + thresholds"])
    assert advice.method == "good"
    assert any(
        "has 0.6440, which is more, but assigns labels far too often." in sentence for sentence in advice.sentences
    )
    values["good"] = BASE
    advice = recommend(board(values, tuned=TUNED, rates=rates), ["base", "base + thresholds"])
    assert advice.method is None
    assert "Nothing is shown to be better than base, which reads no features" in advice.sentences[0]
    assert any("fog (assigned to 90 %, 1 % have it)" in sentence for sentence in advice.sentences)


def test_the_rule_at_its_limits() -> None:
    def named(rate: float, frequency: float) -> bool:
        return bool(over_assigned(["a"], [rate], [frequency]))

    assert [named(rate, 0.05) for rate in (0.25, 0.26)] == [False, True]  # frequency + .2
    assert [named(rate, 0.3) for rate in (0.9, 0.91)] == [False, True]  # 3 times the frequency
    assert not named(1.0, 0.4)
    assert named(0.21, 0.0)
    assert not named(1.0, np.nan)
    several = over_assigned(["a", 1, "c"], [0.5, 0.9, 0.2], [0.1, 0.1, 0.1])
    assert [each.label for each in several] == [1, "a"]
    assert str(several[0]) == "label 1 (assigned to 90 %, 10 % have it)"


@pytest.mark.slow
def test_intervals_exclude_zero_exactly_where_the_corrected_test_separates() -> None:
    rng = np.random.default_rng(1)
    contradictions = 0
    for _ in range(40):
        values = {f"m{k}": (0.5 - 0.01 * k + rng.normal(0, 0.01, 5)).tolist() for k in range(8)}
        made = board(values)
        for reference in (None, "m3"):
            tests = made.tests(reference=reference)
            differs = tests["differs"].astype(bool)
            assert (((tests["low"] > 0) | (tests["high"] < 0)) == differs).all()
            contradictions += int(((tests["p"] < 0.05) & ~differs).sum())
        gains = [np.mean(values["m3"]) - np.mean(values[name]) for name in tests.index]
        assert tests["advantage"].tolist() == pytest.approx(gains)
    assert contradictions > 20  # cases in which an uncorrected interval would have no 0 next to "not separated"


def test_a_method_that_is_worse_without_the_correction_is_not_offered_as_cheaper() -> None:
    near = [v - e for v, e in zip(GOOD, [0.11, 0.05, 0.16, 0.08, 0.15], strict=True)]
    others = {f"other {k}": [v - 0.01 * (s % 2) for s, v in enumerate(GOOD)] for k in range(20)}
    seconds = {"good": 30.0, "near": 1.0, **dict.fromkeys(others, 20.0)}
    made = board({"good": [v + 0.001 for v in GOOD], "near": near, **others}, seconds)
    tests = made.tests()
    assert tests.loc["near", "p"] < 0.05
    assert not tests.loc["near", "differs"]
    assert recommend(made).cheaper == ()


def test_many_methods_are_counted_and_few_are_named() -> None:
    rng = np.random.default_rng(2)
    many = board({f"m{k}": (0.5 + rng.normal(0, 0.02, 5)).tolist() for k in range(24)})
    text = " ".join(recommend(many).sentences)
    named = {name for name in many.methods if f"{name} " in text.replace(",", " ").replace(".", " ").replace(";", " ")}
    assert len(named) <= 5
    assert "and 20 others" in text
    assert "and 20 others" in many.finding()


def test_ties_single_methods_and_unfinished_ones_have_true_sentences() -> None:
    tied = recommend(board({"a": GOOD, "b": GOOD}))
    assert any("b has the same mean. Not shown to be worse" in sentence for sentence in tied.sentences)
    assert any("b; 5 splits" in sentence for sentence in tied.sentences)
    alone = recommend(board({"a": GOOD}))
    assert alone.sentences == (
        "Use a, the only method: Macro F1 0.6040 on average over 5 splits (95 % interval 0.5828 to 0.6252).",
    )
    made = board({"a": GOOD, "b": [np.nan] * 5})
    assert "Not compared, because their Macro F1 is undefined: b." in recommend(made).sentences
    stopped = pd.DataFrame([("x", 4, "c", "stopped")], columns=["dataset", "split", "method", "reason"])
    partly = replace(made, methods=("a", "c"), unfinished=stopped)
    assert "Not compared, because they did not finish: c." in recommend(partly).sentences


def test_estimators_in_python_are_held_to_the_same_rules() -> None:
    """A label that nothing predicts, and the same estimator with tuned thresholds."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 4))
    Y = np.column_stack([X[:, 0] > 0.8, X[:, 1] > 1, rng.random(400) < 0.06]).astype(int)
    names = pd.DataFrame(Y, columns=["hot", "wet", "noise"])
    plain = BinaryRelevance(LogisticRegression(), calibration="none")
    both = {"plain": plain, "tuned": TunedThresholdClassifier(plain, objective="macro_f1", cv=3)}
    made = compare(both, X, names, cv=4, metrics=["macro_f1", "micro_f1", "hamming_loss"])
    assert made.untuned == {"tuned": "plain"}
    own = made.decided.set_index(["method", "label"])
    assert own.loc[("plain", "noise"), "count"] == Y[:, 2].sum()
    assert own.loc[("plain", "noise"), "observed"] == 400
    advice = recommend(made)
    assert made.table.index[0] == "tuned"
    assert advice.method == "plain"
    assert [each.label for each in advice.over_assigned["tuned"]] == ["noise"]
    assert "noise (assigned to" in advice.sentences[1]
    assert "tuned assigns labels far too often: noise (assigned to" in repr(made)
    change = made.table.loc["tuned", "hamming_loss"] - made.table.loc["plain", "hamming_loss"]
    assert advice.paid.loc["hamming_loss", "change"] == pytest.approx(change)
    assert change > 0.05


@pytest.mark.parametrize(("micro", "expected"), [(0.79, "m + thresholds"), (0.70, "m")])
def test_a_gain_that_may_be_chance_counts_for_a_program_unless_it_costs_another_f1_more(micro, expected) -> None:
    own = [0.50, 0.52, 0.48, 0.51, 0.49]
    tuned = [v + e for v, e in zip(own, [0.09, -0.03, 0.08, -0.02, 0.03], strict=True)]  # .03 on average
    made = board({"m": own, "m + thresholds": tuned}, tuned={"m + thresholds": "m"})
    rows = [(s, name, "micro_f1", v) for name, v in (("m", 0.8), ("m + thresholds", micro)) for s in range(5)]
    extra = pd.DataFrame(rows, columns=["split", "method", "metric", "value"]).assign(dataset="x")
    both = replace(made, scores=pd.concat([made.scores, extra]), directions={"macro_f1": "max", "micro_f1": "max"})
    assert recommend(both).method == "m"
    assert recommend(both, certain=False).method == expected
