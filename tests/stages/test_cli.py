"""The command line as a user meets it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

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


@pytest.fixture
def no_files(tmp_path, monkeypatch):
    """A folder with a pipe, a socket, a device and a folder, all called as files are."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with a name")
    monkeypatch.chdir(tmp_path)
    for ending in ("csv", "txt", "zip", "yaml"):
        os.mkfifo(f"pipe.{ending}")
    Path("device.csv").symlink_to("/dev/zero")
    Path("folder.csv").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.csv")
        yield


@contextlib.contextmanager
def at_once():
    """Fail instead of waiting for another program to write into a pipe."""

    def stop(*_):
        pytest.fail("still waiting after 20 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.txt", "socket.csv", "device.csv", "folder.csv"])
@pytest.mark.parametrize(
    "argv",
    [
        ["datasets", "check", "{}", "--labels-last", "1"],
        ["datasets", "add", "{}", "--labels-last", "1"],
        ["train", "dataset=./{}", "labels_last=1", "method=mlknn"],
        ["compare", "dataset=./{}", "labels_last=1"],
        ["audit", "{}"],
        ["audit", "table.csv", "--sizes", "{}"],
    ],
    ids=["check", "add", "train", "compare", "audit", "sizes"],
)
def test_what_is_no_file_is_refused_at_once(argv, name, no_files, capsys):
    Path("table.csv").write_text("dataset,method,metric,mean\na,m,hamming loss,0.1\n")
    with at_once():
        assert main([word.format(name) for word in argv]) == 2
    kind = {"pipe": "a pipe", "socket": "a socket", "device": "a device", "folder": "a folder"}[name.split(".")[0]]
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"{name}: it is {kind}" in line


def test_a_pipe_is_no_method_file(no_files, capsys):
    with at_once():
        assert main(["train", "dataset=genes-toy", "method=./pipe.yaml"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "it is a pipe" in line


def test_new_rows_from_a_pipe_are_refused_at_once(no_files):
    from multilab.datasets import DatasetError, read_frames  # the door of predict, monitor and explain

    with at_once(), pytest.raises(DatasetError, match="it is a pipe, not a data file"):
        read_frames("pipe.csv", labelled=False)


@pytest.mark.parametrize(
    ("path", "argv"),
    [
        ("data/own/dir.yaml", ["datasets", "show", "dir"]),
        ("conf/method/dir.yaml", ["methods", "show", "dir"]),
        ("conf/method/dir.yaml", ["train", "dataset=genes-toy", "method=./conf/method/dir.yaml"]),
        ("conf/study/dir.yaml", ["run", "study=dir"]),
    ],
)
def test_a_folder_with_the_name_of_settings_is_called_a_folder(path, argv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(path).mkdir(parents=True)
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "dir.yaml: it is a folder" in line


def test_python_without_docstrings_has_the_same_metrics_and_help(capsys, tmp_path):
    from multilab.metrics import DEFINED

    program = (
        "from multilab.cli import main; from multilab.metrics import DEFINED; from multilab.testing import "
        "multilabel_checks; print({n: m.definition for n, m in DEFINED.items()}); print(multilabel_checks()); "
        "main(['cells', '--help']); main(['fit', '--help']); main(['methods', 'show', 'mlknn'])"
    )
    plain, stripped = (
        subprocess.run(
            [sys.executable, *flags, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
        ).stdout
        for flags in ([], ["-OO"])
    )
    assert stripped.split() == plain.split()
    assert DEFINED["hamming_loss"].definition in plain


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
