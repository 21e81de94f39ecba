"""`dvc push` and `dvc pull` move own data: what a colleague gets from the committed files and a remote."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("dvc")

from dvc.exceptions import DvcException
from dvc.repo import Repo

from helpers.own_files import own_rows
from multilab.cli import main
from multilab.datasets import load

GIT = ["git", "-c", "user.name=multilab", "-c", "user.email=multilab@example.org", "-c", "core.excludesFile="]
FILES_OF_GIT = [  # which `.gitignore` the repository has: that of the checkout, or that of a folder of one's own
    pytest.param(lambda checkout: shutil.copy(checkout / ".gitignore", ".gitignore"), id="checkout"),
    pytest.param(lambda checkout: main(["methods", "new", "my_method", "--outside"]), id="own folder"),
]


def git(*argv):
    subprocess.run([*GIT, *argv], check=True, capture_output=True)


@pytest.fixture(params=FILES_OF_GIT)
def project(request, tmp_path, monkeypatch, checkout):
    """A repository of git and DVC with a local remote and a data set of its own, in the current folder."""
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q")
    request.param(checkout)
    Repo.init().close()
    Path(".dvc/config").write_text(f"[core]\n    remote = far\n['remote \"far\"']\n    url = {tmp_path / 'far'}\n")
    Path("my.csv").write_text(own_rows())
    assert main(["datasets", "add", "my.csv", "--label-prefix", "tag_", "--drop", "id", "--name", "mine"]) == 0
    return folder


def test_own_data_arrive_in_a_clone_with_the_digest_that_was_pushed(project, tmp_path, monkeypatch, capsys):
    sent = load("mine")
    git("add", "-A")
    git("commit", "-q", "-m", "Data set mine")
    with Repo() as repo:
        assert repo.push() == 1
    git("clone", "-q", str(project), str(tmp_path / "colleague"))
    monkeypatch.chdir(tmp_path / "colleague")
    assert sorted(path.name for path in Path("data/own").iterdir()) == ["mine.csv.dvc", "mine.yaml"]
    capsys.readouterr()
    for argv in (["datasets", "fetch", "mine"], ["datasets", "check", "data/own/mine.csv", "--label-prefix", "tag_"]):
        assert main(argv) == 2
        assert "dvc pull data/own/mine.csv.dvc" in capsys.readouterr().err, "the command that fetches the file"
    with Repo() as repo:
        assert repo.pull()["stats"]["fetched"] == 1
    assert Path("data/own/mine.csv").read_bytes() == (project / "my.csv").read_bytes()
    received = load("mine")
    assert received.digest == sent.digest
    assert received.label_names == sent.label_names


@pytest.mark.parametrize("project", FILES_OF_GIT[:1], indirect=True)
def test_what_is_damaged_in_the_remote_does_not_become_data(project, tmp_path, capsys):
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
