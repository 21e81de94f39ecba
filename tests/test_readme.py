"""The README keeps its word."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from multilab.reports import ledger_markdown


@pytest.fixture(scope="module")
def readme(checkout) -> str:
    return (checkout / "README.md").read_text()


def test_its_python_runs(readme, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    assert blocks
    for block in blocks:
        run = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        assert "ranking loss 0.0" in run.stdout


def test_its_commands_exist(readme):
    from multilab.cli import _VERBS

    assert set(re.findall(r"`(?:[^`]*&& )?multilab ([a-z_]+)", readme)) <= set(_VERBS)


def test_it_says_why_each_dependency_is_there(readme, checkout):
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [re.split(r"[<>=!\[]", line)[0] for line in [*project["dependencies"], *extras["lab"], *extras["dev"]]]
    table = readme.partition("## Why each dependency is there")[2].partition("\n## ")[0]
    assert [name for name in named if name not in table] == []


def test_its_links_lead_somewhere(readme, checkout):
    targets = re.findall(r"\]\(([^)#]+)\)", readme)
    assert targets
    assert [target for target in targets if "://" not in target and not (checkout / target).exists()] == []


def test_every_make_target_has_a_word_of_help(checkout):
    text = (checkout / "Makefile").read_text()
    phony = re.search(r"\.PHONY: (.*)", text).group(1).split()
    assert set(phony) == set(re.findall(r"^([a-z-]+):.*## ", text, flags=re.M))


def test_the_lock_has_hashes_and_no_address(checkout):
    text = (checkout / "requirements.lock").read_text()
    pinned = re.findall(r"^([a-z0-9_.-]+)==", text, flags=re.M)
    assert len(pinned) > 100
    assert "://" not in text
    assert text.count("--hash=sha256:") >= len(pinned)
    for path in checkout.glob("*.lock"):
        assert path.name in ("requirements.lock", "dvc.lock")


def test_its_table_of_claims_says_what_the_reports_say(readme, checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    table = readme.partition("<!-- table ledger -->\n")[2].partition("<!-- end ledger -->")[0]
    assert table == ledger_markdown("reports")
    assert "MLWSE" in table
