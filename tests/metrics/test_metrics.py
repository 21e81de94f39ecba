"""The contract of the metrics: keys, registry, conventions, legacy columns, refusals, cost."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.work import steps
from multilab import metrics
from multilab.core import MultilabError
from multilab.metrics import METRICS, PRESETS, Conventions, MetricError, preset, score_all

# At least these, in this order; a new metric needs no entry.
KEYS = [
    "hamming_loss", "subset_accuracy", "jaccard", "example_precision", "example_recall", "example_f1",
    "macro_f1", "micro_f1", "macro_auc", "micro_auc", "average_precision", "ranking_loss", "one_error",
    "coverage", "coverage_1based", "coverage_normalised",
]  # fmt: skip
SKIPPING = [
    "jaccard", "example_precision", "example_recall", "example_f1", "macro_f1", "macro_auc",
    "average_precision", "ranking_loss", "one_error", "coverage", "coverage_1based",
    "coverage_normalised",
]  # fmt: skip

TRUTH = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
SCORES = np.array([[0.9, 0.2, 0.1], [0.1, 0.5, 0.2], [0.6, 0.3, 0.4], [0.7, 0.8, 0.9]])


@pytest.mark.parametrize("conventions", PRESETS)
def test_keys(conventions):
    result = score_all(TRUTH, SCORES, conventions=conventions)
    skipping = [name for name, metric in METRICS.items() if metric.skips]
    assert list(result) == [*METRICS, *(f"n_skipped_{name}" for name in skipping)]
    assert [name for name in result if name in KEYS] == KEYS
    assert [name for name in skipping if name in KEYS] == SKIPPING


@pytest.mark.parametrize("conventions", PRESETS)
def test_single_functions_agree_with_score_all(conventions):
    rng = np.random.default_rng(2)
    truth, scores = rng.integers(0, 2, (30, 5)), rng.integers(0, 4, (30, 5)) / 4
    truth[0], truth[1] = 0, 1
    result = score_all(truth, scores, threshold=0.6, conventions=conventions)
    given = {"scores": scores, "probabilities": scores, "decisions": scores > 0.6}
    for name, metric in metrics.registry.ALL_METRICS.items():
        public = getattr(metrics, name)
        assert public.__name__ == name
        assert name in metrics.__all__
        if name not in METRICS:
            assert name not in result
            continue
        for function in (metric.function, public):
            np.testing.assert_equal(function(truth, given[metric.needs], conventions), result[name])


def test_worked_example():
    result = score_all(TRUTH, SCORES)
    # decisions 100 010 100 111: one false positive, one miss
    assert result["hamming_loss"] == 2 / 12
    assert result["subset_accuracy"] == 2 / 4
    assert result["jaccard"] == (1 + 0 + 1 / 2 + 1) / 4
    assert result["example_precision"] == (1 + 0 + 1 + 1) / 4
    assert result["example_recall"] == (1 + 0 + 1 / 2 + 1) / 4
    assert result["example_f1"] == pytest.approx((1 + 0 + 2 / 3 + 1) / 4, abs=1e-15)
    assert result["macro_f1"] == pytest.approx((1 + 2 / 4 + 1) / 3, abs=1e-15)
    assert result["micro_f1"] == 10 / 12
    assert result["macro_auc"] == pytest.approx((3 / 3 + 3 / 4 + 3 / 3) / 3, abs=1e-15)
    assert result["average_precision"] == pytest.approx((1 + (1 + 2 / 3) / 2 + 1) / 3, abs=1e-15)
    assert result["ranking_loss"] == (0 + 1 / 2) / 2
    assert result["one_error"] == 0
    assert result["coverage"] == (0 + 2 + 2) / 3
    assert result["n_skipped_ranking_loss"] == 2
    assert result["n_skipped_coverage"] == 1


def test_threshold_and_its_rule():
    assert score_all([[1, 0]], [[0.5, 0.4]])["subset_accuracy"] == 1
    assert score_all([[1, 0]], [[0.5, 0.4]], conventions="lamda")["subset_accuracy"] == 0
    assert score_all([[1, 0]], [[0.1, -0.4]], threshold=0)["subset_accuracy"] == 1
    # given decisions win over the threshold
    assert score_all([[1, 0]], [[0.9, 0.4]], [[0, 1]])["hamming_loss"] == 1


def test_registry():
    assert [name for name in METRICS if name in KEYS] == KEYS
    losses = {
        "hamming_loss",
        "ranking_loss",
        "one_error",
        "coverage",
        "coverage_1based",
        "coverage_normalised",
    }
    assert {name for name in KEYS if METRICS[name].direction == "min"} == losses
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
        assert metric.definition
        assert metric.source
        assert metric.low < metric.high
        if name in KEYS:
            assert metric.range == (0, math.inf if name in ("coverage", "coverage_1based") else 1)
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
    assert METRICS["hamming_loss"].better(0.1, 0.2)
    assert METRICS["jaccard"].better(0.2, 0.1)
    assert not METRICS["jaccard"].better(0.1, 0.1)
    assert [name for name in KEYS if METRICS[name].skips] == SKIPPING
    with pytest.raises(TypeError):
        METRICS["mine"] = METRICS["jaccard"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("default", [1, 1, 0, 0]),
        ("sklearn", [0, 0, 0, 0]),
        ("mulan", [1, 1, 1, 1]),
        ("meka", [1, 0, 0, 0]),
        ("lamda", [1, 1, 0, math.nan]),  # 0/0 of its micro F1
        ("matlab", [1, 1, 0, 0]),
    ],
)
def test_what_counts_where_nothing_is_true_and_nothing_predicted(rules, expected):
    nothing = np.zeros((1, 2), dtype=int)
    used = (metrics.jaccard, metrics.example_f1, metrics.macro_f1, metrics.micro_f1)
    np.testing.assert_array_equal([metric(nothing, nothing, rules) for metric in used], expected)


def test_conventions_switch_one_at_a_time():
    nothing = np.zeros((1, 2), dtype=int)
    assert metrics.jaccard(nothing, nothing, "mulan") == 1
    assert metrics.jaccard(nothing, nothing, preset("mulan", jaccard_both_empty=0)) == 0
    dropped = score_all(nothing, nothing, nothing, conventions=preset("default", example_both_empty=math.nan))
    assert math.isnan(dropped["example_f1"])
    assert dropped["n_skipped_example_f1"] == 1
    assert preset("default") == Conventions()
    assert preset("mulan", auc_one_class="skip") == dataclasses.replace(PRESETS["mulan"], auc_one_class="skip")
    degenerate = [[0, 0], [1, 0]]
    for rule, expected in (("skip", 0), ("zero", 0), ("one", 0.5)):
        rules = preset("default", ranking_loss_degenerate=rule)
        assert metrics.ranking_loss(degenerate, [[0.9, 0.1]] * 2, rules) == expected
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset("default").auc_ties = 1


def test_all_rows_skipped_is_nan():
    result = score_all([[0, 0], [1, 1]], [[0.1, 0.2], [0.3, 0.4]], conventions="matlab")
    for name in ("ranking_loss", "average_precision", "one_error"):
        assert math.isnan(result[name])
        assert result[f"n_skipped_{name}"] == 2


def refused(message, *args, **kwargs):
    with pytest.raises(MetricError) as caught:
        score_all(*args, **kwargs)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert isinstance(caught.value, MultilabError)
    assert isinstance(caught.value, ValueError)


def changed(array, row, label, value):
    array = np.array(array, dtype=float)
    array[row, label] = value
    return array


def test_refusals_say_what_and_where():
    refused("Y has shape (4, 3) but scores has shape (3, 4)", TRUTH, SCORES.T)
    refused("Y has shape (4, 3) but decisions has shape (2, 3)", TRUTH, SCORES, TRUTH[:2])
    refused("Y has shape (4, 3) but decisions has shape (2, 3)", TRUTH, None, TRUTH[:2])
    refused("Y must hold 0 and 1 only: row 2, label 1 is 3.0", changed(TRUTH, 2, 1, 3), SCORES)
    refused("row 2, label 1 is 2", sp.csr_array(changed(TRUTH, 2, 1, 2)), SCORES)
    refused("decisions must hold 0 and 1 only: row 0, label 1 is 0.2", TRUTH, SCORES, changed(TRUTH, 0, 1, 0.2))
    refused("decisions must hold 0 and 1", TRUTH, SCORES, sp.csc_array(changed(TRUTH, 0, 1, 0.2)))
    refused("scores must be finite: row 3, label 2 is nan", TRUTH, changed(SCORES, 3, 2, math.nan))
    refused("scores must be finite: row 0, label 0 is -inf", TRUTH, changed(SCORES, 0, 0, -math.inf))
    refused("row 0, label 0 is inf", TRUTH, sp.csr_array(changed(SCORES, 0, 0, math.inf)))
    refused("Y is empty: shape (0, 3)", TRUTH[:0], SCORES[:0])
    refused("Y is empty: shape (4, 0)", TRUTH[:, :0], SCORES[:, :0])
    refused("Y has 1 dimension(s), shape (4,)", TRUTH[:, 0], SCORES[:, 0])
    refused("scores has 3 dimension(s)", TRUTH, SCORES[None])
    refused("Y is not a rectangular array", [[1, 0], [1]], [[0.1, 0.2], [0.3]])
    refused("scores holds values of type <U1", [[1, 0]], [["a", "b"]])
    refused("scores holds values of type complex128", [[1, 0]], [[1j, 0]])
    refused("needs scores, decisions, or both", TRUTH, None)
    refused("threshold must be one finite number", TRUTH, SCORES, threshold=math.nan)
    refused("threshold must be one finite number", TRUTH, SCORES, threshold=[0.5, 0.5, 0.5])
    refused("conventions 'sklaern' are unknown; presets: default", TRUTH, SCORES, conventions="sklaern")
    refused("conventions must be a preset name or Conventions, not dict", TRUTH, SCORES, conventions={})


def test_conventions_refuse_what_they_do_not_allow():
    for field, value in (
        ("auc_ties", 0.3),
        ("coverage_ties", "min"),
        ("macro_both_empty", 2),
        ("decision", "<"),
    ):
        with pytest.raises(MetricError, match=f"Conventions: {field} is .*allowed:"):
            preset("default", **{field: value})
    with pytest.raises(MetricError, match="has no field 'ties'"):
        preset("default", ties="max")
    for name, field in (
        ("ranking_loss", "ranking_loss_degenerate"),
        ("average_precision", "average_precision_empty"),
        ("one_error", "one_error_empty"),
        ("coverage", "coverage_empty"),
        ("macro_average_precision", "label_average_precision_empty"),
    ):
        truth = TRUTH if field != "label_average_precision_empty" else TRUTH[:2]
        with pytest.raises(MetricError, match=r": (row|label) 1; the conventions refuse it"):
            getattr(metrics, name)(truth, SCORES[: len(truth)], preset("default", **{field: "error"}))


def test_arguments_are_left_alone():
    truth, scores, predicted = sp.csr_array(TRUTH), SCORES.copy(), sp.csc_array(TRUTH)
    truth.data[0] = 0  # a stored zero is no label
    kept = truth.copy(), scores.copy(), predicted.copy()
    result = score_all(truth, scores, predicted)
    assert result == score_all(truth.toarray(), scores, predicted.toarray())
    assert (truth.data == kept[0].data).all()
    assert truth.nnz == kept[0].nnz
    assert (scores == kept[1]).all()
    assert (predicted.toarray() == kept[2].toarray()).all()


def test_single_precision_scores_keep_their_ties():
    scores = np.float32([[0.1, 0.1, 0.3]])
    assert metrics.ranking_loss([[1, 0, 0]], scores) == 1
    assert metrics.ranking_loss([[1, 0, 0]], scores, "uniform") == 0.75


def test_rows_are_measured_all_at_once():
    rng = np.random.default_rng(0)

    def work(n_rows):
        truth, scores = rng.integers(0, 2, (n_rows, 6)), rng.random((n_rows, 6))
        return lambda: score_all(truth, scores)

    work(10)()
    assert steps(work(5000)) < 1.2 * steps(work(500)) < 24_000


def test_memory_is_that_of_a_few_blocks():
    # A child of its own, since the peak of a process never falls: 50 MB of scores, 16 MB per block.
    program = """
import numpy as np, scipy.sparse as sp
from multilab.metrics import score_all
rng = np.random.default_rng(0)
truth = sp.random_array((12500, 1000), density=0.005, rng=rng, format="csr", dtype=np.uint8,
                        data_sampler=lambda size: np.ones(size, dtype=np.uint8))
scores = rng.random((12500, 1000), dtype=np.float32)
score_all(truth[:50], scores[:50])
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
score_all(truth, scores)
print((peak() - before) / 1024)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("peak memory is read from /proc")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    # Scores as float64 would take 100 MB, their argsort another 100.
    assert float(run.stdout) < 80


def test_import_is_light():
    heavy = "{'sklearn', 'pandas', 'mlflow', 'scipy.stats'}"
    program = f"import sys, multilab.metrics; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_module_example():
    import doctest

    outcome = doctest.testmod(metrics)
    assert outcome.attempted == 3
    assert outcome.failed == 0


def test_documentation_of_presets_names_the_unstable_sort_of_meka():
    assert "Utils.sort" in preset.__doc__
    assert preset("meka").ranking_loss_ties == "higher_index"
