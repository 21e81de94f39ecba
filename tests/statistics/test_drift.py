"""Tests of drift: exactness, the measured rate of false alarms, power, effects."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2_contingency, fisher_exact, ks_2samp

from multilab.statistics import (
    CalibrationBins,
    StatisticsError,
    ValueCounts,
    calibration_drift,
    calibration_sums,
    category_p,
    count_values,
    feature_drift,
    fisher_p,
    judge_drift,
    ks_distances,
    ks_p_values,
    pooled_counts,
    prevalence_drift,
    probability_drift,
    two_samples,
)


def counts_of(a, b) -> tuple[np.ndarray, np.ndarray]:
    return pooled_counts(count_values(a), count_values(b))[1:]


def test_ks_is_exact_without_ties() -> None:
    rng = np.random.default_rng(0)
    samples = [(rng.normal(size=n), rng.normal(size=m) + 0.3) for n, m in ((5, 7), (40, 12), (150, 151), (1, 9))]
    p, exact = ks_p_values([counts_of(*pair) for pair in samples])
    assert exact.all()
    assert p == pytest.approx([ks_2samp(*pair, method="exact").pvalue for pair in samples], rel=1e-9)


@pytest.mark.parametrize("chosen", [(0, 1, 2, 3), (0, 4, 7, 9), (6, 7, 8, 9), (1, 2, 5, 6)])
def test_ks_is_the_permutation_test_with_ties(chosen: tuple[int, ...]) -> None:
    pool = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 4.0])

    def split(indices: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        inside = np.isin(np.arange(len(pool)), indices)
        return counts_of(pool[~inside], pool[inside])

    distances = ks_distances([split(indices) for indices in combinations(range(len(pool)), 4)])
    share = (distances >= ks_distances([split(chosen)])[0] - 1e-12).mean()
    assert ks_p_values([split(chosen)])[0][0] == pytest.approx(share, rel=1e-12)


def test_small_p_values_of_ks_do_not_cancel() -> None:
    pair = counts_of(np.arange(60.0), np.arange(60.0) + 100)
    assert ks_p_values([pair])[0][0] == pytest.approx(ks_2samp(np.arange(60), np.arange(60) + 100).pvalue, rel=1e-9)
    assert ks_p_values([pair])[0][0] < 1e-30


def test_many_rows_take_the_limit_distribution_which_is_conservative_with_ties(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    samples = [counts_of(rng.poisson(3, 200), rng.poisson(3.3, 150)) for _ in range(20)]
    exact, is_exact = ks_p_values(samples)
    monkeypatch.setattr(two_samples, "EXACT_CELLS", 0)
    limit, is_limit = ks_p_values(samples)
    assert is_exact.all()
    assert not is_limit.any()
    assert (limit >= exact).all()


@pytest.mark.parametrize("table", [(1, 20, 8, 20), (0, 5, 5, 5), (300, 1000, 33, 90), (0, 9, 0, 4), (7, 7, 3, 3)])
def test_fisher_agrees_with_scipy(table: tuple[int, int, int, int]) -> None:
    a, n, b, m = table
    assert fisher_p(*table) == pytest.approx(fisher_exact([[a, n - a], [b, m - b]]).pvalue, rel=1e-9)


def test_rare_categories_are_counted_as_one() -> None:
    a, b = np.array([30, 20, 10, 1, 2]), np.array([10, 20, 30, 0, 1])
    expected = chi2_contingency([[30, 20, 10 + 3], [10, 20, 30 + 1]], correction=False).pvalue
    assert category_p(a, b) == (pytest.approx(expected), "chi-square")
    # rare ones of which five are expected together stay apart from the frequent ones
    expected = chi2_contingency([[30, 20, 4 + 4], [20, 30, 3 + 3]], correction=False).pvalue
    assert category_p(np.array([30, 20, 4, 4]), np.array([20, 30, 3, 3])) == (pytest.approx(expected), "chi-square")
    assert category_p(np.array([30, 10]), np.array([10, 20]))[1] == "Fisher"
    assert category_p(np.array([3, 1, 1]), np.array([1, 1, 1]))[1] == "none"
    assert np.isnan(category_p(np.array([30]), np.array([20]))[0])


def sample(rng: np.random.Generator, n: int, shift: float = 0.0) -> pd.DataFrame:
    """Return dense, zero-inflated, discrete, binary and nominal features, the last but one with holes."""
    holes = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.exponential(size=n))
    columns = {
        "normal": rng.normal(size=n) + shift,
        "zeros": np.where(rng.uniform(size=n) < 0.8, 0.0, rng.poisson(9, n)),
        "stars": rng.integers(1, 6, n),
        "flag": rng.uniform(size=n) < 0.1,
        "holes": holes,
        "colour": rng.choice(list("abcdefgh"), n, p=[0.5, 0.2, 0.2, 0.04, 0.03, 0.01, 0.01, 0.01]),
    }
    return pd.DataFrame(columns)


def labels_of(rng: np.random.Generator, n: int, gain: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of a model that is wrong by the same factor at all times if ``gain`` is 1."""
    p = rng.beta(1, [1, 2, 6], size=(n, 3))
    return (rng.uniform(size=p.shape) < np.clip(p**1.5 * gain, 0, 1)).astype(int), p


def reports_of(rng: np.random.Generator, runs: int, n: int, m: int, shift=0.0, gain=1.0, min_effect=0.0):
    """Return the reports of simulated pairs of samples; the features of all pairs are tested in one call."""
    before, after = ({}, {})
    for run in range(runs):
        for counts, frame in ((before, sample(rng, n)), (after, sample(rng, m, shift))):
            counts |= {f"{run} {name}": count_values(column) for name, column in frame.items()}
    features = feature_drift(before, after)
    features[["run", "item"]] = features["item"].str.split(" ", expand=True)
    names = ["a", "b", "c"]
    for _, inputs in features.groupby("run", sort=False):
        (Y, p), (Y_new, p_new) = labels_of(rng, n), labels_of(rng, m, gain)
        tables = [
            inputs.drop(columns="run"),
            probability_drift(names, calibration_sums(Y, p), p_new),
            prevalence_drift("labels", names, Y.sum(axis=0), n, Y_new.sum(axis=0), m),
            calibration_drift(names, calibration_sums(Y, p), calibration_sums(Y_new, p_new)),
        ]
        yield judge_drift(tables, 0.05, min_effect)


@pytest.mark.slow
def test_false_alarms_are_within_the_family_wise_level() -> None:
    """300 simulated pairs of samples without drift; more alarms than the bound have probability 0.001 at level 0.05."""
    runs = 300
    reports = list(reports_of(np.random.default_rng(2), runs, 180, 90))
    alarms = sum(len(report.drifted) > 0 for report in reports)
    assert alarms <= binom.ppf(0.999, runs, 0.05)
    # no single test may be liberal either
    p = pd.concat([report.table for report in reports])
    for _, group in p.groupby(["family", "item", "quantity"]):
        assert (group["p"].dropna() <= 0.05).sum() <= binom.ppf(1 - 1e-5, runs, 0.05)
    # the exact test of continuous values is not conservative
    normal = p[p["item"] == "normal"]["p"]
    assert (normal <= 0.05).sum() >= binom.ppf(0.001, runs, 0.035)


def test_planted_drift_is_detected() -> None:
    rng, runs = np.random.default_rng(3), 25
    least = binom.ppf(0.001, runs, 0.9)
    shifted = [report.drifted for report in reports_of(rng, runs, 300, 150, shift=0.7, min_effect=0.1)]
    assert sum("normal" in set(rows["item"]) for rows in shifted) >= least
    miscalibrated = [report.drifted for report in reports_of(rng, runs, 300, 150, gain=0.4, min_effect=0.1)]
    assert sum("calibration" in set(rows["family"]) for rows in miscalibrated) >= least


def test_large_samples_do_not_report_small_effects() -> None:
    rng = np.random.default_rng(4)
    a, b = (count_values(rng.normal(size=100_000) + shift) for shift in (0, 0.05))
    report = judge_drift([feature_drift({"x": a}, {"x": b})])
    assert report.table["p_adjusted"][0] < 1e-12
    assert report.drifted.empty
    assert len(judge_drift([feature_drift({"x": a}, {"x": b})], min_effect=0.01).drifted) == 1


def test_predicted_prevalence_is_the_mean_probability() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.beta(1, 3, size=(400, 2)), rng.beta([2, 1], 3, size=(150, 2))
    table = probability_drift(["a", "b"], calibration_sums(np.zeros(p.shape), p), q)
    assert table["reference"].tolist() == pytest.approx(p.mean(axis=0).tolist())
    shuffled = np.array([rng.permutation(np.append(p[:, 1], q[:, 1])) for _ in range(4000)])
    differences = np.abs(shuffled[:, :400].mean(axis=1) - shuffled[:, 400:].mean(axis=1))
    share = (differences >= abs(p[:, 1].mean() - q[:, 1].mean())).mean()
    assert table["p"][1] == pytest.approx(share, abs=0.03)
    assert table["p"][0] < 1e-9
    with pytest.raises(StatisticsError, match="1 labels are named, the samples have 2 and 2"):
        probability_drift(["a"], calibration_sums(np.zeros(p.shape), p), q)


def test_other_probabilities_with_the_same_calibration_are_no_calibration_drift() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.beta(1, 3, size=(2000, 1)), rng.beta(3, 1, size=(2000, 1))
    y, z = (rng.uniform(size=x.shape) < x for x in (p, q))
    row = calibration_drift(["a"], calibration_sums(y, p), calibration_sums(z, q)).iloc[0]
    assert row["p"] > 0.01
    assert row["effect"] < 0.05


def test_what_cannot_be_tested_has_a_reason_and_is_in_no_family() -> None:
    before = {"one": ["x"] * 9, "gone": [1.0] * 9, "rare": list("abcdefghi")}
    after = {"one": ["x"] * 4, "gone": [np.nan] * 4, "rare": list("jklm")}
    frames = [{name: count_values(values) for name, values in side.items()} for side in (before, after)]
    table = feature_drift(*frames)
    assert table["note"].tolist() == [
        "one value",
        "no values to compare",
        "",
        "share of 'j'; not in the reference: 'j', 'k', 'l' and 1 more; too few rows for a test",
    ]
    judged = judge_drift([table]).table
    assert judged["p_adjusted"].notna().tolist() == [False, False, True, False]
    assert judged["p_adjusted"][2] == judged["p"][2] == pytest.approx(1 / 715)  # Fisher, the only test: 1 / C(13, 4)
    never = [calibration_sums(np.zeros((n, 1)), np.full((n, 1), 0.1)) for n in (50, 9)]
    rare = calibration_drift(["a"], *never)
    assert rare["note"][0] == "too few rows with or without the label"


def test_families_share_the_level() -> None:
    tables = [
        prevalence_drift(family, ["a", "b"], [30, 50], 100, [33, 36], 100) for family in ("labels", "predictions")
    ]
    alone, both = judge_drift(tables[:1]).table, judge_drift(tables).table
    p = alone["p"].to_numpy()
    assert alone["p_adjusted"].tolist() == pytest.approx([max(2 * p[1], p[0]), 2 * p[1]])
    assert both["p_adjusted"][:2].tolist() == pytest.approx(np.minimum(1, 2 * alone["p_adjusted"]).tolist())


def test_probabilities_that_are_integers_do_not_divide_by_zero() -> None:
    y = np.tile([[0], [1]], (20, 1))
    right, wrong = calibration_sums(y, y), calibration_sums(y, 1 - y)
    assert calibration_drift(["a"], right, right)["p"].tolist() == [1.0]
    assert calibration_drift(["a"], right, wrong)["p"][0] < 1e-12


def test_unobserved_labels_are_in_no_bin() -> None:
    p = np.linspace(0, 1, 8).reshape(4, 2)
    y = np.array([[0, -1], [1, 1], [np.nan, 0], [1, 1]])
    assert calibration_sums(y, p).count.sum(axis=1).tolist() == [3, 3]
    assert calibration_sums(y, p).squares[0].sum() == pytest.approx(np.sum(([0, 1, 1] - p[[0, 1, 3], 0]) ** 2))


def test_counts_survive_json() -> None:
    for column in ([1.5, None, 2.0], ["a", None, "a"], [True, False, True]):
        counts = count_values(column)
        again = ValueCounts.from_dict(counts.to_dict())
        assert again.to_dict() == counts.to_dict()
        assert again.values.dtype.kind == counts.values.dtype.kind
    bins = calibration_sums([[1], [0]], [[0.7], [0.2]])
    assert CalibrationBins.from_dict(bins.to_dict()).to_dict() == bins.to_dict()


def test_wrong_arguments_are_named() -> None:
    number, text = count_values([1.0, 2.0]), count_values(["a"])
    with pytest.raises(StatisticsError, match="feature 'x'"):
        feature_drift({"x": number}, {"y": number})
    with pytest.raises(StatisticsError, match="feature 'x': the reference sample has numbers, the new one text"):
        feature_drift({"x": number}, {"x": text})
    with pytest.raises(StatisticsError, match="`alpha` must be in"):
        judge_drift([], alpha=0)
    with pytest.raises(StatisticsError, match="`min_effect` must be in"):
        judge_drift([], min_effect=2)
    with pytest.raises(StatisticsError, match=r"not in \[0, 1\]"):
        calibration_sums([[0]], [[3.0]])
    with pytest.raises(StatisticsError, match=r"labels \(1, 2\) and scores \(1, 1\)"):
        calibration_sums([[0, 1]], [[0.5]])
    bins = calibration_sums([[0]], [[0.5]])
    with pytest.raises(StatisticsError, match="2 labels are named, the samples have 1 and 1"):
        calibration_drift(["a", "b"], bins, bins)
    with pytest.raises(StatisticsError, match="18 sums per label are needed"):
        CalibrationBins.from_dict({name: [[1.0]] for name in bins.to_dict()})
    with pytest.raises(StatisticsError, match="one count >= 0 per value"):
        ValueCounts.from_dict({"values": [1.0], "counts": [1, 2], "n_missing": 0})
