"""`sample_weight` and `labels` of metrics, tables and intervals, against scikit-learn, repeated rows, columns."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.multioutput import MultiOutputClassifier

from multilab import metrics
from multilab.metrics import ALL_METRICS, MetricError, bootstrap, get_scorer, per_label, score_all
from multilab.metrics.registry import defined, paper_metrics

RNG = np.random.default_rng(0)
N, Q = 40, 5
TRUTH = (RNG.random((N, Q)) < [0.2, 0.4, 0.5, 0.6, 0.3]).astype(int)
SCORES = np.round(RNG.random((N, Q)), 1)  # with ties
DECISIONS = (SCORES >= 0.5).astype(int)
WEIGHTS = np.round(RNG.random(N) * 3, 2)
WEIGHTS[:3] = 0
TIMES = RNG.integers(0, 4, N)
SKLEARN = {
    "macro_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="macro", **w),
    "micro_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="micro", **w),
    "example_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "macro_precision": lambda **w: sk.precision_score(TRUTH, DECISIONS, average="macro", zero_division=0, **w),
    "macro_recall": lambda **w: sk.recall_score(TRUTH, DECISIONS, average="macro", zero_division=0, **w),
    "example_precision": lambda **w: sk.precision_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "example_recall": lambda **w: sk.recall_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "jaccard": lambda **w: sk.jaccard_score(TRUTH, DECISIONS, average="samples", zero_division=0, **w),
    "hamming_loss": lambda **w: sk.hamming_loss(TRUTH, DECISIONS, **w),
    "subset_accuracy": lambda **w: sk.accuracy_score(TRUTH, DECISIONS, **w),
    "weighted_f1": lambda **w: sk.f1_score(TRUTH, DECISIONS, average="weighted", **w),
    "macro_fbeta": lambda **w: sk.fbeta_score(TRUTH, DECISIONS, beta=2, average="macro", **w),
    "micro_fbeta": lambda **w: sk.fbeta_score(TRUTH, DECISIONS, beta=2, average="micro", **w),
    "example_fbeta": lambda **w: sk.fbeta_score(TRUTH, DECISIONS, beta=2, average="samples", zero_division=0, **w),
    "macro_mcc": lambda **w: np.mean([sk.matthews_corrcoef(TRUTH[:, j], DECISIONS[:, j], **w) for j in range(Q)]),
    "macro_balanced_accuracy": lambda **w: np.mean(
        [sk.balanced_accuracy_score(TRUTH[:, j], DECISIONS[:, j], **w) for j in range(Q)]
    ),
    "macro_specificity": lambda **w: sk.recall_score(1 - TRUTH, 1 - DECISIONS, average="macro", **w),
    "macro_auc": lambda **w: sk.roc_auc_score(TRUTH, SCORES, average="macro", **w),
    "micro_auc": lambda **w: sk.roc_auc_score(TRUTH, SCORES, average="micro", **w),
    "macro_average_precision": lambda **w: sk.average_precision_score(TRUTH, SCORES, average="macro", **w),
    "micro_average_precision": lambda **w: sk.average_precision_score(TRUTH, SCORES, average="micro", **w),
    "average_precision": lambda **w: sk.label_ranking_average_precision_score(TRUTH, SCORES, **w),
    "coverage_1based": lambda **w: sk.coverage_error(TRUTH, SCORES, **w),
    "ranking_loss": lambda **w: sk.label_ranking_loss(TRUTH, SCORES, **w),
    "log_loss": lambda **w: np.mean([sk.log_loss(TRUTH[:, j], SCORES[:, j], **w) for j in range(Q)]),
    "brier_score": lambda **w: np.mean([sk.brier_score_loss(TRUTH[:, j], SCORES[:, j], **w) for j in range(Q)]),
}
OF_LABELS = (
    *("macro_f1", "micro_f1", "example_f1", "macro_precision", "macro_recall", "jaccard"),
    *("weighted_f1", "macro_fbeta", "micro_fbeta", "example_fbeta"),
)
SCALES = (1 / 7, 1e-170, 1e300)  # the square of the last two is 0 or infinite


def given(name):
    return DECISIONS if defined(name).needs == "decisions" else SCORES


def some_missing():
    hidden = np.where(np.random.default_rng(5).random(TRUTH.shape) < 0.2, np.nan, TRUTH)
    hidden[5] = np.nan
    return hidden


@pytest.mark.parametrize("name", SKLEARN)
def test_weights_are_those_of_scikit_learn(name):
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", sample_weight=WEIGHTS)
    assert value == pytest.approx(SKLEARN[name](sample_weight=WEIGHTS), abs=1e-12)


@pytest.mark.parametrize("name", OF_LABELS)
def test_labels_are_those_of_scikit_learn(name):
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", labels=[3, 0])
    assert value == pytest.approx(SKLEARN[name](labels=[3, 0]), abs=1e-12)
    value = getattr(metrics, name)(TRUTH, given(name), "sklearn", labels=[3, 0], sample_weight=WEIGHTS)
    assert value == pytest.approx(SKLEARN[name](labels=[3, 0], sample_weight=WEIGHTS), abs=1e-12)


@pytest.mark.parametrize("conventions", ["default", "mulan", "meka", "lamda"])
@pytest.mark.parametrize("name", sorted({**ALL_METRICS, **paper_metrics()}))
def test_a_weight_counts_a_row_as_often_as_it_says(name, conventions):
    function, rows = defined(name).function, np.repeat(np.arange(N), TIMES)
    for Y in (TRUTH, some_missing()):
        if name == "macro_average_precision" and conventions == "mulan":
            with pytest.raises(MetricError, match="takes no sample_weight"):
                function(Y, given(name), conventions, sample_weight=TIMES)
            continue
        expected = function(Y[rows], given(name)[rows], conventions)
        for scale in SCALES:
            value = function(Y, given(name), conventions, sample_weight=TIMES * scale)
            assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("expected_calibration_error", {"n_bins": 4, "average": "micro"}),
        ("precision_at_k", {"k": 2, "propensities": np.linspace(0.2, 1, Q)}),
        ("ndcg_at_k", {"k": 3, "propensities": np.linspace(0.2, 1, Q)}),
        ("recall_at_k", {"k": 1}),
        ("hits_at_k", {"k": 2}),
        ("map_at_k", {"k": 3}),
    ],
)
def test_weights_of_metrics_with_arguments(name, parameters):
    rows = np.repeat(np.arange(N), TIMES)
    for scores in (SCORES, sp.csr_array(np.where(SCORES > 0.4, SCORES, 0))):
        value = getattr(metrics, name)(TRUTH, scores, sample_weight=TIMES, **parameters)
        expected = getattr(metrics, name)(TRUTH[rows], scores[rows], **parameters)
        assert value == pytest.approx(expected, abs=1e-12)


def test_small_weights_keep_their_digits_next_to_large_ones():
    truth, scores = np.array([[1], [1], [0], [0]]), np.array([[0.9], [0.6], [0.7], [0.1]])
    weights = np.array([1e-9, 2e-9, 3e-9, 1e9])
    for average in ("macro", "micro"):
        # the last row is below all others
        precision = sk.average_precision_score(truth[:3], scores[:3], sample_weight=weights[:3])
        value = getattr(metrics, f"{average}_average_precision")(truth, scores, sample_weight=weights)
        assert value == pytest.approx(precision, rel=1e-14)
        wrong = 1 - getattr(metrics, f"{average}_auc")(1 - truth, -scores, sample_weight=weights)
        assert wrong == pytest.approx(2 / 3 * 3e-18, abs=1e-16)


def test_labels_sorted_in_blocks_have_the_same_weighted_values(monkeypatch):
    names = ("macro_auc", "macro_average_precision", "micro_auc", "micro_average_precision", "log_loss", "macro_f1")
    for Y in (TRUTH, some_missing()):
        at_once = {name: getattr(metrics, name)(Y, given(name), sample_weight=WEIGHTS) for name in names}
        with monkeypatch.context() as patch:
            patch.setattr("multilab.metrics.inputs.BLOCK_CELLS", 2 * N)
            for name in names:
                value = getattr(metrics, name)(Y, given(name), sample_weight=WEIGHTS)
                assert value == pytest.approx(at_once[name], abs=1e-14)


@pytest.mark.parametrize("n_near", [0, 3, 60])
@pytest.mark.parametrize("make", [np.float64, np.float32, lambda scores: -scores, lambda scores: scores - 0.5])
def test_weighted_scores_that_differ_in_the_last_bits_are_no_ties(make, n_near, monkeypatch):
    """Irrelevant cells just above, at and just below the scores of relevant ones, and zeros of both signs."""
    rng = np.random.default_rng(n_near)
    truth, scores, weights = (rng.random((60, 7)) < 0.4).astype(int), make(rng.random((60, 7))), rng.random(60) + 0.1
    positives, negatives = scores[truth == 1], np.flatnonzero(truth.ravel() == 0)
    near = rng.permutation(negatives)[:n_near]
    steps = rng.choice([-np.inf, np.inf, 0], n_near).astype(scores.dtype)
    scores.flat[near] = np.nextafter(positives[:n_near], np.where(steps == 0, positives[:n_near], steps))
    scores.flat[[*negatives[:2], np.flatnonzero(truth)[-1]]] = [0.0, -0.0, -0.0]
    of_all = [part.ravel() for part in np.broadcast_arrays(truth, scores, weights[:, None])]
    relevant, irrelevant = (np.stack(of_all[1:], axis=1).astype(float)[of_all[0] == value] for value in (1, 0))
    better = np.sign(relevant[:, :1] - irrelevant[:, 0]) / 2 + 0.5
    expected = np.average(better, weights=np.outer(relevant[:, 1], irrelevant[:, 1]))
    assert metrics.micro_auc(truth, scores, sample_weight=weights) == pytest.approx(expected, rel=1e-13)
    monkeypatch.setattr("multilab.metrics.inputs.BLOCK_CELLS", 40)
    assert metrics.micro_auc(truth, scores, sample_weight=weights) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", sorted(ALL_METRICS))
def test_labels_select_columns_by_position_or_name(name):
    function, chosen = getattr(metrics, name), [4, 1]
    expected = function(TRUTH[:, chosen], given(name)[:, chosen])
    mask = RNG.random(TRUTH.shape) < 0.8
    assert function(TRUTH, given(name), labels=chosen) == expected
    assert function(sp.csr_array(TRUTH), given(name), labels=np.array(chosen)) == expected
    frame = pd.DataFrame(TRUTH, columns=list("abcde"))
    assert function(frame, given(name), labels=["e", "b"]) == expected
    masked = function(TRUTH, given(name), labels=chosen, y_mask=mask)
    assert masked == function(TRUTH[:, chosen], given(name)[:, chosen], y_mask=mask[:, chosen])
    assert {"sample_weight", "labels", "y_mask"} < inspect.signature(function).parameters.keys()
    assert "labels : sequence of int or str" in function.__doc__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": np.ones(3)}, "must hold 40 finite numbers"),
        ({"sample_weight": -WEIGHTS}, "must hold 40 finite numbers"),
        ({"sample_weight": np.zeros(N)}, "nothing to measure"),
        ({"labels": [5]}, "5 is neither a position from 0 to 4"),
        ({"labels": [1, 1]}, "each once"),
        ({"labels": []}, "at least one label"),
        ({"labels": ["a"]}, "Y has no names: give positions"),
    ],
)
def test_wrong_weights_and_labels_are_refused(arguments, message):
    with pytest.raises(MetricError, match=message):
        metrics.macro_f1(TRUTH, DECISIONS, **arguments)
    with pytest.raises(MetricError, match=message):
        score_all(TRUTH, SCORES, **arguments)
    with pytest.raises(MetricError, match=message):
        per_label(TRUTH, SCORES, **arguments)
    with pytest.raises(MetricError, match=message):
        bootstrap("macro_f1", TRUTH, DECISIONS, **arguments)


@pytest.mark.parametrize("hide", [False, True])
def test_all_metrics_at_once_take_weights_and_labels(hide):
    Y, chosen, rows = some_missing() if hide else TRUTH, [3, 0, 4], np.repeat(np.arange(N), TIMES)
    arguments = {"metrics": list(ALL_METRICS)}
    values = score_all(Y, SCORES, sample_weight=TIMES, labels=chosen, **arguments)
    repeated = score_all(Y[rows][:, chosen], SCORES[rows][:, chosen], **arguments)
    single = score_all(Y[TIMES > 0][:, chosen], SCORES[TIMES > 0][:, chosen], **arguments)
    for name, value in values.items():  # a row that is left out counts once
        expected = single if name.startswith("n_skipped") else repeated
        assert value == pytest.approx(expected[name], abs=1e-12, nan_ok=True), name
    for name in ALL_METRICS:
        alone = getattr(metrics, name)(Y, given(name), sample_weight=TIMES, labels=chosen)
        assert values[name] == pytest.approx(alone, abs=1e-15, nan_ok=True), name
    frame = pd.DataFrame(Y, columns=list("abcde"))
    named = score_all(frame, SCORES, DECISIONS, sample_weight=TIMES, labels=["d", "a", "e"], **arguments)
    assert named == pytest.approx(values, abs=0, nan_ok=True)
    other = np.where(np.isin(np.arange(Q), chosen), SCORES, 7.0)  # no probabilities of labels that are not measured
    assert score_all(Y, other, labels=chosen) == score_all(Y[:, chosen], SCORES[:, chosen])


@pytest.mark.parametrize("hide", [False, True])
def test_the_table_of_labels_takes_weights_and_labels(hide):
    Y, rows = some_missing() if hide else TRUTH, np.repeat(np.arange(N), TIMES)
    Y = np.where(np.arange(Q) == 2, np.nan, Y) if hide else Y
    limits = np.linspace(0.3, 0.7, Q)
    repeated = per_label(Y[rows], SCORES[rows], threshold=limits)
    for scale in SCALES:
        table = per_label(Y, SCORES, threshold=limits, sample_weight=TIMES * scale)
        table[["observed", "count", "predicted"]] /= scale
        pd.testing.assert_frame_equal(table, repeated, check_dtype=False, rtol=1e-12)
    table = per_label(Y, SCORES, threshold=limits, sample_weight=TIMES, labels=[4, 2, 1])
    expected = repeated.loc[[4, 2, 1]].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, rtol=1e-12)
    frame = pd.DataFrame(Y, columns=list("abcde"))
    named = per_label(frame, decisions=DECISIONS, labels=["e", "b"])
    assert named["label"].tolist() == ["e", "b"]
    expected = per_label(frame, decisions=DECISIONS).loc[[4, 1]].reset_index(drop=True)
    pd.testing.assert_frame_equal(named, expected)


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("name", sorted(ALL_METRICS))
def test_weights_and_labels_of_draws_are_those_of_their_rows(name, hide):
    Y, chosen, kept = some_missing() if hide else TRUTH, [3, 0, 4], WEIGHTS > 0
    if hide:
        kept = kept & ~np.isnan(Y[:, chosen]).all(axis=1)
    arguments = {"n_draws": 20, "random_state": 3, "labels": chosen, "sample_weight": WEIGHTS}
    interval = bootstrap(name, Y, given(name), **arguments)
    y, p, w = Y[kept][:, chosen], given(name)[kept][:, chosen], WEIGHTS[kept]
    rng, function = np.random.default_rng(3), getattr(metrics, name)
    drawn = [rng.integers(0, len(y), len(y)) for _ in range(20)]
    values = [function(y[rows], p[rows], sample_weight=w[rows]) for rows in drawn]
    assert interval.value == pytest.approx(function(y, p, sample_weight=w), abs=1e-12)
    assert interval.low == pytest.approx(np.quantile(values, 0.025), abs=1e-12)
    assert interval.standard_error == pytest.approx(np.std(values, ddof=1), abs=1e-12)


def test_a_function_of_ones_own_gets_the_weights_of_the_rows_of_a_draw():
    arguments = {"n_draws": 30, "random_state": 0, "sample_weight": np.maximum(WEIGHTS, 0.1), "labels": [0, 2]}
    theirs = bootstrap(sk.f1_score, TRUTH, DECISIONS, average="macro", zero_division=0, **arguments)
    ours = bootstrap("macro_f1", TRUTH, DECISIONS, **arguments)
    assert (theirs.low, theirs.high) == pytest.approx((ours.low, ours.high), abs=1e-12)


def test_scorers_take_labels_and_weights_also_by_routing():
    X = RNG.normal(size=(N, 3))
    model = MultiOutputClassifier(LogisticRegression()).fit(X, TRUTH)
    decisions = model.predict(X)
    scorer = get_scorer("macro_f1", labels=[0, 2])
    assert scorer(model, X, TRUTH) == metrics.macro_f1(TRUTH[:, [0, 2]], decisions[:, [0, 2]])
    weighted = metrics.macro_f1(TRUTH, decisions, labels=[0, 2], sample_weight=WEIGHTS)
    assert scorer(model, X, TRUTH, sample_weight=WEIGHTS) == weighted
    with config_context(enable_metadata_routing=True):
        plain = MultiOutputClassifier(LogisticRegression().set_fit_request(sample_weight=False))
        asked = get_scorer("micro_f1").set_score_request(sample_weight=True)
        scores = cross_validate(plain, X, TRUTH, cv=2, scoring=asked, params={"sample_weight": WEIGHTS})["test_score"]
    first = MultiOutputClassifier(LogisticRegression()).fit(X[N // 2 :], TRUTH[N // 2 :]).predict(X[: N // 2])
    assert scores[0] == metrics.micro_f1(TRUTH[: N // 2], first, sample_weight=WEIGHTS[: N // 2])


def test_recall_at_k_is_the_share_of_relevant_labels_found():
    scores = RNG.permuted(np.tile(np.arange(Q), (N, 1)), axis=1).astype(float)
    for k in (1, 3, 9):
        top = np.argsort(-scores, axis=1)[:, :k]
        expected = [t[best].sum() / t.sum() if t.any() else 0.0 for t, best in zip(TRUTH, top, strict=True)]
        assert metrics.recall_at_k(TRUTH, scores, k=k) == pytest.approx(np.mean(expected))
    assert metrics.recall_at_k([[1, 0, 0]], [[0.5, 0.5, 0.1]], k=1) == 0.5  # a random choice of the two
    assert metrics.recall_at_k([[1, np.nan, 1]], [[0.2, 0.9, 0.4]], k=1) == 0.5
    with pytest.raises(MetricError, match="`k` must be an integer >= 1"):
        metrics.recall_at_k(TRUTH, scores, k=0)


CELLS = np.random.default_rng(6).integers(0, 4, TRUTH.shape) * np.array([1.0, 0.5, 2.0, 1.0, 0.3])
BY_LABEL = {
    "macro_f1": sk.f1_score,
    "macro_fbeta": lambda y, d, **w: sk.fbeta_score(y, d, beta=2, **w),
    "macro_precision": sk.precision_score,
    "macro_recall": sk.recall_score,
    "macro_specificity": lambda y, d, **w: sk.recall_score(1 - y, 1 - d, **w),
    "macro_balanced_accuracy": sk.balanced_accuracy_score,
    "macro_mcc": sk.matthews_corrcoef,
}
OF_ALL = {
    "hamming_loss": lambda y, d, **w: 1 - sk.accuracy_score(y, d, **w),
    "micro_f1": sk.f1_score,
    "micro_fbeta": lambda y, d, **w: sk.fbeta_score(y, d, beta=2, **w),
    "micro_mcc": sk.matthews_corrcoef,
    "log_loss": sk.log_loss,
    "brier_score": sk.brier_score_loss,
}


def test_weights_of_cells_are_those_of_scikit_learn_for_single_labels_and_for_the_list_of_cells():
    for name, function in BY_LABEL.items():
        values = [function(y, d, sample_weight=w) for y, d, w in zip(TRUTH.T, DECISIONS.T, CELLS.T, strict=True)]
        for scale in SCALES:
            value = getattr(metrics, name)(TRUTH, DECISIONS, sample_weight=CELLS * scale)
            assert value == pytest.approx(np.mean(values), abs=1e-12), name
    for name, function in OF_ALL.items():
        expected = function(TRUTH.ravel(), given(name).ravel(), sample_weight=CELLS.ravel())
        for weights in (CELLS, sp.csr_array(CELLS), CELLS.tolist()):
            value = getattr(metrics, name)(TRUTH, given(name), sample_weight=weights)
            assert value == pytest.approx(expected, abs=1e-12), name
    f1 = [sk.f1_score(y, d, sample_weight=w) for y, d, w in zip(TRUTH.T, DECISIONS.T, CELLS.T, strict=True)]
    expected = np.average(f1, weights=(CELLS * TRUTH).sum(axis=0))
    assert metrics.weighted_f1(TRUTH, DECISIONS, sample_weight=CELLS) == pytest.approx(expected, abs=1e-12)
    assert {*BY_LABEL, *OF_ALL, "weighted_f1"} == {name for name, metric in ALL_METRICS.items() if metric.cell_weights}


@pytest.mark.parametrize("name", [*BY_LABEL, *OF_ALL, "weighted_f1"])
def test_a_cell_without_weight_is_not_observed_and_a_row_of_equal_weights_is_weighted(name, monkeypatch):
    function, seen = getattr(metrics, name), CELLS > 0
    seen[7] = False
    for Y in (TRUTH, some_missing()):
        expected = function(Y, given(name), y_mask=seen)
        value = function(np.where(seen, Y, 1 - Y), given(name), sample_weight=seen.astype(int))
        assert value == pytest.approx(expected, abs=1e-12)
        by_row = function(Y, given(name), sample_weight=WEIGHTS)
        tiled = np.tile(WEIGHTS[:, None], (1, Q))
        assert function(Y, given(name), sample_weight=tiled) == pytest.approx(by_row, abs=1e-12)
        chosen = [3, 0]
        part = function(Y[:, chosen], given(name)[:, chosen], sample_weight=CELLS[:, chosen])
        assert function(Y, given(name), sample_weight=CELLS, labels=chosen) == pytest.approx(part, abs=1e-12)
        assert score_all(Y, SCORES, sample_weight=CELLS, metrics=[name])[name] == function(
            Y, given(name), sample_weight=CELLS
        )
        whole = function(Y, given(name), sample_weight=CELLS)
        with monkeypatch.context() as patch:
            patch.setattr("multilab.metrics.inputs.BLOCK_CELLS", 7)
            assert function(Y, given(name), sample_weight=CELLS) == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize("name", sorted({**ALL_METRICS, **paper_metrics()}))
def test_what_is_no_sum_over_cells_refuses_weights_of_cells(name):
    if not defined(name).cell_weights:
        with pytest.raises(MetricError, match=name):
            defined(name).function(TRUTH, given(name), sample_weight=CELLS)
        with pytest.raises(MetricError, match=name):
            score_all(TRUTH, SCORES, metrics=[name], sample_weight=CELLS)


def test_tables_intervals_and_functions_refuse_weights_of_cells():
    def agreement(Y, decisions, sample_weight=None):
        return 1.0

    with pytest.raises(MetricError, match="per_label"):
        per_label(TRUTH, SCORES, sample_weight=CELLS)
    with pytest.raises(MetricError, match="bootstrap"):
        bootstrap("macro_f1", TRUTH, DECISIONS, sample_weight=CELLS)
    with pytest.raises(MetricError, match="agreement"):
        score_all(TRUTH, SCORES, metrics=[agreement], sample_weight=CELLS)
    for wrong in (-CELLS, CELLS[:, :3], CELLS[:5], CELLS * np.nan, np.zeros_like(CELLS)):
        with pytest.raises(MetricError):
            metrics.micro_f1(TRUTH, DECISIONS, sample_weight=wrong)
