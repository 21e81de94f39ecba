"""`multilab datasets add`: from a file of one's own to a dataset that every verb takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from helpers.own_files import own_rows
from multilab.cli import main
from multilab.datasets import card_folders, cards, load


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
    assert "text       colour (2 values)" in out
    assert "missing    b (5 rows)" in out
    assert "no DVC repository here" in out
    assert out.endswith("compare dataset=mine\n")
    card = yaml.safe_load(Path("data/own/mine.yaml").read_text())
    assert card["reader"] == {"label_prefix": "tag_", "drop": ["id"], "text": "one_hot", "missing": "impute"}
    assert Path("data/own/mine.csv").read_bytes() == Path("my.csv").read_bytes()
    assert (folder / "data" / "own").resolve() in card_folders()
    assert "mine" in cards()
    assert load("mine").feature_names == ["a", "b", "colour=blue", "colour=red"]
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
