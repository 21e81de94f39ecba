"""Workflows and scripts: pinned actions, other kernels of OpenBLAS, and a set-up that is never silent."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from multilab.core import write_content
from multilab.experiments.study import load_study

PINNED = re.compile(r"- uses: (?:[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/actions/\w+)")


@pytest.fixture(scope="module")
def workflows(checkout) -> dict[str, str]:
    """The texts of all workflows, by file name, and of the one that the guide gives to users."""
    paths = [*(checkout / ".github" / "workflows").glob("*.y*ml"), checkout / "docs" / "guide" / "compare-workflow.yml"]
    return {path.name: path.read_text() for path in paths}


@pytest.fixture(scope="module")
def actions(checkout) -> dict[str, str]:
    """The texts of our actions, by folder."""
    return {path.parent.name: path.read_text() for path in (checkout / ".github" / "actions").glob("*/action.yml")}


def steps(text: str) -> list[dict]:
    content = yaml.safe_load(text)
    return [step for job in content.get("jobs", {"": content.get("runs")}).values() for step in job["steps"]]


def test_actions_are_pinned_by_commit_with_their_release(workflows, actions):
    assert workflows
    assert actions
    for name, text in {**workflows, **actions}.items():
        lines = [line.strip() for line in text.splitlines() if re.search(r"\buses:", line)]
        lines = [line if line.startswith("- ") else f"- {line}" for line in lines]
        assert [line for line in lines if not PINNED.fullmatch(line)] == [], name
        assert len(lines) == sum("uses" in step for step in steps(text))


def test_one_action_has_one_commit(workflows, actions):
    texts = [*workflows.values(), *actions.values()]
    named = {step["uses"] for text in texts for step in steps(text) if "uses" in step}
    actions = [use.partition("@")[0] for use in named]
    assert sorted(actions) == sorted(set(actions))


def test_a_checkout_leaves_no_credentials_and_may_only_read(workflows):
    for text in workflows.values():
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
        checkouts = [step for step in steps(text) if step.get("uses", "").startswith("actions/checkout@")]
        assert checkouts
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_a_job_has_no_other_right_than_to_comment_or_to_publish(workflows):
    for text in workflows.values():
        for job in yaml.safe_load(text)["jobs"].values():
            rights = {right for right, kind in job.get("permissions", {}).items() if kind == "write"}
            uses = " ".join(step.get("uses", "") + step.get("run", "") for step in job["steps"])
            assert ("pull-requests" in rights) == (".github/actions/compare" in uses)
            assert ("pages" in rights) == ("actions/deploy-pages@" in uses)
            assert ("id-token" in rights) == ("uv publish" in uses or "pages" in rights)
            assert rights <= {"pull-requests", "pages", "id-token"}


def test_what_is_published_was_tried_and_comes_from_no_cache_and_no_checkout(workflows):
    jobs = yaml.safe_load(workflows["release.yml"])["jobs"]
    uses = {name: [step.get("uses", "").partition("@")[0] for step in job["steps"]] for name, job in jobs.items()}
    assert "try" in jobs["publish"]["needs"]
    assert jobs["try"]["needs"] == "build"
    for name in ("publish", "pages"):
        assert "actions/checkout" not in uses[name]
    assert "cache" not in {name for job in jobs.values() for step in job["steps"] for name in step.get("with", {})}


def test_a_tag_that_is_not_the_version_makes_no_release(workflows, tmp_path):
    named = {step.get("name"): step.get("run") for step in steps(workflows["release.yml"])}
    (tmp_path / "dist").mkdir()
    for name in ("multilab-0.2.0-py3-none-any.whl", "multilab-0.2.0.tar.gz"):
        (tmp_path / "dist" / name).touch()

    def code(tag: str) -> int:
        script, env = named["The tag is the version"], {**os.environ, "GITHUB_REF_NAME": tag}
        return subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True).returncode

    assert code("v0.2.0") == 0
    assert code("v0.2.1") != 0
    assert code("v0.2") != 0


def test_a_job_that_runs_code_of_strangers_may_only_read(workflows):
    content = yaml.safe_load(workflows["arena.yml"])
    (job,) = content["jobs"].values()
    assert list(content[True]) == ["pull_request"]  # not pull_request_target
    assert "permissions" not in job
    assert job["runs-on"] == "ubuntu-latest"
    assert "secrets." not in workflows["arena.yml"]


@pytest.fixture
def arena(tmp_path):
    """A repository with an arena of a few scores; commits changes and returns what the gate of the arena recomputes."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "multilab").write_text('#!/bin/sh\necho "$*" >> called\ntest ! -e wrong\n')
    (tmp_path / "bin" / "multilab").chmod(0o755)
    (tmp_path / "conf" / "study").mkdir(parents=True)
    (tmp_path / "conf" / "study" / "arena.yaml").write_text("methods:\n  - mlknn\n  - mine # ours\n  - relm\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    script = Path(__file__).resolve().parents[2] / ".ci" / "arena.py"

    def change(methods=(), scores=None, fails=False):
        for name in methods:
            path = tmp_path / "conf" / f"{name}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{methods}\n")
        if scores is not None:
            rows = [f"{cell.replace('/', ',')},macro_f1,{value}" for cell, value in scores.items()]
            write_content(tmp_path / "reports/arena/scores.csv.gz", "\n".join(["dataset,split,method", *rows]) + "\n")
        for command in (["init", "-q"], ["add", "conf", "reports"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *command], cwd=tmp_path, check=True)
        (tmp_path / "called").write_text("")
        if fails:
            (tmp_path / "wrong").touch()
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run([sys.executable, script], cwd=tmp_path, env={"PATH": path}, check=False)
        return done.returncode, (tmp_path / "called").read_text().splitlines()

    (tmp_path / "reports" / "arena").mkdir(parents=True)
    (tmp_path / "reports" / "arena" / "scores.csv.gz").write_bytes(b"")
    change(["method/mlknn", "method/relm"])
    return change


def test_the_gate_of_a_pull_request_recomputes_the_methods_of_the_arena_that_it_changes(arena):
    assert arena(["entrant/mine", "method/mlknn", "method/decide_f1"]) == (
        0,
        ["gate --study arena --method mine,mlknn --sample 10"],
    )
    assert arena() == (0, ["gate --study arena --sample 10"])


def test_the_gate_of_a_pull_request_recomputes_the_cells_whose_scores_it_changes(arena):
    scores = {f"flags/{split}/{method}": 0.5 for split in range(20) for method in ("mlknn", "relm")}
    arena(scores=scores)
    assert arena(scores=scores | {"flags/3/mlknn": 0.9}) == (0, ["gate --study arena --cell flags/3/mlknn"])
    new = {f"flags/{split}/mine": 0.7 for split in range(200)}
    code, (of_methods, of_cells) = arena(["entrant/mine"], scores | new | {"flags/7/relm": 0.9})
    assert of_methods == "gate --study arena --method mine --sample 10"
    cells = of_cells.removeprefix("gate --study arena --cell ").split(",")
    assert len(set(cells)) == 10
    assert {"flags/7/relm", "flags/3/mlknn"} < set(cells)  # neither hides behind the cells of the new method
    assert code == 0
    assert arena(scores=scores, fails=True)[0] == 1


@pytest.fixture
def studies(checkout, monkeypatch):
    """The script that recomputes results of the studies that a change touches."""
    monkeypatch.chdir(checkout)
    spec = importlib.util.spec_from_file_location("studies", checkout / ".ci" / "studies.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize(
    ("file", "touched"),
    [
        ("src/multilab/methods/solvers/penalties.py", {"mlwse-core"}),
        ("src/multilab/methods/neighbours/_search.py", {"mlwse-core", "lwmf"}),
        ("src/multilab/methods/base.py", {"mlwse-core", "lwmf"}),
        ("conf/study/lwmf.yaml", {"lwmf"}),
        ("src/multilab/experiments/study_results.py", set()),
    ],
)
def test_a_change_touches_the_studies_whose_results_it_can_reach(studies, file, touched):
    assert {name for name in ("mlwse-core", "lwmf") if studies.touched(load_study(name), {file})} == touched


def test_the_results_that_a_change_recomputes_are_drawn_by_its_commit(studies, benchmark_data):
    first, again, other = (studies.drawn(load_study("mlwse-core"), commit) for commit in ("a", "a", "b"))
    assert first == again != other
    assert len({*first}) == 10


def test_the_workflow_of_the_arena_runs_its_gate_when_scores_or_code_change(workflows):
    (script,) = (step["run"] for step in steps(workflows["arena.yml"]) if step.get("name") == "Gate")
    assert script == "python .ci/arena.py HEAD^1"
    paths = yaml.safe_load(workflows["arena.yml"])[True]["pull_request"]["paths"]
    assert {"reports/arena/**", "src/multilab/**"} < set(paths)


def test_the_packages_of_the_arena_are_installed_from_their_lock(checkout, tmp_path):
    dry = ["make", "-n", "--no-print-directory", "setup-arena"]
    rules = subprocess.run(dry, cwd=checkout, capture_output=True, text=True, check=True)
    assert rules.stdout.splitlines()[-1] == "bash scripts/setup_arena.sh .venv"
    log = tmp_path / "log.txt"
    for name in ("venv/bin/python", "bin/uv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{log}"\n')
        (tmp_path / name).chmod(0o755)
    script = ["bash", str(checkout / "scripts" / "setup_arena.sh"), str(tmp_path / "venv")]
    for path in ("/usr/bin:/bin", f"{tmp_path}/bin:/usr/bin:/bin"):  # without and with uv
        subprocess.run(script, env={"PATH": path}, check=True)
    pip, uv = (line.split() for line in log.read_text().splitlines())
    assert pip[:3] == ["venv/bin/python", "-m", "pip"]
    assert uv[:3] == ["bin/uv", "pip", "install"]
    assert uv[-2:] == ["--python", f"{tmp_path}/venv/bin/python"]
    for call in (pip, uv):
        assert {"--require-hashes", "--no-deps"} <= set(call)
        assert call[call.index("-r") + 1] == "requirements-arena.lock"


def test_no_script_holds_text_of_a_pull_request(workflows, actions):
    for text in [*workflows.values(), *actions.values()]:
        for step in steps(text):
            assert "${{" not in step.get("run", ""), step


def test_the_nightly_run_takes_newest_and_pre_release_versions(workflows):
    nightly = yaml.safe_load(workflows["nightly.yml"])
    assert nightly[True]["schedule"]  # YAML 1.1 reads the key `on` as a truth value
    rows = nightly["jobs"]["newest"]["strategy"]["matrix"]["include"]
    assert {row["versions"] for row in rows} == {"newest", "pre-release"}
    assert all(("--pre" in row["options"].split()) == (row["versions"] == "pre-release") for row in rows)
    commands = "\n".join(step.get("run", "") for step in nightly["jobs"]["newest"]["steps"])
    assert "requirements.lock" not in commands
    assert "python -m pytest -m nightly" in commands
    assert 'install "${options[@]}" --editable ".[lab,dev]"' in commands


def test_downloads_are_cached(workflows):
    for text in workflows.values():
        pythons = [step for step in steps(text) if step.get("uses", "").startswith("actions/setup-python@")]
        cached = [step for step in pythons if "cache" in step["with"]]
        locks = ["requirements.lock", "requirements-arena.lock"] if "setup-arena" in text else ["requirements.lock"]
        assert all(step["with"]["cache-dependency-path"].split() == locks for step in cached)
        assert cached == pythons or "actions/compare" in text or "uv publish" in text


def test_the_gate_runs_on_two_kinds_of_kernels(workflows, checkout):
    commands = [step["run"] for text in workflows.values() for step in steps(text) if "run" in step]
    assert "bash .ci/cores Haswell Zen SkylakeX Sandybridge Nehalem" in commands
    script = (checkout / ".ci" / "cores").read_text()
    named = re.findall(r"tests/\S+\.py", script)
    assert len(named) > 5
    assert [name for name in named if not (checkout / name).is_file()] == []


def make_variable(checkout: Path, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "MULTILAB_DATA"} | environment
    probe = 'include Makefile\nprobe:\n\t@echo "[$$MULTILAB_DATA]"\n'
    done = subprocess.run(
        ["make", "-s", "-f", "-", "probe"], cwd=checkout, env=env, input=probe, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_an_empty_setting_does_not_hide_the_mirror(tmp_path, checkout):
    (tmp_path / "code").mkdir()
    shutil.copy(checkout / "Makefile", tmp_path / "code")
    (tmp_path / "shared" / "datasets").mkdir(parents=True)
    mirror = f"[{tmp_path}/shared/datasets]"
    assert make_variable(tmp_path / "code") == mirror
    assert make_variable(tmp_path / "code", MULTILAB_DATA="") == mirror
    assert make_variable(tmp_path / "code", MULTILAB_DATA="/elsewhere") == "[/elsewhere]"


UV = """#!/bin/sh
case "$1 $2" in
  "venv --python")
    mkdir -p "$4/bin" "$4/lib/python3/site-packages/one.dist-info"
    for name in python multilab dvc; do
      printf '#!/bin/sh\\necho 1.0\\n' > "$4/bin/$name"
      chmod +x "$4/bin/$name"
    done ;;
  "pip install")
    echo "Collecting numpy==2.0"; echo "WARNING: Location 'file:///x' is ignored"; sleep SECONDS
    mkdir -p .venv/lib/python3/site-packages/numpy.dist-info; echo "  Successfully uninstalled one"; sleep SECONDS
    exit CODE ;;
esac
"""


def setup(folder: Path, checkout: Path, seconds: float, code: int) -> subprocess.CompletedProcess:
    """Run ``scripts/setup.sh`` with a stand-in for uv that takes ``seconds`` and exits with ``code``."""
    shutil.copy(checkout / "scripts" / "setup.sh", folder)
    (folder / "requirements.lock").write_text("numpy==2.0\nscipy==1.0\n    --hash=sha256:0\n")
    (folder / ".dvc").mkdir()
    stand_in = folder / "bin" / "uv"
    stand_in.parent.mkdir()
    stand_in.write_text(UV.replace("SECONDS", str(seconds)).replace("CODE", str(code)))
    stand_in.chmod(0o755)
    env = {**os.environ, "PATH": f"{stand_in.parent}:{os.environ['PATH']}", "MULTILAB_SETUP_INTERVAL": "0.3"}
    command = ["bash", "setup.sh", sys.executable, ".venv"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_setup_says_what_it_does_and_how_far_it_is(tmp_path, checkout):
    done = setup(tmp_path, checkout, 0.8, 0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line[:5] for line in done.stdout.splitlines() if line.startswith("[")] == ["[1/3]", "[2/3]", "[3/3]"]
    progress = [re.sub(r"^ +\d+ s: ", "", line) for line in done.stdout.splitlines() if " s: " in line]
    assert "downloading, 1 of at most 2 packages found" in progress
    assert "2 of at most 2 packages installed" in progress
    assert not re.search("WARNING|uninstalled", done.stdout)
    assert ".venv/bin/activate" in done.stdout.splitlines()[-1]


def test_setup_shows_the_end_of_the_log_when_it_fails(tmp_path, checkout):
    done = setup(tmp_path, checkout, 0, 7)
    assert done.returncode == 1
    assert "setup failed: uv pip install" in done.stderr
    assert "Collecting numpy" in done.stderr
    assert "ready" not in done.stdout
