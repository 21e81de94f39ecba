"""The command line as a user meets it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from helpers.command_line import commands
from multilab.cli import main
from multilab.cli.main import root


def test_help_lists_every_command_of_the_first_level(capsys):
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(f"  {name} " in output for name in root.list_commands(click.Context(root)))
    assert main([]) == 0
    assert capsys.readouterr().out == output
    assert main(["help"]) == 0
    assert capsys.readouterr().out == output


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_every_command_explains_itself(words, capsys):
    assert main([*words, "--help"]) == 0
    output = capsys.readouterr().out
    assert f"Usage: multilab {' '.join(words)} " in output
    assert "``" not in output
    first = output.splitlines()[2]
    assert first.strip().endswith((".", ","))
    assert main([*words[:-1], "--help"]) == 0
    assert "..." not in next((x for x in capsys.readouterr().out.splitlines() if x.startswith(f"  {words[-1]} ")), "")


def test_stages_that_only_dvc_calls_are_not_listed(capsys):
    assert main(["study", "--help"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert {"new", "run", "report", "publish"} <= set(listed)
    assert not {"base-scores", "train", "analyses", "evaluate", "stats"} & set(listed)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["trian"], "No such command 'trian'. Did you mean train? (multilab --help)"),
        (
            ["list"],
            "No such command 'list'. Did you mean datasets list or methods list or store list? (multilab --help)",
        ),
        (["zzz"], "No such command 'zzz'. (multilab --help)"),
        (["store", "lst"], "No such command 'lst'. Did you mean 'list'? (multilab store --help)"),
        (
            ["store", "list", "--statsu", "done"],
            "No such option '--statsu'. Did you mean '--status'?",
        ),
        (["explain", "model"], "Missing argument 'ROWS'. (multilab explain --help)"),
        (["store", "show"], "Missing argument 'KEY'. (multilab store show --help)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_in_a_command_line_is_explained_in_one_line(argv, message, capsys):
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"Error: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["study", "evaluate", "--study", "nothing"],
        ["study", "train", "--study", "quick", "--method", "mlkn"],
        ["study", "new", "../x"],
        ["study", "keys", "--study", "nothing"],
        ["store", "show", "zzz"],
        ["study", "report", "--study", "nothing"],
        ["datasets", "show", "emotion"],
        ["datasets", "check", "nothing.arff"],
    ],
)
def test_what_a_user_can_fix_is_one_line_and_exit_code_2(argv, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert error.startswith("Error: ")


def test_ctrl_c_stops_with_130(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("multilab.datasets.cards", stop)
    assert main(["datasets", "list"]) == 130
    assert "stopped" in capsys.readouterr().err


def test_a_fault_of_the_program_is_not_hidden(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("multilab.datasets.cards", fail)
    with pytest.raises(ZeroDivisionError):
        main(["datasets", "list"])


@pytest.mark.parametrize("words", [[], ["train"], ["tune"], ["fit"], ["study"], ["store", "list"], ["datasets", "add"]])
def test_help_imports_nothing_heavy(words):
    code = (
        f"import sys; from multilab.cli import main; main({[*words, '--help']})\n"
        "heavy = {'numpy', 'sklearn', 'hydra', 'omegaconf', 'pandas', 'yaml', 'mlflow', 'concurrent.futures'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


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
        ["compare", "--dataset", "./{}", "--labels-last", "1"],
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
    from multilab.datasets import DatasetError, TableEncoder

    with at_once(), pytest.raises(DatasetError, match="it is a pipe, not a data file"):
        TableEncoder(()).read("pipe.csv")  # the door of predict, monitor and explain


@pytest.mark.parametrize(
    ("path", "argv"),
    [
        ("data/own/dir.yaml", ["datasets", "show", "dir"]),
        ("conf/method/dir.yaml", ["methods", "show", "dir"]),
        ("conf/method/dir.yaml", ["train", "dataset=genes-toy", "method=./conf/method/dir.yaml"]),
        ("conf/study/dir.yaml", ["study", "run", "--study", "dir"]),
    ],
)
def test_a_folder_with_the_name_of_settings_is_called_a_folder(path, argv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(path).mkdir(parents=True)
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "dir.yaml: it is a folder" in line


@pytest.mark.slow  # -OO compiles all libraries anew
def test_python_without_docstrings_has_the_same_metrics_and_help(capsys, tmp_path):
    from multilab.metrics import ALL_METRICS

    program = (
        "from multilab.cli import main; from multilab.metrics import ALL_METRICS; from multilab.testing import "
        "multilabel_checks; print({n: m.definition for n, m in ALL_METRICS.items()}); print(multilabel_checks()); "
        "main(['store', '--help']); main(['fit', '--help']); main(['methods', 'show', 'mlknn'])"
    )
    plain, stripped = (
        subprocess.run(
            [sys.executable, *flags, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
        ).stdout
        for flags in ([], ["-OO"])
    )
    assert stripped.split() == plain.split()
    assert ALL_METRICS["hamming_loss"].definition in plain


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
    assert main(["datasets", "check", str(tmp_path / "mine.csv"), "--labels", "b,c", "--json"]) == 0
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
        [sys.executable, "-m", "multilab", *argv], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "mlknn on mine, 3 splits" in run.stdout


def test_a_character_that_the_locale_lacks_is_escaped(tmp_path):
    (tmp_path / "mine.csv").write_text("x,größe\n1,0\n2,1\n", "utf-8")
    command = [sys.executable, "-m", "multilab", "datasets", "check", "mine.csv", "--label-prefix", "gr"]
    locale = {"PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(command, env={**os.environ, **locale}, cwd=tmp_path, capture_output=True)
    assert b"gr\\xf6\\xdfe" in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "helps"), [("MULTILAB_CELLS", True), ("MULTILAB_CACHE", True), ("UNRELATED", False)]
)
def test_a_folder_that_cannot_be_written_to_is_named_with_the_variable_that_helps(
    variable, helps, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv(variable, str(tmp_path))

    def refuse():
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "file"))

    monkeypatch.setattr(root, "main", lambda *_, **__: refuse())
    assert main(["store", "list"]) == 2
    line = capsys.readouterr().err
    assert str(tmp_path / "file") in line
    assert [name for name in ("MULTILAB_CELLS", "MULTILAB_CACHE") if name in line] == ([variable] if helps else [])
