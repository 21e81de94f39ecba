"""MATLAB, CSV and Parquet files."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from helpers.readers_samples import content as raw_content
from helpers.readers_samples import mat_element, mat_file, mat_variable
from multilab.datasets import check, read
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits

X = np.array([[1, 0, 2.5], [0, 0, -1], [3, 4, 0], [0, 1, 1]])
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.uint8)


@pytest.fixture
def write(tmp_path):
    def _write(content, name):
        path = tmp_path / name
        if isinstance(content, dict):
            scipy.io.savemat(path, content, do_compression=True)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def refused(reason, path, **options):
    with pytest.raises(DatasetError) as caught:
        read(path, **options)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


# ---- MATLAB ----


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_mat_data_and_target(write, signed, transposed, sparse):
    targets = Y.astype(np.int16) * 2 - 1 if signed else Y
    targets = targets.T if transposed else targets
    content = {"data": sp.csc_matrix(X) if sparse else X, "target": targets, "name": "something"}
    raw = read(write(content, "set.mat"), label_names=["a", "b"])
    assert sp.issparse(raw.X) == sparse
    np.testing.assert_array_equal(raw.X.toarray() if sparse else raw.X, X)
    np.testing.assert_array_equal(raw.Y, Y)
    assert raw.Y.flags.c_contiguous
    assert raw.feature_names == ["f1", "f2", "f3"]
    assert raw.label_names == ["a", "b"]
    assert not raw.splits


def test_mat_train_before_test(write):
    content = {"test_data": X[3:], "test_target": Y[3:].T, "train_data": X[:3], "train_target": Y[:3].T}
    raw = read(write(content, "set.mat"))
    np.testing.assert_array_equal(raw.X, X)
    np.testing.assert_array_equal(raw.Y, Y)
    assert [part.tolist() for part in raw.splits["official"]] == [[0, 1, 2], [3]]
    assert raw.label_names == ["label1", "label2"]


def test_mat_with_other_names_and_square_targets(write):
    path = write({"A": X[:2], "B": np.array([[1, 1], [0, 0]])}, "set.mat")
    refused("no variable data and target", path)
    refused("no variable C", path, keys={"data": "A", "target": "C"})
    keys = {"data": "A", "target": "B"}
    refused("B is square", path, keys=keys)
    assert read(path, keys={**keys, "orientation": "labels x instances"}).Y.tolist() == [[1, 0], [1, 0]]
    assert read(path, keys={**keys, "orientation": "instances x labels"}).Y.tolist() == [[1, 1], [0, 0]]
    refused("orientation 'sideways'", path, keys={**keys, "orientation": "sideways"})
    refused("unknown key 'labels'", path, keys={"data": "A", "labels": "B"})
    refused("data without target", path, keys={"data": "A"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"data": X, "target": Y * 2}, "non-binary label: label 1 of row 1 is 2"),
        ({"data": X, "target": np.where(Y, 1, [[0, -1]] * 4)}, "non-binary label: label 1 of row 2 is 0"),
        ({"data": X, "target": np.where(Y, 1, np.nan)}, "label 2 of row 1"),
        ({"data": X, "target": Y[:3]}, "target has the shape (3, 2), which does not fit 4 rows"),
        ({"data": np.where(X == 2.5, np.inf, X), "target": Y}, "infinite values"),
        ({"data": X * 1j, "target": Y}, "data is not a matrix of real numbers"),
        ({"data": np.array([["a"]], dtype=object), "target": Y}, "data is not a matrix of real numbers"),
        ({"data": "text", "target": Y}, "data is not a matrix of real numbers"),
        ({"data": {"field": X}, "target": Y}, "data is not a matrix of real numbers"),
        ({"data": np.zeros((0, 3)), "target": Y}, "data has the shape"),
        ({"data": np.zeros((4, 3, 2)), "target": Y}, "data has the shape (4, 3, 2)"),
        ({"data": X, "target": Y, "train_data": X, "train_target": Y}, "both data and train_data"),
        (
            {"train_data": X, "train_target": Y, "test_data": X[:, :2], "test_target": Y},
            "the training and the test set differ",
        ),
    ],
)
def test_mat_that_cannot_be_used(write, content, reason):
    refused(reason, write(content, "set.mat"))


def test_mat_label_names_and_missing_values(write):
    path = write({"data": np.where(X == 0, np.nan, X), "target": Y}, "set.mat")
    refused("expected 2 label names, got 3", path, label_names=["a", "b", "c"])
    refused("5 feature values are missing, the first in row 1, feature 'f2'", path)
    assert raw_content(path).missing_values == 5
    with pytest.raises(DatasetError, match="5 feature values are missing"):
        check(path)
    refused("the format 'mat' has no option labels_first", path, labels_first=1)


def test_mat_damaged_or_absurd(write):
    good = write({"data": X, "target": Y}, "set.mat").read_bytes()
    refused("not a readable MATLAB file", write(good[:200], "set.mat"))
    refused("not a readable MATLAB file", write(b"not MATLAB" * 30, "set.mat"))
    header = b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM"
    refused("MATLAB 7.3", write(header + b"\x89HDF\r\n\x1a\n" + bytes(600), "set.mat"))
    refused("variable data would have 4 x 3 entries", write(good, "set.mat"), limits=Limits(max_cells=11))
    sparse = write({"data": sp.csc_matrix(X), "target": Y}, "set.mat")
    assert read(sparse, limits=Limits(max_cells=11)).X.nnz == np.count_nonzero(X)  # no dense matrix of features


TYPES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9, "i8": 12, "u8": 13}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", TYPES)
def test_mat_is_read_as_scipy_reads_it(write, order, dtype):
    """Every type of numbers in both byte orders: plain, compressed, sparse, and of one value, which is in its tag."""
    values = np.array([[1, 0, 7], [0, 0, 2], [3, 4, 0], [0, 1, 100]], dtype=order + dtype)
    columns = sp.csc_array(values.astype(float))
    indices = [(5, array.astype(order + "i4").tobytes()) for array in (columns.indices, columns.indptr)]
    stored = (TYPES[dtype], columns.data.astype(order + dtype).tobytes())
    target = mat_variable("target", 6, Y.shape, (2, Y.tobytes("F")), order=order)
    plain = mat_variable("data", 6, values.shape, (TYPES[dtype], values.tobytes("F")), order=order)
    sparse = mat_variable("data", 5, values.shape, *indices, stored, order=order, nonzero=columns.nnz)
    for name, content in {
        "plain": mat_file(plain, target, order=order),
        "compressed": mat_file(mat_element(15, zlib.compress(plain), order), target, order=order),
        "sparse": mat_file(mat_element(15, zlib.compress(target), order), sparse, order=order),
        "small": mat_file(
            mat_variable("data", 6, (1, 1), (TYPES[dtype], np.array(9, order + dtype).tobytes()), order=order),
            mat_variable("target", 6, (1, 3), (1, np.array([1, -1, 1], "i1").tobytes()), order=order),
            order=order,
        ),
    }.items():
        raw, expected = read(write(content, f"{name}.mat")), scipy.io.loadmat(io.BytesIO(content))
        np.testing.assert_array_equal(
            *(m.toarray() if sp.issparse(m) else m for m in (raw.X, expected["data"])), err_msg=name
        )
        np.testing.assert_array_equal(raw.Y, expected["target"] == 1, err_msg=name)


def test_mat_object_of_a_class_is_skipped(write):
    """An object, as MATLAB stores its tables and dates, has no dimensions, and names of its class follow its name."""
    flags = mat_element(6, struct.pack("<II", 17, 0))
    names = b"".join(mat_element(1, text) for text in (b"visits", b"MCOS", b"table"))
    content = mat_file(mat_element(14, flags + names), mat_variable("data", 6, (1, 1), (9, bytes(8))))
    raw = read(write(content + mat_variable("target", 6, (1, 2), (2, b"\1\0")), "set.mat"))
    assert (raw.X.tolist(), raw.Y.tolist()) == ([[0]], [[1, 0]])
    keys = {"data": "visits", "target": "target"}
    refused(
        "visits is not a matrix", write(content + mat_variable("target", 6, (1, 2), (2, b"\1\0")), "o.mat"), keys=keys
    )


def test_mat_entries_that_overflow_together(write):
    """Entries of one cell are added up: two finite numbers may make an infinite one."""
    values = (9, np.full(2, 1.7e308).tobytes())
    data = mat_variable("data", 5, (2, 1), (5, bytes(8)), (5, np.array([0, 2], "<i4").tobytes()), values, nonzero=2)
    refused("infinite values", write(mat_file(data, mat_variable("target", 6, (2, 1), (2, b"\0\1"))), "set.mat"))


def test_mat_that_announces_more_than_it_has(write):
    """A few bytes announce a matrix of 10^12 entries: refused by that shape, before anything is read."""
    data = mat_element(15, zlib.compress(mat_variable("data", 6, (10**6, 10**6), (9, bytes(8)))))
    target = mat_variable("target", 6, Y.shape, (2, Y.tobytes("F")))
    refused("1000000 x 1000000 entries", write(mat_file(data, target), "set.mat"))


def test_mat_with_more_than_is_read(write):
    """What would be left out without a word is refused: an imaginary part, a second variable in one element."""
    target = mat_variable("target", 6, Y.shape, (2, Y.tobytes("F")))
    real = (9, X.astype("<f8").tobytes("F"))
    data = mat_variable("data", 6, X.shape, real)
    np.testing.assert_array_equal(read(write(mat_file(data, target), "set.mat")).X, X)
    refused(
        "not a readable MATLAB file", write(mat_file(mat_variable("data", 6, X.shape, real, real), target), "set.mat")
    )
    refused("not a readable MATLAB file", write(mat_file(mat_element(15, zlib.compress(data + target))), "set.mat"))
    columns = [(5, np.array(part, "<i4").tobytes()) for part in ([0, 1], [0, 1, 2, 2])]
    for further in ([], [(9, np.ones(2).tobytes())]):
        parts = [*columns, (9, np.array([1.0, 2]).tobytes()), *further]
        path = write(mat_file(mat_variable("data", 5, (4, 3), *parts, nonzero=2), target), "set.mat")
        if further:
            refused("not a readable MATLAB file", path)
        else:
            np.testing.assert_array_equal(read(path).X.toarray()[:2], [[1, 0, 0], [0, 2, 0]])


def test_mat_bomb_inside(write):
    """The variable named is small, another one of 8 MB of zeros is packed into some kilobytes."""
    path = write({"data": X, "target": Y, "other": np.zeros((1000, 1000))}, "set.mat")
    assert path.stat().st_size < 20_000
    assert read(path).X.shape == (4, 3)
    refused("larger than the limit of 1000000 bytes", path, limits=Limits(max_bytes=1_000_000))


# ---- CSV ----

CSV = 'height,"wind, east",sun,rain\n1,0,1,0\n\n-2.5,1e3,0,1\n'


def test_csv(write):
    path = write(CSV, "set.csv")
    names = write("sun\nrain\n", "names.txt")
    for options in (
        {"labels_last": 2},
        {"label_columns": ["rain", "sun"]},
        {"label_columns": "sun,rain"},
        {"label_columns": names},
        {"label_names": ["sun", "rain"]},
    ):
        raw = read(path, **options)
        assert raw.X.to_numpy().tolist() == [[1, 0], [-2.5, 1000]]
        assert raw.Y.tolist() == [[1, 0], [0, 1]]
        assert raw.feature_names == ["height", "wind, east"]
        assert raw.label_names == ["sun", "rain"]
    assert read(write("L:a;x;L:b\n1;2;0\n", "set.csv"), label_prefix="L:").label_names == ["L:a", "L:b"]
    assert read(write("a\tx\n1\t2\n", "set.tsv"), labels_first=1).X["x"].tolist() == [2]


def test_csv_quoted_numbers_and_line_breaks_in_names(write):
    raw = read(write('"a\nb",x\n"1","2.5"\n', "set.csv"), labels_first=1)
    assert raw.X["x"].tolist() == [2.5]
    assert raw.label_names == ["a\nb"]
    refused(":4: non-binary label: 'x' is 2.5.1", write('"a\nb",x\n1,1\n"1","2.5.1"\n', "set.csv"), labels_last=1)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x,y,l\n1,2,1\n1,2\n", 3, "2 fields, expected 3"),
        ("x,y,l\n1,2,1\n\n1,2,3,1\n", 4, "4 fields, expected 3"),
        ("x,y,l\n1,2,1\n1,2,2\n", 3, "non-binary label: 'l' is 2"),
        ("x,y,l\n1,2,0\n1,2,\n", 3, "label 'l' is missing"),
        ("x,y,l\n1,2,0\n1,2,?\n", 3, "label 'l' is missing"),
        ("x,y,x\n1,2,1\n", 1, "column 'x' occurs twice"),
        ("x,,l\n1,2,1\n", 1, "column 2 has no name"),
        ("x,y,l\n", 1, "no row follows"),
        ('x,y,l\n1,2,1\n1,"2,1\n', 3, "not readable as CSV"),
    ],
)
def test_csv_fault_names_its_line(write, text, line, reason):
    path = write(text, "set.csv")
    refused(f"{path}:{line}: {reason}", path, labels_last=1)


def test_csv_cells_that_are_no_numbers(write):
    path = write("x,y,l\n1,2,1\n3,inf,0\nwet,5,1\n", "set.csv")
    with pytest.raises(DatasetError, match=r"set\.csv: .*'x'.*'wet' in row 3.*'y'.*'inf' in row 2"):
        read(path, labels_last=1)
    raw = read(path, labels_last=1, columns={"x": "number", "y": "category"})
    assert raw.X["x"].tolist() == ["1", "3", "wet"]  # the encoder reads the numbers
    assert raw.X["y"].tolist() == ["2", "inf", "5"]
    assert check(path, labels_last=1, columns={"x": "number", "y": "category"})["notes"] == [
        "cells that cannot be read count as missing: 'x' (1)"
    ]
    raw = read(write("x,y,l\n1,-Infinity,1\n", "set.csv"), labels_last=1)
    assert (raw.X["y"].tolist(), str(raw.kinds["y"])) == (["-Infinity"], "category")


def test_csv_missing_values(write):
    path = write("x,y,l\n?,2,1\n,NA,0\n", "set.csv")
    assert check(path, labels_last=1)["missing_values"] == 3
    assert read(path, labels_last=1).X.isna().to_numpy().tolist() == [[True, False], [True, True]]
    with pytest.raises(DatasetError, match="no option given to choose the label columns"):
        check(path)


# ---- Parquet ----


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "set.parquet"

    def table(**columns):
        parquet.write_table(pa.table(columns), path)
        return path

    good = {"x": pa.array([1.5, 2]), "n": pa.array([3, 4], pa.int8()), "l_a": [True, False], "l_b": [0, 1]}
    raw = read(table(**good), label_prefix="l_")
    assert raw.X.to_numpy().tolist() == [[1.5, 3], [2, 4]]
    assert (raw.X.dtypes == np.float64).all()
    assert raw.Y.tolist() == [[1, 0], [0, 1]]
    assert raw.feature_names == ["x", "n"]
    assert raw.label_names == ["l_a", "l_b"]
    assert check(table(**{**good, "x": [None, 1]}), label_prefix="l_")["missing_values"] == 1
    assert read(table(**{**good, "x": ["b", "a"]}), label_prefix="l_").X["x"].tolist() == ["b", "a"]
    for column, values, reason in (
        ("x", [b"a", b"b"], "column 'x' is of type binary"),
        ("x", [1.0, np.inf], "column 'x' has an infinite value in row 2"),
        ("l_b", [1, 2], "row 2: non-binary label: 'l_b' is 2"),
        ("l_b", [None, 0], "row 1: label 'l_b' is missing"),
    ):
        refused(reason, table(**{**good, column: values}), label_prefix="l_")
    refused("the table would have 2 x 4 entries", table(**good), label_prefix="l_", limits=Limits(max_cells=7))
    refused("the table has no row", table(x=pa.array([], pa.float64()), l=pa.array([], pa.int8())), labels_last=1)
    content = table(**good).read_bytes()
    for damaged in (content[:-20], b"PAR1 nothing of the kind PAR1"):
        path.write_bytes(damaged)
        refused("not a readable Parquet file", path, label_prefix="l_")
