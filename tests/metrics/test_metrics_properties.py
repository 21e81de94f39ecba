"""What must hold of the metrics on any data: brute force, bounds, complements, invariances."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multilab import metrics
from multilab.metrics import METRICS, PRESETS, inputs, preset, score_all

TIES = ("max", "average", "higher_index", "lower_index")
TOPS = ("any", "all", "higher_index", "lower_index")


@st.composite
def predictions(draw):
    """Truth and scores of one shape; few distinct scores, so ties everywhere."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 7)))
    truth = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    levels = draw(st.sampled_from([2, 3, 50]))
    scores = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, levels)))
    return truth, scores / levels


anything = settings(max_examples=40, deadline=None, derandomize=True)


def ahead(a, b, i, j, ties):
    """How much the entry i with score a stands before the entry j with score b: 0, 1/2 or 1."""
    if a != b:
        return Fraction(bool(a > b))
    return {
        "max": Fraction(1),
        "average": Fraction(1, 2),
        "higher_index": Fraction(i > j),
        "lower_index": Fraction(i < j),
    }[ties]


def brute_rank(scores, j, among, ties):
    return 1 + sum(ahead(scores[i], scores[j], i, j, ties) for i in among if i != j)


def brute_list(truth, scores, ties):
    """Share of wrong pairs, worst rank, average precision of one list, pair by pair; None where undefined."""
    everything = range(len(truth))
    relevant = [j for j in everything if truth[j]]
    others = [j for j in everything if not truth[j]]
    wrong = [ahead(scores[i], scores[j], i, j, ties) for i, j in itertools.product(others, relevant)]
    ranks = [brute_rank(scores, j, everything, ties) for j in relevant]
    precise = [brute_rank(scores, j, relevant, ties) / rank for j, rank in zip(relevant, ranks, strict=True)]
    return (
        sum(wrong) / len(wrong) if wrong else None,
        max(ranks, default=None),
        sum(precise) / len(precise) if precise else None,
    )


def mean_of_defined(values):
    kept = [value for value in values if value is not None]
    return float(sum(kept) / len(kept)) if kept else math.nan


def same(a, b):
    return a == pytest.approx(b, abs=1e-14, nan_ok=True)


@pytest.mark.parametrize("ties", TIES)
@given(prediction=predictions())
@anything
def test_brute_force_of_rows(ties, prediction):
    truth, scores = prediction
    rows = [brute_list(t, s, ties) for t, s in zip(truth, scores, strict=True)]
    rules = preset("default", ranking_loss_ties=ties, average_precision_ties=ties, coverage_ties=ties)
    assert same(metrics.ranking_loss(truth, scores, rules), mean_of_defined([row[0] for row in rows]))
    worst = mean_of_defined([row[1] for row in rows])
    assert same(metrics.coverage_1based(truth, scores, rules), worst)
    assert same(metrics.coverage(truth, scores, rules), worst - 1)
    assert same(metrics.average_precision(truth, scores, rules), mean_of_defined([row[2] for row in rows]))


@pytest.mark.parametrize("ties", TIES)
@given(prediction=predictions())
@anything
def test_brute_force_of_labels(ties, prediction):
    truth, scores = prediction
    labels = [brute_list(t, s, ties) for t, s in zip(truth.T, scores.T, strict=True)]
    rules = preset("default", label_average_precision_ties=ties)
    precise = mean_of_defined([label[2] for label in labels])
    assert same(metrics.macro_average_precision(truth, scores, rules), precise)
    if ties in ("max", "average"):
        rules = preset("default", auc_ties={"max": 0.0, "average": 0.5}[ties])
        expected = 1 - mean_of_defined([label[0] for label in labels])
        assert same(metrics.macro_auc(truth, scores, rules), expected)
        cells = brute_list(truth.ravel(), scores.ravel(), ties)[0]
        assert same(metrics.micro_auc(truth, scores, rules), 1 - mean_of_defined([cells]))


@pytest.mark.parametrize("ties", TOPS)
@given(prediction=predictions())
@anything
def test_brute_force_of_one_error(ties, prediction):
    truth, scores = prediction
    wrong = []
    for t, s in zip(truth, scores, strict=True):
        top = [bool(t[j]) for j in range(len(t)) if s[j] == max(s)]
        right = {"any": any(top), "all": all(top), "higher_index": top[-1], "lower_index": top[0]}[ties]
        wrong.append(Fraction(not right) if any(t) else None)
    rules = preset("default", one_error_ties=ties)
    assert same(metrics.one_error(truth, scores, rules), mean_of_defined(wrong))


@pytest.mark.parametrize("conventions", PRESETS)
@given(prediction=predictions())
@anything
def test_bounds_and_identities(conventions, prediction):
    truth, scores = prediction
    n_labels = truth.shape[1]
    rules = PRESETS[conventions]
    got = score_all(truth, scores, conventions=conventions)
    for name, metric in METRICS.items():
        low = -1 if rules.coverage_empty == "minus_one" and "coverage" in name else 0
        high = min(metric.high, n_labels)
        assert math.isnan(got[name]) or low <= got[name] <= high, name
    if rules.jaccard_both_empty == rules.example_both_empty:
        assert got["jaccard"] <= got["example_f1"] + 1e-15
    if rules.jaccard_both_empty == 1:
        assert got["subset_accuracy"] <= got["jaccard"] + 1e-15
    if rules.coverage_empty != "zero" or truth.any(axis=1).all():
        steps = got["coverage_1based"] - 1
        assert same(got["coverage_normalised"], steps / n_labels)
        shown = steps + rules.coverage_offset
        assert same(got["coverage"], shown / n_labels if rules.coverage_normalised else shown)


@given(prediction=predictions())
@anything
def test_ranking_loss_and_its_mirror_leave_only_the_ties(prediction):
    truth, scores = prediction
    for ties, mirrored, ties_counted in (
        ("max", "max", 1),
        ("average", "average", 0),
        ("max", "average", 0.5),
    ):
        forth = metrics.ranking_loss(truth, scores, preset("default", ranking_loss_ties=ties))
        back = metrics.ranking_loss(truth, -scores, preset("default", ranking_loss_ties=mirrored))
        full = metrics.ranking_loss(truth, scores, preset("default", ranking_loss_ties="max"))
        half = metrics.ranking_loss(truth, scores, preset("default", ranking_loss_ties="average"))
        tied = 2 * (full - half)
        assert same(forth + back, 1 + ties_counted * tied)
    by_index = [
        metrics.ranking_loss(truth, values, preset("default", ranking_loss_ties=ties))
        for values, ties in ((scores, "higher_index"), (-scores, "lower_index"))
    ]
    assert same(sum(by_index), 1 if not math.isnan(by_index[0]) else math.nan)


OF_COLUMNS = {name for name, metric in METRICS.items() if metric.function.__module__ == "multilab.metrics.auc"}
RANKING = [name for name, metric in METRICS.items() if metric.needs == "scores"]


@pytest.mark.parametrize("conventions", PRESETS)
@given(prediction=predictions())
@anything
def test_increasing_transforms_change_nothing(conventions, prediction):
    truth, scores = prediction
    before = score_all(truth, scores, conventions=conventions)
    steps = np.arange(1.0, len(scores) + 1)[:, None]
    per_row = score_all(truth, np.exp(scores * steps) - 7 * steps, threshold=0.5, conventions=conventions)
    for name in set(RANKING) - OF_COLUMNS:  # these compare rows with each other
        assert same(before[name], per_row[name]), name
    everywhere = score_all(truth, scores**3 + 2, threshold=0.5, conventions=conventions)
    assert all(same(before[name], everywhere[name]) for name in RANKING)


@pytest.mark.parametrize("conventions", PRESETS)
@given(prediction=predictions(), seed=st.integers(0, 99))
@anything
def test_the_order_of_rows_does_not_show(conventions, prediction, seed):
    truth, scores = prediction
    rows = np.random.default_rng(seed).permutation(len(truth))
    np.testing.assert_equal(
        score_all(truth[rows], scores[rows], conventions=conventions),
        score_all(truth, scores, conventions=conventions),
    )


@pytest.mark.parametrize("conventions", ["default", preset("default", ranking_loss_ties="average")])
@given(prediction=predictions(), seed=st.integers(0, 99))
@anything
def test_the_order_of_labels_does_not_show_without_index_rules(conventions, prediction, seed):
    truth, scores = prediction
    labels = np.random.default_rng(seed).permutation(truth.shape[1])
    np.testing.assert_equal(
        score_all(truth[:, labels], scores[:, labels], conventions=conventions),
        score_all(truth, scores, conventions=conventions),
    )


def test_the_order_of_labels_shows_with_index_rules():
    loss = [metrics.ranking_loss(np.eye(3)[[label]], [[0.5, 0.5, 0.5]], "mulan") for label in range(3)]
    assert loss == [1, 0.5, 0]


@pytest.mark.parametrize("conventions", PRESETS)
def test_reversing_the_labels_swaps_the_index_rules(conventions):
    swap = {"higher_index": "lower_index", "lower_index": "higher_index"}
    rules = PRESETS[conventions]
    fields = ("ranking_loss_ties", "average_precision_ties", "coverage_ties", "one_error_ties")
    swapped = preset(conventions, **{field: swap.get(getattr(rules, field), getattr(rules, field)) for field in fields})
    rng = np.random.default_rng(5)
    truth, scores = rng.integers(0, 2, (40, 6)), rng.integers(0, 3, (40, 6)) / 2
    before = score_all(truth, scores, conventions=rules)
    after = score_all(truth[:, ::-1], scores[:, ::-1], conventions=swapped)
    assert all(same(before[name], after[name]) for name in before)


FORMS = {
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "bool": lambda m: np.asarray(m, dtype=bool),
    "float": lambda m: np.asarray(m, dtype=float),
    "fortran": np.asfortranarray,
    "list": np.ndarray.tolist,
}


@pytest.mark.parametrize("form", FORMS)
@given(prediction=predictions())
@settings(anything, max_examples=15)
def test_every_form_of_a_matrix_measures_alike(form, prediction):
    truth, scores = prediction
    predicted = (scores > 0.4).astype(np.uint8)
    convert = FORMS[form]
    expected = score_all(truth, scores, predicted)
    np.testing.assert_equal(score_all(convert(truth), scores, convert(predicted)), expected)
    if form in ("csr", "csc", "coo", "fortran", "list"):
        np.testing.assert_equal(score_all(truth, convert(scores), predicted), expected)
    crisp = score_all(truth, predicted.astype(float), predicted)
    np.testing.assert_equal(score_all(convert(truth), None, convert(predicted)), crisp)


@pytest.mark.parametrize("conventions", PRESETS)
@pytest.mark.parametrize("cells", [1, 7, 40, 1000])
def test_the_block_size_does_not_show(conventions, cells, monkeypatch):
    rng = np.random.default_rng(3)
    truth, scores = (rng.random((53, 9)) < 0.3), np.round(rng.random((53, 9)), 1)
    expected = score_all(truth, scores, conventions=conventions)
    label_wise = metrics.macro_average_precision(truth, scores, conventions)
    monkeypatch.setattr(inputs, "BLOCK_CELLS", cells)
    np.testing.assert_equal(score_all(truth, scores, conventions=conventions), expected)
    np.testing.assert_equal(metrics.macro_average_precision(truth, scores, conventions), label_wise)


def test_perfect_and_reversed_scores():
    rng = np.random.default_rng(1)
    truth = (rng.random((30, 8)) < 0.4).astype(int)
    truth[:, 0], truth[:, 1] = 0, 1
    truth[0], truth[1] = 0, 1
    best = score_all(truth, truth + rng.random(truth.shape) / 2, truth)
    worst = score_all(truth, rng.random(truth.shape) / 2 - truth, 1 - truth)
    for name in ("average_precision", "macro_auc", "micro_auc", "example_f1", "jaccard"):
        assert best[name] == 1, name
    for name in ("hamming_loss", "ranking_loss"):
        assert (best[name], worst[name]) == (0, 1), name
    n_rated = len(truth) - best["n_skipped_one_error"]
    assert best["one_error"] == 0
    assert worst["one_error"] == (n_rated - 1) / n_rated  # the full row cannot be wrong
    for name in ("macro_auc", "micro_auc", "micro_f1", "subset_accuracy"):
        assert worst[name] == 0, name
    kept = truth[1:].sum(axis=1)
    assert best["coverage"] == pytest.approx((kept - 1).mean(), abs=1e-14)
