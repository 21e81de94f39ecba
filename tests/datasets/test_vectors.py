"""Columns of vectors: lists of numbers of JSON, Parquet and frames, and a .npy file, are taken as they are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.cli import main
from multilab.datasets import Dataset, DatasetError, FrameEncoder, add_dataset, encoder_of, load, read
from multilab.datasets.vectors import read_vectors

VECTORS = [[0.5, 1.0, -2.0], [1.5, 0.0, 3.0], [2.0, 2.0, 2.0], [0.25, 0.0, 1.0]]


def rows(kind=list):
    cells = [kind(one) for one in VECTORS]
    return pd.DataFrame({"n": [1, 2, 3, 4], "voice": cells, "tags": ["a|b", "a", "", "b"]})


@pytest.mark.parametrize("kind", ["json", "jsonl", "parquet", "fixed", "frame", "arrays", "npy"])
def test_a_list_of_numbers_is_a_column_each(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    names = ["n", "voice[0]", "voice[1]", "voice[2]"]
    if kind in ("frame", "arrays"):
        data = Dataset.from_frame(rows(np.array if kind == "arrays" else list), tags="tags")
    elif kind == "npy":
        rows().drop(columns="voice").to_csv("set.csv", index=False)
        np.save("voices.npy", np.array(VECTORS, dtype=np.float32))
        assert main(["datasets", "add", "set.csv", "--tags", "tags", "--vectors", "voices.npy"]) == 0
        data, names = load("set"), [name.replace("voice", "vectors") for name in names]
        assert Dataset.from_frame(rows().drop(columns="voice"), tags="tags", vectors=VECTORS).digest == data.digest
    else:
        if kind in ("parquet", "fixed"):
            pa = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            table = pa.Table.from_pandas(rows())
            if kind == "fixed":
                table = table.set_column(1, "voice", table.column("voice").cast(pa.list_(pa.float32(), 3)))
            path = "set.parquet"
            parquet.write_table(table, path)
        else:
            path = f"set.{kind}"
            rows().to_json(path, orient="records", lines=kind == "jsonl")
        add_dataset(path, tags="tags")
        data = load("set")
    assert data.feature_names == names
    np.testing.assert_array_equal(data.X.to_numpy()[:, 1:], VECTORS)
    assert data.label_names == ["a", "b"]
    assert [str(kind) for kind in data.kinds.values()] == ["number"] * 4


def test_lists_of_whole_numbers_may_be_tags(tmp_path):
    frame = pd.DataFrame({"n": [1.0, 2.0], "ids": [[2, 17], [17]]})
    assert Dataset.from_frame(frame, tags="ids").label_names == ["17", "2"]
    with pytest.raises(DatasetError, match="column 'ids', row 1: the cell is a list"):
        Dataset.from_frame(frame.assign(y=[0, 1]), "y")


@pytest.mark.parametrize(
    ("voice", "message"),
    [
        ([[1.5, 2], [1.5, 2, 3]], "row 2: the vector 'voice' has 3 numbers"),
        ([[1.5, 2], None], "row 2: the vector 'voice' is missing"),
        ([[1.5, 2]] * 100 + [[1.5, "x"]], "row 101: 'voice' is not a list of numbers as in other rows"),
    ],
)
def test_vectors_that_differ_are_refused_in_one_line(voice, message, tmp_path):
    path = tmp_path / "set.json"
    path.write_text(json.dumps([{"x": k, "voice": one, "y": k % 2} for k, one in enumerate(voice)]))
    with pytest.raises(DatasetError, match=message) as refused:
        read(path, label_columns="y")
    assert "\n" not in str(refused.value)


def test_npy_files_that_are_no_matrix_of_the_rows(tmp_path):
    path, table = tmp_path / "set.npy", tmp_path / "set.csv"
    table.write_text("x,y\n1,0\n2,1\n")
    for array, message in [
        (np.zeros((3, 2)), r"vectors: 2 rows need as many rows of numbers, got the shape \(3, 2\)"),
        (np.zeros(2), "expected a matrix of numbers, .*, got float64"),
        (np.array([["a"], ["b"]]), "expected a matrix of numbers"),
        (np.array([[np.nan], [1]]), "a number is missing or infinite"),
        (np.array([[{}], [1]], dtype=object), "not a .npy file|expected a matrix"),
    ]:
        np.save(path, array)
        with pytest.raises(DatasetError, match=message):
            read(table, labels_last=1, vectors=path)
    path.write_bytes(b"PK not an array")
    with pytest.raises(DatasetError, match=r"not a .npy file"):
        read(table, labels_last=1, vectors=path)


@pytest.mark.parametrize("damage", ["cut", "blank", "changed"])
def test_a_damaged_header_of_vectors_is_refused_or_read(tmp_path, damage):
    path, refused = tmp_path / "set.npy", 0
    np.save(path, np.ones((4, 3)))
    whole = path.read_bytes()
    for at in range(1, 128):
        other = {"cut": b"", "blank": b" " + whole[at + 1 :], "changed": bytes([whole[at] ^ 24]) + whole[at + 1 :]}
        path.write_bytes(whole[:at] + other[damage])
        try:
            assert read_vectors(path).ndim == 2
        except DatasetError:
            refused += 1
    assert refused > 20


def test_new_rows_have_lists_or_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    rows().to_json("set.json", orient="records")
    add_dataset("set.json", tags="tags")
    encoder = encoder_of("set")
    as_lists = encoder.encode(rows()).X
    np.testing.assert_array_equal(as_lists, encoder.encode(load("set").X).X)
    np.testing.assert_array_equal(as_lists[:, 1:], VECTORS)
    np.testing.assert_array_equal(encoder.encode(encoder.read("set.json")).X, as_lists)
    new = rows().assign(voice=[None, *VECTORS[1:]])
    encoded = encoder.encode(new)
    assert encoded.X[0, 1:].tolist() == np.median(VECTORS, axis=0).tolist()
    assert encoded.imputed == {"voice[0]": 1, "voice[1]": 1, "voice[2]": 1}
    with pytest.raises(DatasetError, match="the vector 'voice' has 1 numbers"):
        encoder.encode(rows().assign(voice=[[1.0]] * 4))
    frames = rows().drop(columns="tags")
    np.testing.assert_array_equal(FrameEncoder().fit(frames).transform(frames), as_lists)


@pytest.mark.slow
def test_a_model_of_vectors_predicts_a_file_and_its_npy(tmp_path, monkeypatch, capsys):
    pytest.importorskip("hydra")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 4))
    table = pd.DataFrame({"x": rng.normal(size=60), "a": vectors[:, 0] > 0, "b": vectors[:, 1] > 0}).astype(float)
    table.to_csv("set.csv", index=False)
    np.save("set.npy", vectors)
    assert main(["datasets", "add", "set.csv", "--labels", "a,b", "--vectors", "set.npy"]) == 0
    assert main(["fit", "--dataset", "set", "--method", "br_logistic", "--cv", "2", "-o", "model"]) == 0
    assert main(["predict", "model", "set.csv", "--vectors", "set.npy", "-o", "out.csv"]) == 0
    out = pd.read_csv("out.csv")
    assert (out[["a", "b"]].to_numpy() == table[["a", "b"]].to_numpy()).mean() > 0.9
    capsys.readouterr()
    assert main(["predict", "model", "set.csv"]) == 2
    assert "columns of the training data are missing: 'vectors[0]'" in capsys.readouterr().err
    assert Path("data/own/set-vectors.npy").is_file()
