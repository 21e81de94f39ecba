"""`read_frames`: the raw table of each format, and that its encoding is the matrix of `read`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from multilab.datasets import DatasetError, read, read_frames

CSV = "tempo,key,flag,happy,sad\n120,C,true,1,0\n,D,false,0,1\n90,,true,1,1\n60,C,,0,0\n"


def encoded(features: pd.DataFrame) -> np.ndarray:
    """Return the table as the documentation describes the encoding: a column per category, numbers as they are."""
    columns = []
    for name in features:
        column = features[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            present = np.where(column.isna(), np.nan, 1.0)
            columns += [present * (column == category).to_numpy() for category in column.cat.categories]
        else:
            columns.append(column.to_numpy(dtype=float))
    return np.column_stack(columns)


def same(path, **options):
    table = read_frames(path, **options)
    text = {"text": "one_hot"} if path.suffix in (".csv", ".parquet") else {}
    raw = read(path, **options, **text, missing="keep")
    X, Y = (matrix.toarray() if sp.issparse(matrix) else matrix for matrix in (raw.X, raw.Y))
    np.testing.assert_array_equal(encoded(table.features), X)
    np.testing.assert_array_equal(table.labels.to_numpy(), Y)
    assert list(table.labels) == raw.label_names
    assert len(table.features.columns) == raw.original_features
    return table


def test_csv_with_text_and_holes(tmp_path):
    path = tmp_path / "songs.csv"
    path.write_text(CSV)
    table = same(path, labels_last=2, drop="flag")
    assert table.features["key"].tolist()[:2] == ["C", "D"]
    assert table.features["key"].isna().tolist() == [False, False, True, False]
    assert table.notes == ("left out as requested: 'flag'",)


def test_parquet_equals_csv(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "songs.parquet"
    (tmp_path / "songs.csv").write_text(CSV)
    pd.read_csv(tmp_path / "songs.csv").astype({"flag": "boolean"}).to_parquet(path, index=False)
    pd.testing.assert_frame_equal(
        same(path, labels_last=2).features, read_frames(tmp_path / "songs.csv", labels_last=2).features
    )


@pytest.mark.parametrize("rows", ["1,red,1,a,1\n?,blue,0,?,0\n3,?,1,b,1\n", "{0 1,2 1}\n{1 blue,3 b,4 1}\n{0 ?}\n"])
def test_arff_dense_and_sparse(rows, tmp_path):
    path = tmp_path / "things.arff"
    header = ["x numeric", "colour {red,blue}", "on {0,1}", "kind {a,b}", "y {0,1}"]
    path.write_text("@relation r\n" + "".join(f"@attribute {line}\n" for line in header) + f"@data\n{rows}")
    table = same(path, labels_last=1)
    assert table.features.dtypes.map(lambda kind: isinstance(kind, pd.CategoricalDtype)).tolist() == [0, 1, 0, 1]


def test_sparse_rows_without_named_columns(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("0,2 1:0.5 3:1\n1 2:2\n")
    assert same(path).features.shape == (2, 3)


def test_rows_without_labels_and_columns_that_are_text(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("code,size\n01,3\n10,4\n")
    table = read_frames(path, labelled=False, text_columns=["size"])
    assert table.features["size"].tolist() == ["3", "4"]
    assert table.features["code"].tolist() == ["01", "10"]  # a number would lose its zero
    assert table.labels.shape == (2, 0)


def test_free_text_is_read_but_not_encoded(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("comment,y\n" + "".join(f"text {i},{i % 2}\n" for i in range(1100)))
    assert read_frames(path, labels_last=1).features["comment"].nunique() == 1100
    with pytest.raises(DatasetError, match="holds 1100 different texts"):
        read(path, labels_last=1, text="one_hot")
