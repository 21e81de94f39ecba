"""The recipes of CONTRIBUTING.md: their files, written into a copy of the checkout, work without any other edit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = ("src/multilab", "conf", "tests/helpers", "tests/metrics", "tests/methods", "tests/datasets")
FILES = ("tests/conftest.py", "tests/expected_failures.py", "pyproject.toml", "README.md", "dvc.yaml")
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+)( \(at the end\))?\n(.*?)```", flags=re.DOTALL)


class Copy:
    """A copy of the checkout to which the files of recipes are added."""

    def __init__(self, root: Path, checkout: Path) -> None:
        self.root = root
        for folder in FOLDERS:
            shutil.copytree(checkout / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in FILES:
            if (checkout / file).exists():
                shutil.copy(checkout / file, root / file)
        self.recipes = {
            path: (end, text) for path, end, text in BLOCK.findall((checkout / "CONTRIBUTING.md").read_text())
        }

    def add(self, *paths: str) -> None:
        """Write the files of a recipe as printed: new ones, or text at the end of a file."""
        for path in paths:
            at_the_end, text = self.recipes[path]
            file = self.root / path
            assert file.exists() == bool(at_the_end), path
            file.write_text(f"{file.read_text()}\n\n{text}" if at_the_end else text)

    def run(self, *command: str, **environment: str) -> str:
        """Run Python in the copy; what it prints is returned, a failure fails the test."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB")}
        settings = {
            "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root / 'tests'}",
            "MULTILAB_CELLS": str(self.root / ".cells"),
            "MULTILAB_CACHE": str(self.root / ".data"),
            "MULTILAB_JOBS": "1",
        }
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env=clean | settings | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def test(self, *arguments: str) -> str:
        """Run pytest in the copy."""
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)


@pytest.fixture
def copy(tmp_path: Path, checkout: Path) -> Copy:
    """A fresh copy."""
    pytest.importorskip("hydra")
    return Copy(tmp_path / "copy", checkout)


def test_a_method_is_two_files(copy: Copy) -> None:
    copy.add("src/multilab/methods/neighbours/nearest_centroid.py", "conf/method/nearest_centroid.yaml")
    copy.run("-m", "doctest", "src/multilab/methods/neighbours/nearest_centroid.py")
    passed = copy.test(
        "tests/methods/test_estimators.py", "-k", "NearestCentroid or nearest_centroid or every_method_file or cheap"
    )
    assert int(re.findall(r"(\d+) passed", passed)[0]) > 20
    assert "nearest_centroid" in copy.run("-m", "multilab", "methods", "list")
    trained = copy.run("-m", "multilab", "train", "dataset=genes-toy", "method=nearest_centroid", "publish=false")
    assert "nearest_centroid on genes-toy, 5 splits" in trained


def test_a_metric_is_one_function(copy: Copy) -> None:
    copy.add("src/multilab/metrics/decision_metrics.py")
    program = "import doctest; from multilab.metrics import decision_metrics as m; assert not doctest.testmod(m).failed"
    copy.run("-c", program)
    line = "from multilab.metrics import METRICS, empty_predictions; print(METRICS['empty_predictions'].definition)"
    assert copy.run("-c", line).strip() == "share of rows without a predicted label"
    trained = copy.run(
        *("-m", "multilab", "train", "dataset=genes-toy", "method=mlknn"),
        *("metrics=[empty_predictions]", "publish=false"),
    )
    assert "empty_predictions" in trained


@pytest.mark.slow
def test_a_dataset_is_one_card(copy: Copy, tmp_path: Path) -> None:
    copy.add("conf/dataset/stations.yaml")
    (tmp_path / "mirror" / "stations").mkdir(parents=True)
    rows = [f"s{i},{i % 7},{i % 5},{i % 3},{i % 2},{int(i % 3 == 0)}" for i in range(40)]
    (tmp_path / "mirror" / "stations" / "stations.csv").write_text(
        "\n".join(["station,pressure,humidity,height,rain,wind", *rows]) + "\n"
    )
    mirror = {"MULTILAB_DATA": str(tmp_path / "mirror")}
    assert "Stations" in copy.run("-m", "multilab", "datasets", "list", **mirror)
    trained = copy.run("-m", "multilab", "train", "dataset=stations", "method=mlknn", "publish=false", **mirror)
    assert "mlknn on stations, 5 splits" in trained
    copy.test("tests/datasets/test_cards.py")


def test_every_block_with_a_path_is_used_here(checkout: Path) -> None:
    paths = [path for path, _, _ in BLOCK.findall((checkout / "CONTRIBUTING.md").read_text())]
    text = Path(__file__).read_text()
    assert len(paths) == len(set(paths)) >= 4
    assert [path for path in paths if f'"{path}"' not in text] == []
