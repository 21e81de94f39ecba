"""ARFF and its XML: small files of every kind, and the ways to say which columns are labels."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.readers_samples import DENSE, XML, card_content, content, numeric
from multilab.datasets import check, plan_reading, read
from multilab.datasets.arff import unquote
from multilab.datasets.columns import to_number
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import plain_name
from multilab.datasets.options import reading_of
from multilab.datasets.reading import raw_content


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "small.arff") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def test_dense_file_with_everything(write):
    raw = card_content(write(DENSE))
    assert raw.label_names == ["sun", "rain's end"]
    assert raw.feature_names == [
        "height",
        'wind "x"=weak',
        'wind "x"=very strong',
        'wind "x"=none',
        "dry",
        "month",
    ]
    assert raw.Y.dtype == np.uint8
    assert raw.Y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert raw.X.tolist() == [[1.5, 1, 0, 0, 1, 3], [-0.2, 0, 1, 0, 0, 12], [0.25, 0, 0, 1, 1, 1]]
    assert (raw.original_features, raw.nominal_features, raw.missing_values) == (4, 2, 0)
    assert raw.X.flags.c_contiguous
    assert raw.Y.flags.c_contiguous


def test_dense_file_with_everything_is_a_table(write):
    path = write(DENSE)
    raw, data = content(path), read(path)
    assert (raw.original_features, raw.nominal_features, raw.missing_values) == (4, 2, 0)
    assert list(raw.X) == data.feature_names == ["height", 'wind "x"', "dry", "month"]
    assert data.label_names == ["sun", "rain's end"]
    assert data.Y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert data.X['wind "x"'].tolist() == ["weak", "very strong", "none"]
    assert data.X["dry"].dtype == np.float64  # the values 1 and 0 are numbers
    assert data.X[["height", "dry", "month"]].to_numpy().tolist() == [[1.5, 1, 3], [-0.2, 0, 12], [0.25, 1, 1]]
    kinds = {name: str(kind) for name, kind in data.kinds.items()}
    assert kinds == {"height": "number", 'wind "x"': "category", "dry": "number", "month": "number"}


def test_nominal_attributes_of_digits_are_categories(write):
    text = numeric("1,0,1,2,20\n0,1,1,2,3\n1,1,1,2,'1,234'\n").replace("{a,b,c}", "{3,20,'1,234'}")
    for body in (text, text.replace("'1,234'", "4")):
        data = read(write(body))
        assert {name: str(kind) for name, kind in data.kinds.items()} == {"x": "number", "y": "number", "z": "category"}
        assert data.X["z"].tolist()[:2] == ["20", "3"]
    path = write(body.replace("y numeric", "y {1,2}").replace(",1,2,", ",1,?,"))  # y has no value
    assert str(read(path, columns={"z": "number"}).kinds["z"]) == "number"
    plan = plan_reading(path)
    assert (plan.reader["columns"], plan.reader["drop"]) == ({"x": "number", "z": "category"}, ["y"])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda b: b])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_compression_and_line_ends_change_nothing(write, pack, ends):
    raw = read(write(pack(DENSE.replace("\n", ends).encode()), "other.arff"))
    assert raw.X.equals(read(write(DENSE)).X)
    assert raw.label_names == ["sun", "rain's end"]


def test_latin_1_and_byte_order_mark(write):
    text = "@relation 'r: -C 1'\n@attribute café {0,1}\n@attribute x numeric\n@data\n1,2\n"
    assert read(write(text.encode("latin-1"))).label_names == ["café"]
    assert read(write(text.encode("utf-8-sig"))).label_names == ["café"]


def test_negative_c_means_the_last_columns(write):
    text = "@relation 'r: -C -1'\n@attribute x numeric\n@attribute y numeric\n@attribute l {0,1}\n@data\n1,2,1\n"
    raw = read(write(text))
    assert raw.label_names == ["l"]
    assert raw.feature_names == ["x", "y"]


def test_xml_beats_c_and_columns_give_the_order(write):
    text = (
        "@relation 'r: -C 1'\n@attribute x numeric\n@attribute 'rain\\'s end' {0,1}\n@attribute hail {0,1}\n"
        "@attribute y numeric\n@attribute sun {0,1}\n@data\n5,1,0,6,0\n"
    )
    raw = read(write(text), labels_xml=write(XML, "small.xml"))
    assert raw.label_names == ["rain's end", "hail", "sun"]  # the XML says sun, hail, rain's end
    assert raw.Y.tolist() == [[1, 0, 0]]
    assert raw.X.tolist() == [[5, 6]]
    assert check(write(text))["label_names"] == raw.label_names  # small.xml is next to small.arff
    assert check(write(text, "small-train.arff"))["labels"] == 3
    with pytest.raises(DatasetError, match=":8: non-binary label: 'x' is 5"):
        check(write(text, "elsewhere.arff"))  # no XML there: -C 1 counts


def test_c_left_over_from_a_filter_is_refused(write):
    text = numeric("1,0,1,2,a\n", relation="r: -C 2-weka.filters.unsupervised.attribute.Reorder")
    with pytest.raises(DatasetError, match="not reliable"):
        read(write(text))
    assert read(write(text), labels_first=2).Y.tolist() == [[1, 0]]


def test_omitted_entry_of_a_sparse_row_is_the_first_declared_value(write):
    text = (
        "@relation 'r: -C 2'\n@attribute l {0,1}\n@attribute m {1,0}\n@attribute c {red,green,blue}\n"
        "@attribute b {1,0}\n@attribute n {3,5}\n@attribute x numeric\n@data\n"
        "{}\n{0 1,1 0,2 green,3 0,4 5,5 2.5}\n{2 'blue', 5 0}\n{ 4 5 }\n"
    )
    raw = read(write(text))
    assert sp.issparse(raw.X)
    assert raw.feature_names == ["c=red", "c=green", "c=blue", "b", "n=3", "n=5", "x"]
    assert raw.X.toarray().tolist() == [
        [1, 0, 0, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 2.5],
        [0, 0, 1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0, 1, 0],
    ]
    assert raw.Y.tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert raw.X.has_sorted_indices
    assert (raw.X.data != 0).all()
    assert raw.X.indices.dtype == np.int32


def test_sparse_and_dense_rows_say_the_same(write):
    rng = np.random.default_rng(3)
    table = np.where(rng.random((20, 6)) < 0.4, rng.integers(-5, 6, (20, 6)) / 4, 0)
    table[:, :2] = table[:, :2] != 0
    head = "@relation 'r: -C 2'\n" + "".join(f"@attribute a{j} numeric\n" for j in range(6)) + "@data\n"
    dense = read(write(head + "\n".join(",".join(map(str, row)) for row in table)))
    rows = ["{" + ",".join(f"{j} {row[j]}" for j in np.flatnonzero(row)) + "}" for row in table]
    sparse = read(write(head + "\n".join(rows)))
    np.testing.assert_array_equal(dense.X, sparse.X.toarray())
    np.testing.assert_array_equal(dense.Y, sparse.Y)


def test_missing_feature_values_are_counted_and_kept_in_a_table(write):
    path = write(numeric("1,0,?,2,?\n0,1,3,4,b\n"))
    assert content(path).missing_values == check(path)["missing_values"] == 2
    X = read(path).X
    assert X["x"].isna().tolist() == X["z"].isna().tolist() == [True, False]
    assert (X["x"][1], X["z"][1], X["y"].tolist()) == (3, "b", [2, 4])


def test_missing_feature_values_of_a_matrix_are_refused(write):
    dense, sparse = write(numeric("1,0,?,2,?\n0,1,3,4,b\n")), write(numeric("{0 1,2 ?}\n{1 1,4 ?}\n"), "sparse.arff")
    for path, reader in ((dense, card_content), (sparse, card_content), (sparse, read), (sparse, check)):
        with pytest.raises(DatasetError, match=r"2 feature values .* row 1, feature 'x'"):
            reader(path)
    for path, rows in ((dense, [[True, False, True, True, True], [False] * 5]),
                       (sparse, [[True, False, False, False, False], [False] * 2 + [True] * 3])):  # fmt: skip
        raw = raw_content(path, reading_of({}), encode=True)
        X = raw.X.toarray() if sp.issparse(raw.X) else raw.X
        assert raw.missing_values == 2
        assert np.isnan(X).tolist() == rows


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"labels_first": 0}, "0 label columns requested, the file has 5 columns"),
        ({"labels_last": 5}, "5 label columns requested"),
        ({"labels_first": 1, "labels_last": 1}, "labels_first and labels_last given"),
        ({"label_columns": "l1,nothing"}, "label 'nothing' is not a column"),
        ({"label_columns": ["l1", "l2", "x", "y", "z"]}, "no feature is left"),
        ({"label_prefix": "q"}, "no column is a label by label_prefix"),
        ({"format": "sas"}, "format .*'sas'"),
    ],
)
def test_label_options_that_do_not_fit(write, options, reason):
    with pytest.raises(DatasetError, match=reason):
        read(write(numeric("1,0,1,2,a\n")), **options)


def test_label_options_that_fit(write):
    path = write(numeric("1,0,1,2,a\n0,1,1,2,b\n"))
    names = write("l2\n\nl1\n", "names.txt")
    for options in (
        {"label_prefix": "l"},
        {"label_columns": "l2, l1"},
        {"label_columns": names},
        {"label_names": ["l1", "l2"]},
    ):
        assert read(path, **options).Y.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DatasetError, match=r"names.txt:2: the name on this line is not a column"):
        read(path, label_columns=write("l2\nl3\n", "names.txt"))


def test_nothing_says_which_are_the_labels(write):
    with pytest.raises(DatasetError, match="the label attributes are unknown"):
        read(write(numeric("1,0,1,2,a\n", relation="r")))


def test_plain_name():
    assert plain_name("a/scene-train.arff.XZ") == ("scene-train", ".arff")
    assert plain_name("b.Mat") == ("b", ".mat")
    assert plain_name("v1.2.csv.gz") == ("v1.2", ".csv")


def test_to_number():
    assert [to_number(t) for t in ("1", "-2.5e-3", ".5", "+7.", "0")] == [1, -0.0025, 0.5, 7, 0]
    refused = ("", " 1", "1 ", "1_0", "nan", "-inf", "1e999", "\u0661", "0x1", "a")
    assert np.isnan([to_number(t) for t in refused]).all()


def test_unquote():
    assert unquote(r"'Swainson\'s'") == "Swainson's"
    assert unquote(r"'a\tb\\nA\%'") == "a\tb\\nA%"
    assert unquote("plain\\'s") == "plain\\'s"
