"""Multi-label svmlight and Extreme Classification files, the error, and the numbers that describe a file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.datasets import check, read, sparse
from multilab.datasets.characteristics import data_digest, describe
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import find_format

X = np.array([[1, 0, 2.5], [0, 0, -1], [3, 4, 0], [0, 1, 1]])
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.uint8)


@pytest.fixture
def write(tmp_path):
    def _write(content, name):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8", newline="")
        return path

    return _write


def refused(reason, path, **options):
    with pytest.raises(DatasetError) as caught:
        read(path, **options)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


# ---- the error ----


def test_error_is_one_line_and_survives_pickling():
    error = DatasetError("two\nlines", "a/b.arff", 7)
    assert str(error) == "a/b.arff:7: two lines"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.line) == (str(error), "a/b.arff", 7)
    assert str(DatasetError("reason", "p")) == "p: reason"
    assert str(DatasetError("reason")) == "reason"


# ---- svmlight ----


def test_svmlight(write):
    text = "# a comment\n1,3 1:0.5 4:-2 # the end\n\n 2:1\n3:7\n2\t1:1e-3\n2\n"
    raw = read(write(text, "set.svm"))
    assert raw.X.toarray().tolist() == [
        [0.5, 0, 0, -2],
        [0, 1, 0, 0],
        [0, 0, 7, 0],
        [0.001, 0, 0, 0],
        [0] * 4,
    ]
    assert raw.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0]]
    assert raw.label_names == ["1", "2", "3"]
    assert raw.feature_names == ["f1", "f2", "f3", "f4"]
    assert raw.X.has_sorted_indices


def test_svmlight_zero_based_unsorted_and_given_sizes(write):
    path = write("0 3:1 0:2 1:0\n2 1:5\n", "set.libsvm")
    raw = read(path)
    assert raw.X.toarray().tolist() == [[2, 0, 0, 1], [0, 5, 0, 0]]
    assert raw.X.nnz == 3  # a written zero is not stored
    assert raw.label_names == ["0", "1", "2"]
    raw = read(path, label_names=list("abcde"), n_features=9)
    assert raw.X.shape == (2, 9)
    assert raw.Y.shape == (2, 5)
    part = write("2 1:5\n", "part.libsvm")
    raw = read(part, label_names=list("abcde"), n_features=9, first_feature=0, first_label=0)
    assert raw.Y.tolist() == [[0, 0, 1, 0, 0]]
    assert raw.X.toarray()[0].tolist() == [0, 5, 0, 0, 0, 0, 0, 0, 0]
    refused(":2: label index 2 is not among the 2 from 0 to 1", path, label_names=["a", "b"])
    refused(":1: feature index 3 is not among the 3 from 0 to 2", path, n_features=3)
    refused(":1: feature index 0 is not among the 9 from 1 to 9", path, n_features=9, first_feature=1)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("1 1:1\n\n+1 1:2\n", 3, "'+1' is not a label index"),
        ("1 1:1\n1,,2 1:2\n", 2, "'' is not a label index"),
        ("1 1:1\n1 x:2\n", 2, "'x' is not a feature index"),
        ("1 1:1\n1 qid:2 1:1\n", 2, "'qid' is not a feature index"),
        ("1 1:1\n1 2\n", 2, "'2' is not of the form index:value"),
        ("1 1:1\n1 2:\n", 2, "'' is not a finite number"),
        ("1 1:1\n1 2:3:4\n", 2, "'3:4' is not a finite number"),
        ("1 1:1\n1 2:nan\n", 2, "'nan' is not a finite number"),
        ("1 1:1\n1 2:1 3:0 2:2\n", 2, "feature index 2 is given twice"),
        ("1 1:1\n1 " + "9" * 5000 + ":1\n", 2, "is beyond any limit"),
    ],
)
def test_svmlight_fault_names_its_line(write, text, line, reason):
    path = write(text, "set.svmlight")
    with pytest.raises(DatasetError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)


def test_rows_that_pandas_reads_are_those_of_the_careful_reader(write, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)) * 10.0 ** rng.integers(-300, 300, (200, 30)) * (rng.random((200, 30)) < 0.3)
    rows = []
    for row in X:
        entries = [f"{j}:{float(row[j])!r}" for j in rng.permutation(30).tolist() if row[j] or rng.random() < 0.1]
        rows.append(",".join(map(str, rng.integers(0, 5, rng.integers(0, 3)))) + " " + " ".join(entries))
    path = write("\n".join([*rows, "0,4 0:1 29:1 # the end"]), "set.svm")
    plain = read(path)
    np.testing.assert_array_equal(plain.X.toarray()[:200], X)
    monkeypatch.setattr(sparse, "_plain_entries", lambda *_: None)
    careful = read(path)
    np.testing.assert_array_equal(careful.X.toarray(), plain.X.toarray())
    np.testing.assert_array_equal(careful.Y, plain.Y)


def test_svmlight_absurd_sizes(write):
    refused("1000000000002 columns, more than the limit", write("1 1:1\n2 1000000000000:1\n", "a.svm"))
    refused("columns, more than the limit", write("1000000000000 1:1\n", "a.svm"))
    refused("no row has a label", write(" 1:1\n", "a.svm"))
    refused("no row has a feature", write("1\n", "a.svm"))
    refused("the file has no row", write("# only a comment\n", "a.svm"))


# ---- Extreme Classification repository ----


def test_xc(write):
    text = "4 3 2\n0,1 0:1 2:0.5\n 1:4\n\n1 2:1\n\n"
    raw = read(write(text, "set.txt"))
    assert raw.X.toarray().tolist() == [[1, 0, 0.5], [0, 4, 0], [0, 0, 0], [0, 0, 1]]
    assert raw.Y.tolist() == [[1, 1], [0, 0], [0, 0], [0, 1]]
    assert raw.label_names == ["0", "1"]
    assert read(write(text, "set.txt"), label_names=["a", "b"]).label_names == ["a", "b"]
    refused("expected 2 label names, got 3", write(text, "set.txt"), label_names=["a", "b", "c"])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("2 3\n0 0:1\n1 1:1\n", 1, "expected the numbers of rows, features and labels"),
        ("2 3 -2\n0 0:1\n1 1:1\n", 1, "expected the numbers"),
        ("0 3 2\n", 1, "0 rows, 3 features and 2 labels"),
        ("3 3 2\n0 0:1\n1 1:1\n", 1, "the header declares 3 rows; the file has 2"),
        ("1 3 2\n0 0:1\n1 1:1\n", 1, "the header declares 1 rows; the file has 2"),
        ("2 3 2\n0 0:1\n2 1:1\n", 3, "label index 2 is not among the 2 from 0 to 1"),
        ("2 3 2\n0 0:1\n1 3:1\n", 3, "feature index 3 is not among the 3 from 0 to 2"),
        ("2 3 2\n0 0:1\n1 1:x\n", 3, "'x' is not a finite number"),
        ("1000000000000 3 2\n0 0:1\n", 1, "the header declares 1000000000000 rows"),
        ("1 1000000000000 2\n0 0:1\n", 1, "columns; the limit is"),
        ("1 3 1000000000000\n0 0:1\n", 1, "columns; the limit is"),
    ],
)
def test_xc_fault_names_its_line(write, text, line, reason):
    path = write(text, "set.txt")
    refused(f"{path}:{line}: ", path)
    refused(reason, path)


def test_xc_dense_labels_are_bounded(write):
    text = "100 3 1000\n" + "0 0:1\n" * 100
    refused("the label matrix would have 100 x 1000", write(text, "a.txt"), limits=Limits(max_cells=10_000))


# ---- description ----


def raw(X=X, Y=Y, **changes):
    names = {"feature_names": ["x", "y", "z"], "label_names": ["a", "b"], "original_features": 2}
    return RawData(X, Y, **{**names, **changes})


def test_describe():
    counts = describe(raw(Y=np.array([[1, 0], [1, 0], [0, 0], [1, 0]], dtype=np.uint8), nominal_features=1))
    digest = counts.pop("digest")
    assert counts == {
        "instances": 4,
        "features": 2,
        "columns": 3,
        "labels": 2,
        "cardinality": 0.75,
        "density": 0.375,
        "distinct_label_sets": 2,
        "rows_without_label": 1,
        "labels_never_set": 1,
        "unobserved_labels": 0,
        "missing_values": 0,
        "nominal_features": 1,
        "sparse": False,
        "id_like": [],
        "notes": [],
    }
    assert len(digest) == 64


def test_distinct_label_sets_beyond_a_byte():
    labels = np.zeros((3, 20), dtype=np.uint8)
    labels[1, 17] = labels[2, 18] = 1
    assert describe(raw(Y=labels))["distinct_label_sets"] == 3


def test_digest_is_of_the_content_alone():
    names = ["x", "y", "z"], ["a", "b"]
    dense = data_digest(X, Y, *names)
    assert data_digest(np.asfortranarray(X), np.asfortranarray(Y.astype(int)), *names) == dense
    assert data_digest(np.where(X == 0, -0.0, X), Y, *names) == dense
    csr = sp.csr_matrix(X)
    sparse = data_digest(csr, Y, *names)
    loose = sp.csr_array(
        (
            np.r_[csr.data[1::-1], csr.data[2:], 0.0],
            np.r_[csr.indices[1::-1], csr.indices[2:], 0],
            [0, 2, 3, 5, 8],
        ),
        shape=X.shape,
    )
    before = loose.data.copy()
    assert data_digest(loose, Y, *names) == sparse
    np.testing.assert_array_equal(loose.data, before)  # the caller's matrix is left as it was
    others = {
        sparse,
        data_digest(X + np.eye(4, 3) * 1e-12, Y, *names),
        data_digest(X, 1 - Y, *names),
        data_digest(X.reshape(3, 4), Y, *names),
        data_digest(X, Y, ["x", "y", "w"], names[1]),
        data_digest(X, Y, names[0], ["b", "a"]),
        data_digest(X[::-1], Y[::-1], *names),
    }
    assert len(others) == 7
    assert dense not in others


def test_find_format_and_check(write):
    assert find_format("a/b.ARFF.gz") == "arff"
    assert find_format("a/b.txt") == "xc"
    path = write("1 1 1\n0 0:2\n", "odd.name")
    counts = check(path, format="xc", labels_xml=None)
    assert (counts["path"], counts["format"], counts["label_names"], counts["sparse"]) == (
        str(path),
        "xc",
        ["0"],
        True,
    )
