"""`multilab methods new`: what it writes works unedited, in a folder of one's own and in the package."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from multilab.cells import conf
from multilab.cells.conf import names, package_names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import load_method
from multilab.cli import main

STUDY = """
title: Own
description: A test.
datasets: [genes-toy]
methods: [ridge_labels, mlknn]
protocol: {kfold: 2, stratify: 1, seed: 0}
metrics: [ranking_loss, hamming_loss]
headline: hamming_loss
rope: null
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one's own with a new method; the Python path is restored afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(conf, "_named", {})
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["methods", "new", "ridge_labels", "--outside"]) == 0
    yield tmp_path
    for name in [name for name in sys.modules if name.endswith("ridge_labels")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def test_the_written_test_passes_unedited(folder):
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*ridge*"))
    assert files == ["conf/method/ridge_labels.yaml", "ridge_labels.py", "test_ridge_labels.py"]
    sys.path.append(str(folder))
    module = importlib.import_module("test_ridge_labels")
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()


def test_it_is_trained_by_name_and_by_path(folder, capsys):
    assert main(["train", "dataset=scenario1", "method=ridge_labels", "protocol=kfold3", "publish=false"]) == 0
    by_name = capsys.readouterr().out
    assert "ridge_labels on scenario1, 3 splits" in by_name
    (folder / "elsewhere").mkdir()
    for name in ("ridge_labels.py", "conf/method/ridge_labels.yaml"):
        shutil.move(folder / name, folder / "elsewhere")
    del sys.modules["ridge_labels"]
    assert main(["train", "dataset=scenario1", "method=ridge_labels", "publish=false"]) == 2
    assert "no method is called 'ridge_labels'" in capsys.readouterr().err
    path = "method=elsewhere/ridge_labels.yaml"
    assert main(["train", "dataset=scenario1", path, "protocol=kfold3", "publish=false"]) == 0
    assert capsys.readouterr().out == by_name


def test_it_is_compared_studied_and_gated(folder, capsys):
    arguments = ["--dataset", "genes-toy", "--method", "ridge_labels,mlknn", "--cv", "2", "-o", "board"]
    assert main(["compare", *arguments]) == 0
    assert re.search(r"ridge_labels +done", "".join(capsys.readouterr()))
    (folder / "conf" / "study").mkdir()
    (folder / "conf" / "study" / "own.yaml").write_text(STUDY)
    assert main(["study", "new", "own"]) == 0
    assert "Next: multilab study run --study own\n" in re.sub(
        "Next: .*multilab", "Next: multilab", capsys.readouterr().out
    )
    assert main(["study", "train", "--study", "own"]) == 0
    assert main(["gate", "--study", "own", "--accept", "tests/references"]) == 0
    assert "gate passed: 4 cells of own" in capsys.readouterr().out
    code = folder / "ridge_labels.py"
    code.write_text(code.read_text().replace("expit(4 *", "expit(3 *"))
    del sys.modules["ridge_labels"]
    assert main(["gate", "--study", "own", "--method", "ridge_labels"]) == 1
    printed = capsys.readouterr().out
    assert "GATE: genes-toy/0/ridge_labels: norm of scores is" in printed
    assert printed.endswith("intended? multilab gate --study own --accept tests/references\n")


def test_methods_of_ones_own_are_listed_but_in_no_study_of_all(folder, capsys):
    assert "ridge_labels" in names("method")
    assert "ridge_labels" not in package_names("method")
    assert main(["methods", "show", "ridge_labels"]) == 0
    assert "class      ridge_labels.RidgeLabels" in capsys.readouterr().out


def test_a_name_in_both_is_refused(folder):
    shutil.copy(folder / "conf" / "method" / "ridge_labels.yaml", folder / "conf" / "method" / "mlknn.yaml")
    with pytest.raises(ExperimentError, match=r"the package has a method 'mlknn' too; rename .*mlknn\.yaml"):
        load_method("mlknn")


def test_the_list_names_a_conflict_and_has_all_other_methods(folder, capsys):
    shutil.copy(folder / "conf" / "method" / "ridge_labels.yaml", folder / "conf" / "method" / "mlknn.yaml")
    capsys.readouterr()
    assert main(["methods", "list"]) == 0
    listed = capsys.readouterr()
    assert "ridge_labels" in listed.out
    assert "not listed: the package has a method 'mlknn' too; rename or delete " in listed.err


def test_what_multilab_writes_is_ignored_by_git_and_an_existing_file_stays(folder, capsys):
    written = [".cells/x", "results/x", "mlflow.db", "mlartifacts/x", "data/splits/x"]
    written += ["dvc_plots/x"]  # by `dvc plots diff`
    tables, kept = ["data/own/mine.csv"], ["data/own/mine.yaml", "data/own/mine.csv.dvc"]  # tables may be private
    ask = ["git", "check-ignore", "--no-index", *written, *tables, *kept]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    ignored = subprocess.run(ask, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
    assert ignored == [*written, *tables]
    (folder / ".gitignore").write_text("mine\n")
    capsys.readouterr()
    assert main(["methods", "new", "other_labels", "--outside"]) == 0
    assert (folder / ".gitignore").read_text() == "mine\n"
    assert ".gitignore" not in capsys.readouterr().out


def test_new_settings_are_written_here_or_into_the_checkout(folder, monkeypatch, checkout):
    assert conf.new_settings_dir() == checkout / "conf"  # MULTILAB_CONF
    monkeypatch.delenv("MULTILAB_CONF")
    assert conf.new_settings_dir() == folder / "conf"
    monkeypatch.chdir(checkout)
    assert conf.new_settings_dir() == checkout / "conf"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ridge_labels", "--outside"], "'ridge_labels'"),
        (["Ridge", "--outside"], "'Ridge'"),
        (["class", "--outside"], "'class'"),
        (["numpy", "--outside"], "a module 'numpy' is installed already"),
        (["label_powerset", "--outside"], "multilab.methods.transformation"),
        (["mine", "--family", "forest"], "no family is called 'forest'; did you mean 'forests'?"),
    ],
)
def test_wrong_uses_of_new_method_get_one_line(folder, capsys, arguments, message):
    assert main(["methods", "new", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_nothing_is_overwritten(folder, capsys):
    (folder / "conf" / "method" / "ridge_labels.yaml").unlink()
    assert main(["methods", "new", "ridge_labels", "--outside"]) == 2
    assert "ridge_labels.py exists" in capsys.readouterr().err


def test_inside_the_package(tmp_path, monkeypatch, checkout, capsys):
    for name in ("conf/method", "src/multilab/methods/neighbours"):
        shutil.copytree(checkout / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.chdir(tmp_path)
    assert main(["methods", "new", "first_try", "--family", "neighbours"]) == 0
    settings = yaml.safe_load((tmp_path / "conf" / "method" / "first_try.yaml").read_text())
    assert settings["_target_"] == "multilab.methods.neighbours.first_try.FirstTry"
    source = (tmp_path / "src" / "multilab" / "methods" / "neighbours" / "first_try.py").read_text()
    assert "class FirstTry(MultiLabelClassifier):" in source
    assert (tmp_path / "tests" / "methods" / "test_first_try.py").is_file()
    shutil.rmtree(tmp_path / "src")
    assert main(["methods", "new", "second_try", "--family", "neighbours"]) == 2
    assert "not a checkout of multilab; add --outside" in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_of_the_page_work(tmp_path, checkout):
    page = (checkout / "docs" / "guide" / "own-method.md").read_text()
    study = re.search(r"```yaml\n# (conf/study/mine\.yaml)\n(.*?)```", page, re.DOTALL)
    assert study is not None
    (tmp_path / "conf" / "study").mkdir(parents=True)
    (tmp_path / study[1]).write_text(study[2])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
    paths = {"MULTILAB_CELLS": str(tmp_path / "cells"), "MULTILAB_CACHE": str(tmp_path / "data")}
    environment = clean | paths | {"PYTHONPATH": str(checkout / "src")}
    lines = [line for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert len(lines) == 8
    for line in lines:
        program, *rest = line.split()
        module = ["-c", "import sys; sys.path.remove(''); from multilab.cli import main; sys.exit(main())"]
        command = [sys.executable, *(module if program == "multilab" else []), *rest]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    index = (Path(tmp_path) / "reports" / "mine" / "index.html").read_text()
    assert "RidgeLabels" in index or "ridge_labels" in index


@pytest.mark.slow
def test_a_method_in_a_copy_of_the_package_passes_its_test(tmp_path, checkout):
    folders = ("src/multilab", "conf", "tests/helpers", "tests/methods")
    for name in folders:
        shutil.copytree(checkout / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(checkout / name, tmp_path / name)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
    environment = clean | {"PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path / 'tests'}"}
    for command in (
        ["-m", "multilab", "methods", "new", "first_try", "--family", "neighbours"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/methods/test_first_try.py"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/methods/test_estimators.py", "-k", "first_try"],
        ["-m", "multilab", "train", "dataset=genes-toy", "method=first_try", "publish=false"],
    ):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
