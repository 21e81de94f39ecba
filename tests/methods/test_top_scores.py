"""The best scores of each row as a sparse matrix, from any method."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from multilab.methods import BinaryRelevance, MLkNN
from multilab.methods.base import MethodError
from multilab.methods.sparse_scores import top_scores
from multilab.metrics import ndcg_at_k, precision_at_k

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
Y = (X @ rng.normal(size=(5, 12)) > 1.0).astype(np.uint8)


@pytest.mark.parametrize(
    "model", [BinaryRelevance(LogisticRegression()), BinaryRelevance(LinearSVC()), MLkNN(k=5)], ids=str
)
def test_they_rank_as_the_dense_scores_do(model):
    model.fit(X, sp.csr_array(Y))
    scores = top_scores(model, X, k=4)
    labels, dense = model.predict_top_k(X, 4)
    assert scores.shape == Y.shape
    assert scores.has_canonical_format
    assert (np.diff(scores.indptr) == 4).all()
    for row in range(len(X)):
        stored = scores[[row]].toarray()[0, labels[row]]
        np.testing.assert_array_equal(np.argsort(-stored, kind="stable"), np.argsort(-dense[row], kind="stable"))
    assert ((scores.data > 0) & (scores.data <= 1)).all()
    assert (model.predict(X)[scores.toarray() > 0.5] == 1).all()
    if isinstance(model, MLkNN):
        return  # it has ties, of which some are not stored
    for k in (1, 3):
        for metric in (precision_at_k, ndcg_at_k):
            assert metric(Y, scores, k=k) == metric(Y, model.predict_with_scores(X)[0], k=k)


def test_probabilities_are_stored_as_they_are_and_margins_between_0_and_1():
    model = BinaryRelevance(LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(top_scores(model, X).toarray(), model.predict_proba(X))
    model = BinaryRelevance(LinearSVC()).fit(1e6 * X, Y)  # large margins are not rounded to 1
    margins, scores = model.decision_function(1e6 * X), top_scores(model, 1e6 * X).toarray()
    np.testing.assert_array_equal(np.sign(scores - 0.5), np.sign(margins))
    np.testing.assert_array_equal(np.argsort(scores, axis=1), np.argsort(margins, axis=1))


@pytest.mark.parametrize("k", [2.0, "2", None, True])
def test_a_k_that_is_no_whole_number_is_refused_with_its_name_and_type(k):
    model = MLkNN(k=5).fit(X, Y)
    with pytest.raises(MethodError, match=rf"`k`.*{type(k).__name__}"):
        top_scores(model, X, k=k)
    assert top_scores(model, X, k=np.int64(2)).nnz == 2 * len(X)


def test_a_k_below_1_is_refused_and_one_beyond_the_labels_means_all():
    model = MLkNN(k=5).fit(X, Y)
    assert top_scores(model, X[:3], k=100).shape == (3, 12)
    with pytest.raises(MethodError, match="`k` must be >= 1, got 0"):
        top_scores(model, X, k=0)
