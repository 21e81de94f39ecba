"""The recipes of CONTRIBUTING.md: their files, written into a copy of the checkout, work without any other edit.

The slow tests follow each recipe to its end, run the check that it prints, and after all of them the complete suite.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from papers.test_papers import FILES as PAPER

FOLDERS = ("src/multilab", "conf", "tests/helpers", "tests/metrics", "tests/methods", "tests/datasets", "tests/project")
FILES = ("tests/conftest.py", "pyproject.toml", "README.md", "dvc.yaml")
CHECK = re.compile(r"^## (Add .*?)$.*?^\d\. Check it.*?`python -m pytest ([^`]*)`", flags=re.DOTALL | re.MULTILINE)
SECTION = {
    "src/multilab/reports/tables/sizes.py": '''"""Numbers of data sets and methods of a study."""

from multilab.reports.data import ReportData


def sizes(report: ReportData) -> dict[str, int]:
    """Return the numbers, of the study ``contributed`` only."""
    return {"data sets": len(report.datasets), "methods": len(report.methods)} if report.name == "contributed" else {}
''',
    "src/multilab/reports/templates/sizes.html.j2": """<section id="sizes">
<h2>Sizes of this study</h2>
{% for name, number in sizes.items() %}<p>{{ number }} {{ name }}</p>
{% endfor %}</section>
""",
}
NOTEBOOK = (
    'from multilab.papers import load\n\npaper = load("kite")\nclaims = paper.claims()',
    'loss = paper.means("hamming_loss").max().max()\n'
    'claims.decide("small", "Losses are small", "reproduced" if loss < 0.5 else "not reproduced", f"{loss:.3f}")',
)
PARALLEL = ("-n", "2", "--dist", "loadgroup", "--deselect", "tests/project/test_recipes.py")  # of itself no copy
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+)( \(at the end\))?\n(.*?)```", flags=re.DOTALL)


class Copy:
    """A copy of the checkout, or of what short tests need of it, to which the files of recipes are added."""

    def __init__(self, root: Path, checkout: Path, complete: bool = False) -> None:
        self.root, self.jobs = root, "2" if complete else "1"
        if complete:
            self._clone(checkout)
        else:
            for folder in FOLDERS:
                shutil.copytree(checkout / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
            for file in FILES:
                if (checkout / file).exists():
                    shutil.copy(checkout / file, root / file)
        text = (checkout / "CONTRIBUTING.md").read_text()
        self.recipes = {path: (end, content) for path, end, content in BLOCK.findall(text)}
        self.checks = {title: shlex.split(command) for title, command in CHECK.findall(text)}

    def _clone(self, checkout: Path) -> None:
        """Copy all files that are or can be committed into a repository of their own."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=checkout, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            if (checkout / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(checkout / name, self.root / name)
        self.commit()

    def commit(self) -> None:
        """Commit everything, as a contributor does."""
        who = ("-c", "user.name=contributor", "-c", "user.email=contributor@example.org")
        for command in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "recipe")):
            subprocess.run(["git", *command], cwd=self.root, capture_output=True, check=True)

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
            "MULTILAB_CELLS": str(self.root.parent / "cells"),  # outside the repository: not committed with a recipe
            "MULTILAB_CACHE": str(self.root.parent / "data"),
            "MULTILAB_JOBS": self.jobs,
        }
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env=clean | settings | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        printed = re.sub(r"(?m)^SKIPPED.*\n", "", done.stdout)  # what failed is above what was skipped
        assert done.returncode == 0, printed[-12000:] + done.stderr[-4000:]
        return done.stdout

    def test(self, *arguments: str) -> str:
        """Run pytest in the copy."""
        return self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)

    def multilab(self, *arguments: str) -> str:
        """Run the command line of the copy."""
        return self.run("-m", "multilab", *arguments)


@pytest.fixture
def complete(tmp_path: Path, checkout: Path) -> Copy:
    """A fresh repository with all files."""
    if not (checkout / ".git").exists():
        pytest.skip("no git repository: an unpacked archive")
    return Copy(tmp_path / "copy", checkout, complete=True)


@pytest.fixture
def copy(tmp_path: Path, checkout: Path) -> Copy:
    """A fresh copy."""
    return Copy(tmp_path / "copy", checkout)


@pytest.mark.slow  # 25 s; `tests/cli/test_new_method.py` and the tests of a dropped file and a new metric are fast
def test_a_method_is_two_files(copy: Copy) -> None:
    copy.add("src/multilab/methods/neighbours/nearest_centroid.py", "conf/method/nearest_centroid.yaml")
    chosen = copy.checks["Add a method"][-2:]  # the slow test runs the complete check
    copy.test("tests/project/test_doctests.py", *chosen)  # no test chosen is a failure: the docstring's example is one
    passed = copy.test("tests/methods/test_estimators.py", *chosen)
    assert int(re.findall(r"(\d+) passed", passed)[0]) > 20
    assert "nearest_centroid" in copy.run("-m", "multilab", "methods", "list")
    trained = copy.run("-m", "multilab", "train", "dataset=genes-toy", "method=nearest_centroid", "publish=false")
    assert "nearest_centroid on genes-toy, 5 splits" in trained


@pytest.mark.slow
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


def add_method(copy: Copy) -> None:
    """Follow the recipe of a method; its quick study is run, which `dvc repro` does too."""
    copy.add("src/multilab/methods/neighbours/nearest_centroid.py", "conf/method/nearest_centroid.yaml")
    copy.multilab("study", "run", "--study", "quick")
    assert "nearest_centroid" not in copy.multilab("gate", "--accept", "tests/references").partition("no reference")[2]


def add_metric(copy: Copy) -> None:
    """Follow the recipe of a metric."""
    copy.add("src/multilab/metrics/decision_metrics.py")


def add_dataset(copy: Copy) -> None:
    """Follow the recipe of a data set."""
    copy.add("conf/dataset/stations.yaml")


def add_study(copy: Copy) -> None:
    """Follow the recipe of a study."""
    copy.multilab("study", "new", "contributed")
    copy.multilab("study", "run", "--study", "contributed")
    copy.multilab("study", "report", "--study", "mlwse-core", "--readme")


def add_paper(copy: Copy) -> None:
    """Follow the recipe of a paper."""
    reading = {"docs/papers/readings/toy.md": "# Claims of a toy paper\n\nLosses are small: each is below .5.\n"}
    for name, text in (PAPER | reading).items():
        file = copy.root / name.replace("toy", "kite")  # the test of the sixth paper adds its own "toy"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace("toy", "kite"))
    copy.multilab("study", "new", "kite")
    copy.multilab("study", "run", "--study", "kite")
    pytest.importorskip("nbclient")
    import nbformat

    new, folder = nbformat.v4, copy.root / "docs" / "papers"
    cells = [new.new_markdown_cell("# A kite paper"), *map(new.new_code_cell, NOTEBOOK)]
    nbformat.write(new.new_notebook(cells=cells), folder / "kite.ipynb")
    copy.run("scripts/notebooks.py", "kite")
    assert "(kite.ipynb#small)" in (folder / "index.md").read_text()


def add_section(copy: Copy) -> None:
    """Follow the recipe of a section, which only the study ``contributed`` has: no committed page changes."""
    for name, text in SECTION.items():
        (copy.root / name).write_text(text)
    file = copy.root / "src/multilab/reports/sections.py"
    text = file.read_text()
    for before, added in (
        ("from multilab.reports.tables.variants", "from multilab.reports.tables.sizes import sizes\n"),
        ('        Section("reproduce",', '        Section("sizes", "Sizes", _some(sizes=sizes(report))),\n'),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, added + before)
    file.write_text(text)


RECIPES = {
    "Add a method": add_method,
    "Add a metric": add_metric,
    "Add a data set": add_dataset,
    "Add a study": add_study,
    "Add a paper": add_paper,
    "Add a section to the report": add_section,
}


def test_every_recipe_has_a_check(checkout: Path) -> None:
    text = (checkout / "CONTRIBUTING.md").read_text()
    assert set(re.findall(r"^## (Add .*)$", text, flags=re.MULTILINE)) == set(dict(CHECK.findall(text))) == set(RECIPES)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_check_of_a_recipe_passes_after_it(recipe: str, complete: Copy) -> None:
    RECIPES[recipe](complete)
    complete.commit()
    complete.test(
        *complete.checks[recipe], "-n", "2", "--dist", "loadgroup", "--deselect", "tests/project/test_recipes.py"
    )


@pytest.mark.slow
def test_the_complete_suite_passes_after_all_recipes(complete: Copy) -> None:
    for follow in RECIPES.values():
        follow(complete)
    complete.multilab("study", "report", "--study", "contributed")
    assert "Sizes of this study" in (complete.root / "reports/contributed/index.html").read_text()
    complete.commit()
    complete.test(*PARALLEL)


@pytest.mark.slow
@pytest.mark.data
def test_a_card_of_a_file_that_is_not_in_the_mirror_passes_the_tests_of_the_mirror(
    copy: Copy, benchmark_data: Path
) -> None:
    copy.add("conf/dataset/stations.yaml")
    which = "tests/datasets/test_prepared_benchmark.py", "-k", "every_set or stations"
    passed = copy.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *which, MULTILAB_DATA=str(benchmark_data))
    assert "1 passed" in passed


def test_every_block_with_a_path_is_used_here(checkout: Path) -> None:
    paths = [path for path, _, _ in BLOCK.findall((checkout / "CONTRIBUTING.md").read_text())]
    text = Path(__file__).read_text()
    assert len(paths) == len(set(paths)) >= 4
    assert [path for path in paths if f'"{path}"' not in text] == []
