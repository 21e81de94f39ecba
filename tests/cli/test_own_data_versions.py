"""`datasets add` in a DVC repository: the file is DVC's, and `dvc checkout` brings it back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.own_files import own_rows
from multilab.cli import main
from multilab.datasets import load


def dvc(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "dvc", *arguments, "-q"], check=True)


def test_the_file_is_versioned(tmp_path, monkeypatch, capsys):
    pytest.importorskip("dvc")
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    dvc("init", "--no-scm")
    Path("my.csv").write_text(own_rows())
    assert main(["datasets", "add", "my.csv", "--label-prefix", "tag_", "--drop", "id"]) == 0
    assert "version    data/own/my.csv.dvc (to commit: git add data/own;" in capsys.readouterr().out
    before = load("my").digest
    Path("data/own/my.csv").unlink()
    dvc("checkout")
    assert load("my").digest == before


def test_git_ignores_the_contents_of_data_own_and_not_the_folder(checkout):
    if not (checkout / ".git").exists():
        pytest.skip("no git repository: an unpacked archive")
    names = ["mine.csv", "mine.yaml", "mine.csv.dvc"]
    run = ["git", "check-ignore", "--no-index", *(f"data/own/{name}" for name in names), "data/prepared/x"]
    ignored = subprocess.run(run, cwd=checkout, capture_output=True, text=True).stdout.split()
    assert ignored == ["data/own/mine.csv", "data/prepared/x"]
