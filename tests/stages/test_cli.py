"""The command line as a user meets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from multilab.cli import _HYDRA_VERBS, _VERBS, main


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(verb in output for verb in _VERBS)


@pytest.mark.parametrize("verb", sorted(set(_VERBS) - set(_HYDRA_VERBS)))
def test_every_command_explains_itself(verb, capsys):
    try:
        code = main([verb, "--help"])
    except SystemExit as end:  # as argparse does
        code = end.code
    assert not code
    assert verb in capsys.readouterr().out


@pytest.mark.parametrize("verb", _HYDRA_VERBS)
def test_hydra_prints_our_help(verb, tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "multilab.cli", verb, "--help"], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert verb in run.stdout


def test_an_unknown_command_is_one_line(capsys):
    assert main(["trian"]) == 2
    assert (
        capsys.readouterr().err
        == "multilab: no command is called 'trian'; did you mean train? (multilab --help lists them)\n"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", "study=nothing"],
        ["train", "study=quick", "method=mlkn"],
        ["new", "quick"],
        ["new", "study", "../x"],
        ["keys", "study=nothing"],
        ["cells", "show"],
        ["cells", "show", "zzz"],
        ["report", "study=nothing"],
        ["datasets", "show", "emotion"],
        ["datasets", "check", "nothing.arff"],
    ],
)
def test_what_a_user_can_fix_is_one_line_and_exit_code_2(argv, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert len(captured.err.strip().splitlines()) == 1, captured.err
    assert "Error: " in captured.err
    assert "Traceback" not in captured.err


def test_datasets_list_and_show(capsys):
    assert main(["datasets", "list"]) == 0
    output = capsys.readouterr().out
    assert "emotions" in output
    assert "digit-segments" in output
    assert main(["datasets", "show", "emotions"]) == 0
    assert "sha256" in capsys.readouterr().out


def test_datasets_check_counts_a_file_of_yours(capsys, tmp_path):
    import json

    (tmp_path / "mine.csv").write_text("a,b,c\n1,0,1\n2,1,0\n3,0,0\n")
    assert main(["datasets", "check", str(tmp_path / "mine.csv"), "--label-columns", "b,c", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["instances"] == 3
    assert record["labels"] == 2
    assert record["rows_without_label"] == 1


def test_a_dataset_of_yours_is_one_card(tmp_path):
    import os

    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    rows = [f"{a:.4f},{b:.4f},{int(a > 0)},{int(b > 0)}" for a, b in X]
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.csv").write_text("\n".join(["a,b,left,up", *rows]) + "\n")
    (tmp_path / "dataset" / "mine.yaml").write_text(
        "title: Mine\nreader: {label_columns: [left, up]}\nfiles: [{role: full, path: mine.csv}]\n"
    )
    env = {**os.environ, "MULTILAB_CARDS": str(tmp_path / "dataset"), "MULTILAB_CELLS": str(tmp_path / "cells")}
    argv = ["train", "dataset=mine", "method=mlknn", "protocol=kfold3", "publish=false"]
    run = subprocess.run(
        [sys.executable, "-m", "multilab.cli", *argv], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "mlknn on mine, 3 splits" in run.stdout
