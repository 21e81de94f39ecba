"""What the code imports is declared in pyproject.toml, and messages name packages that an index has."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from multilab.cli.main import _LABORATORY
from multilab.core.messages import pip_install

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
# Distributions of modules that may not be installed where the tests run, if they have another name.
OTHER_NAMES = {"faiss": "faiss-cpu", "hydra": "hydra-core", "xgboost": "xgboost-cpu"}
FOR_TESTS = ("dev", "docs")
OF_NOTEBOOKS = {"IPython"}  # is where a notebook runs, and is imported there only


def plain_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[(]", requirement)[0]).lower()


DECLARED = {extra: set(map(plain_name, lines)) for extra, lines in PROJECT["optional-dependencies"].items()}
CORE = set(map(plain_name, PROJECT["dependencies"]))


@functools.cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_bytes())) for path in sorted((CHECKOUT / "src").rglob("*.py"))]


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """The modules of other distributions that the package imports anywhere, and the files that do."""
    found: dict[str, set[str]] = {}
    for path, tree in trees():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for top in {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names, "multilab"}:
                found.setdefault(top, set()).add(path.name)
    return found


@pytest.fixture(scope="module")
def distributions(imported) -> dict[str, set[str]]:
    """The distributions that may provide each imported module."""
    known = packages_distributions()
    return {top: {plain_name(one) for one in known.get(top, [OTHER_NAMES.get(top, top)])} for top in imported}


def test_every_imported_module_is_declared(imported, distributions):
    every = CORE.union(*(names for extra, names in DECLARED.items() if extra not in FOR_TESTS))
    undeclared = {top: imported[top] for top, names in distributions.items() if not names & every}
    assert undeclared.keys() <= OF_NOTEBOOKS, undeclared


def test_every_package_of_the_core_and_of_the_laboratory_is_imported(distributions):
    programs = {"dvc"}  # which `datasets add` and people call
    assert (CORE | DECLARED["lab"]) - set.union(*distributions.values()) == programs


def test_a_missing_module_of_the_laboratory_is_recognised(distributions):
    """Its commands then print one line instead of a traceback."""
    needed = {top for top, names in distributions.items() if names & DECLARED["lab"]}
    assert needed <= _LABORATORY.keys()
    assert {plain_name(name) for name in _LABORATORY.values()} <= DECLARED["lab"]


def test_no_message_advises_to_install_the_name_multilab():
    """It is on no index: whoever registers it there would run code on those who obey."""
    texts = [*(CHECKOUT / "src").rglob("*"), *(CHECKOUT / "conf").rglob("*"), *(CHECKOUT / "docs").glob("**/*.md")]
    advice = re.compile(r"pip install [^\n`]*multilab(?!/)|^requires: multilab", re.MULTILINE)
    found = {path.name: advice.findall(path.read_text(errors="replace")) for path in texts if path.is_file()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_packages_in_messages_are_declared():
    names = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "pip_install":
                names |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    assert {"openpyxl", "skops"} <= names
    assert {plain_name(name) for name in names} <= CORE.union(*DECLARED.values())


def test_the_command_to_install_names_what_is_missing_of_an_extra(monkeypatch):
    from importlib import metadata

    lines = ["numpy>=2", "there>=1; extra == 'lab'", "gone<3,>=2; extra == 'lab'", "other; extra == 'excel'"]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)

    def distribution(name: str) -> object:
        if name in ("gone", "other"):
            raise metadata.PackageNotFoundError(name)
        return object()

    monkeypatch.setattr(metadata, "distribution", distribution)
    assert pip_install(extra="lab") == "pip install 'gone<3,>=2'"
    assert pip_install("numpy", "unknown") == "pip install 'numpy>=2' unknown"
    assert pip_install("gone", extra="lab") == "pip install 'gone<3,>=2'"
