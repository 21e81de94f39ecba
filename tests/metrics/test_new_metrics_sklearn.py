"""Proper scores, average precision and metrics at k: scikit-learn where it has them, constants elsewhere."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as theirs
from sklearn.calibration import calibration_curve

from multilab import metrics as ours
from multilab.metrics import METRICS, MetricError, preset, score_all

NEW = ("log_loss", "brier_score", "expected_calibration_error", "macro_average_precision", "micro_average_precision")
AT_K = ("precision_at_k", "recall_at_k", "hits_at_k", "map_at_k", "ndcg_at_k")


def case(seed):
    rng = np.random.default_rng(seed)
    n, q = rng.integers(2, 60), rng.integers(2, 12)
    truth = (rng.random((n, q)) < rng.uniform(0.05, 0.9)).astype(int)
    scores = rng.random((n, q))
    if seed % 2:
        scores = np.round(scores * 4) / 4
    truth[rng.random(n) < 0.15] = 0
    truth[:, rng.random(q) < 0.2] = 0
    return truth, scores


def close(a, b):
    return a == pytest.approx(b, rel=1e-12, abs=1e-13, nan_ok=True)


@pytest.fixture(params=range(20))
def random_case(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UndefinedMetricWarning is what these data are made for
        yield case(request.param)


def test_proper_scores_are_the_means_over_labels(random_case):
    truth, scores = random_case
    of_labels = list(zip(truth.T, scores.T, strict=True))
    assert close(ours.log_loss(truth, scores), np.mean([theirs.log_loss(t, p, labels=[0, 1]) for t, p in of_labels]))
    single = np.float32(scores)
    expected = np.mean([theirs.log_loss(t, p, labels=[0, 1]) for t, p in zip(truth.T, single.T, strict=True)])
    assert ours.log_loss(truth, single) == pytest.approx(expected, rel=1e-5)
    assert close(ours.brier_score(truth, scores), np.mean([theirs.brier_score_loss(t, p) for t, p in of_labels]))


def test_metrics_of_decisions(random_case):
    truth, scores = random_case
    decisions = (scores >= 0.5).astype(int)
    none = {"zero_division": 0}
    assert close(ours.weighted_f1(truth, decisions), theirs.f1_score(truth, decisions, average="weighted", **none))
    for average in ("macro", "micro"):
        for beta in (0.5, 1, 2):
            expected = theirs.fbeta_score(truth, decisions, beta=beta, average=average, **none)
            assert close(getattr(ours, f"{average}_fbeta")(truth, decisions, beta=beta), expected)
    for beta in (0.5, 2):
        expected = theirs.fbeta_score(truth, decisions, beta=beta, average="samples", **none)
        assert close(ours.example_fbeta(truth, decisions, "sklearn", beta=beta), expected)
    of_labels = list(zip(truth.T, decisions.T, strict=True))
    assert close(ours.macro_mcc(truth, decisions), np.mean([theirs.matthews_corrcoef(t, d) for t, d in of_labels]))
    assert close(ours.micro_mcc(truth, decisions), theirs.matthews_corrcoef(truth.ravel(), decisions.ravel()))
    expected = np.mean([theirs.balanced_accuracy_score(t, d) for t, d in of_labels])
    assert close(ours.macro_balanced_accuracy(truth, decisions), expected)
    expected = np.mean([theirs.recall_score(t, d, pos_label=0, **none) for t, d in of_labels])
    assert close(ours.macro_specificity(truth, decisions), expected)


def test_one_true_or_predicted_value():
    ones, zeros = np.ones((3, 1), dtype=int), np.zeros((3, 1), dtype=int)
    assert (ours.macro_mcc(ones, ones), ours.micro_mcc(zeros, ones)) == (0, 0)
    assert ours.macro_mcc([[1], [0]], [[0], [1]]) == -1
    # only the recall of the value that is there
    assert ours.macro_balanced_accuracy(ones, [[1], [0], [0]]) == pytest.approx(1 / 3)
    assert ours.macro_balanced_accuracy(zeros, [[1], [0], [0]]) == pytest.approx(2 / 3)
    assert ours.macro_specificity(ones, zeros, preset("default", one_empty=1.0)) == 1
    assert ours.macro_specificity(ones, ones, preset("default", macro_both_empty=1.0)) == 1
    assert math.isnan(ours.macro_specificity(ones, ones, preset("default", macro_both_empty=math.nan)))
    # one label has no relevant row and no weight; without any, all labels count the same
    assert ours.weighted_f1([[1, 0], [0, 0]], [[1, 1], [0, 0]]) == 1
    assert ours.weighted_f1(zeros, zeros, "mulan") == 1
    assert ours.weighted_f1(zeros, ones) == 0


def test_a_label_that_all_weighted_rows_have_has_no_negatives():
    """Sums of these weights in two orders differ by rounding."""
    rng = np.random.default_rng(0)
    weights, decisions = rng.random(4000), rng.integers(0, 2, (4000, 1))
    ones = np.ones((4000, 1), dtype=int)
    expected = theirs.recall_score(ones, decisions, sample_weight=weights)
    assert close(ours.macro_balanced_accuracy(ones, decisions, sample_weight=weights), expected)
    assert ours.macro_mcc(ones, decisions, sample_weight=weights) == 0
    assert ours.macro_specificity(ones, decisions, preset("default", one_empty=1.0), sample_weight=weights) == 1
    draws = ours.bootstrap("macro_balanced_accuracy", ones, decisions, sample_weight=weights, n_draws=20)
    assert abs(draws.value - expected) < 5 * draws.standard_error < 0.2


def test_average_precision(random_case):
    truth, scores = random_case
    for average in ("macro", "micro"):
        expected = theirs.average_precision_score(truth, scores, average=average)
        assert close(getattr(ours, f"{average}_average_precision")(truth, scores, "sklearn"), expected)


def test_ndcg(random_case):
    truth, scores = random_case
    for k in (1, 2, 5, truth.shape[1]):
        assert close(ours.ndcg_at_k(truth, scores, k=k), theirs.ndcg_score(truth, scores, k=k))


@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_calibration_error_from_the_curve(random_case, n_bins):
    truth, scores = random_case

    def error(t, p):
        share, mean = calibration_curve(t, p, n_bins=n_bins)
        bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], p)
        sizes = np.bincount(bins, minlength=n_bins)
        return float(np.sum(np.abs(share - mean) * sizes[sizes > 0]) / len(p))

    got = ours.expected_calibration_error(truth, scores, n_bins=n_bins)
    if all(0 < t.mean() < 1 for t in truth.T):  # the curve refuses one class
        assert close(got, np.mean([error(t, p) for t, p in zip(truth.T, scores.T, strict=True)]))
    if 0 < truth.mean() < 1:
        micro = ours.expected_calibration_error(truth, scores, n_bins=n_bins, average="micro")
        assert close(micro, error(truth.ravel(), scores.ravel()))
        assert micro <= got + 1e-12


def test_hand_computed_values():
    truth, scores = [[1, 0, 0, 1], [0, 0, 1, 0]], [[0.9, 0.8, 0.3, 0.2], [0.5, 0.5, 0.5, 0.1]]
    # Row 0: the two highest are labels 0 (relevant) and 1. Row 1: three labels tied, two of them chosen, one relevant.
    assert close(ours.precision_at_k(truth, scores, k=1), (1 + 1 / 3) / 2)
    assert close(ours.precision_at_k(truth, scores, k=2), (1 / 2 + (2 / 3) / 2) / 2)
    assert close(ours.precision_at_k(truth, scores, k=9), (2 / 4 + 1 / 4) / 2)
    second = 1 / math.log2(3)
    assert close(ours.ndcg_at_k(truth, scores, k=2), (1 / (1 + second) + (1 + second) / 3) / 2)
    assert close(ours.log_loss([[1, 0]], [[0.25, 0.5]]), (math.log(4) + math.log(2)) / 2)
    assert close(ours.log_loss([[1, 0]], [[0.0, 0.0]]), -math.log(np.finfo(float).eps) / 2)
    assert ours.log_loss([[1, 0]], [[1, 0]]) < 1e-15
    assert close(ours.brier_score([[1, 0]], [[0.25, 0.5]]), (0.75**2 + 0.5**2) / 2)
    assert close(ours.expected_calibration_error([[1], [0], [1]], [[0.95], [0.95], [0.4]]), (0.9 + 0.6) / 3)
    assert math.isnan(ours.micro_average_precision([[0, 0]], [[0.1, 0.2]]))
    with pytest.raises(MetricError, match="the conventions refuse it"):
        ours.micro_average_precision([[0, 0]], [[0.1, 0.2]], preset("default", label_average_precision_empty="error"))


def in_random_orders(values):
    """Return the mean over all orders of the labels, of equal scores by that order, of a function of sorted labels."""

    def mean(truth, scores, k):
        orders = (sorted(order, key=lambda j: -scores[j]) for order in itertools.permutations(range(len(truth))))
        return np.mean([values([truth[j] for j in order], k) for order in orders])

    return mean


@in_random_orders
def hit(ranked, k):
    return any(ranked[:k])


@in_random_orders
def precision_cut_at_k(ranked, k):
    precisions = [sum(ranked[: r + 1]) / (r + 1) for r in range(min(k, len(ranked))) if ranked[r]]
    return sum(precisions) / min(k, sum(ranked)) if any(ranked) else 0


@pytest.mark.parametrize("seed", range(8))
def test_ties_of_hits_and_average_precision_at_k_are_a_random_choice(seed):
    rng = np.random.default_rng(seed)
    q = rng.integers(1, 7)
    truth, scores = rng.integers(0, 2, (4, q)), rng.integers(0, rng.integers(1, 5), (4, q)) / 4
    for k in range(1, q + 2):
        rows = list(zip(truth, scores, strict=True))
        assert close(ours.hits_at_k(truth, scores, k=k), np.mean([hit(t, s, k) for t, s in rows]))
        assert close(ours.map_at_k(truth, scores, k=k), np.mean([precision_cut_at_k(t, s, k) for t, s in rows]))
    untied = rng.permuted(np.tile(np.arange(q), (4, 1)), axis=1).astype(float)
    expected = theirs.label_ranking_average_precision_score(truth[truth.any(axis=1)], untied[truth.any(axis=1)])
    assert close(ours.map_at_k(truth[truth.any(axis=1)], untied[truth.any(axis=1)], k=q), expected)


def test_propensity_scored_metrics():
    truth = np.array([[1, 1, 0], [0, 1, 1]])
    scores = np.array([[0.9, 0.5, 0.1], [0.8, 0.7, 0.6]])
    p = np.array([0.5, 1.0, 0.25])
    # Top 1: label 0 of row 0 counts 1/0.5, row 1 misses; best: labels 0 and 2, 2 + 4.
    assert close(ours.precision_at_k(truth, scores, k=1, propensities=p), 2 / 6)
    # Top 2: 2 + 1 and 0 + 1; best: 2 + 1 and 4 + 1.
    assert close(ours.precision_at_k(truth, scores, k=2, propensities=p), 4 / 8)
    second = 1 / math.log2(3)
    best = (2 + second) + (4 + second)
    assert close(ours.ndcg_at_k(truth, scores, k=2, propensities=p), ((2 + second) + second) / best)
    same = np.full(3, 0.5)
    assert close(ours.precision_at_k(truth, scores, k=2, propensities=same), 3 / 4)
    assert ours.precision_at_k(np.zeros((2, 3)), scores, k=2, propensities=p) == 0
    # log 20 = 2.9957: c = 1.9957 * 2.5 ** 0.55 = 3.3035
    c = (math.log(20) - 1) * 2.5**0.55
    got = ours.label_propensities(np.repeat([[1, 0, 0], [1, 1, 0]], 10, axis=0))
    np.testing.assert_allclose(got, [1 / (1 + c * (n + 1.5) ** -0.55) for n in (20, 10, 0)], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.precision_at_k([[1, 0]], [[0.1, 0.2]], k=0), "`k` must be an integer >= 1, got 0"),
        (lambda: ours.map_at_k([[1, 0]], [[0.1, 0.2]], k=0), "`k`"),
        (lambda: ours.macro_fbeta([[1, 0]], [[1, 0]], beta=0), "`beta`"),
        (lambda: ours.ndcg_at_k([[1, 0]], [[0.1, 0.2]], k=1.5), "`k` must be an integer >= 1, got 1.5"),
        (lambda: ours.precision_at_k([[1, 0]], [[0.1, 0.2]], propensities=[1]), "one value per .observed. label, 2"),
        (lambda: ours.precision_at_k([[1, 0]], [[0.1, 0.2]], propensities=[1, 0]), r"must be in \(0, 1\]"),
        (lambda: ours.label_propensities([[1, 0]]), "at least 3 rows"),
        (lambda: ours.log_loss([[1, 0]], [[1.5, 0]]), r"probabilities must be in \[0, 1\]: row 0, label 0 is 1.5"),
        (lambda: ours.expected_calibration_error([[1]], [[0.5]], n_bins=0), "`n_bins` must be an integer >= 1"),
        (lambda: ours.expected_calibration_error([[1]], [[0.5]], average="rows"), "`average` must be"),
        (lambda: score_all([[1, 0]], [[-1, 2]], threshold=0, metrics=["brier_score"]), "probabilities must be"),
        (lambda: score_all([[1, 0]], [[0, 1]], metrics=["brier"]), "brier"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(MetricError, match=message):
        call()


def test_the_laboratory_computes_the_same_metrics_as_before():
    assert not {*NEW, *AT_K} & set(METRICS)
    truth, scores = case(3)
    chosen = score_all(truth, scores, metrics=["log_loss", "macro_f1", "ndcg_at_k"])
    assert list(chosen) == ["log_loss", "macro_f1", "ndcg_at_k", "n_skipped_macro_f1"]
    assert chosen["macro_f1"] == score_all(truth, scores)["macro_f1"]
    assert chosen["log_loss"] == ours.log_loss(truth, scores)


@given(
    truth=hnp.arrays(np.uint8, (6, 5), elements=st.integers(0, 1)),
    levels=hnp.arrays(np.int64, (6, 5), elements=st.integers(0, 4)),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_order_bounds_and_forms(truth, levels, seed):
    import scipy.sparse as sp

    scores, rng = levels / 4, np.random.default_rng(seed)
    rows, labels = rng.permutation(6), rng.permutation(5)
    for name in (*NEW, *AT_K):
        metric = ours.registry.ALL_METRICS[name]
        value = metric.function(truth, scores)
        assert math.isnan(value) or 0 <= value <= metric.high * (1 + 1e-12)
        assert close(metric.function(truth[rows][:, labels], scores[rows][:, labels]), value)
        assert metric.function(sp.csr_array(truth), sp.csr_array(scores)) == pytest.approx(value, nan_ok=True, abs=0)
    for k in range(1, 6):  # a random choice among ties, term by term
        expected = np.mean([expected_hits(t, s, k) / k for t, s in zip(truth, scores, strict=True)])
        assert close(ours.precision_at_k(truth, scores, k=k), expected)
    assert close(ours.precision_at_k(truth, scores, k=5), truth.mean())


def expected_hits(truth, scores, k):
    border = np.sort(scores)[-k]
    sure, tied = scores > border, scores == border
    return truth[sure].sum() + truth[tied].mean() * (k - sure.sum())


@pytest.mark.parametrize("cells", [1, 7, 40])
def test_the_block_size_does_not_show(cells, monkeypatch):
    from multilab.metrics import inputs

    truth, scores = case(5)
    expected = {name: ours.registry.ALL_METRICS[name].function(truth, scores) for name in (*NEW, *AT_K)}
    monkeypatch.setattr(inputs, "BLOCK_CELLS", cells)
    for name, value in expected.items():
        assert close(ours.registry.ALL_METRICS[name].function(truth, scores), value), name
