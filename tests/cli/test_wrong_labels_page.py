"""The page "Wrong labels": its Python makes the file, its commands run on it, and the test corrects the labels."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from helpers.html_page import Page
from helpers.page_code import run_code
from multilab.cli import main
from multilab.datasets import load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "wrong-labels.md"
NAMES = ["dance", "calm", "sad"]
DOUBTS = Path("reports/doubt/songs/doubts.csv")
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="no documentation: an unpacked sdist")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def right_labels() -> np.ndarray:
    """Return the labels before the errors, which the code of the page makes."""
    variables: dict[str, np.ndarray] = {}
    exec(blocks("python")[0].rpartition("\n")[0].rpartition("songs.astype")[0], variables)
    return variables["right"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run the commands of the page, and correct what the first one lists before the table comes back."""
    root = tmp_path_factory.mktemp("wrong-labels")
    assert run_code(blocks("python")[0], root) == ""
    environment = {**os.environ, "MULTILAB_HOME": str(root / "home"), "MULTILAB_CELLS": str(root / "cells")}
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 4
    for line in commands:
        if "--corrected" in line:
            correct(root / DOUBTS)
        words = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        if line == "multilab datasets doubt songs":
            (root / "printed.txt").write_text(done.stdout)
    return root


def correct(path: Path) -> None:
    """Do what a user does who knows the songs: write the right label where it is another one."""
    table = pd.read_csv(path)
    right = right_labels()[table["row"] - 1, table["label"].map(NAMES.index)]
    table["corrected"] = np.where(right == table["given"], "", right.astype(str))
    table.to_csv(path, index=False)


@pytest.fixture
def work(folder, monkeypatch):
    """Work in the folder of the run."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MULTILAB_HOME", str(folder / "home"))
    monkeypatch.setenv("MULTILAB_CELLS", str(folder / "cells"))
    return folder


def test_the_page_shows_what_the_command_prints(work):
    printed = (work / "printed.txt").read_text().splitlines()
    lines = blocks("text")[0].splitlines()
    assert [line.rstrip() for line in printed[: len(lines)]] == lines
    assert any(line.startswith("33 of 1500") for line in printed)


def test_what_all_methods_doubt_is_wrong_and_the_table_has_most_errors(work):
    table, right, given = pd.read_csv(DOUBTS), right_labels(), pd.read_csv("songs.csv")[NAMES].to_numpy()
    wrong = (right != given)[table["row"] - 1, table["label"].map(NAMES.index)]
    assert table["methods"].tolist() == sorted(table["methods"], reverse=True)
    assert (table["doubted"].sum(), wrong[table["doubted"] == 1].sum()) == (33, 33)
    assert (len(table), wrong.sum(), (right != given).sum()) == (83, 46, 54)


def test_corrections_come_back_as_a_dataset(work):
    right, given = right_labels(), load("songs").Y
    table = pd.read_csv(DOUBTS).dropna(subset="corrected")
    cells = table["row"].to_numpy() - 1, table["label"].map(NAMES.index).to_numpy()
    expected = given.copy()
    expected[cells] = right[cells]
    assert np.array_equal(load("songs-corrected").Y, expected)
    assert (expected != right).sum() == 54 - 46
    assert load("songs-corrected").X.equals(load("songs").X)


def test_masked_values_are_not_observed_and_no_other_is_changed(work):
    table, masked, given = pd.read_csv(DOUBTS), load("songs-masked").Y, load("songs").Y
    doubted = table[table["doubted"] == 1]
    assert (masked == -1).sum() == len(doubted)
    assert (masked[doubted["row"] - 1, doubted["label"].map(NAMES.index)] == -1).all()
    assert np.array_equal(masked[masked >= 0], given[masked >= 0])


def test_a_masked_dataset_is_doubted_by_the_methods_that_learn_from_it(work, capsys):
    assert main(["datasets", "doubt", "songs-masked", "--cv", "3"]) == 0
    assert "without erf_pct" in capsys.readouterr().out
    table = pd.read_csv("reports/doubt/songs-masked/doubts.csv")
    before = pd.read_csv(DOUBTS)
    before = before[before["doubted"] == 1]
    assert not {*zip(table["row"], table["label"], strict=True)} & {*zip(before["row"], before["label"], strict=True)}


def test_the_report_lists_the_cells_of_the_table(work):
    page = Page((work / "reports/doubt/songs/index.html").read_text())
    assert {"cells", "labels", "reproduce"} <= {attributes.get("id") for _, attributes in page.elements}


def test_margins_become_probabilities(work, capsys):
    assert main(["datasets", "doubt", "songs", "--method", "br_linear_svm", "-o", "margins", "--cv", "3"]) == 0
    table = pd.read_csv("margins/doubts.csv")
    assert table["probability"].between(0, 1).all()
    wrong = right_labels() != pd.read_csv("songs.csv")[NAMES].to_numpy()
    assert wrong[table["row"] - 1, table["label"].map(NAMES.index)].mean() > 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        ["none"],
        ["songs", "--method", "none"],
        ["songs", "--mask", "--corrected", "table.csv"],
        ["songs", "--name", "other"],
        ["songs", "--corrected", "none.csv"],
        ["songs", "--corrected", "table.csv", "--name", "songs"],
        ["songs", "--corrected", "table.csv", "--name", "songs", "--force"],
        ["songs", "--corrected", "table.csv", "--name", "No Name"],
        ["songs", "--corrected", "songs.csv"],
        ["songs-corrected", "--corrected", "table.csv"],
    ],
)
def test_wrong_uses_are_one_line(work, arguments, capsys):
    pd.read_csv(DOUBTS).to_csv("table.csv", index=False)
    assert main(["datasets", "doubt", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert yaml.safe_load(Path("data/own/songs.yaml").read_text())["files"][0]["role"] == "full"


@pytest.mark.data
def test_a_real_set_is_doubted_and_masked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["datasets", "doubt", "emotions", "--method", "br_logistic,mlknn", "--mask"]) == 0
    table = pd.read_csv("reports/doubt/emotions/doubts.csv")
    masked, data = load("emotions-masked"), load("emotions")
    assert 0 < table["doubted"].sum() == (masked.Y == -1).sum() < 0.1 * data.Y.size
    assert np.array_equal(masked.X, data.X)
    assert {name: [rows.tolist() for rows in split] for name, split in masked.splits.items()} == {
        name: [rows.tolist() for rows in split] for name, split in data.splits.items()
    }
