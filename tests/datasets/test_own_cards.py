"""Data sets of one's own from end to end: the folders of the cards, `datasets check`, checksums, several files."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import hashlib
import json
import lzma
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import yaml

from multilab.cli import main
from multilab.core.paths import conf_dir
from multilab.datasets import DatasetError, DatasetWarning, card_folders, cards, fetch, load, prepare, prepared_meta
from multilab.datasets.catalogue import card
from multilab.datasets.options import Reading

CSV = b"wind,sun,rain,warm\n1.5,3,1,0\n2,0.25,0,0\n0,4,0,1\n"


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    monkeypatch.delenv("MULTILAB_DATA", raising=False)


def write_card(folder, name="mine", content=CSV, ending=".csv", **changes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}{ending}").write_bytes(content)
    given = {
        "title": "Three days",
        "files": [{"role": "full", "path": f"{name}.csv"}],
        "reader": {"label_columns": ["rain", "warm"]},
        **changes,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(given), "utf-8")


# ---- where cards are ----


@pytest.mark.parametrize("subfolder", ["", "dataset"])
@pytest.mark.parametrize("named", ["cards", "dataset", "my.conf"])
def test_cards_in_the_folder_or_in_its_subfolder_dataset(subfolder, named, tmp_path, monkeypatch, capsys):
    write_card(tmp_path / named / subfolder)
    (tmp_path / "elsewhere").mkdir()
    listed = [tmp_path / "absent", tmp_path / "elsewhere", tmp_path / named]
    monkeypatch.setenv("MULTILAB_CARDS", os.pathsep.join(map(str, listed)))
    home = (tmp_path / named / subfolder).resolve()
    assert card_folders() == [(tmp_path / "elsewhere").resolve(), home, (conf_dir() / "dataset").resolve()]
    assert "mine" in cards()
    assert card("mine").location == home / "mine.yaml"
    assert load("mine").Y.tolist() == [[1, 0], [0, 0], [0, 1]]
    for verb in (["list"], ["show", "mine"], ["fetch", "mine"]):
        assert main(["datasets", *verb]) == 0
        assert "mine" in capsys.readouterr().out


@pytest.mark.parametrize("subfolder", ["", "dataset"])
@pytest.mark.slow
def test_train_finds_the_cards_where_the_other_verbs_do(subfolder, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},{a > 0},{b > 0}" for a, b in rng.normal(size=(40, 2))]
    content = "\n".join(["a,b,left,up", *rows, ""]).encode()
    write_card(tmp_path / "mine" / subfolder, content=content, reader={"label_columns": ["left", "up"]})
    arguments = ["train", "dataset=mine", "method=mlknn", "protocol=kfold3", "publish=false"]
    run = subprocess.run(
        [sys.executable, "-m", "multilab", *arguments],
        cwd=tmp_path,
        env={**os.environ, "MULTILAB_CARDS": str(tmp_path / "mine"), "MULTILAB_CELLS": str(tmp_path / "cells")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "mlknn on mine, 3 splits" in run.stdout


def test_settings_next_to_the_subfolder_are_no_cards(tmp_path):
    (tmp_path / "config.yaml").write_text("seed: 0\n", "utf-8")
    (tmp_path / "dataset").mkdir()
    assert card_folders()[0] == tmp_path.resolve()  # a folder without a card
    write_card(tmp_path / "dataset")
    assert card_folders()[0] == (tmp_path / "dataset").resolve()
    assert "config" not in cards()


# ---- datasets check ----


def check(capsys, *arguments):
    code = main(["datasets", "check", *map(str, arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_check_refuses_what_loading_refuses_with_the_same_message(tmp_path, capsys):
    write_card(tmp_path, content=CSV.replace(b"0.25,0,0", b"0.25,0,3"))
    with pytest.raises(DatasetError) as caught:
        load("mine")
    assert caught.value.line == 3
    code, out, err = check(capsys, tmp_path / "mine.csv", "--labels", "rain,warm")
    assert (code, out) == (2, "")
    assert str(caught.value) in err


def test_check_counts_the_missing_values_that_loading_keeps(tmp_path, capsys):
    write_card(tmp_path, content=CSV.replace(b"0.25", b"nan"), reader={"label_columns": "rain,warm"})
    data = load("mine")
    np.testing.assert_array_equal(data.X, [[1.5, 3], [2, np.nan], [0, 4]])
    code, out, err = check(capsys, tmp_path / "mine.csv", "--labels", "rain,warm")
    assert (code, err) == (0, "")
    assert "missing_values         1\n" in out
    assert data.digest in out


@pytest.mark.parametrize("compressed", [False, True])
def test_a_card_with_the_numbers_that_check_prints_is_accepted(compressed, tmp_path, capsys):
    """Size, sha256 and digest are those of a card: of the content, for a compressed file too."""
    path = tmp_path / ("mine.csv.gz" if compressed else "mine.csv")
    path.write_bytes(gzip.compress(CSV) if compressed else CSV)
    code, out, _ = check(capsys, path, "--labels", "rain,warm", "--json")
    numbers = json.loads(out)
    assert (code, numbers["bytes"], numbers["sha256"]) == (0, len(CSV), hashlib.sha256(CSV).hexdigest())
    _, shown, _ = check(capsys, path, "--labels", "rain,warm")
    assert f"sha256                 {numbers['sha256']}\n" in shown
    entry = {"role": "full", "path": "mine.csv", "bytes": numbers["bytes"], "sha256": numbers["sha256"]}
    write_card(tmp_path, files=[entry], digest=numbers["digest"])
    assert load("mine").digest == numbers["digest"]


def test_every_option_that_a_message_of_check_names_exists(tmp_path, capsys):
    """The message lists the ways to name labels; each is an option, none is an ambiguous beginning of others."""
    path = tmp_path / "set.csv"
    path.write_bytes(CSV)
    code, _, err = check(capsys, path)
    assert code == 2
    named = [word.strip(",;\n") for word in err.split() if word.startswith("--")]
    assert named == ["--labels-xml", "--labels-first", "--labels-last", "--labels", "--label-prefix"]
    assert "label_" not in err
    (tmp_path / "names.txt").write_text("rain\nwarm\n")
    for options in (
        ("--labels-last", 2),
        ("--labels", "rain, warm"),
        ("--labels", tmp_path / "names.txt"),
    ):
        code, out, _ = check(capsys, path, *options)
        assert code == 0
        assert "['rain', 'warm']" in out
    assert "['warm']" in check(capsys, path, "--label-prefix", "wa")[1]
    for wrong in ("--label", "--label-c", "--labels-"):
        code, _, err = check(capsys, path, wrong, "rain")
        assert code == 2
        assert "No such option" in err
        assert wrong in err


def test_check_takes_every_option_of_a_card(tmp_path, capsys):
    _, options, _ = check(capsys, "--help")
    for one in dataclasses.fields(Reading):
        assert f"--{one.metadata['flag'] or one.name.replace('_', '-')} " in options
    path = tmp_path / "set.csv"
    path.write_text("id,town,x,l\n1,Rome,?,0\n2,Lima,3,1\n")
    code, out, _ = check(capsys, path, "--labels-last", 1, "--drop", "id", "--columns", "town=text", "--json")
    assert code == 0
    content = json.loads(out)
    assert [content[key] for key in ("features", "columns", "missing_values")] == [2, 2, 1]
    assert content["kinds"] == {"town": "text", "x": "number"}
    assert len(content["notes"]) == 1


def test_identifiers_and_index_columns_are_reported(tmp_path, capsys):
    rows = [f"{i},{i + 100},{i % 3},{i % 2}" for i in range(12)]
    (tmp_path / "set.csv").write_text("\n".join([",patient_id,x,l", *rows]) + "\n")
    code, out, _ = check(capsys, tmp_path / "set.csv", "--labels-last", 1)
    assert code == 0
    assert "note: the first column has no name: read as an index and left out" in out
    assert re.search(r"warning: .*\['patient_id'\]", out)


# ---- loading ----


def test_what_a_reader_did_is_stored_and_shown(tmp_path, capsys):
    rows = [f"{i},{i + 100},{i % 3},{i % 2}" for i in range(12)]
    content = "\n".join([",patient_id,x,l", *rows, ""]).encode()
    write_card(tmp_path, content=content, reader={"labels_last": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prepare("mine")
    messages = [str(one.message) for one in caught if one.category is DatasetWarning]
    assert len(messages) == 2
    assert "mine.csv: the first column has no name" in messages[0]
    assert "'patient_id'" in messages[1]
    meta = prepared_meta("mine")
    assert meta["id_like"] == ["patient_id"]
    assert main(["datasets", "show", "mine"]) == 0
    assert "# note: the first column has no name: read as an index and left out" in capsys.readouterr().out
    write_card(tmp_path, content=content, reader={"labels_last": 1, "drop": ["patient_id"]})
    assert load("mine").feature_names == ["x"]
    assert prepared_meta("mine")["notes"][1] == "left out as requested: 'patient_id'"


def in_files(folder, rows, full, test=None):
    """Write training and test rows, and perhaps a file of all rows in reverse order, with a card."""
    parts = {"train": rows[:3], "test": rows[3:] if test is None else test} | ({"full": rows[::-1]} if full else {})
    for role, some in parts.items():
        (folder / f"{role}.csv").write_text("\n".join(["x,town,price,l", *some]) + "\n")
    files = [{"role": role, "path": f"{role}.csv"} for role in parts]
    write_card(folder, files=files, reader={"labels_last": 1})


@pytest.mark.parametrize("full", [False, True])
def test_the_files_of_a_set_share_the_kinds_of_their_columns(full, tmp_path):
    """The kinds are those of all rows, the missing values are kept, and the parts are found in the full file."""
    rows = ['1,Rome,"1,5 €",0', "2,?,12 €,1", '-0,Rome,"1,5 €",0', '?,5,"7,5 €",0', "2,?,12 €,1"]
    in_files(tmp_path, rows, full)
    data = load("mine")
    assert {name: str(kind) for name, kind in data.kinds.items()} == {
        "x": "number",
        "town": "category",
        "price": "number:comma in €",
    }
    whole = data.X.iloc[::-1] if full else data.X
    np.testing.assert_array_equal(whole["x"], [1, 2, 0, np.nan, 2])
    assert whole["town"].astype(object).fillna("").tolist() == ["Rome", "", "Rome", "5", ""]
    train, test = data.splits["official"]
    assert data.Y[train].ravel().tolist() == [0, 1, 0]
    assert (train.tolist(), test.tolist()) == (([4, 0, 2], [1, 3]) if full else ([0, 1, 2], [3, 4]))
    in_files(tmp_path, rows, full, test=["9,Oslo,3 €,1"])
    if full:
        with pytest.raises(DatasetError, match=r"test\.csv: row 1 is missing"):
            load("mine")
    else:
        assert load("mine").splits["official"][1].tolist() == [3]
    (tmp_path / "test.csv").write_text("x,city,price,l\n1,Rome,3 €,0\n")
    with pytest.raises(DatasetError, match=r"'town'|'city'"):
        load("mine")


# ---- checksums ----

PACKS = [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress)]


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(("ending", "compress"), PACKS)
@pytest.mark.parametrize("given", ["sha256", "bytes", "both"])
def test_a_card_with_the_checksum_of_the_compressed_file_is_shown_both(ending, compress, given, tmp_path):
    content = CSV * 40
    packed = compress(content)
    promised = {"sha256": digest(packed), "bytes": len(packed)}
    promised = promised if given == "both" else {given: promised[given]}
    entry = {"role": "full", "path": "mine.csv", **promised}
    write_card(tmp_path, content=packed, ending=f".csv{ending}", files=[entry])
    with pytest.raises(DatasetError) as caught:
        fetch("mine")
    message = str(caught.value)
    assert message.startswith(
        f"{tmp_path / 'mine.csv'}{ending}: expected {'sha256' if given == 'sha256' else len(packed)}"
    )
    assert f"content: {len(content)} bytes, sha256 {digest(content)}" in message
    assert f"compressed file: {len(packed)} bytes, sha256 {digest(packed)}" in message
    assert "the card gives those of the compressed file, it must give those of the content" in message
    right = {"role": "full", "path": "mine.csv", "bytes": len(content), "sha256": digest(content)}
    write_card(tmp_path, content=packed, ending=f".csv{ending}", files=[right])
    assert fetch("mine") == [tmp_path / f"mine.csv{ending}"]


def test_a_wrong_plain_file_has_one_form(tmp_path):
    entry = {"role": "full", "path": "mine.csv", "bytes": len(CSV), "sha256": "ab" * 32}
    write_card(tmp_path, files=[entry])
    with pytest.raises(DatasetError, match=rf"expected sha256 (ab){{32}}, found {digest(CSV)}$"):
        fetch("mine")
    packed = gzip.compress(CSV)
    (tmp_path / "mine.csv").unlink()
    write_card(tmp_path, content=packed, ending=".csv.gz", files=[entry])
    with pytest.raises(DatasetError, match=r"found .*a card gives those of the content\)"):
        fetch("mine")


def test_a_warning_of_a_command_is_one_escaped_line(tmp_path, monkeypatch, capsys):
    from multilab import cli

    def cards():
        warnings.warn("column \x1b]0;x\n is left out", stacklevel=1)
        return []

    monkeypatch.setattr("multilab.datasets.cards", cards)
    assert cli.main(["datasets", "list"]) == 0
    assert capsys.readouterr().err == "UserWarning: column \\x1b]0;x is left out\n"
