"""The action for pull requests: its steps, run in a folder with a stand-in for GitHub, and its structure."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
ACTION = CHECKOUT / ".github" / "actions" / "compare"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed"),
]

# `compare` writes a leaderboard whose quality is in the folder; everything else is the real command.
MULTILAB = """
import json, os, sys
from pathlib import Path

if sys.argv[1] == "compare":
    arguments = {name[2:]: value for name, value in zip(sys.argv[2::2], sys.argv[3::2])}
    with open(os.environ["LOG"], "a") as log:
        log.write(json.dumps({**arguments, "cwd": os.getcwd(), "path": os.environ["PYTHONPATH"]}) + "\\n")
    quality = float(Path("quality.txt").read_text())
    values = {str(k): quality + [0, 1, -1, 2, -2][k] / 1000 for k in range(5)}
    board = {"format": 1, "dataset": {"name": "mine"}, "metric": arguments["metric"], "test_to_train": 0.25,
             "directions": {arguments["metric"]: "max"}, "splits": [{"split": k, "digest": str(k)} for k in range(5)],
             "methods": [{"name": "mlknn", "status": "done", "values": {arguments["metric"]: values}}]}
    Path(arguments["output"]).mkdir(parents=True)
    (Path(arguments["output"]) / "leaderboard.json").write_text(json.dumps(board))
    sys.exit(0)
from multilab.cli import main
sys.exit(main(sys.argv[1:]))
"""
# The comments of a pull request as a file.
GH = """
import json, os, sys
from pathlib import Path

state = Path(os.environ["COMMENTS"])
comments = json.loads(state.read_text())
if os.environ.get("READ_ONLY") and "--method" in sys.argv:
    sys.exit("HTTP 403")
if "--jq" in sys.argv:
    assert sys.argv[2:4] == ["--paginate", "repos/me/mine/issues/7/comments"], sys.argv
    assert 'user.type == "Bot"' in sys.argv[-1] and "startswith(env.marker)" in sys.argv[-1]
    for comment in comments:
        if comment["bot"] and comment["body"].startswith(os.environ["marker"]):
            print(comment["id"])
    sys.exit(0)
method, url, field = sys.argv[3], sys.argv[4], sys.argv[6]
body = Path(field.removeprefix("body=@")).read_text()
if method == "POST":
    assert url == "repos/me/mine/issues/7/comments", url
    comments.append({"id": 100 + len(comments), "bot": True, "body": body})
else:
    (comment,) = [c for c in comments if url == f"repos/me/mine/issues/comments/{c['id']}"]
    comment["body"] = body
state.write_text(json.dumps(comments))
"""


def content() -> dict:
    return yaml.safe_load((ACTION / "action.yml").read_text())


class Runner:
    """Runs the steps of the action in a folder, as GitHub does."""

    def __init__(self, root: Path) -> None:
        self.root, self.outputs = root, {}
        self.summary, self.comments, self.log = root / "summary.md", root / "comments.json", root / "calls.txt"
        self.work = root / "work"
        self.work.mkdir()
        self.comments.write_text("[]")
        for name, text in (("multilab", MULTILAB), ("gh", GH)):
            self.program(name, text)

    def program(self, name: str, text: str) -> None:
        """Put a Python program on the search path of the steps."""
        folder = self.root / "bin"
        folder.mkdir(exist_ok=True)
        (folder / f"run_{name}.py").write_text(text)
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/run_{name}.py" "$@"\n')
        (folder / name).chmod(stat.S_IRWXU)

    def step(self, name: str, inputs: dict[str, str], **environment: str) -> subprocess.CompletedProcess:
        """Run one step; its outputs are kept."""
        (step,) = [s for s in content()["runs"]["steps"] if s["name"] == name]
        known = {
            **{f"inputs.{k}": str(v.get("default", "")) for k, v in content()["inputs"].items()},
            **{f"inputs.{k}": v for k, v in inputs.items()},
            **{f"steps.{k}": v for k, v in self.outputs.items()},
            **{"github.token": "t", "github.event.pull_request.number": "7", "github.job": "compare"},
        }
        env = {k: re.sub(r"\$\{\{ (.*?) \}\}", lambda m: known[m[1]], v) for k, v in step.get("env", {}).items()}
        output = self.root / "output.txt"
        output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.work,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("MULTILAB_C")},
                **{"PATH": f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(CHECKOUT / "src")},
                **{"GITHUB_ACTION_PATH": str(ACTION), "GITHUB_OUTPUT": str(output), "LOG": str(self.log)},
                **{"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_REPOSITORY": "me/mine"},
                **{"COMMENTS": str(self.comments)},
                **env,
                **environment,
            },
            capture_output=True,
            text=True,
        )
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.outputs[f"{step['id']}.outputs.{key}"] = value
        return done

    def prepare(self, now: float, old: float | None = None) -> None:
        """Write a quality of the checkout and of the baseline."""
        shutil.rmtree(self.work / ".multilab-compare", ignore_errors=True)
        (self.work / "quality.txt").write_text(str(now))
        if old is not None:
            folder = self.work / ".multilab-compare" / "baseline"
            folder.mkdir(parents=True)
            (folder / "quality.txt").write_text(str(old))

    def run(self, inputs: dict[str, str], now: float, old: float | None = None) -> int:
        """Run all steps; return the exit code of the last."""
        self.prepare(now, old)
        for name in ("Compare", "Test for regressions", "Comment"):
            done = self.step(name, inputs)
            assert done.returncode == 0, done.stdout + done.stderr
        return self.step("Verdict", inputs).returncode

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in json.loads(self.comments.read_text())]


@pytest.fixture
def runner(tmp_path):
    """A runner in a fresh folder."""
    return Runner(tmp_path)


INPUTS = {"dataset": "genes-toy", "methods": "mlknn", "baseline": "main", "python-path": "src"}


def test_a_regression_fails_and_one_comment_is_edited(runner):
    runner.comments.write_text(json.dumps([{"id": 1, "bot": False, "body": "<!-- multilab compare: compare -->"}]))
    assert runner.run(INPUTS, now=0.5, old=0.7) == 1
    assert "**worse**" in runner.summary.read_text()
    assert len(runner.bodies()) == 2  # that of a person is left alone
    assert runner.bodies()[1].startswith("<!-- multilab compare: compare -->\n### mine: macro_f1")
    assert runner.run(INPUTS, now=0.7, old=0.7) == 0
    assert len(runner.bodies()) == 2
    assert "No regression." in runner.bodies()[1]


def test_both_runs_have_the_same_arguments_and_their_own_code(runner):
    inputs = {**INPUTS, "dataset": "my data.csv", "labels": "tag_*", "cv": "10"}
    (runner.work / "my data.csv").write_text("a,tag_b\n")
    runner.prepare(now=0.5, old=0.5)
    assert runner.step("Compare", inputs).returncode == 0
    new, old = (json.loads(line) for line in runner.log.read_text().splitlines())
    work = str(runner.work)
    assert new["dataset"] == old["dataset"] == f"{work}/my data.csv"
    assert {k: new[k] for k in ("labels", "method", "budget", "metric", "cv")} == {
        **{"labels": "tag_*", "method": "mlknn", "budget": "10m", "metric": "macro_f1", "cv": "10"}
    }
    assert (new["cwd"], old["cwd"]) == (work, f"{work}/.multilab-compare/baseline")
    assert (new["path"].partition(":")[0], old["path"].partition(":")[0]) == (f"{new['cwd']}/src", f"{old['cwd']}/src")


def test_without_a_baseline_there_is_a_table_and_a_committed_one_is_a_baseline(runner):
    assert runner.run({**INPUTS, "baseline": ""}, now=0.9) == 0
    assert "| mlknn |  | 0.9000 |" in runner.summary.read_text()
    shutil.move(runner.work / ".multilab-compare" / "now" / "leaderboard.json", runner.work / "best.json")
    assert runner.run({**INPUTS, "baseline": "best.json"}, now=0.5) == 1


def test_a_baseline_that_cannot_run_is_a_warning(runner):
    runner.prepare(now=0.5, old=0.5)
    (runner.work / ".multilab-compare" / "baseline" / "quality.txt").unlink()  # there the comparison fails
    done = runner.step("Compare", INPUTS)
    assert done.returncode == 0
    assert "::warning::the baseline cannot run" in done.stdout
    assert runner.step("Test for regressions", INPUTS).returncode == 0
    assert runner.outputs["test.outputs.code"] == "0"


def test_a_token_that_may_only_read_is_no_failure(runner):
    folder = runner.work / ".multilab-compare"
    folder.mkdir()
    (folder / "comment.md").write_text("a table\n")
    done = runner.step("Comment", INPUTS, READ_ONLY="1")
    assert done.returncode == 0
    assert "::notice::no permission to write a comment" in done.stdout
    assert runner.bodies() == []


def test_a_wrong_level_fails_the_job(runner):
    assert runner.run({**INPUTS, "alpha": "2"}, now=0.5, old=0.5) == 2
    assert runner.bodies() == []


def test_inputs_are_data_and_never_code(runner, tmp_path):
    trap = f'x"; touch {tmp_path}/trap; echo "$(touch {tmp_path}/trap)'
    inputs = dict.fromkeys(("dataset", "labels", "methods", "budget", "cv", "baseline", "python-path"), trap)
    runner.prepare(now=0.5)
    runner.step("Compare", inputs)
    runner.step("Test for regressions", {"alpha": trap, "tolerance": trap, "metric": trap})
    assert not (tmp_path / "trap").exists()
    for step in content()["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]
    for script in ACTION.glob("*.sh"):
        assert "${{" not in script.read_text()
        assert "eval" not in script.read_text()


def test_structure_of_the_action():
    action = content()
    assert {"dataset", "labels", "methods", "budget", "metric", "baseline", "alpha"} <= set(action["inputs"])
    assert all(entry["description"] for entry in action["inputs"].values())
    used = {
        name
        for step in action["runs"]["steps"]
        for value in [*step.get("env", {}).values(), *step.get("with", {}).values(), step.get("if", "")]
        for name in re.findall(r"inputs\.([\w-]+)", str(value))
    }
    assert used == set(action["inputs"])
    assert all(step["shell"] == "bash" for step in action["runs"]["steps"] if "run" in step)


def test_workflows_name_inputs_that_exist():
    files = [CHECKOUT / ".github" / "workflows" / "gate.yml", CHECKOUT / "docs" / "guide" / "compare-workflow.yml"]
    for file in files:
        jobs = yaml.safe_load(file.read_text())["jobs"]
        uses = [
            (job, step)
            for job in jobs.values()
            for step in job["steps"]
            if ".github/actions/compare" in step.get("uses", "")
        ]
        assert len(uses) == 1, file
        (job, step) = uses[0]
        assert set(step["with"]) <= set(content()["inputs"])
        assert "dataset" in step["with"]
        assert job["permissions"] == {"contents": "read", "pull-requests": "write"}


@pytest.mark.slow
def test_a_planted_regression_is_caught_by_the_real_commands(runner, monkeypatch):
    """A method of one's own that is broken by a pull request; the data are a file of the repository."""
    runner.program("multilab", "import sys\nfrom multilab.cli import main\nsys.exit(main(sys.argv[1:]))\n")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    new = [sys.executable, "-m", "multilab", "methods", "new", "mine", "--outside"]
    subprocess.run(new, cwd=runner.work, env=environment, check=True, capture_output=True)
    rows = [f"{i % 7},{i % 5},{i % 3},{int(i % 7 > 3)},{int(i % 5 > 2)},{int(i % 3 == 0)}" for i in range(210)]
    (runner.work / "data.csv").write_text("\n".join(["a,b,c,tag_x,tag_y,tag_z", *rows]) + "\n")
    baseline = runner.work / ".multilab-compare" / "baseline"
    shutil.copytree(runner.work, baseline, ignore=shutil.ignore_patterns(".multilab-compare"))
    inputs = {"dataset": "data.csv", "labels": "tag_*", "methods": "mine,mlknn", "baseline": "main", "budget": "5m"}
    codes = []
    for edit in (("", ""), ("self.coef_ - 0.5", "(self.coef_ * 0) - 0.5")):
        source = runner.work / "mine.py"
        source.write_text(source.read_text().replace(*edit) if edit[0] else source.read_text())
        for name in ("Compare", "Test for regressions"):
            done = runner.step(name, inputs, MULTILAB_JOBS="1")
            assert done.returncode == 0, done.stdout + done.stderr
        codes.append(runner.outputs["test.outputs.code"])
    assert codes == ["0", "1"], runner.summary.read_text()
    assert re.search(r"^\| mine \|.*\*\*worse\*\* \|$", runner.summary.read_text(), re.MULTILINE)
