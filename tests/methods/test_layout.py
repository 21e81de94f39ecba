"""The files of the method families: one estimator per public file, helpers with an underscore."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from multilab import methods
from multilab.methods._discovery import find_class

METHODS = Path(methods.__file__).parent
FAMILIES = sorted(p.name for p in METHODS.iterdir() if (p / "__init__.py").exists() and p.name != "solvers")
PUBLIC = sorted(p for family in FAMILIES for p in (METHODS / family).glob("[!_]*.py"))


def imports(path: Path) -> set[str]:
    """Return the second level of every module of ``multilab.methods`` that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    names |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    return {name.split(".")[2] for name in names if name.startswith("multilab.methods.")}


@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_public_file_of_a_family_defines_exactly_one_estimator(path: Path) -> None:
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    names = [n.name for n in statements if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
    assert len(names) == 1, f"{path.name} defines {names}: move helpers to a file that starts with an underscore"
    if path.name == "tabm.py":
        for package in ("torch", "tabm"):  # of an extra
            pytest.importorskip(package)
    assert issubclass(find_class(names[0]), BaseEstimator)


@pytest.mark.parametrize("estimator", methods.all_estimators(), ids=lambda c: c.__name__)
def test_the_docstring_of_an_estimator_has_an_example_and_starts_with_one_line(estimator: type) -> None:
    lines = (estimator.__doc__ or "").splitlines()
    assert lines[0].endswith((".", ":"))
    assert not lines[1]
    assert "    Examples" in lines  # run by tests/project/test_doctests.py
    assert f"{estimator.__name__}(" in "".join(line for line in lines if ">>> " in line)


def test_the_families_are_found() -> None:
    assert {"elm", "forests", "stacking", "transformation"} <= set(FAMILIES)
    assert len(PUBLIC) > 30


@pytest.mark.parametrize(("package", "others"), [("stacking", ["elm"]), ("elm", ["stacking"]), ("solvers", FAMILIES)])
def test_stacking_elm_and_solvers_do_not_import_each_other(package: str, others: list[str]) -> None:
    for path in (METHODS / package).glob("*.py"):
        assert not imports(path) & set(others), path.name
