"""Tables per label, confusion counts and bootstrap intervals."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.metrics import multilabel_confusion_matrix

from multilab import metrics
from multilab.metrics import MetricError, bootstrap, bootstrap_difference, confusion_counts, macro_f1, per_label
from multilab.metrics.bootstrap_intervals import label_f1_intervals
from multilab.metrics.registry import ALL_METRICS


def case(seed, n=40, q=6):
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, q)) < rng.uniform(0.1, 0.6, q)).astype(int)
    scores = np.clip(np.round(rng.random((n, q)) + 0.3 * truth, 1), 0, 1)
    truth[:, 0] = 0
    return truth, scores


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_columns_of_the_table_average_to_the_macro_metrics(seed, hide):
    truth, scores = case(seed)
    Y = np.where(np.random.default_rng(9).random(truth.shape) < 0.3, math.nan, truth) if hide else truth
    decisions = scores >= 0.5
    table = per_label(Y, scores)
    np.testing.assert_allclose(table["count"] / table["observed"], table["prevalence"])
    expected = {
        "precision": metrics.macro_precision(Y, decisions),
        "recall": metrics.macro_recall(Y, decisions),
        "f1": metrics.macro_f1(Y, decisions),
        "average_precision": metrics.macro_average_precision(Y, scores),
        "auc": metrics.macro_auc(Y, scores),
        "calibration_error": metrics.expected_calibration_error(Y, scores),
    }
    for column, value in expected.items():
        assert table[column].mean() == pytest.approx(value, abs=1e-13), column
    for column in ("log_loss", "brier_score"):
        mean = np.average(table[column], weights=table["observed"])
        assert mean == pytest.approx(ALL_METRICS[column].function(Y, scores), abs=1e-13)
    assert math.isnan(table["auc"][0])
    same = per_label(sp.csr_array(np.nan_to_num(Y)), sp.csr_array(scores), y_mask=~np.isnan(Y))
    pd.testing.assert_frame_equal(same, table)


def test_names_thresholds_and_what_was_not_given():
    truth, scores = case(0, q=3)
    frame = pd.DataFrame(truth, columns=["rain", "wind", "snow"])
    limits = [0.2, 0.5, 0.9]
    table = per_label(frame, scores, threshold=limits)
    assert table["label"].tolist() == list(frame)
    assert table["threshold"].tolist() == limits
    assert table["predicted"].tolist() == (scores >= limits).sum(axis=0).tolist()
    margins = per_label(truth, 4 * scores - 2, threshold=0)
    assert margins[["log_loss", "brier_score", "calibration_error"]].isna().all(axis=None)
    np.testing.assert_array_equal(margins["auc"], table["auc"])
    decided = per_label(truth, decisions=scores >= limits)
    for column in ("precision", "recall", "f1", "predicted"):
        np.testing.assert_array_equal(decided[column], table[column])
    assert decided[["threshold", "auc", "average_precision"]].isna().all(axis=None)
    assert list(decided) == list(table) == list(margins)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs scores, decisions, or both"),
        ({"scores": [[2.0, 0.1]]}, "threshold=0"),
        ({"scores": [[0.2, 0.1]], "threshold": [0.1]}, "one per label"),
        ({"scores": [[0.2, 0.1]], "label_names": ["a"]}, "label_names has 1 names but Y has 2 labels"),
        ({"decisions": [[0.2, 0.1]]}, "decisions must hold 0 and 1"),
    ],
)
def test_refusals_of_the_table(arguments, message):
    with pytest.raises(MetricError, match=message):
        per_label([[1, 0]], **arguments)


def test_confusion_counts_are_those_of_sklearn():
    truth, scores = case(1)
    decisions = scores >= 0.5
    for by, samplewise in (("label", False), ("row", True)):
        expected = multilabel_confusion_matrix(truth, decisions, samplewise=samplewise)
        counts = confusion_counts(sp.csr_array(truth), sp.csr_array(decisions), by)
        got = counts[["tn", "fp", "fn", "tp"]].to_numpy()
        np.testing.assert_array_equal(got, expected.reshape(-1, 4))
        np.testing.assert_array_equal(confusion_counts(truth, decisions, "all").iloc[0], counts.sum())
    with pytest.raises(MetricError, match="`by` must be"):
        confusion_counts(truth, decisions, "cell")


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("name", ALL_METRICS)
def test_draws_are_those_of_resampled_rows(name, hide):
    truth, scores = case(2, n=25)
    if hide:
        truth = np.where(np.random.default_rng(1).random(truth.shape) < 0.5, math.nan, truth)
        truth[:, 1] = np.where(np.arange(25) == 3, 1.0, math.nan)  # in some draws not observed
        truth[7] = math.nan
    given = scores >= 0.5 if ALL_METRICS[name].needs == "decisions" else scores
    interval = bootstrap(name, truth, given, n_draws=12, level=0.8, random_state=5)
    rows = np.flatnonzero(~np.isnan(truth.astype(float)).all(axis=1))
    rng = np.random.default_rng(5)
    draws = [rows[rng.integers(0, rows.size, rows.size)] for _ in range(12)]
    values = [ALL_METRICS[name].function(truth[drawn], given[drawn]) for drawn in draws]
    assert interval.n_undefined == 0
    assert interval.value == pytest.approx(ALL_METRICS[name].function(truth, given), abs=1e-13)
    np.testing.assert_allclose([interval.low, interval.high], np.quantile(values, [0.1, 0.9]), atol=1e-12)
    assert interval.standard_error == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    assert (interval.level, interval.method, interval.n_draws) == (0.8, "percentile", 12)


@pytest.mark.parametrize("name", ["macro_auc", "macro_average_precision"])
@pytest.mark.parametrize("conventions", ["default", "mulan", "sklearn"])
def test_draws_without_a_second_sort_are_those_with_one(name, conventions, monkeypatch):
    truth, scores = case(4, n=30)
    truth = np.where(np.random.default_rng(3).random(truth.shape) < 0.2, math.nan, truth)
    rules = metrics.preset(conventions, auc_one_class="skip")
    quick = bootstrap(name, truth, scores, rules, n_draws=20, random_state=0)
    monkeypatch.setattr("multilab.metrics.label_ranks._BLOCKS", 0)
    slow = bootstrap(name, truth, scores, rules, n_draws=20, random_state=0)
    np.testing.assert_allclose([slow.low, slow.high], [quick.low, quick.high], rtol=1e-13)


def test_functions_of_ones_own():
    from sklearn.metrics import hamming_loss

    truth, scores = case(5)
    named = bootstrap("hamming_loss", truth, scores >= 0.5, n_draws=15, random_state=3)
    assert bootstrap(hamming_loss, truth, scores >= 0.5, n_draws=15, random_state=3).low == pytest.approx(named.low)
    with pytest.raises(MetricError, match="Y has 40 rows but the second argument has 39"):
        bootstrap(hamming_loss, truth, scores[1:] >= 0.5)
    with pytest.raises(MetricError, match="y_mask is for metrics by name"):
        bootstrap(hamming_loss, truth, truth, y_mask=truth)


def test_seeds_parameters_and_undefined_draws():
    truth, scores = case(3)
    one = bootstrap("precision_at_k", truth, scores, k=1, n_draws=20, random_state=1)
    assert one == bootstrap("precision_at_k", truth, scores, k=1, n_draws=20, random_state=np.random.default_rng(1))
    assert one != bootstrap("precision_at_k", truth, scores, k=1, n_draws=20, random_state=2)
    rare = np.zeros((5, 1), dtype=int)
    rare[0] = 1
    interval = bootstrap("macro_auc", rare, np.arange(5)[:, None] / 5, n_draws=50, random_state=0)
    assert 0 < interval.n_undefined < 50
    for arguments, message in (
        ({"level": 1}, "`level` must be"),
        ({"n_draws": 1}, "`n_draws` must be"),
        ({"k": 0}, "`k` must be"),
    ):
        with pytest.raises(MetricError, match=message):
            bootstrap("precision_at_k", truth, scores, **arguments)
    with pytest.raises(MetricError, match="nan in 3 of 3 draws"):
        bootstrap("macro_auc", [[0], [0]], [[0.1], [0.2]], n_draws=3)


def test_the_standard_error_is_that_of_a_mean():
    # Brier score of independent rows: a mean of n values. The standard deviation of B draws estimates its error with
    # a relative standard error of about 1 / sqrt(2 B) = 0.016; 5 of them are allowed.
    rng = np.random.default_rng(0)
    truth, scores = (rng.random((400, 3)) < 0.3).astype(int), rng.random((400, 3))
    of_rows = ((truth - scores) ** 2).mean(axis=1)
    interval = bootstrap("brier_score", truth, scores, n_draws=2000, random_state=0)
    error = of_rows.std() / math.sqrt(400)
    assert interval.standard_error == pytest.approx(error, rel=5 / math.sqrt(2 * 2000))
    # A normal quantile from B draws has a standard error of about 2.7 / sqrt(B) standard errors at 2.5 %.
    for border, sign in ((interval.low, -1), (interval.high, 1)):
        assert border == pytest.approx(of_rows.mean() + sign * 1.96 * error, abs=5 * 2.7 / math.sqrt(2000) * error)


@pytest.mark.slow
def test_sparse_arguments_are_not_made_dense():
    # A separate process, since the peak of a process never falls: 50 million cells, 400 MB as float64, 16 MB a block.
    program = """
import numpy as np, scipy.sparse as sp
from multilab import metrics
rng = np.random.default_rng(0)
ones = lambda size: np.ones(size, dtype=np.uint8)
draw = lambda share, sampler: sp.random_array((50000, 1000), density=share, rng=rng, format="csr", data_sampler=sampler)
truth, mask, scores = draw(0.005, ones), draw(0.02, ones), draw(0.02, rng.random)
names = ["log_loss", "brier_score", "expected_calibration_error", "precision_at_k", "ndcg_at_k",
         "macro_average_precision", "micro_average_precision"]
def run(rows):
    Y, P, M = truth[:rows], scores[:rows], mask[:rows]
    metrics.score_all(Y, P, metrics=names)
    metrics.score_all(Y, P, metrics=["macro_f1", "log_loss", "macro_auc"], y_mask=M)
    metrics.per_label(Y, P)
run(50)
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
run(50000)
print((peak() - before) / 1024)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 200  # MB


def test_a_difference_is_that_of_the_same_draws():
    rng = np.random.default_rng(0)
    truth = (rng.random((40, 3)) < 0.4).astype(int)
    first, second = ((truth ^ (rng.random(truth.shape) < share)) for share in (0.1, 0.3))
    found = bootstrap_difference("macro_f1", truth, first, second, n_draws=25, level=0.8, random_state=7)
    seed = int(np.random.default_rng(7).integers(2**63))
    lines = np.random.default_rng(seed).integers(0, 40, (25, 40))
    draws = [macro_f1(truth[rows], first[rows]) - macro_f1(truth[rows], second[rows]) for rows in lines]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.1, 0.9])), abs=1e-12)
    assert found.value == pytest.approx(macro_f1(truth, first) - macro_f1(truth, second), abs=1e-12)
    rarer = min(sum(draw <= 0 for draw in draws), sum(draw >= 0 for draw in draws))
    assert found.p == pytest.approx(2 * (rarer + 1) / 26)
    turned = bootstrap_difference("macro_f1", truth, second, first, n_draws=25, level=0.8, random_state=7)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low), abs=1e-12)
    assert bootstrap_difference("macro_f1", truth, first, first, n_draws=10, random_state=0).p == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["macro_f1", "ranking_loss"])
def test_equal_models_differ_as_rarely_as_the_level_says(name):
    rng = np.random.default_rng(1)
    rejected = 0
    for number in range(150):
        truth = (rng.random((100, 3)) < 0.4).astype(int)
        both = [truth + rng.normal(scale=0.8, size=truth.shape) for _ in range(2)]
        given = both if name == "ranking_loss" else [scores >= 0.5 for scores in both]
        found = bootstrap_difference(name, truth, *given, n_draws=199, random_state=number)
        rejected += found.p <= 0.05
    assert rejected <= binom.ppf(1 - 1e-4, 150, 0.05)


def test_intervals_of_labels_are_those_of_each_label_alone():
    rng = np.random.default_rng(3)
    Y = (rng.random((60, 5)) < [0.5, 0.3, 0.1, 0.02, 0]).astype(int)
    decisions = np.where(rng.random(Y.shape) < 0.7, Y, 1 - Y)
    found = label_f1_intervals(Y, decisions, n_draws=200, random_state=4, level=0.9)
    for j, ends in enumerate(found):
        alone = bootstrap("macro_f1", Y, decisions, labels=[j], n_draws=200, random_state=4, level=0.9)
        assert ends.tolist() == pytest.approx([alone.low, alone.high], abs=1e-12)
    few = label_f1_intervals(Y, sp.csr_array(decisions), n_draws=200, random_state=4, level=0.9, labels=[3, 1])
    assert few.tolist() == found[[3, 1]].tolist()


def test_intervals_of_labels_are_over_observed_cells():
    rng = np.random.default_rng(5)
    Y = (rng.random((40, 3)) < 0.4).astype(float)
    decisions = (rng.random(Y.shape) < 0.5).astype(int)
    Y[1:, 1] = Y[:, 2] = np.nan
    Y[0, 1] = decisions[0, 1] = 1
    found = label_f1_intervals(Y, decisions, n_draws=100, random_state=0)
    whole = label_f1_intervals(Y[:, :1], decisions[:, :1], n_draws=100, random_state=0)
    assert found[0].tolist() == whole[0].tolist()
    assert found[1].tolist() == [1, 1]  # where its only cell is drawn, it is right
    assert np.isnan(found[2]).all()
    for wrong in ({"level": 1.0}, {"n_draws": 1}):
        with pytest.raises(MetricError):
            label_f1_intervals(Y, decisions, **wrong)
