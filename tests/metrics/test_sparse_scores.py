"""Metrics at k on sparse scores: the values of the dense matrix, bit for bit, from the stored entries alone."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from multilab.metrics import bootstrap, inputs, label_propensities, ndcg_at_k, precision_at_k, recall_at_k

METRICS = [precision_at_k, recall_at_k, ndcg_at_k]


@st.composite
def problems(draw):
    """A label matrix with its scores: ties, negative scores, rows without any, and zeros that are stored."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, q = draw(st.integers(1, 12)), draw(st.integers(1, 9))
    Y = (rng.random((n, q)) < draw(st.sampled_from([0.0, 0.3, 1.0]))).astype(np.uint8)
    values = rng.integers(-2, 4, size=(n, q)) / draw(st.sampled_from([1, 3]))
    kept = rng.random((n, q)) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    scores = sp.csr_array((values[kept], np.nonzero(kept)), shape=(n, q))
    return Y, scores.astype(draw(st.sampled_from([np.float64, np.float32]))), rng.uniform(0.1, 1.0, size=q)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(inputs, "BLOCK_CELLS", 16)


@given(problem=problems(), k=st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_they_are_those_of_the_dense_matrix(problem, k):
    Y, scores, propensities = problem
    for metric in METRICS:
        assert metric(sp.csr_array(Y), scores, k=k) == metric(Y, scores.toarray(), k=k)
    for metric in (precision_at_k, ndcg_at_k):
        given_too = {"k": k, "propensities": propensities}
        assert metric(sp.csr_array(Y), scores, **given_too) == metric(Y, scores.toarray(), **given_too)


def test_blocks_of_rows_change_nothing(small_blocks):
    rng = np.random.default_rng(0)
    Y, scores = rng.random((40, 30)) < 0.1, sp.random_array((40, 30), density=0.3, rng=rng, format="csr")
    for metric in METRICS:
        assert metric(sp.csr_array(Y), scores, k=4) == metric(Y, scores.toarray(), k=4)


def test_intervals_and_unobserved_labels_are_those_of_the_dense_matrix():
    rng = np.random.default_rng(0)
    Y, scores = rng.random((40, 12)) < 0.2, sp.random_array((40, 12), density=0.4, rng=rng, format="csr")
    hidden = rng.random(Y.shape) < 0.2
    for name in ("precision_at_k", "ndcg_at_k", "recall_at_k"):
        seeded = {"k": 2, "n_draws": 20, "random_state": 0}
        assert bootstrap(name, Y, scores, **seeded) == bootstrap(name, Y, scores.toarray(), **seeded)
    partial = np.where(hidden, np.nan, Y)
    for metric in METRICS:
        assert metric(partial, scores, k=2) == metric(partial, scores.toarray(), k=2)


def test_a_million_labels_take_the_memory_of_the_stored_scores():
    n, q, k = 300, 1_000_000, 100
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(q // k, size=(n, k)) + np.arange(k) * (q // k), axis=1)
    scores = sp.csr_array((rng.random(n * k), labels.ravel(), np.arange(0, n * k + 1, k)), shape=(n, q))
    Y = sp.csr_array(
        (np.ones(3 * n, dtype=np.uint8), labels[:, 10:13].ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, q)
    )
    propensities = label_propensities(Y)
    by_hand = np.mean(
        [np.isin(labels[i][np.argsort(-scores[[i]].data)[:5]], labels[i, 10:13]).mean() for i in range(n)]
    )
    tracemalloc.start()
    try:
        assert precision_at_k(Y, scores, k=5) == pytest.approx(by_hand, abs=1e-12)
        assert 0 < recall_at_k(Y, scores, k=50) < recall_at_k(Y, scores, k=100) == 1
        assert 0 < ndcg_at_k(Y, scores, k=5, propensities=propensities) < 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 80 * 2**20  # a dense block of one row would be 8 MiB, the dense matrix 2,289
