"""One-vs-rest linear models with pruned weights: those of binary relevance, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from multilab.methods import BinaryRelevance, SparseBinaryRelevance
from multilab.methods.base import MethodError
from multilab.methods.sparse_scores import top_scores
from multilab.metrics import precision_at_k

BASE = LinearSVC(dual=False, tol=1e-10)


def documents(n=150, d=400, q=30, seed=0):
    """Sparse rows in which each label has a term of its own."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, q)) < 0.1).astype(np.uint8)
    terms = sp.random_array((n, d), density=0.03, rng=rng).tolil()
    terms[:, :q] += Y
    return sp.csr_array(terms), Y


def test_without_pruning_it_is_binary_relevance():
    X, Y = documents()
    Y[:, 0], Y[:, 1] = 0, 1
    for features in (X, X.toarray()):
        expected = BinaryRelevance(BASE).fit(features, Y).decision_function(features)
        model = SparseBinaryRelevance(BASE, weight_threshold=0).fit(features, sp.csr_array(Y))
        np.testing.assert_allclose(model.decision_function(features), expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(model.predict(features), expected >= 0)


def test_small_weights_are_dropped_and_no_others():
    X, Y = documents()
    every = SparseBinaryRelevance(BASE, weight_threshold=0).fit(X, Y).weights_.toarray()
    kept = SparseBinaryRelevance(BASE, weight_threshold=0.05).fit(X, Y).weights_
    np.testing.assert_array_equal(kept.toarray(), np.where(np.abs(every) >= 0.05, every, 0))
    assert 0 < kept.nnz < np.count_nonzero(every)


def test_processes_and_sparse_labels_change_nothing():
    X, Y = documents()
    one = SparseBinaryRelevance(random_state=0).fit(X, Y)
    two = SparseBinaryRelevance(random_state=0, n_jobs=2).fit(X, sp.csc_array(Y))
    np.testing.assert_array_equal(one.weights_.toarray(), two.weights_.toarray())
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def test_it_learns_and_its_scores_stay_sparse():
    X, Y = documents(n=400)
    model = SparseBinaryRelevance(random_state=0).fit(X[:300], sp.csr_array(Y[:300]))
    scores = top_scores(model, X[300:], k=10)
    assert scores.nnz == 1000
    seen = Y[300:].any(axis=1)
    assert precision_at_k(sp.csr_array(Y[300:][seen]), scores[seen], k=1) > 0.9


@pytest.mark.slow
def test_memory_is_that_of_the_weights_that_are_kept():
    n, d, q = 60, 50_000, 300
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=20 / d, rng=rng, format="csr")
    Y = sp.csr_array((np.ones(3 * q), (rng.integers(n, size=3 * q), np.repeat(np.arange(q), 3))), shape=(n, q))
    Y.data[:] = 1
    tracemalloc.start()
    try:
        model = SparseBinaryRelevance(random_state=0).fit(X, Y)
        top_scores(model, X, k=5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * 2**20  # dense weights take 114 MiB
    assert model.weights_.nnz > 0
    assert model.weights_.indices.dtype == model.weights_.indptr.dtype == np.int32


def test_a_saved_model_scores_the_same(tmp_path):
    X, Y = documents()
    model = SparseBinaryRelevance(random_state=0).fit(X, Y)
    files = pytest.importorskip("multilab.models.skops_files")
    files.dump_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(
        files.load_skops(tmp_path / "model.skops").decision_function(X), model.decision_function(X)
    )


def test_a_base_that_is_not_linear_and_a_negative_threshold_are_refused():
    X, Y = documents()
    with pytest.raises(MethodError, match="DecisionTreeClassifier has no `coef_`: SparseBinaryRelevance takes linear"):
        SparseBinaryRelevance(DecisionTreeClassifier()).fit(X, Y)
    with pytest.raises(MethodError, match="`weight_threshold` must be >= 0, got -1"):
        SparseBinaryRelevance(weight_threshold=-1).fit(X, Y)
