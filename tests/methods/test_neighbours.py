"""Approximate neighbours: measured recall, defined results, and the lines about what is missing."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from multilab.methods import MLkNN, MLkNNReleased
from multilab.methods.base import MethodError
from multilab.methods.neighbours import _search
from multilab.methods.neighbours._search import exact_neighbours


def make_data(n: int = 600, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, d))
    X = centres[rng.integers(12, size=n)] + 0.4 * rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, 5)) > 0.5).astype(np.uint8)


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss", reason="faiss-cpu (extra ann) is not installed")


def test_exact_is_the_default_and_has_recall_1():
    X, Y = make_data(60)
    model = MLkNN(k=3).fit(X, Y)
    assert model.neighbours == "exact"
    assert model.neighbour_recall_ == 1.0


def test_without_faiss_the_line_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    X, Y = make_data(60)
    with pytest.raises(MethodError, match="pip install faiss-cpu"):
        MLkNN(neighbours="hnsw").fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"neighbours": "nearest"}, "neighbours='nearest': give 'exact' or 'hnsw' or 'ivf'"),
        ({"neighbours": "ivf", "tie_tol": 1e-9}, "tie_tol=1e-09 is for neighbours='exact'"),
        ({"neighbours": "ivf", "k": 60}, "k=60 neighbours need at least 61 training instances, got 60"),
    ],
)
def test_arguments_are_checked(arguments, message):
    X, Y = make_data(60)
    with pytest.raises(MethodError) as error:
        MLkNN(**arguments).fit(X, Y)
    assert message in str(error.value)


def test_unobserved_labels_need_exact_neighbours():
    X, Y = make_data(60)
    with pytest.raises(MethodError, match="needs labels that are all observed"):
        MLkNN(neighbours="hnsw").fit(X, Y, y_mask=np.arange(60)[:, None] != np.arange(5))


def test_a_large_sparse_x_is_refused_with_its_size():
    X = sp.csr_array((50_000, 20_000))
    with pytest.raises(MethodError, match=r"50,000 x 20,000 would take 3,815 MiB, more than 2,048"):
        _search.ApproximateSearch(X, 3, "hnsw")


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_the_recall_is_that_of_the_sample(faiss, kind):
    X, _ = make_data()
    search = _search.ApproximateSearch(X, 5, kind)
    rows = np.sort(np.random.default_rng(0).choice(len(X), 200, replace=False))
    near, exact = search.neighbours()[rows], exact_neighbours(X, 5)[0][rows]  # no two distances are equal here
    share = np.mean([np.isin(a, b).mean() for a, b in zip(near, exact, strict=True)])
    assert search.recall == pytest.approx(share, abs=1e-12)
    assert search.recall > 0.95
    assert not (near == rows[:, None]).any()
    assert all(len(set(row)) == 5 for row in near.tolist())


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
@pytest.mark.parametrize("sparse", [False, True])
def test_models_are_repeatable_and_survive_pickling(faiss, kind, sparse):
    X, Y = make_data()
    X = sp.csr_array(np.where(X > 0, X, 0)) if sparse else X
    model = MLkNN(k=5, neighbours=kind).fit(X, Y)
    scores = model.predict_proba(X)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict_proba(X), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), scores)
    np.testing.assert_array_equal(clone(model).fit(X, sp.csr_array(Y)).predict_proba(X), scores)
    assert np.abs(scores - MLkNN(k=5).fit(X, Y).predict_proba(X)).mean() < 0.02
    assert MLkNNReleased(k=5, neighbours=kind).fit(X, Y).neighbour_recall_ == model.neighbour_recall_


def test_equal_rows_do_not_lead_to_a_missing_neighbour(faiss):
    X, _ = make_data()
    X[:300] = X[0]
    for kind in ("hnsw", "ivf"):
        near = _search.ApproximateSearch(X, 5, kind).neighbours()
        assert near.min() >= 0
        assert not (near == np.arange(len(X))[:, None]).any()


def test_a_low_recall_is_reported(faiss):
    X = np.random.default_rng(0).normal(size=(2000, 64))  # without clusters
    with pytest.warns(UserWarning, match=r"neighbours='ivf' finds \d+% of the nearest neighbours"):
        search = _search.ApproximateSearch(X, 5, "ivf")
    assert search.recall < 0.9
