"""The first minutes with multilab: the core install, help, hints, and errors in one line."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from multilab.cells.progress import count_warnings, warning_summary
from multilab.cells.store import Store
from multilab.cli import main

QUICK = ("dataset=scenario1", "method=mlknn", "protocol=kfold3", "publish=false")

BLOCKER = """
import importlib.abc, sys
BLOCKED = {blocked!r}

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def project(checkout: Path) -> dict:
    return tomllib.loads((checkout / "pyproject.toml").read_text())["project"]


def plain_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[(]", requirement)[0]).lower()


def with_dependencies(requirements: list[str]) -> set[str]:
    """Return the distributions that some requirements bring, those of extras left out."""
    known: set[str] = set()
    queue = [plain_name(line) for line in requirements]
    while queue:
        name = queue.pop()
        if name not in known:
            known.add(name)
            try:
                queue += [plain_name(line) for line in requires(name) or () if "extra ==" not in line]
            except PackageNotFoundError:  # for another system
                continue
    return known


@pytest.fixture(scope="module")
def core(checkout, tmp_path_factory):
    """Run Python in a folder of its own with the core dependencies alone, and others by name; returns the process."""
    kept = with_dependencies(project(checkout)["dependencies"])
    blocked = {
        module
        for module, owners in packages_distributions().items()
        if not any(plain_name(owner) in kept | {"multilab"} for owner in owners)
    }
    assert {"hydra", "omegaconf", "dvc", "mlflow", "optuna"} <= blocked
    assert not {"numpy", "scipy", "sklearn", "pandas", "joblib", "threadpoolctl"} & blocked
    folder = tmp_path_factory.mktemp("core")
    env = {k: v for k, v in os.environ.items() if k != "MULTILAB_CACHE"}

    def run(code: str, *also: str) -> subprocess.CompletedProcess[str]:
        without = blocked - {module.replace("-", "_") for module in with_dependencies(list(also))}
        command = [sys.executable, "-c", BLOCKER.format(blocked=without) + code]
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)

    return run


SONGS = """
import pandas as pd
from multilab import AutoMultiLabel, compare
from multilab.methods import MLkNN
from multilab.models import SavedModel
remarks = ["a quiet song of the sea", "a loud song", "quiet waves of the sea", "too loud"] * 10
songs = pd.DataFrame({"remark": remarks, "tags": ["calm|sea", "noise", "calm|sea", "noise"] * 10})
"""
FIT = """
model = AutoMultiLabel(time_limit=None, budget_fits=12, columns={"remark": "text"}).fit(songs, "tags")
new = pd.DataFrame({"remark": ["the quiet sea", "a very loud song"]})
assert model.predict_frame(new).values.tolist() == [[1, 0, 1], [0, 1, 0]]
assert (model.leaderboard_["state"] == "done").sum() >= 2, model.leaderboard_
"""


def test_the_core_install_fits_a_table_and_compares_methods(core):
    code = """
X, Y = songs["remark"].str.len().to_frame(), songs["tags"].str.get_dummies("|")
assert len(compare([MLkNN(k=1), MLkNN(k=3)], X.to_numpy(), Y.to_numpy(), cv=2).table) == 2
try:
    model.save("model")
except Exception as error:
    assert type(error).__name__ == "DeploymentError" and "skops" in str(error), error
else:
    raise AssertionError("saved without skops")
"""
    result = core(SONGS + FIT + code)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_a_model_is_saved_and_loaded_with_skops_alone(core):
    """An absent Hydra must not read as a foreign type."""
    code = """
model.save("songs")
assert SavedModel.load("songs").predict_frame(new).iloc[:, :3].values.tolist() == [[1, 0, 1], [0, 1, 0]]
"""
    result = core(SONGS + FIT + code, "skops")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_the_core_install_runs_the_python_of_getting_started(core, checkout):
    blocks = re.findall(r"```python\n(.*?)```", (checkout / "docs" / "getting-started.md").read_text(), flags=re.S)
    result = core(next(block for block in blocks if "datasets.load" in block))
    assert result.returncode == 0, result.stderr
    assert "ranking loss 0.0" in result.stdout


@pytest.mark.parametrize(
    "argv",
    [
        ["train", "dataset=scenario1"],
        pytest.param(["tune", "dataset=scenario1"], marks=pytest.mark.slow),
        pytest.param(["fit", "--dataset", "scenario1", "--method", "mlknn"], marks=pytest.mark.slow),
        pytest.param(["study", "new", "mine"], marks=pytest.mark.slow),
        ["study", "run", "--study", "quick"],
        ["gate"],
        ["study", "publish", "--study", "quick"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_more_names_the_packages_in_one_line(argv, core, checkout):
    result = core(f"from multilab.cli import main; sys.exit(main({argv}))")
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert result.stderr.startswith(f"Error: multilab {argv[0]}")
    named = shlex.split(result.stderr.partition("pip install ")[2])
    laboratory = project(checkout)["optional-dependencies"]["lab"]
    assert named
    assert set(map(plain_name, named)) <= set(map(plain_name, laboratory))


def test_the_core_install_lists_datasets_and_recommends_only_what_works(core):
    assert core("from multilab.cli import main; sys.exit(main(['datasets', 'list']))").returncode == 0
    help_text = core("from multilab.cli import main; sys.exit(main(['--help']))").stdout
    assert 'pip install ".[lab]"' in help_text
    assert "make reproduce" not in help_text


def test_the_module_can_be_run(tmp_path):
    command = [sys.executable, "-m", "multilab", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", result.stdout)


def test_help_recommends_make_in_a_checkout_only(capsys, monkeypatch, tmp_path, checkout):
    monkeypatch.chdir(checkout)
    assert main(["--help"]) == 0
    assert "make reproduce" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert "make " not in output
    assert "study run --study quick" in output


def test_hints_work_in_a_shell_without_the_environment(monkeypatch, tmp_path):
    from multilab.core.shell import command

    script = tmp_path / ".venv" / "bin" / "multilab"
    script.parent.mkdir(parents=True)
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("MAKELEVEL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert command("multilab") == ".venv/bin/multilab"
    assert command("elsewhere") == ".venv/bin/python -m elsewhere"
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert command("multilab") == "multilab"
    monkeypatch.setenv("MAKELEVEL", "1")  # make has put it there for itself
    assert command("multilab") == ".venv/bin/multilab"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    assert command("multilab") == "multilab"


def test_the_hint_for_dvc_lets_its_stages_find_the_program(monkeypatch, tmp_path):
    from multilab.core.shell import command

    folder = tmp_path / "with space" / "bin"
    folder.mkdir(parents=True)
    for name, text in {"dvc": "#!/bin/sh\nmultilab\n", "multilab": "#!/bin/sh\necho found\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr(sys, "prefix", str(folder.parent))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("MAKELEVEL", "1")
    shell = {"env": {"PATH": "/usr/bin:/bin"}, "capture_output": True, "text": True, "check": False}
    assert subprocess.run(["sh", "-c", command("dvc")], **shell).stdout == "found\n"


def test_one_broken_card_does_not_stop_the_list(capsys, monkeypatch, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "aaa.yaml").write_text("title: [")
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path / "dataset"))
    assert main(["datasets", "list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("aaa ") and "broken card" in row for row in rows)
    assert any(row.startswith("yeast ") for row in rows)


def test_control_characters_do_not_reach_the_terminal(capsys, tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,\x1b]0;title\x07\n")
    assert main(["datasets", "check", str(tmp_path / "bad.csv"), "--labels-last", "1"]) == 2
    error = capsys.readouterr().err
    assert "title" in error
    assert error.rstrip("\n").isprintable(), repr(error)


@pytest.fixture
def cells(monkeypatch, tmp_path):
    """A store of its own, one process."""
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cells"


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(cells, monkeypatch, capfd):
    write_bytes = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "record.json":
            write_bytes(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(path, content)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        assert main(["train", *QUICK]) == 2
    (line,) = [line for line in capfd.readouterr().err.splitlines() if " of 3" not in line]
    assert line.startswith("Error: ")
    assert "No space left" in line
    assert "free some space" in line
    assert {path.name for path in cells.iterdir()} <= {".runs"}
    assert main(["train", *QUICK]) == 0  # with space it goes on


@pytest.mark.parametrize(("code", "advice"), [(errno.EROFS, "MULTILAB_CELLS"), (errno.ENOSPC, "free some space")])
def test_a_store_that_cannot_be_written_is_one_line(code, advice, cells, monkeypatch, capfd):
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main(["train", *QUICK]) == 2
    error = capfd.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert str(cells) in error
    assert advice in error


def test_a_file_in_the_place_of_the_store_is_one_line(monkeypatch, tmp_path, capfd):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "file"))
    assert main(["train", *QUICK]) == 2
    error = capfd.readouterr().err
    assert len(error.strip().splitlines()) == 1, error
    assert "MULTILAB_CELLS" in error


def test_a_wrong_number_of_jobs_is_one_line(cells, monkeypatch, capfd):
    monkeypatch.setenv("MULTILAB_JOBS", "many")
    assert main(["train", *QUICK]) == 2
    assert "MULTILAB_JOBS must be a whole number, not 'many'" in capfd.readouterr().err


def test_a_run_ends_with_the_count_of_its_warnings(cells, capfd):
    argv = ["train", *QUICK, "method=br", "method.calibration=none", "method.estimator.max_iter=1"]
    for _ in range(2):  # the second time every cell is reused
        assert main(argv) == 0
        last = capfd.readouterr().out.strip().splitlines()[-1]
        match = re.fullmatch(r"3 warnings \(ConvergenceWarning 3\): \S*multilab store show (\w{12}) .*", last)
        assert match, last
    assert main(["store", "show", match[1]]) == 0
    assert "ConvergenceWarning" in capfd.readouterr().out


def test_a_stage_ends_with_the_count_of_its_warnings(cells, capsys, monkeypatch, tmp_path, checkout):
    import shutil

    shutil.copytree(checkout / "conf", tmp_path / "conf")
    block = "{calibration: none, estimator__max_iter: 1}"
    study = f"datasets: [scenario1]\nmethods: [br]\nprotocol: kfold3\nsettings: [{{set: {block}}}]\n"
    (tmp_path / "conf" / "study" / "mine.yaml").write_text(study)
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    for stage in (["train", "--method", "br"], ["evaluate"]):
        assert main(["study", *stage, "--study", "mine"]) == 0
        assert "3 warnings (ConvergenceWarning 3): " in capsys.readouterr().out


def test_warnings_are_counted_by_category(tmp_path):
    store = Store(tmp_path)
    for key, messages in {
        "a" * 64: ["UserWarning: x", "UserWarning: y"],
        "b" * 64: [],
        "c" * 64: ["OddWarning: x"],
    }.items():
        store.path(key).mkdir()
        categories = [message.partition(":")[0] for message in messages]
        record = {"warnings": messages, "warning_categories": categories}
        (store.path(key) / "record.json").write_text(json.dumps(record))
    keys = ["b" * 64, "a" * 64, "a" * 64, "c" * 64, "d" * 64]
    counts, warned = count_warnings(keys, store)
    assert counts == {"UserWarning": 2, "OddWarning": 1}
    assert warned == ["a" * 64, "c" * 64]
    line = "3 warnings (UserWarning 2, OddWarning 1): multilab store show aaaaaaaaaaaa (and 1 more cell)"
    assert warning_summary(keys, store) == line
    assert warning_summary(["b" * 64], store) is None
    (store.path("a" * 64) / "record.json").write_text(json.dumps({"warnings": ["UserWarning: x"]}))  # an older one
    assert count_warnings(["a" * 64], store)[0] == {"Warning": 1}
