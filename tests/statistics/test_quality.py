"""Quality without labels: expectations and intervals where the probabilities are true by construction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from multilab.metrics import macro_f1, micro_f1, per_label
from multilab.statistics import ExpectedCounts, HeldOutQuality, StatisticsError, expected_quality, held_out_quality

QUANTITIES = ("precision", "recall", "f1")


def probabilities(rng, n, q=4, shift=0.0):
    """Return true probabilities of labels whose frequencies lie between about 10 % and 50 %."""
    return norm.cdf(rng.normal(size=(n, q)) + np.linspace(-1.8, 0.0, q) + shift)


def drawn(rng, p, correlation=0.0):
    """Return labels with these probabilities; those of a row depend on each other."""
    common, own = rng.normal(size=(len(p), 1)), rng.normal(size=p.shape)
    noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return (norm.cdf(noise) < p).astype(int)


def values_of(table, quantity, column="expected"):
    return table.loc[table["quantity"] == quantity, column].to_numpy()


def test_certain_probabilities_give_the_true_quality():
    rng = np.random.default_rng(0)
    y = (rng.random((60, 4)) < 0.4).astype(int)
    d = (rng.random((60, 4)) < 0.5).astype(int)
    known = held_out_quality(y, y, d)
    table = expected_quality(y, d, known)
    labels = per_label(y, decisions=d)
    assert values_of(table, "micro_f1") == pytest.approx([micro_f1(y, d)], abs=1e-12)
    assert values_of(table, "macro_f1") == pytest.approx([macro_f1(y, d)], abs=1e-12)
    for quantity in QUANTITIES:
        np.testing.assert_allclose(values_of(table, quantity), labels[quantity], rtol=0, atol=1e-12)
    np.testing.assert_allclose(table["low"], table["high"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(table["held_out"], table["expected"], rtol=0, atol=1e-12)


def test_expectations_and_variances_are_those_of_drawn_labels():
    rng = np.random.default_rng(1)
    p = probabilities(rng, 400)
    d = (p >= 0.4).astype(int)
    counts = ExpectedCounts.of(p, d)
    expected, variances = counts.values(), counts.variances({"micro_f1": 1.0, "macro_f1": 1.0})
    draws = [(rng.random(p.shape) < p).astype(int) for _ in range(800)]
    found = {
        "micro_f1": np.array([micro_f1(y, d) for y in draws]),
        "macro_f1": np.array([macro_f1(y, d) for y in draws]),
        **{name: np.array([per_label(y, decisions=d)[name] for y in draws[:200]]) for name in QUANTITIES},
    }
    for name, values in found.items():
        error = values.std(axis=0) / np.sqrt(len(values))
        # a ratio of expectations differs from the expectation of a ratio by less than a fifth of its deviation here
        assert (np.abs(values.mean(axis=0) - expected[name]) <= 4.5 * error + 0.2 * values.std(axis=0)).all(), name
        relative = values.std(axis=0) / np.sqrt(variances[name]) - 1
        assert (np.abs(relative) <= 4.5 / np.sqrt(2 * len(values)) + 0.05).all(), name


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "shift"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.7)])
def test_intervals_cover_the_truth_as_often_as_they_say(correlation, shift):
    """The labels of a row are independent, or not; the rows are of the same kind, or have more labels."""
    rng, repetitions = np.random.default_rng(2), 250
    covered = {"micro_f1": 0, "macro_f1": 0}
    labels, cells = 0, 0
    for _ in range(repetitions):
        p = [probabilities(rng, 300), probabilities(rng, 200, shift=shift)]
        y = [drawn(rng, each, correlation) for each in p]
        d = [(each >= 0.4).astype(int) for each in p]
        table = expected_quality(p[1], d[1], held_out_quality(y[0], p[0], d[0]))
        truth = {"micro_f1": micro_f1(y[1], d[1]), "macro_f1": macro_f1(y[1], d[1])}
        for name, value in truth.items():
            row = table[table["quantity"] == name].iloc[0]
            covered[name] += row["low"] <= value <= row["high"]
        rows, true = table[table["quantity"] == "recall"], per_label(y[1], decisions=d[1])["recall"].to_numpy()
        labels += (rows["low"].to_numpy() <= true).sum() - (rows["high"].to_numpy() < true).sum()
        cells += len(rows)
    # 95 % at least; what the normal approximation loses is below 2 %
    for name, count in covered.items():
        assert count >= binom.ppf(1e-4, repetitions, 0.93), (name, count)
        assert count <= binom.ppf(1 - 1e-4, repetitions, 0.98), (name, count)
    assert labels / cells >= 0.92


def test_the_estimate_follows_a_covariate_shift():
    rng = np.random.default_rng(3)
    p, new = probabilities(rng, 4000), probabilities(rng, 4000, shift=0.8)
    y, truth = drawn(rng, p), drawn(rng, new)
    table = expected_quality(new, new >= 0.4, held_out_quality(y, p, p >= 0.4)).set_index("quantity")
    for name, value in (("micro_f1", micro_f1(truth, new >= 0.4)), ("macro_f1", macro_f1(truth, new >= 0.4))):
        assert abs(table.loc[name, "held_out"] - value) > 0.05
        assert abs(table.loc[name, "expected"] - value) < 0.02


def test_an_error_of_calibration_that_stays_the_same_cancels():
    rng = np.random.default_rng(4)
    p, new = probabilities(rng, 5000), probabilities(rng, 5000)
    y, truth = drawn(rng, 0.8 * p), drawn(rng, 0.8 * new)  # fewer labels than the model believes
    known = held_out_quality(y, p, p >= 0.4)
    assert known.misses["micro_f1"] > 0.02
    table = expected_quality(new, new >= 0.4, known).set_index("quantity")
    assert table.loc["micro_f1", "expected"] == pytest.approx(micro_f1(truth, new >= 0.4), abs=0.015)


def test_unobserved_labels_and_repeated_splits_do_not_count():
    rng = np.random.default_rng(5)
    p = probabilities(rng, 200)
    y, d = drawn(rng, p).astype(float), (p >= 0.4).astype(int)
    hidden = rng.random(y.shape) < 0.3
    partial = np.where(hidden, np.nan, y)
    known = held_out_quality(partial, p, d)
    moved = held_out_quality(np.where(hidden, -1, y), np.where(hidden, 0.9, p), np.where(hidden, 1, d))
    assert known.hits.tolist() == moved.hits.tolist()
    np.testing.assert_allclose(known.expected.positives, moved.expected.positives, rtol=0, atol=1e-12)
    assert known.hits.tolist() == [(y * d)[~hidden[:, j], j].sum() for j in range(4)]
    once = held_out_quality(y, p, d)
    twice = held_out_quality(*(np.vstack([each, each]) for each in (y, p, d)))
    first, second = expected_quality(p, d, once), expected_quality(p, d, twice, repeats=2.0)
    np.testing.assert_allclose(first[["expected", "low", "high"]], second[["expected", "low", "high"]], atol=1e-12)


def test_labels_with_too_few_rows_have_no_estimate():
    rng = np.random.default_rng(6)
    p = probabilities(rng, 100)
    p[:, 0] = 0.01
    known = held_out_quality(drawn(rng, p), p, p >= 0.4)
    table = expected_quality(p, p >= 0.4, known)
    rows = table[table["label"] == 0]
    assert rows["expected"].isna().all()
    assert table[table["label"] != 0]["expected"].notna().all()


def test_plain_numbers_are_read_again():
    rng = np.random.default_rng(7)
    p = probabilities(rng, 50)
    known = held_out_quality(drawn(rng, p), p, p >= 0.4)
    again = HeldOutQuality.from_dict(known.to_dict())
    assert expected_quality(p, p >= 0.4, again).equals(expected_quality(p, p >= 0.4, known))


@pytest.mark.parametrize(("p", "d"), [([[1.5]], [[1]]), ([[0.5]], [[1, 0]]), (np.zeros((0, 1)), np.zeros((0, 1)))])
def test_what_has_no_quality_is_refused(p, d):
    known = held_out_quality([[1], [0]], [[0.5], [0.2]], [[1], [0]])
    with pytest.raises(StatisticsError):
        expected_quality(p, d, known)
    with pytest.raises(StatisticsError):
        expected_quality([[0.5, 0.5]], [[1, 0]], known)
