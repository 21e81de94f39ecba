"""A data file in the position of a dataset: `train dataset=./my.csv labels='tag_*'`, and the same for other verbs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from helpers.own_files import own_rows
from multilab.cli import main
from multilab.cli.files import _COMPRESSED, with_registered_files
from multilab.datasets import DatasetError, cards, load, register_file
from multilab.datasets.options import FORMATS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a file of one's own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    Path("my.csv").write_text(own_rows())
    return tmp_path


def test_every_format_of_the_readers_is_a_path():
    for name in (f"absent{extension}{ending}" for extension in FORMATS for ending in ("", *_COMPRESSED)):
        with pytest.raises(DatasetError, match="no such file"):
            with_registered_files([f"dataset={name}"])


def test_arguments_without_a_path_stay():
    argv = ["dataset=emotions,scene", "labels=x", "drop=y", "--csv", "method=glob(mlwse_*)"]
    assert with_registered_files(argv) == argv


def test_a_path_becomes_a_name_and_the_options_of_its_reader_are_taken_out(capsys):
    argv = ["-m", "drop=id", "dataset=emotions,./my.csv", "labels=tag_*", "method=mlknn"]
    rest = with_registered_files(argv)
    name = rest[1].partition(",")[2]
    assert rest == ["-m", f"dataset=emotions,{name}", "method=mlknn"]
    assert load(name).label_names == ["tag_x", "tag_y"]
    assert load(name).features == 3
    assert name not in cards()
    assert "colour (2 values)" in capsys.readouterr().err
    assert with_registered_files(argv) == rest
    assert "colour" not in capsys.readouterr().err  # the profile is shown once


def test_content_and_options_decide_the_name_and_the_digest_not_the_path(folder):
    name = register_file("my.csv", label_prefix="tag_").name
    digest = load(name).digest
    (folder / "sub").mkdir()
    moved = Path("my.csv").rename("sub/my.csv")
    assert register_file(moved, label_prefix="tag_").name == name
    assert load(name).digest == digest
    Path("sub/my.csv.gz").write_bytes(gzip.compress(moved.read_bytes()))
    moved.unlink()
    assert register_file("sub/my.csv.gz", label_prefix="tag_").name == name
    assert load(name).digest == digest
    Path("other.csv").write_text(own_rows())
    renamed = register_file("other.csv", label_columns=["tag_x", "tag_y"]).name
    assert renamed != name
    assert load(renamed).digest == digest
    Path("other.csv").write_text(own_rows(41))
    assert register_file("other.csv", label_columns=["tag_x", "tag_y"]).name != renamed
    with pytest.raises(DatasetError, match=r"expected .* bytes"):
        load(renamed)


def test_without_options_the_dataset_of_the_same_content(folder):
    with pytest.raises(DatasetError, match="which columns are labels"):
        with_registered_files(["dataset=my.csv"])
    name = register_file("my.csv", label_prefix="tag_").name
    assert with_registered_files(["dataset=my.csv"]) == [f"dataset={name}"]
    register_file("my.csv", label_prefix="tag_", drop=["id"])
    with pytest.raises(DatasetError, match="several ways"):
        register_file("my.csv")
    assert main(["datasets", "add", "my.csv", "--label-prefix", "tag_", "--name", "mine"]) == 0
    assert register_file("my.csv").name == "mine"


def test_results_of_a_file_are_those_of_the_dataset_it_becomes(capsys):
    train = ["train", "dataset=./my.csv", "labels=tag_*", "drop=id", "method=mlknn", "protocol=kfold3", "publish=false"]
    assert main(train) == 0
    first = capsys.readouterr().out
    assert main(["results", "--dataset", "./my.csv"]) == 0
    assert "my-" in capsys.readouterr().out
    assert main(["results", "--dataset", "./my.csv", "--labels", "tag_*", "--drop", "id"]) == 0
    assert "my-" in capsys.readouterr().out  # options name the dataset as settings do
    assert main(["datasets", "add", "my.csv", "--labels", "tag_*", "--drop", "id", "--name", "mine"]) == 0
    capsys.readouterr()
    assert main(["results", "--dataset", "mine"]) == 0
    assert capsys.readouterr().out.startswith("mine, kfold3")
    assert main(["train", "dataset=mine", *train[4:]]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == first.splitlines()[1:]
