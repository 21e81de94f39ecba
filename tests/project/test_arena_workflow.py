"""The scripts of the workflow for submissions, run with stand-ins for `multilab` and `gh`."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPTS = CHECKOUT / ".github" / "actions" / "arena"
pytestmark = [
    pytest.mark.skipif(not SCRIPTS.is_dir(), reason="no workflows: an unpacked sdist"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed"),
]

# An archive is a text: the exit code of its verification, and what is printed last.
MULTILAB = """
import json, os, sys
from pathlib import Path

assert sys.argv[1:3] == ["arena", "verify"], sys.argv
with open(os.environ["LOG"], "a") as log:
    log.write(json.dumps(sys.argv[3:]) + "\\n")
arguments = dict(a.split("=", 1) for a in sys.argv[4:])
code, line = Path(sys.argv[3]).read_text().split(" ", 1)
if code != "2":
    Path(arguments["markdown"]).write_text(f"### Arena: {line}\\n")
print(line)
sys.exit(int(code))
"""
GH = """
import json, os, shutil, sys
from pathlib import Path

state = json.loads(Path(os.environ["STATE"]).read_text())
argv = sys.argv[1:]
if argv[:2] == ["run", "download"]:
    assert argv[2:] == ["99", "--repo", "me/mine", "--name", "arena-submission", "--dir", argv[-1]], argv
    shutil.copytree(state["artifact"], argv[-1])
elif argv[:2] == ["api", "repos/me/mine/pulls/7"]:
    print(state["head"])
elif argv[:3] == ["api", "--paginate", "repos/me/mine/pulls/7/files"]:
    print("\\n".join(state["files"]))
elif argv[:3] == ["api", "--paginate", "repos/me/mine/issues/7/comments"]:
    for number, body in state["comments"].items():
        if body.startswith(os.environ["marker"]):
            print(number)
else:
    assert argv[:2] == ["api", "--method"], argv
    number = {"POST": "100", "PATCH": argv[3].rpartition("/")[2]}[argv[2]]
    state["comments"][number] = Path(argv[-1].removeprefix("body=@")).read_text()
    Path(os.environ["STATE"]).write_text(json.dumps(state))
"""


class Runner:
    """Runs a script of the action in a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.log, self.state = root, root / "calls.txt", root / "state.json"
        (root / "bin").mkdir()
        for name, text in (("multilab", MULTILAB), ("gh", GH)):
            (root / "bin" / f"run_{name}.py").write_text(text)
            program = root / "bin" / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{root}/bin/run_{name}.py" "$@"\n')
            program.chmod(stat.S_IRWXU)

    def run(self, script: str, code: int = 0, **environment: str) -> str:
        path = f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": path, "LOG": str(self.log), "STATE": str(self.state), "GITHUB_REPOSITORY": "me/mine"}
        env |= {"GITHUB_STEP_SUMMARY": str(self.root / "summary.md"), **environment}
        done = subprocess.run(
            ["bash", str(SCRIPTS / script)], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def verify(self, code: int = 0) -> str:
        self.run("verify.sh", code, PULL_REQUEST="7", SAMPLE="10", SEED="42")
        return (self.root / ".multilab-arena" / "comment.md").read_text()

    def comment(self, **state: object) -> dict[str, str]:
        artifact = self.root / "artifact"
        artifact.mkdir(exist_ok=True)
        (artifact / "number").write_text(str(state.pop("number", "7\n")))
        (artifact / "comment.md").write_text(str(state.pop("text", "### Arena: fine\n")))
        known = {"artifact": str(artifact), "head": "abc", "files": ["submissions/a.zip"], "comments": {}}
        self.state.write_text(json.dumps(known | state))
        shutil.rmtree(self.root / ".multilab-arena", ignore_errors=True)
        self.run("comment.sh", RUN_ID="99", HEAD_SHA="abc", GH_TOKEN="t")
        return json.loads(self.state.read_text())["comments"]


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def put(runner: Runner, side: str, **archives: str) -> None:
    folder = runner.root / side
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in archives.items():
        (folder / f"{name}.zip").write_text(text)


def test_what_is_new_or_changed_is_verified_and_the_worst_code_counts(runner):
    put(runner, "submissions", old="0 old", edited="0 before")
    put(runner, "change/submissions", old="0 old", edited="0 edited is verified", new="1 new is refused")
    text = runner.verify(code=1)
    assert "edited is verified" in text
    assert "new is refused" in text
    calls = [json.loads(line) for line in runner.log.read_text().splitlines()]
    assert [call[0] for call in calls] == ["change/submissions/edited.zip", "change/submissions/new.zip"]
    assert calls[0][1:3] == ["sample=10", "seed=42"]
    assert (runner.root / "summary.md").read_text() == text
    assert (runner.root / ".multilab-arena" / "number").read_text() == "7\n"


def test_a_refusal_is_shown_as_text_and_a_link_or_a_stamp_is_refused(runner, tmp_path):
    put(runner, "change/submissions", bad="2 ArenaError: `x` <!-- $(touch trap) \x1b[31m")
    (runner.root / "change" / "submissions" / "link.zip").symlink_to("/etc/passwd")
    (runner.root / "change" / "submissions" / "mine.verified.json").write_text('{"result": "verified"}')
    text = runner.verify(code=2)
    assert "`ArenaError: x <!-- $(touch trap) [31m`" in text
    assert "`a link is no submission`" in text
    assert "`a stamp is written by a verification, not submitted`" in text
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_stamp_in_a_folder_is_refused(runner, kind):
    folder = runner.root / "change" / "submissions" / "mine"
    folder.mkdir(parents=True)
    if kind == "file":
        (folder / "verified.json").write_text('{"result": "verified"}')
    else:
        (folder / "verified.json").symlink_to("nothing")
    assert "`a stamp is written by a verification, not submitted`" in runner.verify(code=2)
    assert not runner.log.exists()


def test_nothing_new_is_said_so(runner):
    put(runner, "change/submissions", old="0 old")
    put(runner, "submissions", old="0 old")
    assert runner.verify() == "nothing in submissions/ is new\n"


def test_one_comment_is_made_and_then_edited(runner):
    comments = runner.comment()
    marker, warning, _, *text = comments["100"].splitlines()
    assert marker == "<!-- multilab arena submission -->"
    assert warning.startswith("> What follows was written on a machine that ran the submitted code")
    assert text == ["### Arena: fine"]
    again = runner.comment(comments={**comments, "5": "a person"}, text="### Arena: better\n")
    assert again == {"5": "a person", "100": comments["100"].replace("fine", "better")}


def test_a_change_outside_the_folder_is_named_first(runner):
    (body,) = runner.comment(files=["submissions/a.zip", ".github/workflows/arena-submission.yml", "src/x.py"]).values()
    assert body.splitlines()[1].startswith("> **Read the change first:** it touches 2 files outside")


@pytest.mark.parametrize("state", [{"head": "another"}, {"number": "$(touch trap)"}, {"number": ""}])
def test_an_artifact_of_another_pull_request_gets_no_comment(runner, state):
    assert runner.comment(**state) == {}
    assert not (runner.root / "trap").exists()


def test_a_long_text_is_cut(runner):
    (body,) = runner.comment(text="x" * 10**6).values()
    assert len(body) < 65_000
