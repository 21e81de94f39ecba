"""Sparse label matrices: the same results as dense ones, without a dense copy, and a refusal that names the size."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from multilab.methods import (
    EBR,
    ECC,
    MLWSE,
    BinaryRelevance,
    ClassifierChain,
    KernelELM,
    LabelPowerset,
    MDDMSelector,
    MLkNN,
    MLkNNReleased,
    StackedMLWSE,
    all_estimators,
    base,
)
from multilab.methods import labels as label_matrices
from multilab.methods.base import MethodError
from multilab.methods.stacking import objective

MODELS = [
    BinaryRelevance(LogisticRegression()),
    BinaryRelevance(calibration="sigmoid"),
    ClassifierChain(LogisticRegression(), order="random", random_state=0),
    ClassifierChain(),
    EBR(n_estimators=3, random_state=0),
    ECC(n_estimators=3, random_state=0),
    MLkNN(k=5),
    MLkNN(k=5, exclude_self=False, s=0.3),
    MLkNNReleased(k=3),
]


def make_data(n: int = 40, d: int = 5, q: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, q)) > rng.uniform(0, 2, size=q)).astype(np.uint8)


def layouts(Y: np.ndarray) -> list:
    """Sparse forms of Y: other formats, with stored zeros and with unsorted indices."""
    zeros = sp.coo_array((np.append(Y[Y > 0], 0), [np.append(i, 0) for i in np.nonzero(Y)]), shape=Y.shape)
    unsorted = sp.csr_array(Y.astype(float))
    for row in range(len(Y)):
        part = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
    unsorted.has_sorted_indices = False
    return [sp.csr_matrix(Y), sp.csc_array(Y.astype(bool)), sp.lil_array(Y), zeros, unsorted]


@pytest.fixture
def no_dense_copy(monkeypatch):
    """Refuse every sparse Y that would be made dense."""
    monkeypatch.setattr(label_matrices, "MAX_DENSE_BYTES", 0)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_sparse_y_gives_the_same_model_without_a_dense_copy(model, no_dense_copy):
    X, Y = make_data()
    expected = model.fit(X, Y).predict_with_scores(X)
    for y in layouts(Y):
        scores, decisions = model.fit(X, y).predict_with_scores(X)
        np.testing.assert_array_equal(scores, expected[0])
        np.testing.assert_array_equal(decisions, expected[1])


def test_the_given_matrix_is_not_changed():
    X, Y = make_data()
    for y in layouts(Y):
        before = y.copy()
        BinaryRelevance(LogisticRegression()).fit(X, y)
        assert y.nnz == before.nnz
        assert type(y) is type(before)
        assert y.dtype == before.dtype
        np.testing.assert_array_equal(sp.coo_array(y).col, sp.coo_array(before).col)


def test_labels_without_a_positive_row_and_labels_of_all_rows(no_dense_copy):
    X, Y = make_data()
    Y[:, 0], Y[:, 1] = 0, 1
    for model in MODELS:
        decisions = model.fit(X, sp.csr_array(Y)).predict_sparse(X)
        assert decisions[:, [0]].nnz == 0
        assert decisions[:, [1]].nnz == len(X)


NEED_DENSE = [kind for kind in all_estimators() if getattr(kind, "_sparse_labels", "") is None]


@pytest.mark.parametrize("estimator", NEED_DENSE, ids=lambda kind: kind.__name__)
def test_others_refuse_with_the_size_that_they_would_need(estimator, no_dense_copy):
    X, Y = np.ones((4, 3)), sp.csr_array((4, 2), dtype=np.uint8)
    with pytest.raises(MethodError, match=rf"y of 4 x 2 would take 0 MiB dense.*{estimator.__name__} needs it dense"):
        estimator().fit(X, Y)


def test_the_limit_is_that_of_the_sizes_in_the_message():
    X, Y = sp.csr_array((100_000, 3)), sp.csr_array((100_000, 4000), dtype=np.int8)
    with pytest.raises(MethodError, match=r"y of 100,000 x 4,000 would take 381 MiB dense.*up to 256 MiB: pass y.to"):
        LabelPowerset().fit(X, Y)
    with pytest.raises(MethodError, match=r"MDDMSelector needs it dense"):
        MDDMSelector().fit(X, Y)
    wrong = Y.copy().tolil()
    wrong[0, 0] = 3
    for model in (BinaryRelevance(), LabelPowerset()):
        with pytest.raises(MethodError, match="0 and 1 only"):
            model.fit(X, wrong)


def test_small_ones_are_made_dense_as_before():
    X, Y = make_data()
    np.testing.assert_array_equal(KernelELM().fit(X, sp.csr_array(Y)).coef_, KernelELM().fit(X, Y).coef_)


def test_unobserved_labels_of_a_sparse_y_are_made_dense(no_dense_copy, monkeypatch):
    X, Y = make_data()
    mask = np.random.default_rng(1).random(Y.shape) < 0.7
    model = BinaryRelevance(LogisticRegression())
    with pytest.raises(MethodError, match="BinaryRelevance needs it dense"):
        model.fit(X, sp.csr_array(Y), y_mask=mask)
    monkeypatch.setattr(label_matrices, "MAX_DENSE_BYTES", 2**20)
    expected = model.fit(X, Y, y_mask=mask).predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, sp.csr_array(Y), y_mask=mask).predict_proba(X), expected)


@pytest.mark.parametrize("entries", [1, 13, 10**6])
def test_predictions_in_blocks_are_those_of_all_rows(monkeypatch, entries):
    X, Y = make_data()
    monkeypatch.setattr(base, "_BLOCK_SCORES", entries)
    for model in MODELS[::2]:
        scores, decisions = model.fit(X, sp.csr_array(Y)).predict_with_scores(X)
        given = model.predict_sparse(X)
        assert given.format == "csr"
        assert given.dtype == np.int64
        np.testing.assert_array_equal(given.toarray(), decisions)
        labels, values = model.predict_top_k(X, 3)
        np.testing.assert_allclose(values, -np.sort(-scores, axis=1)[:, :3], rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.take_along_axis(scores, labels, axis=1), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [7, 0, 2.0, "2", True, None])
def test_predict_top_k_refuses_what_is_no_number_of_labels(k):
    X, Y = make_data()
    model = BinaryRelevance(LogisticRegression()).fit(X, Y)
    with pytest.raises(MethodError, match="`k`"):
        model.predict_top_k(X, k)


def test_float32_scores_of_a_stack_are_summed_in_float64_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    S, Y = rng.random((300, 12)).astype(np.float32), (rng.random((300, 4)) < 0.3).astype(float)
    expected = S.astype(float).T @ S.astype(float), S.astype(float).T @ Y
    for entries in (1, 100, 10**6):
        monkeypatch.setattr(objective, "_BLOCK_SCORES", entries)
        for product, exact in zip(objective._products(S, Y), expected, strict=True):
            assert product.dtype == np.float64
            np.testing.assert_allclose(product, exact, rtol=1e-12)


@pytest.mark.parametrize("cv", [3, "halves"])
def test_a_stack_with_float32_scores(cv):
    X, Y = make_data(60)
    members = [("mlknn", MLkNN(k=5)), ("br", BinaryRelevance(LogisticRegression()))]
    scores = {}
    for kind in ("float64", "float32"):
        model = StackedMLWSE(members, MLWSE(alpha=0.1), cv=cv, random_state=0, score_type=kind).fit(X, sp.csr_array(Y))
        assert model.base_scores_.dtype == kind
        scores[kind] = model.decision_function(X)
        assert scores[kind].dtype == np.float64
    np.testing.assert_allclose(scores["float32"], scores["float64"], rtol=0, atol=1e-4)
    with pytest.raises(MethodError, match="score_type='float16': give 'float64' or 'float32'"):
        StackedMLWSE(members, score_type="float16").fit(X, Y)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=6), st.integers(1, 5))
def test_the_highest_scores_are_those_of_a_stable_sort(rows, k):
    scores = np.array(rows, dtype=float)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(base._highest(scores, k), expected)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**30), st.sampled_from(["csr", "csc"]))
def test_canonical_labels_are_the_matrix(seed, layout):
    rng = np.random.default_rng(seed)
    Y = (rng.random((rng.integers(1, 8), rng.integers(1, 6))) < 0.4).astype(float)
    for y in layouts(Y):
        labels = label_matrices.canonical_labels(y, layout)
        assert labels.format == layout
        assert labels.dtype == np.uint8
        assert labels.has_canonical_format
        assert labels.nnz == Y.sum()
        np.testing.assert_array_equal(labels.toarray(), Y)
        np.testing.assert_array_equal(list(label_matrices.label_columns(sp.csc_array(labels))), Y.T)
