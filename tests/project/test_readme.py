"""The README keeps its word."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def readme(checkout) -> str:
    return (checkout / "README.md").read_text()


def test_its_python_runs(readme, tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    plots = {"war": "soldiers at the front", "love": "two hearts meet in paris", "war|love": "a nurse loves a soldier"}
    rows = [
        f'Film {i},"{plots[genres]} {i % 7}",{1990 + i % 30}-05-0{1 + i % 9},"{i % 9},50 €",{genres}'
        for i, genres in enumerate(list(plots) * 30)
    ]
    (tmp_path / "films.csv").write_text("\n".join(["title,plot,released,price,genres", *rows]) + "\n", encoding="utf-8")
    block = block.replace("time_limit=60", "time_limit=None, budget_fits=6")
    run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    for text in (
        "score",
        "[[1 0]\n [1 1]",
    ):  # leaderboard; love, then war and love
        assert text in run.stdout


def test_its_links_lead_somewhere(readme, checkout):
    targets = re.findall(r"\]\(([^)#]+)\)", readme)
    assert targets
    assert [target for target in targets if "://" not in target and not (checkout / target).exists()] == []


def test_every_make_target_has_a_word_of_help(checkout):
    text = (checkout / "Makefile").read_text()
    phony = re.search(r"\.PHONY: (.*)", text).group(1).split()
    assert set(phony) == set(re.findall(r"^([a-z-]+):.*## ", text, flags=re.M))


@pytest.mark.parametrize(("lock", "smallest"), [("requirements.lock", 100), ("requirements-arena.lock", 20)])
def test_a_lock_has_hashes_and_no_address(checkout, lock, smallest):
    text = (checkout / lock).read_text()
    pinned = re.findall(r"^([a-z0-9_.-]+)==", text, flags=re.M)
    assert len(pinned) > smallest
    assert "://" not in text
    assert text.count("--hash=sha256:") >= len(pinned)


def test_the_lock_of_the_arena_has_the_versions_of_the_lock(checkout):
    """Installed on top of the other, it changes no package that is there."""
    locks = [(checkout / name).read_text() for name in ("requirements.lock", "requirements-arena.lock")]
    laboratory, arena = (dict(re.findall(r"^([a-z0-9_.-]+)==(\S+)", text, flags=re.M)) for text in locks)
    assert {name: version for name, version in arena.items() if laboratory.get(name, version) != version} == {}
    assert {"lightgbm", "xgboost-cpu", "catboost", "mlrl-boomer", "bencheval"} <= set(arena) - set(laboratory)


def test_there_are_no_other_locks(checkout):
    for path in checkout.glob("*.lock"):
        assert path.name in (
            *("requirements.lock", "requirements-arena.lock", "dvc.lock"),
            "mlflow.db.lock",  # after `multilab train`
        )


def test_the_lock_pins_one_version_of_each_package(checkout):
    lines = re.findall(r"^([a-z0-9_.-]+)==(\S+)(.*)", (checkout / "requirements.lock").read_text(), flags=re.M)
    names = [name for name, _, _ in lines]
    assert sorted(names) == sorted(set(names))
    assert [line for line in lines if "python_full_version" in line[2] or "python_version" in line[2]] == []
    assert {"numpy", "scipy", "scikit-learn", "sphinx"} <= set(names)


@pytest.mark.slow
def test_its_own_file_is_trained_in_a_fresh_clone(readme, checkout, tmp_path):
    """A file of one's own and the cheap rows of the table, as written, in a clone of this commit."""
    if not (checkout / ".git").exists():
        pytest.skip("no git repository to clone: an unpacked archive")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{checkout}", clone], check=True)
    rows = [
        f"{i},{i % 7 / 7},{'Lima' if i % 2 else 'Rome'},{i % 2},{int(i % 3 == 0)},{'war|love' if i % 5 else 'war'}"
        for i in range(60)
    ]
    (clone / "films.csv").write_text("\n".join(["id,a,city,tag_a,tag_b,genres", *rows]) + "\n")
    settings = {"PYTHONPATH": str(clone / "src"), "MULTILAB_JOBS": "1"}
    unset = ("MULTILAB_CELLS", "MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_CONF", "MLFLOW_TRACKING_URI")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | settings

    commands = readme + (checkout / "docs" / "guide" / "laboratory.md").read_text()

    def run(line: str) -> subprocess.CompletedProcess[str]:
        assert line in commands, f"{line!r} is neither in the README nor on the page of the laboratory"
        command = [sys.executable, "-m", *shlex.split(line)]
        return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, timeout=300)

    added = run("multilab datasets add films.csv --tags genres")
    assert added.returncode == 0, added.stderr
    assert "data/own/films.csv.dvc (to commit: git add data/own" in added.stdout
    trained = run("multilab train dataset=./films.csv labels='tag_*' drop=id method=mlknn")
    assert trained.returncode == 0, trained.stderr
    assert re.search(r"mlknn on films\S*, 5 splits", trained.stdout)
    for line in ("multilab methods show mlknn", "multilab completion bash"):
        assert run(line).returncode == 0, line
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    changed = subprocess.run(status, cwd=clone, capture_output=True, text=True, check=True).stdout.splitlines()
    own = ["films.csv", "data/own/films.csv.dvc", "data/own/films.yaml"]  # the file itself is DVC's
    assert sorted(changed) == sorted(f"?? {name}" for name in own)
