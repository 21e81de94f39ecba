"""The exact maximisers agree with brute force, and follow the written rule for ties."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix

from multilab import metrics
from multilab.decision import (
    best_k,
    cost_thresholds,
    expected_cost_thresholds,
    expected_f1_decisions,
    global_threshold,
    macro_f1_thresholds,
    micro_f1_thresholds,
)
from multilab.decision.thresholds import LOWEST, OBJECTIVES, descending, label_ranks
from multilab.methods.base import MethodError

exact = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def problems(draw, rows=5, labels=3):
    """Draw labels, scores with many ties, and integer weights."""
    n, q = draw(st.integers(1, rows)), draw(st.integers(1, labels))
    Y = draw(arrays(np.int64, (n, q), elements=st.integers(0, 1)))
    scores = draw(arrays(np.int64, (n, q), elements=st.integers(-3, 3))) / 4
    return Y, scores, draw(arrays(np.int64, n, elements=st.integers(1, 3)))


def value(objective, Y, decisions, weights=None):
    """Return a metric of the package, larger is better; a row of weight w counts as w rows."""
    if weights is not None:
        Y, decisions = np.repeat(Y, weights, axis=0), np.repeat(decisions, weights, axis=0)
    sign = -1 if objective == "hamming_loss" else 1
    return sign * getattr(metrics, objective)(Y, decisions.astype(int))


def candidates(scores):
    """Return thresholds that give all different decisions of a vector of scores."""
    return [np.inf, *np.unique(scores)]


@exact
@given(problems())
def test_thresholds_per_label_are_the_best_of_all(problem):
    Y, scores, weights = problem
    every = [np.array(t) for t in product(*(candidates(column) for column in scores.T))]
    for objective, function in (
        ("macro_f1", macro_f1_thresholds),
        ("micro_f1", micro_f1_thresholds),
        ("hamming_loss", cost_thresholds),
    ):
        best = max(value(objective, Y, scores >= t, weights) for t in every)
        reached = value(objective, Y, scores >= function(Y, scores, sample_weight=weights), weights)
        assert reached == pytest.approx(best, abs=1e-12), objective


COST = st.integers(0, 4)


@exact
@given(problems(), COST, COST, COST, COST)
def test_four_outcomes_cost_what_the_confusion_matrix_says(problem, tn, fp, fn, tp):
    Y, scores, _ = problem
    fp, fn = fp + tn, fn + tp  # no error costs less than the right decision
    thresholds = cost_thresholds(Y, scores, cost={"fp": fp, "fn": fn, "tp": tp, "tn": tn})
    for y, s, t in zip(Y.T, scores.T, thresholds, strict=True):
        spent = [(confusion_matrix(y, s >= c, labels=[0, 1]) * [[tn, fp], [fn, tp]]).sum() for c in [t, *candidates(s)]]
        assert spent[0] == min(spent)


@exact
@given(arrays(float, 20, elements=st.floats(0, 1)), COST, st.integers(1, 4), COST, COST)
def test_the_expected_cost_is_the_smallest_for_every_probability(p, fp, fn, tp, tn):
    fp, fn = fp + tn, fn + tp
    (threshold,) = expected_cost_thresholds({"fp": fp, "fn": fn, "tp": tp, "tn": tn}, n_labels=1)
    assigned, omitted = p * tp + (1 - p) * fp, p * fn + (1 - p) * tn
    expected = np.where(p >= threshold, assigned, omitted)
    np.testing.assert_allclose(expected, np.minimum(assigned, omitted), rtol=0, atol=1e-14)


def test_costs_of_each_label():
    thresholds = expected_cost_thresholds({"fp": [1, 0, 3], "fn": [3, 1, 0]}, n_labels=3)
    assert thresholds.tolist() == [0.25, 0.0, 1.0]
    np.testing.assert_array_equal(expected_cost_thresholds(([1, 0, 3], [3, 1, 0]), n_labels=3), thresholds)


@pytest.mark.parametrize(
    "cost",
    [
        3,
        (1, 2, 3),
        (1, "many"),
        (1, np.nan),
        (1, np.inf),
        (-1, 1),
        (0, 0),
        ([1, 1], [2, 0, 1]),
        ([1, 0], [2, 0]),  # neither error of the second label costs anything
        {"fn": 5},
        {"fp": 1, "fn": 5, "missed": 2},
        {"fp": 1, "fn": 5, "tp": 6},
    ],
    ids=str,
)
def test_costs_that_decide_nothing_are_refused_in_one_line(cost):
    with pytest.raises(MethodError) as refused:
        expected_cost_thresholds(cost, n_labels=2)
    assert len(str(refused.value).splitlines()) == 1


@exact
@given(problems(), COST, COST)
def test_the_cost_is_the_smallest(problem, false_positive, false_negative):
    Y, scores, _ = problem
    thresholds = cost_thresholds(Y, scores, cost=(false_positive, false_negative))
    for y, s, t in zip(Y.T, scores.T, thresholds, strict=True):
        costs = [
            false_positive * ((s >= c) & (y == 0)).sum() + false_negative * ((s < c) & (y == 1)).sum()
            for c in candidates(s)
        ]
        assert false_positive * ((s >= t) & (y == 0)).sum() + false_negative * ((s < t) & (y == 1)).sum() == min(costs)


@pytest.mark.parametrize("objective", OBJECTIVES)
@exact
@given(problems())
def test_the_global_threshold_is_the_best_of_all_and_assigns_fewest(objective, problem):
    Y, scores, weights = problem
    reached = global_threshold(Y, scores, objective, weights)
    values = {t: value(objective, Y, scores >= t, weights) for t in candidates(scores)}
    best = max(values.values())
    assert value(objective, Y, scores >= reached, weights) == pytest.approx(best, abs=1e-12)
    fewest = min((scores >= t).sum() for t, v in values.items() if v > best - 1e-13)
    assert (scores >= reached).sum() == fewest


@pytest.mark.parametrize("objective", OBJECTIVES)
@exact
@given(problems())
def test_the_best_k_is_the_smallest_best(objective, problem):
    Y, scores, weights = problem
    ranks = label_ranks(scores)
    values = [value(objective, Y, ranks < k, weights) for k in range(Y.shape[1] + 1)]
    assert best_k(Y, scores, objective, weights) == next(
        k for k, v in enumerate(values) if v == pytest.approx(max(values), abs=1e-12)
    )


@pytest.mark.slow
@exact
@given(arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(1, 6)), elements=st.integers(0, 8)))
def test_the_expected_example_f1_is_the_largest_of_all_sets(eighths):
    P = eighths / 8
    q = P.shape[1]
    sets = np.array(list(product((0, 1), repeat=q)))
    f1 = np.array([[metrics.example_f1([true], [assigned]) for true in sets] for assigned in sets])
    for p, decision in zip(P, expected_f1_decisions(P), strict=True):
        probability = np.prod(np.where(sets == 1, p, 1 - p), axis=1)
        expected = f1 @ probability
        reached = expected[(sets == decision).all(axis=1)][0]
        assert reached == pytest.approx(expected.max(), abs=1e-12)
        assert decision.sum() == min(s.sum() for s, e in zip(sets, expected, strict=True) if e > expected.max() - 1e-13)


def test_expected_f1_of_many_labels_in_blocks_is_that_of_single_rows(monkeypatch):
    P = np.random.default_rng(0).beta(0.3, 2, (40, 30))
    together = expected_f1_decisions(P)
    np.testing.assert_array_equal(together, np.vstack([expected_f1_decisions(row[None]) for row in P]))
    monkeypatch.setattr("multilab.decision.expected_f1._BLOCK", 31**2 * 3)
    np.testing.assert_array_equal(together, expected_f1_decisions(P))


def test_expected_f1_agrees_with_simulation():
    rng = np.random.default_rng(1)
    p = np.sort(rng.uniform(0, 0.6, 8))[::-1]
    n = 200_000
    truths = rng.random((n, 8)) < p
    prefix = np.tril(np.ones((9, 8), dtype=int), -1)  # the first k labels
    simulated = [metrics.example_f1(truths, np.tile(d, (n, 1))) for d in prefix]
    from multilab.decision.expected_f1 import expected_f1_by_size

    error = np.sqrt(np.log(2 * 9 / 1e-9) / (2 * n))  # Hoeffding, all nine at once
    np.testing.assert_allclose(expected_f1_by_size(p[None])[0], simulated, rtol=0, atol=error)


def test_scores_that_differ_by_rounding_only_are_not_separated():
    Y = [[1], [0], [0]]
    assert macro_f1_thresholds(Y, [[0.3], [0.1 + 0.2], [0.0]])[0] == pytest.approx(0.15)
    assert global_threshold(Y, [[0.1 + 0.2], [0.3], [0.0]], "micro_f1") == pytest.approx(0.15)


def test_ties_between_cuts_assign_fewest():
    assert macro_f1_thresholds([[0], [0]], [[0.2], [0.7]])[0] == np.inf  # F1 is 0 everywhere
    assert cost_thresholds([[1], [0]], [[0.5], [0.5]])[0] == np.inf
    assert macro_f1_thresholds([[1], [0]], [[0.5], [0.5]])[0] == LOWEST
    assert best_k([[0, 0]], [[0.2, 0.1]], "hamming_loss") == 0


def test_an_uninformative_score_of_a_rare_label_assigns_every_row_for_f1_and_none_for_hamming_loss():
    Y, scores = np.array([[1]] + [[0]] * 9), np.full((10, 1), 0.1)
    assert macro_f1_thresholds(Y, scores)[0] == LOWEST
    assert cost_thresholds(Y, scores)[0] == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: macro_f1_thresholds([[1, 0]], [[0.1]]), "one score per row and label"),
        (lambda: micro_f1_thresholds([[1]], [[np.nan]]), "NaN"),
        (lambda: global_threshold([[1]], [[0.1]], "auc"), "objective"),
        (lambda: cost_thresholds([[1]], [[0.1]], cost=(1, -1)), "must be >= 0"),
        (lambda: cost_thresholds([[1]], [[0.1]], cost=3), "must be a pair"),
        (lambda: best_k([[1]], [[0.1]], sample_weight=[-1]), "numbers >= 0"),
        (lambda: expected_f1_decisions([[1.2]]), r"\[0, 1\]"),
    ],
)
def test_mistakes_are_refused(call, message):
    with pytest.raises(MethodError, match=message):
        call()


@exact
@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0])))
def test_the_order_is_that_of_a_stable_sort(scores):
    np.testing.assert_array_equal(descending(scores), np.argsort(-scores, kind="stable"))


def test_scores_that_are_one_number_as_float32_are_ordered():
    scores = 1 + np.random.default_rng(0).permutation(2000) * 2.0**-52
    np.testing.assert_array_equal(descending(scores), np.argsort(-scores))
