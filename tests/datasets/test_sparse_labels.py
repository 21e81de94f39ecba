"""Sparse label matrices of the readers: the same content and digest as dense ones, through the store and back."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.readers_samples import content
from multilab.datasets import sparse as sparse_rows
from multilab.datasets.characteristics import data_digest, describe
from multilab.datasets.dataset import build_dataset
from multilab.datasets.file_access import Limits
from multilab.datasets.serialisation import from_bytes, to_bytes
from multilab.model_selection import make_splits

XC = "4 3 5\n0,3 0:1 2:2.5\n4 2:-1\n 0:3 1:4\n0,4,0 1:1\n"
SVMLIGHT = "1,4 1:1 3:2.5\n5 3:-1\n 1:3 2:4\n1,5 2:1\n"
Y = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]], dtype=np.uint8)


@pytest.fixture
def sparse(monkeypatch):
    """Read every label matrix as a sparse one."""
    monkeypatch.setattr(sparse_rows, "DENSE_LABELS", 0)


@pytest.mark.parametrize(("text", "name"), [(XC, "set.txt"), (SVMLIGHT, "set.svm")])
def test_sparse_labels_are_the_dense_ones(tmp_path, monkeypatch, text, name):
    path = tmp_path / name
    path.write_text(text)
    dense = content(path)
    monkeypatch.setattr(sparse_rows, "DENSE_LABELS", 0)
    given = content(path)
    np.testing.assert_array_equal(dense.Y, Y)
    assert given.Y.format == "csr"
    assert given.Y.dtype == np.uint8
    assert given.Y.has_canonical_format
    np.testing.assert_array_equal(given.Y.toarray(), Y)
    assert describe(given) == describe(dense)


def test_a_label_matrix_beyond_the_limit_is_sparse(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("20 3 1000000\n" + "999999,0 0:1\n" * 20)
    raw = content(path, limits=Limits(max_cells=100))  # the limit is for dense matrices
    assert raw.Y.shape == (20, 1_000_000)
    assert raw.Y.nnz == 40
    assert describe(raw)["cardinality"] == 2.0
    assert describe(raw)["labels_never_set"] == 999_998


def test_a_set_of_two_files_with_sparse_labels(tmp_path, sparse, monkeypatch):
    for role in ("train", "test", "full"):
        (tmp_path / f"{role}.txt").write_text(XC if role != "full" else "8 3 5\n" + XC.partition("\n")[2] * 2)
    paths = {role: tmp_path / f"{role}.txt" for role in ("train", "test")}
    data, description = build_dataset("toy", paths, {})
    np.testing.assert_array_equal(data.Y.toarray(), np.vstack([Y, Y]))
    meta = {**description, "feature_names": data.feature_names, "label_names": data.label_names, "splits": ["official"]}
    again = from_bytes("toy", meta, to_bytes(data))
    assert sp.issparse(again.Y)
    np.testing.assert_array_equal(again.Y.toarray(), data.Y.toarray())
    (split,) = make_splits(again.Y, {"split": "official"}, again.splits)
    assert again.Y[split.train].shape == (4, 5)
    paths["full"] = tmp_path / "full.txt"
    both, _ = build_dataset("toy", paths, {})
    monkeypatch.setattr(sparse_rows, "DENSE_LABELS", 2**24)
    dense, _ = build_dataset("toy", paths, {})
    assert isinstance(dense.Y, np.ndarray)
    assert both.digest == dense.digest == data.digest
    monkeypatch.setattr(sparse_rows, "DENSE_LABELS", 30)  # the complete file sparse, its parts dense
    mixed, _ = build_dataset("toy", paths, {})
    for one in (both, mixed):
        assert sp.issparse(one.Y)
        np.testing.assert_array_equal(one.splits["official"], dense.splits["official"])


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.integers(0, 2**30))
def test_the_digest_does_not_depend_on_the_form(seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random((rng.integers(1, 9), rng.integers(1, 7))) < 0.4).astype(np.uint8)
    X, names = np.zeros((len(labels), 1)), [str(j) for j in range(labels.shape[1])]
    forms = [labels, sp.csr_array(labels), sp.csr_array(labels.astype(float)), sp.csr_matrix(labels)]
    assert len({data_digest(X, Y, ["f"], names) for Y in forms}) == 1
