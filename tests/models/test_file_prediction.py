"""Predictions of tables larger than memory are those of the rows in memory: in files, and on Dask's partitions."""

import pickle

import numpy as np
import pandas as pd
import pytest

from helpers.models_for_use import LABELS, own_table
from multilab.cli import main

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
    assert list(found.pop("id").astype(str)) == list(folder["id"].astype(str))  # of Parquet they are text
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_wrong_files_leave_no_output(folder, model_path, capsys, tmp_path):
    folder.rename(columns={"town": "city"}).to_parquet("big/0.parquet", index=False)
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 2
    assert "columns of the training data are missing: 'town'" in capsys.readouterr().err
    folder.to_parquet("big/0.parquet", index=False)
    folder.assign(income=np.inf).to_parquet("big/1.parquet", index=False)
    assert main(["predict", str(model_path), "./big", "-o", "out.csv"]) == 2
    assert "row 301 of column 'income' is not a finite number" in capsys.readouterr().err
    assert main(["predict", str(model_path), "./big"]) == 2
    assert "name a file for the predictions (-o)" in capsys.readouterr().err
    assert main(["predict", str(model_path), "./big", "-o", "out.json"]) == 2
    assert "predictions of large files are written as .parquet, .csv or .tsv, not .json" in capsys.readouterr().err
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
