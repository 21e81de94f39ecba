"""The tidy frame of each format: the same cells, whichever file they are in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from helpers.readers_samples import content
from multilab.datasets.options import Reading
from multilab.datasets.reading import raw_content, read_rows

CSV = "tempo,key,flag,happy,sad\n120,C,true,1,0\n,D,false,0,1\n90,,true,1,1\n60,C,,0,0\n"


def encoded(features: pd.DataFrame) -> np.ndarray:
    """Return a table with a 0/1 column per category, NaN in all of them where the category is missing."""
    columns = []
    for name in features:
        column = features[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            present = np.where(column.isna(), np.nan, 1.0)
            columns += [present * (column == category).to_numpy() for category in column.cat.categories]
        else:
            columns.append(column.to_numpy(dtype=float))
    return np.column_stack(columns)


def test_csv_with_text_and_holes(tmp_path):
    path = tmp_path / "songs.csv"
    path.write_text(CSV)
    raw = content(path, labels_last=2, drop="flag")
    np.testing.assert_array_equal(raw.X["tempo"], [120, np.nan, 90, 60])
    assert raw.X["key"].tolist()[:2] == ["C", "D"]
    assert raw.X["key"].isna().tolist() == [False, False, True, False]
    assert raw.Y.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    assert (raw.label_names, raw.missing_values) == (["happy", "sad"], 2)
    assert raw.notes == ("left out as requested: 'flag'",)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_files_of_arrow_equal_csv(kind, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "songs.csv").write_text(CSV)
    frame = pd.read_csv(tmp_path / "songs.csv").astype({"flag": "boolean"})
    getattr(frame, f"to_{kind}")(tmp_path / f"songs.{kind}")
    one, other = (content(tmp_path / f"songs.{ending}", labels_last=2) for ending in (kind, "csv"))
    pd.testing.assert_frame_equal(one.X, other.X)
    np.testing.assert_array_equal(one.Y, other.Y)


@pytest.mark.parametrize("rows", ["1,red,1,a,1\n?,blue,0,?,0\n3,?,1,b,1\n", "{0 1,2 1}\n{1 blue,3 b,4 1}\n{0 ?}\n"])
def test_rows_of_arff_are_those_of_its_matrix(rows, tmp_path):
    path = tmp_path / "things.arff"
    header = ["x numeric", "colour {red,blue}", "on {0,1}", "kind {a,b}", "y {0,1}"]
    path.write_text("@relation r\n" + "".join(f"@attribute {line}\n" for line in header) + f"@data\n{rows}")
    raw = raw_content(path, Reading(labels_last=1), encode=True)
    X = raw.X.toarray() if sp.issparse(raw.X) else raw.X
    frame = read_rows(path, Reading()).frame
    in_order = frame.assign(colour=frame["colour"].cat.set_categories(["red", "blue"]))  # as they are declared
    np.testing.assert_array_equal(encoded(in_order.drop(columns="y")), X)
    assert frame["y"].tolist() == raw.Y.ravel().tolist()
    kinds = frame.dtypes.map(lambda kind: isinstance(kind, pd.CategoricalDtype)).to_dict()
    assert kinds == {"x": False, "colour": True, "on": False, "kind": True, "y": False}


def test_rows_without_labels_and_columns_that_are_text(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("code,size\n01,3\n10,4\n")
    frame = read_rows(path, Reading(columns={"size": "text"})).frame
    assert frame["size"].tolist() == ["3", "4"]
    assert frame["code"].tolist() == ["01", "10"]  # a number would lose its zero


def test_any_number_of_different_texts_is_read(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("comment,y\n" + "".join(f"text {i},{i % 2}\n" for i in range(1100)))
    assert content(path, labels_last=1).X["comment"].tolist() == [f"text {i}" for i in range(1100)]
