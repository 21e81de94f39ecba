"""Tables in several files: labels joined by a key, the official test rows, and groups of rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.own_files import saved
from helpers.readers_samples import content
from multilab.cli import main
from multilab.datasets import Dataset, DatasetError, add_dataset, card, encoder_of, load, read, register_file
from multilab.model_selection import IterativeStratifiedGroupKFold, make_splits, splits

SONGS = "id,tempo,singer\n007,120,ann\n12,60,bob\n3,90,ann\n"
MOODS = "id,happy,sad\n3,yes,no\n007,no,yes\n12,no,no\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    Path("songs.csv").write_text(SONGS)
    Path("moods.csv").write_text(MOODS)
    return tmp_path


def test_labels_in_a_second_file(folder):
    raw = read("songs.csv", join="moods.csv", on="id", label_columns=["happy", "sad"])
    assert raw.label_names == ["happy", "sad"]
    assert raw.Y.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert raw.feature_names == ["tempo", "singer"]  # the key is no feature
    assert raw.X["tempo"].tolist() == [120, 60, 90]
    assert raw.X["singer"].tolist() == ["ann", "bob", "ann"]
    added = add_dataset("songs.csv", join="moods.csv", on="id", labels_last=2)
    assert [path.name for path in added.paths] == ["songs.csv", "songs-labels.csv"]
    assert [file.role for file in card("songs").files] == ["full", "labels"]
    assert load("songs").Y.tolist() == raw.Y.tolist()
    assert "id" in encoder_of("songs").dropped


@pytest.mark.parametrize("kind", ["json", "xlsx", "parquet", "tsv"])
def test_the_second_file_may_have_another_format(kind, folder):
    moods = pd.DataFrame({"id": ["3", "007", "12"], "tags": ["happy|calm", "sad", ""]})
    raw = read("songs.csv", join=saved(moods, folder, kind), on="id", tags="tags", drop="singer")
    assert (raw.label_names, raw.Y.tolist()) == (["calm", "happy", "sad"], [[0, 0, 1], [0, 0, 0], [1, 1, 0]])


def test_a_second_file_with_a_row_for_each_item_and_tag(folder):
    Path("tags.csv").write_text("id,tag\n3,happy\n007,sad\n3,calm\n99,sad\n")
    raw = content("songs.csv", join="tags.csv", on="id", item="id", tag="tag", drop="singer")
    assert (raw.label_names, raw.Y.tolist()) == (["calm", "happy", "sad"], [[0, 0, 1], [0, 0, 0], [1, 1, 0]])
    assert raw.X["tempo"].tolist() == [120, 60, 90]
    assert "join: 1 keys of tags.csv are in no row of songs.csv" in raw.notes


@pytest.mark.parametrize(
    ("songs", "moods", "options", "message"),
    [
        (SONGS, MOODS, {"on": "ID"}, r"songs.csv: on: 'ID' is not a column; did you mean 'id'"),
        (SONGS, MOODS.replace("id,", "key,"), {}, "moods.csv: on: 'id' is not a column"),
        (SONGS, MOODS + "3,no,no\n", {}, "moods.csv: the key 'id' must be different .*: '3' is in rows 1 and 4"),
        (SONGS + "3,1,x\n", MOODS, {}, "songs.csv: the key 'id' must be different in all rows: '3' is in rows 3 and 4"),
        (SONGS + ",1,x\n", MOODS, {}, "songs.csv: the key 'id' is missing in row 4"),
        (SONGS + "4,1,x\n", MOODS, {}, "moods.csv: join: 1 of 4 rows of songs.csv are not in .*the key id='4'"),
        (SONGS, MOODS.replace("sad", "tempo"), {}, "both tables have a column 'tempo'"),
        (SONGS, MOODS, {"on": None}, "join and on belong together"),
    ],
)
def test_tables_that_cannot_be_joined(songs, moods, options, message, folder):
    Path("songs.csv").write_text(songs)
    Path("moods.csv").write_text(moods)
    with pytest.raises(DatasetError, match=message) as refused:
        read("songs.csv", **{"join": "moods.csv", "on": "id", "labels_last": 2, **options})
    assert "\n" not in str(refused.value)


def test_the_official_split_of_two_files(folder, capsys):
    Path("train.csv").write_text("text,n,tags\na quiet song,1,calm|sad\na loud song,2,happy\nno song,3,\nlast,4,sad\n")
    Path("test.csv").write_text("tags,n,text\nnew|happy,5,a quiet end\n,many,no\n")
    options = ["--tags", "tags", "--test", "test.csv", "--columns", "text=text,n=number"]
    assert main(["datasets", "add", "train.csv", *options, "--name", "songs"]) == 0
    out = capsys.readouterr().out
    assert "split official: 4 training rows, 2 test rows" in out
    assert "cells that cannot be read count as missing: 'n' (1)" in out
    data = load("songs")
    assert data.X["n"].astype(str).tolist() == ["1", "2", "3", "4", "5", "many"]
    assert [file.role for file in card("songs").files] == ["train", "test"]
    assert data.label_names == ["calm", "happy", "new", "sad"]  # those of all rows
    assert data.Y.tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [0] * 4, [0, 0, 0, 1], [0, 1, 1, 0], [0] * 4]
    (split,) = splits("songs", {"split": "official"})
    assert [rows.tolist() for rows in split] == [[0, 1, 2, 3], [4, 5]]
    assert data.X["text"].tolist()[4:] == ["a quiet end", "no"]
    frames = pd.read_csv("train.csv"), pd.read_csv("test.csv")
    python = Dataset.from_frame(frames[0], tags="tags", test=frames[1], columns={"text": "text", "n": "number"})
    assert python.digest == data.digest
    assert python.splits["official"][1].tolist() == [4, 5]


@pytest.mark.parametrize(
    ("test", "message"),
    [("tempo,y\n1,0\n", "test.csv lacks columns: 'singer'"), ("id,tempo,singer,z,y\n1,1,x,1,0\n", "more columns: 'z'")],
)
def test_a_test_file_with_other_columns_is_refused(test, message, folder):
    Path("songs.csv").write_text("id,tempo,singer,y\n1,1,x,0\n2,1,x,1\n")
    Path("test.csv").write_text(test)
    with pytest.raises(DatasetError, match=message):
        read("songs.csv", test="test.csv", labels_last=1, drop="id" if "lacks" in message else None)


def test_labels_of_training_and_test_rows_in_one_file(folder):
    Path("more.csv").write_text("id,tempo,singer\n55,70,cat\n")
    Path("moods.csv").write_text(MOODS + "55,yes,no\n")
    raw = content("songs.csv", test="more.csv", join="moods.csv", on="id", labels_last=2)
    assert (raw.train_rows, raw.Y.tolist()) == (3, [[0, 1], [0, 0], [1, 0], [1, 0]])
    Path("tags.csv").write_text("id,tag\n3,happy\n3,calm\n55,calm\n")
    options = {"item": "id", "tag": "tag", "drop": "singer"}
    raw = content("songs.csv", test="more.csv", join="tags.csv", on="id", **options)
    assert (raw.train_rows, raw.Y.tolist()) == (3, [[0, 0], [0, 0], [1, 1], [1, 0]])


# ---- groups ----


def visits(n=60, patients=12):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"patient": rng.permutation(np.arange(n) % patients) + 0.5, "x": rng.normal(size=n)})
    return rows.assign(y=(rows["x"] > 0).astype(int), z=(rows["patient"] % 3 < 1).astype(int))


def test_groups_are_no_feature_and_stay_together_in_every_protocol(folder):
    rows = visits()
    rows.to_csv("visits.csv", index=False)
    add_dataset("visits.csv", labels_last=2, groups="patient")
    data = load("visits")
    assert data.feature_names == ["x"]
    np.testing.assert_array_equal(np.unique(rows["patient"])[np.unique(data.groups, return_inverse=True)[1]].size, 60)
    assert pd.crosstab(rows["patient"], data.groups).gt(0).sum(axis=1).eq(1).all()
    assert "patient" in encoder_of("visits").dropped
    for protocol in (
        {"kfold": 5},
        {"kfold": 3, "stratify": 1, "repeats": 2},
        {"holdout": {"train_size": 0.7}, "stratify": 2, "repeats": 2},
        {"kfold": 2, "seed": 5, "within": {"protocol": {"kfold": 5}, "split": 1}},
    ):
        made = splits("visits", protocol)
        assert all(not set(data.groups[train]) & set(data.groups[test]) for train, test in made)
        assert all(len(test) for _, test in made)
    inner = splits("visits", {"kfold": 2, "within": {"protocol": {"kfold": 5}, "split": 1}})
    outer = splits("visits", {"kfold": 5})[1].train
    assert sorted(np.concatenate([test for _, test in inner]).tolist()) == outer.tolist()
    python = Dataset.from_frame(rows, "y,z", groups="patient")
    assert python.digest == data.digest != Dataset.from_frame(rows, "y,z", drop="patient").digest
    mine = IterativeStratifiedGroupKFold(5).split(data.X, data.Y, python.groups)
    assert [test.tolist() for _, test in mine] == [s.test.tolist() for s in splits("visits", {"kfold": 5})]


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("patients", {}, "groups: 'patients' is not a column; did you mean 'patient'"),
        ("y", {}, "groups: 'y' is a label"),
        ("patient", {"patient": [None, *range(59)]}, "groups: 'patient' is missing in 1 rows, the first is row 1"),
    ],
)
def test_groups_that_cannot_be(column, change, message, folder):
    visits().assign(**change).to_csv("visits.csv", index=False)
    with pytest.raises(DatasetError, match=message):
        add_dataset("visits.csv", labels_last=2, groups=column)


def test_fewer_groups_than_folds_and_groups_on_both_sides(folder, capsys):
    pytest.importorskip("hydra")
    visits(60, 3).to_csv("visits.csv", index=False)
    options = ["--labels-last", "2", "--groups", "patient"]
    assert main(["datasets", "add", "visits.csv", *options]) == 0
    assert main(["train", "dataset=visits", "method=br_logistic", "publish=false"]) == 2
    assert "visits: 5 folds of 3 groups: every fold needs at least one group" in capsys.readouterr().err
    with pytest.raises(DatasetError, match="split first: 3 groups have rows in the training and in the test set"):
        make_splits([[0], [1]] * 30, {"first": 30}, groups=load("visits").groups)
    assert main(["datasets", "add", "visits.csv", *options, "--test", "visits.csv", "--name", "both"]) == 2
    assert "3 groups of 'patient' have rows in the training and in the test file" in capsys.readouterr().err


def test_a_path_with_further_files_is_one_dataset(folder):
    options = {"join": "moods.csv", "on": "id", "labels_last": 2}
    name = register_file("songs.csv", **options).name
    assert register_file("songs.csv", **options).name == name
    Path("moods.csv").write_text(MOODS.replace("12,no", "12,yes"))
    other = register_file("songs.csv", **options).name
    assert other != name
    assert load(other).Y.tolist() == [[0, 1], [1, 0], [1, 0]]
