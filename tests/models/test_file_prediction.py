"""Predictions of tables larger than memory are those of the rows in memory: in files, and on Dask's partitions."""

import errno
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from helpers.models_for_use import LABELS, own_table
from multilab.cli import main
from multilab.models import SavedModel

SEPARATORS = {"csv": ",", "tsv": "\t"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with rows in two Parquet files; towns that training did not have are in both."""
    monkeypatch.chdir(tmp_path)
    rows = own_table(300, seed=5)
    rows.loc[[3, 290], "town"] = "Nowhere"
    (tmp_path / "big").mkdir()
    for k, part in enumerate((rows.iloc[:160], rows.iloc[160:])):
        part.to_parquet(tmp_path / "big" / f"{k}.parquet", index=False, row_group_size=50)
    return rows


@pytest.mark.parametrize("extension", ["parquet", "csv", "tsv"])
def test_batches_are_predicted_as_the_whole_table(folder, model, model_path, capsys, extension):
    assert main(["predict", str(model_path), "./big", "-o", f"out.{extension}"]) == 0
    captured = capsys.readouterr()
    assert f"out.{extension}: 300 rows, 3 labels" in captured.out
    assert "column 'town': 2 rows have texts that training did not: 'Nowhere'" in captured.err
    expected = model.predict_frame(folder).reset_index(drop=True)
    if extension == "parquet":
        found = pd.read_parquet("out.parquet")
    else:
        found = pd.read_csv(f"out.{extension}", sep=SEPARATORS[extension])
    assert list(found.pop("id")) == list(folder["id"])
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("rows", ["./big", "big/0.parquet"])
@pytest.mark.parametrize("extension", ["parquet", "csv"])
def test_predictions_have_the_permissions_of_the_umask(folder, model_path, rows, extension):
    before = os.umask(0o077)
    try:
        assert main(["predict", str(model_path), rows, "-o", f"out.{extension}"]) == 0
    finally:
        os.umask(before)
    assert Path(f"out.{extension}").stat().st_mode & 0o777 == 0o600


IDENTIFIERS = {
    "text that reads as missing": ["NA", " 7 ", "007", "null"],
    "dates": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-04"]),
    "bytes": [b"\xff\x00", b"", None, b"a"],
    "vectors": [np.full(2000, 0.5), None, np.arange(2000.0), np.zeros(0)],
    "lists of bytes": [[b"\xff"], None, [b"a"], []],
    "structures": [{"a": 1}, {"a": 2}, None, {"a": None}],
    "nothing": [None] * 4,
    "numbers beyond float64": pd.array([2**60 + 1, 2**60 + 3, None, 1], dtype="Int64"),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_dropped_columns_are_copied_with_their_values_and_types(folder, model_path, name):
    folder.iloc[:4].assign(id=IDENTIFIERS[name]).to_parquet("big/0.parquet", index=False)
    (Path("big") / "1.parquet").unlink()
    assert main(["predict", str(model_path), "./big", "-o", "out.parquet"]) == 0
    assert parquet.read_table("out.parquet", columns=["id"]).equals(parquet.read_table("big", columns=["id"]))
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 0
    cells = pd.read_csv("out.csv", dtype=str, keep_default_na=False)["id"]
    if name == "vectors":
        assert json.loads(cells[2]) == list(range(2000))
    elif name.startswith(("text", "numbers")):
        assert list(cells) == ["" if cell is pd.NA else str(cell) for cell in IDENTIFIERS[name]]
    Path("big/0.parquet").rename("one.parquet")
    assert main(["predict", str(model_path), "one.parquet", "-o", "one.csv"]) == 0  # in memory
    whole = pd.read_csv("one.csv", dtype=str, keep_default_na=False)["id"]
    if name in ("dates", "bytes", "vectors", "nothing", "numbers beyond float64"):
        assert list(whole) == list(cells)


@pytest.mark.parametrize("extension", ["parquet", "csv"])
def test_a_file_without_the_dropped_columns_has_predictions_alone(folder, model, model_path, extension):
    folder.drop(columns="id").to_parquet("big/0.parquet", index=False)
    (Path("big") / "1.parquet").unlink()
    assert main(["predict", str(model_path), "./big", "-o", f"out.{extension}"]) == 0
    found = pd.read_parquet("out.parquet") if extension == "parquet" else pd.read_csv("out.csv")
    pd.testing.assert_frame_equal(found, model.predict_frame(folder), check_exact=True)


def test_old_predictions_that_the_card_drops_give_way_to_new_ones(folder, model):
    """A dropped column may be called as a label or its probability; 0 and 1 of others stay whole numbers."""
    old = ["tag_a_probability", "id", "flag"]
    SavedModel(model.estimator, replace(model.encoder, dropped=tuple(old)), model.metadata).save("model")
    for k in range(2):
        rows = pd.read_parquet(f"big/{k}.parquet").assign(tag_a_probability=2.0, flag=1)
        rows.to_parquet(f"big/{k}.parquet", index=False)
    folder.assign(tag_a_probability=2.0, flag=1).to_csv("one.csv", index=False)
    for source, output in (("./big", "big.csv"), ("./big", "big.parquet"), ("one.csv", "one.csv.tsv")):
        assert main(["predict", "model", source, "-o", output]) == 0
    expected = ["id", "flag", *LABELS, *(f"{label}_probability" for label in LABELS)]
    assert list(pd.read_csv("big.csv")) == list(pd.read_parquet("big.parquet")) == expected
    assert pd.read_csv("one.csv.tsv", sep="\t", dtype=str)["flag"].unique().tolist() == ["1"]
    pd.testing.assert_frame_equal(pd.read_csv("big.csv"), pd.read_csv("one.csv.tsv", sep="\t"))


def test_files_that_are_read_are_not_overwritten(folder, model_path, capsys):
    before = [Path(f"big/{k}.parquet").read_bytes() for k in range(2)]
    Path("link.parquet").symlink_to("big/1.parquet")
    for output in ("big/0.parquet", "link.parquet"):
        assert main(["predict", str(model_path), "./big", "-o", output]) == 2
        assert f"{output} is read by this command" in capsys.readouterr().err
    assert main(["predict", str(model_path), "./big", "-o", "big/out.parquet"]) == 2
    assert "big/out.parquet is in the folder that is read" in capsys.readouterr().err
    assert [Path(f"big/{k}.parquet").read_bytes() for k in range(2)] == before
    assert len(list(Path("big").iterdir())) == 2


def test_wrong_files_leave_no_output(folder, model_path, capsys, tmp_path):
    folder.rename(columns={"town": "city"}).to_parquet("big/0.parquet", index=False)
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 2
    assert "columns of the training data are missing: 'town'" in capsys.readouterr().err
    folder.to_parquet("big/0.parquet", index=False)
    folder.assign(income=np.inf).to_parquet("big/1.parquet", index=False)
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 2
    message = capsys.readouterr().err
    assert "'income' has an infinite value in row 1 (in rows 301 to 600" in message
    assert message.count("big") == 1
    assert main(["predict", str(model_path), "./big"]) == 2
    assert "name a file for the predictions (-o)" in capsys.readouterr().err
    assert main(["predict", str(model_path), "./big", "-o", "out.json"]) == 2
    assert "predictions of large files are written as .parquet, .csv or .tsv, not .json" in capsys.readouterr().err
    assert main(["predict", str(model_path), "./big", "-o", "/dev/null"]) == 2
    assert "/dev/null is a device: name a file to write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_a_full_disk_names_the_output_and_leaves_none(folder, model_path, capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 2
    assert "out.csv: No space left on device; free some space" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_partitions_of_dask_are_predicted_by_the_pickled_model(folder, model):
    frames = pytest.importorskip("dask.dataframe")
    table = frames.read_parquet("big")
    table = table[table["income"] > -1000]  # what a user does with it before
    again = pickle.loads(pickle.dumps(model))
    predicted = table.map_partitions(again.predict_partition, meta=again.output_meta)
    assert list(predicted.columns)[:3] == LABELS
    found = predicted.compute(scheduler="synchronous")
    pd.testing.assert_frame_equal(found.reset_index(drop=True), model.predict_frame(folder).reset_index(drop=True))
    none = table[table["income"] < -1000].map_partitions(again.predict_partition, meta=again.output_meta)
    pd.testing.assert_frame_equal(none.compute(scheduler="synchronous"), again.output_meta)
