"""TF-IDF weights of a bag of words: scikit-learn is the oracle, numbers beside words stay small."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from multilab.cells import MethodPipeline, Scaling
from multilab.methods import BinaryRelevance
from multilab.methods.word_weights import WordWeights, is_bag_of_words


def counts(rows=60, words=200, seed=0):
    return sp.csr_array(np.random.default_rng(seed).poisson(0.08, (rows, words)).astype(float))


@pytest.mark.parametrize("whole", [True, False])
def test_weights_are_those_of_scikit_learn_also_of_new_rows_and_of_dense_ones(whole):
    X, new = counts(), counts(seed=1)
    if not whole:  # weights, whose logarithm would be negative
        X.data, new.data = X.data / 7, new.data / 7
    oracle, ours = TfidfTransformer(sublinear_tf=whole).fit(X), WordWeights().fit(X)
    assert ours.counts_ == whole
    np.testing.assert_allclose(ours.transform(new).toarray(), oracle.transform(new).toarray(), atol=1e-12)
    np.testing.assert_array_equal(ours.transform(new.toarray()).toarray(), ours.transform(new).toarray())
    assert set(np.unique(new.data)) >= {1.0 if whole else 1 / 7}  # the argument stays as it is


def test_a_year_does_not_change_the_weights_of_the_words_beside_it():
    words, years = counts(), np.random.default_rng(2).integers(1950, 2025, (60, 1)).astype(float)
    both = WordWeights().fit(sp.hstack([words, years])).transform(sp.hstack([words, years])).toarray()
    np.testing.assert_allclose(both[:, :-1], WordWeights().fit(words).transform(words).toarray())
    assert np.abs(both[:, -1]).max() <= 1
    np.testing.assert_allclose(both[:, -1].mean(), 0, atol=1e-9)
    assert np.argmax(both[:, -1]) == np.argmax(years)


@pytest.mark.parametrize(
    ("X", "bag"),
    [
        (counts(), True),
        (counts().toarray(), True),
        (sp.hstack([counts(), np.full((60, 3), 7.5)]), True),  # three numbers beside 200 words
        (-counts(), False),
        (np.abs(np.random.default_rng(0).normal(size=(60, 20))), False),
        (np.random.default_rng(0).poisson(0.3, (60, 200)), False),  # dense, and a quarter of the cells is filled
        (sp.csr_array((60, 0)), False),
    ],
)
def test_what_looks_like_a_bag_of_words(X, bag):
    assert is_bag_of_words(X) is bag


def test_a_model_with_these_weights_is_saved_and_predicts_the_same(tmp_path):
    X = counts()
    Y = np.column_stack([X[:, [0]].toarray() > 0, X[:, [1]].toarray() + X[:, [2]].toarray() > 0]).astype(int)
    model = MethodPipeline([("scale", Scaling("tfidf")), ("classifier", BinaryRelevance())]).fit(X, Y)
    files = pytest.importorskip("multilab.models.skops_files")
    files.dump_model(model, tmp_path / "model.skops")
    new = counts(seed=1).toarray()
    scores, _ = files.load_skops(tmp_path / "model.skops").predict_with_scores(new)
    np.testing.assert_array_equal(scores, model.predict_with_scores(new)[0])
