"""`dvc push` and `dvc pull` move own data: what a colleague gets from the committed files and a remote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("dvc")

from dvc.exceptions import DvcException
from dvc.repo import Repo

from helpers.own_files import own_rows
from multilab.cli import main
from multilab.datasets import load


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A DVC repository with a local remote, in the current folder."""
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Repo.init(no_scm=True).close()
    config = f"[core]\n    no_scm = True\n    remote = far\n['remote \"far\"']\n    url = {tmp_path / 'far'}\n"
    Path(".dvc/config").write_text(config)
    return folder


def test_own_data_arrive_with_the_digest_that_was_pushed(project, tmp_path, monkeypatch, capsys):
    Path("my.csv").write_text(own_rows())
    assert main(["datasets", "add", "my.csv", "--label-prefix", "tag_", "--drop", "id", "--name", "mine"]) == 0
    assert "mine.csv.dvc" in capsys.readouterr().out
    sent = load("mine")
    with Repo() as repo:
        assert repo.push() == 1
    colleague = tmp_path / "colleague"
    for name in (".dvc/config", "data/own/mine.yaml", "data/own/mine.csv.dvc"):  # what git carries
        (colleague / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, colleague / name)
    monkeypatch.chdir(colleague)
    with Repo() as repo:
        assert repo.pull()["stats"]["fetched"] == 1
    assert Path("data/own/mine.csv").read_bytes() == (project / "my.csv").read_bytes()
    received = load("mine")
    assert received.digest == sent.digest
    assert received.label_names == sent.label_names


def test_what_is_damaged_in_the_remote_does_not_become_data(project, tmp_path, capsys):
    Path("my.csv").write_text(own_rows())
    assert main(["datasets", "add", "my.csv", "--label-prefix", "tag_", "--drop", "id", "--name", "mine"]) == 0
    with Repo() as repo:
        repo.push()
    shutil.rmtree(".dvc/cache", ignore_errors=True)
    Path("data/own/mine.csv").unlink()
    (stored,) = (path for path in (tmp_path / "far").rglob("*") if path.is_file())
    stored.chmod(0o644)
    stored.write_text(own_rows(41))
    with Repo() as repo, pytest.raises(DvcException):
        repo.pull()
    assert not Path("data/own/mine.csv").exists()
    capsys.readouterr()
    assert main(["datasets", "fetch", "mine"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
