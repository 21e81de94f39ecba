"""`multilab datasets add`: from a file of one's own to a dataset that every verb takes."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import yaml

from helpers.command_line import candidates
from helpers.own_files import own_rows
from multilab.cli import main
from multilab.cli.files import with_registered_files
from multilab.datasets import DatasetError, card, card_folders, cards, encoder_of, load
from multilab.models import load_model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of one's own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    Path("my.csv").write_text(own_rows())
    return tmp_path


def add(capsys, *arguments):
    code = main(["datasets", "add", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_add_writes_a_card_that_every_verb_finds(folder, capsys):
    code, out, err = add(capsys, "my.csv", "--label-prefix", "tag_", "--drop", "id", "--name", "mine")
    assert (code, err) == (0, "")
    assert "category   colour (2 values)" in out
    assert "missing    b (5 rows)" in out
    assert "no DVC repository here" in out
    assert out.endswith("compare --dataset mine\n")
    card = yaml.safe_load(Path("data/own/mine.yaml").read_text())
    assert card["reader"] == {
        "label_prefix": "tag_",
        "drop": ["id"],
        "columns": {"a": "number", "b": "number", "colour": "category"},
    }
    assert Path("data/own/mine.csv").read_bytes() == Path("my.csv").read_bytes()
    assert (folder / "data" / "own").resolve() in card_folders()
    assert "mine" in cards()
    assert load("mine").feature_names == ["a", "b", "colour"]
    assert encoder_of("mine").feature_names == [
        "a",
        "b",
        "b is missing",
        "colour=blue",
        "colour=red",
        "colour is missing",
    ]
    for verb in (["list"], ["show", "mine"], ["fetch", "mine"]):
        assert main(["datasets", *verb]) == 0
        assert "mine" in capsys.readouterr().out


def test_a_reference_is_a_link_and_a_changed_file_is_noticed(folder, capsys):
    code, out, _ = add(capsys, "my.csv", "--labels", "tag_x,tag_y", "--drop", "id", "--reference")
    assert code == 0
    assert "stays where it is" in out
    assert Path("data/own/my.csv").is_symlink()
    assert load("my").Y.shape == (40, 2)
    Path("my.csv").write_text(own_rows(41))
    assert main(["datasets", "show", "my"]) == 0
    capsys.readouterr()
    with pytest.raises(Exception, match="expected"):
        load("my")


def test_force_replaces_a_dataset(folder, capsys):
    assert add(capsys, "my.csv", "--label-prefix", "tag_", "--drop", "id")[0] == 0
    code, _, err = add(capsys, "my.csv", "--label-prefix", "tag_", "--drop", "id,b")
    assert code == 2
    assert "(--force)" in err
    assert add(capsys, "my.csv", "--label-prefix", "tag_", "--drop", "id,b", "--force")[0] == 0
    assert load("my").features == 2


ATTRIBUTES = ("x numeric", "colour {red,blue}", "up {0,1}", "down {0,1}")
ARFF = "@relation r\n" + "".join(f"@attribute {line}\n" for line in ATTRIBUTES) + "@data\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="up"/><label name="down"/></labels>'


def write_files():
    """Write a file of each format."""
    Path("a.arff").write_text(ARFF + "1,red,1,0\n?,blue,0,1\n2,red,1,1\n")
    Path("a.xml").write_text(XML)
    Path("s.svm").write_text("0,1 1:0.5 3:2\n1 2:1\n0 3:1\n")
    scipy.io.savemat("m.mat", {"data": np.eye(3), "target": np.array([[1, 0, 1], [0, 1, 1]])})
    Path("z.csv.gz").write_bytes(gzip.compress(b"x;up;down\n1;1;0\n2;0;1\n"))
    table = pd.DataFrame({"x": [1.5, None, 2], "colour": ["red", None, "blue"], "up": [True, False, True]})
    table.to_parquet("p.parquet")
    table.to_feather("f.feather")


@pytest.mark.parametrize(
    ("file", "options", "columns", "written"),
    [
        ("a.arff", [], 2, ["a.arff", "a.xml", "a.yaml"]),
        ("s.svm", [], 3, ["s.svm", "s.yaml"]),
        ("m.mat", [], 3, ["m.mat", "m.yaml"]),
        ("z.csv.gz", ["--labels", "up,down"], 1, ["z.csv.gz", "z.yaml"]),
        ("p.parquet", ["--labels-last", "1"], 2, ["p.parquet", "p.yaml"]),
        ("f.feather", ["--labels-last", "1"], 2, ["f.feather", "f.yaml"]),
    ],
)
def test_formats(file, options, columns, written, folder, capsys):
    pytest.importorskip("pyarrow")
    write_files()
    assert add(capsys, file, *options)[0] == 0
    assert sorted(path.name for path in Path("data/own").iterdir()) == written
    data = load(file.partition(".")[0])
    assert data.X.shape[1] == columns
    if data.kinds is None:
        values = data.X.toarray() if sp.issparse(data.X) else data.X
        assert not np.isnan(values).any()
    else:
        assert data.X.isna().to_numpy().any() == (file != "z.csv.gz")  # a table keeps its holes
    (one,) = with_registered_files([f"dataset={file}"])  # the same content: the dataset that was added
    assert one == f"dataset={file.partition('.')[0]}"
    Path("data/own").rename("elsewhere")
    argv = [f"dataset={file}", *(["=".join(options).lstrip("-").replace("-", "_")] if options else [])]
    (one,) = with_registered_files(argv)
    assert load(one.partition("=")[2]).digest == data.digest


def test_a_study_and_completion_know_the_dataset(folder, capsys, monkeypatch, checkout):
    assert add(capsys, "my.csv", "--label-prefix", "tag_", "--drop", "id", "--name", "mine")[0] == 0
    shutil.copytree(checkout / "conf", "settings")
    Path("settings/study/own.yaml").write_text("title: own\ndatasets: [mine]\nmethods: [mlknn]\nprotocol: kfold3\n")
    monkeypatch.setenv("MULTILAB_CONF", "settings")
    assert main(["study", "train", "--study", "own"]) == 0
    assert "3 cells" in capsys.readouterr().out
    assert candidates("multilab train dataset=mi") == ["dataset=mine"]
    assert candidates("multilab datasets show mi") == ["mine"]


def test_a_name_in_two_folders_is_refused(folder, capsys, monkeypatch):
    assert add(capsys, "my.csv", "--label-prefix", "tag_", "--name", "mine")[0] == 0
    shutil.copytree("data/own", "shared")
    monkeypatch.setenv("MULTILAB_CARDS", "shared")
    with pytest.raises(DatasetError, match="two cards are called 'mine'"):
        load("mine")


@pytest.mark.slow
def test_new_rows_are_read_and_imputed_as_the_card_says(tmp_path, monkeypatch, capsys):
    """A file without a hole, without names and with decimal commas: a model of it reads new rows alike."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    rows = [f"{k},5;{'Köln' if k % 3 else 'Bonn'};{k % 2};{k // 2 % 2}" for k in range(40)]
    Path("set.csv").write_bytes("\n".join(rows).encode("cp1252"))
    options = ["--labels-last", "2", "--header", "false", "--decimal", ",", "--encoding", "cp1252"]
    assert main(["datasets", "add", "set.csv", *options]) == 0
    reader = card("set").reader
    assert reader.given() == {
        "labels_last": 2,
        "header": False,
        "decimal": ",",
        "encoding": "cp1252",
        "columns": {"c1": "number", "c2": "category"},
    }
    assert main(["fit", "--dataset", "set", "--method", "mlknn", "--cv", "2", "--output", "model"]) == 0
    Path("new.csv").write_bytes("7,5;Köln\n;Bonn\n".encode("cp1252"))
    capsys.readouterr()
    assert main(["predict", "model", "new.csv", "-o", "out.csv"]) == 0
    assert "missing values imputed as in training: 'c1' (1)" in capsys.readouterr().err
    encoded = load_model("model").encode(load_model("model").read("new.csv"))
    assert encoded.X.tolist() == [[7.5, 0, 1], [20, 1, 0]]  # the median of 0.5 to 39.5
    assert len(Path("out.csv").read_text().splitlines()) == 3
