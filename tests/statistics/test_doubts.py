"""Doubtful labels against the formula of confident learning by hand, cleanlab, and errors of known probability."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from multilab.statistics import StatisticsError, label_doubts


def made_up(seed: int = 0, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of different frequency and noisy scores of them."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 6)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.02]).astype(int)
    return Y, np.clip(0.25 + 0.5 * Y + rng.normal(0, 0.25, Y.shape), 0, 1)


def by_hand(given: list[int], p: list[float]) -> list[int]:
    """Return the off-diagonal rows of the confident joint of one label as its authors write it, row by row.

    Of them, those whose given label has the smaller probability.
    """
    both = [(1 - each, each) for each in p]
    thresholds = [sum(pair[k] for pair, y in zip(both, given, strict=True) if y == k) / given.count(k) for k in (0, 1)]
    rows = []
    for row, (pair, y) in enumerate(zip(both, given, strict=True)):
        confident = [k for k in (0, 1) if pair[k] >= thresholds[k]]
        if confident and max(confident, key=lambda k: pair[k]) != y and pair[1 - y] > pair[y]:
            rows.append(row)
    return rows


def flags(table: pd.DataFrame, shape: tuple[int, ...]) -> np.ndarray:
    found = np.zeros(shape, dtype=bool)
    found[table["row"], table["label"].astype(int)] = True
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_method_doubts_what_the_confident_joint_by_hand_has(seed):
    Y, P = made_up(seed)
    found = flags(label_doubts(Y, P), Y.shape)
    assert found.any()
    for label in range(Y.shape[1]):
        assert np.flatnonzero(found[:, label]).tolist() == by_hand(Y[:, label].tolist(), P[:, label].tolist())


@pytest.mark.parametrize("seed", range(5))
def test_cleanlab_doubts_the_same(seed):
    pytest.importorskip("cleanlab")
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    Y, P = made_up(seed)
    lists = [np.flatnonzero(row).tolist() for row in Y]
    joint = find_multilabel_issues_per_class(lists, P, filter_by="confident_learning", n_jobs=1)
    assert np.array_equal(flags(label_doubts(Y, P), Y.shape), joint)
    table = label_doubts(Y, P, ranking="cleanlab")
    issues = find_multilabel_issues_per_class(lists, P, n_jobs=1)
    assert np.array_equal(flags(table[table["doubted"]], Y.shape), issues)
    first = table.head(int(issues.sum()))
    assert first["doubted"].all()
    own = np.where(first["given"] == 1, first["probability"], 1 - first["probability"])
    assert (np.diff(own) >= 0).all()


def test_the_order_is_by_methods_then_by_the_probability_of_the_given_label():
    Y, P = made_up()
    Q = np.clip(P + np.random.default_rng(1).normal(0, 0.2, P.shape), 0, 1)
    table = label_doubts(Y, {"p": P, "q": Q}, every_cell=True)
    assert len(table) == Y.size
    counts = flags(label_doubts(Y, P), Y.shape).astype(int) + flags(label_doubts(Y, Q), Y.shape)
    cells = table["row"], table["label"].astype(int)
    assert np.array_equal(table["methods"], counts[cells])
    assert np.array_equal(table["given"], Y[cells])
    np.testing.assert_allclose(table["probability"], ((P + Q) / 2)[cells], rtol=0, atol=1e-12)
    assert np.array_equal(table["doubted"], table["methods"] == 2)
    own = np.where(table["given"] == 1, table["probability"], 1 - table["probability"])
    keys = list(zip(-table["methods"], own, strict=True))
    assert keys == sorted(keys)
    some = label_doubts(Y, {"p": P, "q": Q})
    pd.testing.assert_frame_equal(some, table[table["methods"] > 0].reset_index(drop=True))


def test_planted_errors_are_found_as_often_as_their_probability_says():
    """With the probabilities that made the labels, the share of errors among the first cells can be computed."""
    rng = np.random.default_rng(3)
    rate = 0.05
    p = rng.beta(0.5, 1.0, size=(4000, 5))
    Y = (rng.random(p.shape) < p).astype(int)
    flipped = rng.random(p.shape) < rate
    given = np.where(flipped, 1 - Y, Y)
    noisy = (1 - rate) * p + rate * (1 - p)  # the probability of a given 1
    wrong = np.where(given == 1, rate * (1 - p) / noisy, rate * p / (1 - noisy))  # that the given label is wrong
    table = label_doubts(given, noisy)
    cells = table["row"], table["label"].astype(int)
    expected, spread = wrong[cells].sum(), np.sqrt((wrong[cells] * (1 - wrong[cells])).sum())
    assert abs(flipped[cells].sum() - expected) < 4 * spread
    assert expected / len(table) > 3 * rate
    half = len(table) // 2
    assert wrong[cells][:half].mean() > wrong[cells][half:].mean()


@pytest.mark.parametrize("missing", [np.nan, -1])
def test_labels_that_were_not_observed_do_not_count(missing):
    Y, P = made_up()
    hidden = np.random.default_rng(2).random(Y.shape) < 0.3
    partial = np.where(hidden, missing, Y).astype(float if np.isnan(missing) else np.int8)
    found = flags(label_doubts(partial, P), Y.shape)
    for label in range(Y.shape[1]):
        rows = np.flatnonzero(~hidden[:, label])
        alone = label_doubts(Y[rows, label : label + 1], P[rows, label : label + 1])
        assert np.flatnonzero(found[:, label]).tolist() == sorted(rows[alone["row"]].tolist())
    assert len(label_doubts(partial, P, every_cell=True)) == (~hidden).sum()


def test_a_label_of_all_rows_or_of_none_is_never_doubted():
    Y = np.column_stack([np.zeros(20, dtype=int), np.ones(20, dtype=int)])
    P = np.column_stack([np.full(20, 0.9), np.full(20, 0.1)])
    assert label_doubts(Y, P).empty
    assert label_doubts(Y, P).columns.tolist() == ["row", "label", "given", "probability", "methods", "doubted"]


def test_names_are_those_of_a_frame():
    Y, P = made_up()
    frame = pd.DataFrame(Y, columns=list("abcdef"))
    assert set(label_doubts(frame, P)["label"]) <= set("abcdef")
    assert label_doubts(frame, P)["label"].tolist() == label_doubts(Y, P, label_names=list("abcdef"))["label"].tolist()


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda Y, P: (Y, P[:, :2]), {}),
        (lambda Y, P: (Y, 2 * P), {}),
        (lambda Y, P: (Y, np.where(P > 0.9, np.nan, P)), {}),
        (lambda Y, P: (Y + 1, P), {}),
        (lambda Y, P: (Y[:, 0], P), {}),
        (lambda Y, P: (Y, {}), {}),
        (lambda Y, P: (Y, P), {"ranking": "votes"}),
        (lambda Y, P: (Y, P), {"label_names": ["a"]}),
    ],
)
def test_wrong_uses_are_refused(change, options):
    Y, scores = change(*made_up())
    with pytest.raises(StatisticsError):
        label_doubts(Y, scores, **options)


def test_without_cleanlab_its_ranking_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    with pytest.raises(StatisticsError) as refused:
        label_doubts(*made_up(), ranking="cleanlab")
    assert len(str(refused.value).splitlines()) == 1
    assert "pip install" in str(refused.value)
