"""`Dataset.from_frame`: equal to the file that the frame would be, and one line for what cannot be a dataset."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from helpers.own_files import own_rows
from multilab.datasets import (
    Dataset,
    DatasetError,
    DatasetWarning,
    FrameEncoder,
    add_dataset,
    characteristics,
    load,
    plan_reading,
)
from multilab.methods import BinaryRelevance


@pytest.fixture
def frame():
    return pd.read_csv(io.StringIO(own_rows()))


def test_a_frame_and_its_file_are_the_same_dataset(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    frame.to_csv("mine.csv", index=False)
    add_dataset("mine.csv", label_prefix="tag_", drop="id")
    data, file = Dataset.from_frame(frame, "tag_*", drop="id", name="mine"), load("mine")
    assert data.digest == file.digest
    assert [str(kind) for kind in data.kinds.values()] == ["number", "number", "category"]
    pd.testing.assert_frame_equal(data.X, file.X)
    assert repr(data) == repr(file)


def test_digest_and_columns_do_not_depend_on_how_a_frame_is_stored(monkeypatch):
    rng = np.random.default_rng(0)
    numbers, counts = rng.normal(size=(50, 4)).round(2), rng.integers(0, 40, 50)
    numbers[[3, 8], [0, 2]] = np.nan, -0.0
    texts, y = rng.choice(["u", "v", None], 50), rng.integers(0, 2, 50)
    by_column = pd.DataFrame({"a": numbers[:, 0], "t": texts, "b": numbers[:, 1], "y": y, "n": counts, "s": texts})
    by_column = by_column.assign(c=numbers[:, 2], d=numbers[:, 3])
    of_matrix = pd.DataFrame(numbers, columns=list("abcd")).assign(t=texts, s=texts, y=y, n=counts.astype(float))
    of_matrix = of_matrix[list(by_column.columns)].set_axis(range(9, 59))
    data = Dataset.from_frame(by_column, ["y"])
    assert data.feature_names == ["a", "t", "b", "n", "s", "c", "d"]
    np.testing.assert_array_equal(data.X[["a", "b", "c", "d"]], numbers)
    assert data.X["t"].astype(object).where(data.X["t"].notna(), None).tolist() == list(texts)
    monkeypatch.setattr(characteristics, "_CELLS", 30)  # several blocks of rows
    other = Dataset.from_frame(of_matrix, ["y"])
    assert other.digest == data.digest
    pd.testing.assert_frame_equal(other.X, data.X)


@pytest.mark.parametrize("missing", [False, True])
def test_an_infinite_number_is_named_with_column_and_row(missing):
    frame = pd.DataFrame({"a": [1e308, 1e308, 1e308], "b": [1.0, np.nan if missing else 2.0, -np.inf], "y": [0, 1, 1]})
    with pytest.raises(DatasetError, match="'b' has an infinite value in row 3"):
        Dataset.from_frame(frame, ["y"])
    assert Dataset.from_frame(frame, ["y"], drop="b").X["a"].tolist() == [1e308] * 3


def test_features_stay_what_they_are_until_a_model_is_fitted():
    rows = {"remark": ["a quiet song", "a loud song", None], "when": ["1.2.2024", "13.2.2024", "2.3.2024"]}
    songs = pd.DataFrame({**rows, "price": ["1,50 €", "12 €", "-"], "moods": ["calm|sad", "", "happy"]})
    data = Dataset.from_frame(songs, tags="moods", columns={"remark": "text"})
    assert [str(kind) for kind in data.kinds.values()] == ["text", "date:day", "number:comma in €"]
    assert data.X["remark"].tolist()[:2] == rows["remark"][:2]
    assert data.X.isna().sum().tolist() == [1, 0, 0]  # the encoder knows that "-" is missing
    assert data.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    encoder = FrameEncoder({name: str(kind) for name, kind in data.kinds.items()})
    assert encoder.fit(data.X).transform(data.X).shape[0] == 3
    model = make_pipeline(encoder, BinaryRelevance(LogisticRegression())).fit(data.X, data.Y)
    assert model.predict(songs.drop(columns="moods")).shape == (3, 3)


@pytest.mark.parametrize("kind", ["string", "category", object])
def test_kinds_of_columns_that_hold_the_same(frame, kind):
    same = frame.astype({"colour": kind, "tag_x": bool, "tag_y": "Int8", "a": "Float64"})
    labels = ["tag_x", "tag_y"]
    assert Dataset.from_frame(same, labels, drop=["id"]).digest == Dataset.from_frame(frame, labels, drop=["id"]).digest


def test_categories_that_no_row_has_do_not_count(frame):
    kinds = {"colour": pd.CategoricalDtype(["red", "blue", "green"]), "tag_x": pd.CategoricalDtype([0, 1, "unknown"])}
    same = frame.astype(kinds)
    assert Dataset.from_frame(same, "tag_*", drop="id").digest == Dataset.from_frame(frame, "tag_*", drop="id").digest


def test_sparse_columns_stay_sparse():
    X = sp.random_array((30, 5), density=0.3, rng=np.random.default_rng(0))
    frame = pd.DataFrame.sparse.from_spmatrix(sp.coo_matrix(X), columns=list("abcde"))
    frame["y"] = pd.arrays.SparseArray(np.arange(30) % 2, fill_value=0)
    data = Dataset.from_frame(frame, ["y"])
    assert sp.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    assert data.Y.ravel().tolist() == [0, 1] * 15
    dense = Dataset.from_frame(frame.sparse.to_dense(), ["y"])
    np.testing.assert_array_equal(dense.X.to_numpy(), X.toarray())


def test_labels_that_were_not_observed(frame):
    frame = frame.astype({"tag_x": "Int8"})
    frame.loc[3, "tag_x"] = None
    with pytest.raises(DatasetError, match=r"row 4: .*'tag_x'"):
        Dataset.from_frame(frame, "tag_*", drop="id")
    data = Dataset.from_frame(frame, "tag_*", drop="id", missing_labels="keep")
    assert data.Y.dtype == np.int8
    assert data.Y[3].tolist()[0] == -1


def test_identifiers_are_warned_of_and_empty_columns_are_kept(frame, tmp_path):
    frame["nothing"] = np.nan
    with pytest.warns(DatasetWarning, match="'id' looks like a row identifier"):
        data = Dataset.from_frame(frame, "tag_*")
    assert data.feature_names == ["id", "a", "b", "colour", "nothing"]  # those of the frame
    assert data.X["nothing"].isna().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Dataset.from_frame(frame, "tag_*", drop="id,nothing,colour").feature_names == ["a", "b"]
    frame.to_csv(tmp_path / "mine.csv", index=False)
    assert plan_reading(tmp_path / "mine.csv", label_columns="tag_*").reader["drop"] == ["nothing"]


Y = [0, 1, 1, 0] * 10
WRONG = [
    ([[1, 0]], {}, "a data frame, got list"),
    (pd.DataFrame({"a": [], "y": []}), {}, "the table has no row"),
    (pd.DataFrame([[1, 2, 0]], columns=["a", "a", "y"]), {}, "column 'a' occurs twice"),
    (pd.DataFrame([[1, 0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("y", 1)])), {}, "several levels"),
    (pd.DataFrame({"a": Y, "y": Y}), {"labels": ["z"]}, "label 'z' is not a column of frame"),
    (pd.DataFrame({"a": Y, "y": Y}), {"labels": "tag_*"}, r"no column matches 'tag_\*'; columns are 'a', 'y'"),
    (pd.DataFrame({"a": Y, "y": Y}), {"labels": "*"}, "every column is a label"),
    (pd.DataFrame({"a": Y, "y": [2 * y for y in Y]}), {}, "row 2: .*'y' is 2, expected 0 or 1"),
    (pd.DataFrame({"a": Y, "y": ["yes", "maybe"] * 20}), {}, "row 2: non-binary label: 'y' is maybe"),
    (pd.DataFrame({"a": [np.inf, *Y[1:]], "y": Y}), {}, "'a' has an infinite value"),
    (pd.DataFrame({"a": pd.Timedelta("1D"), "y": Y}), {}, "'a' is of type timedelta64.*convert it or leave"),
    (pd.DataFrame({"a": [1 + 2j] * 40, "y": Y}), {}, "'a' is of type complex128"),
    (pd.DataFrame({"a": ["1", "x", *map(str, range(38))], "y": Y}), {}, "mostly numbers, but 'x' in row 2"),
    (pd.DataFrame({"a": ["1", "x"] * 20, "y": Y}), {"columns": {"b": "text"}}, "columns: .*'b'"),
    (pd.DataFrame({"a": Y, "y": Y}), {"drop": "b"}, "drop: 'b' is not a column"),
    (pd.DataFrame({"a": Y, "y": Y}), {"text": "one_hot"}, "option .*'text'"),
    (pd.DataFrame({"a": Y, "y": Y}), {"missing_labels": "?"}, "missing_labels must be one of error, keep"),
]


@pytest.mark.parametrize(("wrong", "options", "message"), WRONG)
def test_wrong_frames(wrong, options, message):
    with pytest.raises(DatasetError, match=message) as caught:
        Dataset.from_frame(wrong, **{"labels": ["y"], **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cell", [["x", 2], (("x",),), {"a": 1}, {3}, np.array([1, 2])])
def test_cells_that_are_lists_of_other_things_than_texts_are_refused(frame, cell):
    nested = frame.assign(tags=[cell] * len(frame))
    with pytest.raises(
        DatasetError, match=rf"column 'tags', row 1: the cell is a {type(cell).__name__}; make a column"
    ):
        Dataset.from_frame(nested, "tag_*")
    assert Dataset.from_frame(nested, "tag_*", drop="tags").X.shape[0] == len(frame)
