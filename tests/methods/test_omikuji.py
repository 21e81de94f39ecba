"""The adapter of omikuji; all but the first two tests need the extra ``xmc``."""

import pickle
import sys
import tracemalloc
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from multilab import methods
from multilab.cells.arguments import check_method
from multilab.cells.method import build, load_method
from multilab.cells.pipeline import predict_with_scores
from multilab.methods.sparse_scores import top_scores
from multilab.metrics import precision_at_k
from multilab.testing import check_multilabel_estimator


@pytest.fixture
def kind():
    """The class, or a skip with the reason."""
    pytest.importorskip("omikuji", reason="the extra `xmc` is not installed")
    return methods.Omikuji


def documents(n: int = 400, d: int = 500, q: int = 150, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Sparse rows in which each label has a term of its own; more labels than one node takes."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, q)) < 0.03
    terms = sp.random_array((n, d), density=0.02, rng=rng).tolil()
    terms[:, :q] += 2 * Y
    return sp.csr_array(terms), sp.csr_array(Y.astype(np.uint8))


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "omikuji", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "multilab.methods.forests.omikuji", raising=False)
    with pytest.raises(ImportError, match="omikuji"):
        from multilab.methods import Omikuji  # noqa: F401
    assert "Omikuji" not in {cls.__name__ for cls in methods.all_estimators()}


def test_the_entrant_says_that_it_cannot_be_recomputed(checkout):
    method = load_method("omikuji")
    assert method.requires == "omikuji"
    assert "two fits on the same data differ" in method.notes
    lock = checkout / "requirements-arena.lock"
    assert not lock.is_file() or "omikuji==0.5.2" in lock.read_text(encoding="utf-8")  # the sdist has no lock


def test_it_ranks_the_labels_of_new_rows_and_keeps_them_sparse(kind):
    X, Y = documents()
    model = kind().fit(X[:300], Y[:300])
    scores = top_scores(model, X[300:], k=10)
    assert scores.shape == (100, 150)
    assert scores.has_canonical_format
    assert 1 <= np.diff(scores.indptr).min() <= np.diff(scores.indptr).max() <= 10
    assert ((scores.data >= 0) & (scores.data <= 1)).all()
    seen = np.diff(Y[300:].indptr) > 0
    assert precision_at_k(Y[300:][seen], scores[seen], k=1) > 0.8
    dense = model.predict_proba(X[300:])
    np.testing.assert_array_equal(dense[scores.nonzero()], scores.data[scores.data > 0])
    np.testing.assert_array_equal(model.predict(X[300:]), dense >= 0.5)


def test_a_model_that_was_saved_scores_the_same(kind, tmp_path):
    X, Y = documents()
    model = kind().fit(X, Y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    files = pytest.importorskip("multilab.models.skops_files")
    files.dump_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(files.load_skops(tmp_path / "model.skops").predict_proba(X), expected)


def test_constant_labels_and_rows_without_features_or_labels(kind):
    X, Y = documents()
    X, Y = X.tolil(), Y.tolil()
    X[3], Y[4] = 0, 0
    Y[:, 0], Y[:, 1] = 1, 0
    model = kind().fit(sp.csr_array(X), sp.csr_array(Y))
    scores = model.predict_proba(sp.csr_array(X))
    assert (scores[:, 0] == 1).all()
    assert (scores[:, 1] == 0).all()
    for constant in (np.zeros((400, 2)), np.ones((400, 2))):
        np.testing.assert_array_equal(kind().fit(sp.csr_array(X), constant).predict(sp.csr_array(X)), constant)


def test_one_row_and_a_label_that_only_a_row_without_features_has(kind):
    X, Y = np.eye(4), np.eye(4)[:, :2]
    X[0] = 0
    scores = kind().fit(X, Y).predict_proba(X[1:2])
    assert scores.shape == (1, 2)
    assert scores[0, 0] == 0


def test_a_sparse_y_is_not_made_dense(kind, monkeypatch):
    n, q = 400, 100_000
    monkeypatch.setattr("multilab.methods.labels.MAX_DENSE_BYTES", 0)
    X, few = documents(n=n)
    Y = sp.csr_array((few.data, few.indices * 600, few.indptr), shape=(n, q))
    tracemalloc.start()
    try:
        scores = top_scores(kind(n_trees=1).fit(X, Y), X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert scores.shape == (n, q)
    assert set(scores.indices) <= set(Y.indices)
    assert peak < 20 * 2**20  # a dense Y takes 38 MiB, dense scores 305


def test_nothing_is_printed(kind, capfd):
    X, Y = documents()
    model: Any = pickle.loads(pickle.dumps(kind().fit(X, Y)))
    model.predict_proba(X[:2])
    assert capfd.readouterr() == ("", "")


def test_the_entrant_has_the_arguments_and_the_version_of_the_library(kind):
    method = load_method("omikuji")
    check_method(method, tuned=True)
    assert method.outside.distributions == {"omikuji": version("omikuji")}
    X, Y = documents()
    scores, decisions = predict_with_scores(build(method).fit(X, Y), X[:9], 150)
    np.testing.assert_array_equal(decisions, scores >= 0.5)


# They compare two fits, which differ: omikuji takes no seed.
TWO_FITS = {
    f"check_{name}"
    for name in (
        *("classifiers_multilabel_representation_invariance", "supervised_y_2d", "fit_idempotent", "inputs_untouched"),
        *(
            "integer_features",
            "label_permutation",
            "training_permutation",
            "label_types",
            "sparse_labels",
            "sparse_input",
        ),
        *("model_keeps_own_data", "repeatable", "refit_forgets", "n_jobs", "single_precision", "two_classes"),
        *("label_names", "feature_names"),
    )
}


def test_it_passes_all_checks_that_do_not_compare_two_fits(kind):
    board = check_multilabel_estimator(kind(), on_fail="return")
    assert set(board["check"][~board["passed"]]) <= TWO_FITS
    assert len(board) > 90
